//===- PreparePrograms.cpp - Programs as the passes want to see them ------===//
//
// Analyses walk over whole functions: what nothing uses must not sway them. And
// an integer becomes bf16 or f16 by way of f32, with two roundings; upstream
// merges the two conversions unless the second says how it rounds. And offsets
// that are known leave room for sums: no tensor is as long as the farthest.
// What MLIR has that programs have not is refused here.
//
//===----------------------------------------------------------------------===//

#include "Analysis/AccessOrder.h"
#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERPREPAREPROGRAMS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;
using dither::quant::kMostExtent;

namespace {
/// Makes indices that are farther outside than any element just that far.
void clampIndices(Operation *op) {
  if (!isa<dither::quant::LoadOp, dither::quant::StoreOp,
           dither::quant::GatherOp, dither::quant::ScatterOp,
           dither::quant::AtomicOpInterface>(op))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!operand.get().getType().isIndex())
      continue;
    std::optional<int64_t> at = getConstantIntValue(operand.get());
    if (!at || (*at >= -kMostExtent && *at <= kMostExtent))
      continue;
    OpBuilder b(op);
    operand.set(arith::ConstantIndexOp::create(
        b, op->getLoc(), *at < 0 ? -kMostExtent : kMostExtent));
  }
}

/// Rows that were gathered are gathered again where they are used: nobody may
/// have written to them meanwhile.
LogicalResult checkGathers(func::FuncOp func) {
  using namespace dither::transforms;
  using dither::quant::viewed;
  auto result = func.walk([](dither::quant::GatherOp gather) {
    for (Operation *user : accessesOf(viewed(gather.getMemref())))
      if (auto access = MemoryAccess::of(user); access && access->writes) {
        emitError(gather.getLoc())
            << "rows are gathered from a tensor that the program also writes "
               "to: write to another tensor";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// What MLIR allows and no pass knows.
LogicalResult checkUpstream(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (loop.getUnsignedCmp())
      return loop.emitOpError(
          "compares numbers without a sign, expected a loop "
          "over numbers with one");
    for (Type type : loop.getResultTypes())
      if (isa<BaseMemRefType>(type))
        return loop.emitOpError(
            "hands on a memref, expected tiles and numbers");
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    int64_t rank = cast<MemRefType>(dim.getSource().getType()).getRank();
    std::optional<int64_t> of = dim.getConstantIndex();
    if (!of || *of < 0 || *of >= rank)
      return dim.emitOpError("of dimension ")
             << (of ? std::to_string(*of) : "?") << ", expected 0 to "
             << rank - 1;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (isa<RankedTensorType>(constant.getType()) &&
        !isa<DenseElementsAttr>(constant.getValue()))
      return constant.emitOpError("is a sparse tile or one in a resource, "
                                  "expected a dense one");
  return success();
}

struct PreparePrograms
    : public dither::transforms::impl::DitherPrepareProgramsBase<
          PreparePrograms> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, func->getRegions());
    func.walk(clampIndices);
    auto checked = func.walk([](Operation *op) {
      return failed(checkUpstream(op)) ? WalkResult::interrupt()
                                       : WalkResult::advance();
    });
    if (checked.wasInterrupted() || failed(checkGathers(func)))
      return signalPassFailure();
    func.walk([](arith::TruncFOp op) {
      if (!op.getRoundingmode())
        op.setRoundingmode(arith::RoundingMode::to_nearest_even);
    });
  }
};
} // namespace
