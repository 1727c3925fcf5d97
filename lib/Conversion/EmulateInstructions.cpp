//===- EmulateInstructions.cpp - What a target has no instruction for -----===//
//
// LLVM would call a library for these, which compiled code never does: they
// become arithmetic that every CPU has, with the bits of the instruction.
//
// The fused multiply-add computes in f64 with one rounding to odd, which a
// second one, to nearest, cannot see: f64 has more than two bits beyond f32.
// Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved
// algorithms using rounding to odd", IEEE Transactions on Computers 57(4). It
// is called; the others are a few instructions for each register, in place.
//
//===----------------------------------------------------------------------===//

#include "dither/Conversion/Passes.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

namespace dither::conversion {
#define GEN_PASS_DEF_DITHEREMULATEINSTRUCTIONS
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;
using dither::target::TargetInfo;

namespace {

using IntIs = arith::CmpIPredicate;
using FloatIs = arith::CmpFPredicate;

/// Arithmetic on scalars, or on vectors of one shape.
class Emulation {
public:
  Emulation(ImplicitLocOpBuilder b, Type type)
      : b(b), shaped(dyn_cast<ShapedType>(type)) {}
  Emulation(Operation *op)
      : Emulation(ImplicitLocOpBuilder(op->getLoc(), op),
                  op->getResult(0).getType()) {}

  /// fl(x y + z) of f32.
  Value fma(Value x, Value y, Value z) {
    Type f64 = like(b.getF64Type()), i64 = like(b.getI64Type());
    // Exact: 48 bits, far from the ends of f64's exponents.
    Value product = make<arith::MulFOp>(make<arith::ExtFOp>(f64, x),
                                        make<arith::ExtFOp>(f64, y));
    Value addend = make<arith::ExtFOp>(f64, z);
    Value sum = make<arith::AddFOp>(product, addend);
    // What the rounding of the sum dropped, exactly (Knuth's TwoSum).
    Value other = make<arith::SubFOp>(sum, product);
    Value error = make<arith::AddFOp>(
        make<arith::SubFOp>(product, make<arith::SubFOp>(sum, other)),
        make<arith::SubFOp>(addend, other));
    // Rounded to odd, an inexact sum is that of its two neighbours whose last
    // bit is 1: the bits of the one on zero's side with the last one set. That
    // one is `sum`, and the number before it where the error has another sign.
    Value bits = make<arith::BitcastOp>(i64, sum);
    Value differ = make<arith::ShRUIOp>(
        make<arith::XOrIOp>(make<arith::BitcastOp>(i64, error), bits),
        integer(i64, 63));
    Value odd =
        make<arith::OrIOp>(make<arith::SubIOp>(bits, differ), integer(i64, 1));
    // Ordered: the error of an infinite sum is a NaN, and the sum stays.
    Value inexact = make<arith::CmpFOp>(FloatIs::ONE, error, number(f64, 0.0));
    bits = make<arith::SelectOp>(inexact, odd, bits);
    return make<arith::TruncFOp>(like(b.getF32Type()),
                                 make<arith::BitcastOp>(f64, bits));
  }

  /// f16 to f32. NaNs become quiet and keep their sign and payload.
  Value extendHalf(Value x) {
    Type i32 = like(b.getI32Type()), f32 = like(b.getF32Type());
    Value code = make<arith::ExtUIOp>(
        i32, make<arith::BitcastOp>(like(b.getI16Type()), x));
    Value magnitude = make<arith::AndIOp>(code, integer(i32, 0x7FFF));
    Value shifted = make<arith::ShLIOp>(magnitude, integer(i32, 13));
    Value rebase = integer(i32, (127 - 15) << 23);
    Value normal = make<arith::AddIOp>(shifted, rebase);
    // A subnormal comes out as 2^-15 (1 + m): twice that less 2^-14 is exact.
    Value half = make<arith::BitcastOp>(f32, normal);
    Value subnormal = make<arith::BitcastOp>(
        i32, make<arith::SubFOp>(make<arith::AddFOp>(half, half),
                                 number(f32, 0x1p-14)));
    Value special = make<arith::AddIOp>(normal, rebase);
    Value nan = make<arith::OrIOp>(special, integer(i32, 0x400000));
    Value result = choose(IntIs::slt, magnitude, 0x0400, subnormal, normal);
    result = choose(IntIs::sge, magnitude, 0x7C00, special, result);
    result = choose(IntIs::sgt, magnitude, 0x7C00, nan, result);
    Value sign = make<arith::ShLIOp>(
        make<arith::AndIOp>(code, integer(i32, 0x8000)), integer(i32, 16));
    return make<arith::BitcastOp>(f32, make<arith::OrIOp>(result, sign));
  }

  /// f32 to f16, to nearest even. NaNs become quiet and keep their sign and
  /// the upper bits of their payload.
  Value truncateToHalf(Value x) {
    Type i32 = like(b.getI32Type()), f32 = like(b.getF32Type());
    Value bits = make<arith::BitcastOp>(i32, x);
    Value magnitude = make<arith::AndIOp>(bits, integer(i32, 0x7FFFFFFF));
    // 2^16 rounds to infinity, and so does what is above it.
    Value bounded = make<arith::MinSIOp>(magnitude, integer(i32, 0x47800000));
    Value last = make<arith::AndIOp>(
        make<arith::ShRUIOp>(bounded, integer(i32, 13)), integer(i32, 1));
    Value normal =
        make<arith::AddIOp>(make<arith::AddIOp>(bounded, last),
                            integer(i32, 0xFFF - ((127 - 15) << 23)));
    normal = make<arith::ShRUIOp>(normal, integer(i32, 13));
    // The last bit of 1/2 is 2^-24, as that of subnormal halves.
    Value sum = make<arith::AddFOp>(make<arith::BitcastOp>(f32, bounded),
                                    number(f32, 0.5));
    Value subnormal = make<arith::SubIOp>(make<arith::BitcastOp>(i32, sum),
                                          integer(i32, 0x3F000000));
    Value nan = make<arith::OrIOp>(
        make<arith::AndIOp>(make<arith::ShRUIOp>(magnitude, integer(i32, 13)),
                            integer(i32, 0x3FF)),
        integer(i32, 0x7E00));
    Value result = choose(IntIs::slt, magnitude, 0x38800000, subnormal, normal);
    result = choose(IntIs::sgt, magnitude, 0x7F800000, nan, result);
    Value sign = make<arith::AndIOp>(
        make<arith::ShRUIOp>(bits, integer(i32, 16)), integer(i32, 0x8000));
    return make<arith::BitcastOp>(
        like(b.getF16Type()),
        make<arith::TruncIOp>(like(b.getI16Type()),
                              make<arith::OrIOp>(result, sign)));
  }

  /// x as an integer: to nearest even, or towards zero, up or down, as `op`
  /// says.
  Value round(Operation *op, Value x) {
    Type type = x.getType();
    unsigned precision =
        cast<FloatType>(getElementTypeOrSelf(type)).getFPMantissaWidth();
    // From here on there are no fractions, and a sum with it rounds them off.
    Value big = number(type, std::ldexp(1.0, precision - 1));
    Value magnitude = make<math::AbsFOp>(x);
    Value nearest =
        make<arith::SubFOp>(make<arith::AddFOp>(magnitude, big), big);
    Value one = number(type, 1.0), result = nearest;
    auto correct = [&](FloatIs beyond, Value rounded, Value exact,
                       Value step) -> Value {
      return make<arith::SelectOp>(make<arith::CmpFOp>(beyond, rounded, exact),
                                   make<arith::AddFOp>(rounded, step), rounded);
    };
    Value down = number(type, -1.0);
    if (isa<math::TruncOp>(op))
      result = correct(FloatIs::OGT, nearest, magnitude, down);
    else if (isa<math::FloorOp, math::CeilOp>(op)) {
      Value withSign = make<math::CopySignOp>(nearest, x);
      result = isa<math::FloorOp>(op) ? correct(FloatIs::OGT, withSign, x, down)
                                      : correct(FloatIs::OLT, withSign, x, one);
    }
    // Zeros have the sign of x.
    result = make<math::CopySignOp>(result, x);
    Value small = make<arith::CmpFOp>(FloatIs::OLT, magnitude, big);
    return make<arith::SelectOp>(small, result, x);
  }

private:
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, std::forward<Args>(args)...);
  }
  Type like(Type element) {
    return shaped ? Type(shaped.clone(element)) : element;
  }
  Value integer(Type type, int64_t v) {
    return constant(b.getIntegerAttr(getElementTypeOrSelf(type), v));
  }
  Value number(Type type, double v) {
    return constant(b.getFloatAttr(getElementTypeOrSelf(type), v));
  }
  Value constant(TypedAttr attr) {
    if (shaped)
      attr =
          DenseElementsAttr::get(shaped.clone(attr.getType()), Attribute(attr));
    return make<arith::ConstantOp>(attr);
  }
  Value choose(IntIs is, Value x, int64_t y, Value yes, Value no) {
    return make<arith::SelectOp>(
        make<arith::CmpIOp>(is, x, integer(x.getType(), y)), yes, no);
  }

  ImplicitLocOpBuilder b;
  ShapedType shaped;
};

/// Multiply-adds as calls of one function for each type. One of 16 lanes is 250
/// instructions of SSE2, and a kernel with exponentials has hundreds of them.
class MultiplyAdds {
public:
  explicit MultiplyAdds(ModuleOp module) : module(module) {}

  Value call(Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    func::FuncOp callee = functionFor(op->getResult(0).getType());
    return func::CallOp::create(b, callee, op->getOperands()).getResult(0);
  }

private:
  func::FuncOp functionFor(Type type) {
    func::FuncOp &f = functions[type];
    if (f)
      return f;
    auto b =
        ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), module.getBody());
    f = func::FuncOp::create(b, "dither_fma",
                             b.getFunctionType({type, type, type}, {type}));
    f.setPrivate();
    // LLVM numbers, hoists and drops its calls like instructions.
    f->setAttr("llvm.readnone", b.getUnitAttr());
    f->setAttr("will_return", b.getUnitAttr());
    symbols.insert(f);
    b.setInsertionPointToStart(f.addEntryBlock());
    Value result = Emulation(b, type).fma(f.getArgument(0), f.getArgument(1),
                                          f.getArgument(2));
    func::ReturnOp::create(b, result);
    return f;
  }

  ModuleOp module;
  SymbolTable symbols{module};
  DenseMap<Type, func::FuncOp> functions;
};

/// `op` in instructions that `target` has; null where it has one for it.
Value emulated(Operation *op, const TargetInfo &target,
               MultiplyAdds &multiplyAdds) {
  if (op->getNumResults() != 1)
    return {};
  auto from = [&](unsigned i) {
    return getElementTypeOrSelf(op->getOperand(i).getType());
  };
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  if (!target.fma && isa<math::FmaOp, vector::FMAOp>(op) && to.isF32())
    return multiplyAdds.call(op);
  if (!target.cvtF16 && isa<arith::ExtFOp>(op) && from(0).isF16() && to.isF32())
    return Emulation(op).extendHalf(op->getOperand(0));
  if (!target.cvtF16 && isa<arith::TruncFOp>(op) && from(0).isF32() &&
      to.isF16())
    return Emulation(op).truncateToHalf(op->getOperand(0));
  if (!target.roundToInteger &&
      isa<math::CeilOp, math::FloorOp, math::RoundEvenOp, math::TruncOp>(op) &&
      (to.isF32() || to.isF64()))
    return Emulation(op).round(op, op->getOperand(0));
  return {};
}

struct EmulateInstructions
    : public dither::conversion::impl::DitherEmulateInstructionsBase<
          EmulateInstructions> {
  void runOnOperation() override {
    const TargetInfo *target = dither::target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (target->fma && target->cvtF16 && target->roundToInteger)
      return markAllAnalysesPreserved();
    MultiplyAdds multiplyAdds(getOperation());
    getOperation().walk([&](Operation *op) {
      if (Value result = emulated(op, *target, multiplyAdds)) {
        op->getResult(0).replaceAllUsesWith(result);
        op->erase();
      }
    });
  }
};

} // namespace
