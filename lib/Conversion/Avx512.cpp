//===- Avx512.cpp - Instructions of AVX-512 and AVX2 by name --------------===//

#include "Avx512.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace dither::conversion {

/// _MM_FROUND_CUR_DIRECTION; _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC.
static constexpr int32_t kCurrentRounding = 4, kTowardZero = 11;

static Value intrinsic(OpBuilder &b, Location loc, StringRef name,
                       ValueRange operands, Type result) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                       operands)
      .getResult(0);
}

static Value intrinsic(WordBuilder &w, StringRef name, ValueRange operands,
                       Type result) {
  return intrinsic(w.b, w.loc, name, operands, result);
}

static Value immediate(OpBuilder &b, Location loc, int32_t v) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(v));
}

static Value immediate(WordBuilder &w, int32_t v) {
  return immediate(w.b, w.loc, v);
}

/// The bit of `table` that the bits of x (the highest), y and z name.
static Value ternary(WordBuilder &w, Value x, Value y, Value z, int32_t table) {
  return intrinsic(w, "llvm.x86.avx512.pternlog.d.512",
                   {x, y, z, immediate(w, table)}, w.i32Type());
}

Value merge(WordBuilder &w, uint32_t mask, Value x, Value y) {
  if (w.avx512)
    return ternary(w, w.i32(mask), x, y, 0xCA);
  return w.make<arith::XOrIOp>(w.andi(w.make<arith::XOrIOp>(x, y), mask), y);
}

Value orMasked(WordBuilder &w, Value x, Value y, uint32_t mask) {
  if (w.avx512)
    return ternary(w, x, y, w.i32(mask), 0xF8);
  return w.ori(x, w.andi(y, mask));
}

Value multiplyAddHalves(WordBuilder &w, Value words, uint32_t factors) {
  if (w.avx2) {
    // Of the two registers that have them.
    int64_t lanes = w.lanes / 2;
    auto half = VectorType::get({lanes}, w.b.getI32Type());
    auto halves = VectorType::get({2 * lanes}, w.b.getI16Type());
    auto part = [&](Value v, int64_t first) -> Value {
      return w.make<vector::BitCastOp>(
          halves, w.make<vector::ExtractStridedSliceOp>(
                      v, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{lanes},
                      ArrayRef<int64_t>{1}));
    };
    Value sums = words;
    for (int64_t first : {int64_t(0), lanes}) {
      Value x = part(words, first), y = part(w.i32(factors), first);
      sums = w.make<vector::InsertStridedSliceOp>(
          intrinsic(w, "llvm.x86.avx2.pmadd.wd", {x, y}, half), sums,
          ArrayRef<int64_t>{first}, ArrayRef<int64_t>{1});
    }
    return sums;
  }
  return intrinsic(w, "llvm.x86.avx512.pmaddw.d.512",
                   {w.asHalves(words), w.asHalves(w.i32(factors))},
                   w.i32Type());
}

Value multiplyAddBytes(WordBuilder &w, Value words, uint32_t factors) {
  auto bytes = VectorType::get({4 * w.lanes}, w.b.getI8Type());
  auto asBytes = [&](Value v) { return w.make<vector::BitCastOp>(bytes, v); };
  return w.asWords(intrinsic(w, "llvm.x86.avx512.pmaddubs.w.512",
                             {asBytes(words), asBytes(w.i32(factors))},
                             w.asHalves(words).getType()));
}

Value lookUpBytes(WordBuilder &w, Value low, Value places, Value high) {
  auto bytes = VectorType::get({4 * w.lanes}, w.b.getI8Type());
  auto asBytes = [&](Value v) { return w.make<vector::BitCastOp>(bytes, v); };
  return w.asWords(intrinsic(w, "llvm.x86.avx512.vpermi2var.qi.512",
                             {asBytes(low), asBytes(places), asBytes(high)},
                             bytes));
}

Value permuteBytes(OpBuilder &b, Location loc, Value bytes, Value places) {
  return intrinsic(b, loc, "llvm.x86.avx512.permvar.qi.512", {bytes, places},
                   bytes.getType());
}

Value multiplyAddF16(WordBuilder &w, Value x, Value y, Value z) {
  auto type = VectorType::get({2 * w.lanes}, w.b.getF16Type());
  auto asF16 = [&](Value v) { return w.make<vector::BitCastOp>(type, v); };
  return w.asWords(intrinsic(
      w, "llvm.x86.avx512fp16.vfmadd.ph.512",
      {asF16(x), asF16(y), asF16(z), immediate(w, kCurrentRounding)}, type));
}

Value multiplyAddTowardZero(OpBuilder &b, Location loc, Value x, Value y,
                            Value z) {
  return intrinsic(b, loc, "llvm.x86.avx512.vfmadd.ps.512",
                   {x, y, z, immediate(b, loc, kTowardZero)}, x.getType());
}

/// Of VRANGEPS in Intel's manual: the smaller or the larger absolute value,
/// with the sign of the first operand.
static constexpr int32_t kSmaller = 2, kLarger = 3;

static Value ofMagnitudes(WordBuilder &w, Value x, Value y, int32_t which) {
  if (!w.avx512) {
    auto isX = which == kSmaller ? arith::CmpFPredicate::OLT
                                 : arith::CmpFPredicate::OGT;
    return w.select(w.cmpf(isX, x, y), x, y);
  }
  Value all = w.constants.get(w.loc, w.b.getI16IntegerAttr(-1));
  return intrinsic(
      w, "llvm.x86.avx512.mask.range.ps.512",
      {x, y, immediate(w, which), x, all, immediate(w, kCurrentRounding)},
      w.f32Type());
}

Value smallerMagnitude(WordBuilder &w, Value x, Value y) {
  return ofMagnitudes(w, x, y, kSmaller);
}

Value largerMagnitude(WordBuilder &w, Value x, Value y) {
  return ofMagnitudes(w, x, y, kLarger);
}

Value subtractSaturated(WordBuilder &w, Value words, Value less) {
  return w.asWords(w.make<LLVM::USubSat>(w.asHalves(words), w.asHalves(less)));
}

Value increment(WordBuilder &w, Value halves, Value here) {
  Value one = w.asHalves(w.i32(0x00010001));
  Value more = w.avx512 ? w.make<LLVM::UAddSat>(halves, one)
                        : w.make<arith::AddIOp>(halves, one);
  return w.select(here, more, halves);
}

Value replaceNaN(WordBuilder &w, Value x, uint32_t nan) {
  if (!w.avx512)
    return w.select(w.cmpf(arith::CmpFPredicate::UNO, x, x), w.i32(nan),
                    w.asInt(x));
  // A nibble of the table for each class of numbers: 0 keeps what is there, 1
  // takes the number. The lowest two are quiet and signaling NaN.
  Value all = arith::ConstantOp::create(w.b, w.loc, w.b.getI16IntegerAttr(-1));
  return w.asInt(
      intrinsic(w, "llvm.x86.avx512.mask.fixupimm.ps.512",
                {w.asFloat(w.i32(nan)), x, w.i32(0x11111100), immediate(w, 0),
                 all, immediate(w, kCurrentRounding)},
                w.f32Type()));
}

} // namespace dither::conversion
