// The fastest kernels we can write by hand, as a C interface: the limit that
// compiled kernels are measured against.
//
// Row-major contiguous matrices, x[rows][cols] in bf16 or f32. Bits are those
// of the written numerics: fp32 arithmetic, round to nearest even, subnormals
// kept, amax ignores NaN, NaN encodes to +6 (E2M1) and 7F (E4M3). Every
// function returns 0, or a negative LimitStatus and writes nothing. Outputs
// aligned to 64 bytes are written with non-temporal stores once the outputs
// pass what a cache holds. `threads` counts the caller.
#ifndef DITHER_BENCHMARKS_LIMIT_LIMIT_H
#define DITHER_BENCHMARKS_LIMIT_LIMIT_H

#include <cstdint>

#define LIMIT_API extern "C" __attribute__((visibility("default")))

enum LimitFormat : int32_t {
  LimitNVFP4 = 0,
  LimitMXFP8 = 1,
  LimitMXFP4 = 2,
  LimitMXFP4Rceil = 3
};
enum LimitInput : int32_t { LimitBF16 = 0, LimitF32 = 1 };
enum LimitStatus : int32_t {
  LimitOk = 0,
  LimitBadFormat = -1,
  LimitBadInput = -2,
  LimitBadShape = -3
};

/// 1 where this machine has the instructions that the kernels use (AVX-512 F,
/// BW, VL, DQ and VBMI), else 0.
LIMIT_API int32_t limit_supported();

/// Copies n bytes; the parts are at least 1 MiB so that libc's own non-temporal
/// form is used where it would be.
LIMIT_API void limit_memcpy(void *to, const void *from, int64_t n,
                            int32_t threads);

/// Rowwise quantize. NVFP4: q[rows][cols/2], scale[rows][cols/16] E4M3,
/// multiplier from `amax` of the tensor. MXFP8 (E4M3): q[rows][cols],
/// scale[rows][cols/32] E8M0 rounded up. MXFP4: q[rows][cols/2],
/// scale[rows][cols/32], E8M0 by the exponent field (LimitMXFP4) or rounded up
/// (LimitMXFP4Rceil). cols must be a multiple of the block.
LIMIT_API int32_t limit_quantize(int32_t format, int32_t input, const void *x,
                                 int64_t rows, int64_t cols, float amax,
                                 uint8_t *q, uint8_t *scale, int32_t threads);

/// MXFP8 (E4M3) in both directions from one read: row q[rows][cols] with
/// scale[rows][cols/32], column q[rows][cols] (not transposed) with
/// scale[rows/32][cols]. rows and cols must be multiples of 32.
LIMIT_API int32_t limit_quantize_both(int32_t input, const void *x,
                                      int64_t rows, int64_t cols, uint8_t *rowQ,
                                      uint8_t *rowScale, uint8_t *colQ,
                                      uint8_t *colScale, int32_t threads);

/// y = gamma * (rs * x), rs = 1 / sqrt(sum(x*x) * fl(1/cols) + eps) with the
/// sum in the order that depends on cols alone, then limit_quantize of y.
/// gamma[cols] has the type of x. Where `round` is not 0, y is rounded to that
/// type first. rsigma[rows] may be null.
LIMIT_API int32_t limit_rms_norm(int32_t format, int32_t input, const void *x,
                                 const void *gamma, int64_t rows, int64_t cols,
                                 float eps, float amax, int32_t round,
                                 uint8_t *q, uint8_t *scale, float *rsigma,
                                 int32_t threads);

#endif
