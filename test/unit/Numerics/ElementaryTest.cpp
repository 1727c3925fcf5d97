// What the functions of Numerics/Elementary.h promise (docs/functions.md).
// With DITHER_EVERY_FLOAT set, over all operands, and printed.

#include "dither/Numerics/Elementary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace dither::numerics;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float fromBits(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

double logistic(double x) {
  double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

/// The largest error in units of the last place, rounded up, and a function
/// that is far more exact.
struct Promise {
  Function function;
  const char *name;
  double ulps;
  double (*exact)(double);
};
const Promise kPromises[] = {
    {Function::Exp, "exp", 1.65, std::exp},
    {Function::Exp2, "exp2", 1.21, std::exp2},
    {Function::Log, "log", 0.94, std::log},
    {Function::Log2, "log2", 1.75, std::log2},
    {Function::Tanh, "tanh", 2.97, std::tanh},
    {Function::Sigmoid, "sigmoid", 2.79, logistic},
    {Function::Erf, "erf", 1.53, std::erf},
    {Function::Sin, "sin", 1.54, std::sin},
    {Function::Cos, "cos", 1.54, std::cos},
};

/// Of `got` in units of the last place of f32 at `want`. Infinity counts as
/// 2^128, what comes after the largest number.
double ulps(float got, double want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0.0 : HUGE_VAL;
  if (std::isinf(want))
    return got == want ? 0.0 : HUGE_VAL;
  if (std::isinf(got) && std::fabs(want) >= 0x1.ffffffp127)
    return 0.0;
  int exponent;
  std::frexp(want, &exponent);
  exponent = std::clamp(exponent - 24, -149, 104);
  double value = std::isinf(got) ? std::copysign(0x1p128, got) : double(got);
  return std::ldexp(std::fabs(value - want), -exponent);
}

struct Worst {
  double ulps = 0;
  float at = 0;
  uint64_t nearest = 0, count = 0;
};

/// Of the operands `first`, `first + step`, ..
Worst measure(const Promise &promise, uint64_t first, uint64_t step) {
  Worst worst;
  for (uint64_t u = first; u < (uint64_t(1) << 32); u += step) {
    float x = fromBits(uint32_t(u));
    double error = ulps(evaluate(promise.function, x), promise.exact(x));
    if (error > worst.ulps)
      worst.ulps = error, worst.at = x;
    worst.nearest += error <= 0.5;
    ++worst.count;
  }
  return worst;
}

TEST(Elementary, ErrorsAreAsPromised) {
  bool every = std::getenv("DITHER_EVERY_FLOAT");
  unsigned threads =
      every ? std::max(1u, std::thread::hardware_concurrency()) : 1;
  for (const Promise &promise : kPromises) {
    std::vector<Worst> parts(threads);
    std::vector<std::thread> pool;
    for (unsigned i = 0; i < threads; ++i)
      pool.emplace_back(
          [&, i] { parts[i] = measure(promise, i, every ? threads : 4093); });
    for (std::thread &thread : pool)
      thread.join();
    Worst all;
    for (const Worst &part : parts) {
      if (part.ulps > all.ulps)
        all.ulps = part.ulps, all.at = part.at;
      all.nearest += part.nearest, all.count += part.count;
    }
    EXPECT_LE(all.ulps, promise.ulps) << promise.name << " at " << all.at;
    if (every)
      std::printf("%-8s %.4f ulp at %a, %.3f %% not the nearest, %d steps\n",
                  promise.name, all.ulps, all.at,
                  100.0 * double(all.count - all.nearest) / double(all.count),
                  stepsOf(promise.function));
  }
}

TEST(Elementary, ExpOfNonpositiveIsExp) {
  for (uint64_t u = 0x80000000; u < (uint64_t(1) << 32); u += 4093) {
    float x = fromBits(uint32_t(u)), want = evaluate(Function::Exp, x),
          got = evaluate(Function::ExpOfNonpositive, x);
    ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << x;
  }
}

TEST(Elementary, SpecialValues) {
  auto is = [](Function f, float x, float want) {
    float got = evaluate(f, x);
    EXPECT_TRUE(std::isnan(want)
                    ? std::isnan(got)
                    : got == want && std::signbit(got) == std::signbit(want))
        << int(f) << " of " << x << " is " << got;
  };
  for (const Promise &promise : kPromises)
    is(promise.function, kNaN, kNaN);
  for (Function f : {Function::Exp, Function::Exp2}) {
    is(f, kInf, kInf);
    is(f, 3e38f, kInf);
    is(f, -kInf, 0.0f);
    is(f, -3e38f, 0.0f);
    is(f, -0.0f, 1.0f);
  }
  is(Function::Exp2, -149.0f, 0x1p-149f);
  is(Function::Exp2, 127.0f, 0x1p127f);
  for (Function f : {Function::Log, Function::Log2}) {
    is(f, 0.0f, -kInf);
    is(f, -0.0f, -kInf);
    is(f, kInf, kInf);
    is(f, -1.0f, kNaN);
    is(f, -kInf, kNaN);
    is(f, 1.0f, 0.0f);
  }
  is(Function::Log2, 0x1p-149f, -149.0f);
  for (Function f : {Function::Tanh, Function::Erf})
    for (float sign : {1.0f, -1.0f}) {
      is(f, sign * 0.0f, sign * 0.0f);
      is(f, sign * 0x1p-149f, sign * 0x1p-149f);
      is(f, sign * 3e38f, sign);
      is(f, sign * kInf, sign);
    }
  for (Function f : {Function::Sin, Function::Cos})
    for (float sign : {1.0f, -1.0f})
      is(f, sign * kInf, kNaN);
  for (float sign : {1.0f, -1.0f}) {
    is(Function::Sin, sign * 0.0f, sign * 0.0f);
    is(Function::Sin, sign * 0x1p-149f, sign * 0x1p-149f);
    is(Function::Cos, sign * 0.0f, 1.0f);
  }
  is(Function::Sigmoid, kInf, 1.0f);
  is(Function::Sigmoid, -kInf, 0.0f);
  is(Function::Sigmoid, -0.0f, 0.5f);
}

/// One step of Newton's from an approximation of 1/x, as GPUs take it.
float refined(float x, float r) {
  return std::fma(r, std::fma(-x, r, 1.0f), r);
}

TEST(Elementary, OneStepGivesTheNearestReciprocal) {
  // From the nearest number always. From its neighbours, which the PTX ISA
  // allows within a relative error of 2^-23, but for 11 mantissas.
  int wrong = 0;
  for (uint32_t u = 0x3F800000; u <= 0x40000000; ++u) {
    float x = fromBits(u), want = 1.0f / x;
    ASSERT_EQ(refined(x, want), want) << x;
    for (float r : {std::nextafter(want, 0.0f), std::nextafter(want, 2.0f)})
      wrong +=
          std::fabs(double(r) * x - 1.0) <= 0x1p-23 && refined(x, r) != want;
  }
  EXPECT_EQ(wrong, 11);
}

TEST(Elementary, ReciprocalsDivide) {
  // dither-share-reciprocals. Where b r is not 1, q0 = fl(a r) may be an ulp
  // and a half off, and q0 - r (b q0 - a) then is within 1.5 m 2^-25 ulp of
  // a/b, m = b 2^-23. It rounds to another number only if it is that near to
  // the middle of two, M / 2: with integers a and b of 24 bits, 2^k a = b M + d
  // for |d| <= 3. Those are all tried: M follows from b and d modulo 2^k.
  uint64_t tried = 0;
  for (int shift = 0; shift <= 1; ++shift)
    for (uint32_t b = (1u << (23 - shift)) + 1; b < 1u << (24 - shift);
         b += 2) {
      uint32_t inverse = b;
      for (int i = 0; i < 5; ++i)
        inverse *= 2 - b * inverse;
      for (int d : {-3, -1, 1, 3})
        for (int k : {24 - shift, 25 - shift}) {
          uint32_t modulus = 1u << k;
          for (uint64_t m = uint32_t(-d) * inverse & (modulus - 1);
               m < 1u << 25; m += modulus) {
            uint64_t a = (b * m + uint64_t(int64_t(d))) >> k;
            if (m < 1u << 24 || a < 1u << 23 || a >= 1u << 24)
              continue;
            float x = float(a), y = float(uint64_t(b) << shift);
            float r = 1.0f / y, q = x * r;
            ASSERT_EQ(std::fma(std::fma(y, q, -x), -r, q), x / y)
                << x << "/" << y;
            ++tried;
          }
        }
    }
  EXPECT_GT(tried, 10000000u);
}

} // namespace
