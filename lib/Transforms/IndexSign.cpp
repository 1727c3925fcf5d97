//===- IndexSign.cpp - What is known about the sign of offsets ------------===//

#include "IndexSign.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace dither::transforms {

bool isNonNegative(Value v, int depth) {
  if (std::optional<int64_t> c = getConstantIntValue(v))
    return *c >= 0;
  if (depth > 8)
    return false;
  if (auto arg = dyn_cast<BlockArgument>(v)) {
    // A loop counts up: its steps are positive.
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    return loop && arg == loop.getInductionVar() &&
           isNonNegative(loop.getLowerBound(), depth + 1);
  }
  Operation *def = v.getDefiningOp();
  auto operand = [&](Value o) { return isNonNegative(o, depth + 1); };
  if (isa<quant::ProgramIdOp, quant::NumProgramsOp, memref::DimOp>(def))
    return true;
  if (isa<arith::MaxSIOp>(def))
    return llvm::any_of(def->getOperands(), operand);
  if (isa<arith::SelectOp>(def))
    return operand(def->getOperand(1)) && operand(def->getOperand(2));
  if (isa<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::DivSIOp,
          arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
          arith::RemUIOp, arith::RemSIOp, arith::MinSIOp, arith::IndexCastOp>(
          def))
    return llvm::all_of(def->getOperands(), operand);
  return false;
}

} // namespace dither::transforms
