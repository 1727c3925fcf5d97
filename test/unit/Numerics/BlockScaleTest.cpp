#include "dither/Numerics/BlockScale.h"
#include "Oracle.h"
#include "dither/Numerics/Convert.h"
#include "dither/Numerics/ReductionOrder.h"

#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace dither::numerics;
using dither::numerics::test::Oracle;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

BlockFormat format(const char *name) { return *findBlockFormat(name); }
BlockFormat format(const char *name, ScaleRounding rounding) {
  BlockFormat f = format(name);
  f.rule.rounding = rounding;
  return f;
}
BlockFormat nvfp4(ScaleOrder order) {
  BlockFormat f = format("nvfp4");
  f.rule.order = order;
  return f;
}

struct Quantized {
  uint32_t scale;
  std::vector<uint8_t> codes;
};
Quantized quantize(const BlockFormat &f, const std::vector<float> &x,
                   float tensorAmax = 0) {
  Quantized q;
  q.codes.resize(x.size());
  q.scale = quantizeBlock(f, x.data(), unsigned(x.size()), tensorAmax,
                          q.codes.data());
  return q;
}
std::vector<float> dequantize(const BlockFormat &f, const Quantized &q,
                              float tensorAmax = 0) {
  std::vector<float> x(q.codes.size());
  dequantizeBlock(f, q.codes.data(), unsigned(x.size()), q.scale, tensorAmax,
                  x.data());
  return x;
}

TEST(BlockScale, ReciprocalConstants) {
  EXPECT_EQ(bitsOf(1.0f / 448), 0x3B124925u);
  EXPECT_EQ(bitsOf(1.0f / 57344), 0x37924925u);
  EXPECT_EQ(bitsOf(1.0f / 6), 0x3E2AAAABu);
  EXPECT_EQ(bitsOf(1.0f / 2688), 0x39C30C31u);
  EXPECT_EQ(dequantizeFactor(format("nvfp4"), 0x38, 1), 1.0f / 2688);
}

//===----------------------------------------------------------------------===//
// NVFP4
//===----------------------------------------------------------------------===//

/// Values computed by an independent implementation of the kernels' formula.
TEST(BlockScale, NVFP4Golden) {
  std::vector<float> x{1,   -.5f, .25f,   .125f,    0,   -0.0f, 3,    -2,
                       1.5, .75f, .0625f, -.03125f, .3f, -.7f,  2.5f, 1e-8f};
  struct {
    float amax;
    uint32_t encodeScale, unrounded, scale, factor;
    std::array<uint8_t, 16> codes;
  } table[] = {
      {3,
       0x44600000,
       0x43E00001,
       0x7E,
       0x40000000,
       {4, 10, 1, 0, 0, 8, 7, 14, 5, 3, 0, 8, 1, 11, 6, 0}},
      {1000,
       0x402C0831,
       0x3FAC0832,
       0x3B,
       0x3FFA3A75,
       {4, 10, 1, 0, 0, 8, 7, 14, 5, 3, 0, 8, 1, 11, 6, 0}},
      {1e6,
       0x3B302928,
       0x3AB02928,
       0x01,
       0x3FB02928,
       {3, 9, 1, 0, 0, 8, 6, 13, 4, 2, 0, 8, 1, 10, 5, 0}},
      {kInf,
       0x3F800000,
       0x3F000000,
       0x30,
       0x40000000,
       {4, 10, 1, 0, 0, 8, 7, 14, 5, 3, 0, 8, 1, 11, 6, 0}},
  };
  BlockFormat f = format("nvfp4");
  ASSERT_EQ(amax(x.data(), 16), 3.0f);
  for (const auto &row : table) {
    SCOPED_TRACE(row.amax);
    EXPECT_EQ(bitsOf(tensorEncodeScale(f, row.amax)), row.encodeScale);
    EXPECT_EQ(bitsOf(unroundedBlockScale(f, 3, row.amax)), row.unrounded);
    EXPECT_EQ(blockScale(f, 3, row.amax), row.scale);
    EXPECT_EQ(bitsOf(elementFactor(f, row.scale, row.amax)), row.factor);
    Quantized q = quantize(f, x, row.amax);
    EXPECT_EQ(q.scale, row.scale);
    EXPECT_EQ(q.codes,
              std::vector<uint8_t>(row.codes.begin(), row.codes.end()));
  }
}

/// Amaxes of bf16 data, computed by an independent implementation: each order
/// rounds elsewhere.
TEST(BlockScale, NVFP4OrderMatters) {
  struct {
    uint32_t tensor, block;
    ScaleOrder order;
    uint32_t unrounded, scale, factor;
  } table[] = {
      {0x3F820000, 0x3F430000, ScaleOrder::TE, 0x43A80001, 0x7B, 0x40F09AAD},
      {0x3F820000, 0x3F430000, ScaleOrder::Div6Mul, 0x43A80000, 0x7A,
       0x41045513},
      {0x409E0000, 0x3F6D0000, ScaleOrder::TE, 0x42A80001, 0x6B, 0x40C5F72A},
      {0x409E0000, 0x3F6D0000, ScaleOrder::Div6Mul, 0x42A80001, 0x6B,
       0x40C5F72A},
      {0x409E0000, 0x3F6D0000, ScaleOrder::Div6Div, 0x42A80000, 0x6A,
       0x40D9C315},
  };
  for (const auto &row : table) {
    BlockFormat f = nvfp4(row.order);
    float tensor = floatOf(row.tensor), block = floatOf(row.block);
    EXPECT_EQ(bitsOf(unroundedBlockScale(f, block, tensor)), row.unrounded);
    EXPECT_EQ(blockScale(f, block, tensor), row.scale);
    EXPECT_EQ(bitsOf(elementFactor(f, row.scale, tensor)), row.factor);
  }
}

/// E4M3 scales of blocks alone: what NVFP4 gives for a tensor scale of 1, which
/// is that of an amax of 6 * 448.
TEST(BlockScale, E4M3WithoutATensorScale) {
  BlockFormat two = format("nvfp4"), one = two;
  one.tensorScale = false;
  for (uint32_t bits = 0; bits < 0x7F800000; bits += 0x3FFF1) {
    float b = floatOf(bits);
    uint32_t scale = blockScale(one, b);
    ASSERT_EQ(scale, blockScale(two, b, 2688.0f)) << b;
    ASSERT_EQ(bitsOf(elementFactor(one, scale)),
              bitsOf(elementFactor(two, scale, 2688.0f)))
        << b;
    ASSERT_EQ(dequantizeFactor(one, scale), decode(kE4M3, scale)) << b;
  }
  EXPECT_EQ(blockScale(one, 6.0f), 0x38u);
  EXPECT_EQ(blockScale(one, kInf), 0x7Eu);
  EXPECT_EQ(elementFactor(one, blockScale(one, 0.0f)), kMax);
}

/// One of two elements is nearer under the scale that takes the largest to 4.
TEST(BlockScale, FourOverSix) {
  BlockFormat f = format("nvfp4");
  f.tensorScale = false;
  f.rule.fourOverSix = FourOverSix::MAE;
  uint8_t codes[16];
  // Under 1: 6 and 5, halfway between 4 and 6. Under 1.5: 4 and 3 1/3.
  float five[16] = {6, 5};
  EXPECT_EQ(quantizeBlock(f, five, 16, 0, codes), 0x3Cu);
  EXPECT_EQ(codes[0], 6u);
  EXPECT_EQ(codes[1], 5u);
  // 6 and 4 are exact under 1.
  float four[16] = {6, 4};
  EXPECT_EQ(quantizeBlock(f, four, 16, 0, codes), 0x38u);
  EXPECT_EQ(codes[0], 7u);
  // Equal errors: 6.
  float zeros[16] = {};
  EXPECT_EQ(quantizeBlock(f, zeros, 16, 0, codes), 0x00u);
  // One error of 1 under 1; under 1.5 one of 1/2 and three of 1/4. Of squares
  // the large one counts for more.
  float many[16] = {6, 5, 1, 1, 1};
  EXPECT_EQ(quantizeBlock(f, many, 16, 0, codes), 0x38u);
  f.rule.fourOverSix = FourOverSix::MSE;
  EXPECT_EQ(quantizeBlock(f, many, 16, 0, codes), 0x3Cu);
}

TEST(BlockScale, TensorScalesAsTheyCome) {
  for (ScaleOrder order : {ScaleOrder::TE, ScaleOrder::Div6Mul,
                           ScaleOrder::Div6Div, ScaleOrder::MulInv6}) {
    BlockFormat amax = nvfp4(order), encode = amax, decode = amax;
    encode.rule.tensorScaleAs = TensorScaleAs::Encode;
    decode.rule.tensorScaleAs = TensorScaleAs::Decode;
    // Powers of two are exact either way.
    for (float b : {1.0f, 0.3f, 5.999f, 0x1p-30f}) {
      uint32_t scale = blockScale(amax, b, 2688.0f * 8);
      EXPECT_EQ(blockScale(encode, b, 0.125f), scale);
      EXPECT_EQ(blockScale(decode, b, 8.0f), scale);
      EXPECT_EQ(elementFactor(decode, scale, 8.0f),
                elementFactor(amax, scale, 2688.0f * 8));
      EXPECT_EQ(dequantizeFactor(encode, scale, 0.125f),
                dequantizeFactor(amax, scale, 2688.0f * 8));
    }
  }
}

TEST(BlockScale, NaNScales) {
  float x[32] = {1, NAN, -3};
  uint8_t codes[32];
  for (const char *name : {"mxfp4", "mxfp8_e4m3", "nvfp4"}) {
    BlockFormat f = format(name);
    EXPECT_NE(quantizeBlock(f, x, f.blockCols, 3, codes), f.scale->nanCode);
    f.rule.nanScales = true;
    EXPECT_EQ(quantizeBlock(f, x, f.blockCols, 3, codes), f.scale->nanCode);
  }
  BlockFormat mx = format("mxfp8_e4m3");
  EXPECT_EQ(blockScale(mx, kInf), 0xFEu);
  mx.rule.infScale = InfScale::FF;
  EXPECT_EQ(blockScale(mx, kInf), 0xFFu);
}

TEST(BlockScale, NVFP4Edges) {
  BlockFormat f = format("nvfp4");
  // An all-zero tensor.
  EXPECT_EQ(tensorEncodeScale(f, 0), 1.0f);
  EXPECT_EQ(tensorEncodeScale(f, -0.0f), 1.0f);
  EXPECT_EQ(tensorEncodeScale(f, kInf), 1.0f);
  EXPECT_EQ(tensorEncodeScale(f, kNaN), kMax);
  // Below 2688 / FLT_MAX the quotient overflows; its reciprocal is subnormal.
  EXPECT_EQ(tensorEncodeScale(f, 7e-36f), kMax);
  EXPECT_LT(tensorEncodeScale(f, 8e-36f), kMax);
  EXPECT_EQ(1.0f / tensorEncodeScale(f, 1e-40f), 0x1p-128f);

  for (float tensor : {0.0f, 1.0f, kInf}) {
    Quantized q = quantize(f, {0, -0.0f}, tensor);
    EXPECT_EQ(q.scale, 0u);
    EXPECT_EQ(q.codes, (std::vector<uint8_t>{0, 8}));
    EXPECT_EQ(elementFactor(f, q.scale, tensor), kMax);
  }
  // The scale underflows; the elements still saturate, and decode to zero.
  Quantized q = quantize(f, {1e-6f, -1e-6f, 0, 1e-39f}, 1e6f);
  EXPECT_EQ(q.scale, 0u);
  EXPECT_EQ(q.codes, (std::vector<uint8_t>{7, 15, 0, 1}));
  std::vector<float> back = dequantize(f, q, 1e6f);
  EXPECT_EQ(bitsOf(back[0]), 0u);
  EXPECT_EQ(bitsOf(back[1]), 0x80000000u);
  // An infinite element, and its neighbours.
  q = quantize(f, {kInf, 1, -kInf}, kInf);
  EXPECT_EQ(q.scale, 0x7Eu);
  EXPECT_EQ(q.codes, (std::vector<uint8_t>{7, 0, 15}));
  // A NaN element does not disturb the others.
  Quantized with = quantize(f, {3, kNaN, -1.5f, -kNaN}, 3);
  Quantized without = quantize(f, {3, 0, -1.5f, 0}, 3);
  EXPECT_EQ(with.scale, without.scale);
  EXPECT_EQ(with.codes,
            (std::vector<uint8_t>{without.codes[0], 7, without.codes[2], 7}));
  // A tensor amax that is too small saturates.
  q = quantize(f, {8, -8, 1}, 1);
  EXPECT_EQ(q.scale, 0x7Eu);
  EXPECT_EQ(q.codes, (std::vector<uint8_t>{7, 15, 7}));
}

/// The formulas in double where every step is exact enough to decide: the scale
/// is within one rounding of (b / 6) (2688 / G), the codes are nearest.
TEST(BlockScale, NVFP4AgainstExactScale) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Oracle e2m1(kE2M1), e4m3(kE4M3);
  for (ScaleOrder order :
       {ScaleOrder::TE, ScaleOrder::Div6Mul, ScaleOrder::Div6Div}) {
    BlockFormat f = nvfp4(order);
    for (int trial = 0; trial < 20000; ++trial) {
      std::vector<float> x(16);
      for (float &v : x)
        v = normal(random);
      float tensor = 5.0f, block = amax(x.data(), 16);
      double exact = double(block) / 6 * 2688 / tensor;
      // Where the exact quotient is not within a few ulp of a decision point,
      // every order gives its nearest code.
      uint32_t below = e4m3.encode(float(exact * (1 - 0x1p-20))),
               above = e4m3.encode(float(exact * (1 + 0x1p-20)));
      Quantized q = quantize(f, x, tensor);
      ASSERT_TRUE(q.scale == below || q.scale == above);
      double factor = 2688 / double(tensor) / decode(kE4M3, q.scale);
      for (size_t i = 0; i < x.size(); ++i) {
        uint32_t low = e2m1.encode(float(x[i] * factor * (1 - 0x1p-20))),
                 high = e2m1.encode(float(x[i] * factor * (1 + 0x1p-20)));
        ASSERT_TRUE(q.codes[i] == low || q.codes[i] == high);
      }
    }
  }
}

TEST(BlockScale, Div6DivFloor) {
  BlockFormat f = nvfp4(ScaleOrder::Div6Div);
  Quantized q = quantize(f, {0, -0.0f}, 1);
  EXPECT_EQ(decode(kE4M3, q.scale), 0x1p-6f);
  EXPECT_EQ(q.codes, (std::vector<uint8_t>{0, 8}));
  EXPECT_EQ(blockScale(f, 1e-6f, 1), 0x08u);
  EXPECT_EQ(blockScale(f, 8, 1), 0x7Eu);
  // An all-zero tensor, or one whose decode scale underflows, stays zero.
  for (float tensor : {0.0f, 1e-42f}) {
    q = quantize(f, {tensor, 0, -0.0f}, tensor);
    EXPECT_EQ(q.scale, 0x08u);
    EXPECT_EQ(q.codes, (std::vector<uint8_t>{0, 0, 8}));
  }
}

TEST(BlockScale, NVFP4Dequantize) {
  BlockFormat f = format("nvfp4");
  for (uint32_t scale = 0; scale < 0x7F; ++scale)
    for (float tensor : {0.0f, 1.0f, 3.0f, 1e-6f, 1000.0f}) {
      // Three roundings in this order; not scale * (G / 2688).
      float factor = decode(kE4M3, scale) * tensor;
      factor = factor * floatOf(0x39C30C31);
      Quantized q{scale, {1, 7, 9, 0}};
      std::vector<float> x = dequantize(f, q, tensor);
      EXPECT_EQ(x, (std::vector<float>{0.5f * factor, 6 * factor,
                                       -0.5f * factor, 0}));
    }
}

//===----------------------------------------------------------------------===//
// MX formats
//===----------------------------------------------------------------------===//

/// The exponent that a rule asks for, from the exact real numbers.
int exactExponent(ScaleRounding rounding, const ElementFormat &elem, double a) {
  // Subnormals have the exponent of their field.
  double base = std::max(a, 0x1p-127);
  int down = std::max(std::ilogb(base), -127);
  bool power = std::ldexp(1, down) == base;
  switch (rounding) {
  case ScaleRounding::RCeil: {
    int e = std::ilogb(a) - elem.maxExponent() - 1;
    while (std::ldexp(double(elem.max), e) < a)
      ++e;
    return e;
  }
  case ScaleRounding::Floor:
    return down - elem.maxExponent();
  case ScaleRounding::Ceil:
    return down + !power - elem.maxExponent();
  case ScaleRounding::Even: {
    // Half up at the last mantissa bit of the element.
    double steps = std::ldexp(base, int(elem.mantissaBits) - down);
    double rounded = std::floor(steps + 0.5);
    return down + (rounded == std::ldexp(2, int(elem.mantissaBits))) -
           elem.maxExponent();
  }
  }
  return 0;
}

std::vector<float> amaxes(const ElementFormat &elem) {
  std::vector<float> points;
  auto around = [&](double v) {
    float c = float(v);
    for (int d = -2; d <= 2; ++d) {
      int64_t bits = int64_t(bitsOf(c)) + d;
      if (bits > 0 && bits < 0x7F800000)
        points.push_back(floatOf(uint32_t(bits)));
    }
  };
  // Where some rule changes its mind: powers of two, the largest element,
  // halves of its steps.
  for (int e = -149; e < 128; ++e)
    for (double v :
         {1.0, double(elem.max) / 2 / std::ldexp(1, elem.maxExponent() - 1),
          2 - std::ldexp(1, -int(elem.mantissaBits) - 1)})
      around(std::ldexp(v, e));
  for (uint32_t bits = 1; bits < 0x7F800000; bits += 12007)
    points.push_back(floatOf(bits));
  return points;
}

TEST(BlockScale, SharedExponents) {
  for (const char *name :
       {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"})
    for (ScaleRounding rounding : {ScaleRounding::RCeil, ScaleRounding::Floor,
                                   ScaleRounding::Ceil, ScaleRounding::Even}) {
      BlockFormat f = format(name, rounding);
      for (float a : amaxes(*f.elem)) {
        uint32_t expected = uint32_t(
            std::clamp(exactExponent(rounding, *f.elem, a), -127, 127) + 127);
        // One amax past F 2^-127 the quotient is subnormal and its rounding
        // brings it down to 2^-127.
        if (rounding == ScaleRounding::RCeil &&
            bitsOf(a) == bitsOf(f.elem->max * 0x1p-127f) + 1)
          expected = 0;
        if (rounding == ScaleRounding::RCeil) {
          // Dividing by F gives the same code.
          ASSERT_EQ(encodeE8M0Ceil(a / f.elem->max), expected);
        }
        ASSERT_EQ(blockScale(f, a), expected)
            << name << " " << int(rounding) << " " << std::hex << bitsOf(a);
      }
    }
}

TEST(BlockScale, SharedExponentEdges) {
  for (const char *name :
       {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"}) {
    SCOPED_TRACE(name);
    BlockFormat rceil = format(name, ScaleRounding::RCeil);
    EXPECT_EQ(blockScale(rceil, 0), 0u);
    EXPECT_EQ(blockScale(rceil, kInf), 0xFEu);
    EXPECT_EQ(blockScale(rceil, 0x1p-149f), 0u);
    uint32_t max = rceil.elem->maxCode, sign = rceil.elem->signBit();
    // Finite elements beside an infinite one flush to zero.
    Quantized q = quantize(rceil, {kInf, 1, -kInf, -1});
    EXPECT_EQ(q.codes,
              (std::vector<uint8_t>{uint8_t(max), 0, uint8_t(max | sign),
                                    uint8_t(sign)}));
    for (ScaleRounding rounding :
         {ScaleRounding::Floor, ScaleRounding::Ceil, ScaleRounding::Even}) {
      BlockFormat f = format(name, rounding);
      EXPECT_EQ(blockScale(f, 0), 0u);
      q = quantize(f, {kInf, 1, -0.0f});
      EXPECT_EQ(q.scale, 0xFFu);
      EXPECT_EQ(q.codes, std::vector<uint8_t>(3, uint8_t(f.elem->nanCode)));
      // NaN times 2^127 is NaN again; E2M1 codes have become numbers, and their
      // scale is NaN.
      for (float v : dequantize(f, q))
        EXPECT_TRUE(std::isnan(v));
    }
    q = quantize(rceil, {0, -0.0f, kNaN});
    EXPECT_EQ(q.scale, 0u);
    EXPECT_EQ(q.codes, (std::vector<uint8_t>{0, uint8_t(sign),
                                             uint8_t(rceil.elem->nanCode)}));
  }
}

/// Division by a power of two is exact here: the codes are nearest to x / 2^s,
/// and values are code values times 2^s.
TEST(BlockScale, MXQuantize) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (const char *name :
       {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"})
    for (ScaleRounding rounding : {ScaleRounding::RCeil, ScaleRounding::Floor,
                                   ScaleRounding::Ceil, ScaleRounding::Even}) {
      BlockFormat f = format(name, rounding);
      Oracle oracle(*f.elem);
      for (int trial = 0; trial < 2000; ++trial) {
        std::vector<float> x(f.blockCols);
        for (float &v : x)
          v = std::ldexp(normal(random), int(random() % 24) - 12);
        int exponent =
            exactExponent(rounding, *f.elem, amax(x.data(), f.blockCols));
        Quantized q = quantize(f, x);
        ASSERT_EQ(int(q.scale), exponent + 127);
        std::vector<float> back = dequantize(f, q);
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(q.codes[i], oracle.encode(std::ldexp(x[i], -exponent)));
          ASSERT_EQ(back[i], std::ldexp(decode(*f.elem, q.codes[i]), exponent));
        }
      }
    }
}

TEST(BlockScale, ShortAndStridedBlocks) {
  BlockFormat f = format("mxfp8_e4m3");
  std::vector<float> x{1, 100, -7, 100, 3, 100};
  uint8_t codes[3];
  uint32_t scale = quantizeBlock(f, x.data(), 3, 0, codes, 2);
  Quantized dense = quantize(f, {1, -7, 3});
  EXPECT_EQ(scale, dense.scale);
  EXPECT_EQ(std::vector<uint8_t>(codes, codes + 3), dense.codes);
  std::vector<float> back(6, 9);
  dequantizeBlock(f, codes, 3, scale, 0, back.data(), 2);
  EXPECT_EQ(back, (std::vector<float>{1, 9, -7, 9, 3, 9}));
}

/// Transformer Engine's compute_scale_from_amax.
TEST(BlockScale, EncodeScales) {
  BlockFormat exact = format("fp8_tensor_e4m3"),
              pow2 = format("fp8_1x128_e4m3");
  const float inf = std::numeric_limits<float>::infinity();
  const float most = std::numeric_limits<float>::max();
  struct {
    float amax, exact, pow2;
  } table[] = {
      {448.0f, 1.0f, 1.0f},
      {1.0f, 448.0f, 256.0f},
      {3.0f, 448.0f / 3.0f, 128.0f},
      {0.0f, 1.0f, 1.0f},
      {inf, 1.0f, 1.0f},
      {std::nanf(""), 1.0f, 1.0f},
      {1e-45f, most, 0x1p127f},
      {most, 448.0f / most, 0x1p-120f},
  };
  for (const auto &row : table) {
    EXPECT_EQ(encodeScale(exact, row.amax, most), row.exact) << row.amax;
    EXPECT_EQ(encodeScale(pow2, row.amax, most), row.pow2) << row.amax;
  }
  EXPECT_EQ(encodeScale(exact, 1e-45f, 65504.0f), 65504.0f);
  exact.rule.epsilon = 4.0f;
  EXPECT_EQ(encodeScale(exact, 0.0f, most), 112.0f);
  EXPECT_EQ(encodeScale(exact, std::nanf(""), most), 1.0f);
  EXPECT_EQ(floatOf(blockScale(exact, 8.0f)), 1.0f / 56.0f);
}

} // namespace
