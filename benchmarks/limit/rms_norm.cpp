// RMSNorm and rowwise quantize. A row is read from memory once: its statistics,
// then y into a buffer in the first cache, then the codes from there.
#include "dispatch.h"
#include "pool.h"
#include "simd.h"

#include <algorithm>
#include <vector>

using namespace dither::limit;

namespace {

inline Float widen16(const uint16_t *x) {
  Int words = _mm512_cvtepu16_epi32(
      _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x)));
  return asFloat(_mm512_slli_epi32(words, 16));
}
inline Float widen16(const float *x) { return _mm512_loadu_ps(x); }

/// 16 values rounded to bf16, RNE; a NaN stays one.
inline Float roundTo(const uint16_t *, Float y) {
  Int bits = asInt(y),
      lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), splat(1));
  Int rounded = _mm512_add_epi32(_mm512_add_epi32(bits, splat(0x7FFF)), lsb);
  __mmask16 nan = _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q);
  rounded = _mm512_mask_mov_epi32(rounded, nan,
                                  _mm512_or_si512(bits, splat(0x00400000)));
  return asFloat(_mm512_and_si512(rounded, splat(0xFFFF0000)));
}
inline Float roundTo(const float *, Float y) { return y; }

// Sums of neighbouring elements of a and b, then of neighbouring pairs, and so
// on: every level halves two registers into one.
inline Float addPairs(Float a, Float b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88),
                       _mm512_shuffle_ps(a, b, 0xDD));
}
inline Float addLanes(Float a, Float b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                       _mm512_shuffle_f32x4(a, b, 0xDD));
}

/// Pairwise sum, lowest index bit first, of each of 16 registers; lane i is the
/// sum of register i. After two levels in the 128-bit lanes, lane w of a
/// register holds partial sums of registers 4 k to 4 k + 3; two more add those
/// lanes.
inline Float sumOf16(const Float *r) {
  Float q[4];
  for (int k = 0; k < 4; ++k)
    q[k] = addPairs(addPairs(r[4 * k], r[4 * k + 1]),
                    addPairs(r[4 * k + 2], r[4 * k + 3]));
  return addLanes(addLanes(q[0], q[1]), addLanes(q[2], q[3]));
}

/// Sum of squares in the canonical order: W = clamp(bit_floor(max(1, n /
/// 1024)), 1, 8) chains, P = 256 W sequential sums over x[o P + r], then a
/// pairwise tree over the bits of r from the lowest.
template <typename T> float sumOfSquares(const T *x, int64_t n) {
  int chains = 1;
  while (chains < 8 && chains * 2 <= n / 1024)
    chains *= 2;
  const int64_t width = 256 * chains;
  float leaves[128]; // sums of 16 lanes each
  for (int64_t part = 0; part < width; part += 256) {
    Float acc[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      int64_t at = part + 16 * i;
      if (at + 16 <= n) {
        Float v = widen16(x + at);
        acc[i] = _mm512_mul_ps(v, v);
      } else {
        float tail[16];
        for (int j = 0; j < 16; ++j)
          tail[j] = at + j < n ? widen(x[at + j]) * widen(x[at + j]) : -0.0F;
        acc[i] = _mm512_loadu_ps(tail);
      }
    }
    int64_t base = part + width;
    for (; base + 256 <= n; base += width)
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        Float v = widen16(x + base + 16 * i);
        acc[i] = _mm512_add_ps(acc[i], _mm512_mul_ps(v, v));
      }
    if (base < n) { // rows are whole blocks of 16
      int rest = int(std::min<int64_t>(n - base, 256)) / 16;
      for (int i = 0; i < rest; ++i) {
        Float v = widen16(x + base + 16 * i);
        acc[i] = _mm512_add_ps(acc[i], _mm512_mul_ps(v, v));
      }
    }
    _mm512_storeu_ps(leaves + part / 16, sumOf16(acc));
  }
  for (int64_t count = width / 16; count > 1; count /= 2)
    for (int64_t i = 0; i < count / 2; ++i)
      leaves[i] = leaves[2 * i] + leaves[2 * i + 1];
  return leaves[0];
}

template <bool Round, typename T>
void normalize(const T *x, const T *gamma, int64_t n, float rs, float *y) {
  for (int64_t i = 0; i < n; i += 16) {
    Float v = _mm512_mul_ps(widen16(gamma + i),
                            _mm512_mul_ps(splatf(rs), widen16(x + i)));
    _mm512_store_ps(y + i, Round ? roundTo(x, v) : v);
  }
}

/// A row's scratch, aligned to 64 bytes and kept for the thread's next rows.
float *scratch(int64_t n) {
  thread_local std::vector<float> storage;
  if (int64_t(storage.size()) < n + 16)
    storage.resize(size_t(n + 16));
  uintptr_t address = reinterpret_cast<uintptr_t>(storage.data());
  return reinterpret_cast<float *>((address + 63) & ~uintptr_t(63));
}

} // namespace

LIMIT_API int32_t limit_rms_norm(int32_t format, int32_t input, const void *x,
                                 const void *gamma, int64_t rows, int64_t cols,
                                 float eps, float amax, int32_t round,
                                 uint8_t *q, uint8_t *scale, float *rsigma,
                                 int32_t threads) {
  return withInput(input, x, [&](auto *typed) {
    auto *typedGamma = static_cast<decltype(typed)>(gamma);
    return withFormat(
        format, nonTemporal(rows * cols / 2, q, q),
        [&](auto f, auto stream) -> int32_t {
          constexpr LimitFormat Format = f.value;
          if (rows < 0 || cols <= 0 || cols % blockOf<Format>() != 0)
            return LimitBadShape;
          const TensorScale tensor(amax);
          const int64_t blocks = cols / blockOf<Format>();
          // A row starts on a line only where its bytes are a multiple of 64.
          bool aligned = blocks * bytesOf<Format>() % 64 == 0;
          parallelFor(rows, 4, threads, [&](int64_t begin, int64_t end) {
            float *y = scratch(cols);
            for (int64_t r = begin; r < end; ++r) {
              auto *row = typed + r * cols;
              float mean = sumOfSquares(row, cols) * (1.0F / float(cols));
              float rs = 1.0F / std::sqrt(mean + eps);
              if (rsigma)
                rsigma[r] = rs;
              if (round)
                normalize<true>(row, typedGamma, cols, rs, y);
              else
                normalize<false>(row, typedGamma, cols, rs, y);
              uint8_t *rowQ = q + r * blocks * bytesOf<Format>(),
                      *rowScale = scale + r * blocks;
              if (aligned)
                quantizeBlocks<Format, stream.value>(
                    static_cast<const float *>(y), blocks, tensor, rowQ,
                    rowScale);
              else
                quantizeBlocks<Format, false>(static_cast<const float *>(y),
                                              blocks, tensor, rowQ, rowScale);
            }
          });
          return LimitOk;
        });
  });
}
