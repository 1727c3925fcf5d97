//===- QuantWordOps.cpp - Conversions of packed registers -----------------===//
//
// Verification. Labels such as WO1 name the constraints of Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::quant {

/// Types that words hold: WO1.
static LogicalResult checkElem(Where where, Type elem) {
  auto fits = [](const numerics::ElementFormat &f) { return f.bits <= 16; };
  const numerics::ElementFormat *format = elementFormat(elem);
  if (format && fits(*format))
    return success();
  return where.fail("elem is " + str(elem) + ", expected " + listTypes(fits));
}

/// Register i is code i mod group of word i / group: WO2 to WO4.
static LogicalResult checkWords(Where where, VectorType regs, VectorType words,
                                unsigned bits, int64_t group) {
  if (group <= 0 || group > 32 / bits || !llvm::isPowerOf2_64(group))
    return where.fail("group is " + Twine(group) +
                      ", expected a power of two up to " + Twine(32 / bits) +
                      " for codes of " + Twine(bits) + " bits");
  if (regs.isScalable() || words.isScalable())
    return where.fail("registers are " + str(regs) + " and words " +
                      str(words) + ", expected fixed lengths");
  Shape expected(words.getShape());
  if (llvm::MulOverflow(expected[0], group, expected[0]) ||
      regs.getShape() != ArrayRef<int64_t>(expected))
    return where.fail("registers have shape " + str(regs.getShape()) +
                      ", expected " + str(expected) + ", " + Twine(group) +
                      " for each word");
  return success();
}

LogicalResult EncodeWordsOp::verify() {
  Where where(*this);
  if (failed(checkElem(where, getElem())))
    return failure();
  bool e8m0 = isa<Float8E8M0FNUType>(getElem());
  // WO5, WO6
  if (e8m0 && !getMode())
    return where.fail("has no mode, expected rceil or floor for f8E8M0FNU");
  if (!e8m0 && getMode())
    return where.fail("has mode " + stringifyE8M0Mode(*getMode()) + " for " +
                      str(getElem()) + ", expected a mode for f8E8M0FNU only");
  return checkWords(where, getSource().getType(), getResult().getType(),
                    storageBits(getElem()), getGroup());
}

LogicalResult DecodeWordsOp::verify() {
  if (failed(checkElem(*this, getElem())))
    return failure();
  return checkWords(*this, getResult().getType(), getSource().getType(),
                    storageBits(getElem()), getGroup());
}

LogicalResult E8M0InverseWordsOp::verify() {
  return checkWords(*this, getResult().getType(), getSource().getType(), 8,
                    getGroup());
}

LogicalResult ScaleEncodeWordsOp::verify() {
  Where where(*this);
  Type elem = getElem();
  auto fits = [](const numerics::ElementFormat &f) {
    return isCodeFormat(f) && !f.twosComplement;
  };
  const numerics::ElementFormat *format = elementFormat(elem);
  if (!format || !fits(*format)) // WO7
    return where.fail("elem is " + str(elem) + ", expected " + listTypes(fits));
  if (getPowers() && !getBounded()) // WO9
    return where.fail("has powers, expected it to be bounded, too");
  VectorType source = getSource().getType(), words = getResult().getType(),
             factors = getFactor().getType();
  // WO8: words of the source hold two values, registers one.
  VectorType values = source.getElementType().isF32() ? factors : words;
  if (source.getShape() != values.getShape())
    return where.fail("source has shape " + str(source.getShape()) +
                      ", expected " + str(values.getShape()));
  if (getInOrder() &&
      (!source.getElementType().isF32() || factors.getRank() != 2)) // WO10
    return where.fail("is in order and has a source of " + str(source) +
                      ", expected registers of lanes of f32");
  return checkWords(where, factors, words, storageBits(elem),
                    getInOrder() ? 32 / storageBits(elem) : 2);
}

} // namespace dither::quant
