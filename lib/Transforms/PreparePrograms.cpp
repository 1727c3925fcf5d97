//===- PreparePrograms.cpp - Programs as the passes want to see them ------===//
//
// Analyses walk over whole functions: what nothing uses must not sway them. And
// an integer becomes bf16 or f16 by way of f32, with two roundings; upstream
// merges the two conversions unless the second says how it rounds.
//
//===----------------------------------------------------------------------===//

#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERPREPAREPROGRAMS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace {
struct PreparePrograms
    : public dither::transforms::impl::DitherPrepareProgramsBase<
          PreparePrograms> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, func->getRegions());
    func.walk([](arith::TruncFOp op) {
      if (!op.getRoundingmode())
        op.setRoundingmode(arith::RoundingMode::to_nearest_even);
    });
  }
};
} // namespace
