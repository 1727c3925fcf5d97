//===- PhaseBuilder.h - Builds the phases of a CPU kernel -------*- C++ -*-===//
//
// What phases have of their own: loops whose first part lies inside all tensors
// and whose rest masks its accesses, scratch memory between phases, and
// stretches with special values, which are computed again.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_PHASEBUILDER_H
#define DITHER_LIB_TRANSFORMS_PHASES_PHASEBUILDER_H

#include "Phases/Bounds.h"
#include "Phases/PhasePlan.h"
#include "Phases/Totals.h"
#include "Schedule/ScheduleBuilder.h"

namespace dither::transforms {

class PhaseBuilder : public ScheduleBuilder {
public:
  PhaseBuilder(mlir::func::FuncOp kernel, const PhasePlan &plan)
      : kernel(kernel), plan(plan), loc(kernel.getLoc()) {}

private:
  mlir::LogicalResult begin(const Nest &nest) override;
  mlir::LogicalResult buildNode(const Node &node) override;
  Index boundOf(Bound bound) override;
  Resolved resolve(mlir::Value v, Offsets offsets, Sizes sizes) override;

  mlir::LogicalResult buildPhase(const Node &phase);
  mlir::LogicalResult keep(const Node &node);
  mlir::LogicalResult findPiece(const Node &node);
  mlir::LogicalResult take(const Node &node);
  mlir::LogicalResult ask();
  mlir::LogicalResult askElements(mlir::Value tile);
  mlir::Value orSpecial(mlir::Value before, mlir::Value v);
  mlir::Value infiniteWhereSmall(mlir::Value v);
  Index unlessSpecial(mlir::Value special, Index inside);
  /// Offsets in the tile as indices of the scratch memory of a cut.
  llvm::SmallVector<mlir::Value> inScratch(bool ofWholeRows, Offsets offsets);

  /// That of the phase; nothing is kept for what is outside of them.
  PhasePlan::Kind kind() const {
    return current ? current->kind : PhasePlan::Rows;
  }
  bool isFast() const;
  mlir::Value loadScratch(unsigned cut, Offsets offsets, Sizes sizes);
  mlir::FailureOr<mlir::Value> blockBroadcast(quant::BlockBroadcastOp op,
                                              Offsets offsets, Sizes sizes);
  mlir::FailureOr<mlir::Value> blockReduce(quant::BlockReduceOp op,
                                           Offsets offsets, Sizes sizes);
  mlir::FailureOr<mlir::Value> tallBlockReduce(quant::BlockReduceOp op,
                                               Offsets offsets, Sizes sizes);
  mlir::Value joinPieces(quant::BlockReduceOp op, unsigned piece,
                         Offsets offsets, Sizes sizes);
  quant::BlockReduceOp amaxOf(quant::BlockReduceOp op, mlir::Value part,
                              mlir::Type type, llvm::ArrayRef<int64_t> block);
  mlir::FailureOr<mlir::Value> encodeFinite(quant::EncodeOp op, Offsets offsets,
                                            Sizes sizes);
  llvm::SmallVector<mlir::Value> indicesOf(quant::LoadOp load, Offsets offsets);
  void fetchAhead(quant::LoadOp load, Offsets offsets, Sizes sizes);
  std::pair<Index, Index> nextStretch();

  mlir::func::FuncOp kernel;
  const PhasePlan &plan;
  mlir::Location loc;
  /// Of cuts, and of pieces.
  llvm::SmallVector<mlir::Value> scratches, pieces;
  std::optional<Totals> totals;
  std::optional<TileBounds> bounds;
  /// The phase that is being built; null outside of them.
  const PhasePlan::Phase *current = nullptr;
  /// Whether the target has instructions that fetch ahead and store past the
  /// caches.
  bool streams = false;
  /// Columns of the stretch, and what Band and Measure found (null: not asked
  /// for yet).
  Index width, insideTensors;
  /// Rows and columns from what the stretch reads to what is read after it.
  std::optional<std::pair<Index, Index>> next;
  /// Whether an earlier phase of the stretch found a special value (null: not
  /// known).
  mlir::Value special;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_PHASEBUILDER_H
