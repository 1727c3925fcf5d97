//===- RoundedWord.cpp - Encoding f32 by one multiply-add -----------------===//
//
// As in QuantToArith the code is the low bits of sum + (sum >> shift), for a
// GPU, which multiplies integers and adds to the product at once, takes bytes
// of two registers, and takes absolute values for free.
//
// Below the exponent a sum has no more than the last bits of its mantissa, so
// one product has the code at the top, a zero for its sign included, and
// nothing below reaches it. The sum of a NaN has all bits set but the highest,
// and one unit more of the product's lower part makes its code of all ones, the
// sign included, which no other code notices.
//
//===----------------------------------------------------------------------===//

#include "RoundedWord.h"
#include "InlineAsm.h"
#include "Magnitudes.h"

using namespace mlir;
using dither::numerics::ElementFormat;

namespace dither::conversion {

Value encodeRoundedWord(WordBuilder &w, ArrayRef<Value> xs,
                        const ElementFormat &f) {
  assert(f.storageBits() == 8 && (!f.hasNaN || f.nanCode == f.signBit() - 1) &&
         "a code of all ones");
  numerics::FusedRounding r = fusedRounding(f);
  unsigned top = 32 - f.bits;
  uint32_t unit = 1u << (top - r.shift);
  Value limit = w.f32(f.max);
  // Of a NaN it is the one without a sign: LLVM would compute another of a
  // constant.
  auto orNaN = [&](Value x) {
    return inlineAsm(w.b, w.loc, x.getType(), {x, limit},
                     "min.NaN.f32 $0, $1, $2;", "=f,f,f")
        .getResult(0);
  };
  auto atMost = [&](Value x) -> Value {
    return f.hasNaN ? orNaN(x) : w.make<arith::MinNumFOp>(x, limit);
  };
  SmallVector<Value> codes;
  for (Value x : xs) {
    bool magnitude = isMagnitude(x);
    // A NaN without a sign, or the largest value.
    if (!magnitude && !hasPlainNaN(x))
      x = atMost(x);
    Value mag = atMost(magnitude ? x : magnitudeOf(w.b, w.loc, x));
    Value least = w.make<arith::MaxNumFOp>(mag, w.f32(f.minNormal));
    Value power = w.asFloat(w.andi(w.asInt(least), 0x7F800000));
    Value sum = w.asInt(w.make<math::FmaOp>(power, w.f32(r.factor), mag));
    Value code = w.make<arith::MulIOp>(sum, w.i32((1u << top) + unit));
    if (!magnitude && f.hasNaN)
      code = w.addi(code, w.i32(unit));
    if (!magnitude)
      code = selectBits(w.b, w.loc, w.i32(0x80000000), w.asInt(x), code);
    codes.push_back(code);
  }
  Value word = topBytes(w.b, w.loc, codes);
  if (f.bits < 8)
    word = w.andi(w.shr(word, 8 - f.bits), 0x01010101 * (2 * f.signBit() - 1));
  return word;
}

} // namespace dither::conversion
