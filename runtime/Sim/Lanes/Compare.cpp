#include "FloatBits.h"
#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

template <class T> struct Eq {
  static bool f(T a, T b) { return a == b; }
};
template <class T> struct Ne {
  static bool f(T a, T b) { return a != b; }
};
template <class T> struct Lt {
  static bool f(T a, T b) { return a < b; }
};
template <class T> struct Le {
  static bool f(T a, T b) { return a <= b; }
};
template <class T> struct Gt {
  static bool f(T a, T b) { return a > b; }
};
template <class T> struct Ge {
  static bool f(T a, T b) { return a >= b; }
};
// Floats: the ordered != and the unordered others.
template <class T> struct NeOrdered {
  static bool f(T a, T b) { return a < b || a > b; }
};
template <class T> struct EqUnordered {
  static bool f(T a, T b) { return !(a < b || a > b); }
};
template <class T> struct LtUnordered {
  static bool f(T a, T b) { return !(a >= b); }
};
template <class T> struct LeUnordered {
  static bool f(T a, T b) { return !(a > b); }
};
template <class T> struct GtUnordered {
  static bool f(T a, T b) { return !(a <= b); }
};
template <class T> struct GeUnordered {
  static bool f(T a, T b) { return !(a < b); }
};
template <class T> struct Num {
  static bool f(T a, T b) { return a == a && b == b; }
};
template <class T> struct Nan {
  static bool f(T a, T b) { return a != a || b != b; }
};

template <class T> MaskFn integers(Op op) {
  switch (op) {
  case Op::CmpEq:
    return mask2<T, Eq<T>>;
  case Op::CmpNe:
    return mask2<T, Ne<T>>;
  case Op::CmpLt:
    return mask2<T, Lt<T>>;
  case Op::CmpLe:
    return mask2<T, Le<T>>;
  case Op::CmpGt:
    return mask2<T, Gt<T>>;
  case Op::CmpGe:
    return mask2<T, Ge<T>>;
  default:
    return nullptr;
  }
}

/// A half as a binary32 to be compared.
template <class Format, template <class> class F> struct OfHalf {
  static bool f(uint16_t a, uint16_t b) {
    return F<float>::f(widen<Format>(a), widen<Format>(b));
  }
};
template <class Unused, template <class> class F> struct Plain : F<Unused> {};

/// S is the element in the register, Wrap<Q, F> the comparison of two of them.
template <class S, class Q, template <class, template <class> class> class Wrap>
MaskFn floats(Op op) {
  switch (op) {
  case Op::CmpEq:
    return mask2<S, Wrap<Q, Eq>>;
  case Op::CmpNe:
    return mask2<S, Wrap<Q, NeOrdered>>;
  case Op::CmpLt:
    return mask2<S, Wrap<Q, Lt>>;
  case Op::CmpLe:
    return mask2<S, Wrap<Q, Le>>;
  case Op::CmpGt:
    return mask2<S, Wrap<Q, Gt>>;
  case Op::CmpGe:
    return mask2<S, Wrap<Q, Ge>>;
  case Op::CmpEqu:
    return mask2<S, Wrap<Q, EqUnordered>>;
  case Op::CmpNeu:
    return mask2<S, Wrap<Q, Ne>>;
  case Op::CmpLtu:
    return mask2<S, Wrap<Q, LtUnordered>>;
  case Op::CmpLeu:
    return mask2<S, Wrap<Q, LeUnordered>>;
  case Op::CmpGtu:
    return mask2<S, Wrap<Q, GtUnordered>>;
  case Op::CmpGeu:
    return mask2<S, Wrap<Q, GeUnordered>>;
  case Op::CmpNum:
    return mask2<S, Wrap<Q, Num>>;
  case Op::CmpNan:
    return mask2<S, Wrap<Q, Nan>>;
  default:
    return nullptr;
  }
}

//===----------------------------------------------------------------------===//
// testp
//===----------------------------------------------------------------------===//

struct Parts {
  uint64_t magnitude, infinity, minNormal;
};
inline Parts parts(uint32_t a) {
  return {a & 0x7FFFFFFFu, 0x7F800000, 0x00800000};
}
inline Parts parts(uint64_t a) {
  return {a & 0x7FFFFFFFFFFFFFFFu, 0x7FF0000000000000, 0x0010000000000000};
}
template <class B> struct Finite {
  static bool f(B a) { return parts(a).magnitude < parts(a).infinity; }
};
template <class B> struct Infinite {
  static bool f(B a) { return parts(a).magnitude == parts(a).infinity; }
};
template <class B> struct Number {
  static bool f(B a) { return parts(a).magnitude <= parts(a).infinity; }
};
template <class B> struct NotANumber {
  static bool f(B a) { return parts(a).magnitude > parts(a).infinity; }
};
/// Neither NaN nor infinity, and not subnormal; zero is normal here (ISA,
/// testp).
template <class B> struct Normal {
  static bool f(B a) {
    return Finite<B>::f(a) && (parts(a).magnitude >= parts(a).minNormal ||
                               parts(a).magnitude == 0);
  }
};
template <class B> struct Subnormal {
  static bool f(B a) {
    return parts(a).magnitude < parts(a).minNormal && parts(a).magnitude != 0;
  }
};
template <class B> MaskFn tests(Op op) {
  switch (op) {
  case Op::TestFinite:
    return mask1<B, Finite<B>>;
  case Op::TestInfinite:
    return mask1<B, Infinite<B>>;
  case Op::TestNumber:
    return mask1<B, Number<B>>;
  case Op::TestNotANumber:
    return mask1<B, NotANumber<B>>;
  case Op::TestNormal:
    return mask1<B, Normal<B>>;
  case Op::TestSubnormal:
    return mask1<B, Subnormal<B>>;
  default:
    return nullptr;
  }
}

//===----------------------------------------------------------------------===//
// Carries
//===----------------------------------------------------------------------===//

template <class T, bool SUBTRACT>
uint32_t carry(const char *frame, const Step &step) {
  const T *a = source<T>(frame, step, 0), *b = source<T>(frame, step, 1);
  uint32_t in = *source<uint32_t>(frame, step, 2), out = 0;
  for (int i = 0; i < kLanes; ++i) {
    T one = T(in >> i & 1), result;
    bool carried = SUBTRACT ? __builtin_sub_overflow(a[i], b[i], &result)
                            : __builtin_add_overflow(a[i], b[i], &result);
    carried |= SUBTRACT ? __builtin_sub_overflow(result, one, &result)
                        : __builtin_add_overflow(result, one, &result);
    out |= uint32_t(carried) << i;
  }
  return out;
}

} // namespace

MaskFn selectCompare(const LaneKey &key) {
  if (key.op >= Op::TestFinite)
    return key.type == Type::F64 ? tests<uint64_t>(key.op)
                                 : tests<uint32_t>(key.op);
  bool is64 = key.type == Type::U64 || key.type == Type::S64;
  if (key.op == Op::AddCarry)
    return is64 ? carry<uint64_t, false> : carry<uint32_t, false>;
  if (key.op == Op::SubBorrow)
    return is64 ? carry<uint64_t, true> : carry<uint32_t, true>;
  switch (key.type) {
  case Type::B16:
  case Type::U16:
    return integers<uint16_t>(key.op);
  case Type::S16:
    return integers<int16_t>(key.op);
  case Type::B32:
  case Type::U32:
    return integers<uint32_t>(key.op);
  case Type::S32:
    return integers<int32_t>(key.op);
  case Type::B64:
  case Type::U64:
    return integers<uint64_t>(key.op);
  case Type::S64:
    return integers<int64_t>(key.op);
  case Type::F32:
    return floats<float, float, Plain>(key.op);
  case Type::F64:
    return floats<double, double, Plain>(key.op);
  case Type::F16:
    return floats<uint16_t, F16Format, OfHalf>(key.op);
  case Type::BF16:
    return floats<uint16_t, BF16Format, OfHalf>(key.op);
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
