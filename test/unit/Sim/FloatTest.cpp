// Instructions on binary32 and binary64 against the CPU's own arithmetic, one
// operation at a time (PTX ISA, 9.7.3).
#include "SimTest.h"
#include "dither/Numerics/Convert.h"

#include <cfenv>
#include <cmath>
#include <functional>

using namespace dither;
using namespace dither::test;

namespace {

constexpr size_t kCount = 4096;
constexpr uint32_t kNan = 0x7FFFFFFF;

uint32_t canonical(float x) { return x != x ? kNan : toBits(x); }
uint32_t flushed(uint32_t x) { return x & 0x7F800000 ? x : x & 0x80000000; }

/// f(a, b, c) in a rounding mode, out of the compiler's sight.
template <class T>
T rounded(int mode, const std::function<T(T, T, T)> &f, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T result = f(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result;
}

using F3 = std::function<float(float, float, float)>;

struct Operation {
  const char *name, *operands;
  F3 f;
};

/// Noinline: with the rounding mode set, nothing may be folded.
__attribute__((noinline)) float add(float a, float b, float) { return a + b; }
__attribute__((noinline)) float sub(float a, float b, float) { return a - b; }
__attribute__((noinline)) float mul(float a, float b, float) { return a * b; }
__attribute__((noinline)) float quotient(float a, float b, float) {
  return a / b;
}
__attribute__((noinline)) float fused(float a, float b, float c) {
  return std::fma(a, b, c);
}
__attribute__((noinline)) float root(float a, float, float) {
  return std::sqrt(a);
}
__attribute__((noinline)) float reciprocal(float a, float, float) {
  return 1.0f / a;
}

const Operation operations[] = {
    {"add", "a, b", add},      {"sub", "a, b", sub},
    {"mul", "a, b", mul},      {"div", "a, b", quotient},
    {"fma", "a, b, c", fused}, {"mad", "a, b, c", fused},
    {"sqrt", "a", root},       {"rcp", "a", reciprocal}};

TEST(Float, RoundingsFlushingAndSaturation) {
  auto a = interestingFloats(kCount, 1), b = interestingFloats(kCount, 2);
  auto c = interestingFloats(kCount, 3);
  for (size_t i = 0; i < kCount; i += 5) // cancellation
    c[i] = toBits(-(toFloat(a[i]) * toFloat(b[i])));
  for (const Operation &op : operations)
    for (auto [name, mode] : {std::pair<const char *, int>{"rn", FE_TONEAREST},
                              {"rz", FE_TOWARDZERO},
                              {"rm", FE_DOWNWARD},
                              {"rp", FE_UPWARD}})
      for (bool ftz : {false, true}) {
        std::string code = std::string(op.name) + "." + name +
                           (ftz ? ".ftz" : "") + ".f32 d, " + op.operands + ";";
        auto got = evaluate<uint32_t>("sm_90a", code, a, b, c);
        for (size_t i = 0; i < kCount; ++i) {
          auto in = [&](uint32_t x) { return toFloat(ftz ? flushed(x) : x); };
          uint32_t want = canonical(
              rounded<float>(mode, op.f, in(a[i]), in(b[i]), in(c[i])));
          want = ftz ? flushed(want) : want;
          ASSERT_EQ(got[i], want) << code << std::hex << " of " << a[i] << " "
                                  << b[i] << " " << c[i];
        }
      }
  for (const char *name : {"add", "sub", "mul"}) {
    auto plain =
        evaluate<uint32_t>("sm_90a", std::string(name) + ".f32 d, a, b;", a, b);
    auto saturated = evaluate<uint32_t>(
        "sm_90a", std::string(name) + ".sat.f32 d, a, b;", a, b);
    for (size_t i = 0; i < kCount; ++i) {
      float x = toFloat(plain[i]);
      float want = x > 0 ? std::min(x, 1.0f) : 0.0f; // NaN gives +0
      ASSERT_EQ(saturated[i], toBits(want)) << name << " " << x;
    }
  }
}

/// Sources of 16 bits are widened first.
TEST(Float, MixedPrecision) {
  auto bits = interestingFloats(kCount, 20), c = interestingFloats(kCount, 21);
  for (bool brain : {false, true}) {
    std::vector<uint16_t> a, b;
    for (size_t i = 0; i < kCount; ++i) {
      a.push_back(uint16_t(bits[i] >> 16));
      b.push_back(uint16_t(bits[kCount - 1 - i] >> 16));
    }
    auto widen = [&](uint16_t x) {
      return numerics::decode(brain ? numerics::kBF16 : numerics::kF16, x);
    };
    std::string type = brain ? ".f32.bf16 d, a, " : ".f32.f16 d, a, ";
    for (auto [name, mode] : {std::pair<const char *, int>{"rn", FE_TONEAREST},
                              {"rz", FE_TOWARDZERO},
                              {"rm", FE_DOWNWARD},
                              {"rp", FE_UPWARD}}) {
      std::string suffix = "." + std::string(name) + type;
      auto sum = evaluate<uint32_t>("sm_100a", "add" + suffix + "c;", a, b, c);
      auto difference =
          evaluate<uint32_t>("sm_100a", "sub" + suffix + "c;", a, b, c);
      auto product =
          evaluate<uint32_t>("sm_100a", "fma" + suffix + "b, c;", a, b, c);
      for (size_t i = 0; i < kCount; ++i) {
        float x = widen(a[i]), y = widen(b[i]), z = toFloat(c[i]);
        ASSERT_EQ(sum[i], canonical(rounded<float>(mode, add, x, z, 0)));
        ASSERT_EQ(difference[i], canonical(rounded<float>(mode, sub, x, z, 0)));
        ASSERT_EQ(product[i], canonical(rounded<float>(mode, fused, x, y, z)));
      }
    }
    auto plain = evaluate<uint32_t>("sm_100a", "add" + type + "c;", a, b, c);
    auto saturated =
        evaluate<uint32_t>("sm_100a", "add.sat" + type + "c;", a, b, c);
    for (size_t i = 0; i < kCount; ++i) {
      float x = toFloat(plain[i]);
      ASSERT_EQ(saturated[i], toBits(x > 0 ? std::min(x, 1.0f) : 0.0f));
    }
  }
}

/// The ISA's own definition of min and max.
uint32_t extremum(bool isMin, bool nan, uint32_t a, uint32_t b) {
  auto isNan = [](uint32_t x) { return (x & 0x7FFFFFFF) > 0x7F800000; };
  if (isNan(a) || isNan(b)) {
    if (nan || (isNan(a) && isNan(b)))
      return kNan;
    return isNan(a) ? b : a;
  }
  bool aIsLess = toFloat(a) < toFloat(b) ||
                 (toFloat(a) == toFloat(b) && (a >> 31) > (b >> 31));
  return aIsLess == isMin ? a : b;
}

TEST(Float, Extrema) {
  auto a = interestingFloats(kCount, 4), b = interestingFloats(kCount, 5);
  auto c = interestingFloats(kCount, 6);
  for (bool isMin : {true, false})
    for (bool nan : {true, false}) {
      std::string name =
          std::string(isMin ? "min" : "max") + (nan ? ".NaN" : "");
      auto plain = evaluate<uint32_t>("sm_90a", name + ".f32 d, a, b;", a, b);
      auto ftz = evaluate<uint32_t>("sm_90a",
                                    std::string(isMin ? "min.ftz" : "max.ftz") +
                                        (nan ? ".NaN" : "") + ".f32 d, a, b;",
                                    a, b);
      auto xorsign = evaluate<uint32_t>(
          "sm_90a", name + ".xorsign.abs.f32 d, a, b;", a, b);
      auto three =
          evaluate<uint32_t>("sm_100a", name + ".f32 d, a, b, c;", a, b, c);
      for (size_t i = 0; i < kCount; ++i) {
        uint32_t want = extremum(isMin, nan, a[i], b[i]);
        ASSERT_EQ(plain[i], want) << name << std::hex << a[i] << " " << b[i];
        ASSERT_EQ(three[i], extremum(isMin, nan, want, c[i])) << name;
        ASSERT_EQ(ftz[i], extremum(isMin, nan, flushed(a[i]), flushed(b[i])))
            << name;
        uint32_t magnitude =
            extremum(isMin, nan, a[i] & 0x7FFFFFFF, b[i] & 0x7FFFFFFF);
        if (magnitude != kNan)
          magnitude |= (a[i] ^ b[i]) & 0x80000000;
        ASSERT_EQ(xorsign[i], magnitude) << name;
      }
    }
}

TEST(Float, Signs) {
  auto a = interestingFloats(kCount, 7), b = interestingFloats(kCount, 8);
  auto abs = evaluate<uint32_t>("sm_80", "abs.f32 d, a;", a);
  auto neg = evaluate<uint32_t>("sm_80", "neg.f32 d, a;", a);
  auto ftz = evaluate<uint32_t>("sm_80", "neg.ftz.f32 d, a;", a);
  auto copy = evaluate<uint32_t>("sm_80", "copysign.f32 d, a, b;", a, b);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(abs[i], a[i] & 0x7FFFFFFF);
    ASSERT_EQ(neg[i], a[i] ^ 0x80000000);
    ASSERT_EQ(ftz[i], flushed(a[i] ^ 0x80000000));
    ASSERT_EQ(copy[i], (a[i] & 0x80000000) | (b[i] & 0x7FFFFFFF));
  }
}

TEST(Float, Comparisons) {
  auto a = interestingFloats(kCount, 9), b = interestingFloats(kCount, 10);
  for (size_t i = 0; i < kCount; i += 4)
    b[i] = a[i];
  using P = std::function<bool(float, float)>;
  auto unordered = [](float x, float y) { return x != x || y != y; };
  const std::pair<const char *, P> comparisons[] = {
      {"eq", [](float x, float y) { return x == y; }},
      {"ne", [=](float x, float y) { return !unordered(x, y) && x != y; }},
      {"lt", [](float x, float y) { return x < y; }},
      {"le", [](float x, float y) { return x <= y; }},
      {"gt", [](float x, float y) { return x > y; }},
      {"ge", [](float x, float y) { return x >= y; }},
      {"equ", [=](float x, float y) { return unordered(x, y) || x == y; }},
      {"neu", [=](float x, float y) { return unordered(x, y) || x != y; }},
      {"ltu", [=](float x, float y) { return unordered(x, y) || x < y; }},
      {"leu", [=](float x, float y) { return unordered(x, y) || x <= y; }},
      {"gtu", [=](float x, float y) { return unordered(x, y) || x > y; }},
      {"geu", [=](float x, float y) { return unordered(x, y) || x >= y; }},
      {"num", [=](float x, float y) { return !unordered(x, y); }},
      {"nan", unordered}};
  for (const auto &[name, holds] : comparisons) {
    std::string set = std::string(".reg .pred p;\nsetp.") + name;
    auto got = evaluate<uint32_t>(
        "sm_80", set + ".f32 p, a, b;\nselp.b32 d, 1, 0, p;", a, b);
    auto ftz = evaluate<uint32_t>(
        "sm_80", set + ".ftz.f32 p, a, b;\nselp.b32 d, 1, 0, p;", a, b);
    std::vector<double> x, y;
    for (size_t i = 0; i < kCount; ++i) {
      x.push_back(toFloat(a[i]));
      y.push_back(toFloat(b[i]));
    }
    auto wide = evaluate<uint32_t>(
        "sm_80", set + ".f64 p, a, b;\nselp.b32 d, 1, 0, p;", x, y);
    for (size_t i = 0; i < kCount; ++i) {
      bool want = holds(toFloat(a[i]), toFloat(b[i]));
      ASSERT_EQ(got[i], want) << name << std::hex << a[i] << " " << b[i];
      ASSERT_EQ(wide[i], want) << name << std::hex << a[i] << " " << b[i];
      ASSERT_EQ(ftz[i], holds(toFloat(flushed(a[i])), toFloat(flushed(b[i]))))
          << name << std::hex << a[i] << " " << b[i];
    }
  }
  const std::pair<const char *, std::function<bool(float)>> tests[] = {
      {"finite", [](float x) { return std::isfinite(x); }},
      {"infinite", [](float x) { return std::isinf(x); }},
      {"number", [](float x) { return !std::isnan(x); }},
      {"notanumber", [](float x) { return std::isnan(x); }},
      {"normal", [](float x) { return std::isnormal(x) || x == 0; }},
      {"subnormal",
       [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; }}};
  for (const auto &[name, holds] : tests) {
    auto got = evaluate<uint32_t>("sm_80",
                                  std::string(".reg .pred p;\ntestp.") + name +
                                      ".f32 p, a;\nselp.b32 d, 1, 0, p;",
                                  a);
    for (size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(got[i], holds(toFloat(a[i]))) << name << std::hex << a[i];
  }
}

TEST(Float, Pairs) {
  auto a = interestingFloats(2 * kCount, 11),
       b = interestingFloats(2 * kCount, 12);
  auto c = interestingFloats(2 * kCount, 13);
  auto pairs = [](const std::vector<uint32_t> &x) {
    std::vector<uint64_t> result;
    for (size_t i = 0; i < x.size(); i += 2)
      result.push_back(x[i] | uint64_t(x[i + 1]) << 32);
    return result;
  };
  for (const Operation &op : operations) {
    if (std::string(op.name) == "mad")
      break;
    if (std::string(op.name) == "div")
      continue;
    auto got = evaluate<uint64_t>(
        "sm_100a", std::string(op.name) + ".rn.f32x2 d, " + op.operands + ";",
        pairs(a), pairs(b), pairs(c));
    for (size_t i = 0; i < 2 * kCount; ++i)
      ASSERT_EQ(uint32_t(got[i / 2] >> (i % 2 * 32)),
                canonical(op.f(toFloat(a[i]), toFloat(b[i]), toFloat(c[i]))))
          << op.name;
  }
}

TEST(Float, Doubles) {
  std::mt19937_64 random(14);
  std::vector<double> a, b, c;
  for (size_t i = 0; i < kCount; ++i)
    for (std::vector<double> *to : {&a, &b, &c})
      to->push_back(std::ldexp(double(int64_t(random())) / (1LL << 62),
                               int(random() % 40) - 20));
  a[0] = INFINITY;
  b[1] = 0.0;
  a[2] = -0.0;
  b[2] = 0.0;
  auto check = [&](const std::string &code,
                   const std::function<double(double, double, double)> &f) {
    auto got = evaluate<double>("sm_80", code, a, b, c);
    for (size_t i = 0; i < kCount; ++i) {
      double want = f(a[i], b[i], c[i]);
      ASSERT_EQ(std::memcmp(&got[i], &want, 8), 0)
          << code << " of " << a[i] << " " << b[i] << " " << c[i];
    }
  };
  check("add.rn.f64 d, a, b;",
        [](double x, double y, double) { return x + y; });
  check("sub.f64 d, a, b;", [](double x, double y, double) { return x - y; });
  check("mul.f64 d, a, b;", [](double x, double y, double) { return x * y; });
  check("div.rn.f64 d, a, b;",
        [](double x, double y, double) { return x / y; });
  check("fma.rn.f64 d, a, b, c;",
        [](double x, double y, double z) { return std::fma(x, y, z); });
  check("abs.f64 d, a;", [](double x, double, double) { return std::fabs(x); });
  check("neg.f64 d, a;", [](double x, double, double) { return -x; });
  check("min.f64 d, a, b;", [](double x, double y, double) {
    return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
  });
  check("max.f64 d, a, b;", [](double x, double y, double) {
    return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
  });
  auto up = evaluate<double>("sm_80", "div.rp.f64 d, a, b;", a, b);
  auto down = evaluate<double>("sm_80", "div.rm.f64 d, a, b;", a, b);
  size_t apart = 0;
  for (size_t i = 3; i < kCount; ++i) {
    ASSERT_GE(up[i], down[i]);
    ASSERT_TRUE(up[i] == a[i] / b[i] || down[i] == a[i] / b[i]);
    apart += up[i] == std::nextafter(down[i], INFINITY);
  }
  EXPECT_GT(apart, kCount * 9 / 10);
}

/// Within the bounds that the ISA documents, and said to be approximate.
TEST(Float, Approximations) {
  auto bits = interestingFloats(kCount, 15);
  std::vector<float> a;
  for (uint32_t x : bits)
    a.push_back(toFloat(x));
  auto check = [&](const std::string &code,
                   const std::function<double(double)> &f, double relative,
                   double absolute) {
    auto got = evaluate<float>("sm_90a", code, a);
    for (size_t i = 0; i < kCount; ++i) {
      double want = f(a[i]);
      if (std::isnan(want)) {
        ASSERT_EQ(toBits(got[i]), kNan) << code << " of " << a[i];
        continue;
      }
      double bound = std::max(std::fabs(want) * relative, absolute);
      if (std::fabs(want) > 3.4028235e38) // rounds to an infinity
        ASSERT_EQ(got[i], float(want)) << code << " of " << a[i];
      else
        ASSERT_NEAR(got[i], want, bound) << code << " of " << a[i];
    }
  };
  const double tiny = 0x1p-149;
  check(
      "ex2.approx.f32 d, a;", [](double x) { return std::exp2(x); }, 0x1p-22,
      tiny);
  check(
      "lg2.approx.f32 d, a;", [](double x) { return std::log2(x); }, 0x1p-22,
      0x1p-22);
  check(
      "rsqrt.approx.f32 d, a;", [](double x) { return 1 / std::sqrt(x); },
      0x1p-22, 0);
  check(
      "sqrt.approx.f32 d, a;", [](double x) { return std::sqrt(x); }, 0x1p-22,
      tiny);
  check("rcp.approx.f32 d, a;", [](double x) { return 1 / x; }, 0x1p-22, tiny);
  check(
      "tanh.approx.f32 d, a;", [](double x) { return std::tanh(x); }, 0x1p-10,
      tiny);
  check(
      "div.full.f32 d, a, 0f40400000;", [](double x) { return x / 3; }, 0x1p-21,
      tiny);
  auto flush = evaluate<uint32_t>("sm_90a", "ex2.approx.ftz.f32 d, a;",
                                  std::vector<float>{-130.0f, 0x1p-140f});
  EXPECT_EQ(flush, (std::vector<uint32_t>{0, 0x3F800000}));

  Sim sim;
  float *memory = sim.allocate<float>(1);
  must(sim.run(kernelOf(".reg .b32 x;\nex2.approx.f32 x, 0f3F800000;\n"
                        "add.f32 x, x, x;\nst.global.b32 [p0], x;",
                        1),
               32, {memory}));
  EXPECT_EQ(sim.kernel->approximations(),
            std::vector<std::string>{"line 16: ex2.approx.f32"});
  EXPECT_EQ(sim.download(memory, 1)[0], 4.0f);
}

} // namespace
