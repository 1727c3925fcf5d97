#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// Integer arithmetic (ISA, 9.7.1). It wraps.
//===----------------------------------------------------------------------===//

template <class T> struct Add {
  static T f(T a, T b) { return T(Arithmetic<T>(a) + Arithmetic<T>(b)); }
};
template <class T> struct Sub {
  static T f(T a, T b) { return T(Arithmetic<T>(a) - Arithmetic<T>(b)); }
};
template <class T> struct Min {
  static T f(T a, T b) { return a < b ? a : b; }
};
template <class T> struct Max {
  static T f(T a, T b) { return a > b ? a : b; }
};
template <class T> struct Neg {
  static T f(T a) { return T(-Arithmetic<T>(a)); }
};
template <class T> struct Abs {
  static T f(T a) { return a < 0 ? T(-Arithmetic<T>(a)) : a; }
};
template <class T> struct Relu {
  static T f(T a) { return a < 0 ? T(0) : a; }
};
template <class T> struct Sad {
  static T f(T a, T b, T c) {
    Arithmetic<T> x = Arithmetic<T>(a), y = Arithmetic<T>(b);
    return T(Arithmetic<T>(c) + (a < b ? y - x : x - y));
  }
};
/// The quotient by zero is not specified; the hardware gives all ones, and the
/// dividend as the remainder. The most negative over -1 wraps.
template <class T> struct Div {
  static T f(T a, T b) {
    if (b == 0)
      return T(-1);
    if (kIsSigned<T> && b == T(-1))
      return T(-Arithmetic<T>(a));
    return T(a / b);
  }
};
template <class T> struct Rem {
  static T f(T a, T b) {
    if (b == 0)
      return a;
    if (kIsSigned<T> && b == T(-1))
      return 0;
    return T(a % b);
  }
};

int32_t clampTo32(int64_t x) {
  return int32_t(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}
struct AddSat {
  static int32_t f(int32_t a, int32_t b) { return clampTo32(int64_t(a) + b); }
};
struct SubSat {
  static int32_t f(int32_t a, int32_t b) { return clampTo32(int64_t(a) - b); }
};

/// Four products of bytes, added to c.
template <class A, class B, class C> struct Dp4a {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 32; i += 8)
      c += uint32_t(int32_t(A(a >> i)) * int32_t(B(b >> i)));
    return c;
  }
};

/// a + b + carry, and a - b - borrow (the carry flag is a bit for each lane).
template <class T>
void addWithCarry(const char *frame, const Step &step, char *destination) {
  const T *a = source<T>(frame, step, 0), *b = source<T>(frame, step, 1);
  uint32_t carry = *source<uint32_t>(frame, step, 2);
  T *d = reinterpret_cast<T *>(destination);
  for (int i = 0; i < kLanes; ++i)
    d[i] = T(a[i] + b[i] + (carry >> i & 1));
}
template <class T>
void subWithBorrow(const char *frame, const Step &step, char *destination) {
  const T *a = source<T>(frame, step, 0), *b = source<T>(frame, step, 1);
  uint32_t carry = *source<uint32_t>(frame, step, 2);
  T *d = reinterpret_cast<T *>(destination);
  for (int i = 0; i < kLanes; ++i)
    d[i] = T(a[i] - b[i] - (carry >> i & 1));
}

// What forIntegers makes of a functor.
#define DITHER_SIM_UNARY(NAME)                                                 \
  template <class T> struct Make##NAME {                                       \
    static LaneFn fn() { return map1<T, T, NAME<T>>; }                         \
  };
#define DITHER_SIM_BINARY(NAME)                                                \
  template <class T> struct Make##NAME {                                       \
    static LaneFn fn() { return map2<T, T, T, NAME<T>>; }                      \
  };
DITHER_SIM_UNARY(Neg)
DITHER_SIM_UNARY(Abs)
DITHER_SIM_UNARY(Relu)
DITHER_SIM_BINARY(Add)
DITHER_SIM_BINARY(Sub)
DITHER_SIM_BINARY(Min)
DITHER_SIM_BINARY(Max)
DITHER_SIM_BINARY(Div)
DITHER_SIM_BINARY(Rem)
template <class T> struct MakeSad {
  static LaneFn fn() { return map3<T, T, T, T, Sad<T>>; }
};

/// u16x2 and s16x2: 64 elements of half a lane.
template <class T> LaneFn packed(Op op) {
  switch (op) {
  case Op::Add:
    return map2<T, T, T, Add<T>, 2 * kLanes>;
  case Op::Min:
    return map2<T, T, T, Min<T>, 2 * kLanes>;
  case Op::Max:
    return map2<T, T, T, Max<T>, 2 * kLanes>;
  case Op::Relu:
    return map1<T, T, Relu<T>, 2 * kLanes>;
  default:
    return nullptr;
  }
}

template <class A> LaneFn dp4a(bool isSigned) {
  using U = uint32_t;
  return isSigned ? map3<U, U, U, U, Dp4a<A, int8_t, U>>
                  : map3<U, U, U, U, Dp4a<A, uint8_t, U>>;
}

} // namespace

LaneFn selectInteger(const LaneKey &key) {
  if (key.type == Type::U16x2)
    return packed<uint16_t>(key.op);
  if (key.type == Type::S16x2)
    return packed<int16_t>(key.op);
  bool is64 = key.type == Type::U64 || key.type == Type::S64;
  switch (key.op) {
  case Op::Add:
    return forIntegers<MakeAdd>(key.type);
  case Op::Sub:
    return forIntegers<MakeSub>(key.type);
  case Op::Min:
    return forIntegers<MakeMin>(key.type);
  case Op::Max:
    return forIntegers<MakeMax>(key.type);
  case Op::Div:
    return forIntegers<MakeDiv>(key.type);
  case Op::Rem:
    return forIntegers<MakeRem>(key.type);
  case Op::Neg:
    return forIntegers<MakeNeg>(key.type);
  case Op::Abs:
    return forIntegers<MakeAbs>(key.type);
  case Op::Relu:
    return forIntegers<MakeRelu>(key.type);
  case Op::Sad:
    return forIntegers<MakeSad>(key.type);
  case Op::AddSat:
    return map2<int32_t, int32_t, int32_t, AddSat>;
  case Op::SubSat:
    return map2<int32_t, int32_t, int32_t, SubSat>;
  case Op::Dp4a:
    return key.type == Type::S32 ? dp4a<int8_t>(key.second == Type::S32)
                                 : dp4a<uint8_t>(key.second == Type::S32);
  case Op::AddWithCarry:
    return is64 ? addWithCarry<uint64_t> : addWithCarry<uint32_t>;
  case Op::SubWithBorrow:
    return is64 ? subWithBorrow<uint64_t> : subWithBorrow<uint32_t>;
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
