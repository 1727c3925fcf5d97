//===- WaitingTiles.cpp - What waits while rows are reduced ---------------===//
//
// Lanes that share a row wait for each other at its sum, and all that is used
// after it stays in registers until then.
//
//===----------------------------------------------------------------------===//

#include "Tiling/WaitingTiles.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dither::transforms {

namespace {

/// Whether all lanes of a row wait for what `op` gives.
bool reducesRows(Operation *op) {
  auto reduce = dyn_cast<quant::ReduceOp>(op);
  return isa<quant::NormOpInterface>(op) ||
         (reduce && reduce.getAxis() == 1 &&
          reduce.getSource().getType().getRank() == 2);
}

/// What lanes keep of `v`: it, or what is widened to it; null where that is no
/// tile, or is made anew where it is used.
Value kept(Value v) {
  while (auto widen = v.getDefiningOp<arith::ExtFOp>())
    v = widen.getIn();
  auto type = dyn_cast<RankedTensorType>(v.getType());
  bool isTile = type && type.getRank() == 2 && type.getDimSize(1) != 1;
  Operation *op = v.getDefiningOp();
  bool isMade = op && isa<arith::ConstantOp, quant::IotaOp, quant::BroadcastOp,
                          quant::BlockBroadcastOp>(op);
  return isTile && !isMade ? v : Value();
}

/// Bits of `v` for each of `columns`.
int64_t bitsOf(Value v, int64_t columns) {
  auto type = cast<RankedTensorType>(v.getType());
  int64_t bits = type.getElementTypeBitWidth(), own = type.getDimSize(1);
  if (ShapedType::isDynamic(own) || ShapedType::isDynamic(columns))
    return bits;
  return bits * own / columns;
}

/// Bits of what waits at `op`, for each of the columns that it reduces.
int64_t waitingAt(Operation *op) {
  llvm::SetVector<Value> values;
  for (Operation &before :
       llvm::make_range(op->getBlock()->begin(), op->getIterator()))
    for (Value v : before.getResults())
      if (llvm::any_of(v.getUsers(), [&](Operation *user) {
            Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
            return here && op->isBeforeInBlock(here);
          }))
        if (Value own = kept(v))
          values.insert(own);
  int64_t bits = 0,
          columns = cast<ShapedType>(op->getOperand(0).getType()).getDimSize(1);
  if (auto norm = dyn_cast<quant::NormOpInterface>(op)) {
    unsigned tiles = norm.getNumTileOperands();
    for (Value v : op->getOperands().take_front(tiles))
      if (Value own = kept(v))
        values.insert(own);
    // Differences from the mean wait for the sum of their squares.
    if (isa<quant::LayerNormOp>(op) && values.remove(kept(op->getOperand(0))))
      bits = 32;
  }
  for (Value v : values)
    bits += bitsOf(v, columns);
  return bits;
}

} // namespace

int64_t waitingBits(func::FuncOp func) {
  int64_t most = 0;
  func.walk([&](Operation *op) {
    if (reducesRows(op))
      most = std::max(most, waitingAt(op));
  });
  return most;
}

} // namespace dither::transforms
