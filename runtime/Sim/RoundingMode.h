//===- RoundingMode.h - The CPU's rounding, for a while ---------*- C++ -*-===//

#ifndef DITHER_RUNTIME_SIM_ROUNDINGMODE_H
#define DITHER_RUNTIME_SIM_ROUNDINGMODE_H

#include "Program.h"

#include <cfenv>

namespace dither::runtime::sim {

/// While it lives, this thread rounds as said. What is computed must be in a
/// function that the compiler cannot see into.
class RoundingMode {
public:
  explicit RoundingMode(Rounding rounding) {
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                    FE_UPWARD};
    std::fesetround(modes[unsigned(rounding)]);
  }
  ~RoundingMode() { std::fesetround(FE_TONEAREST); }
  RoundingMode(const RoundingMode &) = delete;
  RoundingMode &operator=(const RoundingMode &) = delete;
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_ROUNDINGMODE_H
