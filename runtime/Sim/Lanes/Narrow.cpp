#include "FloatBits.h"
#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

namespace {

//===----------------------------------------------------------------------===//
// Any format and rounding, a value at a time
//===----------------------------------------------------------------------===//

struct Narrowing {
  int mantissa, bias, signShift;
  uint32_t maxCode; ///< of the largest finite value
  bool hasInfinity; ///< maxCode + 1
  uint32_t nan;
};
constexpr Narrowing kF16 = {10, 15, 15, 0x7BFF, true, 0x7FFF};
constexpr Narrowing kBF16 = {7, 127, 15, 0x7F7F, true, 0x7FFF};
constexpr Narrowing kE4M3 = {3, 7, 7, 0x7E, false, 0x7F};
constexpr Narrowing kE5M2 = {2, 15, 7, 0x7B, true, 0x7F};
constexpr Narrowing kE2M1 = {1, 1, 3, 0x7, false, 0x7};
/// binary32 without the 13 lowest bits.
constexpr Narrowing kTF32 = {10, 127, 18, 0x3FBFF, true, 0x3FFFF};

/// A magnitude as a multiple of the spacing of the format's values near it.
struct Scaled {
  double whole, part; ///< 0 <= part < 1
  uint32_t base;      ///< of the code: whole + base
};
Scaled scale(const Narrowing &to, double magnitude) {
  int least = 1 - to.bias;
  int exponent = magnitude ? __builtin_ilogb(magnitude) : least;
  exponent = exponent < least ? least : exponent;
  double q = __builtin_ldexp(magnitude, to.mantissa - exponent);
  double whole = __builtin_floor(q);
  return {whole, q - whole, uint32_t(exponent - least) << to.mantissa};
}

/// x in the format. x is exact: every source widens to binary64.
uint32_t narrowAny(const Narrowing &to, double x, const NarrowMode &mode) {
  if (x != x)
    return to.nan;
  bool negative = bitsOf(x) >> 63;
  if (mode.relu && negative)
    return 0;
  uint32_t sign = uint32_t(negative) << to.signShift;
  double magnitude = __builtin_fabs(x);
  bool infinite = magnitude > 1.7976931348623157e308;
  // Overflow goes to the largest value or to the infinity, as the rounding
  // says.
  bool away = mode.rounding == Rounding::Up     ? !negative
              : mode.rounding == Rounding::Down ? negative
                                                : false;
  uint32_t over =
      mode.saturate || !to.hasInfinity ||
              (!infinite && !away && mode.rounding != Rounding::Nearest)
          ? to.maxCode
          : to.maxCode + 1;
  if (infinite)
    return sign | over;
  Scaled scaled = scale(to, magnitude);
  if (scaled.base >= to.maxCode + 1) // far too large
    return sign | over;
  uint32_t code = scaled.base + uint32_t(scaled.whole);
  if (mode.rounding == Rounding::Nearest)
    code += scaled.part > 0.5 || (scaled.part == 0.5 && (code & 1));
  else
    code += away && scaled.part > 0;
  return sign | (code > to.maxCode ? over : code);
}

/// The part of the spacing that is cut off, plus random / 2^bits, carries.
uint32_t narrowStochastic(const Narrowing &to, float x, uint32_t random,
                          int bits, const NarrowMode &mode) {
  if (x != x)
    return to.nan;
  uint32_t sign = (bitsOf(x) >> 31) << to.signShift;
  if (mode.relu && sign)
    return 0;
  double magnitude = __builtin_fabs(double(x));
  uint32_t over =
      mode.saturate || !to.hasInfinity ? to.maxCode : to.maxCode + 1;
  if (magnitude > 3.5e38)
    return sign | over;
  Scaled scaled = scale(to, magnitude);
  if (scaled.base >= to.maxCode + 1)
    return sign | over;
  uint32_t code = scaled.base + uint32_t(scaled.whole);
  code += scaled.part + __builtin_ldexp(random, -bits) >= 1.0;
  return sign | (code > to.maxCode ? over : code);
}

//===----------------------------------------------------------------------===//
// To nearest, saturating: the conversions of quantize kernels
//===----------------------------------------------------------------------===//

template <class F> struct Limits;
template <> struct Limits<E4M3Format> {
  static constexpr uint32_t max = 0x43E00000, nan = 0x7F; // 448
};
template <> struct Limits<E5M2Format> {
  static constexpr uint32_t max = 0x47600000, nan = 0x7F; // 57344
};
template <> struct Limits<E2M1Format> {
  static constexpr uint32_t max = 0x40C00000, nan = 0x7; // 6
};
template <> struct Limits<E2M3Format> {
  static constexpr uint32_t max = 0x40F00000, nan = 0x1F; // 7.5
};
template <> struct Limits<E3M2Format> {
  static constexpr uint32_t max = 0x41E00000, nan = 0x1F; // 28
};

template <class F> uint32_t saturating(float x) {
  uint32_t bits = bitsOf(x), magnitude = bits & 0x7FFFFFFF;
  uint32_t clamped = magnitude < Limits<F>::max ? magnitude : Limits<F>::max;
  uint32_t code = roundMagnitude<F>(clamped);
  code |= bits >> 31 << F::kSignShift;
  return magnitude > 0x7F800000 ? Limits<F>::nan : code;
}
/// a in the high half. Codes of six bits have a byte each.
template <class D, class F> struct PackSaturating {
  static D f(float a, float b) {
    return D(saturating<F>(a) << (4 * sizeof(D)) | saturating<F>(b));
  }
};
template <class F> struct PackHalves {
  static uint32_t f(float a, float b) {
    return uint32_t(narrow<F>(a)) << 16 | narrow<F>(b);
  }
};

/// Powers of two: up, or towards zero; 2^-127 is the least, 2^127 the largest,
/// and what is larger a NaN without `saturate`.
inline uint32_t powerOfTwo(float x, bool up, bool saturate) {
  uint32_t magnitude = bitsOf(x) & 0x7FFFFFFF;
  // Rounding up is adding what is less than a power of two; 2^-127 is a
  // subnormal of binary32, with the mantissa 400000.
  uint32_t add = magnitude < 0x00800000 ? 0x3FFFFF : 0x7FFFFF;
  uint32_t code = (magnitude + (up ? add : 0)) >> 23;
  uint32_t over = saturate ? 0xFE : 0xFF;
  code = code < 0xFF ? code : over;
  return magnitude > 0x7F800000 ? 0xFF : code;
}
struct PackPowers {
  static uint16_t f(float a, float b) {
    return uint16_t(powerOfTwo(a, true, true) << 8 | powerOfTwo(b, true, true));
  }
};

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

template <class D, class S, const Narrowing &TO, int SHIFT>
void one(const char *frame, const Step &step, char *destination) {
  const S *a = source<S>(frame, step, 0);
  D *d = reinterpret_cast<D *>(destination);
  NarrowMode mode = NarrowMode::decode(step.imm);
  for (int i = 0; i < kLanes; ++i) {
    uint32_t code = narrowAny(TO, double(a[i]), mode) << SHIFT;
    d[i] = D(SHIFT && a[i] != a[i] ? 0x7FFFFFFF : code); // tf32
  }
}
template <class D, const Narrowing &TO>
void two(const char *frame, const Step &step, char *destination) {
  const float *a = source<float>(frame, step, 0);
  const float *b = source<float>(frame, step, 1);
  D *d = reinterpret_cast<D *>(destination);
  NarrowMode mode = NarrowMode::decode(step.imm);
  for (int i = 0; i < kLanes; ++i)
    d[i] = D(narrowAny(TO, a[i], mode) << (TO.signShift + 1) |
             narrowAny(TO, b[i], mode));
}

void twoPowers(const char *frame, const Step &step, char *destination) {
  const float *a = source<float>(frame, step, 0);
  const float *b = source<float>(frame, step, 1);
  uint16_t *d = reinterpret_cast<uint16_t *>(destination);
  NarrowMode mode = NarrowMode::decode(step.imm);
  bool up = mode.rounding == Rounding::Up;
  for (int i = 0; i < kLanes; ++i)
    d[i] = uint16_t(powerOfTwo(a[i], up, mode.saturate) << 8 |
                    powerOfTwo(b[i], up, mode.saturate));
}

/// Integers of 64 bits do not fit binary64: rounded to odd there.
template <class S, const Narrowing &TO>
void integers(const char *frame, const Step &step, char *destination) {
  const S *a = source<S>(frame, step, 0);
  uint16_t *d = reinterpret_cast<uint16_t *>(destination);
  NarrowMode mode = NarrowMode::decode(step.imm);
  for (int i = 0; i < kLanes; ++i) {
    bool negative = a[i] < S(0);
    uint64_t magnitude = negative ? -uint64_t(a[i]) : uint64_t(a[i]);
    if (magnitude >> 53)
      magnitude = (magnitude & ~uint64_t(0xFFF)) |
                  (magnitude & 0xFFF ? uint64_t(0x800) : 0);
    double x = double(magnitude);
    d[i] = uint16_t(narrowAny(TO, negative ? -x : x, mode));
  }
}
template <const Narrowing &TO> LaneFn integersTo(Type s) {
  switch (s) {
  case Type::U8:
    return integers<uint8_t, TO>;
  case Type::S8:
    return integers<int8_t, TO>;
  case Type::U16:
    return integers<uint16_t, TO>;
  case Type::S16:
    return integers<int16_t, TO>;
  case Type::U32:
    return integers<uint32_t, TO>;
  case Type::S32:
    return integers<int32_t, TO>;
  case Type::U64:
    return integers<uint64_t, TO>;
  case Type::S64:
    return integers<int64_t, TO>;
  default:
    return nullptr;
  }
}

//===----------------------------------------------------------------------===//
// Narrow to f16 and bf16, exact; NaNs become 7FFF
//===----------------------------------------------------------------------===//

uint32_t e5m2ToF16(uint32_t code) {
  return (code & 0x7F) > 0x7C ? 0x7FFF : code << 8;
}
uint32_t e4m3ToF16(uint32_t code) {
  if ((code & 0x7F) == 0x7F)
    return 0x7FFF;
  uint16_t scaled = uint16_t((code & 0x80) << 8 | (code & 0x7F) << 7);
  return narrow<F16Format>(widen<F16Format>(scaled) * 256.0f);
}
uint32_t e2m1ToF16(uint32_t code) {
  uint16_t scaled = uint16_t((code & 8) << 12 | (code & 7) << 9);
  return narrow<F16Format>(widen<F16Format>(scaled) * 16384.0f);
}
uint32_t e2m3ToF16(uint32_t code) {
  uint16_t scaled = uint16_t((code & 0x20) << 10 | (code & 0x1F) << 7);
  return narrow<F16Format>(widen<F16Format>(scaled) * 16384.0f);
}
uint32_t e3m2ToF16(uint32_t code) {
  uint16_t scaled = uint16_t((code & 0x20) << 10 | (code & 0x1F) << 8);
  return narrow<F16Format>(widen<F16Format>(scaled) * 4096.0f);
}
uint32_t ue8m0ToBF16(uint32_t code) {
  return code == 0xFF ? 0x7FFF : code ? code << 7 : 0x40;
}
template <class S, int BITS, uint32_t (*F)(uint32_t)> struct Unpack {
  static uint32_t f(S a) {
    return F(a >> BITS & ((1u << BITS) - 1)) << 16 | F(a & ((1u << BITS) - 1));
  }
};

//===----------------------------------------------------------------------===//
// Stochastic rounding (ISA, cvt: rbits). src: the values, from the highest
// element down, and the random bits last. Which random bit meets which bit of
// the significand is not said; here they are aligned with the highest that is
// cut off.
//===----------------------------------------------------------------------===//

template <const Narrowing &TO, int BITS>
void stochastic2(const char *frame, const Step &step, char *destination) {
  const float *a = source<float>(frame, step, 0);
  const float *b = source<float>(frame, step, 1);
  const uint32_t *random = source<uint32_t>(frame, step, 2);
  uint32_t *d = reinterpret_cast<uint32_t *>(destination);
  NarrowMode mode = NarrowMode::decode(step.imm);
  constexpr uint32_t mask = (1u << BITS) - 1;
  for (int i = 0; i < kLanes; ++i)
    d[i] = narrowStochastic(TO, a[i], random[i] >> 16 & mask, BITS, mode)
               << 16 |
           narrowStochastic(TO, b[i], random[i] & mask, BITS, mode);
}

/// Two elements (of a half of the destination): src[0] the higher; src[2] the
/// random bits, of which each half of 16, or its low byte for imm's bit 8 clear
/// and its high byte otherwise, serves one pair.
template <class D, const Narrowing &TO>
void stochasticPair(const char *frame, const Step &step, char *destination) {
  const float *a = source<float>(frame, step, 0);
  const float *b = source<float>(frame, step, 1);
  const uint32_t *random = source<uint32_t>(frame, step, 2);
  D *d = reinterpret_cast<D *>(destination);
  NarrowMode mode = NarrowMode::decode(step.imm);
  bool upper = step.imm >> 8 & 1;
  bool bytes = TO.signShift == 3; // e2m1x4
  for (int i = 0; i < kLanes; ++i) {
    uint32_t r = random[i], first, second;
    if (bytes) {
      r >>= upper ? 8 : 0;
      first = r >> 16 & 255;
      second = r & 255;
    } else {
      first = second = upper ? r >> 16 : r & 0xFFFF;
    }
    int bits = bytes ? 8 : 16;
    d[i] =
        D(narrowStochastic(TO, a[i], first, bits, mode) << (TO.signShift + 1) |
          narrowStochastic(TO, b[i], second, bits, mode));
  }
}

} // namespace

LaneFn selectStochastic(const LaneKey &key) {
  switch (key.type) {
  case Type::F16x2:
    return stochastic2<kF16, 13>;
  case Type::BF16x2:
    return stochastic2<kBF16, 16>;
  case Type::E4M3x2:
    return stochasticPair<uint16_t, kE4M3>;
  case Type::E5M2x2:
    return stochasticPair<uint16_t, kE5M2>;
  case Type::E2M1x2:
    return stochasticPair<uint8_t, kE2M1>;
  default:
    return nullptr;
  }
}

LaneFn selectNarrow(const LaneKey &key) {
  using U = uint32_t;
  bool fast = key.second == Type::None; // PackNarrow's
  switch (key.op) {
  case Op::NarrowSlow:
    switch (key.type) {
    case Type::F16:
      return key.second == Type::F64 ? one<uint16_t, double, kF16, 0>
                                     : one<uint16_t, float, kF16, 0>;
    case Type::BF16:
      return key.second == Type::F64 ? one<uint16_t, double, kBF16, 0>
                                     : one<uint16_t, float, kBF16, 0>;
    case Type::TF32:
      return one<uint32_t, float, kTF32, 13>;
    default:
      return nullptr;
    }
  case Op::IntToHalf:
    return key.type == Type::F16 ? integersTo<kF16>(key.second)
                                 : integersTo<kBF16>(key.second);
  case Op::PackNarrow:
    switch (key.type) {
    case Type::F16x2:
      return fast ? map2<U, float, float, PackHalves<F16Format>> : two<U, kF16>;
    case Type::BF16x2:
      return fast ? map2<U, float, float, PackHalves<BF16Format>>
                  : two<U, kBF16>;
    case Type::E4M3x2:
      return map2<uint16_t, float, float, PackSaturating<uint16_t, E4M3Format>>;
    case Type::E5M2x2:
      return map2<uint16_t, float, float, PackSaturating<uint16_t, E5M2Format>>;
    case Type::E2M1x2:
      return map2<uint8_t, float, float, PackSaturating<uint8_t, E2M1Format>>;
    case Type::E2M3x2:
      return map2<uint16_t, float, float, PackSaturating<uint16_t, E2M3Format>>;
    case Type::E3M2x2:
      return map2<uint16_t, float, float, PackSaturating<uint16_t, E3M2Format>>;
    case Type::UE8M0x2:
      return fast ? map2<uint16_t, float, float, PackPowers> : twoPowers;
    default:
      return nullptr;
    }
  case Op::UnpackWiden:
    switch (key.second) {
    case Type::E4M3x2:
      return map1<U, uint16_t, Unpack<uint16_t, 8, e4m3ToF16>>;
    case Type::E5M2x2:
      return map1<U, uint16_t, Unpack<uint16_t, 8, e5m2ToF16>>;
    case Type::E2M1x2:
      return map1<U, uint8_t, Unpack<uint8_t, 4, e2m1ToF16>>;
    case Type::E2M3x2:
      return map1<U, uint16_t, Unpack<uint16_t, 8, e2m3ToF16>>;
    case Type::E3M2x2:
      return map1<U, uint16_t, Unpack<uint16_t, 8, e3m2ToF16>>;
    case Type::UE8M0x2:
      return map1<U, uint16_t, Unpack<uint16_t, 8, ue8m0ToBF16>>;
    default:
      return nullptr;
    }
  default:
    return nullptr;
  }
}

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
