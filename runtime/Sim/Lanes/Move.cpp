#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

template <class T> struct Same {
  static T f(T a) { return a; }
};
template <class T> struct MakeMov {
  static LaneFn fn() { return map1<T, T, Same<T>>; }
};

template <class T>
void select(const char *frame, const Step &step, char *destination) {
  const T *a = source<T>(frame, step, 0), *b = source<T>(frame, step, 1);
  uint32_t which = *source<uint32_t>(frame, step, 2);
  T *d = reinterpret_cast<T *>(destination);
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    d[i] = which >> i & 1 ? a[i] : b[i];
}
template <class T> struct MakeSelect {
  static LaneFn fn() { return select<T>; }
};

/// c is not negative (a NaN is; -0 is not).
template <class T, class C> struct Slct {
  static T f(T a, T b, C c) { return c >= C(0) ? a : b; }
};
template <class T> struct MakeSlctInt {
  static LaneFn fn() { return map3<T, T, T, int32_t, Slct<T, int32_t>>; }
};
template <class T> struct MakeSlctFloat {
  static LaneFn fn() { return map3<T, T, T, float, Slct<T, float>>; }
};

/// The predicate src[0] as `one` or zero.
template <class T>
void spread(const char *frame, const Step &step, char *destination, T one) {
  uint32_t bits = *source<uint32_t>(frame, step, 0);
  T *d = reinterpret_cast<T *>(destination);
  for (int i = 0; i < kLanes; ++i)
    d[i] = bits >> i & 1 ? one : T(0);
}
template <class T>
void setMask(const char *frame, const Step &step, char *destination) {
  spread<T>(frame, step, destination, T(-1));
}
template <class T> struct MakeSetMask {
  static LaneFn fn() { return setMask<T>; }
};
template <class T, T ONE>
void setOne(const char *frame, const Step &step, char *destination) {
  spread<T>(frame, step, destination, ONE);
}

/// d = {a, b}, a in the low half.
template <class D, class S>
void pack2(const char *frame, const Step &step, char *destination) {
  const S *a = source<S>(frame, step, 0), *b = source<S>(frame, step, 1);
  D *d = reinterpret_cast<D *>(destination);
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    d[i] = D(a[i] | D(b[i]) << kBits<S>);
}
template <class D, class S>
void pack4(const char *frame, const Step &step, char *destination) {
  const S *a = source<S>(frame, step, 0), *b = source<S>(frame, step, 1);
  const S *c = source<S>(frame, step, 2), *e = source<S>(frame, step, 3);
  D *d = reinterpret_cast<D *>(destination);
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    d[i] = D(a[i] | D(b[i]) << kBits<S> | D(c[i]) << 2 * kBits<S> |
             D(e[i]) << 3 * kBits<S>);
}
/// Element imm of a.
template <class D, class S>
void unpack(const char *frame, const Step &step, char *destination) {
  const S *a = source<S>(frame, step, 0);
  D *d = reinterpret_cast<D *>(destination);
  uint32_t shift = step.imm * kBits<D>;
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    d[i] = D(a[i] >> shift);
}

} // namespace

LaneFn selectMove(const LaneKey &key) {
  switch (key.op) {
  case Op::Mov:
    return forSizes<MakeMov>(key.type);
  case Op::Select:
    return forSizes<MakeSelect>(key.type);
  case Op::Slct:
    return key.second == Type::F32 ? forSizes<MakeSlctFloat>(key.type)
                                   : forSizes<MakeSlctInt>(key.type);
  case Op::SetMask:
    return forSizes<MakeSetMask>(key.type);
  case Op::SetFloat:
    switch (key.type) {
    case Type::F32:
      return setOne<uint32_t, 0x3F800000>;
    case Type::F16:
      return setOne<uint16_t, 0x3C00>;
    case Type::BF16:
      return setOne<uint16_t, 0x3F80>;
    default:
      return nullptr;
    }
  case Op::Pack2:
    switch (key.type) {
    case Type::B16:
      return pack2<uint16_t, uint8_t>;
    case Type::B32:
      return pack2<uint32_t, uint16_t>;
    case Type::B64:
      return pack2<uint64_t, uint32_t>;
    default:
      return nullptr;
    }
  case Op::Pack4:
    switch (key.type) {
    case Type::B32:
      return pack4<uint32_t, uint8_t>;
    case Type::B64:
      return pack4<uint64_t, uint16_t>;
    default:
      return nullptr;
    }
  case Op::Unpack2:
    switch (key.type) {
    case Type::B16:
      return unpack<uint8_t, uint16_t>;
    case Type::B32:
      return unpack<uint16_t, uint32_t>;
    case Type::B64:
      return unpack<uint32_t, uint64_t>;
    default:
      return nullptr;
    }
  case Op::Unpack4:
    switch (key.type) {
    case Type::B32:
      return unpack<uint8_t, uint32_t>;
    case Type::B64:
      return unpack<uint16_t, uint64_t>;
    default:
      return nullptr;
    }
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
