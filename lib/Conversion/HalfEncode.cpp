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
#include "Elements.h"
#include "dither/Numerics/Convert.h"

using namespace mlir;
using dither::numerics::ElementFormat;

namespace dither::conversion {

/// From the exponent fields of a bf16 and of a factor to that of their product
/// in binary16: less two biases of 127, more one of 15.
static constexpr uint32_t kBias = 127 + 127 - 15;

static uint32_t twice(uint32_t half) { return half << 16 | half; }

static uint32_t halfOf(float x) { return numerics::encode(numerics::kF16, x); }

/// Register `at` of a value of several.
static Value registerAt(WordBuilder &w, Value v, int64_t at) {
  Value known = registerOf(v, at);
  return known ? known
               : w.b.createOrFold<vector::ExtractOp>(w.loc, v,
                                                     ArrayRef<int64_t>{at});
}

/// By how much the exponent fields of values of bf16 are above those of their
/// products in binary16, of a factor that all values have.
static Value shortfallOf(WordBuilder &w, Value factor) {
  auto constant = [&](int32_t v) -> Value {
    return arith::ConstantOp::create(w.b, w.loc, w.b.getI32IntegerAttr(v));
  };
  Value bits = w.make<arith::BitcastOp>(w.b.getI32Type(), factor);
  Value half = w.make<arith::ShRUIOp>(bits, constant(16));
  Value less = w.make<arith::TruncIOp>(
      w.b.getI16Type(), w.make<arith::SubIOp>(constant(kBias << 7), half));
  auto type = VectorType::get({2 * w.lanes}, w.b.getI16Type());
  return w.asWords(w.make<vector::BroadcastOp>(type, less));
}

/// The same of registers `at` and at + 1 of factors.
static Value shortfallOf(WordBuilder &w, Value factors, int64_t at) {
  auto broadcast = factors.getDefiningOp<vector::BroadcastOp>();
  if (broadcast && broadcast.getSourceType().isF32())
    return shortfallOf(w, broadcast.getSource());
  Value even = registerAt(w, factors, at), odd = registerAt(w, factors, at + 1);
  auto [decode, word] = wordOf(even, odd);
  Value halves =
      decode ? registerAt(w, decode.getSource(), word)
             : merge(w, 0xFFFF0000, w.asInt(odd), w.shr(w.asInt(even), 16));
  return w.asWords(w.make<arith::SubIOp>(w.asHalves(w.i32(twice(kBias << 7))),
                                         w.asHalves(halves)));
}

/// Products of the magnitudes in `words`, as bits of binary16. What is below
/// its normal values is some value below them, and zero is zero, also times a
/// factor above 2^112, whose shortfall is below zero: a large number.
static Value scaled(WordBuilder &w, Value words, Value less) {
  Value sum = subtractSaturated(w, w.andi(words, 0x7FFF7FFF), less);
  return w.make<arith::ShLIOp>(w.asHalves(sum), w.asHalves(w.i32(twice(3))));
}

Value encodeHalves(WordBuilder &w, const ElementFormat &f, Value words,
                   Value factors, int64_t at) {
  Value x = scaled(w, words, shortfallOf(w, factors, at));
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
