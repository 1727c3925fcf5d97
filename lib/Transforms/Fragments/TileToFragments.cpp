//===- TileToFragments.cpp - Loops over parts that fit in registers -------===//

#include "Fragments/FragmentBuilder.h"
#include "Fragments/FragmentPlan.h"
#include "Layouts/LayoutRules.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERTILETOFRAGMENTS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {
struct DitherTileToFragments
    : impl::DitherTileToFragmentsBase<DitherTileToFragments> {
  using Base::Base;

  /// Blocks inside out, so that an outer block sees which of its values the
  /// inner ones still need.
  LogicalResult tileBlocks(Operation *op, Extents fragment,
                           std::optional<Extents> edge,
                           SharedFragments &shared) {
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (Operation &inner : llvm::make_early_inc_range(block))
          if (failed(tileBlocks(&inner, fragment, edge, shared)))
            return failure();
        FragmentPlan plan(getOperation(), block, fragment,
                          isUnlikely(region) ? edge : std::nullopt, shared);
        FailureOr<bool> splits = plan.make();
        if (failed(splits))
          return failure();
        if (!*splits)
          continue;
        FailureOr<Schedule> schedule = plan.schedule();
        if (failed(schedule))
          return failure();
        if (printSchedule)
          print(llvm::errs()
                    << "fragments of " << getOperation().getName() << '\n',
                *schedule);
        if (failed(FragmentBuilder(plan).build(*schedule)))
          return failure();
      }
    return success();
  }

  /// Whether nearly all programs take another branch.
  static bool isUnlikely(Region &region) {
    auto branch = dyn_cast<scf::IfOp>(region.getParentOp());
    return branch && &region == &branch.getElseRegion() &&
           branch.getCondition().getDefiningOp<quant::LikelyOp>();
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("quant.kernel") || func.isExternal() ||
        func->hasAttr("quant.phases"))
      return;
    SmallVector<int64_t> extents(fragment.begin(), fragment.end());
    if (extents.empty())
      extents = configuredExtents(func, "fragment");
    if (extents.size() != 2 || extents[0] < 1 || extents[1] < 1) {
      func.emitOpError("has no fragment; expected quant.config with fragment = "
                       "array<i64: rows, columns> or the pass option");
      return signalPassFailure();
    }
    std::optional<Extents> edge;
    if (SmallVector<int64_t> small = configuredExtents(func, "edge");
        !small.empty())
      edge = {small[0], small[1]};
    SharedFragments shared;
    if (failed(tileBlocks(func, {extents[0], extents[1]}, edge, shared)))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, func->getRegions());
  }
};
} // namespace

} // namespace dither::transforms
