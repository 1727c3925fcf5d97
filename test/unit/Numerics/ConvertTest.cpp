#include "dither/Numerics/Convert.h"
#include "Oracle.h"

#include <gtest/gtest.h>
#include <limits>

using namespace dither::numerics;
using dither::numerics::test::negated;
using dither::numerics::test::Oracle;
using dither::numerics::test::valueOf;

namespace {

const ElementFormat *const kRounded[] = {
    &kE2M1, &kE2M3, &kE3M2, &kINT8, &kMXINT8, &kE4M3, &kE5M2, &kBF16, &kF16};
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Convert, DecodeIsTheDefinition) {
  for (const ElementFormat *f : kRounded) {
    SCOPED_TRACE(f->name);
    for (uint32_t code = 0; code <= f->maxCode; ++code) {
      ASSERT_EQ(decode(*f, code), valueOf(*f, code)) << code;
      float negative = decode(*f, negated(*f, code));
      ASSERT_EQ(negative, -valueOf(*f, code)) << code;
      ASSERT_EQ(std::signbit(negative), code || !f->twosComplement) << code;
    }
  }
  float e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 8; ++code)
    EXPECT_EQ(decode(kE2M1, code), e2m1[code]);
}

TEST(Convert, EveryCodeSurvives) {
  for (const ElementFormat *f : kRounded) {
    SCOPED_TRACE(f->name);
    for (uint32_t code = 0; code < 1u << f->bits; ++code) {
      float x = decode(*f, code);
      if (std::isnan(x))
        ASSERT_EQ(encode(*f, x), f->nanCode) << code;
      else if (f->twosComplement && code == f->signBit()) // -128
        ASSERT_EQ(encode(*f, x), negated(*f, f->maxCode));
      else if (std::isinf(x) && f->saturates)
        ASSERT_EQ(encode(*f, x), (code & f->signBit()) | f->maxCode) << code;
      else
        ASSERT_EQ(encode(*f, x), code);
    }
  }
}

TEST(Convert, F32IsTheIdentity) {
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 65521) {
    float x = floatOf(uint32_t(bits));
    if (!std::isnan(x)) {
      ASSERT_EQ(encode(kF32, x), uint32_t(bits));
      ASSERT_EQ(bitsOf(decode(kF32, uint32_t(bits))), uint32_t(bits));
    }
  }
}

/// The intervals of E2M1, written out.
TEST(Convert, E2M1Intervals) {
  struct {
    float from, to;
    bool ends; // the ends belong to the interval
    uint32_t code;
  } table[] = {{0, .25f, true, 0},     {.25f, .75f, false, 1},
               {.75f, 1.25f, true, 2}, {1.25f, 1.75f, false, 3},
               {1.75f, 2.5f, true, 4}, {2.5f, 3.5f, false, 5},
               {3.5f, 5, true, 6},     {5, kInf, false, 7}};
  for (const auto &row : table) {
    float first = row.ends ? row.from : std::nextafter(row.from, kInf);
    float last = row.ends ? row.to : std::nextafter(row.to, 0.0f);
    for (float x : {first, last}) {
      EXPECT_EQ(encode(kE2M1, x), row.code) << x;
      EXPECT_EQ(encode(kE2M1, -x), row.code | 8) << x;
    }
  }
}

TEST(Convert, Special) {
  struct {
    const ElementFormat &format;
    uint32_t nan, max, zero, inf;
  } table[] = {{kE2M1, 7, 7, 8, 7},
               {kE2M3, 0x1F, 0x1F, 0x20, 0x1F},
               {kE3M2, 0x1F, 0x1F, 0x20, 0x1F},
               {kINT8, 0x7F, 0x7F, 0, 0x7F},
               {kMXINT8, 0x7F, 0x7F, 0, 0x7F},
               {kE4M3, 0x7F, 0x7E, 0x80, 0x7E},
               {kE5M2, 0x7F, 0x7B, 0x80, 0x7B},
               {kBF16, 0x7FFF, 0x7F7F, 0x8000, 0x7F80},
               {kF16, 0x7FFF, 0x7BFF, 0x8000, 0x7C00}};
  for (const auto &row : table) {
    const ElementFormat &f = row.format;
    SCOPED_TRACE(f.name);
    for (uint32_t nan : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFF800001u,
                         0x7FFFFFFFu, 0xFFFFFFFFu})
      EXPECT_EQ(encode(f, floatOf(nan)), row.nan);
    EXPECT_EQ(encode(f, kInf), row.inf);
    EXPECT_EQ(encode(f, -kInf), negated(f, row.inf));
    EXPECT_EQ(encode(f, f.max), row.max);
    EXPECT_EQ(encode(f, -f.max), negated(f, row.max));
    EXPECT_EQ(encode(f, 0.0f), 0u);
    EXPECT_EQ(encode(f, -0.0f), row.zero);
    // Half the smallest value is a tie with zero.
    if (f.minPositive() > 0x1p-133f) {
      EXPECT_EQ(encode(f, f.minPositive() / 2), 0u);
      EXPECT_EQ(encode(f, -f.minPositive() / 2), row.zero);
      EXPECT_EQ(encode(f, std::nextafter(f.minPositive() / 2, 1.0f)), 1u);
    }
    EXPECT_EQ(encode(f, -0x1p-149f), row.zero);
  }
  EXPECT_EQ(encode(kE4M3, 464.0f), 0x7Eu);
  EXPECT_EQ(encode(kE4M3, std::nextafter(464.0f, kInf)), 0x7Eu);
  EXPECT_EQ(encode(kE5M2, 61440.0f), 0x7Bu);
  EXPECT_EQ(encode(kF16, 65520.0f), 0x7C00u);
  EXPECT_EQ(encode(kF16, std::nextafter(65520.0f, 0.0f)), 0x7BFFu);
  EXPECT_EQ(encode(kBF16, std::numeric_limits<float>::max()), 0x7F80u);
}

TEST(Convert, NearestOfAllValues) {
  for (const ElementFormat *f : kRounded) {
    SCOPED_TRACE(f->name);
    Oracle oracle(*f);
    for (uint32_t bits : oracle.decisionPoints(2))
      ASSERT_EQ(encode(*f, floatOf(bits)), oracle.encode(floatOf(bits)))
          << std::hex << bits;
    for (const ElementFormat *source : {&kBF16, &kF16})
      for (uint32_t code = 0; code < 65536; ++code) {
        float x = decode(*source, code);
        ASSERT_EQ(encode(*f, x), oracle.encode(x))
            << source->name << " " << std::hex << code;
      }
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 9973) {
      float x = floatOf(uint32_t(bits));
      ASSERT_EQ(encode(*f, x), oracle.encode(x)) << std::hex << bits;
    }
  }
}

/// Smallest E8M0 code whose value is at least a.
uint32_t ceilCode(double a) {
  uint32_t code = 0;
  while (code < 254 && std::ldexp(1, int(code) - 127) < a)
    ++code;
  return code;
}

TEST(Convert, E8M0) {
  for (uint32_t code = 0; code < 255; ++code) {
    float x = decode(kE8M0, code);
    EXPECT_EQ(x, std::ldexp(1, int(code) - 127));
    EXPECT_EQ(encodeE8M0Ceil(x), code);
    EXPECT_EQ(encodeE8M0Floor(x), code);
    EXPECT_EQ(e8m0Inverse(code), std::ldexp(1, 127 - int(code)));
  }
  EXPECT_EQ(bitsOf(decode(kE8M0, 255)), 0x7FFFFFFFu);
  EXPECT_EQ(bitsOf(decode(kE8M0, 0)), 0x00400000u);
  EXPECT_EQ(bitsOf(e8m0Inverse(255)), 0x7FFFFFFFu);
  EXPECT_EQ(bitsOf(e8m0Inverse(254)), 0x00400000u);
  EXPECT_EQ(bitsOf(e8m0Inverse(0)), 0x7F000000u);

  std::vector<uint32_t> points;
  for (int64_t field = 0; field < 255; ++field)
    for (int64_t mantissa : {0, 0x400000})
      for (int64_t d = -2; d <= 2; ++d)
        if (int64_t bits = (field << 23) + mantissa + d; bits >= 0)
          points.push_back(uint32_t(bits));
  for (uint32_t bits = 0; bits < 0x7F800000; bits += 49999)
    points.push_back(bits);
  for (uint32_t bits : points) {
    float x = floatOf(bits);
    uint32_t up = ceilCode(x);
    ASSERT_EQ(encodeE8M0Ceil(x), up) << std::hex << bits;
    ASSERT_EQ(encodeE8M0Ceil(-x), up) << std::hex << bits;
    // Subnormals keep the exponent of the smallest power of two.
    uint32_t down = x < 0x1p-126f ? 0 : uint32_t(std::ilogb(x) + 127);
    ASSERT_EQ(encodeE8M0Floor(x), down) << std::hex << bits;
    ASSERT_EQ(encodeE8M0Floor(-x), down) << std::hex << bits;
  }
  EXPECT_EQ(encodeE8M0Ceil(kInf), 0xFEu);
  EXPECT_EQ(encodeE8M0Floor(kInf), 0xFFu);
  for (uint32_t nan : {0x7F800001u, 0xFFC00000u, 0x7FFFFFFFu}) {
    EXPECT_EQ(encodeE8M0Ceil(floatOf(nan)), 0xFFu);
    EXPECT_EQ(encodeE8M0Floor(floatOf(nan)), 0xFFu);
  }
}

} // namespace
