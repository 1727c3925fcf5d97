//===- Elementary.h - Functions with fixed bits -----------------*- C++ -*-===//
//
// The transcendental functions that compiled kernels use. Every step is one
// IEEE binary32 operation, or one of 32-bit integers, so code that performs the
// same steps gives the same bits on every target; libm and the approximate GPU
// instructions do not.
//
// Each is written once, over a class of steps: on numbers here (ScalarSteps,
// what constants fold with) and in IR (ExpandMath.cpp). The polynomials are
// minimax fits whose coefficients were rounded to binary32 one after the other.
// docs/functions.md has the largest error of each over all 2^32 operands.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_ELEMENTARY_H
#define DITHER_NUMERICS_ELEMENTARY_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace dither::numerics {

/// The functions; `evaluate` takes one of them.
enum class Function {
  Exp,
  /// With the bits of Exp, for x <= 0 and NaN.
  ExpOfNonpositive,
  Exp2,
  Log,
  Log2,
  Tanh,
  Sigmoid,
  Erf,
  Sin,
  Cos
};

/// Steps on numbers. `Steps` below stands for a class with these members.
struct ScalarSteps {
  using Value = float;
  using Bits = uint32_t;
  using Condition = bool;

  Value number(float v) { return v; }
  Value add(Value x, Value y) { return x + y; }
  Value sub(Value x, Value y) { return x - y; }
  Value mul(Value x, Value y) { return x * y; }
  Value fma(Value x, Value y, Value z) { return std::fma(x, y, z); }
  Value abs(Value x) { return std::fabs(x); }
  Value copySign(Value x, Value sign) { return std::copysign(x, sign); }
  /// The larger of x and y, the smaller; x if it is NaN.
  Value atLeast(Value x, float y) { return x < y ? y : x; }
  Value atMost(Value x, float y) { return x > y ? y : x; }
  /// 1/x, correctly rounded, for 2^-126 <= x < 2^126 (and NaN): a range in
  /// which no target needs a branch.
  Value reciprocal(Value x) { return 1.0f / x; }

  Condition less(Value x, float y) { return x < y; }
  Condition equal(Value x, float y) { return x == y; }
  /// Unsigned.
  Condition below(Bits x, uint32_t y) { return x < y; }
  Value select(Condition c, Value x, Value y) { return c ? x : y; }

  Bits bits(Value x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    return u;
  }
  Value fromBits(Bits u) {
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  }
  Bits addBits(Bits x, Bits y) { return x + y; }
  Bits subBits(Bits x, Bits y) { return x - y; }
  Bits integer(uint32_t v) { return v; }
  Bits mulBits(Bits x, Bits y) { return x * y; }
  /// The upper 32 bits of the unsigned product.
  Bits mulHigh(Bits x, Bits y) { return (uint64_t(x) * y) >> 32; }
  Bits selectBits(Condition c, Bits x, Bits y) { return c ? x : y; }
  Bits andBits(Bits x, uint32_t y) { return x & y; }
  /// Shifts by 0 to 31; by a constant or by `Bits`.
  Bits shiftLeft(Bits x, unsigned by) { return x << by; }
  Bits shiftRightUnsigned(Bits x, unsigned by) { return x >> by; }
  /// With copies of the sign.
  Bits shiftRight(Bits x, unsigned by) {
    return uint32_t(int64_t(int32_t(x)) >> by);
  }

  using Pair = std::pair<Value, Bits>;
  /// `usual` where `c` holds, and what `rare` makes elsewhere: code that is run
  /// only where some element needs it.
  template <class Rare> Pair usually(Condition c, Pair usual, Rare rare) {
    return c ? usual : rare();
  }
};

namespace elementary {

/// Adding and subtracting rounds to the nearest integer, ties to even. In
/// between, the low bits of the sum are those of the integer.
constexpr float kRound = 0x1.8p23f;
constexpr float kLog2e = 0x1.715476p+0f;
/// ln 2 in two parts; n times the first is exact in a multiply-add.
constexpr float kLn2Hi = 0x1.62e43p-1f, kLn2Lo = -0x1.05c61p-29f;

/// Coefficients from the highest power down.
template <class Steps, size_t N>
typename Steps::Value horner(Steps &s, typename Steps::Value x,
                             const float (&coefficients)[N]) {
  typename Steps::Value p = s.number(coefficients[0]);
  for (size_t i = 1; i < N; ++i)
    p = s.fma(p, x, s.number(coefficients[i]));
  return p;
}

/// e^x for x <= 0 or NaN, scaled in one step: 2^-24 e^r 2^(n + 24), with
/// factors that are normal for every n that matters.
template <class Steps>
typename Steps::Value expOfNegative(Steps &s, typename Steps::Value x) {
  // 2^-24 e^r, |r| <= ln(2)/2, relative error below 2^-28.
  static constexpr float kPoly[] = {
      0x1.6a4d62p-34f, 0x1.12398ep-31f, 0x1.5558b0p-29f, 0x1.555492p-27f,
      0x1.fffffcp-26f, 0x1p-24f,        0x1p-24f};
  constexpr float round = kRound + 127 + 24;
  auto c = s.atLeast(x, -104.0f); // e^-104 rounds to zero
  auto t = s.fma(c, s.number(kLog2e), s.number(round));
  auto n = s.sub(t, s.number(round));
  auto r = s.fma(n, s.number(-kLn2Hi), c);
  r = s.fma(n, s.number(-kLn2Lo), r);
  return s.mul(horner(s, r, kPoly), s.fromBits(s.shiftLeft(s.bits(t), 23)));
}

/// p 2^(2 n), where the bits of `t` are those of n + kRound + 127: in two equal
/// factors, for neither 2^128 nor 2^-150 is a number.
template <class Steps>
typename Steps::Value scaleTwice(Steps &s, typename Steps::Value p,
                                 typename Steps::Value t) {
  auto power = s.fromBits(s.shiftLeft(s.bits(t), 23));
  return s.mul(s.mul(p, power), power);
}

/// `atMost89`: whether x is known to be below 89, or NaN.
template <class Steps>
typename Steps::Value exp(Steps &s, typename Steps::Value x, bool atMost89) {
  // e^r, |r| <= ln(2), relative error below 2^-26.
  static constexpr float kPoly[] = {
      0x1.9baaaep-13f, 0x1.71bf96p-10f, 0x1.1126e4p-7f, 0x1.5549eep-5f,
      0x1.555514p-3f,  0x1.00000cp-1f,  0x1p0f,         0x1p0f};
  constexpr float round = kRound + 127;
  // e^89 overflows, and e^-104 rounds to zero.
  auto c = s.atLeast(atMost89 ? x : s.atMost(x, 89.0f), -104.0f);
  auto t = s.fma(c, s.number(kLog2e / 2), s.number(round));
  auto n = s.sub(t, s.number(round));
  auto r = s.fma(n, s.number(-2 * kLn2Hi), c);
  r = s.fma(n, s.number(-2 * kLn2Lo), r);
  return scaleTwice(s, horner(s, r, kPoly), t);
}

template <class Steps>
typename Steps::Value exp2(Steps &s, typename Steps::Value x) {
  // 2^f, |f| <= 1, relative error below 2^-26.
  static constexpr float kPoly[] = {
      0x1.f4ab76p-17f, 0x1.481d4ap-13f, 0x1.5dbe40p-10f, 0x1.3b1fe8p-7f,
      0x1.c6af9ep-5f,  0x1.ebfbf8p-3f,  0x1.62e432p-1f,  0x1p0f};
  constexpr float round = kRound + 127;
  auto c = s.atLeast(s.atMost(x, 129.0f), -151.0f);
  auto t = s.fma(c, s.number(0.5f), s.number(round));
  auto f = s.fma(s.sub(t, s.number(round)), s.number(-2.0f), c);
  return scaleTwice(s, horner(s, f, kPoly), t);
}

/// 1/(1 + e^-x), from e^-|x|, which does not overflow.
template <class Steps>
typename Steps::Value sigmoid(Steps &s, typename Steps::Value x) {
  auto e = expOfNegative(s, s.sub(s.number(-0.0f), s.abs(x)));
  auto r = s.reciprocal(s.add(e, s.number(1.0f)));
  return s.mul(s.select(s.less(x, 0.0f), e, s.number(1.0f)), r);
}

/// h/(1 + h) with h = (e^2|x| - 1)/2, from (e^2r - 1)/2 of the rest r of |x|.
template <class Steps>
typename Steps::Value tanh(Steps &s, typename Steps::Value x) {
  // (e^2r - 1)/2 = r + r^2 P(r), |r| <= ln(2)/4.
  static constexpr float kPoly[] = {0x1.6b9cccp-5f, 0x1.122562p-3f,
                                    0x1.5556f2p-2f, 0x1.5554b4p-1f,
                                    0x1.fffffep-1f};
  auto a = s.atMost(s.abs(x), 9.5f);
  // The last bits of this constant are 127: those of t are 2^n, once shifted.
  constexpr float round = kRound + 127;
  auto t = s.fma(a, s.number(2 * kLog2e), s.number(round));
  auto n = s.sub(t, s.number(round));
  // What ln 2 lacks is nothing beside e^2|x| where n is large.
  auto r = s.fma(n, s.number(-kLn2Hi / 2), a);
  auto q = s.fma(s.mul(r, r), horner(s, r, kPoly), r);
  auto p = s.fromBits(s.shiftLeft(s.bits(t), 23));
  auto h = s.fma(p, q, s.fma(p, s.number(0.5f), s.number(-0.5f)));
  auto y = s.mul(h, s.reciprocal(s.add(h, s.number(1.0f))));
  return s.copySign(y, x);
}

/// x + x P(x^2) for small x, and 1 - 2^-Q(|x|) for others.
template <class Steps>
typename Steps::Value erf(Steps &s, typename Steps::Value x) {
  static constexpr float kSmall[] = {-0x1.3d5fe4p-11f, 0x1.47f6fcp-8f,
                                     -0x1.b6a7c6p-6f,  0x1.ce1c1ep-4f,
                                     -0x1.8126eep-2f,  0x1.06eba6p-3f};
  // -log2(1 - erf(a)), 0.9 <= a <= 3.95.
  static constexpr float kLarge[] = {
      -0x1.2a483ep-12f, 0x1.20e618p-8f, -0x1.074814p-5f, 0x1.336472p-3f,
      0x1.d69210p-1f,   0x1.a082fcp+0f, 0x1.0c8110p-12f};
  static constexpr float kExp2[] = {0x1.5bd98ap-10f, 0x1.3ce8b8p-7f,
                                    0x1.c6b6dap-5f,  0x1.ebf9c2p-3f,
                                    0x1.62e42ap-1f,  0x1p0f};
  auto a = s.atMost(s.abs(x), 3.95f), z = s.mul(x, x);
  auto small = s.fma(horner(s, z, kSmall), x, x);
  auto q = horner(s, a, kLarge);
  constexpr float round = kRound + 127;
  auto t = s.sub(s.number(round), q);
  auto f = s.sub(s.sub(s.number(round), t), q); // of -q
  auto minusPower =
      s.fromBits(s.addBits(s.shiftLeft(s.bits(t), 23), s.integer(0x80000000)));
  auto large = s.fma(minusPower, horner(s, f, kExp2), s.number(1.0f));
  large = s.copySign(large, x);
  return s.select(s.less(a, 0.9f), small, large);
}

/// x = 2^k m with 2/3 <= m < 4/3, and ln(m).
template <class Steps> struct Logarithm {
  typename Steps::Value exponent, fraction;
};

template <class Steps>
Logarithm<Steps> splitLog(Steps &s, typename Steps::Value x) {
  // ln(1 + f) = f + f^2 P(f).
  static constexpr float kPoly[] = {
      -0x1.07c50ep-3f, 0x1.1e6d1ap-3f,  -0x1.f33276p-4f,
      0x1.1ed55ap-3f,  -0x1.559c68p-3f, 0x1.99d050p-3f,
      -0x1.fffefap-3f, 0x1.555506p-2f,  -0x1p-1f};
  auto subnormal = s.less(x, 0x1p-126f);
  auto y = s.bits(s.select(subnormal, s.mul(x, s.number(0x1p23f)), x));
  auto k = s.andBits(s.subBits(y, s.integer(0x3f2aaaab)), 0xff800000);
  auto f = s.sub(s.fromBits(s.subBits(y, k)), s.number(1.0f));
  auto rounded =
      s.fromBits(s.addBits(s.shiftRight(k, 23), s.integer(0x4b400000)));
  auto bias = s.select(subnormal, s.number(kRound + 23), s.number(kRound));
  return {s.sub(rounded, bias), s.fma(s.mul(f, f), horner(s, f, kPoly), f)};
}

/// `y` for positive finite x; -Inf for zeros, Inf for Inf, NaN for others.
template <class Steps>
typename Steps::Value logOrSpecial(Steps &s, typename Steps::Value x,
                                   typename Steps::Value y) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  auto special = s.fma(x, s.number(inf), s.number(inf));
  y = s.select(s.below(s.bits(x), 0x7f800000), y, special);
  return s.select(s.equal(x, 0.0f), s.number(-inf), y);
}

template <class Steps>
typename Steps::Value log(Steps &s, typename Steps::Value x) {
  auto l = splitLog(s, x);
  return logOrSpecial(s, x, s.fma(l.exponent, s.number(kLn2Hi), l.fraction));
}

template <class Steps>
typename Steps::Value log2(Steps &s, typename Steps::Value x) {
  auto l = splitLog(s, x);
  return logOrSpecial(s, x, s.fma(l.fraction, s.number(kLog2e), l.exponent));
}

//===----------------------------------------------------------------------===//
// Sine and cosine
//===----------------------------------------------------------------------===//

/// The quadrant of a positive number (the nearest multiple of pi/2; its last
/// two bits count) and the rest, within pi/4 of zero.
template <class Steps>
std::pair<typename Steps::Value, typename Steps::Bits>
quadrantOf(Steps &s, typename Steps::Value a) {
  // pi/2 in three parts. The first difference is exact.
  constexpr float first = 0x1.921fb6p+0f, second = -0x1.777a5cp-25f,
                  third = -0x1.ee59dap-50f;
  auto t = s.fma(a, s.number(0x1.45f306p-1f), s.number(kRound));
  auto n = s.sub(t, s.number(kRound));
  auto r = s.fma(n, s.number(-first), a);
  r = s.fma(n, s.number(-second), r);
  r = s.fma(n, s.number(-third), r);
  return {r, s.bits(t)};
}

/// The same for 2^16 and above, from the bits of 2/pi that matter to such a
/// number (Payne and Hanek, "Radian reduction for trigonometric functions",
/// SIGNUM Newsletter 18, 1983). NaN for Inf and NaN.
template <class Steps>
std::pair<typename Steps::Value, typename Steps::Bits>
quadrantOfLarge(Steps &s, typename Steps::Value a) {
  // The bits of 2/pi from that of 2^8 on.
  static constexpr uint32_t kTwoOverPi[] = {0x00517cc1, 0xb727220a, 0x94fe13ab,
                                            0xe8fa9a6e, 0xe06db14a, 0xcc9e21c8,
                                            0x20ff28b1};
  // a = m 2^(p - 7). What 2/pi has before bit p gives multiples of 4.
  auto m = s.addBits(s.andBits(s.bits(a), 0x7fffff), s.integer(0x800000));
  auto p = s.subBits(s.shiftRight(s.bits(a), 23), s.integer(143));
  typename Steps::Bits words[4], window[3];
  auto below64 = s.below(p, 64), even = s.below(s.andBits(p, 32), 1);
  typename Steps::Bits next =
      s.selectBits(below64, s.integer(kTwoOverPi[0]), s.integer(kTwoOverPi[2]));
  for (int i = 0; i < 4; ++i) {
    auto word = next;
    next = s.selectBits(below64, s.integer(kTwoOverPi[i + 1]),
                        s.integer(kTwoOverPi[i + 3]));
    words[i] = s.selectBits(even, word, next);
  }
  auto left = s.andBits(p, 31), right = s.subBits(s.integer(31), left);
  for (int i = 0; i < 3; ++i)
    window[i] = s.addBits(
        s.shiftLeft(words[i], left),
        s.shiftRightUnsigned(s.shiftRightUnsigned(words[i + 1], 1), right));
  // The upper 64 bits of m times the window, modulo 2^96: two of the quadrant,
  // and 62 after the point.
  auto carried = s.mulHigh(m, window[2]);
  auto low = s.addBits(s.mulBits(m, window[1]), carried);
  auto carry = s.selectBits(s.below(low, carried), s.integer(1), s.integer(0));
  auto high = s.addBits(s.addBits(s.mulBits(m, window[0]), carry),
                        s.mulHigh(m, window[1]));
  auto quadrant =
      s.shiftRightUnsigned(s.addBits(high, s.integer(0x20000000)), 30);
  high = s.subBits(high, s.shiftLeft(quadrant, 30));
  // As numbers, each of them exact: 22 bits rounded, so that what is left of a
  // small rest is not a difference of large numbers, 22 with a sign, and 18.
  auto number = [&](typename Steps::Bits bits) {
    return s.sub(s.fromBits(s.addBits(bits, s.integer(0x4b400000))),
                 s.number(kRound));
  };
  auto rounded = s.shiftRight(s.addBits(high, s.integer(0x80)), 8);
  auto beneath = s.shiftLeft(s.subBits(high, s.shiftLeft(rounded, 8)), 14);
  auto upper = number(rounded),
       middle = number(s.addBits(beneath, s.shiftRightUnsigned(low, 18))),
       lower = number(s.andBits(low, 0x3ffff));
  auto rest = s.fma(lower, s.number(0x1p-18f), middle);
  auto f = s.fma(upper, s.number(0x1p22f), rest);
  rest = s.sub(rest, s.fma(upper, s.number(-0x1p22f), f));
  // Times pi/2, in two parts.
  auto r = s.fma(f, s.number(-0x1.777a5cp-69f),
                 s.mul(rest, s.number(0x1.921fb6p-44f)));
  r = s.fma(f, s.number(0x1.921fb6p-44f), r);
  return {s.fma(a, s.number(0.0f), r), quadrant};
}

/// sin(x), or cos(x), which is a quadrant ahead.
template <class Steps>
typename Steps::Value sine(Steps &s, typename Steps::Value x, bool cosine) {
  // sin(r) = r + r^3 P(r^2) and cos(r) = 1 + r^2 P(r^2), |r| <= pi/4.
  static constexpr float kSin[] = {-0x1.9951eap-13f, 0x1.110774p-7f,
                                   -0x1.555546p-3f};
  static constexpr float kCos[] = {0x1.99e80cp-16f, -0x1.6c0c28p-10f,
                                   0x1.55554ap-5f, -0x1p-1f};
  auto a = s.abs(x);
  auto [r, quadrant] = s.usually(
      s.less(a, 0x1p16f), quadrantOf(s, a),
      [&]() -> std::pair<typename Steps::Value, typename Steps::Bits> {
        return quadrantOfLarge(s, a);
      });
  if (cosine)
    quadrant = s.addBits(quadrant, s.integer(1));
  auto z = s.mul(r, r);
  auto sin = s.fma(s.mul(z, r), horner(s, z, kSin), r);
  auto cos = s.fma(z, horner(s, z, kCos), s.number(1.0f));
  auto y = s.select(s.below(s.andBits(quadrant, 1), 1), sin, cos);
  // The sign of the half turn, and of an odd function's operand.
  auto sign = s.shiftLeft(s.andBits(quadrant, 2), 30);
  if (!cosine)
    sign = s.addBits(sign, s.andBits(s.bits(x), 0x80000000));
  return s.fromBits(s.addBits(s.bits(y), sign));
}

} // namespace elementary

/// A function of x in the steps of `s`. NaN gives NaN.
template <class Steps>
typename Steps::Value evaluate(Function function, Steps &s,
                               typename Steps::Value x) {
  switch (function) {
  case Function::Exp:
    return elementary::exp(s, x, /*atMost89=*/false);
  case Function::ExpOfNonpositive:
    return elementary::exp(s, x, /*atMost89=*/true);
  case Function::Exp2:
    return elementary::exp2(s, x);
  case Function::Log:
    return elementary::log(s, x);
  case Function::Log2:
    return elementary::log2(s, x);
  case Function::Tanh:
    return elementary::tanh(s, x);
  case Function::Sigmoid:
    return elementary::sigmoid(s, x);
  case Function::Erf:
    return elementary::erf(s, x);
  case Function::Sin:
    return elementary::sine(s, x, /*cosine=*/false);
  case Function::Cos:
    return elementary::sine(s, x, /*cosine=*/true);
  }
  return x;
}

/// Of a number.
float evaluate(Function function, float x);

/// The number of steps of a function: about how many instructions it becomes.
int stepsOf(Function function);

} // namespace dither::numerics

#endif // DITHER_NUMERICS_ELEMENTARY_H
