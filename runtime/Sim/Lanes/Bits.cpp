#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// Logic and shifts (ISA, 9.7.8). Shifts by more than the width clamp.
//===----------------------------------------------------------------------===//

template <class T> struct And {
  static T f(T a, T b) { return a & b; }
};
template <class T> struct Or {
  static T f(T a, T b) { return a | b; }
};
template <class T> struct Xor {
  static T f(T a, T b) { return a ^ b; }
};
template <class T> struct Not {
  static T f(T a) { return T(~a); }
};
template <class T> struct Cnot {
  static T f(T a) { return a == 0; }
};
template <class T> struct Shl {
  static T f(T a, uint32_t n) {
    return n < uint32_t(kBits<T>) ? T(a << n) : T(0);
  }
};
template <class T> struct Shr {
  static T f(T a, uint32_t n) {
    constexpr uint32_t last = kBits<T> - 1;
    if (kIsSigned<T>)
      return T(a >> (n < last ? n : last));
    return n <= last ? T(a >> n) : T(0);
  }
};
/// Funnel shifts of b:a.
struct ShfL {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c, uint32_t clamp) {
    uint32_t n = clamp ? (c < 32 ? c : 32) : c & 31;
    return uint32_t((uint64_t(b) << 32 | a) << n >> 32);
  }
};
struct ShfR {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c, uint32_t clamp) {
    uint32_t n = clamp ? (c < 32 ? c : 32) : c & 31;
    return uint32_t((uint64_t(b) << 32 | a) >> n);
  }
};

//===----------------------------------------------------------------------===//
// Fields and counts (ISA, 9.7.1)
//===----------------------------------------------------------------------===//

template <class T> struct Bfe {
  static T f(T a, uint32_t b, uint32_t c) {
    using U = Unsigned<T>;
    constexpr uint32_t bits = kBits<T>;
    uint32_t pos = b & 255, len = c & 255;
    uint32_t signPos = pos + len - 1;
    signPos = signPos < bits - 1 ? signPos : bits - 1;
    bool sign = kIsSigned<T> && len && (U(a) >> signPos & 1);
    U field = pos < bits ? U(a) >> pos : U(0);
    // Bits of the result that come from a.
    uint32_t from = pos < bits ? bits - pos : 0;
    from = from < len ? from : len;
    U mask = from < bits ? U((U(1) << from) - 1) : U(-1);
    return T((field & mask) | (sign ? U(~mask) : U(0)));
  }
};
template <class T> struct Bfi {
  static T f(T a, T b, uint32_t c, uint32_t d) {
    constexpr uint32_t bits = kBits<T>;
    uint32_t pos = c & 255, len = d & 255;
    if (pos >= bits)
      return b;
    T mask = len < bits ? T((T(1) << len) - 1) : T(-1);
    mask = T(mask << pos);
    return T((b & ~mask) | (T(a << pos) & mask));
  }
};
template <class T> void bfi(const char *frame, const Step &step, char *d) {
  const T *a = source<T>(frame, step, 0), *b = source<T>(frame, step, 1);
  const uint32_t *c = source<uint32_t>(frame, step, 2);
  const uint32_t *e = source<uint32_t>(frame, step, 3);
  T *out = reinterpret_cast<T *>(d);
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    out[i] = Bfi<T>::f(a[i], b[i], c[i], e[i]);
}
template <class T> struct Popc {
  static uint32_t f(T a) { return uint32_t(__builtin_popcountll(a)); }
};
template <class T> struct Clz {
  static uint32_t f(T a) {
    return a ? uint32_t(__builtin_clzll(a)) - (64 - kBits<T>)
             : uint32_t(kBits<T>);
  }
};
template <class T> struct Brev {
  static T f(T a) {
    uint64_t x = a;
    x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
    x = (x >> 4 & 0x0F0F0F0F0F0F0F0F) | (x & 0x0F0F0F0F0F0F0F0F) << 4;
    return T(__builtin_bswap64(x) >> (64 - kBits<T>));
  }
};
/// Position of the highest bit that is not a copy of the sign, or all ones.
template <class T> struct Bfind {
  static uint32_t f(T a, uint32_t shiftAmount) {
    Unsigned<T> x = Unsigned<T>(a < 0 ? ~a : a);
    if (!x)
      return ~0u;
    uint32_t position = 63 - uint32_t(__builtin_clzll(x));
    return shiftAmount ? kBits<T> - 1 - position : position;
  }
};
/// Position of the n-th set bit of a from `base`, upwards or downwards.
struct Fns {
  static uint32_t f(uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0)
      return base < 32 && (mask >> base & 1) ? base : ~0u;
    int64_t position = base, step = offset > 0 ? 1 : -1;
    int64_t count = offset > 0 ? int64_t(offset) - 1 : -int64_t(offset) - 1;
    for (; position >= 0 && position < 32; position += step)
      if (mask >> position & 1 && count-- == 0)
        return uint32_t(position);
    return ~0u;
  }
};

struct Prmt {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
    uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t s = c & 3, control = c;
    // The selectors of the special modes, least byte first (ISA, prmt).
    auto selectors = [&](uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3) {
      return x0 | x1 << 4 | x2 << 8 | x3 << 12;
    };
    auto larger = [](uint32_t x, uint32_t y) { return x > y ? x : y; };
    auto smaller = [](uint32_t x, uint32_t y) { return x < y ? x : y; };
    switch (PrmtMode(mode)) {
    case PrmtMode::Index:
      break;
    case PrmtMode::F4e:
      control = selectors(s, s + 1, s + 2, s + 3);
      break;
    case PrmtMode::B4e:
      control = selectors(s, (s - 1) & 7, (s - 2) & 7, (s - 3) & 7);
      break;
    case PrmtMode::Rc8:
      control = selectors(s, s, s, s);
      break;
    case PrmtMode::Ecl:
      control = selectors(s, larger(s, 1), larger(s, 2), 3);
      break;
    case PrmtMode::Ecr:
      control = selectors(0, smaller(s, 1), smaller(s, 2), s);
      break;
    case PrmtMode::Rc16:
      control = s & 1 ? 0x3232 : 0x1010;
      break;
    }
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t nibble = control >> (4 * i) & 15;
      uint32_t byte = uint32_t(bytes >> (8 * (nibble & 7))) & 255;
      if (nibble & 8)
        byte = byte & 128 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};

/// A term for each of the eight rows of the truth table.
struct Lop3 {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (uint32_t row = 0; row < 8; ++row)
      if (table >> row & 1)
        result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return result;
  }
};

template <bool SIGNED> struct Szext {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t clamp) {
    uint32_t n = clamp ? (b < 32 ? b : 32) : b & 31;
    if (n == 0)
      return 0;
    uint32_t up = a << (32 - n);
    return SIGNED ? uint32_t(int32_t(up) >> (32 - n)) : up >> (32 - n);
  }
};
struct Bmsk {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t clamp) {
    uint32_t from = clamp ? (a < 32 ? a : 32) : a & 31;
    uint32_t count = clamp ? (b < 32 ? b : 32) : b & 31;
    uint64_t mask = (uint64_t(1) << count) - 1;
    return uint32_t(mask << from);
  }
};
template <class F>
void map2Imm(const char *frame, const Step &step, char *destination) {
  const uint32_t *a = source<uint32_t>(frame, step, 0);
  const uint32_t *b = source<uint32_t>(frame, step, 1);
  uint32_t *d = reinterpret_cast<uint32_t *>(destination);
  for (int i = 0; i < kLanes; ++i)
    d[i] = F::f(a[i], b[i], step.imm);
}

template <class T> struct MakeAnd {
  static LaneFn fn() { return map2<T, T, T, And<T>>; }
};
template <class T> struct MakeOr {
  static LaneFn fn() { return map2<T, T, T, Or<T>>; }
};
template <class T> struct MakeXor {
  static LaneFn fn() { return map2<T, T, T, Xor<T>>; }
};
template <class T> struct MakeNot {
  static LaneFn fn() { return map1<T, T, Not<T>>; }
};
template <class T> struct MakeCnot {
  static LaneFn fn() { return map1<T, T, Cnot<T>>; }
};
template <class T> struct MakeShl {
  static LaneFn fn() { return map2<T, T, uint32_t, Shl<T>>; }
};
template <class T> struct MakeShr {
  static LaneFn fn() { return map2<T, T, uint32_t, Shr<T>>; }
};
template <class T> struct MakeBfe {
  static LaneFn fn() { return map3<T, T, uint32_t, uint32_t, Bfe<T>>; }
};
template <class T> struct MakeBfi {
  static LaneFn fn() { return bfi<T>; }
};
template <class T> struct MakePopc {
  static LaneFn fn() { return map1<uint32_t, T, Popc<T>>; }
};
template <class T> struct MakeClz {
  static LaneFn fn() { return map1<uint32_t, T, Clz<T>>; }
};
template <class T> struct MakeBrev {
  static LaneFn fn() { return map1<T, T, Brev<T>>; }
};
template <class T> struct MakeBfind {
  static LaneFn fn() { return map1Imm<uint32_t, T, Bfind<T>>; }
};

/// .bN shifts as .uN.
Type unsignedType(Type type) {
  return type == Type::B16   ? Type::U16
         : type == Type::B32 ? Type::U32
         : type == Type::B64 ? Type::U64
                             : type;
}

} // namespace

LaneFn selectBits(const LaneKey &key) {
  using U = uint32_t;
  Type type = unsignedType(key.type);
  switch (key.op) {
  case Op::And:
    return forSizes<MakeAnd>(type);
  case Op::Or:
    return forSizes<MakeOr>(type);
  case Op::Xor:
    return forSizes<MakeXor>(type);
  case Op::Not:
    return forSizes<MakeNot>(type);
  case Op::Cnot:
    return forSizes<MakeCnot>(type);
  case Op::Shl:
    return forSizes<MakeShl>(type);
  case Op::Shr:
    return forIntegers<MakeShr>(type);
  case Op::Bfe:
    return forIntegers<MakeBfe>(type);
  case Op::Bfi:
    return forSizes<MakeBfi>(type);
  case Op::Popc:
    return forSizes<MakePopc>(type);
  case Op::Clz:
    return forSizes<MakeClz>(type);
  case Op::Brev:
    return forSizes<MakeBrev>(type);
  case Op::Bfind:
    return forIntegers<MakeBfind>(type);
  case Op::Fns:
    return map3<U, U, U, int32_t, Fns>;
  case Op::ShfL:
    return map3Imm<U, U, U, U, ShfL>;
  case Op::ShfR:
    return map3Imm<U, U, U, U, ShfR>;
  case Op::Prmt:
    return map3Imm<U, U, U, U, Prmt>;
  case Op::Lop3:
    return map3Imm<U, U, U, U, Lop3>;
  case Op::Szext:
    return type == Type::S32 ? map2Imm<Szext<true>> : map2Imm<Szext<false>>;
  case Op::Bmsk:
    return map2Imm<Bmsk>;
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
