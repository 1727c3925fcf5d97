//===- Totals.h - Values over all rows of a tile ----------------*- C++ -*-===//
//
// Maxima, minima and sums over rows are collected in scratch memory while the
// rows are computed, one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_TOTALS_H
#define DITHER_LIB_TRANSFORMS_PHASES_TOTALS_H

#include "Phases/PhasePlan.h"
#include "Tiling/TilingEngine.h"

namespace dither::transforms {

class Totals {
public:
  using Index = mlir::OpFoldResult;

  /// Emits with `engine`; scratch memory, of pairs where `pairs`, comes from
  /// `b`. `rows` are collected (TileBounds::rowsComputed): in those after them
  /// sums have +0.
  Totals(mlir::OpBuilder &b, mlir::Location loc, const PhasePlan &plan,
         TilingEngine &engine, bool pairs, Index rows);

  /// Parts of so many columns are of this width.
  static int64_t widthOf(int64_t columns);

  /// Before the first row: nothing of a maximum or minimum is collected in
  /// these columns.
  void clear(unsigned total, Index col, int64_t width);
  /// Adds a part of the source of a total, one row of the tile at `row`, `col`.
  void collect(unsigned total, mlir::Value part, Index row, Index col);
  /// After all rows: the part of a total at a column.
  mlir::FailureOr<mlir::Value> part(unsigned total, Index col,
                                    llvm::ArrayRef<int64_t> sizes);

private:
  quant::ReduceKind kindOf(unsigned total) const {
    return quant::ReduceOp(plan.totals[total].reduce).getKind();
  }
  /// Rows of what is collected: one, or those of a tree of sums.
  int64_t heightOf(unsigned total) const;
  mlir::Value splat(double v, int64_t width);
  mlir::Value load(mlir::OpBuilder &b, unsigned total, int64_t row, Index col,
                   int64_t width);
  void store(mlir::OpBuilder &b, unsigned total, int64_t row, Index col,
             mlir::Value x);
  void addToTree(mlir::OpBuilder &b, unsigned total, int64_t level, Index row,
                 Index col, mlir::Value x);
  mlir::Value larger(quant::ReduceKind kind, mlir::Value acc, mlir::Value x);
  mlir::FailureOr<mlir::Value> sumOfTree(unsigned total, Index col,
                                         int64_t width);

  mlir::Location loc;
  const PhasePlan &plan;
  TilingEngine &engine;
  llvm::SmallVector<mlir::Value> collected;
  /// Rows that are collected.
  Index rows;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_TOTALS_H
