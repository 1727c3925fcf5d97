//===- Blocks.cpp - Blocks of a tile and their amax -----------------------===//

#include "Phases/Blocks.h"

using namespace mlir;

namespace dither::transforms {

quant::BlockReduceOp asAmax(Value v) {
  auto op = v.getDefiningOp<quant::BlockReduceOp>();
  return op && op.getKind() == quant::ReduceKind::amax ? op
                                                       : quant::BlockReduceOp();
}

bool isStep(Value v) {
  return asAmax(v) && llvm::all_of(v.getUsers(), [](Operation *user) {
           return user->getNumResults() == 1 && asAmax(user->getResult(0));
         });
}

Value spreadBy(quant::BlockBroadcastOp op) {
  while (auto inner = op.getSource().getDefiningOp<quant::BlockBroadcastOp>())
    op = inner;
  return op.getSource();
}

ReducedBlocks::ReducedBlocks(quant::BlockReduceOp op)
    : source(op.getSource()), block(op.getBlock()) {
  if (!asAmax(op))
    return;
  while (quant::BlockReduceOp inner = asAmax(source)) {
    source = inner.getSource();
    for (auto [extent, within] : llvm::zip(block, inner.getBlock()))
      extent *= within;
  }
}

} // namespace dither::transforms
