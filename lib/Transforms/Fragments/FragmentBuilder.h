//===- FragmentBuilder.h - Emits the loops of a plan ------------*- C++ -*-===//
//
// Loops over rows, inside them loops over columns, and in those the part of
// every stored value. What does not depend on a loop (row statistics,
// constants) is built outside it; reductions over more than a fragment become
// loops of their own.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTBUILDER_H
#define DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTBUILDER_H

#include "Fragments/FragmentPlan.h"
#include "Tiling/TilingEngine.h"

namespace dither::transforms {

class FragmentBuilder {
public:
  explicit FragmentBuilder(FragmentPlan &plan) : plan(plan) {}

  /// Rebuilds the block of the plan.
  mlir::LogicalResult run();

private:
  using OrderedSink = FragmentPlan::OrderedSink;
  using Offsets = TilingEngine::Offsets;
  using Sizes = TilingEngine::Sizes;

  mlir::LogicalResult emitNest(llvm::ArrayRef<OrderedSink> sinks, int rowClass,
                               int colClass);
  mlir::LogicalResult emitSquares(const OrderedSink &sink);
  mlir::LogicalResult
  emitSink(const OrderedSink &sink,
           llvm::ArrayRef<std::pair<int, mlir::OpFoldResult>> at,
           llvm::ArrayRef<std::pair<int, int64_t>> extents);
  mlir::LogicalResult overSegments(
      mlir::Location loc, llvm::ArrayRef<Segment> parts,
      llvm::function_ref<mlir::LogicalResult(mlir::OpFoldResult, int64_t)>
          body);
  std::optional<mlir::FailureOr<mlir::Value>> resolve(mlir::Value v, Offsets,
                                                      Sizes);
  std::optional<mlir::FailureOr<mlir::Value>>
  resolveBlocks(quant::BlockReduceOp reduce, Offsets, Sizes);
  mlir::FailureOr<mlir::Value> partOfWhole(mlir::Value v, Offsets, Sizes);

  FragmentPlan &plan;
  TilingEngine *engine = nullptr;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTBUILDER_H
