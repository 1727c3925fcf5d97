// Conversions against scalar definitions (PTX ISA, cvt).
#include "Rounding.h"
#include "SimTest.h"

#include <cfenv>
#include <cmath>
#include <functional>

using namespace dither::test;
using namespace dither::numerics;

namespace {

constexpr size_t kCount = 2048;
__extension__ typedef __int128 Wide;

struct IntType {
  const char *name;
  bool isSigned;
  unsigned bits;
  Wide least() const { return isSigned ? -(Wide(1) << (bits - 1)) : 0; }
  Wide most() const { return (Wide(1) << (bits - isSigned)) - 1; }
  /// The value of the low bits.
  Wide value(uint64_t x) const {
    Wide low = Wide(bits == 64 ? x : x & ((uint64_t(1) << bits) - 1));
    return isSigned && (low >> (bits - 1) & 1) ? low - (Wide(1) << bits) : low;
  }
};
const IntType intTypes[] = {{"u8", false, 8},   {"s8", true, 8},
                            {"u16", false, 16}, {"s16", true, 16},
                            {"u32", false, 32}, {"s32", true, 32},
                            {"u64", false, 64}, {"s64", true, 64}};

/// Sources and results in 64-bit registers: wider than the types, so that
/// cutting and extending are tested too.
TEST(Convert, Integers) {
  auto a = interesting<uint64_t>(kCount, 1);
  for (const IntType &from : intTypes)
    for (const IntType &to : intTypes)
      for (bool saturate : {false, true}) {
        if (saturate && from.least() >= to.least() && from.most() <= to.most())
          continue; // PTX has no such form
        std::string code = std::string("cvt") + (saturate ? ".sat." : ".") +
                           to.name + "." + from.name + " d, a;";
        auto got = evaluate<uint64_t>("sm_80", code, a);
        for (size_t i = 0; i < kCount; ++i) {
          Wide x = from.value(a[i]);
          if (saturate)
            x = std::min(std::max(x, to.least()), to.most());
          ASSERT_EQ(got[i], uint64_t(to.value(uint64_t(x))))
              << code << std::hex << a[i];
        }
      }
}

TEST(Convert, IntegersInNarrowRegisters) {
  auto a = interesting<uint32_t>(kCount, 2);
  auto got = evaluate<uint16_t>("sm_80", "cvt.u16.u32 d, a;", a);
  auto byte = evaluate<uint16_t>("sm_80", "cvt.s8.s32 d, a;", a);
  auto same = evaluate<uint32_t>("sm_80", "cvt.s32.s16 d, a;", a);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(got[i], uint16_t(a[i]));
    ASSERT_EQ(byte[i], uint16_t(int8_t(a[i])));
    ASSERT_EQ(same[i], uint32_t(int16_t(a[i])));
  }
  auto b = interesting<uint32_t>(kCount, 3),
       c = interesting<uint32_t>(kCount, 4);
  auto clamp = [](uint32_t x, int32_t low, int32_t high) {
    return uint32_t(std::clamp(int32_t(x), low, high));
  };
  auto pack =
      evaluate<uint32_t>("sm_80", "cvt.pack.sat.s16.s32 d, a, b;", a, b);
  auto bytes = evaluate<uint32_t>(
      "sm_80", "cvt.pack.sat.u8.s32.b32 d, a, b, c;", a, b, c);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(pack[i], clamp(a[i], -32768, 32767) << 16 |
                           (clamp(b[i], -32768, 32767) & 0xFFFF));
    ASSERT_EQ(bytes[i],
              c[i] << 16 | clamp(a[i], 0, 255) << 8 | clamp(b[i], 0, 255));
  }
}

const std::pair<const char *, Direction> roundings[] = {
    {"rn", Direction::Nearest},
    {"rz", Direction::Zero},
    {"rm", Direction::Down},
    {"rp", Direction::Up}};

TEST(Convert, IntegersToFloats) {
  auto a = interesting<uint64_t>(kCount, 5);
  for (const IntType &from : intTypes)
    for (auto [name, direction] : roundings) {
      std::string cvt = std::string("cvt.") + name + ".";
      auto single =
          evaluate<uint32_t>("sm_90a", cvt + "f32." + from.name + " d, a;", a);
      auto half =
          evaluate<uint16_t>("sm_90a", cvt + "f16." + from.name + " d, a;", a);
      // PTX has no conversions between bf16 and 8 bits.
      auto brain = evaluate<uint16_t>(
          "sm_90a",
          cvt + "bf16." + (from.bits == 8 ? "u16" : from.name) + " d, a;", a);
      auto twice =
          evaluate<double>("sm_90a", cvt + "f64." + from.name + " d, a;", a);
      for (size_t i = 0; i < kCount; ++i) {
        Exact x = Exact(from.value(a[i]));
        ASSERT_EQ(single[i], roundTo(kF32, x, direction))
            << cvt << from.name << std::hex << a[i];
        ASSERT_EQ(half[i], roundTo(kF16, x, direction))
            << cvt << from.name << std::hex << a[i];
        ASSERT_TRUE(from.bits == 8 || brain[i] == roundTo(kBF16, x, direction))
            << cvt << from.name << std::hex << a[i];
        // Within one of 53 bits, on the right side.
        Exact error = Exact(twice[i]) - x;
        if (x == 0)
          continue;
        double ulps = double(error) / (std::fabs(double(x)) * 0x1p-53);
        ASSERT_LE(ulps, direction == Direction::Down ? 0 : 2) << cvt;
        ASSERT_GE(ulps, direction == Direction::Up ? 0 : -2) << cvt;
        ASSERT_TRUE(direction != Direction::Nearest || std::fabs(ulps) <= 1);
      }
    }
}

TEST(Convert, FloatsToIntegers) {
  auto bits = interestingFloats(kCount, 6);
  std::vector<double> wide;
  std::vector<uint16_t> half;
  for (uint32_t x : bits) {
    wide.push_back(toFloat(x));
    half.push_back(uint16_t(x >> 16));
  }
  // Halves and their neighbours.
  for (int i = 0; i < 40; ++i)
    bits[size_t(i)] = toBits(float(i - 20) / 2);
  const std::pair<const char *, double (*)(double)> modes[] = {
      {"rni", [](double x) { return std::nearbyint(x); }},
      {"rzi", [](double x) { return std::trunc(x); }},
      {"rmi", [](double x) { return std::floor(x); }},
      {"rpi", [](double x) { return std::ceil(x); }}};
  for (const IntType &to : intTypes)
    for (auto [name, round] : modes) {
      std::string cvt = std::string("cvt.") + name + "." + to.name + ".";
      auto expected = [&, round = round](double x, bool fromDouble) {
        if (std::isnan(x))
          return fromDouble || to.bits == 64 ? uint64_t(1) << (to.bits - 1)
                                             : uint64_t(0);
        double r = round(x);
        Wide value = r >= 0x1p100    ? to.most()
                     : r <= -0x1p100 ? to.least()
                                     : Wide(r);
        return uint64_t(std::min(std::max(value, to.least()), to.most()));
      };
      // Registers of 64 bits: results of narrower types are extended.
      auto extended = [&](uint64_t x) { return uint64_t(to.value(x)); };
      auto single = evaluate<uint64_t>("sm_90a", cvt + "f32 d, a;", bits);
      auto twice = evaluate<uint64_t>("sm_90a", cvt + "f64 d, a;", wide);
      auto brain = evaluate<uint64_t>("sm_90a",
                                      std::string("cvt.") + name + "." +
                                          (to.bits == 8 ? "u16" : to.name) +
                                          ".bf16 d, a;",
                                      half);
      auto f16 = evaluate<uint64_t>("sm_90a", cvt + "f16 d, a;", half);
      auto flushed = evaluate<uint64_t>(
          "sm_90a",
          std::string("cvt.") + name + ".ftz." + to.name + ".f32 d, a;", bits);
      for (size_t i = 0; i < kCount; ++i) {
        double x = toFloat(bits[i]);
        ASSERT_EQ(single[i], extended(expected(x, false))) << cvt << " " << x;
        ASSERT_EQ(twice[i], extended(expected(wide[i], true)))
            << cvt << " " << wide[i];
        double y = decode(kBF16, half[i]), z = decode(kF16, half[i]);
        ASSERT_TRUE(to.bits == 8 || brain[i] == extended(expected(y, false)))
            << cvt << " " << y;
        ASSERT_EQ(f16[i], extended(expected(z, false))) << cvt << " " << z;
        bool subnormal = std::fabs(x) < 0x1p-126;
        ASSERT_EQ(flushed[i], extended(expected(subnormal ? 0 : x, false)));
      }
    }
}

/// Every binary16 and bfloat16.
TEST(Convert, HalvesWiden) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i);
  auto f16 = evaluate<uint32_t>("sm_80", "cvt.f32.f16 d, a;", all);
  auto bf16 = evaluate<uint32_t>("sm_80", "cvt.f32.bf16 d, a;", all);
  auto wide = evaluate<double>("sm_90a", "cvt.f64.f16 d, a;", all);
  auto across = evaluate<uint16_t>("sm_90a", "cvt.rn.bf16.f16 d, a;", all);
  auto back = evaluate<uint16_t>("sm_90a", "cvt.rn.f16.bf16 d, a;", all);
  for (uint32_t i = 0; i < 65536; ++i) {
    float x = decode(kF16, i), y = decode(kBF16, i);
    ASSERT_EQ(f16[i], x != x ? 0x7FFFFFFF : toBits(x)) << i;
    ASSERT_EQ(bf16[i], y != y ? 0x7FFFFFFF : toBits(y)) << i;
    ASSERT_TRUE(wide[i] == x || x != x) << i;
    ASSERT_EQ(across[i], encode(kBF16, x)) << i;
    ASSERT_EQ(back[i], encode(kF16, y)) << i;
  }
}

/// Values where roundings are decided: of every code c, c and the midpoint to
/// the next one, with the neighbours in binary32, of both signs.
std::vector<uint32_t> decisions(const ElementFormat &format, unsigned step) {
  std::vector<uint32_t> bits = interestingFloats(1024, 7);
  for (uint32_t code = 0; code <= format.maxCode; code += step) {
    float low = decode(format, code);
    float high = code < format.maxCode ? decode(format, code + 1)
                                       : low + (low - decode(format, code - 1));
    for (float x : {low, low + (high - low) / 2})
      for (int delta : {-1, 0, 1})
        for (uint32_t sign : {0u, 0x80000000u})
          bits.push_back((toBits(x) + uint32_t(delta)) ^ sign);
  }
  return bits;
}

TEST(Convert, SinglesNarrow) {
  for (const ElementFormat *format : {&kF16, &kBF16}) {
    bool brain = format == &kBF16;
    std::string type = brain ? "bf16" : "f16";
    auto a = decisions(*format, 5);
    auto b = a;
    std::reverse(b.begin(), b.end());
    auto nan = [](uint32_t x) { return (x & 0x7FFFFFFF) > 0x7F800000; };
    for (auto [name, direction] : roundings) {
      if (brain && direction >= Direction::Down)
        continue;
      std::string cvt = std::string("cvt.") + name + ".";
      auto got = evaluate<uint16_t>("sm_90a", cvt + type + ".f32 d, a;", a);
      for (size_t i = 0; i < a.size(); ++i) {
        uint32_t want =
            nan(a[i]) ? 0x7FFF : roundTo(*format, toFloat(a[i]), direction);
        want |= a[i] == 0x80000000 ? 0x8000 : 0;
        ASSERT_EQ(got[i], want) << cvt << type << std::hex << " " << a[i];
      }
    }
    for (bool relu : {false, true})
      for (bool saturate : {false, true})
        for (Direction direction : {Direction::Nearest, Direction::Zero}) {
          std::string code = std::string("cvt.") +
                             (direction == Direction::Nearest ? "rn" : "rz") +
                             (relu ? ".relu" : "") +
                             (saturate ? ".satfinite." : ".") + type +
                             "x2.f32 d, a, b;";
          auto got = evaluate<uint32_t>("sm_90a", code, a, b);
          auto half = [&](uint32_t x) -> uint32_t {
            if (nan(x))
              return 0x7FFF;
            if (relu && x >> 31)
              return 0;
            uint32_t sign = x >> 16 & 0x8000;
            return roundTo(*format, toFloat(x), direction, saturate) | sign;
          };
          for (size_t i = 0; i < a.size(); ++i)
            ASSERT_EQ(got[i], half(a[i]) << 16 | half(b[i]))
                << code << std::hex << a[i] << " " << b[i];
        }
  }
}

TEST(Convert, DoublesNarrow) {
  std::mt19937_64 random(8);
  std::vector<double> a = {0.0, -0.0, 1e300, -1e300, INFINITY, 1e-320, 65519.9};
  while (a.size() < kCount) {
    // Near ties of binary32, binary16 and bfloat16, but for the last bits.
    double x = std::ldexp(double(random() >> 54), int(random() % 60) - 45);
    x += std::ldexp(x, -int(random() % 54));
    a.push_back(random() % 2 ? x : -x);
  }
  for (auto [name, direction] : roundings) {
    std::string cvt = std::string("cvt.") + name + ".";
    auto single = evaluate<uint32_t>("sm_80", cvt + "f32.f64 d, a;", a);
    auto half = evaluate<uint16_t>("sm_80", cvt + "f16.f64 d, a;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      uint32_t sign = std::signbit(a[i]);
      ASSERT_EQ(single[i], roundTo(kF32, a[i], direction) | sign << 31)
          << cvt << a[i];
      ASSERT_EQ(half[i], roundTo(kF16, a[i], direction) | sign << 15)
          << cvt << a[i];
    }
  }
}

TEST(Convert, WithinSingle) {
  auto a = interestingFloats(kCount, 9);
  auto check = [&](const std::string &code, float (*f)(float)) {
    auto got = evaluate<uint32_t>("sm_80", code, a);
    for (size_t i = 0; i < kCount; ++i) {
      float x = f(toFloat(a[i]));
      ASSERT_TRUE(got[i] == toBits(x) || x != x) << code << std::hex << a[i];
    }
  };
  check("cvt.rni.f32.f32 d, a;", [](float x) { return std::nearbyint(x); });
  check("cvt.rzi.f32.f32 d, a;", [](float x) { return std::trunc(x); });
  check("cvt.rmi.f32.f32 d, a;", [](float x) { return std::floor(x); });
  check("cvt.rpi.f32.f32 d, a;", [](float x) { return std::ceil(x); });
  check("cvt.sat.f32.f32 d, a;",
        [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; });
  check("cvt.ftz.f32.f32 d, a;", [](float x) {
    return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  });
}

/// tf32 is binary32 without its 13 lowest bits.
TEST(Convert, ToTf32) {
  auto a = interestingFloats(kCount, 10);
  auto nearest = evaluate<uint32_t>("sm_90a", "cvt.rn.tf32.f32 d, a;", a);
  auto zero = evaluate<uint32_t>("sm_90a", "cvt.rz.relu.tf32.f32 d, a;", a);
  for (size_t i = 0; i < kCount; ++i) {
    bool nan = (a[i] & 0x7FFFFFFF) > 0x7F800000;
    uint32_t odd = a[i] >> 13 & 1;
    ASSERT_EQ(nearest[i], nan ? 0x7FFFFFFF : (a[i] + 0xFFF + odd) & ~0x1FFFu)
        << std::hex << a[i];
    ASSERT_EQ(zero[i], nan          ? 0x7FFFFFFF
                       : a[i] >> 31 ? 0
                                    : a[i] & ~0x1FFFu)
        << std::hex << a[i];
  }
}

} // namespace
