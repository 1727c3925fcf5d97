// Narrow conversions against those that CUDA's headers do on the host: every
// binary16 and bfloat16, and every binary32 within two ulps of where a result
// changes. Nothing here knows dither's own conversions.
#include "SimTest.h"

#if __has_include(<cuda_fp4.h>)
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cmath>

using namespace dither::test;

namespace {

bool isNan(uint32_t x) { return (x & 0x7FFFFFFF) > 0x7F800000; }

/// A format whose values have a sign.
struct Format {
  const char *type;
  unsigned bits;    ///< of memory
  uint32_t maxCode; ///< of the largest finite value
  uint8_t (*ofFloat)(float);
  uint8_t (*ofHalf)(__half_raw);
  __half_raw (*toHalf)(uint8_t);
};

const Format formats[] = {
    {"e4m3x2", 8, 0x7E,
     [](float x) -> uint8_t {
       return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
     },
     [](__half_raw x) -> uint8_t {
       return __nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
     },
     [](uint8_t x) { return __nv_cvt_fp8_to_halfraw(x, __NV_E4M3); }},
    {"e5m2x2", 8, 0x7B,
     [](float x) -> uint8_t {
       return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
     },
     [](__half_raw x) -> uint8_t {
       return __nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
     },
     [](uint8_t x) { return __nv_cvt_fp8_to_halfraw(x, __NV_E5M2); }},
    {"e2m1x2", 4, 0x7,
     [](float x) -> uint8_t {
       return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
     },
     [](__half_raw x) -> uint8_t {
       return __nv_cvt_halfraw_to_fp4(x, __NV_E2M1, cudaRoundNearest);
     },
     [](uint8_t x) { return __nv_cvt_fp4_to_halfraw(x, __NV_E2M1); }},
    {"e2m3x2", 8, 0x1F,
     [](float x) -> uint8_t {
       return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest);
     },
     [](__half_raw x) -> uint8_t {
       return __nv_cvt_halfraw_to_fp6(x, __NV_E2M3, cudaRoundNearest);
     },
     [](uint8_t x) { return __nv_cvt_fp6_to_halfraw(x, __NV_E2M3); }},
    {"e3m2x2", 8, 0x1F,
     [](float x) -> uint8_t {
       return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest);
     },
     [](__half_raw x) -> uint8_t {
       return __nv_cvt_halfraw_to_fp6(x, __NV_E3M2, cudaRoundNearest);
     },
     [](uint8_t x) { return __nv_cvt_fp6_to_halfraw(x, __NV_E3M2); }}};

/// Adds the binary32 values within two ulps of x, of both signs.
void addAround(std::vector<uint32_t> &values, float x) {
  for (int delta = -2; delta <= 2; ++delta)
    for (uint32_t sign : {0u, 0x80000000u})
      values.push_back((toBits(x) + uint32_t(delta)) ^ sign);
}

/// Around all values of a format and the midpoints between neighbours, the one
/// above the largest included; around zero, infinity and the NaNs.
std::vector<uint32_t> decisions(const std::vector<float> &magnitudes) {
  std::vector<uint32_t> values = {0x7FC00000, 0x7F800001, 0xFFFFFFFF};
  for (size_t i = 0; i < magnitudes.size(); ++i) {
    float low = magnitudes[i];
    float high = i + 1 < magnitudes.size() ? magnitudes[i + 1]
                                           : low + (low - magnitudes[i - 1]);
    addAround(values, low);
    addAround(values, low + (high - low) / 2);
    addAround(values, high);
  }
  addAround(values, INFINITY);
  return values;
}

std::vector<float> magnitudes(const Format &format) {
  std::vector<float> values;
  for (uint32_t code = 0; code <= format.maxCode; ++code)
    values.push_back(__half2float(__half(format.toHalf(uint8_t(code)))));
  return values;
}

/// Every bfloat16, as binary32.
std::vector<uint32_t> brains() {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < 65536; ++i)
    values.push_back(i << 16);
  return values;
}

/// Every 16-bit pattern in the high half, others in the low half.
std::vector<uint32_t> pairs() {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < 65536; ++i)
    values.push_back(i << 16 | (i * 40503 & 0xFFFF));
  return values;
}

/// The result is d in 16 bits, which e2m1x2 fills by half.
std::string convert(const Format &to, bool relu, const std::string &operands) {
  std::string cvt =
      std::string("cvt.rn.satfinite.") + (relu ? "relu." : "") + to.type + ".";
  if (to.bits == 8)
    return cvt + operands + ";";
  size_t at = operands.find(" d,");
  return ".reg .b8 x, y;\n" + cvt + operands.substr(0, at) + " x," +
         operands.substr(at + 3) + ";\ncvt.u8.u32 y, 0;\nmov.b16 d, {x, y};";
}

/// Negative values and -0 become 0; NaNs stay.
uint32_t clip(uint32_t x, bool relu) {
  return relu && x >> 31 && !isNan(x) ? 0 : x;
}

TEST(CudaHeaders, SinglesToNarrow) {
  for (const Format &to : formats)
    for (bool relu : {false, true})
      for (const auto &a : {decisions(magnitudes(to)), brains()}) {
        auto b = a;
        std::reverse(b.begin(), b.end());
        auto code = convert(to, relu, "f32 d, a, b");
        auto got = evaluate<uint16_t>("sm_100a", code, a, b);
        for (size_t i = 0; i < a.size(); ++i)
          ASSERT_EQ(got[i], to.ofFloat(toFloat(clip(a[i], relu))) << to.bits |
                                to.ofFloat(toFloat(clip(b[i], relu))))
              << code << std::hex << " " << a[i] << " " << b[i];
      }
}

/// Conversions of pairs of 16 bits to every format, with and without .relu.
/// `narrow` is the code of a half.
void comparePairs(
    const std::string &from,
    llvm::function_ref<uint32_t(const Format &, bool relu, uint16_t)> narrow) {
  auto a = pairs();
  for (const Format &to : formats)
    for (bool relu : {false, true}) {
      auto code = convert(to, relu, from + " d, a");
      auto got = evaluate<uint16_t>("sm_100a", code, a);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], narrow(to, relu, uint16_t(a[i] >> 16)) << to.bits |
                              narrow(to, relu, uint16_t(a[i])))
            << code << std::hex << " " << a[i];
    }
}

TEST(CudaHeaders, HalvesToNarrow) {
  comparePairs("f16x2", [](const Format &to, bool relu, uint16_t x) {
    bool negative = x & 0x8000, nan = (x & 0x7FFF) > 0x7C00;
    __half_raw half;
    half.x = uint16_t(relu && negative && !nan ? 0 : x);
    return uint32_t(to.ofHalf(half));
  });
}

/// As of the single precision number of the same value.
TEST(CudaHeaders, BrainsToNarrow) {
  comparePairs("bf16x2", [](const Format &to, bool relu, uint16_t x) {
    return uint32_t(to.ofFloat(toFloat(clip(uint32_t(x) << 16, relu))));
  });
}

/// Scales, up and towards zero; what is too large is clipped or a NaN.
TEST(CudaHeaders, PowersOfTwo) {
  std::vector<float> powers = {0};
  for (int exponent = -127; exponent < 128; ++exponent)
    powers.push_back(std::ldexp(1.0f, exponent));
  auto a = decisions(powers), all = brains(), halves = pairs();
  a.insert(a.end(), all.begin(), all.end());
  addAround(a, std::nextafter(INFINITY, 0.0f));
  auto b = a;
  std::reverse(b.begin(), b.end());
  for (bool up : {false, true})
    for (bool saturate : {false, true}) {
      auto mode = saturate ? __NV_SATFINITE : __NV_NOSAT;
      auto rounding = up ? cudaRoundPosInf : cudaRoundZero;
      std::string cvt = std::string("cvt.") + (up ? "rp" : "rz") +
                        (saturate ? ".satfinite" : "") + ".ue8m0x2.";
      auto got = evaluate<uint16_t>("sm_100a", cvt + "f32 d, a, b;", a, b);
      auto scale = [&](uint32_t x) {
        return uint32_t(__nv_cvt_float_to_e8m0(toFloat(x), mode, rounding));
      };
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], scale(a[i]) << 8 | scale(b[i]))
            << cvt << std::hex << a[i] << " " << b[i];
      got = evaluate<uint16_t>("sm_100a", cvt + "bf16x2 d, a;", halves);
      auto ofBrain = [&](uint32_t x) {
        __nv_bfloat16_raw brain;
        brain.x = uint16_t(x);
        return uint32_t(__nv_cvt_bfloat16raw_to_e8m0(brain, mode, rounding));
      };
      for (size_t i = 0; i < halves.size(); ++i)
        ASSERT_EQ(got[i],
                  ofBrain(halves[i] >> 16) << 8 | ofBrain(halves[i] & 0xFFFF))
            << cvt << std::hex << halves[i];
    }
}

/// To binary16 and bfloat16, in both roundings that the headers have.
TEST(CudaHeaders, SinglesToHalves) {
  for (bool brain : {false, true}) {
    std::vector<float> values;
    for (uint32_t code = 0; code <= (brain ? 0x7F7Fu : 0x7BFFu); ++code) {
      __half_raw half;
      half.x = uint16_t(code);
      values.push_back(brain ? toFloat(code << 16)
                             : __half2float(__half(half)));
    }
    auto a = decisions(values);
    for (bool nearest : {false, true}) {
      std::string cvt = std::string("cvt.") + (nearest ? "rn." : "rz.") +
                        (brain ? "bf16" : "f16") + ".f32 d, a;";
      auto got = evaluate<uint16_t>("sm_90a", cvt, a);
      auto host = [&](float x) {
        if (brain)
          return __nv_bfloat16_raw(nearest ? __float2bfloat16_rn(x)
                                           : __float2bfloat16_rz(x))
              .x;
        return __half_raw(nearest ? __float2half_rn(x) : __float2half_rz(x)).x;
      };
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], host(toFloat(a[i]))) << cvt << std::hex << a[i];
    }
  }
}

/// Every pair of codes, widened.
TEST(CudaHeaders, NarrowToHalves) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i);
  for (const Format &from : formats) {
    std::string cvt = std::string("cvt.rn.f16x2.") + from.type + " d, ";
    if (from.bits == 8)
      cvt += "a;";
    else
      cvt = ".reg .b8 x, y;\nmov.b16 {x, y}, a;\n" + cvt + "x;";
    auto got = evaluate<uint32_t>("sm_100a", cvt, all);
    uint32_t mask = (1u << from.bits) - 1;
    for (uint32_t i = 0; i < 65536; ++i)
      ASSERT_EQ(got[i], uint32_t(from.toHalf(uint8_t(i >> from.bits & mask)).x)
                                << 16 |
                            from.toHalf(uint8_t(i & mask)).x)
          << cvt << std::hex << i;
  }
  auto got = evaluate<uint32_t>("sm_100a", "cvt.rn.bf16x2.ue8m0x2 d, a;", all);
  for (uint32_t i = 0; i < 65536; ++i)
    ASSERT_EQ(got[i], uint32_t(__nv_cvt_e8m0_to_bf16raw(uint8_t(i >> 8)).x)
                              << 16 |
                          __nv_cvt_e8m0_to_bf16raw(uint8_t(i)).x)
        << std::hex << i;
}

} // namespace

#else

TEST(CudaHeaders, AreInstalled) {
  GTEST_SKIP() << "cuda_fp4.h was not found when dither was configured";
}

#endif
