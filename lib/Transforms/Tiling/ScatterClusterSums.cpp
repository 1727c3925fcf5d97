//===- ScatterClusterSums.cpp - Each block stores a part of a sum ---------===//
//
// Sums over the blocks of a cluster are the same in all of them. Of those that
// are only stored, each block makes and stores its part.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERSCATTERCLUSTERSUMS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// The store that a sum goes to, if its parts can be stored.
quant::StoreOp storeOf(quant::ClusterReduceOp reduce) {
  RankedTensorType type = reduce.getType();
  if (!reduce->hasOneUse() || type.getRank() != 2 || type.getDimSize(0) != 1 ||
      type.getDimSize(1) % reduce.getBlocks())
    return nullptr;
  auto store = dyn_cast<quant::StoreOp>(*reduce->user_begin());
  if (!store || !store.getValid().empty() ||
      store.getScaleLayout() != quant::ScaleLayout::linear)
    return nullptr;
  return store;
}

/// Whether `store` may follow all that is after it in its block.
bool canBeLast(quant::StoreOp store) {
  Value memref = store.getMemref();
  return llvm::all_of(memref.getUsers(), [&](Operation *user) {
    Operation *here = store->getBlock()->findAncestorOpInBlock(*user);
    return !here || here == store || here->isBeforeInBlock(store);
  });
}

/// Blocks share what the sums of a block of operations are of, and read it when
/// all else is done: until then nobody waits.
void scatter(Block &block) {
  SmallVector<std::pair<quant::ClusterReduceOp, quant::StoreOp>> sums;
  SmallVector<Value> sources;
  for (auto reduce : block.getOps<quant::ClusterReduceOp>())
    if (quant::StoreOp store = storeOf(reduce);
        store && store->getBlock() == &block && canBeLast(store)) {
      if (!sources.empty() && sources.front().getType() != reduce.getType())
        continue;
      sums.push_back({reduce, store});
      sources.push_back(reduce.getSource());
    }
  if (sums.empty())
    return;
  OpBuilder b(sums.back().first);
  auto share = quant::ClusterShareOp::create(
      b, sums.back().first.getLoc(), ValueRange(sources).getTypes(), sources);
  b.setInsertionPoint(block.getTerminator());
  for (auto [sum, shared] : llvm::zip(sums, share.getShared())) {
    auto [reduce, store] = sum;
    Location loc = store.getLoc();
    int64_t blocks = reduce.getBlocks(),
            columns = reduce.getType().getDimSize(1) / blocks;
    Value part = quant::ClusterReduceScatterOp::create(
        b, loc, reduce.getType().clone({1, columns}), reduce.getKind(), shared,
        blocks);
    Value rank = quant::ClusterRankOp::create(b, loc, b.getIndexType());
    Value first = arith::MulIOp::create(
        b, loc, rank, arith::ConstantIndexOp::create(b, loc, columns));
    OpOperand &column = *std::prev(store.getIndicesMutable().end());
    column.set(arith::AddIOp::create(b, loc, column.get(), first));
    store.getTileMutable().assign(part);
    store->moveBefore(&block, b.getInsertionPoint());
    reduce.erase();
  }
}

struct DitherScatterClusterSums
    : impl::DitherScatterClusterSumsBase<DitherScatterClusterSums> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      scatter(*block);
  }
};

} // namespace

} // namespace dither::transforms
