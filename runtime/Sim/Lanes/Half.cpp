#include "FloatBits.h"
#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// f16 and bf16 (ISA, 9.7.4). Sums and products are exact enough in binary32 for
// a second rounding not to matter (24 >= 2 * 11 + 2); fma goes through
// binary64, rounded to odd.
//===----------------------------------------------------------------------===//

template <class F> struct Add {
  static uint16_t f(uint16_t a, uint16_t b) {
    return narrow<F>(widen<F>(a) + widen<F>(b));
  }
};
template <class F> struct Sub {
  static uint16_t f(uint16_t a, uint16_t b) {
    return narrow<F>(widen<F>(a) - widen<F>(b));
  }
};
/// The product of two bf16 may be a subnormal of binary32, where its bits do
/// not fit: binary64 holds it.
template <class F> struct Mul {
  static uint16_t f(uint16_t a, uint16_t b) {
    double product = double(widen<F>(a)) * double(widen<F>(b));
    return narrow<F>(toOddFloat(product));
  }
};
template <class F> struct Fma {
  static uint16_t f(uint16_t a, uint16_t b, uint16_t c) {
    double product = double(widen<F>(a)) * double(widen<F>(b)); // exact
    double addend = double(widen<F>(c));
    double sum = product + addend;
    // Knuth's TwoSum.
    double part = sum - product;
    double error = (product - (sum - part)) + (addend - part);
    return narrow<F>(toOddFloat(toOdd(sum, error)));
  }
};

inline float smaller(float a, float b) {
  float same = floatOf(bitsOf(a) | bitsOf(b));
  return a != a ? b : b != b ? a : a == b ? same : a < b ? a : b;
}
inline float larger(float a, float b) {
  float same = floatOf(bitsOf(a) & bitsOf(b));
  return a != a ? b : b != b ? a : a == b ? same : a > b ? a : b;
}
template <class F> struct Min {
  static uint16_t f(uint16_t a, uint16_t b) {
    return narrow<F>(smaller(widen<F>(a), widen<F>(b)));
  }
};
template <class F> struct Max {
  static uint16_t f(uint16_t a, uint16_t b) {
    return narrow<F>(larger(widen<F>(a), widen<F>(b)));
  }
};
template <class F> inline bool isNan(uint16_t a) {
  return (a & 0x7FFF) > (((1 << F::kExponent) - 1) << F::kMantissa);
}
template <class F> struct MinNan {
  static uint16_t f(uint16_t a, uint16_t b) {
    uint16_t r = Min<F>::f(a, b);
    return isNan<F>(a) || isNan<F>(b) ? 0x7FFF : r;
  }
};
template <class F> struct MaxNan {
  static uint16_t f(uint16_t a, uint16_t b) {
    uint16_t r = Max<F>::f(a, b);
    return isNan<F>(a) || isNan<F>(b) ? 0x7FFF : r;
  }
};
struct Abs {
  static uint16_t f(uint16_t a) { return a & 0x7FFF; }
};
struct Neg {
  static uint16_t f(uint16_t a) { return a ^ 0x8000; }
};
struct Copysign {
  static uint16_t f(uint16_t a, uint16_t b) {
    return uint16_t((a & 0x8000) | (b & 0x7FFF));
  }
};
template <class F> struct Saturate {
  static uint16_t f(uint16_t a) {
    float x = widen<F>(a);
    x = x > 0.0f ? x : 0.0f;
    return narrow<F>(x < 1.0f ? x : 1.0f);
  }
};
template <class F> struct Relu {
  static uint16_t f(uint16_t a) {
    uint16_t r = a & 0x8000 ? 0 : a;
    return isNan<F>(a) ? 0x7FFF : r;
  }
};
template <class F> struct Flush {
  static uint16_t f(uint16_t a) {
    constexpr int infinity = ((1 << F::kExponent) - 1) << F::kMantissa;
    return a & infinity ? a : a & 0x8000;
  }
};

/// The sign of a times that of b, on the magnitude of m.
template <class F> struct Xorsign {
  static uint16_t f(uint16_t a, uint16_t b, uint16_t m) {
    uint16_t signedValue = uint16_t(((a ^ b) & 0x8000) | (m & 0x7FFF));
    return isNan<F>(m) ? m : signedValue;
  }
};

template <class F, int N> LaneFn arithmetic(Op op) {
  using H = uint16_t;
  switch (op) {
  case Op::FAdd:
    return map2<H, H, H, Add<F>, N>;
  case Op::FSub:
    return map2<H, H, H, Sub<F>, N>;
  case Op::FMul:
    return map2<H, H, H, Mul<F>, N>;
  case Op::FFma:
    return map3<H, H, H, H, Fma<F>, N>;
  case Op::FMin:
    return map2<H, H, H, Min<F>, N>;
  case Op::FMax:
    return map2<H, H, H, Max<F>, N>;
  case Op::FMinNan:
    return map2<H, H, H, MinNan<F>, N>;
  case Op::FMaxNan:
    return map2<H, H, H, MaxNan<F>, N>;
  case Op::FAbs:
    return map1<H, H, Abs, N>;
  case Op::FNeg:
    return map1<H, H, Neg, N>;
  case Op::FCopysign:
    return map2<H, H, H, Copysign, N>;
  case Op::FXorsign:
    return map3<H, H, H, H, Xorsign<F>, N>;
  case Op::FSaturate:
    return map1<H, H, Saturate<F>, N>;
  case Op::FRelu:
    return map1<H, H, Relu<F>, N>;
  case Op::FFlush:
    return map1<H, H, Flush<F>, N>;
  default:
    return nullptr;
  }
}

} // namespace

LaneFn selectHalf(const LaneKey &key) {
  switch (key.type) {
  case Type::F16:
    return arithmetic<F16Format, kLanes>(key.op);
  case Type::F16x2:
    return arithmetic<F16Format, 2 * kLanes>(key.op);
  case Type::BF16:
    return arithmetic<BF16Format, kLanes>(key.op);
  case Type::BF16x2:
    return arithmetic<BF16Format, 2 * kLanes>(key.op);
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
