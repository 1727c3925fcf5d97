//===- SplitParts.cpp - Kernels of two parts ------------------------------===//
//
// Programs of one part of such a kernel wait for those of the other: two kinds
// of programs, which have nothing in common but the launch. A schedule is of
// one, so each becomes a function that the other passes see as any kernel.
//
//===----------------------------------------------------------------------===//

#include "Analysis/AccessOrder.h"
#include "Layouts/LayoutRules.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERSPLITPARTS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;
using namespace dither;
using namespace dither::transforms;

namespace {

/// The condition of a kernel's parts; null if it has none.
quant::FirstPartOp conditionOf(func::FuncOp kernel) {
  quant::FirstPartOp found;
  kernel.walk([&](quant::FirstPartOp op) {
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// What is around the branch: a condition of programs that do anything, or it
/// alone.
scf::IfOp guardOf(scf::IfOp branch) {
  auto guard = dyn_cast<scf::IfOp>(branch->getParentOp());
  return guard ? guard : branch;
}

/// Whether `op` ends its block, after nothing that touches memory.
bool isAlone(Operation *op) {
  return op->getNextNode() == op->getBlock()->getTerminator() &&
         llvm::all_of(op->getBlock()->without_terminator(),
                      [&](Operation &other) {
                        return &other == op || isMemoryEffectFree(&other);
                      });
}

/// The branch whose sides are the parts.
FailureOr<scf::IfOp> branchOf(func::FuncOp kernel, quant::FirstPartOp op) {
  if (isForCpu(kernel))
    return op.emitOpError("is for GPUs, whose programs begin in order");
  auto branch =
      op->hasOneUse() ? dyn_cast<scf::IfOp>(*op->user_begin()) : scf::IfOp();
  scf::IfOp guard = branch ? guardOf(branch) : branch;
  bool fits = branch && !branch.getNumResults() &&
              !branch.getElseRegion().empty() && isAlone(branch) &&
              guard->getParentOp() == kernel && !guard.getNumResults() &&
              (guard == branch || guard.getElseRegion().empty()) &&
              isAlone(guard);
  if (!fits)
    return op.emitOpError("is not the condition of a branch with two sides at "
                          "the end of the kernel");
  return branch;
}

/// The kernel with one side of the branch in its place.
func::FuncOp cloneSide(func::FuncOp kernel, quant::FirstPartOp condition,
                       scf::IfOp branch, bool first) {
  IRMapping map;
  func::FuncOp part = cast<func::FuncOp>(kernel->clone(map));
  part.setName((kernel.getName() + (first ? "_first" : "_second")).str());
  part.setPrivate();
  auto own = cast<scf::IfOp>(map.lookup(branch.getOperation()));
  auto replace = [](scf::IfOp op, Region &side) {
    Block &block = side.front();
    block.getTerminator()->erase();
    op->getBlock()->getOperations().splice(Block::iterator(op),
                                           block.getOperations());
    op->erase();
  };
  scf::IfOp guard = guardOf(own);
  replace(own, first ? own.getThenRegion() : own.getElseRegion());
  if (guard != own)
    replace(guard, guard.getThenRegion());
  map.lookup(condition.getOperation())->erase();
  return part;
}

/// Leaves of a side a call of its part.
void leaveCall(func::FuncOp part, Block &side, ValueRange arguments) {
  SmallVector<Operation *> ops;
  for (Operation &op : side.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  OpBuilder b(side.getTerminator());
  func::CallOp::create(b, part.getLoc(), part, arguments);
}

/// Marks what is handed on from the first part to the second: what the one
/// stores, and does nothing else with, and the other loads.
LogicalResult handOn(func::FuncOp kernel, func::FuncOp first,
                     func::FuncOp second) {
  auto writes = [](Operation *op) { return MemoryAccess::of(op)->writes; };
  OpBuilder b(kernel);
  for (auto [i, arg] : llvm::enumerate(kernel.getArguments())) {
    auto memref = dyn_cast<MemRefType>(arg.getType());
    if (!memref)
      continue;
    SmallVector<Operation *> ones = accessesOf(first.getArgument(i)),
                             others = accessesOf(second.getArgument(i));
    if (ones.empty() || others.empty() ||
        (llvm::none_of(ones, writes) && llvm::none_of(others, writes)))
      continue;
    bool fits = memref.getElementType().isF32() &&
                llvm::all_of(ones, llvm::IsaPred<quant::StoreOp>) &&
                llvm::all_of(others, llvm::IsaPred<quant::LoadOp>);
    if (!fits)
      return others.front()->emitOpError(
          "is of what the first part of the kernel accesses too, expected "
          "loads of f32 that it stores and does not load");
    for (func::FuncOp f : {kernel, first, second})
      f.setArgAttr(i, "quant.handed_on", b.getUnitAttr());
  }
  return success();
}

LogicalResult split(func::FuncOp kernel) {
  quant::FirstPartOp condition = conditionOf(kernel);
  if (!condition)
    return success();
  FailureOr<scf::IfOp> branch = branchOf(kernel, condition);
  if (failed(branch))
    return failure();
  // Of the kernel: its parts have programs of their own.
  kernel->removeAttr("quant.launch");
  func::FuncOp first = cloneSide(kernel, condition, *branch, true);
  func::FuncOp second = cloneSide(kernel, condition, *branch, false);
  OpBuilder b(kernel);
  b.insert(first);
  b.insert(second);
  if (failed(handOn(kernel, first, second)))
    return failure();
  leaveCall(first, (*branch).getThenRegion().front(), kernel.getArguments());
  leaveCall(second, (*branch).getElseRegion().front(), kernel.getArguments());
  condition.replaceAllUsesWith(condition.getCondition());
  condition.erase();
  kernel->removeAttr("quant.kernel");
  kernel->setAttr("quant.parts",
                  b.getArrayAttr({FlatSymbolRefAttr::get(first),
                                  FlatSymbolRefAttr::get(second)}));
  return success();
}

struct SplitParts
    : public dither::transforms::impl::DitherSplitPartsBase<SplitParts> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto f : getOperation().getOps<func::FuncOp>())
      if (f->hasAttr("quant.kernel") && !f.isExternal())
        kernels.push_back(f);
    for (func::FuncOp kernel : kernels)
      if (failed(split(kernel)))
        return signalPassFailure();
  }
};
} // namespace
