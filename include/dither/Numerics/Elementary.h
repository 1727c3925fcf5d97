//===- Elementary.h - exp and tanh with fixed bits --------------*- C++ -*-===//
//
// Scalar definitions of the transcendental functions that compiled kernels
// use. Every step is one IEEE binary32 operation, so code that performs the
// same steps gives the same bits on every target; libm and the approximate GPU
// instructions do not. ExpandMath.cpp emits exactly these steps.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_ELEMENTARY_H
#define DITHER_NUMERICS_ELEMENTARY_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dither::numerics {

/// Constants of exp: x = n ln2 + r, |r| <= ln2/2, e^r by its Taylor polynomial
/// of degree 7 in Horner form (truncation below 2^-29 relative), n ln2 in two
/// parts (Cody and Waite, Software Manual for the Elementary Functions, 1980).
struct ExpConstants {
  static constexpr float kLog2e = 0x1.715476p+0f;
  static constexpr float kLn2Hi = 0x1.62e4p-1f;
  static constexpr float kLn2Lo = 0x1.7f7d1cp-20f;
  /// Adding and subtracting rounds to the nearest integer, ties to even.
  static constexpr float kRound = 0x1.8p23f;
  static constexpr float kMax = 89.0f;   // e^89 overflows
  static constexpr float kMin = -104.0f; // e^-104 rounds to zero
  static constexpr float kPoly[8] = {
      0x1.a01a02p-13f, 0x1.6c16c2p-10f, 0x1.111112p-7f, 0x1.555556p-5f,
      0x1.555556p-3f,  0x1p-1f,         0x1p0f,         0x1p0f};
};

/// e^x: at most 1.5 ulp from the true value; NaN gives NaN, overflow Inf.
inline float exp(float x) {
  using C = ExpConstants;
  // A comparison is false for NaN, which therefore passes through.
  float c = x > C::kMax ? C::kMax : x;
  c = c < C::kMin ? C::kMin : c;
  float n = (c * C::kLog2e + C::kRound) - C::kRound;
  float r = std::fma(n, -C::kLn2Hi, c);
  r = std::fma(n, -C::kLn2Lo, r);
  float p = C::kPoly[0];
  for (int i = 1; i < 8; ++i)
    p = std::fma(p, r, C::kPoly[i]);
  // 2^n in two factors: the result may be subnormal, or n = 128.
  int32_t k = x == x ? int32_t(n) : 0, half = k >> 1;
  auto pow2 = [](int32_t e) {
    uint32_t bits = uint32_t(e + 127) << 23;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  };
  return p * pow2(half) * pow2(k - half);
}

/// tanh(x): odd polynomial below 0.625 (minimax coefficients as published in
/// the Cephes library, tanhf), 1 - 2/(e^2|x| + 1) above; at most 2 ulp. NaN
/// gives NaN.
struct TanhConstants {
  static constexpr float kSmall = 0.625f;
  static constexpr float kPoly[5] = {-5.70498872745e-3f, 2.06390887954e-2f,
                                     -5.37397155531e-2f, 1.33314422036e-1f,
                                     -3.33332819422e-1f};
};

inline float tanh(float x) {
  using C = TanhConstants;
  float a = std::fabs(x), z = x * x;
  float p = C::kPoly[0];
  for (int i = 1; i < 5; ++i)
    p = std::fma(p, z, C::kPoly[i]);
  float small = std::fma(p * z, x, x);
  float big = std::copysign(1.0f - 2.0f / (exp(a + a) + 1.0f), x);
  return a < C::kSmall ? small : big;
}

} // namespace dither::numerics

#endif // DITHER_NUMERICS_ELEMENTARY_H
