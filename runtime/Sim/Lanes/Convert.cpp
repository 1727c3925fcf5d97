#include "FloatBits.h"
#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// Integers to integers (ISA, cvt)
//===----------------------------------------------------------------------===//

template <class T> constexpr T kMost = T(Unsigned<T>(-1) >> kIsSigned<T>);
template <class T> constexpr T kLeast = T(~kMost<T>);

template <class D, class S> struct Wrap {
  static D f(S a) { return D(a); }
};
template <class D, class S> struct Clamp {
  static D f(S a) {
    if (kIsSigned<S> && a < S(0)) {
      if (!kIsSigned<D>)
        return 0;
      return int64_t(a) < int64_t(kLeast<D>) ? kLeast<D> : D(a);
    }
    return uint64_t(a) > uint64_t(kMost<D>) ? kMost<D> : D(a);
  }
};

//===----------------------------------------------------------------------===//
// Integers and floats
//===----------------------------------------------------------------------===//

template <class F, class S> struct ToFloat {
  static F f(S a) { return F(a); }
};

inline float roundIntegral(float a, uint32_t mode) {
  switch (Integral(mode)) {
  case Integral::Zero:
    return __builtin_truncf(a);
  case Integral::Down:
    return __builtin_floorf(a);
  case Integral::Up:
    return __builtin_ceilf(a);
  default:
    return __builtin_rintf(a);
  }
}
inline double roundIntegral(double a, uint32_t mode) {
  switch (Integral(mode)) {
  case Integral::Zero:
    return __builtin_trunc(a);
  case Integral::Down:
    return __builtin_floor(a);
  case Integral::Up:
    return __builtin_ceil(a);
  default:
    return __builtin_rint(a);
  }
}

/// Out of range is clamped. A NaN gives zero, but the integer with the highest
/// bit alone where either side has 64 bits.
template <class D, class F> struct ToInteger {
  static D f(F a, uint32_t mode) {
    constexpr bool wide = sizeof(F) == 8 || sizeof(D) == 8;
    constexpr D nan = wide ? D(Unsigned<D>(1) << (kBits<D> - 1)) : D(0);
    F r = roundIntegral(a, mode);
    // 2^digits, the first value that does not fit.
    constexpr F end = F(uint64_t(1) << (kBits<D> - 1)) * (kIsSigned<D> ? 1 : 2);
    constexpr F begin = F(kLeast<D>);
    bool inside = r >= begin && r < end;
    D value = D(inside ? r : F(0));
    value = r < begin ? kLeast<D> : value;
    value = r >= end ? kMost<D> : value;
    return a != a ? nan : value;
  }
};

//===----------------------------------------------------------------------===//
// Floats and floats
//===----------------------------------------------------------------------===//

struct F16ToF32 {
  static float f(uint16_t a) { return canonical(widen<F16Format>(a)); }
};
struct BF16ToF32 {
  static float f(uint16_t a) { return canonical(widen<BF16Format>(a)); }
};
struct F32ToF64 {
  static double f(float a) { return double(a); }
};
/// By the CPU's rounding.
struct F64ToF32 {
  static float f(double a) { return canonical(float(a)); }
};
template <class F> struct F32ToHalf {
  static uint16_t f(float a) { return narrow<F>(a); }
};

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Make<T>::fn of the C++ type of any integer type.
template <class D, template <class, class> class F> LaneFn fromInteger(Type s) {
  switch (s) {
  case Type::U8:
    return map1<D, uint8_t, F<D, uint8_t>>;
  case Type::S8:
    return map1<D, int8_t, F<D, int8_t>>;
  case Type::U16:
    return map1<D, uint16_t, F<D, uint16_t>>;
  case Type::S16:
    return map1<D, int16_t, F<D, int16_t>>;
  case Type::U32:
    return map1<D, uint32_t, F<D, uint32_t>>;
  case Type::S32:
    return map1<D, int32_t, F<D, int32_t>>;
  case Type::U64:
    return map1<D, uint64_t, F<D, uint64_t>>;
  case Type::S64:
    return map1<D, int64_t, F<D, int64_t>>;
  default:
    return nullptr;
  }
}

template <template <class, class> class F>
LaneFn integerToInteger(Type d, Type s) {
  switch (d) {
  case Type::U8:
    return fromInteger<uint8_t, F>(s);
  case Type::S8:
    return fromInteger<int8_t, F>(s);
  case Type::U16:
    return fromInteger<uint16_t, F>(s);
  case Type::S16:
    return fromInteger<int16_t, F>(s);
  case Type::U32:
    return fromInteger<uint32_t, F>(s);
  case Type::S32:
    return fromInteger<int32_t, F>(s);
  case Type::U64:
    return fromInteger<uint64_t, F>(s);
  case Type::S64:
    return fromInteger<int64_t, F>(s);
  default:
    return nullptr;
  }
}

template <class F> LaneFn floatToInteger(Type d) {
  switch (d) {
  case Type::U8:
    return map1Imm<uint8_t, F, ToInteger<uint8_t, F>>;
  case Type::S8:
    return map1Imm<int8_t, F, ToInteger<int8_t, F>>;
  case Type::U16:
    return map1Imm<uint16_t, F, ToInteger<uint16_t, F>>;
  case Type::S16:
    return map1Imm<int16_t, F, ToInteger<int16_t, F>>;
  case Type::U32:
    return map1Imm<uint32_t, F, ToInteger<uint32_t, F>>;
  case Type::S32:
    return map1Imm<int32_t, F, ToInteger<int32_t, F>>;
  case Type::U64:
    return map1Imm<uint64_t, F, ToInteger<uint64_t, F>>;
  case Type::S64:
    return map1Imm<int64_t, F, ToInteger<int64_t, F>>;
  default:
    return nullptr;
  }
}

} // namespace

LaneFn selectConvert(const LaneKey &key) {
  Type d = key.type, s = key.second;
  switch (key.op) {
  case Op::Convert:
    return integerToInteger<Wrap>(d, s);
  case Op::ConvertSat:
    return integerToInteger<Clamp>(d, s);
  case Op::IntToFloat:
    if (d == Type::F64)
      return fromInteger<double, ToFloat>(s);
    return d == Type::F32 ? fromInteger<float, ToFloat>(s) : nullptr;
  case Op::FloatToInt:
    if (s == Type::F64)
      return floatToInteger<double>(d);
    return s == Type::F32 ? floatToInteger<float>(d) : nullptr;
  case Op::Widen:
    if (s == Type::F16 && d == Type::F32)
      return map1<float, uint16_t, F16ToF32>;
    if (s == Type::BF16 && d == Type::F32)
      return map1<float, uint16_t, BF16ToF32>;
    if (s == Type::F32 && d == Type::F64)
      return map1<double, float, F32ToF64>;
    return nullptr;
  case Op::Narrow:
    if (s == Type::F32 && d == Type::F16)
      return map1<uint16_t, float, F32ToHalf<F16Format>>;
    if (s == Type::F32 && d == Type::BF16)
      return map1<uint16_t, float, F32ToHalf<BF16Format>>;
    if (s == Type::F64 && d == Type::F32)
      return map1<float, double, F64ToF32>;
    return nullptr;
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
