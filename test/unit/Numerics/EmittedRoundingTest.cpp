// Compiled code encodes with a fused multiply-add and decodes by rebasing the
// exponent (convert-dither-quant-to-arith), or encodes by the least of a few
// sums (convert-dither-quant-to-nvvm). The same formulas in scalar form agree
// with the integer definition.

#include "Oracle.h"
#include "dither/Numerics/Convert.h"
#include "dither/Numerics/Staircase.h"

#include <gtest/gtest.h>

using namespace dither::numerics;
using dither::numerics::test::Oracle;

namespace {

const ElementFormat *const kFormats[] = {&kE2M1, &kE2M3, &kE3M2, &kE4M3,
                                         &kE5M2};

uint32_t fusedEncode(float x, const ElementFormat &f) {
  FusedRounding r = fusedRounding(f);
  if (!f.hasNaN)
    x = x < f.max ? x : f.max;
  uint32_t magnitude = std::min(bitsOf(x) & 0x7FFFFFFF, bitsOf(f.max));
  uint32_t power = std::max(magnitude, bitsOf(f.minNormal)) & 0x7F800000;
  uint32_t sum = bitsOf(std::fma(floatOf(power), r.factor, floatOf(magnitude)));
  // The bit of the sign is zero.
  uint32_t code = ((sum >> r.shift) + sum) & (2 * f.signBit() - 1);
  code |= (bitsOf(x) >> (32 - f.bits)) & f.signBit();
  return !f.hasNaN || x == x ? code : f.nanCode;
}

TEST(EmittedRounding, DecisionPointsAndHalfPrecision) {
  for (const ElementFormat *f : kFormats) {
    SCOPED_TRACE(f->name);
    for (uint32_t bits : Oracle(*f).decisionPoints(2))
      ASSERT_EQ(fusedEncode(floatOf(bits), *f), encode(*f, floatOf(bits)))
          << std::hex << bits;
    for (const ElementFormat *source : {&kBF16, &kF16})
      for (uint32_t code = 0; code < 65536; ++code) {
        float x = decode(*source, code);
        ASSERT_EQ(fusedEncode(x, *f), encode(*f, x))
            << source->name << " " << std::hex << code;
      }
  }
}

TEST(EmittedRounding, SweepOfF32) {
  for (const ElementFormat *f : kFormats) {
    SCOPED_TRACE(f->name);
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 67) {
      float x = floatOf(uint32_t(bits));
      ASSERT_EQ(fusedEncode(x, *f), encode(*f, x)) << std::hex << bits;
    }
  }
}

// RoundedWord.cpp: a product has the code at the top. A unit of its lower part
// more makes a code of all ones of a NaN, and changes no other.
TEST(EmittedRounding, AProductHasTheCodeAtTheTop) {
  for (const ElementFormat *f : {&kE3M2, &kE4M3, &kE5M2}) {
    SCOPED_TRACE(f->name);
    FusedRounding r = fusedRounding(*f);
    unsigned top = 32 - f->bits;
    uint32_t unit = 1u << (top - r.shift);
    auto codeOf = [&](uint32_t sum) {
      uint32_t code = sum * ((1u << top) + unit) + (f->hasNaN ? unit : 0);
      return code >> top & (f->signBit() - 1);
    };
    for (uint32_t bits = 0; bits <= 0x7F800000; bits += 67) {
      float x = std::min(floatOf(bits), f->max);
      uint32_t power = bitsOf(std::max(x, f->minNormal)) & 0x7F800000;
      uint32_t sum = bitsOf(std::fma(floatOf(power), r.factor, x));
      ASSERT_EQ(codeOf(sum), encode(*f, x)) << std::hex << bits;
    }
    if (f->hasNaN) {
      EXPECT_EQ(codeOf(0x7FFFFFFF), f->nanCode);
    }
  }
}

uint32_t stairsEncode(float magnitude, const Staircase &stairs) {
  uint32_t first = bitsOf(stairs.line(0).start);
  uint32_t least = first + stairs.f.maxCode;
  for (unsigned i = 0; i < stairs.size(); ++i) {
    auto [slope, start] = stairs.line(i);
    least = std::min(least, bitsOf(std::fma(magnitude, slope, start)));
  }
  return least - first;
}

TEST(EmittedRounding, CodesAreTheLeastOfAFewSums) {
  unsigned found = 0;
  for (const ElementFormat *f : kFormats) {
    if (!isStaircase(*f))
      continue;
    SCOPED_TRACE(f->name);
    ++found;
    Staircase stairs{*f, 24};
    for (uint32_t bits : Oracle(*f).decisionPoints(2)) {
      float x = floatOf(bits & 0x7FFFFFFF);
      ASSERT_EQ(stairsEncode(x, stairs), encode(*f, x)) << std::hex << bits;
    }
    for (uint32_t bits = 0; bits <= 0x7FFFFFFF - 67; bits += 67) {
      float x = floatOf(bits);
      ASSERT_EQ(stairsEncode(x, stairs), encode(*f, x)) << std::hex << bits;
    }
  }
  EXPECT_EQ(found, 2u); // E2M1 and E2M3
}

/// The code of a value of bf16 times the power of two whose f32 has the
/// exponent field `factor`, in the steps of HalfEncode.cpp.
uint32_t halfEncode(uint32_t bf16, uint32_t factor, const ElementFormat &f) {
  uint32_t less = std::max(239 - int(factor), 0) << 7;
  uint32_t x = std::max(int(bf16 & 0x7FFF) - int(less), 0) << 3;
  uint32_t power = std::max(x, encode(kF16, f.minNormal)) & 0x7C00;
  double sum = double(decode(kF16, power)) * double(halfFactor(f)) +
               double(decode(kF16, x));
  uint32_t bits = encode(kF16, float(sum));
  unsigned m = f.mantissaBits;
  uint32_t code = (bits >> 10 << m) + (bits & 0x3FF);
  return (code & (f.signBit() - 1)) | (bf16 & 0x8000 ? f.signBit() : 0);
}

// As long as products are in range and factors of what is not zero at most
// 2^112.
TEST(EmittedRounding, ProductsInHalfPrecision) {
  for (const ElementFormat *f : kFormats) {
    SCOPED_TRACE(f->name);
    ASSERT_EQ(hasHalfRounding(*f), f != &kE5M2);
    if (!hasHalfRounding(*f))
      continue;
    for (uint32_t factor = 1; factor <= 254; ++factor)
      for (uint32_t bf16 = 0; bf16 < 0x7F80; ++bf16) {
        float x = std::ldexp(decode(kBF16, bf16), int(factor) - 127);
        if (x > f->max || (factor > 239 && bf16 > 0))
          break;
        ASSERT_EQ(halfEncode(bf16, factor, *f), encode(*f, x))
            << std::hex << bf16 << " " << factor;
        ASSERT_EQ(halfEncode(bf16 | 0x8000, factor, *f), encode(*f, -x));
      }
  }
}

TEST(EmittedRounding, IntegersAreTheLastBitsOfASum) {
  auto sum = [](float x) -> uint32_t {
    x = x < kINT8.max ? x : kINT8.max;
    x = x > -kINT8.max ? x : -kINT8.max;
    return bitsOf(x + 0x1.8p23f) & 0xFF;
  };
  for (uint32_t bits : Oracle(kINT8).decisionPoints(2))
    ASSERT_EQ(sum(floatOf(bits)), encode(kINT8, floatOf(bits)))
        << std::hex << bits;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 67) {
    float x = floatOf(uint32_t(bits));
    ASSERT_EQ(sum(x), encode(kINT8, x)) << std::hex << bits;
  }
  for (uint32_t code = 0; code < 256; ++code)
    ASSERT_EQ(floatOf((code ^ 0x80) | bitsOf(0x1p23f)) - (0x1p23f + 128),
              decode(kINT8, code));
}

TEST(EmittedRounding, BF16Carry) {
  auto carry = [](float x) -> uint32_t {
    uint32_t bits = bitsOf(x);
    return x == x ? (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 : 0x7FFF;
  };
  for (uint32_t bits : Oracle(kBF16).decisionPoints(2))
    ASSERT_EQ(carry(floatOf(bits)), encode(kBF16, floatOf(bits)))
        << std::hex << bits;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 251) {
    float x = floatOf(uint32_t(bits));
    ASSERT_EQ(carry(x), encode(kBF16, x)) << std::hex << bits;
  }
}

TEST(EmittedRounding, E8M0Ceil) {
  auto ceil = [](float x) -> uint32_t {
    uint32_t bits = bitsOf(x) & 0x7FFFFFFF;
    if (bits > 0x7F800000)
      return 0xFF;
    return bits <= 0x00400000 ? 0
                              : (std::min(bits, 0x7F000000u) + 0x7FFFFF) >> 23;
  };
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 251) {
    float x = floatOf(uint32_t(bits));
    ASSERT_EQ(ceil(x), encodeE8M0Ceil(x)) << std::hex << bits;
  }
  for (uint32_t field = 0; field < 256; ++field)
    for (uint32_t mantissa :
         {0u, 1u, 0x3FFFFFu, 0x400000u, 0x400001u, 0x7FFFFFu})
      ASSERT_EQ(ceil(floatOf(field << 23 | mantissa)),
                encodeE8M0Ceil(floatOf(field << 23 | mantissa)))
          << std::hex << field << " " << mantissa;
}

TEST(EmittedRounding, RebasedDecode) {
  for (const ElementFormat *format : kFormats) {
    const ElementFormat &f = *format;
    SCOPED_TRACE(f.name);
    for (uint32_t code = 0; code <= f.maxCode; ++code) {
      float rebased = floatOf((code << (23 - f.mantissaBits)) +
                              (uint32_t(127 - f.bias) << 23));
      // A subnormal code comes out as 1.m instead of 0.m.
      if (code < 1u << f.mantissaBits)
        rebased = rebased + rebased - f.minNormal;
      EXPECT_EQ(bitsOf(rebased), bitsOf(decode(f, code))) << code;
    }
  }
}

/// E5M2 is the upper byte of binary16.
TEST(EmittedRounding, E5M2IsHalfOfF16) {
  for (uint32_t code = 0; code < 256; ++code) {
    float x = decode(kE5M2, code), y = decode(kF16, code << 8);
    EXPECT_TRUE(std::isnan(x) ? std::isnan(y) : bitsOf(x) == bitsOf(y)) << code;
  }
}

} // namespace
