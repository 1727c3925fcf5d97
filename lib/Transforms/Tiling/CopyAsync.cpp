//===- CopyAsync.cpp - Copies to shared memory that nobody waits for ------===//
//
// What a GPU block holds in shared memory (Fragments/FragmentHold.cpp) a loop
// copies there, part by part. A lane that loads a part and stores it waits for
// memory in each round. With asynchronous copies all parts are on their way
// before the first one is there, and no register holds them.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERCOPYASYNC
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// Whether the store copies what was loaded for it, and all of it exists.
bool isCopy(quant::StoreOp store) {
  auto load = store.getTile().getDefiningOp<quant::LoadOp>();
  return store.getMemref().getDefiningOp<quant::ScratchOp>() && load &&
         store.getInBounds() && quant::isInside(load) && load->hasOneUse() &&
         load->getBlock() == store->getBlock() &&
         !load.getMemref().getDefiningOp<quant::ScratchOp>();
}

/// Puts a wait in front of the first operation after `store`, in its block or
/// around the loops that it is in, that reads the memory.
void awaitBeforeReader(quant::StoreOp store) {
  for (Operation *at = store; !isa<func::FuncOp>(at); at = at->getParentOp()) {
    Block *block = at->getBlock();
    Operation *reader = nullptr;
    for (Operation *user : store.getMemref().getUsers()) {
      Operation *here = block->findAncestorOpInBlock(*user);
      bool reads =
          !isa<quant::StoreOp>(user) || !cast<quant::StoreOp>(user).getAsync();
      if (reads && here && at->isBeforeInBlock(here) &&
          (!reader || here->isBeforeInBlock(reader)))
        reader = here;
    }
    if (!reader)
      continue;
    for (Operation *op = at->getNextNode(); op != reader;
         op = op->getNextNode())
      if (isa<quant::AwaitCopiesOp>(op))
        return;
    OpBuilder b(reader);
    quant::AwaitCopiesOp::create(b, store.getLoc());
    return;
  }
  // Nobody reads it after the copy.
  store.setAsync(false);
}

struct DitherCopyAsync : impl::DitherCopyAsyncBase<DitherCopyAsync> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    const target::TargetInfo *info = target::saidTarget(kernel);
    if (!info || !info->isGpu || !kernel->hasAttr("quant.kernel"))
      return;
    SmallVector<quant::StoreOp> copies;
    kernel.walk([&](quant::StoreOp store) {
      if (isCopy(store))
        copies.push_back(store);
    });
    for (quant::StoreOp store : copies)
      store.setAsync(true);
    for (quant::StoreOp store : copies)
      awaitBeforeReader(store);
  }
};

} // namespace

} // namespace dither::transforms
