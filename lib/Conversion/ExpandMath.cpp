//===- ExpandMath.cpp - exp, tanh and rsqrt as plain f32 arithmetic -------===//

#include "dither/Conversion/Passes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/Elementary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace dither::conversion {
#define GEN_PASS_DEF_DITHEREXPANDMATH
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;
using numerics_exp = dither::numerics::ExpConstants;
using numerics_tanh = dither::numerics::TanhConstants;

namespace {

/// Emits the steps of Numerics/Elementary.h on a scalar or vector of f32.
class Steps {
public:
  Steps(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type), intType(like(b.getI32Type())) {}

  Value f(float v) { return constant(b.getF32FloatAttr(v), type); }
  Value i(int32_t v) { return constant(b.getI32IntegerAttr(v), intType); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value select(arith::CmpFPredicate p, Value x, Value y, Value t, Value e) {
    return arith::SelectOp::create(
        b, loc, arith::CmpFOp::create(b, loc, p, x, y), t, e);
  }

  Value exp(Value x) {
    using C = numerics_exp;
    Value c = select(arith::CmpFPredicate::OGT, x, f(C::kMax), f(C::kMax), x);
    c = select(arith::CmpFPredicate::OLT, c, f(C::kMin), f(C::kMin), c);
    Value n = sub(add(mul(c, f(C::kLog2e)), f(C::kRound)), f(C::kRound));
    Value r = fma(n, f(-C::kLn2Hi), c);
    r = fma(n, f(-C::kLn2Lo), r);
    Value p = f(C::kPoly[0]);
    for (int k = 1; k < 8; ++k)
      p = fma(p, r, f(C::kPoly[k]));
    // fptosi of NaN is poison: NaN takes n = 0 and stays NaN through p.
    Value finite = select(arith::CmpFPredicate::ORD, n, n, n, f(0.0f));
    Value k = arith::FPToSIOp::create(b, loc, intType, finite);
    Value half = arith::ShRSIOp::create(b, loc, k, i(1));
    Value rest = arith::SubIOp::create(b, loc, k, half);
    return mul(mul(p, pow2(half)), pow2(rest));
  }

  Value tanh(Value x) {
    using C = numerics_tanh;
    Value a = math::AbsFOp::create(b, loc, x), z = mul(x, x);
    Value p = f(C::kPoly[0]);
    for (int k = 1; k < 5; ++k)
      p = fma(p, z, f(C::kPoly[k]));
    Value small = fma(mul(p, z), x, x);
    Value big = sub(f(1.0f), div(f(2.0f), add(exp(add(a, a)), f(1.0f))));
    big = math::CopySignOp::create(b, loc, big, x);
    return select(arith::CmpFPredicate::OLT, a, f(C::kSmall), small, big);
  }

private:
  Type like(Type elem) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return shaped.clone(elem);
    return elem;
  }
  Value constant(TypedAttr attr, Type t) {
    if (auto shaped = dyn_cast<ShapedType>(t))
      attr = DenseElementsAttr::get(shaped, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value pow2(Value e) {
    Value bits = arith::ShLIOp::create(
        b, loc, arith::AddIOp::create(b, loc, e, i(127)), i(23));
    return arith::BitcastOp::create(b, loc, type, bits);
  }
  OpBuilder &b;
  Location loc;
  Type type, intType;
};

/// Division that rounds down (or up): the truncated quotient, corrected where
/// there is a remainder whose sign says so.
Value expandRoundedDivision(OpBuilder &b, Location loc, Value x, Value y,
                            bool up) {
  auto constant = [&](int64_t v) -> Value {
    TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(x.getType()), v);
    if (auto shaped = dyn_cast<ShapedType>(x.getType()))
      attr = DenseElementsAttr::get(shaped, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  };
  using P = arith::CmpIPredicate;
  Value zero = constant(0);
  Value quotient = arith::DivSIOp::create(b, loc, x, y);
  Value rest = arith::RemSIOp::create(b, loc, x, y);
  Value inexact = arith::CmpIOp::create(b, loc, P::ne, rest, zero);
  Value differ =
      arith::CmpIOp::create(b, loc, up ? P::sge : P::slt,
                            arith::XOrIOp::create(b, loc, rest, y), zero);
  Value correct = arith::AndIOp::create(b, loc, inexact, differ);
  Value corrected =
      arith::AddIOp::create(b, loc, quotient, constant(up ? 1 : -1));
  return arith::SelectOp::create(b, loc, correct, corrected, quotient);
}

struct ExpandMath
    : public dither::conversion::impl::DitherExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<dither::quant::ExpOp, dither::quant::TanhOp>(op) ||
          (isa<math::RsqrtOp>(op) &&
           getElementTypeOrSelf(op->getResult(0).getType()).isF32()))
        ops.push_back(op);
      if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder b(op);
      Value x = op->getOperand(0);
      Steps steps(b, op->getLoc(), x.getType());
      Value result;
      if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp>(op))
        result = expandRoundedDivision(b, op->getLoc(), x, op->getOperand(1),
                                       isa<arith::CeilDivSIOp>(op));
      else if (isa<dither::quant::ExpOp>(op))
        result = steps.exp(x);
      else if (isa<dither::quant::TanhOp>(op))
        result = steps.tanh(x);
      else
        result =
            steps.div(steps.f(1.0f), math::SqrtOp::create(b, op->getLoc(), x));
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  }
};

} // namespace
