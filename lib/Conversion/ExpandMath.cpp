//===- ExpandMath.cpp - Functions as plain f32 arithmetic -----------------===//

#include "Avx512.h"
#include "InlineAsm.h"
#include "dither/Conversion/Passes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/Elementary.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace dither::conversion {
#define GEN_PASS_DEF_DITHEREXPANDMATH
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;
namespace conversion = dither::conversion;
namespace elementary = dither::numerics::elementary;
using dither::numerics::Function;

namespace {

/// `function` of x, or of each lane of it where it is a vector: for
/// instructions that take one number.
Value onEachLane(OpBuilder &b, Location loc, Value x,
                 function_ref<Value(Value)> function) {
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector)
    return function(x);
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    lanes.push_back(function(vector::ExtractOp::create(b, loc, x, i)));
  return vector::FromElementsOp::create(b, loc, vector, lanes);
}

/// The steps of Numerics/Elementary.h on scalars or vectors of f32, as IR.
class Steps {
public:
  using Value = mlir::Value;
  using Bits = mlir::Value;
  using Condition = mlir::Value;

  /// `onGpu`: whether NVVM's operations may be used.
  Steps(OpBuilder &b, Location loc, Type type, bool onGpu)
      : b(b), loc(loc), type(type), intType(like(b.getI32Type())),
        onGpu(onGpu) {}

  Value number(float v) { return constant(b.getF32FloatAttr(v), type); }
  Value add(Value x, Value y) { return make<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return make<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return make<arith::MulFOp>(x, y); }
  Value fma(Value x, Value y, Value z) { return make<math::FmaOp>(x, y, z); }
  Value abs(Value x) { return make<math::AbsFOp>(x); }
  Value copySign(Value x, Value y) { return make<math::CopySignOp>(x, y); }
  Value atLeast(Value x, float y) {
    return make<arith::MaximumFOp>(x, number(y));
  }
  Value atMost(Value x, float y) {
    return make<arith::MinimumFOp>(x, number(y));
  }

  /// GPUs have an approximation, at most an ulp off. One step of Newton's makes
  /// it the nearest number: it is what ptxas makes of rcp.rn in this range.
  Value reciprocal(Value x) {
    Value one = number(1.0f);
    if (!onGpu)
      return make<arith::DivFOp>(one, x);
    Value r = onEachLane(b, loc, x, [&](Value lane) -> Value {
      return make<NVVM::RcpApproxFtzF32Op>(b.getF32Type(), lane);
    });
    Value error = fma(make<arith::NegFOp>(x), r, one);
    return fma(r, error, r);
  }

  Condition less(Value x, float y) {
    return make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, number(y));
  }
  Condition equal(Value x, float y) {
    return make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, number(y));
  }
  Condition below(Bits x, Bits y) {
    return make<arith::CmpIOp>(arith::CmpIPredicate::ult, x, y);
  }
  Condition below(Bits x, uint32_t y) { return below(x, integer(y)); }
  Value select(Condition c, Value x, Value y) {
    return make<arith::SelectOp>(c, x, y);
  }

  Bits bits(Value x) { return make<arith::BitcastOp>(intType, x); }
  Value fromBits(Bits x) { return make<arith::BitcastOp>(type, x); }
  Bits integer(uint32_t v) {
    return constant(b.getI32IntegerAttr(int32_t(v)), intType);
  }
  Bits addBits(Bits x, Bits y) { return make<arith::AddIOp>(x, y); }
  Bits subBits(Bits x, Bits y) { return make<arith::SubIOp>(x, y); }
  Bits mulBits(Bits x, Bits y) { return make<arith::MulIOp>(x, y); }
  Bits mulHigh(Bits x, Bits y) {
    return make<arith::MulUIExtendedOp>(x, y).getHigh();
  }
  Bits selectBits(Condition c, Bits x, Bits y) { return select(c, x, y); }
  Bits andBits(Bits x, uint32_t y) {
    return make<arith::AndIOp>(x, integer(y));
  }
  Bits shiftLeft(Bits x, Bits by) { return make<arith::ShLIOp>(x, by); }
  Bits shiftLeft(Bits x, unsigned by) { return shiftLeft(x, integer(by)); }
  Bits shiftRightUnsigned(Bits x, Bits by) {
    return make<arith::ShRUIOp>(x, by);
  }
  Bits shiftRightUnsigned(Bits x, unsigned by) {
    return shiftRightUnsigned(x, integer(by));
  }
  Bits shiftRight(Bits x, unsigned by) {
    return make<arith::ShRSIOp>(x, integer(by));
  }

  using Pair = std::pair<Value, Bits>;
  /// A branch, taken where a lane needs it.
  template <class Rare> Pair usually(Condition c, Pair usual, Rare rare) {
    auto vector = dyn_cast<VectorType>(type);
    Value all = c;
    if (vector)
      all = make<vector::ReductionOp>(vector::CombiningKind::AND, c);
    auto branch = make<scf::IfOp>(TypeRange{type, intType}, all,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    make<scf::YieldOp>(ValueRange{usual.first, usual.second});
    b.setInsertionPointToStart(branch.elseBlock());
    Pair other = rare();
    if (vector)
      other = {select(c, usual.first, other.first),
               select(c, usual.second, other.second)};
    make<scf::YieldOp>(ValueRange{other.first, other.second});
    return {branch.getResult(0), branch.getResult(1)};
  }

private:
  template <typename Op, typename... Args> Op make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }
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
  OpBuilder &b;
  Location loc;
  Type type, intType;
  bool onGpu;
};

//===----------------------------------------------------------------------===//
// What GPUs approximate
//===----------------------------------------------------------------------===//

/// Functions as instructions of a GPU, with the errors that the PTX ISA gives
/// them. Subnormal operands and results are zero.
class Approximations {
public:
  Approximations(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), steps(b, loc, type, /*onGpu=*/true) {}

  /// Null where there is no instruction, and the steps are as good.
  Value evaluate(Function function, Value x) {
    switch (function) {
    case Function::Exp:
    case Function::ExpOfNonpositive:
      return exp(x);
    case Function::Exp2:
      return instruction("ex2.approx.ftz.f32", x);
    case Function::Log:
      return steps.mul(instruction("lg2.approx.ftz.f32", x),
                       steps.number(elementary::kLn2Hi));
    case Function::Log2:
      return instruction("lg2.approx.ftz.f32", x);
    case Function::Tanh:
      return instruction("tanh.approx.f32", x);
    case Function::Sigmoid: {
      Value e = exp(steps.sub(steps.number(-0.0f), x));
      return instruction("rcp.approx.ftz.f32",
                         steps.add(e, steps.number(1.0f)));
    }
    case Function::Erf:
      return {};
    case Function::Sin:
      return instruction("sin.approx.ftz.f32", withoutTurns(x));
    case Function::Cos:
      return instruction("cos.approx.ftz.f32", withoutTurns(x));
    }
    return {};
  }

  Value instruction(StringRef name, Value x) {
    return onEachLane(b, loc, x, [&](Value lane) {
      return conversion::onFloat(b, loc, name, lane);
    });
  }

private:
  Value exp(Value x) {
    return instruction("ex2.approx.ftz.f32",
                       steps.mul(x, steps.number(elementary::kLog2e)));
  }

  /// Without the nearest multiple of 2 pi: the instructions lose their accuracy
  /// outside of that range.
  Value withoutTurns(Value x) {
    Value round = steps.number(elementary::kRound);
    Value n =
        steps.sub(steps.fma(x, steps.number(0x1.45f306p-3f), round), round);
    Value r = steps.fma(n, steps.number(-0x1.921fb6p+2f), x);
    return steps.fma(n, steps.number(0x1.777a5cp-23f), r);
  }

  OpBuilder &b;
  Location loc;
  Steps steps;
};

/// None where `op` has no such attribute.
arith::FastMathFlags fastMathOf(Operation *op) {
  auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
  arith::FastMathFlagsAttr attr;
  if (flags)
    attr = flags.getFastMathFlagsAttr();
  return attr ? attr.getValue() : arith::FastMathFlags::none;
}

/// What `op` becomes where it may be approximated; null where it may not.
Value approximated(Operation *op) {
  if (!bitEnumContainsAll(fastMathOf(op), arith::FastMathFlags::afn))
    return {};
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isF32())
    return {};
  OpBuilder b(op);
  Approximations approximations(b, op->getLoc(), type);
  if (auto function = dyn_cast<dither::quant::ElementaryOpInterface>(op))
    return approximations.evaluate(function.getFunction(), op->getOperand(0));
  if (isa<math::SqrtOp>(op))
    return approximations.instruction("sqrt.approx.ftz.f32", op->getOperand(0));
  if (isa<math::RsqrtOp>(op))
    return approximations.instruction("rsqrt.approx.ftz.f32",
                                      op->getOperand(0));
  if (isa<arith::DivFOp>(op))
    return arith::MulFOp::create(
        b, op->getLoc(), op->getOperand(0),
        approximations.instruction("rcp.approx.ftz.f32", op->getOperand(1)));
  return {};
}

/// What is left of the permission: contractions, on a GPU.
void restrictFastMath(Operation *op, bool onGpu) {
  using Flags = arith::FastMathFlags;
  Flags given = fastMathOf(op);
  Flags left =
      onGpu ? given & ~Flags::afn : given & ~(Flags::afn | Flags::contract);
  if (left != given)
    op->setAttr(cast<arith::ArithFastMathInterface>(op).getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(op->getContext(), left));
}

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

/// The instructions of GPUs and of AVX-512 that round toward zero.
Value expandTowardZero(OpBuilder &b, dither::quant::FmaTowardZeroOp op,
                       bool onGpu) {
  Location loc = op.getLoc();
  Type type = op.getType();
  auto vector = dyn_cast<VectorType>(type);
  if (onGpu && !vector)
    return conversion::inlineAsm(b, loc, type, op->getOperands(),
                                 "fma.rz.f32 $0, $1, $2, $3;", "=f,f,f,f")
        .getResult(0);
  if (onGpu) {
    SmallVector<Value> pairs;
    for (Value v : op->getOperands())
      pairs.push_back(LLVM::BitcastOp::create(b, loc, b.getI64Type(), v));
    return LLVM::BitcastOp::create(
        b, loc, type,
        conversion::inlineAsm(b, loc, b.getI64Type(), pairs,
                              "fma.rz.f32x2 $0, $1, $2, $3;", "=l,l,l,l")
            .getResult(0));
  }
  // A number is one of 16 lanes.
  auto whole = VectorType::get({16}, b.getF32Type());
  SmallVector<Value> lanes(op->getOperands());
  if (!vector)
    for (Value &v : lanes)
      v = vector::BroadcastOp::create(b, loc, whole, v);
  Value result =
      conversion::multiplyAddTowardZero(b, loc, lanes[0], lanes[1], lanes[2]);
  return vector ? result : vector::ExtractOp::create(b, loc, result, 0);
}

/// The upper half of a product whose lower half is needed, too, as that of the
/// whole: one instruction, where LLVM makes one for each half. Null without.
Value highOfWide(dither::quant::MulhiOp high) {
  Value lhs = high.getLhs(), rhs = high.getRhs();
  Type half = high.getType();
  if (!high.getIsUnsigned() || !half.isInteger(32))
    return {};
  for (Operation *user : lhs.getUsers()) {
    auto low = dyn_cast<arith::MulIOp>(user);
    if (!low || low->getBlock() != high->getBlock() || low.getLhs() != lhs ||
        low.getRhs() != rhs)
      continue;
    OpBuilder b(low->isBeforeInBlock(high) ? low.getOperation()
                                           : high.getOperation());
    Location loc = high.getLoc();
    auto halves =
        LLVM::LLVMStructType::getLiteral(b.getContext(), {half, half});
    Value both = conversion::inlineAsm(b, loc, halves, {lhs, rhs},
                                       "{ .reg .b64 w; mul.wide.u32 w, $2, $3; "
                                       "mov.b64 {$0, $1}, w; }",
                                       "=r,=r,r,r")
                     .getResult(0);
    low.getResult().replaceAllUsesWith(
        LLVM::ExtractValueOp::create(b, loc, both, 0));
    return LLVM::ExtractValueOp::create(b, loc, both, 1);
  }
  return {};
}

/// What `op` becomes; null where it stays.
Value expanded(Operation *op, bool onGpu) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto function = dyn_cast<dither::quant::ElementaryOpInterface>(op)) {
    Value x = op->getOperand(0);
    Steps steps(b, loc, x.getType(), onGpu);
    return evaluate(function.getFunction(), steps, x);
  }
  if (isa<math::RsqrtOp>(op) &&
      getElementTypeOrSelf(op->getResult(0).getType()).isF32()) {
    Value x = op->getOperand(0);
    Steps steps(b, loc, x.getType(), onGpu);
    return arith::DivFOp::create(b, loc, steps.number(1.0f),
                                 math::SqrtOp::create(b, loc, x));
  }
  if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp>(op))
    return expandRoundedDivision(b, loc, op->getOperand(0), op->getOperand(1),
                                 isa<arith::CeilDivSIOp>(op));
  if (auto mulhi = dyn_cast<dither::quant::MulhiOp>(op)) {
    if (Value high = onGpu ? highOfWide(mulhi) : Value())
      return high;
    if (mulhi.getIsUnsigned())
      return arith::MulUIExtendedOp::create(b, loc, mulhi.getLhs(),
                                            mulhi.getRhs())
          .getHigh();
    return arith::MulSIExtendedOp::create(b, loc, mulhi.getLhs(),
                                          mulhi.getRhs())
        .getHigh();
  }
  if (auto fma = dyn_cast<dither::quant::FmaTowardZeroOp>(op))
    return expandTowardZero(b, fma, onGpu);
  return {};
}

struct ExpandMath
    : public dither::conversion::impl::DitherExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    const dither::target::TargetInfo *target =
        dither::target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    getOperation()->walk([&](Operation *op) {
      Value result = target->isGpu ? approximated(op) : Value();
      if (!result)
        result = expanded(op, target->isGpu);
      if (!result)
        return restrictFastMath(op, target->isGpu);
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    });
  }
};

} // namespace
