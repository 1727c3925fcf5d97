//===- ScheduleBuilder.h - Builds the loops of a schedule -------*- C++ -*-===//
//
// Walks a schedule, and asks a TilingEngine for the parts of tiles that its
// nodes name, where the loops around them stand. What a kind of schedule has of
// its own (how a part is computed, what is kept and where) it overrides.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_SCHEDULE_SCHEDULEBUILDER_H
#define DITHER_LIB_TRANSFORMS_SCHEDULE_SCHEDULEBUILDER_H

#include "Schedule/Schedule.h"
#include "Tiling/TilingEngine.h"

namespace dither::transforms {

class ScheduleBuilder {
public:
  virtual ~ScheduleBuilder() = default;

  /// Builds all nests, and erases their sinks.
  mlir::LogicalResult build(const Schedule &schedule);

protected:
  using Index = mlir::OpFoldResult;
  using Offsets = TilingEngine::Offsets;
  using Sizes = TilingEngine::Sizes;
  using Resolved = std::optional<mlir::FailureOr<mlir::Value>>;

  mlir::OpBuilder &builder() { return engine->builder(); }
  Index index(int64_t v) { return builder().getIndexAttr(v); }
  /// Where the loops along an axis stand, and where the outermost one does;
  /// zero outside of loops.
  Index at(Axis axis) { return orZero(positions[unsigned(axis)].at); }
  Index outermost(Axis axis) {
    return orZero(positions[unsigned(axis)].outermost);
  }
  /// Where the part of `tile` lies in it that belongs to where the loops stand,
  /// and how large it is.
  void place(mlir::Value tile, llvm::SmallVectorImpl<Index> &offsets,
             llvm::SmallVectorImpl<int64_t> &sizes);
  mlir::FailureOr<mlir::Value> part(mlir::Value tile);
  /// The step of the innermost loop along an axis.
  int64_t extent(Axis axis) const { return positions[unsigned(axis)].extent; }

  /// Before the nodes of a nest.
  virtual mlir::LogicalResult begin(const Nest &) { return mlir::success(); }
  /// Asked for every part before the TilingInterface.
  virtual Resolved resolve(mlir::Value, Offsets, Sizes) { return {}; }
  /// Builds a node that is no loop.
  virtual mlir::LogicalResult buildNode(const Node &node);
  /// A bound that is no constant.
  virtual Index boundOf(Bound) { llvm_unreachable("no such bound"); }

  mlir::LogicalResult buildBody(const std::vector<Node> &body);
  /// Whether what an Ask of the body that is being built was about is special.
  mlir::Value foundSpecial();

  std::optional<TilingEngine> engine;
  const Nest *nest = nullptr;
  /// What foundSpecial gives, once there is an answer.
  mlir::Value found;
  /// What the innermost loop accesses is inside all tensors.
  bool inside = false;

private:
  /// Along an axis; null outside of loops along it.
  struct Position {
    Index at, outermost;
    int64_t extent = 0;
  };

  Index orZero(Index v) { return v ? v : index(0); }
  mlir::LogicalResult buildLoop(const Node &loop);

  const DimClasses *classes = nullptr;
  Position positions[2];
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_SCHEDULE_SCHEDULEBUILDER_H
