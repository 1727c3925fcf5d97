//===- PhaseBuilder.h - Emits the loops of a plan ---------------*- C++ -*-===//
//
// Every loop has a fast part, for what lies inside all tensors, and a slow part
// that masks its accesses and takes less at a time: both are short, and nothing
// is unrolled twice.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_PHASEBUILDER_H
#define DITHER_LIB_TRANSFORMS_PHASES_PHASEBUILDER_H

#include "Phases/Bounds.h"
#include "Phases/PhasePlan.h"
#include "Phases/Totals.h"
#include "Tiling/TilingEngine.h"

namespace dither::transforms {

class PhaseBuilder {
public:
  /// Loops for the body of `kernel`, before its terminator.
  PhaseBuilder(mlir::func::FuncOp kernel, const PhasePlan &plan);

  mlir::LogicalResult run();

private:
  using Index = mlir::OpFoldResult;
  using Offsets = TilingEngine::Offsets;
  using Sizes = TilingEngine::Sizes;

  mlir::OpBuilder &builder() { return engine.builder(); }
  Index zero() { return builder().getIndexAttr(0); }
  Index index(int64_t v) { return builder().getIndexAttr(v); }

  mlir::LogicalResult emitLateSink(const Sink &sink);
  mlir::LogicalResult shareUniformValues();
  mlir::LogicalResult emitBand(Index row);
  mlir::LogicalResult emitRows(const PhasePlan::Phase &phase);
  mlir::LogicalResult emitPhase(const PhasePlan::Phase &phase, Index width);
  mlir::LogicalResult emitPart(const PhasePlan::Phase &phase, Index row,
                               Index col, int64_t height, int64_t width,
                               bool fast);
  mlir::FailureOr<TilingEngine::Values> addSpecial(mlir::ValueRange carried,
                                                   Index row, Index col,
                                                   int64_t height,
                                                   int64_t width);
  Index unlessSpecial(mlir::Value special, Index inside);
  mlir::FailureOr<mlir::Value> part(mlir::Value v, Index row, Index col,
                                    int64_t height, int64_t width,
                                    llvm::SmallVectorImpl<Index> &offsets);
  void place(mlir::Value v, Index row, Index col, int64_t height, int64_t width,
             llvm::SmallVectorImpl<Index> &offsets,
             llvm::SmallVectorImpl<int64_t> &sizes);
  /// `body` for each step of [from, to); what it computes stays in the loop.
  mlir::LogicalResult loop(Index from, Index to, int64_t step,
                           llvm::function_ref<mlir::LogicalResult(Index)> body,
                           bool barrier = false);

  std::optional<mlir::FailureOr<mlir::Value>>
  resolve(mlir::Value v, Offsets offsets, Sizes sizes);
  mlir::Value loadScratch(unsigned cut, Offsets offsets, Sizes sizes);
  mlir::FailureOr<mlir::Value> blockBroadcast(quant::BlockBroadcastOp op,
                                              Offsets offsets, Sizes sizes);
  mlir::FailureOr<mlir::Value> blockReduce(quant::BlockReduceOp op,
                                           Offsets offsets, Sizes sizes);
  mlir::FailureOr<mlir::Value> tallBlockReduce(quant::BlockReduceOp op,
                                               Offsets offsets, Sizes sizes);
  quant::BlockReduceOp amaxOf(quant::BlockReduceOp op, mlir::Value part,
                              mlir::Type type, llvm::ArrayRef<int64_t> block);
  mlir::FailureOr<mlir::Value> encodeFinite(quant::EncodeOp op, Offsets offsets,
                                            Sizes sizes);
  void fetchAhead(quant::LoadOp part, mlir::Value whole);
  /// An offset in the tile as an index of the scratch memory of the band.
  mlir::Value inBand(Index offset);

  const PhasePlan &plan;
  mlir::Location loc;
  TilingEngine engine;
  llvm::SmallVector<mlir::Value> scratches;
  std::optional<Totals> totals;
  std::optional<TileBounds> bounds;

  // Where the emission stands.
  Index bandRow, bandCol;
  PhasePlan::Kind kind = PhasePlan::Rows;
  bool inBounds = false;
  /// Whether the target has instructions that fetch ahead and store past the
  /// caches.
  bool streams = false;
  /// Whether the stretch has a value that is not finite (null: not known).
  mlir::Value special;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_PHASEBUILDER_H
