//===- Staircase.cpp - Codes as the least of a few sums -------------------===//
//
// On GPUs, against the rounding of QuantToArith, there is no exponent to take
// out and to put back, and codes are packed by multiply-adds, the bits above
// them included, which are constants and are taken off at the end.
//
//===----------------------------------------------------------------------===//

#include "Staircase.h"
#include "InlineAsm.h"
#include "Magnitudes.h"
#include "dither/Numerics/Bits.h"
#include "dither/Numerics/Staircase.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using dither::numerics::bitsOf;
using dither::numerics::ElementFormat;
using dither::numerics::Staircase;

namespace dither::conversion {

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
    Value part = w.andi(w.shr(topBytes(w.b, w.loc, bytes), 7 - bit), mask);
    signs = signs ? w.ori(signs, part) : part;
  }
  return signs;
}

Value encodeStaircase(WordBuilder &w, ArrayRef<Value> xs,
                      const ElementFormat &f) {
  Staircase stairs{f, 24};
  uint32_t first = bitsOf(stairs.line(0).start);
  uint32_t one = 1u << f.storageBits(), above = 0;
  SmallVector<Value> bits;
  Value word;
  for (Value x : llvm::reverse(xs)) {
    if (!hasPlainNaN(x))
      x = w.make<arith::MinNumFOp>(x, w.f32(f.max));
    bits.push_back(w.asInt(x));
    Value magnitude = magnitudeOf(w.b, w.loc, x),
          code = w.i32(first + f.maxCode);
    for (unsigned i = 0; i < stairs.size(); ++i) {
      auto [slope, start] = stairs.line(i);
      Value sum =
          i ? Value(w.make<math::FmaOp>(magnitude, w.f32(slope), w.f32(start)))
            : Value(w.make<arith::AddFOp>(magnitude, w.f32(start)));
      code = w.make<arith::MinSIOp>(w.asInt(sum), code);
    }
    word = word ? w.addi(w.make<arith::MulIOp>(word, w.i32(one)), code) : code;
    above = above * one + first;
  }
  std::reverse(bits.begin(), bits.end());
  return w.ori(w.make<arith::SubIOp>(word, w.i32(above)), signsOf(w, bits, f));
}

} // namespace dither::conversion
