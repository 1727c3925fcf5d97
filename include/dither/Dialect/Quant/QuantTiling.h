//===- QuantTiling.h - Computing part of a tile value -----------*- C++ -*-===//
//
// How the operations of the tile language are restricted to a rectangle of one
// of their results: the upstream TilingInterface for all of them, and the
// relation between the dimensions of operands and results that it rests on.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_QUANTTILING_H
#define DITHER_DIALECT_QUANT_QUANTTILING_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include <optional>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace dither::quant {

/// Elements of dimension `operandDim` of operand `operand` that dimension
/// `resultDim` of a result reads: coordinate c of the result reads
/// [c * mul / div, (c + 1) * mul / div). One of `mul` and `div` is 1; the other
/// is the length of a block. Parts of the result are of `granule` elements, or
/// of whole multiples, from a multiple of it on.
struct DimRelation {
  unsigned operand, operandDim, resultDim;
  int64_t mul = 1, div = 1;
  int64_t granule = 1;
};

/// The relations of one result of `op`. Dimensions of operands that no relation
/// names are read as a whole (a reduced axis, a unit dimension that is
/// repeated, a tensor amax). Nothing for operations that cannot be tiled.
std::optional<llvm::SmallVector<DimRelation>>
getDimRelations(mlir::Operation *op, unsigned resultNumber);

/// a + b and v * mul / div (exact), folded where static.
mlir::OpFoldResult addOffsets(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::OpFoldResult a, mlir::OpFoldResult c);
mlir::OpFoldResult scaleOffset(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::OpFoldResult v, int64_t mul, int64_t div);

/// Attaches the upstream TilingInterface to the operations of the quant
/// dialect, to the elementwise ones of arith and math, and to splats. Results
/// are tiled to static sizes only. Slices of operands are
/// `tensor.extract_slice` operations, one for each tensor operand, also where
/// they take all of it.
void registerTilingInterfaceExternalModels(mlir::DialectRegistry &registry);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_QUANTTILING_H
