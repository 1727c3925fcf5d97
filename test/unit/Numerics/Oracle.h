//===- Oracle.h - Nearest codes by search -----------------------*- C++ -*-===//
//
// The encoders' definition without any bit arithmetic on the input: of all
// values of a format, in double, the nearest one.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_TEST_NUMERICS_ORACLE_H
#define DITHER_TEST_NUMERICS_ORACLE_H

#include "dither/Numerics/Bits.h"
#include "dither/Numerics/Formats.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dither::numerics::test {

/// Value of a magnitude code by the definition of a float format.
inline double valueOf(const ElementFormat &f, uint32_t code) {
  int m = int(f.mantissaBits), field = int(code >> m);
  double mantissa = code - (uint32_t(field) << m);
  return field ? std::ldexp(1 + std::ldexp(mantissa, -m), field - f.bias)
               : std::ldexp(mantissa, 1 - f.bias - m);
}

/// The code of the negative of a magnitude code's value.
inline uint32_t negated(const ElementFormat &f, uint32_t code) {
  return f.twosComplement ? -code & (2 * f.signBit() - 1) : code | f.signBit();
}

class Oracle {
public:
  explicit Oracle(const ElementFormat &f) : format(f) {
    // One past the largest value is where rounding to infinity begins.
    for (uint32_t c = 0; c <= f.maxCode + 1; ++c)
      values.push_back(valueOf(f, c));
  }

  uint32_t encode(float x) const {
    if (std::isnan(x))
      return format.nanCode;
    uint32_t code = nearest(std::fabs(double(x)));
    return std::signbit(x) ? negated(format, code) : code;
  }

private:
  uint32_t nearest(double a) const {
    if (a >= values.back())
      return format.saturates ? format.maxCode : format.maxCode + 1;
    uint32_t above = uint32_t(
        std::upper_bound(values.begin(), values.end(), a) - values.begin());
    uint32_t below = above - 1;
    double toAbove = values[above] - a, toBelow = a - values[below];
    uint32_t code = toBelow < toAbove   ? below
                    : toAbove < toBelow ? above
                                        : below + (below & 1);
    return format.saturates ? std::min(code, format.maxCode) : code;
  }

public:
  /// Every value and every midpoint of neighbours as f32 bits (all are f32
  /// values; the last one may be Inf), each with `around` neighbours on both
  /// sides, of both signs.
  std::vector<uint32_t> decisionPoints(int around) const {
    std::vector<uint32_t> points;
    for (size_t c = 0; c + 1 < values.size(); ++c)
      for (double v : {values[c], (values[c] + values[c + 1]) / 2})
        for (int d = -around; d <= around; ++d) {
          int64_t bits = int64_t(bitsOf(float(v))) + d;
          if (bits < 0 || bits > 0x7F800001)
            continue;
          points.push_back(uint32_t(bits));
          points.push_back(uint32_t(bits) | 0x80000000);
        }
    return points;
  }

private:
  const ElementFormat &format;
  std::vector<double> values;
};

} // namespace dither::numerics::test

#endif // DITHER_TEST_NUMERICS_ORACLE_H
