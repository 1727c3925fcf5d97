// Conversions to and from the formats of quantized tensors (PTX ISA, cvt),
// against dither's own scalar definitions and by search.
#include "Rounding.h"
#include "SimTest.h"

#include <cmath>

using namespace dither::test;
using namespace dither::numerics;

namespace {

bool isNan(uint32_t x) { return (x & 0x7FFFFFFF) > 0x7F800000; }

/// As decisions in ConvertTest.cpp, of a small format: all its codes.
std::vector<uint32_t> decisions(const ElementFormat &format) {
  std::vector<uint32_t> bits = interestingFloats(2048, 1);
  for (uint32_t code = 0; code <= format.maxCode; ++code) {
    float low = decode(format, code);
    float high = code < format.maxCode ? decode(format, code + 1) : 2 * low;
    for (float x : {low, low + (high - low) / 2, high})
      for (int delta = -2; delta <= 2; ++delta)
        for (uint32_t sign : {0u, 0x80000000u})
          bits.push_back((toBits(x) + uint32_t(delta)) ^ sign);
  }
  return bits;
}

struct Packed {
  const ElementFormat *format;
  const char *type;
};
const Packed packed[] = {{&kE4M3, "e4m3x2"},
                         {&kE5M2, "e5m2x2"},
                         {&kE2M1, "e2m1x2"},
                         {&kE2M3, "e2m3x2"},
                         {&kE3M2, "e3m2x2"}};

/// The result is d in 16 bits, which e2m1x2 fills by half.
std::string convert(const Packed &to, const std::string &modifiers,
                    const std::string &from, const std::string &operands) {
  std::string cvt = "cvt.rn.satfinite." + modifiers + to.type + "." + from;
  if (to.format->storageBits() == 8)
    return cvt + " d, " + operands + ";";
  return ".reg .b8 x, y;\n" + cvt + " x, " + operands +
         ";\ncvt.u8.u32 y, 0;\nmov.b16 d, {x, y};";
}

TEST(Narrow, PairsOfSingles) {
  for (const Packed &to : packed) {
    auto a = decisions(*to.format), b = a;
    std::reverse(b.begin(), b.end());
    for (bool relu : {false, true}) {
      auto got = evaluate<uint16_t>(
          "sm_100a", convert(to, relu ? "relu." : "", "f32", "a, b"), a, b);
      auto code = [&](uint32_t x) {
        if (relu && x >> 31 && !isNan(x))
          return 0u;
        return encode(*to.format, toFloat(x));
      };
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], code(a[i]) << to.format->storageBits() | code(b[i]))
            << to.type << std::hex << " " << a[i] << " " << b[i];
    }
  }
}

/// Every f16 and every bf16 in both halves.
TEST(Narrow, PairsOfHalves) {
  std::vector<uint32_t> a;
  for (uint32_t i = 0; i < 65536; ++i)
    a.push_back(i << 16 | (i * 40503 & 0xFFFF));
  for (const Packed &to : packed)
    for (bool brain : {false, true}) {
      std::string from = brain ? "bf16x2" : "f16x2";
      auto got = evaluate<uint16_t>("sm_100a", convert(to, "", from, "a"), a);
      auto code = [&](uint32_t x) {
        return encode(*to.format,
                      brain ? toFloat(x << 16) : decode(kF16, x & 0xFFFF));
      };
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i],
                  code(a[i] >> 16) << to.format->storageBits() | code(a[i]))
            << to.type << " " << from << std::hex << " " << a[i];
    }
}

TEST(Narrow, PowersOfTwo) {
  std::vector<uint32_t> a = interestingFloats(4096, 2);
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (uint32_t mantissa :
         {0u, 1u, 0x3FFFFFu, 0x400000u, 0x400001u, 0x7FFFFFu})
      for (uint32_t sign : {0u, 0x80000000u})
        a.push_back(sign | exponent << 23 | mantissa);
  auto b = a;
  std::reverse(b.begin(), b.end());
  for (bool up : {false, true}) {
    std::string cvt = std::string("cvt.") + (up ? "rp" : "rz");
    auto code = [&](uint32_t x) -> uint32_t {
      if (isNan(x))
        return 0xFF;
      if (up)
        return encodeE8M0Ceil(toFloat(x));
      // The largest power of two that is not above |x|, at least 2^-127.
      double magnitude = std::fabs(double(toFloat(x)));
      uint32_t found = 0;
      while (found < 0xFE && std::ldexp(1.0, int(found) + 1 - 127) <= magnitude)
        ++found;
      return found;
    };
    auto got = evaluate<uint16_t>(
        "sm_100a", cvt + ".satfinite.ue8m0x2.f32 d, a, b;", a, b);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(got[i], code(a[i]) << 8 | code(b[i]))
          << cvt << std::hex << " " << a[i] << " " << b[i];
    std::vector<uint32_t> brains;
    for (uint32_t i = 0; i < 65536; ++i)
      brains.push_back(i << 16 | (i * 40503 & 0xFFFF));
    got = evaluate<uint16_t>("sm_100a", cvt + ".satfinite.ue8m0x2.bf16x2 d, a;",
                             brains);
    for (size_t i = 0; i < brains.size(); ++i)
      ASSERT_EQ(got[i],
                code(brains[i] & 0xFFFF0000) << 8 | code(brains[i] << 16))
          << cvt << std::hex << " " << brains[i];
  }
}

/// Every pair of codes.
TEST(Narrow, Widening) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i);
  for (const Packed &from : packed) {
    bool bytes = from.format->storageBits() == 8;
    std::string type = from.type;
    for (bool relu : {false, true}) {
      std::string cvt = std::string("cvt.rn.") + (relu ? "relu." : "") +
                        "f16x2." + type + " d, ";
      auto got = evaluate<uint32_t>(
          "sm_100a",
          bytes ? cvt + "a;"
                : ".reg .b8 x, y;\nmov.b16 {x, y}, a;\n" + cvt + "x;",
          all);
      auto half = [&](uint32_t code) {
        float x = decode(*from.format, code);
        return relu && std::signbit(x) && x == x ? 0 : encode(kF16, x);
      };
      uint32_t mask = (1u << from.format->storageBits()) - 1;
      for (uint32_t i = 0; i < 65536; ++i)
        ASSERT_EQ(got[i], half(i >> from.format->storageBits() & mask) << 16 |
                              half(i & mask))
            << cvt << std::hex << i;
    }
  }
  auto got = evaluate<uint32_t>("sm_100a", "cvt.rn.bf16x2.ue8m0x2 d, a;", all);
  for (uint32_t i = 0; i < 65536; ++i)
    ASSERT_EQ(got[i], encode(kBF16, decode(kE8M0, i >> 8)) << 16 |
                          encode(kBF16, decode(kE8M0, i & 255)));
}

/// With all random bits zero the part that is cut off is dropped; the results
/// over all random bits are the two neighbours, in proportion.
TEST(Narrow, Stochastic) {
  auto neighbours = [&](const ElementFormat &format, float x) {
    uint32_t low = roundTo(format, x, Direction::Zero, true);
    return std::pair(low,
                     std::min(low + 1, format.signBit() && x < 0
                                           ? format.signBit() | format.maxCode
                                           : format.maxCode));
  };
  const float values[] = {1.3f, -2.7f, 0.3f, 5.1f, 0x1.8p-8f, 1000.0f, -0.07f};
  for (float x : values) {
    // e4m3x4: elements a, b, e, f, high to low; the same value in all.
    std::vector<uint32_t> a(65536, toBits(x)), random(65536);
    for (uint32_t i = 0; i < 65536; ++i)
      random[i] = i << 16 | i;
    struct Four {
      const ElementFormat *format;
      const char *type;
    };
    for (const Four &to :
         {Four{&kE4M3, "e4m3x4"}, {&kE5M2, "e5m2x4"}, {&kE2M1, "e2m1x4"}}) {
      std::string cvt = std::string("cvt.rs.satfinite.") + to.type + ".f32 ";
      auto got =
          to.format->storageBits() == 8
              ? evaluate<uint32_t>("sm_100a", cvt + "d, {a, a, a, a}, b;", a,
                                   random)
              : evaluate<uint32_t>("sm_100a",
                                   ".reg .b16 h, z;\nmov.b16 z, 0;\n" + cvt +
                                       "h, {a, a, a, a}, b;\n"
                                       "mov.b32 d, {h, z};",
                                   a, random);
      auto [low, high] = neighbours(*to.format, x);
      unsigned bits = to.format->storageBits();
      uint64_t ups = 0;
      for (uint32_t i = 0; i < 65536; ++i)
        for (unsigned e = 0; e < 4; ++e) {
          uint32_t code = got[i] >> (e * bits) & ((1u << bits) - 1);
          ASSERT_TRUE(code == low || code == high) << to.type << " " << x;
          ASSERT_TRUE(i || code == low);
          ups += code != low;
        }
      double lowValue = std::fabs(decode(*to.format, low));
      double highValue = std::fabs(decode(*to.format, high));
      double fraction =
          low == high ? 0 : (std::fabs(x) - lowValue) / (highValue - lowValue);
      ASSERT_NEAR(double(ups) / (4 * 65536), fraction, 0x1p-7)
          << to.type << " " << x;
    }
    // f16x2: 13 bits each, b's in the low half of the random bits.
    std::vector<uint32_t> zero(65536, 0);
    for (uint32_t i = 0; i < 65536; ++i)
      random[i] = i;
    auto got = evaluate<uint32_t>("sm_100a", "cvt.rs.f16x2.f32 d, b, a, c;", a,
                                  a, random);
    auto [low, high] = neighbours(kF16, x);
    uint64_t ups = 0;
    for (uint32_t i = 0; i < 65536; ++i) {
      ASSERT_EQ(got[i] >> 16, low);
      ASSERT_TRUE((got[i] & 0xFFFF) == low || (got[i] & 0xFFFF) == high);
      ups += (got[i] & 0xFFFF) != low;
    }
    double lowValue = std::fabs(decode(kF16, low));
    double highValue = std::fabs(decode(kF16, high));
    ASSERT_NEAR(double(ups) / 65536,
                (std::fabs(x) - lowValue) / (highValue - lowValue), 0x1p-12);
  }
}

} // namespace
