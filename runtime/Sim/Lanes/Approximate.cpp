#include "FloatBits.h"
#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// What the hardware approximates (ISA, 9.7.3 and 9.7.4) is computed to nearest
// here, which every documented bound allows: the results may differ from the
// hardware's in the last bits.
//===----------------------------------------------------------------------===//

struct Ex2 {
  static float f(float a) { return canonical(float(__builtin_exp2(a))); }
};
struct Lg2 {
  static float f(float a) { return canonical(float(__builtin_log2(a))); }
};
struct Sin {
  static float f(float a) { return canonical(float(__builtin_sin(a))); }
};
struct Cos {
  static float f(float a) { return canonical(float(__builtin_cos(a))); }
};
struct Tanh {
  static float f(float a) { return canonical(float(__builtin_tanh(a))); }
};
struct Rsqrt {
  static float f(float a) {
    return canonical(float(1.0 / __builtin_sqrt(double(a))));
  }
};
struct RsqrtDouble {
  static double f(double a) { return canonical(1.0 / __builtin_sqrt(a), a); }
};

/// Of a half, through binary32.
template <class Format, class F> struct OfHalf {
  static uint16_t f(uint16_t a) {
    return narrow<Format>(F::f(widen<Format>(a)));
  }
};

template <class F> LaneFn forFloats(Type type) {
  using H = uint16_t;
  switch (type) {
  case Type::F32:
    return map1<float, float, F>;
  case Type::F16:
    return map1<H, H, OfHalf<F16Format, F>>;
  case Type::F16x2:
    return map1<H, H, OfHalf<F16Format, F>, 2 * kLanes>;
  case Type::BF16:
    return map1<H, H, OfHalf<BF16Format, F>>;
  case Type::BF16x2:
    return map1<H, H, OfHalf<BF16Format, F>, 2 * kLanes>;
  default:
    return nullptr;
  }
}

} // namespace

LaneFn selectApproximate(const LaneKey &key) {
  switch (key.op) {
  case Op::Ex2:
    return forFloats<Ex2>(key.type);
  case Op::Lg2:
    return forFloats<Lg2>(key.type);
  case Op::Sin:
    return forFloats<Sin>(key.type);
  case Op::Cos:
    return forFloats<Cos>(key.type);
  case Op::Tanh:
    return forFloats<Tanh>(key.type);
  case Op::Rsqrt:
    if (key.type == Type::F64)
      return map1<double, double, RsqrtDouble>;
    return forFloats<Rsqrt>(key.type);
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
