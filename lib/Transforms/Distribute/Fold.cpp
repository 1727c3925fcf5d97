//===- Fold.cpp - Fold operations in their order --------------------------===//
//
// The greedy driver of the canonicalizer looks at every ancestor of an
// operation again whenever that operation changes, and whether an ancestor is
// dead means reading its body: many folds in one large body take quadratic
// time. Each value is defined before its uses, so one walk forward folds all
// chains, and one walk back erases what they leave.
//
//===----------------------------------------------------------------------===//

#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/FoldUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERFOLD
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace {

struct Fold : public dither::transforms::impl::DitherFoldBase<Fold> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    // Operations come after those that they hold, so that none is erased with
    // one that was folded. The folder makes constants as it goes: they are not
    // in the list.
    SmallVector<Operation *> ops;
    func.getBody().walk([&](Operation *op) { ops.push_back(op); });
    OperationFolder folder(&getContext());
    for (Operation *op : ops)
      (void)folder.tryToFold(op);
    func->walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }
};

} // namespace
