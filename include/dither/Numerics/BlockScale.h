//===- BlockScale.h - Scales and elements of one block ----------*- C++ -*-===//
//
// The definition of the block-scaled modes, one block at a time. Everything is
// binary32, round to nearest even, one rounding per operation as written,
// subnormals kept. fmin(v, c) is `v < c ? v : c`: c for a NaN.
//
// Formats with a tensor scale (F the largest element, R the largest scale times
// F, for NVFP4 6 and 448 * 6 = 2688; G the tensor's amax, b the block's amax):
//   S = fmin(R / G, FLT_MAX), 1 if G is 0 or Inf
//   TE       scale = E4M3(fmin(b * (S * (1/F)), FLT_MAX))
//   Div6Mul  scale = E4M3(fmin((b / F) * S, FLT_MAX))
//            factor of the elements = fmin(1 / (scale * (1 / S)), FLT_MAX)
//   Div6Div  D = G / R, 1 if that is 0 or +Inf
//            scale = E4M3(max(fmin((b / F) / D, 448), 2^-6))
//            factor of the elements = fmin((1 / D) / scale, FLT_MAX)
//   element = encode(x * factor);  value = element * ((scale * G) * (1/R))
// Formats with E4M3 scales and without a tensor scale: TE for S = 1, and
//   value = element * scale
// (TE: NVIDIA Transformer Engine's NVFP4 kernels; Div6Mul: nvFuser and
// Transformer Engine for JAX; Div6Div: torchao.)
//
// Formats with f32 scales: TE, with S = 1 and without the rounding to E4M3, or
//   EncodeFirst  a = epsilon if b < epsilon, else b
//                E = F / a, 1 if a is 0, Inf or NaN; FLT_MAX if that is Inf;
//                with pow2Scales, its mantissa is cut off
//                scale = 1 / E;  factor of the elements = E
// (EncodeFirst: Transformer Engine's FP8 of a whole tensor and of blocks.)
//
// Formats with E8M0 scales (e the scale's code, field the exponent field):
//   RCeil  e = encodeE8M0Ceil(b * (1/F))
//   Floor  e = field(b) - emax                     Ceil, Even: see Formats.h;
//          at least 0; 255 if b is Inf
//   element = encode(x * 2^(127 - e));  value = element * 2^(e - 127)
// (RCeil: Transformer Engine; the others: OCP MX 1.0, 6.3, and torchao.)
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_BLOCKSCALE_H
#define DITHER_NUMERICS_BLOCKSCALE_H

#include "dither/Numerics/Formats.h"

namespace dither::numerics {

/// S above, the factor that brings a tensor of this amax into the range of a
/// two-level format; 1 for other formats. NaN gives FLT_MAX.
float tensorEncodeScale(const BlockFormat &format, float tensorAmax);

/// The value that blockScale of a format with a tensor scale rounds to E4M3.
float unroundedBlockScale(const BlockFormat &format, float blockAmax,
                          float tensorAmax);

/// E above, what the elements of a block of this amax are multiplied by.
/// `largest` is the largest finite value of the type that they come in.
float encodeScale(const BlockFormat &format, float blockAmax, float largest);

/// Code of the scale of a block with this amax (no NaN). `tensorAmax` is read
/// only where the format has a tensor scale.
uint32_t blockScale(const BlockFormat &format, float blockAmax,
                    float tensorAmax = 0);

/// What the elements are multiplied by before they are encoded, from the
/// scale's code.
float elementFactor(const BlockFormat &format, uint32_t scale,
                    float tensorAmax = 0);

/// What decoded elements are multiplied by.
float dequantizeFactor(const BlockFormat &format, uint32_t scale,
                       float tensorAmax = 0);

/// Quantizes the n elements of a block (a block cut off by the edge of a
/// tensor is shorter), `stride` elements apart. Codes go to codes[0 .. n), one
/// a byte. Returns the scale's code. NaN elements do not count for the scale
/// and become elem->nanCode.
uint8_t quantizeBlock(const BlockFormat &format, const float *x, unsigned n,
                      float tensorAmax, uint8_t *codes, int64_t stride = 1);

/// Values of n codes, one a byte, of a block with this scale.
void dequantizeBlock(const BlockFormat &format, const uint8_t *codes,
                     unsigned n, uint32_t scale, float tensorAmax, float *x,
                     int64_t stride = 1);

} // namespace dither::numerics

#endif // DITHER_NUMERICS_BLOCKSCALE_H
