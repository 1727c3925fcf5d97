#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

/// A type of twice the width, of the same sign.
template <class T> struct WideOf;
// clang-format off
template <> struct WideOf<uint16_t> { using type = uint32_t; };
template <> struct WideOf<int16_t> { using type = int32_t; };
template <> struct WideOf<uint32_t> { using type = uint64_t; };
template <> struct WideOf<int32_t> { using type = int64_t; };
__extension__ template <> struct WideOf<uint64_t> { using type = unsigned __int128; };
__extension__ template <> struct WideOf<int64_t> { using type = __int128; };
// clang-format on
template <class T> using Wide = typename WideOf<T>::type;

template <class T> struct Lo {
  static T f(T a, T b) { return T(Arithmetic<T>(a) * Arithmetic<T>(b)); }
};
template <class T> struct Hi {
  static T f(T a, T b) { return T((Wide<T>(a) * b) >> kBits<T>); }
};
template <class T> struct WideProduct {
  static Wide<T> f(T a, T b) { return Wide<T>(a) * b; }
};
template <class T> struct MadLo {
  static T f(T a, T b, T c) {
    return T(Arithmetic<T>(a) * Arithmetic<T>(b) + Arithmetic<T>(c));
  }
};
template <class T> struct MadHi {
  static T f(T a, T b, T c) {
    return T(Arithmetic<T>(Hi<T>::f(a, b)) + Arithmetic<T>(c));
  }
};
template <class T> struct MadWide {
  static Wide<T> f(T a, T b, Wide<T> c) {
    using U = Unsigned<Wide<T>>;
    return Wide<T>(U(Wide<T>(a) * b) + U(c));
  }
};

template <class T> T low24(T a) { return T(Unsigned<T>(a) << 8) >> 8; }
template <class T> struct Lo24 {
  static T f(T a, T b) { return T(int64_t(low24(a)) * int64_t(low24(b))); }
};
template <class T> struct Hi24 {
  static T f(T a, T b) {
    return T((int64_t(low24(a)) * int64_t(low24(b))) >> 16);
  }
};
template <class T> struct Mad24Lo {
  static T f(T a, T b, T c) {
    return T(Unsigned<T>(Lo24<T>::f(a, b)) + Unsigned<T>(c));
  }
};
template <class T> struct Mad24Hi {
  static T f(T a, T b, T c) {
    return T(Unsigned<T>(Hi24<T>::f(a, b)) + Unsigned<T>(c));
  }
};

template <class T> struct MakeLo {
  static LaneFn fn() { return map2<T, T, T, Lo<T>>; }
};
template <class T> struct MakeHi {
  static LaneFn fn() { return map2<T, T, T, Hi<T>>; }
};
template <class T> struct MakeMadLo {
  static LaneFn fn() { return map3<T, T, T, T, MadLo<T>>; }
};
template <class T> struct MakeMadHi {
  static LaneFn fn() { return map3<T, T, T, T, MadHi<T>>; }
};

template <class T> LaneFn wide(Op op) {
  if (op == Op::MulWide)
    return map2<Wide<T>, T, T, WideProduct<T>>;
  return map3<Wide<T>, T, T, Wide<T>, MadWide<T>>;
}

template <class T> LaneFn narrow24(Op op) {
  switch (op) {
  case Op::Mul24Lo:
    return map2<T, T, T, Lo24<T>>;
  case Op::Mul24Hi:
    return map2<T, T, T, Hi24<T>>;
  case Op::Mad24Lo:
    return map3<T, T, T, T, Mad24Lo<T>>;
  default:
    return map3<T, T, T, T, Mad24Hi<T>>;
  }
}

} // namespace

LaneFn selectMultiply(const LaneKey &key) {
  switch (key.op) {
  case Op::MulLo:
    return forIntegers<MakeLo>(key.type);
  case Op::MulHi:
    return forIntegers<MakeHi>(key.type);
  case Op::MadLo:
    return forIntegers<MakeMadLo>(key.type);
  case Op::MadHi:
    return forIntegers<MakeMadHi>(key.type);
  case Op::Mul24Lo:
  case Op::Mul24Hi:
  case Op::Mad24Lo:
  case Op::Mad24Hi:
    if (key.type == Type::U32)
      return narrow24<uint32_t>(key.op);
    return key.type == Type::S32 ? narrow24<int32_t>(key.op) : nullptr;
  case Op::MulWide:
  case Op::MadWide:
    switch (key.type) {
    case Type::U16:
      return wide<uint16_t>(key.op);
    case Type::S16:
      return wide<int16_t>(key.op);
    case Type::U32:
      return wide<uint32_t>(key.op);
    case Type::S32:
      return wide<int32_t>(key.op);
    default:
      return nullptr;
    }
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
