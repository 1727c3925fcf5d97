//===- Formats.h - Element formats and block-scaled formats ----*- C++ -*-===//
//
// What the element types are made of, and which element, scale and block
// make up a block-scaled format. Everything else in this library reads these
// tables.
//
// Sources: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP
// Microscaling Formats (MX) 1.0, sections 5 and 6 (E2M1, E2M3, E3M2, E8M0,
// MXFP4, MXFP6, MXFP8, MXINT8), IEEE 754 (binary16, binary32). NVFP4 is E2M1 in
// blocks of 16 with an E4M3 scale each and one f32 maximum per tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_FORMATS_H
#define DITHER_NUMERICS_FORMATS_H

#include "dither/Numerics/ScaleRule.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dither::numerics {

/// A binary float format: a sign bit (if any), exponent field, mantissa field,
/// from the most significant bit down. A code is the integer of these bits.
/// Integers, and fixed-point numbers, are the floats of one exponent bit, whose
/// values are equally spaced, but that a negative code is the two's complement.
struct ElementFormat {
  std::string_view name; ///< as MLIR spells the type
  unsigned bits;
  unsigned exponentBits;
  unsigned mantissaBits;
  int bias;        ///< value of a normal code: 1.m * 2^(field - bias)
  bool hasSign;    ///< E8M0 has none, and neither zero nor subnormal values
  float max;       ///< largest finite value
  float minNormal; ///< smallest normal value
  bool hasInf;
  bool hasNaN;
  /// Rounding past `max` gives the largest finite value; otherwise infinity.
  bool saturates;
  uint32_t maxCode; ///< of `max`; the infinity, if any, is the next code
  /// What a NaN becomes, whatever its sign and payload. Formats without NaN
  /// have the largest value, as the hardware's saturating conversions do.
  uint32_t nanCode;
  /// Whether negative codes are two's complements. There is no negative zero,
  /// and nothing is encoded as the code without a positive counterpart.
  bool twosComplement = false;

  constexpr uint32_t signBit() const {
    return hasSign ? uint32_t(1) << (bits - 1) : 0;
  }
  /// Bits of a code in memory: one of 6 bits has a byte, the two bits above it
  /// are zero.
  constexpr unsigned storageBits() const { return bits == 6 ? 8 : bits; }
  /// Smallest positive value. E8M0: 2^-127, the same as minNormal.
  float minPositive() const;
  /// Exponent of the power of two at or below `max` (the MX specification's
  /// emax).
  constexpr int maxExponent() const {
    return int((maxCode >> mantissaBits) & ((1u << exponentBits) - 1)) - bias;
  }
};

// clang-format off
//                                  name         bits e  m   bias sign   max              min normal  Inf    NaN    sat.   codes of max, NaN
inline constexpr ElementFormat kE2M1{"f4E2M1FN",   4,  2, 1,  1,   true,  0x1.8p2f,        0x1p0f,    false, false, true,  0x7,        0x7};
inline constexpr ElementFormat kE2M3{"f6E2M3FN",   6,  2, 3,  1,   true,  0x1.ep2f,        0x1p0f,    false, false, true,  0x1F,       0x1F};
inline constexpr ElementFormat kE3M2{"f6E3M2FN",   6,  3, 2,  3,   true,  0x1.cp4f,        0x1p-2f,   false, false, true,  0x1F,       0x1F};
inline constexpr ElementFormat kINT8{"i8",         8,  1, 6,  -5,  true,  0x1.fcp6f,       0x1p6f,    false, false, true,  0x7F,       0x7F, true};
inline constexpr ElementFormat kE4M3{"f8E4M3FN",   8,  4, 3,  7,   true,  0x1.cp8f,        0x1p-6f,   false, true,  true,  0x7E,       0x7F};
inline constexpr ElementFormat kE5M2{"f8E5M2",     8,  5, 2,  15,  true,  0x1.cp15f,       0x1p-14f,  true,  true,  true,  0x7B,       0x7F};
inline constexpr ElementFormat kE8M0{"f8E8M0FNU",  8,  8, 0,  127, false, 0x1p127f,        0x1p-127f, false, true,  true,  0xFE,       0xFF};
inline constexpr ElementFormat kBF16{"bf16",       16, 8, 7,  127, true,  0x1.fep127f,     0x1p-126f, true,  true,  false, 0x7F7F,     0x7FFF};
inline constexpr ElementFormat kF16 {"f16",        16, 5, 10, 15,  true,  0x1.ffcp15f,     0x1p-14f,  true,  true,  false, 0x7BFF,     0x7FFF};
inline constexpr ElementFormat kF32 {"f32",        32, 8, 23, 127, true,  0x1.fffffep127f, 0x1p-126f, true,  true,  false, 0x7F7FFFFF, 0x7FFFFFFF};
// The same codes in units of 2^-6, as elements of MXINT8 are (OCP MX 1.0, 5.3.4).
inline constexpr ElementFormat kMXINT8{"i8",     8,  1, 6,  1,   true,  0x1.fcp0f,       0x1p0f,    false, false, true,  0x7F,       0x7F, true};
// clang-format on

/// One for each type of elements.
inline constexpr const ElementFormat *kElementFormats[] = {
    &kE2M1, &kE2M3, &kE3M2, &kINT8, &kE4M3,
    &kE5M2, &kE8M0, &kBF16, &kF16,  &kF32};

/// The format whose type MLIR spells `name`; null if there is none.
const ElementFormat *findElementFormat(std::string_view name);

/// Rounds f32 to a signed format of m mantissa bits with one multiply-add: for
/// p the power of two at or below |x|, and at least the smallest normal value,
/// sum = p * factor + |x| in f32 has m mantissa bits, rounded to nearest even.
/// The code of |x| is in the low bits of sum + (sum >> shift), under a sign bit
/// of zero.
struct FusedRounding {
  float factor;
  unsigned shift;
};

/// With c added to the factor 2^(23 - m), the mantissa field of the sum is the
/// code's with (c + 1) * 2^m above it, and the exponent field, of the exponent
/// of p + 150 - m, comes on top of that when the sum is shifted: c + 151 - m is
/// the bias, modulo the bits of exponent and sign.
constexpr FusedRounding fusedRounding(const ElementFormat &f) {
  int m = int(f.mantissaBits);
  unsigned c = unsigned(f.bias - 151 + m) & ((2u << f.exponentBits) - 1);
  return {float((1u << (23 - m)) + c), unsigned(23 - m)};
}

/// The same in binary16, of values that have no more bits: the code of |x| is
/// the low bits of (exponent field << m) + mantissa field of p * factor + |x|.
/// Values below 2^-14 must round to zero, and no sum may overflow.
constexpr bool hasHalfRounding(const ElementFormat &f) {
  return f.bits <= 8 && f.hasSign && !f.twosComplement && f.mantissaBits > 0 &&
         f.maxExponent() + 10 - int(f.mantissaBits) <= 15 &&
         f.minNormal >= 0x1p-10f;
}
/// As fusedRounding, with 10 bits of mantissa and a bias of 15 in the sum.
constexpr float halfFactor(const ElementFormat &f) {
  int m = int(f.mantissaBits);
  unsigned c = unsigned(f.bias - 26 + m) & ((2u << f.exponentBits) - 1);
  return float((1u << (10 - m)) + c);
}

/// A block-scaled format. A caller that wants another one changes its copy.
struct BlockFormat {
  std::string_view name; ///< of a built-in format; means nothing
  const ElementFormat *elem;
  const ElementFormat *scale; ///< kE8M0, kE4M3 or kF32
  /// Elements that share one scale, rowwise; 0 for all that the tensor has.
  unsigned blockRows, blockCols;
  bool tensorScale; ///< the scale also depends on the tensor's amax
  bool transposed;  ///< columnwise codes are stored transposed
  ScaleRule rule;   ///< how scales are made

  /// What the tensor's amax is scaled to.
  float range() const { return rule.largestScale * elem->max; }
};

inline constexpr ScaleRule kRCeil, kFloor{ScaleRounding::Floor},
    kEncodeFirst{ScaleRounding::RCeil, ScaleOrder::EncodeFirst},
    kPow2Scales{ScaleRounding::RCeil, ScaleOrder::EncodeFirst, true};

// clang-format off
inline constexpr BlockFormat kBlockFormats[] = {
    {"nvfp4",      &kE2M1, &kE4M3, 1, 16, true,  true,  kRCeil},
    {"mxfp4",      &kE2M1, &kE8M0, 1, 32, false, false, kFloor},
    {"mxfp6_e2m3", &kE2M3, &kE8M0, 1, 32, false, false, kFloor},
    {"mxfp6_e3m2", &kE3M2, &kE8M0, 1, 32, false, false, kFloor},
    {"mxfp8_e4m3", &kE4M3, &kE8M0, 1, 32, false, false, kRCeil},
    {"mxfp8_e5m2", &kE5M2, &kE8M0, 1, 32, false, false, kRCeil},
    {"mxint8",     &kMXINT8, &kE8M0, 1, 32, false, false, kFloor},
    {"fp8_tensor_e4m3",  &kE4M3, &kF32, 0,   0,   false, true, kEncodeFirst},
    {"fp8_tensor_e5m2",  &kE5M2, &kF32, 0,   0,   false, true, kEncodeFirst},
    {"fp8_row_e4m3",     &kE4M3, &kF32, 1,   0,   false, true, kEncodeFirst},
    {"fp8_row_e5m2",     &kE5M2, &kF32, 1,   0,   false, true, kEncodeFirst},
    {"fp8_1x128_e4m3",   &kE4M3, &kF32, 1,   128, false, true, kPow2Scales},
    {"fp8_1x128_e5m2",   &kE5M2, &kF32, 1,   128, false, true, kPow2Scales},
    {"fp8_128x128_e4m3", &kE4M3, &kF32, 128, 128, false, true, kPow2Scales},
    {"fp8_128x128_e5m2", &kE5M2, &kF32, 128, 128, false, true, kPow2Scales},
    {"int8_tensor",      &kINT8, &kF32, 0,   0,   false, true, kRCeil},
    {"int8_row",         &kINT8, &kF32, 1,   0,   false, true, kRCeil},
};
// clang-format on

/// The block-scaled format of this name; null if there is none.
const BlockFormat *findBlockFormat(std::string_view name);

} // namespace dither::numerics

#endif // DITHER_NUMERICS_FORMATS_H
