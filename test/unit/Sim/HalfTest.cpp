// Instructions on f16 and bf16 against exact arithmetic, rounded by search (PTX
// ISA, 9.7.4).
#include "Rounding.h"
#include "SimTest.h"

#include <functional>

using namespace dither::test;
using dither::numerics::ElementFormat;
using dither::numerics::kBF16;
using dither::numerics::kF16;

namespace {

constexpr size_t kCount = 4096;

bool isNan(const ElementFormat &format, uint32_t code) {
  return (code & 0x7FFF) > format.maxCode + 1;
}
bool isInfinite(const ElementFormat &format, uint32_t code) {
  return (code & 0x7FFF) == format.maxCode + 1;
}

/// Patterns of all kinds; `range` limits the exponents (0 for all), so that
/// sums fit in 113 bits.
std::vector<uint16_t> halves(const ElementFormat &format, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<uint16_t> values;
  const uint16_t special[] = {0,
                              0x8000,
                              uint16_t(format.maxCode),
                              uint16_t(format.maxCode + 1),
                              uint16_t(format.maxCode + 0x8001),
                              0x7FFF,
                              0xFFFF,
                              1,
                              0x8001};
  for (size_t i = 0; i < kCount; ++i) {
    uint64_t x = random();
    uint16_t bits = uint16_t(x);
    if (format.exponentBits == 8 && (x >> 32) % 4) // exponents within 2^+-15
      bits = uint16_t((bits & 0x8F7F) | (bits & 0x80 ? 0x4000 : 0x3800));
    if ((x >> 40) % 8 == 0)
      bits = special[(x >> 48) % std::size(special)];
    values.push_back(bits);
  }
  return values;
}

/// f of the values, rounded; NaN for NaNs and where f says so.
using F = std::function<bool(Exact a, Exact b, Exact c, Exact &result)>;

void check(const ElementFormat &format, const std::string &name,
           const std::string &operands, const F &f,
           const std::function<uint32_t(uint32_t)> &after = nullptr) {
  std::string type = format.exponentBits == 8 ? "bf16" : "f16";
  auto a = halves(format, 1), b = halves(format, 2), c = halves(format, 3);
  for (size_t i = 0; i < kCount; i += 7)
    b[i] = a[i];
  std::string code = name + "." + type + " d, " + operands + ";";
  auto got = evaluate<uint16_t>("sm_90a", code, a, b, c);
  auto pack = [](const std::vector<uint16_t> &x) {
    std::vector<uint32_t> pairs(x.size() / 2);
    std::memcpy(pairs.data(), x.data(), 2 * x.size());
    return pairs;
  };
  auto pairs = evaluate<uint32_t>("sm_90a",
                                  name + "." + type + "x2 d, " + operands + ";",
                                  pack(a), pack(b), pack(c));
  EXPECT_EQ(pairs, pack(got)) << code;
  auto value = [&](uint16_t x) {
    return Exact(dither::numerics::decode(format, x));
  };
  size_t checked = 0;
  for (size_t i = 0; i < kCount; ++i) {
    Exact exact = 0;
    uint32_t want = 0x7FFF;
    bool nan = isNan(format, a[i]) || isNan(format, b[i]) ||
               (operands.size() > 4 && isNan(format, c[i]));
    bool infinite = isInfinite(format, a[i]) || isInfinite(format, b[i]) ||
                    (operands.size() > 4 && isInfinite(format, c[i]));
    if (!nan) {
      if (!f(value(a[i]), value(b[i]), value(c[i]), exact))
        continue; // does not fit in 113 bits
      if (exact == exact) {
        // The sign of a zero is that of the CPU's arithmetic.
        want = roundTo(format, exact);
        if (exact == 0 && std::signbit(double(exact)))
          want |= 0x8000;
      }
    }
    if (after)
      want = after(want);
    ASSERT_EQ(got[i], want)
        << code << std::hex << " of " << a[i] << " " << b[i] << " " << c[i];
    checked += !nan && !infinite;
  }
  EXPECT_GT(checked, kCount / 2);
}

TEST(Half, Arithmetic) {
  for (const ElementFormat *format : {&kF16, &kBF16}) {
    F add = [](Exact a, Exact b, Exact, Exact &r) {
      r = a + b;
      Exact back = r - a;
      return !(r - r == 0) || (back == b && r - b == a);
    };
    F sub = [&](Exact a, Exact b, Exact c, Exact &r) {
      return add(a, -b, c, r);
    };
    F mul = [](Exact a, Exact b, Exact, Exact &r) {
      r = a * b;
      return true;
    };
    F fma = [&](Exact a, Exact b, Exact c, Exact &r) {
      return add(a * b, c, 0, r);
    };
    check(*format, "add", "a, b", add);
    check(*format, "add.rn", "a, b", add);
    check(*format, "sub", "a, b", sub);
    check(*format, "mul", "a, b", mul);
    check(*format, "fma.rn", "a, b, c", fma);
    check(*format, "fma.rn.relu", "a, b, c", fma, [](uint32_t x) {
      return x == 0x7FFF ? x : x & 0x8000 ? 0 : x;
    });
  }
  F add = [](Exact a, Exact b, Exact, Exact &r) {
    r = a + b;
    return true;
  };
  check(kF16, "add.sat", "a, b", add, [](uint32_t x) {
    return x == 0x7FFF || x & 0x8000 ? 0u : std::min(x, 0x3C00u);
  });
}

/// Products that are ties of the result's format, but for an addend that
/// neither binary32 nor binary64 holds beside them.
TEST(Half, FmaSeesWhatIsFarBelow) {
  auto bits = [](float x) { return uint16_t(toBits(x) >> 16); };
  // 3 * 87 = 261 lies between 260, the even one, and 262; 267 between 266 and
  // 268, the even one.
  const float tiny = 0x1p-120f;
  std::vector<uint16_t> a(6, bits(3)),
      b = {bits(87), bits(87), bits(87), bits(89), bits(89), bits(89)},
      c = {bits(0), bits(tiny), bits(-tiny), bits(0), bits(tiny), bits(-tiny)};
  auto got = evaluate<uint16_t>("sm_90a", "fma.rn.bf16 d, a, b, c;", a, b, c);
  EXPECT_EQ(got, (std::vector<uint16_t>{bits(260), bits(262), bits(260),
                                        bits(268), bits(268), bits(266)}));
  // 3 * 683 = 2049 lies between 2048, the even one, and 2050; 2^-24 is the
  // least subnormal.
  auto half = [](float x) {
    return uint16_t(dither::numerics::encode(kF16, x));
  };
  a.assign(3, half(3));
  b.assign(3, half(683));
  c = {0, 1, 0x8001};
  got = evaluate<uint16_t>("sm_90a", "fma.rn.f16 d, a, b, c;", a, b, c);
  EXPECT_EQ(got, (std::vector<uint16_t>{half(2048), half(2050), half(2048)}));
}

/// Subnormals are zeros, of sources and of results.
TEST(Half, Flushing) {
  auto flush = [](std::vector<uint16_t> values) {
    for (uint16_t &x : values)
      x = x & 0x7C00 ? x : x & 0x8000;
    return values;
  };
  auto a = halves(kF16, 8), b = halves(kF16, 9), c = halves(kF16, 10);
  for (size_t i = 0; i < kCount; i += 3) // small results
    b[i] = uint16_t((a[i] ^ 0x8000) + i % 5);
  for (const char *code : {"add@.f16 d, a, b;", "mul@.f16 d, a, b;",
                           "fma.rn@.f16 d, a, b, c;", "neg@.f16 d, a;"}) {
    auto with = [&](const char *modifier) {
      std::string text = code;
      return text.replace(text.find('@'), 1, modifier);
    };
    EXPECT_EQ(evaluate<uint16_t>("sm_90a", with(".ftz"), a, b, c),
              flush(evaluate<uint16_t>("sm_90a", with(""), flush(a), flush(b),
                                       flush(c))))
        << code;
  }
}

TEST(Half, ExtremaAndSigns) {
  for (const ElementFormat *format : {&kF16, &kBF16}) {
    std::string type = format->exponentBits == 8 ? "bf16" : "f16";
    auto a = halves(*format, 4), b = halves(*format, 5);
    auto run = [&](const std::string &name) {
      return evaluate<uint16_t>("sm_90a", name + "." + type + " d, a, b;", a,
                                b);
    };
    auto min = run("min"), max = run("max"), minNan = run("min.NaN");
    auto xorsign = run("max.xorsign.abs");
    auto abs = evaluate<uint16_t>("sm_90a", "abs." + type + " d, a;", a);
    auto neg = evaluate<uint16_t>("sm_90a", "neg." + type + " d, a;", a);
    for (size_t i = 0; i < kCount; ++i) {
      auto key = [](uint16_t x) {
        return x & 0x8000 ? 0x7FFF - (x & 0x7FFF) : 0x8000 + x;
      };
      bool nanA = isNan(*format, a[i]), nanB = isNan(*format, b[i]);
      bool less = key(a[i]) < key(b[i]);
      uint16_t small = less ? a[i] : b[i], large = less ? b[i] : a[i];
      if (nanA || nanB)
        small = large = nanA && nanB ? 0x7FFF : nanA ? b[i] : a[i];
      ASSERT_EQ(min[i], small) << std::hex << a[i] << " " << b[i];
      ASSERT_EQ(max[i], large) << std::hex << a[i] << " " << b[i];
      ASSERT_EQ(minNan[i], nanA || nanB ? 0x7FFF : small);
      ASSERT_EQ(abs[i], a[i] & 0x7FFF);
      if (!nanA && !nanB) {
        uint16_t magnitude = std::max<uint16_t>(a[i] & 0x7FFF, b[i] & 0x7FFF);
        ASSERT_EQ(xorsign[i], magnitude | ((a[i] ^ b[i]) & 0x8000));
      }
      ASSERT_EQ(neg[i], a[i] ^ 0x8000);
    }
  }
}

TEST(Half, Comparisons) {
  for (const ElementFormat *format : {&kF16, &kBF16}) {
    std::string type = format->exponentBits == 8 ? "bf16" : "f16";
    auto a = halves(*format, 6), b = halves(*format, 7);
    auto got = evaluate<uint16_t>("sm_90a",
                                  ".reg .pred p;\nsetp.geu." + type +
                                      " p, a, b;\nselp.b16 d, 1, 0, p;",
                                  a, b);
    auto set = evaluate<uint16_t>(
        "sm_90a", "set.lt." + type + "." + type + " d, a, b;", a, b);
    std::vector<uint32_t> x(kCount / 2), y(kCount / 2);
    std::memcpy(x.data(), a.data(), 2 * kCount);
    std::memcpy(y.data(), b.data(), 2 * kCount);
    auto pairs = evaluate<uint32_t>(
        "sm_90a",
        ".reg .pred p, q;\nsetp.geu." + type +
            "x2 p|q, a, b;\n.reg .b32 low, high;\nselp.b32 low, 1, 0, p;\n"
            "selp.b32 high, 65536, 0, q;\nor.b32 d, low, high;",
        x, y);
    for (size_t i = 0; i < kCount; ++i) {
      float u = dither::numerics::decode(*format, a[i]);
      float v = dither::numerics::decode(*format, b[i]);
      ASSERT_EQ(got[i], !(u < v)) << std::hex << a[i] << " " << b[i];
      ASSERT_EQ(set[i], u < v ? (format == &kF16 ? 0x3C00 : 0x3F80) : 0);
      ASSERT_EQ(pairs[i / 2] >> (i % 2 * 16) & 0xFFFF, got[i]);
    }
  }
}

TEST(Half, Approximations) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i);
  auto got = evaluate<uint16_t>("sm_90a", "ex2.approx.f16 d, a;", all);
  auto brain = evaluate<uint16_t>("sm_90a", "tanh.approx.bf16 d, a;", all);
  for (size_t i = 0; i < all.size(); ++i) {
    double x = dither::numerics::decode(kF16, all[i]);
    ASSERT_EQ(got[i], x != x ? 0x7FFF : roundTo(kF16, std::exp2(float(x))));
    double y = dither::numerics::decode(kBF16, all[i]);
    uint32_t want = y != y ? 0x7FFF : roundTo(kBF16, float(std::tanh(y)));
    if (y == 0)
      want = uint32_t(i);
    ASSERT_EQ(brain[i], want) << std::hex << i;
  }
}

} // namespace
