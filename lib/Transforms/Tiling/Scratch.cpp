//===- Scratch.cpp - Memory of a program for its tiles --------------------===//

#include "Tiling/Scratch.h"
#include "Layouts/LayoutRules.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace dither::transforms {

/// Masks lie in memory as words.
static Type elementIn(Type tile) {
  Type elem = cast<RankedTensorType>(tile).getElementType();
  return elem.isInteger(1) ? IntegerType::get(elem.getContext(), 32) : elem;
}

bool hasScratch(func::FuncOp kernel) { return isForCpu(kernel); }

bool canBeScratch(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.hasStaticShape() && tile.getRank() != 0 &&
         quant::isMemoryElement(elementIn(tile)) &&
         quant::scratchBytes(tile.getShape(), elementIn(tile));
}

Value makeScratch(func::FuncOp kernel, Location loc, RankedTensorType type) {
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.front());
  SmallVector<int64_t> shape(type.getShape());
  // Rows of four-bit codes are whole bytes.
  if (type.getElementTypeBitWidth() == 4)
    shape.back() += shape.back() % 2;
  return quant::ScratchOp::create(b, loc,
                                  MemRefType::get(shape, elementIn(type)));
}

static SmallVector<Value> origin(OpBuilder &b, Location loc, Value scratch) {
  return SmallVector<Value>(cast<MemRefType>(scratch.getType()).getRank(),
                            arith::ConstantIndexOp::create(b, loc, 0));
}

void storeScratch(OpBuilder &b, Location loc, Value scratch, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getElementType() != elementIn(type))
    tile = arith::ExtUIOp::create(b, loc, type.clone(elementIn(type)), tile);
  auto store =
      quant::StoreOp::create(b, loc, tile, scratch, origin(b, loc, scratch));
  store.setInBounds(true);
}

Value loadScratch(OpBuilder &b, Location loc, Value scratch,
                  RankedTensorType type, ArrayRef<OpFoldResult> offsets) {
  Type elem = elementIn(type);
  SmallVector<Value> at =
      offsets.empty() ? origin(b, loc, scratch)
                      : getValueOrCreateConstantIndexOp(b, loc, offsets);
  Value tile = quant::LoadOp::create(b, loc, type.clone(elem), scratch, at,
                                     /*in_bounds=*/true);
  if (elem == type.getElementType())
    return tile;
  return arith::TruncIOp::create(b, loc, type, tile);
}

bool storesToScratch(Operation *op) {
  auto store = dyn_cast<quant::StoreOp>(op);
  return store && store.getMemref().getDefiningOp<quant::ScratchOp>();
}

void readThrough(Value tile, Value scratch) {
  Operation *def = tile.getDefiningOp();
  OpBuilder b(def->getContext());
  b.setInsertionPointAfter(def);
  storeScratch(b, def->getLoc(), scratch, tile);
  Value again = loadScratch(b, def->getLoc(), scratch,
                            cast<RankedTensorType>(tile.getType()));
  // What copies the tile stands before what reads it again.
  tile.replaceUsesWithIf(again, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user->getBlock() != def->getBlock() ||
           again.getDefiningOp()->isBeforeInBlock(user);
  });
}

} // namespace dither::transforms
