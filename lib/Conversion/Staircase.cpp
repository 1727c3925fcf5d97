//===- Staircase.cpp - Codes as the least of a few sums -------------------===//
//
// The code of a magnitude a is a concave function of it, rounded: within each
// binade it rises by equal steps, which are twice as long in the next. So it is
// the least of straight lines, one for each binade, and as rounding to nearest
// even is monotone, the least of the rounded lines. A line rounds where it is
// added to a constant whose last bit is one code: with u the smallest positive
// value and 2^m codes to a binade, line k is a / 2^k + (1.5 * 2^23 + k * 2^m) u
// in f32, and has its code in the last bits. All sums have the same bits above
// those, so that the least is that of integers, and the largest code one more
// line. A NaN is above all lines, and has the largest code.
//
// Against the rounding of QuantToArith there is no exponent to take out and to
// put back, and codes are packed by multiply-adds, bits above them included,
// which are constants and are taken off at the end.
//
//===----------------------------------------------------------------------===//

#include "Staircase.h"
#include "InlineAsm.h"
#include "Magnitudes.h"
#include "dither/Numerics/Bits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using dither::numerics::bitsOf;
using dither::numerics::ElementFormat;

namespace dither::conversion {

/// More lines than these take longer than to find the exponent.
constexpr unsigned kMostLines = 3;

static unsigned linesOf(const ElementFormat &f) {
  return unsigned(f.maxExponent() - (1 - f.bias)) + 1;
}

bool isStaircase(const ElementFormat &f) {
  return f.hasSign && !f.twosComplement && !f.hasNaN && !f.hasInf &&
         linesOf(f) <= kMostLines;
}

/// Byte k of the result is the last byte of xs[k]; the others are of no
/// consequence.
static Value topBytes(WordBuilder &w, ArrayRef<Value> xs) {
  auto permute = [&](Value a, Value b, StringRef selector) {
    return inlineAsm(w.b, w.loc, w.i32Type(), {a, b},
                     ("prmt.b32 $0, $1, $2, " + selector + ";").str(), "=r,r,r")
        .getResult(0);
  };
  if (xs.size() == 1)
    return w.shr(xs[0], 24);
  Value low = permute(xs[0], xs[1], "0x73");
  if (xs.size() == 2)
    return low;
  Value high =
      xs.size() == 3 ? w.shr(xs[2], 24) : permute(xs[2], xs[3], "0x73");
  return permute(low, high, "0x5410");
}

/// The signs of `xs` in the sign bits of their codes, with other bits around
/// them that `mask` takes off.
static Value signsOf(WordBuilder &w, ArrayRef<Value> xs,
                     const ElementFormat &f) {
  unsigned perByte = 8 / f.storageBits();
  Value signs;
  for (unsigned i = 0; i < perByte && i < xs.size(); ++i) {
    SmallVector<Value> bytes;
    for (size_t k = i; k < xs.size(); k += perByte)
      bytes.push_back(xs[k]);
    unsigned bit = i * f.storageBits() + f.bits - 1;
    uint32_t mask = 0;
    for (size_t k = 0; k < bytes.size(); ++k)
      mask |= 1u << (8 * k + bit);
    Value part = w.andi(w.shr(topBytes(w, bytes), 7 - bit), mask);
    signs = signs ? w.ori(signs, part) : part;
  }
  return signs;
}

Value encodeStaircase(WordBuilder &w, ArrayRef<Value> xs,
                      const ElementFormat &f) {
  float unit = f.minPositive(), base = 0x1.8p23f * unit;
  uint32_t one = 1u << f.storageBits(), above = 0;
  SmallVector<Value> bits;
  Value word;
  for (Value x : llvm::reverse(xs)) {
    if (!hasPlainNaN(x))
      x = w.make<arith::MinNumFOp>(x, w.f32(f.max));
    bits.push_back(w.asInt(x));
    Value magnitude = w.make<math::AbsFOp>(x), least;
    for (unsigned k = 0; k < linesOf(f); ++k) {
      Value at = w.f32(base + float(k << f.mantissaBits) * unit);
      Value line = k ? Value(w.make<math::FmaOp>(magnitude,
                                                 w.f32(1 / float(1u << k)), at))
                     : Value(w.make<arith::AddFOp>(magnitude, at));
      line = w.asInt(line);
      least = least ? Value(w.make<arith::MinSIOp>(least, line)) : line;
    }
    least = w.make<arith::MinSIOp>(least, w.i32(bitsOf(base) + f.maxCode));
    word =
        word ? w.addi(w.make<arith::MulIOp>(word, w.i32(one)), least) : least;
    above = above * one + bitsOf(base);
  }
  std::reverse(bits.begin(), bits.end());
  return w.ori(w.make<arith::SubIOp>(word, w.i32(above)), signsOf(w, bits, f));
}

} // namespace dither::conversion
