//===- Staircase.h - Codes as the least of a few sums -----------*- C++ -*-===//
//
// The code of a magnitude a is a concave function of it, rounded: within each
// binade it rises by equal steps, which are twice as long in the next. So it is
// the least of straight lines, one for each binade, and as rounding to nearest
// even is monotone, the least of the rounded lines. A line rounds where it is
// added to a constant whose last bit is one code.
//
// The steps of binary floating point, too, are twice as long from a power of
// two P on. With u the smallest positive value, P the power of two below which
// the type of the sums has steps of u, and 2^m codes to a binade, the first two
// lines are one sum, a + (P - 2^(m + 1) u): the magnitude from which steps are
// longer, with code 2^(m + 1), is at P. Line k after them is
// a / 2^(k - 1) + P + (k - 2) 2^m 2u. All sums have their codes in the last
// bits and the same bits above those, so that the least sum is that of
// integers as well. The largest code is one more line. A NaN is above all
// lines, and has the largest code.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_STAIRCASE_H
#define DITHER_NUMERICS_STAIRCASE_H

#include "dither/Numerics/Formats.h"

namespace dither::numerics {

/// Binades of `f` above zero, subnormal values and the first normal ones as
/// one.
constexpr unsigned binadesOf(const ElementFormat &f) {
  return unsigned(f.maxExponent() + f.bias);
}

/// Whether a staircase takes fewer steps than to find the exponent: of a signed
/// format without NaN and infinity.
constexpr bool isStaircase(const ElementFormat &f) {
  return f.hasSign && !f.twosComplement && !f.hasNaN && !f.hasInf &&
         binadesOf(f) > 1 && binadesOf(f) <= 3;
}

/// The sums a * slope + start of a magnitude a, each rounded once to
/// `significand` bits (24: f32, 8: bf16). The bits of the least of them are
/// those of the first one's start, plus the code.
struct Staircase {
  struct Line {
    float slope, start;
  };
  const ElementFormat &f;
  unsigned significand;

  /// How many sums there are.
  unsigned size() const { return binadesOf(f) - 1; }

  Line line(unsigned i) const {
    float unit = f.minPositive(), codes = float(1u << f.mantissaBits);
    float power = float(1u << significand) * unit;
    if (i == 0)
      return {1, power - 2 * codes * unit};
    return {1 / float(1u << i), power + float(i - 1) * codes * 2 * unit};
  }
};

} // namespace dither::numerics

#endif // DITHER_NUMERICS_STAIRCASE_H
