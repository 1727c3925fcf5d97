//===- Convert.cpp - f32 to narrow codes and back -------------------------===//

#include "dither/Numerics/Convert.h"
#include "dither/Numerics/Bits.h"

#include <cmath>

namespace dither::numerics {

namespace {

constexpr uint32_t kInf = 0x7F800000, kNaN = 0x7FFFFFFF;

/// x / 2^shift, to nearest even; shift >= 0.
uint32_t shiftRightToEven(uint32_t x, int shift) {
  if (shift == 0)
    return x;
  // x < 2^24: shifted by 25 or more it is below a half.
  if (shift > 24)
    return 0;
  uint32_t kept = x >> shift, rest = x & ((1u << shift) - 1),
           half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

/// encode() for a code of sign and magnitude.
uint32_t encodeMagnitude(const ElementFormat &format, float x) {
  uint32_t bits = bitsOf(x), magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kInf)
    return format.nanCode;
  uint32_t sign = bits >> 31 ? format.signBit() : 0;
  uint32_t overflow = format.saturates ? format.maxCode : format.maxCode + 1;
  if (magnitude == kInf)
    return sign | overflow;

  // |x| = significand * 2^(exponent - 23). A subnormal is brought to the form
  // of a normal number with an exponent below -126.
  uint32_t significand = magnitude & 0x7FFFFF;
  int exponent = int(magnitude >> 23) - 127;
  if (exponent == -127) {
    if (!significand)
      return sign;
    for (exponent = -126; significand < 0x800000; --exponent)
      significand <<= 1;
  } else {
    significand |= 0x800000;
  }

  // In the binade 2^at the format has steps of 2^(at - mantissaBits); below its
  // smallest normal value steps stay as they are. Counted in steps, code 1 of
  // the binade follows the last code of the one below, so a carry out of the
  // mantissa needs no care.
  int minExponent = 1 - format.bias;
  int at = exponent > minExponent ? exponent : minExponent;
  uint32_t steps = shiftRightToEven(significand, 23 - int(format.mantissaBits) +
                                                     (at - exponent));
  uint64_t code = (uint64_t(at - minExponent) << format.mantissaBits) + steps;
  return sign | (code > format.maxCode ? overflow : uint32_t(code));
}

} // namespace

uint32_t encode(const ElementFormat &format, float x) {
  uint32_t code = encodeMagnitude(format, x), sign = format.signBit();
  if (!format.twosComplement || !(code & sign))
    return code;
  return -(code ^ sign) & (2 * sign - 1);
}

float decode(const ElementFormat &format, uint32_t code) {
  if (!format.hasSign) {
    if (code == 0xFF)
      return floatOf(kNaN);
    return code ? floatOf(code << 23) : 0x1p-127f;
  }
  if (format.twosComplement)
    return std::ldexp(float(code) - float(code & format.signBit()) * 2,
                      1 - format.bias - int(format.mantissaBits));
  uint32_t magnitude = code & (format.signBit() - 1);
  uint32_t sign = (code & format.signBit()) << (32 - format.bits);
  if (magnitude > format.maxCode)
    return floatOf(
        sign |
        (format.hasInf && magnitude == format.maxCode + 1 ? kInf : 0x7FC00000));
  uint32_t field = magnitude >> format.mantissaBits;
  uint32_t mantissa = magnitude & ((1u << format.mantissaBits) - 1);
  if (field)
    mantissa |= 1u << format.mantissaBits;
  else
    field = 1;
  float value = std::ldexp(float(mantissa),
                           int(field) - format.bias - int(format.mantissaBits));
  return floatOf(sign | bitsOf(value));
}

uint32_t encodeE8M0Ceil(float x) {
  uint32_t magnitude = bitsOf(x) & 0x7FFFFFFF;
  if (magnitude > kInf)
    return 0xFF;
  uint32_t field = magnitude >> 23, mantissa = magnitude & 0x7FFFFF;
  if (field >= 0xFE)
    return 0xFE;
  // A subnormal's mantissa counts units of 2^-149: 2^-127 is 2^22 of them.
  if (field == 0)
    return mantissa > 0x400000;
  return field + (mantissa != 0);
}

uint32_t encodeE8M0Floor(float x) { return (bitsOf(x) >> 23) & 0xFF; }

float e8m0Inverse(uint32_t code) {
  if (code == 255)
    return floatOf(kNaN);
  return code == 254 ? 0x1p-127f : floatOf((254 - code) << 23);
}

} // namespace dither::numerics
