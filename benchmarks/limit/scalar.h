// One block at a time, one element at a time: what the vector code does for
// blocks that hold an infinity or a NaN, and for the blocks left over at the
// end of a range.
#ifndef DITHER_BENCHMARKS_LIMIT_SCALAR_H
#define DITHER_BENCHMARKS_LIMIT_SCALAR_H

#include "limit.h"

#include <cmath>
#include <cstring>

namespace dither::limit {

constexpr float kMaxF32 = 3.40282347e38F;

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline float widen(uint16_t bf16) { return floatOf(uint32_t(bf16) << 16); }
inline float widen(float value) { return value; }

/// RNE of a finite |a| on the grid of `mantissaBits` above 2^minExponent: the
/// sum with a power of two whose last bit is worth one step rounds once.
inline uint32_t magnitudeCode(float a, int mantissaBits, int minExponent) {
  uint32_t field = (bitsOf(a) >> 23) > uint32_t(127 + minExponent)
                       ? bitsOf(a) >> 23
                       : uint32_t(127 + minExponent);
  float magic = floatOf((field + 23 - mantissaBits) << 23);
  uint32_t steps = bitsOf(magic + a) - bitsOf(magic);
  return ((field - 127 - minExponent) << mantissaBits) + steps;
}

/// E2M1 code (1.1 of the tables): saturates at 6; NaN gives 7.
inline uint8_t encodeE2M1(float y) {
  if (y != y)
    return 7;
  float a = std::fabs(y) < 6.0F ? std::fabs(y) : 6.0F;
  return uint8_t((bitsOf(y) >> 28 & 8) | magnitudeCode(a, 1, 0));
}

/// E4M3 code: saturates at 448; NaN gives 7F.
inline uint8_t encodeE4M3(float y) {
  if (y != y)
    return 0x7F;
  float a = std::fabs(y) < 448.0F ? std::fabs(y) : 448.0F;
  return uint8_t((bitsOf(y) >> 24 & 0x80) | magnitudeCode(a, 3, -6));
}

inline float decodeE4M3(uint8_t code) {
  return floatOf(uint32_t(code & 0x7F) << 20) * 0x1p120F;
}

/// Round up to a power of two, as cvt.rp.satfinite.ue8m0x2 does, for a >= 0.
inline uint8_t e8m0Rceil(float a) {
  uint32_t bits = bitsOf(a);
  if (bits >= 0x7F000000)
    return bits > 0x7F800000 ? 0xFF : 0xFE;
  return bits <= 0x00400000 ? 0 : uint8_t((bits + 0x7FFFFF) >> 23);
}

/// Exponent field less that of the largest power of two in the element type;
/// infinity gives FF.
inline uint8_t e8m0Floor(float a, uint32_t emax) {
  uint32_t field = bitsOf(a) >> 23;
  return field == 255 ? 255 : uint8_t(field > emax ? field - emax : 0);
}

inline float e8m0Inverse(uint8_t e) {
  return floatOf(e == 255   ? 0x7FFFFFFF
                 : e == 254 ? 0x00400000
                            : uint32_t(254 - e) << 23);
}

/// Factors of NVFP4 that belong to the tensor: scale = E4M3(amax of block *
/// mult), multiplier 1 / (scale * decode).
struct TensorScale {
  float mult, decode;
  explicit TensorScale(float amax) {
    float encode = 2688.0F / amax;
    encode = encode < kMaxF32 ? encode : kMaxF32; // a NaN too
    if (amax == 0 || encode == 0)
      encode = 1.0F;
    mult = encode * (1.0F / 6.0F);
    decode = 1.0F / encode;
  }
};

/// amax of n elements; NaN loses.
template <typename T> float blockAmax(const T *x, int64_t stride, int n) {
  float amax = 0;
  for (int i = 0; i < n; ++i) {
    float a = std::fabs(widen(x[i * stride]));
    amax = a > amax ? a : amax;
  }
  return amax;
}

/// Scale code and multiplier of a block.
template <LimitFormat Format>
uint8_t blockScale(float amax, const TensorScale &tensor, float &multiplier) {
  if constexpr (Format == LimitNVFP4) {
    float scaled = amax * tensor.mult;
    uint8_t scale = encodeE4M3(scaled < kMaxF32 ? scaled : kMaxF32);
    float inverse = 1.0F / (decodeE4M3(scale) * tensor.decode);
    multiplier = inverse < kMaxF32 ? inverse : kMaxF32;
    return scale;
  }
  uint8_t scale =
      Format == LimitMXFP4
          ? e8m0Floor(amax, 2)
          : e8m0Rceil(amax * (1.0F / (Format == LimitMXFP8 ? 448.0F : 6.0F)));
  multiplier = e8m0Inverse(scale);
  return scale;
}

template <LimitFormat Format> constexpr int blockOf() {
  return Format == LimitNVFP4 ? 16 : 32;
}
/// Output bytes of a block.
template <LimitFormat Format> constexpr int bytesOf() {
  return Format == LimitNVFP4 ? 8 : Format == LimitMXFP8 ? 32 : 16;
}

/// Quantizes `blocks` consecutive blocks.
template <LimitFormat Format, typename T>
__attribute__((noinline)) void scalarBlocks(const T *x, int64_t blocks,
                                            const TensorScale &tensor,
                                            uint8_t *q, uint8_t *scale) {
  constexpr int n = blockOf<Format>();
  for (int64_t b = 0; b < blocks; ++b, x += n) {
    float multiplier;
    scale[b] = blockScale<Format>(blockAmax(x, 1, n), tensor, multiplier);
    for (int i = 0; i < n; i += 2) {
      float y0 = widen(x[i]) * multiplier, y1 = widen(x[i + 1]) * multiplier;
      if constexpr (Format == LimitMXFP8) {
        *q++ = encodeE4M3(y0);
        *q++ = encodeE4M3(y1);
      } else {
        *q++ = uint8_t(encodeE2M1(y0) | encodeE2M1(y1) << 4);
      }
    }
  }
}

} // namespace dither::limit

#endif
