#include "FloatBits.h"
#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// binary32 and binary64 (ISA, 9.7.3). The rounding mode is the CPU's, which the
// caller sets.
//===----------------------------------------------------------------------===//

template <class T> using BitsOf = decltype(bitsOf(T()));
inline float ofBits(uint32_t bits) { return floatOf(bits); }
inline double ofBits(uint64_t bits) { return doubleOf(bits); }
template <class T>
constexpr BitsOf<T> kSign = BitsOf<T>(1) << (8 * sizeof(T) - 1);
inline float fusedMultiplyAdd(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline double fusedMultiplyAdd(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
inline float squareRoot(float a) { return __builtin_sqrtf(a); }
inline double squareRoot(double a) { return __builtin_sqrt(a); }

template <class T> struct Add {
  static T f(T a, T b) { return canonical(a + b, a, b); }
};
template <class T> struct Sub {
  static T f(T a, T b) { return canonical(a - b, a, b); }
};
template <class T> struct Mul {
  static T f(T a, T b) { return canonical(a * b, a, b); }
};
template <class T> struct Fma {
  static T f(T a, T b, T c) {
    return canonical(fusedMultiplyAdd(a, b, c), a, b, c);
  }
};
template <class T> struct Div {
  static T f(T a, T b) { return canonical(a / b, a, b); }
};
template <class T> struct Rcp {
  static T f(T a) { return canonical(T(1) / a, a); }
};
template <class T> struct Sqrt {
  static T f(T a) { return canonical(squareRoot(a), a); }
};
/// The smaller; a number rather than a NaN; -0 is less than +0.
template <class T> struct Min {
  static T f(T a, T b) {
    // Equal values differ in the sign of zero at most.
    T same = ofBits(bitsOf(a) | bitsOf(b));
    T r = a < b ? a : b;
    r = a == b ? same : r;
    r = a != a ? b : r;
    r = b != b ? a : r;
    return canonical(r, a, b);
  }
};
template <class T> struct Max {
  static T f(T a, T b) {
    T same = ofBits(bitsOf(a) & bitsOf(b));
    T r = a > b ? a : b;
    r = a == b ? same : r;
    r = a != a ? b : r;
    r = b != b ? a : r;
    return canonical(r, a, b);
  }
};
template <class T> struct MinNan {
  static T f(T a, T b) {
    T r = Min<T>::f(a, b);
    return canonical(a != a ? a : b != b ? b : r, a, b);
  }
};
template <class T> struct MaxNan {
  static T f(T a, T b) {
    T r = Max<T>::f(a, b);
    return canonical(a != a ? a : b != b ? b : r, a, b);
  }
};
template <class B> constexpr B kSignBit = B(1) << (8 * sizeof(B) - 1);
template <class B> struct Abs {
  static B f(B a) { return a & B(~kSignBit<B>); }
};
template <class B> struct Neg {
  static B f(B a) { return a ^ kSignBit<B>; }
};
/// The sign of a on b.
template <class B> struct Copysign {
  static B f(B a, B b) { return B((a & kSignBit<B>) | (b & B(~kSignBit<B>))); }
};
struct Xorsign {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t m) {
    uint32_t sign = (a ^ b) & 0x80000000;
    return (m & 0x7FFFFFFF) > 0x7F800000 ? m : sign | (m & 0x7FFFFFFF);
  }
};
/// To [0, 1]; a NaN gives +0.
template <class T> struct Saturate {
  static T f(T a) {
    T r = a > T(0) ? a : T(0);
    return r < T(1) ? r : T(1);
  }
};
template <class T> struct Relu {
  static T f(T a) { return canonical(a <= T(0) ? T(0) : a, a); }
};
struct Flush {
  static uint32_t f(uint32_t a) { return a & 0x7F800000 ? a : a & 0x80000000; }
};
/// To an integer in the same format, by the CPU's rounding (Nearest) or a fixed
/// one; the sign of a zero is kept.
template <class T> struct RoundIntegral;
template <> struct RoundIntegral<float> {
  static float f(float a, uint32_t mode) {
    switch (Integral(mode)) {
    case Integral::Zero:
      return canonical(__builtin_truncf(a), a);
    case Integral::Down:
      return canonical(__builtin_floorf(a), a);
    case Integral::Up:
      return canonical(__builtin_ceilf(a), a);
    default:
      return canonical(__builtin_rintf(a), a);
    }
  }
};
template <> struct RoundIntegral<double> {
  static double f(double a, uint32_t mode) {
    switch (Integral(mode)) {
    case Integral::Zero:
      return canonical(__builtin_trunc(a), a);
    case Integral::Down:
      return canonical(__builtin_floor(a), a);
    case Integral::Up:
      return canonical(__builtin_ceil(a), a);
    default:
      return canonical(__builtin_rint(a), a);
    }
  }
};

template <class T, int N> LaneFn arithmetic(Op op) {
  using B = BitsOf<T>;
  switch (op) {
  case Op::FAdd:
    return map2<T, T, T, Add<T>, N>;
  case Op::FSub:
    return map2<T, T, T, Sub<T>, N>;
  case Op::FMul:
    return map2<T, T, T, Mul<T>, N>;
  case Op::FFma:
    return map3<T, T, T, T, Fma<T>, N>;
  case Op::FMin:
    return map2<T, T, T, Min<T>, N>;
  case Op::FMax:
    return map2<T, T, T, Max<T>, N>;
  case Op::FMinNan:
    return map2<T, T, T, MinNan<T>, N>;
  case Op::FMaxNan:
    return map2<T, T, T, MaxNan<T>, N>;
  case Op::FDiv:
    return map2<T, T, T, Div<T>, N>;
  case Op::FRcp:
    return map1<T, T, Rcp<T>, N>;
  case Op::FSqrt:
    return map1<T, T, Sqrt<T>, N>;
  case Op::FAbs:
    return map1<B, B, Abs<B>, N>;
  case Op::FNeg:
    return map1<B, B, Neg<B>, N>;
  case Op::FCopysign:
    return map2<B, B, B, Copysign<B>, N>;
  case Op::FSaturate:
    return map1<T, T, Saturate<T>, N>;
  case Op::FRelu:
    return map1<T, T, Relu<T>, N>;
  case Op::RoundIntegral:
    return map1Imm<T, T, RoundIntegral<T>>;
  default:
    return nullptr;
  }
}

} // namespace

LaneFn selectFloat(const LaneKey &key) {
  using U = uint32_t;
  switch (key.type) {
  case Type::F32:
    if (key.op == Op::FFlush)
      return map1<U, U, Flush>;
    if (key.op == Op::FXorsign)
      return map3<U, U, U, U, Xorsign>;
    return arithmetic<float, kLanes>(key.op);
  case Type::F32x2:
    if (key.op == Op::FFlush)
      return map1<U, U, Flush, 2 * kLanes>;
    return arithmetic<float, 2 * kLanes>(key.op);
  case Type::F64:
    return arithmetic<double, kLanes>(key.op);
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
