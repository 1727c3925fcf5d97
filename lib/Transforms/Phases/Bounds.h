//===- Bounds.h - How much of a tile lies inside its tensors ----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_BOUNDS_H
#define DITHER_LIB_TRANSFORMS_PHASES_BOUNDS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace dither::transforms {

class PhasePlan;

/// The rows and columns of a program's tile that no access leaves, computed
/// once for each program; static where shapes and offsets are.
class TileBounds {
public:
  using Index = mlir::OpFoldResult;

  /// Emits the computation with `b`.
  TileBounds(mlir::OpBuilder &b, mlir::Location loc, const PhasePlan &plan);

  /// Rows up to the last one that a store writes or a total is of: of what
  /// comes after it a sum has +0 alone, and so has a maximum of magnitudes.
  Index rowsEnd() const { return end; }
  /// Rows up to the end of the block (`blockRows`) that this one is in.
  Index rowsComputed() const { return computed; }
  /// Those of them that the band at `row` has.
  Index rowsOfBand(mlir::OpBuilder &b, Index row);
  /// The calls below are about `count` rows from `row` on.
  void enterBand(mlir::OpBuilder &b, Index row, int64_t count);
  /// Rows of the band that are inside with all columns: all or none.
  Index rowsInside(mlir::OpBuilder &b);
  /// Columns of the stretch at `col` that are computed, up to the end of the
  /// block (`blockCols`) of the last one that is stored, and those of them, a
  /// multiple of `step`, that are inside in every row.
  Index width(mlir::OpBuilder &b, Index col);
  Index colsInside(mlir::OpBuilder &b, Index col, Index width, int64_t step);

private:
  Index choose(mlir::OpBuilder &b, Index ifInside);

  mlir::Location loc;
  const PhasePlan &plan;
  /// Leading rows and columns that are inside; all accesses are, in the other
  /// dimensions (null: always).
  Index rows, cols, end, computed, colsEnd;
  mlir::Value inside, bandInside;
  /// The band has a row that is not.
  bool never = false;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_BOUNDS_H
