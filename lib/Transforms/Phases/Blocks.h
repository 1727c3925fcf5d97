//===- Blocks.h - Blocks of a tile and their amax ---------------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_BLOCKS_H
#define DITHER_LIB_TRANSFORMS_PHASES_BLOCKS_H

#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::transforms {

/// What a quant.block_reduce is of, and of which blocks: the amax of blocks of
/// several rows and columns is taken in two steps, of which the last one
/// counts.
struct ReducedBlocks {
  mlir::Value source;
  llvm::SmallVector<int64_t, 2> block;

  explicit ReducedBlocks(quant::BlockReduceOp op);
};

/// What computes `v` if it is the amax of blocks; else null.
quant::BlockReduceOp asAmax(mlir::Value v);
/// Whether `v` is but a step on the way to the amax of larger blocks.
bool isStep(mlir::Value v);
/// What is spread over blocks, and not over parts of them first.
mlir::Value spreadBy(quant::BlockBroadcastOp op);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_BLOCKS_H
