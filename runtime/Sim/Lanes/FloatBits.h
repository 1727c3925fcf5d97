//===- FloatBits.h - Floats as bits, branchless -----------------*- C++ -*-===//
//
// See Map.h for where this may be included.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_LANES_FLOATBITS_H
#define DITHER_RUNTIME_SIM_LANES_FLOATBITS_H

#include <cstdint>

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

inline uint32_t bitsOf(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
inline uint64_t bitsOf(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
inline float floatOf(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
inline double doubleOf(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}

/// Operations in binary32 give one NaN, 7FFFFFFF: payloads are not kept. In
/// binary64 the ISA says nothing; here the first source that is a NaN is kept,
/// quiet, and invalid operations give FFF8000000000000.
inline float canonical(float x) { return x != x ? floatOf(0x7FFFFFFF) : x; }
inline float canonical(float x, float) { return canonical(x); }
inline float canonical(float x, float, float) { return canonical(x); }
inline float canonical(float x, float, float, float) { return canonical(x); }
inline double quiet(double x) {
  return doubleOf(bitsOf(x) | 0x0008000000000000);
}
inline double canonical(double x, double a, double b, double c) {
  double nan = doubleOf(0xFFF8000000000000);
  nan = c != c ? quiet(c) : nan;
  nan = b != b ? quiet(b) : nan;
  nan = a != a ? quiet(a) : nan;
  return x != x ? nan : x;
}
inline double canonical(double x, double a, double b) {
  return canonical(x, a, b, 0.0);
}
inline double canonical(double x, double a) {
  return canonical(x, a, 0.0, 0.0);
}

/// A narrow format with a sign, as numerics::ElementFormat has it.
template <int EXPONENT, int MANTISSA, int BIAS> struct Format {
  static constexpr int kExponent = EXPONENT, kMantissa = MANTISSA, kBias = BIAS;
  static constexpr int kSignShift = EXPONENT + MANTISSA;
  /// 1.0 times 2^emin, in binary32.
  static constexpr uint32_t kMinNormal = uint32_t(128 - BIAS) << 23;
  /// Adding 2^(24-bias-mantissa) rounds to a multiple of the least subnormal.
  static constexpr uint32_t kMagic = uint32_t(127 + 24 - BIAS - MANTISSA) << 23;
};
using F16Format = Format<5, 10, 15>;
using BF16Format = Format<8, 7, 127>;
using E4M3Format = Format<4, 3, 7>;
using E5M2Format = Format<5, 2, 15>;
using E2M1Format = Format<2, 1, 1>;
using E2M3Format = Format<2, 3, 1>;
using E3M2Format = Format<3, 2, 3>;

/// Code of a magnitude (bits of a binary32 without its sign), to nearest even.
/// What is too large runs on into the codes above the largest exponent: the
/// caller has clamped it, or the format has an infinity there.
template <class F> inline uint32_t roundMagnitude(uint32_t magnitude) {
  constexpr int drop = 23 - F::kMantissa;
  uint32_t odd = magnitude >> drop & 1;
  uint32_t normal = (magnitude - (uint32_t(127 - F::kBias) << 23) +
                     (1u << (drop - 1)) - 1 + odd) >>
                    drop;
  uint32_t subnormal =
      bitsOf(floatOf(magnitude) + floatOf(F::kMagic)) - F::kMagic;
  return magnitude < F::kMinNormal ? subnormal : normal;
}
/// Formats with the exponents of binary32 have its subnormals, too.
template <> inline uint32_t roundMagnitude<BF16Format>(uint32_t magnitude) {
  return (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
}

/// f16 or bf16 of x: overflow gives the infinity, NaN 7FFF.
template <class F> inline uint16_t narrow(float x) {
  uint32_t bits = bitsOf(x), magnitude = bits & 0x7FFFFFFF;
  constexpr uint32_t infinity = ((1u << F::kExponent) - 1) << F::kMantissa;
  uint32_t code = roundMagnitude<F>(magnitude);
  // Also where the largest exponents would wrap around.
  code = magnitude >= 0x7F800000 || code > infinity ? infinity : code;
  code |= bits >> 16 & 0x8000;
  return uint16_t(magnitude > 0x7F800000 ? 0x7FFF : code);
}

template <class F> inline float widen(uint16_t code);
template <> inline float widen<BF16Format>(uint16_t code) {
  return floatOf(uint32_t(code) << 16);
}
template <> inline float widen<F16Format>(uint16_t code) {
  uint32_t magnitude = code & 0x7FFF;
  // Scaling by 2^112 makes subnormals normal.
  float scaled = floatOf(magnitude << 13) * floatOf(0x77800000);
  uint32_t bits =
      magnitude >= 0x7C00 ? 0x7F800000 | magnitude << 13 : bitsOf(scaled);
  return floatOf(bits | uint32_t(code & 0x8000) << 16);
}

/// s, the sum of two doubles to nearest, moved to the neighbour with an odd
/// last bit where the error of the sum is not zero: rounding it once more, to
/// half the bits or less, then rounds the exact sum.
inline double toOdd(double s, double error) {
  uint64_t bits = bitsOf(s);
  bool inexact = error == error && error != 0.0;
  if (inexact && !(bits & 1))
    bits += (error > 0) == (s > 0) ? uint64_t(1) : ~uint64_t(0);
  return doubleOf(bits);
}
inline float toOddFloat(double s) {
  float f = float(s);
  double error = s - double(f);
  uint32_t bits = bitsOf(f);
  bool inexact = error == error && error != 0.0;
  if (inexact && !(bits & 1))
    bits += (error > 0) == (f > 0 || (f == 0 && s > 0)) ? 1u : ~0u;
  return floatOf(bits);
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL

#endif // DITHER_RUNTIME_SIM_LANES_FLOATBITS_H
