//===- Decompose.h - What the decompositions share --------------*- C++ -*-===//
//
// Operations that stand for others become arithmetic on tiles, in f32 and with
// one rounding for each operation (QuantDecompose.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_DECOMPOSE_H
#define DITHER_DIALECT_QUANT_DECOMPOSE_H

#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace dither::quant {

/// f32 arithmetic on tiles of any shape. Constants take the shape of the other
/// operand; a rank-0 operand is repeated over the other one.
class Arith {
public:
  Arith(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value splat(mlir::Value like, float v) {
    auto type = shapeOf(like).clone(b.getF32Type());
    return mlir::arith::ConstantOp::create(
        b, loc, mlir::DenseElementsAttr::get(type, b.getF32FloatAttr(v)));
  }
  mlir::Value splatBits(mlir::Value like, uint32_t v) {
    auto type = shapeOf(like).clone(b.getI32Type());
    return mlir::arith::ConstantOp::create(
        b, loc,
        mlir::DenseElementsAttr::get(type, b.getI32IntegerAttr(int32_t(v))));
  }
  /// `v` in the shape of `like`.
  mlir::Value repeat(mlir::Value v, mlir::Value like) {
    auto type = shapeOf(like).clone(
        mlir::cast<mlir::RankedTensorType>(v.getType()).getElementType());
    if (v.getType() == type)
      return v;
    return BroadcastOp::create(b, loc, type, v);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulFOp::create(b, loc, x, repeat(y, x));
  }
  mlir::Value mul(mlir::Value x, float y) { return mul(x, splat(x, y)); }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivFOp::create(b, loc, x, repeat(y, x));
  }
  mlir::Value div(float x, mlir::Value y) { return div(splat(y, x), y); }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddFOp::create(b, loc, x, y);
  }
  mlir::Value add(mlir::Value x, float y) { return add(x, splat(x, y)); }
  mlir::Value equal(mlir::Value x, float y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OEQ,
                                       x, splat(x, y));
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  /// fmin(x, y), and fmax(x, y), for a constant y.
  mlir::Value min(mlir::Value x, float y) {
    return pick(x, y, mlir::arith::CmpFPredicate::OLT);
  }
  mlir::Value max(mlir::Value x, float y) {
    return pick(x, y, mlir::arith::CmpFPredicate::OGT);
  }
  mlir::Value bits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc,
                                          shapeOf(x).clone(b.getI32Type()), x);
  }
  mlir::Value fromBits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc,
                                          shapeOf(x).clone(b.getF32Type()), x);
  }
  /// Of integers of 32 bits.
  mlir::Value andBits(mlir::Value x, uint32_t mask) {
    return mlir::arith::AndIOp::create(b, loc, x, splatBits(x, mask));
  }
  /// The bits of |x|.
  mlir::Value magnitudeBits(mlir::Value x) {
    return andBits(bits(x), 0x7FFFFFFF);
  }
  /// Any float type to f32, exactly.
  mlir::Value widen(mlir::Value x) {
    mlir::Type elem = shapeOf(x).getElementType();
    if (elem.isF32())
      return x;
    auto type = shapeOf(x).clone(b.getF32Type());
    if (elem.getIntOrFloatBitWidth() >= 16)
      return mlir::arith::ExtFOp::create(b, loc, type, x);
    return DecodeOp::create(b, loc, type, x);
  }
  static mlir::RankedTensorType shapeOf(mlir::Value v) {
    return mlir::cast<mlir::RankedTensorType>(v.getType());
  }

  mlir::OpBuilder &b;
  mlir::Location loc;

private:
  mlir::Value pick(mlir::Value x, float y,
                   mlir::arith::CmpFPredicate predicate) {
    mlir::Value limit = splat(x, y);
    mlir::Value holds =
        mlir::arith::CmpFOp::create(b, loc, predicate, x, limit);
    return select(holds, x, limit);
  }
};

/// Attach DecomposableOpInterface to the norms, and to what rounds by random
/// bits.
void attachNormDecompositions(mlir::MLIRContext &context);
void attachRandomDecompositions(mlir::MLIRContext &context);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_DECOMPOSE_H
