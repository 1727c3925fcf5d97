//===- HeldTiles.h - What is held in the place of loads ---------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_TILING_HELDTILES_H
#define DITHER_LIB_TRANSFORMS_TILING_HELDTILES_H

#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::transforms {

/// What to hold of a tile that is loaded and read several times: of what is
/// made of it element by element, alone or with other loads of its shape, and
/// of which nothing but that is made, what saves most bits of what it is made
/// of, and the last of several. Nothing is written before it is made. Of a sum
/// of two tensors that is rounded to 16 bits these are half of what was loaded.
/// The tile itself where nothing else takes no more.
mlir::Value heldTileOf(quant::LoadOp load);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_TILING_HELDTILES_H
