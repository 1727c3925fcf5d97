//===- HalfEncode.cpp - Encoding two values of bf16 at once ---------------===//
//
// bf16 has 8 significant bits and binary16 has 11: times a power of two that
// brings it into the range of a code, a value of bf16 is one of binary16.
// Adding to the exponent fields multiplies, and the rounding of QuantToArith
// takes instructions on 32 values where it takes those on 16 in f32.
//
//===----------------------------------------------------------------------===//

#include "HalfEncode.h"
#include "Avx512.h"
#include "dither/Numerics/Convert.h"

using namespace mlir;
using dither::numerics::ElementFormat;

namespace dither::conversion {

/// From the exponent fields of a bf16 and of a factor to that of their product
/// in binary16: less two biases of 127, more one of 15.
static constexpr uint32_t kBias = 127 + 127 - 15;

static uint32_t twice(uint32_t half) { return half << 16 | half; }

static uint32_t halfOf(float x) { return numerics::encode(numerics::kF16, x); }

/// Products of the magnitudes in `words`, as bits of binary16. What is below
/// its normal values is some value below them, and zero is zero.
static Value scaled(WordBuilder &w, Value words, Value evenFactor,
                    Value oddFactor) {
  Value factors =
      merge(w, 0xFFFF0000, w.asInt(oddFactor), w.shr(w.asInt(evenFactor), 16));
  Value less = subtractSaturated(w, w.i32(twice(kBias << 7)), factors);
  Value sum = subtractSaturated(w, w.andi(words, 0x7FFF7FFF), less);
  return w.make<arith::ShLIOp>(w.asHalves(sum), w.asHalves(w.i32(twice(3))));
}

Value encodeHalves(WordBuilder &w, const ElementFormat &f, Value words,
                   Value evenFactor, Value oddFactor) {
  Value x = scaled(w, words, evenFactor, oddFactor);
  Value least = w.asHalves(w.i32(twice(halfOf(f.minNormal))));
  Value exponents = w.asHalves(w.i32(twice(0x7C00)));
  Value power =
      w.make<arith::AndIOp>(w.make<arith::MaxUIOp>(x, least), exponents);
  Value factor = w.asHalves(w.i32(twice(halfOf(numerics::halfFactor(f)))));
  Value sum = multiplyAddF16(w, power, factor, x);

  // The upper byte of a sum is four times its exponent field, the lower one its
  // mantissa field: the code is upper << (m - 2) + lower.
  unsigned m = f.mantissaBits, narrow = f.bits == 4;
  unsigned up = narrow ? 3 : m == 1; // the code at a higher bit
  Value codes =
      multiplyAddBytes(w, sum, twice((1u << (m + up - 2)) << 8 | 1u << up));
  uint32_t sign = f.signBit() << up;
  codes = merge(w, twice(sign), w.shr(words, 16 - f.bits - up), codes);
  if (!narrow)
    return f.bits == 8 ? codes : w.andi(codes, twice(2 * sign - 1));
  // Two codes to byte 1, the even one below.
  codes = w.andi(codes, twice(0xF << up));
  return multiplyAddHalves(w, codes, 1u << (12 - up) << 16 | 1u << (8 - up));
}

} // namespace dither::conversion
