#include "dither/Numerics/Formats.h"
#include "dither/Numerics/Bits.h"
#include "dither/Numerics/Convert.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace dither::numerics;

namespace {

TEST(Formats, FieldsFillTheCode) {
  for (const ElementFormat *f : kElementFormats) {
    SCOPED_TRACE(f->name);
    EXPECT_EQ(f->hasSign + f->exponentBits + f->mantissaBits, f->bits);
    EXPECT_EQ(f->signBit(), f->hasSign ? 1u << (f->bits - 1) : 0u);
    EXPECT_EQ(findElementFormat(f->name), f);
  }
  EXPECT_EQ(findElementFormat("f64"), nullptr);
}

/// The table of encodings in the OCP and IEEE specifications.
TEST(Formats, PublishedValues) {
  struct {
    const ElementFormat &format;
    double max, minNormal, minPositive;
    int maxExponent;
  } table[] = {
      {kE2M1, 6, 1, 0.5, 2},
      {kE2M3, 7.5, 1, 0.125, 2},
      {kE3M2, 28, 0.25, 0.0625, 4},
      {kINT8, 127, 64, 1, 6},
      {kMXINT8, 1.984375, 1, 0.015625, 0}, // OCP MX 1.0, table 6
      {kE4M3, 448, std::ldexp(1, -6), std::ldexp(1, -9), 8},
      {kE5M2, 57344, std::ldexp(1, -14), std::ldexp(1, -16), 15},
      {kE8M0, std::ldexp(1, 127), std::ldexp(1, -127), std::ldexp(1, -127),
       127},
      {kBF16, std::ldexp(255, 120), std::ldexp(1, -126), std::ldexp(1, -133),
       127},
      {kF16, 65504, std::ldexp(1, -14), std::ldexp(1, -24), 15},
      {kF32, std::ldexp(16777215, 104), std::ldexp(1, -126),
       std::ldexp(1, -149), 127},
  };
  for (const auto &row : table) {
    SCOPED_TRACE(row.format.name);
    EXPECT_EQ(row.format.max, row.max);
    EXPECT_EQ(row.format.minNormal, row.minNormal);
    EXPECT_EQ(row.format.minPositive(), row.minPositive);
    EXPECT_EQ(row.format.maxExponent(), row.maxExponent);
    EXPECT_EQ(decode(row.format, row.format.maxCode), row.max);
    if (!row.format.hasSign)
      continue;
    EXPECT_EQ(decode(row.format, 1), row.minPositive);
    EXPECT_EQ(decode(row.format, 1u << row.format.mantissaBits), row.minNormal);
  }
}

TEST(Formats, InfinitiesAndNaNs) {
  for (const ElementFormat *f : kElementFormats) {
    if (f->bits > 16)
      continue;
    SCOPED_TRACE(f->name);
    unsigned infs = 0, nans = 0;
    for (uint32_t code = 0; code < 1u << f->bits; ++code) {
      infs += std::isinf(decode(*f, code));
      nans += std::isnan(decode(*f, code));
    }
    EXPECT_EQ(infs, f->hasInf ? 2u : 0u);
    EXPECT_EQ(nans > 0, f->hasNaN);
    EXPECT_EQ(std::isnan(decode(*f, f->nanCode)), f->hasNaN);
  }
}

TEST(Formats, BlockFormats) {
  struct {
    const char *name;
    const ElementFormat *elem, *scale;
    unsigned block;
    bool tensorScale; // and transposed
    ScaleRounding rounding;
  } table[] = {
      {"nvfp4", &kE2M1, &kE4M3, 16, true, ScaleRounding::RCeil},
      {"mxfp4", &kE2M1, &kE8M0, 32, false, ScaleRounding::Floor},
      {"mxfp6_e2m3", &kE2M3, &kE8M0, 32, false, ScaleRounding::Floor},
      {"mxfp6_e3m2", &kE3M2, &kE8M0, 32, false, ScaleRounding::Floor},
      {"mxfp8_e4m3", &kE4M3, &kE8M0, 32, false, ScaleRounding::RCeil},
      {"mxfp8_e5m2", &kE5M2, &kE8M0, 32, false, ScaleRounding::RCeil},
      {"mxint8", &kMXINT8, &kE8M0, 32, false, ScaleRounding::Floor},
  };
  for (const auto &row : table) {
    const BlockFormat *f = findBlockFormat(row.name);
    ASSERT_NE(f, nullptr) << row.name;
    EXPECT_EQ(f->elem, row.elem);
    EXPECT_EQ(f->scale, row.scale);
    EXPECT_EQ(f->blockRows, 1u);
    EXPECT_EQ(f->blockCols, row.block);
    EXPECT_EQ(f->tensorScale, row.tensorScale);
    EXPECT_EQ(f->transposed, row.tensorScale);
    EXPECT_EQ(f->rule.rounding, row.rounding);
    EXPECT_EQ(f->rule.order, ScaleOrder::TE);
  }
  EXPECT_EQ(findBlockFormat("mxfp6"), nullptr);
}

TEST(Formats, OfF32Scales) {
  struct {
    const char *name;
    const ElementFormat *elem;
    unsigned rows, cols; // 0: all
    ScaleOrder order;
    bool pow2;
  } table[] = {
      {"fp8_tensor_e4m3", &kE4M3, 0, 0, ScaleOrder::EncodeFirst, false},
      {"fp8_row_e5m2", &kE5M2, 1, 0, ScaleOrder::EncodeFirst, false},
      {"fp8_1x128_e4m3", &kE4M3, 1, 128, ScaleOrder::EncodeFirst, true},
      {"fp8_128x128_e5m2", &kE5M2, 128, 128, ScaleOrder::EncodeFirst, true},
      {"int8_tensor", &kINT8, 0, 0, ScaleOrder::TE, false},
      {"int8_row", &kINT8, 1, 0, ScaleOrder::TE, false},
  };
  for (const auto &row : table) {
    const BlockFormat *f = findBlockFormat(row.name);
    ASSERT_NE(f, nullptr) << row.name;
    EXPECT_EQ(f->elem, row.elem);
    EXPECT_EQ(f->scale, &kF32);
    EXPECT_EQ(f->blockRows, row.rows);
    EXPECT_EQ(f->blockCols, row.cols);
    EXPECT_TRUE(f->transposed);
    EXPECT_FALSE(f->tensorScale);
    EXPECT_EQ(f->rule.order, row.order);
    EXPECT_EQ(f->rule.pow2Scales, row.pow2);
  }
}

} // namespace
