//===- Rounding.h - Exact values to a format, by search ---------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_SIM_ROUNDING_H
#define DITHER_TEST_UNIT_SIM_ROUNDING_H

#include "dither/Numerics/Convert.h"

#include <cmath>

namespace dither::test {

/// Of 113 bits: holds sums and products of halves exactly, if their exponents
/// are not too far apart.
__extension__ typedef __float128 Exact;

enum class Direction { Nearest, Zero, Down, Up };

/// The code of x, not NaN, found among the values of the format. Past the
/// largest value: the infinity where the format has one and the direction says
/// so.
inline uint32_t roundTo(const numerics::ElementFormat &format, Exact x,
                        Direction direction = Direction::Nearest,
                        bool saturate = false) {
  bool negative = x < 0;
  Exact a = negative ? -x : x;
  uint32_t sign = negative ? format.signBit() : 0;
  auto value = [&](uint32_t code) {
    return Exact(numerics::decode(format, code));
  };
  bool away = (direction == Direction::Up && !negative) ||
              (direction == Direction::Down && negative);
  if (a > value(format.maxCode)) {
    // Half a spacing above the largest value is where the infinity begins.
    Exact last = value(format.maxCode), step = last - value(format.maxCode - 1);
    bool over =
        away || (direction == Direction::Nearest && a >= last + step / 2);
    if (a - a != 0) // infinite
      over = true;
    return sign | (over && format.hasInf && !saturate ? format.maxCode + 1
                                                      : format.maxCode);
  }
  uint32_t below = 0, above = format.maxCode;
  while (above - below > 1) {
    uint32_t middle = (below + above) / 2;
    (value(middle) <= a ? below : above) = middle;
  }
  if (a == value(above))
    below = above;
  Exact low = value(below);
  if (a == low)
    return sign | below;
  if (direction != Direction::Nearest)
    return sign | (away ? below + 1 : below);
  Exact toLow = a - low, toHigh = value(below + 1) - a;
  bool up = toHigh < toLow || (toHigh == toLow && (below & 1));
  return sign | (up ? below + 1 : below);
}

} // namespace dither::test

#endif // DITHER_TEST_UNIT_SIM_ROUNDING_H
