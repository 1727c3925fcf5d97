//===- DecomposeOps.cpp - Aggregates become elementwise operations --------===//

#include "dither/Dialect/Quant/QuantDecompose.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERDECOMPOSEOPS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {
struct DitherDecomposeOps : impl::DitherDecomposeOpsBase<DitherDecomposeOps> {
  void runOnOperation() override {
    SmallVector<quant::DecomposableOpInterface> aggregates;
    getOperation().walk(
        [&](quant::DecomposableOpInterface op) { aggregates.push_back(op); });
    IRRewriter rewriter(&getContext());
    const target::TargetInfo *said = target::saidTarget(getOperation());
    for (quant::DecomposableOpInterface op : aggregates) {
      for (Type type : op->getOperandTypes())
        if (auto shaped = dyn_cast<ShapedType>(type);
            shaped && !shaped.hasStaticShape()) {
          op->emitOpError("has an operand of type ")
              << type << ", expected a tile of static shape";
          return signalPassFailure();
        }
      rewriter.setInsertionPoint(op);
      auto stochastic = dyn_cast<quant::StochasticRoundOp>(op.getOperation());
      if (stochastic && said && said->fmaTowardZero) {
        rewriter.replaceOp(
            op, quant::roundTowardZero(stochastic, rewriter, said->isGpu));
        continue;
      }
      // Says itself what it has no decomposition for.
      FailureOr<SmallVector<Value>> parts = op.decompose(rewriter);
      if (failed(parts))
        return signalPassFailure();
      rewriter.replaceOp(op, *parts);
    }
  }
};
} // namespace

} // namespace dither::transforms
