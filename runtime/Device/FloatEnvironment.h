//===- FloatEnvironment.h - The arithmetic kernels are defined in *- C++
//-*-===//

#ifndef DITHER_RUNTIME_DEVICE_FLOATENVIRONMENT_H
#define DITHER_RUNTIME_DEVICE_FLOATENVIRONMENT_H

#if defined(__SSE2__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace dither::runtime {

/// While it lives, this thread rounds to nearest even, keeps subnormals and
/// traps nothing, whatever the program has set (torch.set_flush_denormal, a
/// library built with -ffast-math); threads inherit such settings from their
/// makers.
class FloatEnvironment {
#if defined(__SSE2__)
public:
  FloatEnvironment() : before(_mm_getcsr()) {
    if (before != standard)
      _mm_setcsr(standard);
  }
  /// Drops the exception flags that the kernel has raised, too.
  ~FloatEnvironment() { _mm_setcsr(before); }

private:
  /// All exceptions masked, none raised, round to nearest even, no FTZ or DAZ.
  static constexpr unsigned standard = 0x1f80;
  unsigned before;
#else
public:
  FloatEnvironment() {
    std::fegetenv(&before);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&before); }

private:
  std::fenv_t before;
#endif
};

} // namespace dither::runtime

#endif // DITHER_RUNTIME_DEVICE_FLOATENVIRONMENT_H
