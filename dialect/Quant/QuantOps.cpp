//===- QuantOps.cpp - Programs and memory ---------------------------------===//
//
// The definitions of all operations, and the verifiers of those that touch
// memory. The others: QuantTileOps.cpp, QuantScaleOps.cpp, QuantWordOps.cpp.
// Labels such as ME1 name the constraints of Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace dither::quant;

#define GET_OP_CLASSES
#include "dither/Dialect/Quant/QuantOps.cpp.inc"

namespace dither::quant {

/// A tile at `indices` of a memref: ME1 to ME7.
static LogicalResult checkMemory(Operation *op, RankedTensorType tile,
                                 MemRefType memref, size_t indices) {
  Where where(op);
  if (tile.getRank() > 2)
    return where.fail("tile has rank " + Twine(tile.getRank()) +
                      ", expected at most 2");
  if (tile.getRank() != memref.getRank())
    return where.fail("tile has rank " + Twine(tile.getRank()) + ", expected " +
                      Twine(memref.getRank()) + ", the rank of the memref");
  if (int64_t(indices) != memref.getRank())
    return where.fail("found " + Twine(indices) + " indices, expected " +
                      Twine(memref.getRank()) + ", the rank of the memref");
  if (tile.getElementType() != memref.getElementType())
    return where.fail("tile has element type " + str(tile.getElementType()) +
                      ", expected " + str(memref.getElementType()) +
                      ", that of the memref");
  if (!tile.hasStaticShape())
    return where.fail("tile has shape " + str(tile.getShape()) +
                      ", expected a static shape");
  if (llvm::is_contained(tile.getShape(), 0))
    return where.fail("tile has shape " + str(tile.getShape()) +
                      ", expected no empty dimension");
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return where.fail("memref has layout " +
                      str(Attribute(memref.getLayout())) +
                      ", expected strides");
  if (!strides.empty() && strides.back() != 1)
    return where.fail("memref has stride " +
                      (ShapedType::isDynamic(strides.back())
                           ? "?"
                           : std::to_string(strides.back())) +
                      " along its last dimension, expected 1");
  return success();
}

LogicalResult LoadOp::verify() {
  return checkMemory(*this, getResult().getType(),
                     cast<MemRefType>(getMemref().getType()),
                     getIndices().size());
}

void StoreOp::build(OpBuilder &b, OperationState &state, Value tile,
                    Value memref, ValueRange indices) {
  build(b, state, tile, memref, indices, ValueRange());
}

LogicalResult StoreOp::verify() {
  Where where(*this);
  auto memref = cast<MemRefType>(getMemref().getType());
  RankedTensorType tile = getTile().getType();
  if (failed(checkMemory(*this, tile, memref, getIndices().size())))
    return failure();
  // ST1
  if (!getValid().empty() && int64_t(getValid().size()) != memref.getRank())
    return where.fail("found " + Twine(getValid().size()) +
                      " valid extents, expected " + Twine(memref.getRank()) +
                      ", the rank of the memref");
  if (getScaleLayout() != ScaleLayout::swizzle_128x4)
    return success();
  // ST2 to ST4
  if (tile.getRank() != 2)
    return where.fail("swizzle_128x4 of a tile of rank " +
                      Twine(tile.getRank()) + ", expected rank 2");
  if (!isScaleByte(tile.getElementType()))
    return where.fail("swizzle_128x4 of a tile of " +
                      str(tile.getElementType()) +
                      ", expected f8E4M3FN or f8E8M0FNU");
  const int64_t block[2] = {128, 4};
  for (int64_t d = 0; d < 2; ++d)
    if (!memref.isDynamicDim(d) && memref.getDimSize(d) % block[d])
      return where.fail("swizzle_128x4 into dimension " + Twine(d) +
                        " of extent " + Twine(memref.getDimSize(d)) +
                        " of the memref, expected a multiple of " +
                        Twine(block[d]));
  return success();
}

LogicalResult AtomicMaxOp::verify() {
  return checkMemory(*this, getTile().getType(),
                     cast<MemRefType>(getMemref().getType()),
                     getIndices().size());
}

} // namespace dither::quant
