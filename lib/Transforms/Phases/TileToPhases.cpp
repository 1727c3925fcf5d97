//===- TileToPhases.cpp - CPU kernels as short loops ----------------------===//

#include "Layouts/LayoutRules.h"
#include "Phases/PhaseBuilder.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERTILETOPHASES
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {
struct DitherTileToPhases : impl::DitherTileToPhasesBase<DitherTileToPhases> {
  using Base = impl::DitherTileToPhasesBase<DitherTileToPhases>;
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr("quant.kernel") || kernel.isExternal() ||
        !isForCpu(kernel))
      return;
    PhasePlan::Declined declined;
    std::optional<PhasePlan> plan = PhasePlan::make(kernel, declined);
    if (!plan) {
      Operation *at = declined.op ? declined.op : kernel;
      if (remarks)
        emitRemark(at->getLoc()) << "computed in fragments and not in phases, "
                                    "which take less time: "
                                 << declined.why;
      return;
    }
    Schedule schedule = plan->schedule(kernel);
    if (printSchedule)
      print(llvm::errs() << "phases of " << kernel.getName() << '\n', schedule);
    if (failed(PhaseBuilder(kernel, *plan).build(schedule)))
      return signalPassFailure();
    kernel->setAttr("quant.phases", UnitAttr::get(&getContext()));
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, kernel->getRegions());
  }
};
} // namespace

} // namespace dither::transforms
