//===- OneToOne.cpp - Arithmetic that is an operation of LLVM -------------===//

#include "OneToOne.h"
#include "mlir/Conversion/ArithCommon/AttrToLLVMConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dither::target {

static Type wordOf(Type type) {
  if (isa<IndexType>(type))
    return IntegerType::get(type.getContext(), 64);
  auto vector = dyn_cast<VectorType>(type);
  if (vector && isa<IndexType>(vector.getElementType()))
    return vector.clone(IntegerType::get(type.getContext(), 64));
  return type;
}

void makeIndicesWords(ModuleOp module) {
  auto change = [](Value value) {
    if (Type word = wordOf(value.getType()); word != value.getType())
      value.setType(word);
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    FunctionType type = function.getFunctionType();
    function.setFunctionType(FunctionType::get(
        type.getContext(), llvm::map_to_vector(type.getInputs(), wordOf),
        llvm::map_to_vector(type.getResults(), wordOf)));
    for (Block &block : function.getBody()) {
      for (BlockArgument argument : block.getArguments())
        change(argument);
      for (Operation &op : block)
        for (Value result : op.getResults())
          change(result);
    }
  }
}

namespace {

/// Numbers, pointers, and vectors of one dimension of them.
bool isOfLLVM(Type type) {
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.getRank() != 1 || vector.isScalable())
      return false;
    type = vector.getElementType();
  }
  return isa<IntegerType, Float16Type, BFloat16Type, Float32Type, Float64Type,
             LLVM::LLVMPointerType>(type);
}

/// One operation at a time. Flags are carried over by what both have.
class OneToOne {
public:
  explicit OneToOne(MLIRContext *ctx) : b(ctx) {}

  void run(Operation *op) {
    bool ours = llvm::all_of(op->getOperandTypes(), isOfLLVM) &&
                llvm::all_of(op->getResultTypes(), isOfLLVM) &&
                op->getNumResults() == 1 &&
                op->getDiscardableAttrDictionary().empty();
    if (!ours)
      return;
    b.setInsertionPoint(op);
    Value made = convert(op);
    if (!made)
      return;
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  }

private:
  /// Null where there is no such operation.
  Value convert(Operation *op) {
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](arith::ConstantOp o) {
          return LLVM::ConstantOp::create(b, o.getLoc(), o.getType(),
                                          o.getValue());
        })
        .Case([&](arith::AddIOp o) { return wrapping<LLVM::AddOp>(o); })
        .Case([&](arith::SubIOp o) { return wrapping<LLVM::SubOp>(o); })
        .Case([&](arith::MulIOp o) { return wrapping<LLVM::MulOp>(o); })
        .Case([&](arith::ShLIOp o) { return wrapping<LLVM::ShlOp>(o); })
        .Case([&](arith::TruncIOp o) { return wrapping<LLVM::TruncOp>(o); })
        .Case([&](arith::AndIOp o) { return plain<LLVM::AndOp>(o); })
        .Case([&](arith::OrIOp o) { return plain<LLVM::OrOp>(o); })
        .Case([&](arith::XOrIOp o) { return plain<LLVM::XOrOp>(o); })
        .Case([&](arith::ShRUIOp o) { return exact<LLVM::LShrOp>(o); })
        .Case([&](arith::ShRSIOp o) { return exact<LLVM::AShrOp>(o); })
        .Case([&](arith::DivUIOp o) { return exact<LLVM::UDivOp>(o); })
        .Case([&](arith::RemUIOp o) { return plain<LLVM::URemOp>(o); })
        .Case([&](arith::MaxSIOp o) { return plain<LLVM::SMaxOp>(o); })
        .Case([&](arith::MinSIOp o) { return plain<LLVM::SMinOp>(o); })
        .Case([&](arith::MaxUIOp o) { return plain<LLVM::UMaxOp>(o); })
        .Case([&](arith::MinUIOp o) { return plain<LLVM::UMinOp>(o); })
        .Case([&](arith::ExtSIOp o) { return plain<LLVM::SExtOp>(o); })
        .Case([&](arith::ExtUIOp o) { return plain<LLVM::ZExtOp>(o); })
        .Case([&](arith::UIToFPOp o) { return plain<LLVM::UIToFPOp>(o); })
        .Case([&](arith::SIToFPOp o) { return plain<LLVM::SIToFPOp>(o); })
        .Case([&](arith::FPToSIOp o) { return plain<LLVM::FPToSIOp>(o); })
        .Case([&](arith::FPToUIOp o) { return plain<LLVM::FPToUIOp>(o); })
        .Case([&](arith::IndexCastOp o) { return resized<LLVM::SExtOp>(o); })
        .Case([&](arith::IndexCastUIOp o) { return resized<LLVM::ZExtOp>(o); })
        .Case([&](arith::BitcastOp o) { return plain<LLVM::BitcastOp>(o); })
        .Case([&](arith::AddFOp o) { return fast<LLVM::FAddOp>(o); })
        .Case([&](arith::SubFOp o) { return fast<LLVM::FSubOp>(o); })
        .Case([&](arith::MulFOp o) { return fast<LLVM::FMulOp>(o); })
        .Case([&](arith::DivFOp o) { return fast<LLVM::FDivOp>(o); })
        .Case([&](arith::NegFOp o) { return fast<LLVM::FNegOp>(o); })
        .Case([&](arith::MaximumFOp o) { return fast<LLVM::MaximumOp>(o); })
        .Case([&](arith::MinimumFOp o) { return fast<LLVM::MinimumOp>(o); })
        .Case([&](arith::MaxNumFOp o) { return fast<LLVM::MaxNumOp>(o); })
        .Case([&](arith::MinNumFOp o) { return fast<LLVM::MinNumOp>(o); })
        .Case([&](math::FmaOp o) { return fast<LLVM::FMAOp>(o); })
        .Case([&](math::AbsFOp o) { return fast<LLVM::FAbsOp>(o); })
        .Case([&](arith::SelectOp o) { return plain<LLVM::SelectOp>(o); })
        .Case([&](arith::CmpIOp o) {
          return LLVM::ICmpOp::create(
              b, o.getLoc(), o.getType(),
              static_cast<LLVM::ICmpPredicate>(o.getPredicate()), o.getLhs(),
              o.getRhs());
        })
        .Case([&](arith::CmpFOp o) {
          return LLVM::FCmpOp::create(
              b, o.getLoc(), o.getType(),
              static_cast<LLVM::FCmpPredicate>(o.getPredicate()), o.getLhs(),
              o.getRhs(),
              arith::convertArithFastMathFlagsToLLVM(o.getFastmath()));
        })
        .Case([&](vector::ExtractOp o) { return element(o); })
        .Default(Value());
  }

  template <typename To> To create(Operation *op) {
    return To::create(b, op->getLoc(), op->getResultTypes(), op->getOperands(),
                      typename To::Properties{});
  }
  template <typename To> Value plain(Operation *op) { return create<To>(op); }

  template <typename To, typename From> Value wrapping(From op) {
    To made = create<To>(op);
    made.setOverflowFlags(
        arith::convertArithOverflowFlagsToLLVM(op.getOverflowFlags()));
    return made;
  }
  template <typename To, typename From> Value exact(From op) {
    To made = create<To>(op);
    made.setIsExact(op.getIsExact());
    return made;
  }
  template <typename To, typename From> Value fast(From op) {
    To made = create<To>(op);
    made.setFastmathFlags(
        arith::convertArithFastMathFlagsToLLVM(op.getFastmath()));
    return made;
  }

  /// A conversion from or to what was an index, wider by `Extension`.
  template <typename Extension> Value resized(Operation *op) {
    Value from = op->getOperand(0);
    unsigned before = getElementTypeOrSelf(from).getIntOrFloatBitWidth();
    unsigned after =
        getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
    if (before == after)
      return from;
    return before < after ? plain<Extension>(op) : plain<LLVM::TruncOp>(op);
  }

  /// One element of a vector, at a place that is known.
  Value element(vector::ExtractOp op) {
    if (op.hasDynamicPosition() || op.getStaticPosition().size() != 1 ||
        op.getStaticPosition().front() < 0)
      return {};
    Value place = LLVM::ConstantOp::create(b, op.getLoc(), b.getI64Type(),
                                           op.getStaticPosition().front());
    return LLVM::ExtractElementOp::create(b, op.getLoc(), op.getSource(),
                                          place);
  }

  OpBuilder b;
};

} // namespace

void convertOneToOne(ModuleOp module) {
  OneToOne conversion(module.getContext());
  for (auto function : module.getOps<func::FuncOp>())
    for (Block &block : function.getBody())
      for (Operation &op : llvm::make_early_inc_range(block))
        conversion.run(&op);
}

} // namespace dither::target
