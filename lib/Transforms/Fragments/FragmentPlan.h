//===- FragmentPlan.h - The loops of a block over fragments -----*- C++ -*-===//
//
// How one block of a kernel is computed in parts that fit in registers: which
// of its sinks share loops over which rows and columns, and which tiles are
// kept for as long as they are needed.
//
// Memory keeps the order of the source. Where a loop over parts would read what
// it has stored before, the tile that it reads is kept in memory of its own
// first; and sinks that touch the same elements get loops of their own, one
// after the other.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTPLAN_H
#define DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTPLAN_H

#include "Analysis/AccessOrder.h"
#include "Analysis/DimClasses.h"
#include "Analysis/Sinks.h"
#include "Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dither::transforms {

/// Rows and columns of a part.
struct Extents {
  int64_t rows, cols;
};

/// What the blocks of a kernel know of each other.
struct SharedFragments {
  /// Values that inner blocks use as a whole.
  llvm::SetVector<mlir::Value> liveOut;
  /// Scratch memory of values that nobody can compute in parts.
  llvm::DenseMap<mlir::Value, mlir::Value> scratches;
  /// Loads whose tiles stay in registers, as their elements are overwritten
  /// before they are used.
  llvm::DenseSet<mlir::Value> kept;
  /// Shared memory of a GPU that holds tiles, and the blocks that have it.
  struct Holder {
    mlir::RankedTensorType type;
    mlir::Value memory;
    llvm::SmallVector<mlir::Block *, 2> blocks;
  };
  llvm::SmallVector<Holder, 0> holders;
  int64_t heldBytes = 0;
};

/// Whether a value is there as a whole, and nobody can compute it in parts:
/// what a loop carries, or a branch yields.
bool isComplete(mlir::Value v);

class FragmentPlan {
public:
  /// A sink in the order of the source.
  struct OrderedSink : Sink {
    explicit OrderedSink(const Sink &sink) : Sink(sink) {}

    /// Number of loops and branches before it: what they do stays between the
    /// sinks around them.
    int stretch = 0;
    /// The store or atomic itself, and the loads that its tile is computed
    /// from.
    llvm::SmallVector<MemoryAccess> accesses;
  };
  /// Sinks that share their loops over a class of rows and one of columns.
  struct Group {
    int row, col;
    /// One sink, whose dimensions cannot go together.
    bool squares;
    llvm::SmallVector<OrderedSink> sinks;
  };

  /// `count` parts of `size` steps from `start` on.
  struct Segment {
    int64_t start, count, size;
  };
  using Segments = llvm::SmallVector<Segment>;

  /// For `block` in parts of `edge` where they divide what it computes, else of
  /// `fragment`.
  FragmentPlan(mlir::func::FuncOp kernel, mlir::Block &block, Extents fragment,
               std::optional<Extents> edge, SharedFragments &shared)
      : kernel(kernel), block(block), shared(shared), rows(fragment.rows),
        cols(fragment.cols), edge(edge), isAtEdge(edge) {}

  /// Makes the plan, and keeps the tiles that would be read again too late;
  /// false if nothing in the block needs to be split. Errors: tiles that cannot
  /// be kept.
  mlir::FailureOr<bool> make();

  /// Whether a part has all of a class.
  bool fits(const DimClasses::Class &c) const {
    if (unsplit.contains(&c))
      return true;
    if (c.isSquare)
      return c.extent * c.extent <= rows * cols;
    return c.extent <= (c.isColumn ? cols : rows);
  }
  /// The tiles that are there as a whole, and then the nests, each before its
  /// last sink. Errors: a tile that is larger than a fragment; a dimension that
  /// leaves less than a block.
  mlir::FailureOr<Schedule> schedule() const;
  /// The error that a tile which must be kept is too large.
  mlir::LogicalResult tooLarge(quant::LoadOp load) const;

  mlir::func::FuncOp kernel;
  mlir::Block &block;
  SharedFragments &shared;
  int64_t rows, cols;
  llvm::SmallVector<OrderedSink> sinks;
  /// Tiles that loops, branches and inner blocks use as a whole.
  llvm::SetVector<mlir::Value> roots;
  std::optional<DimClasses> classes;
  llvm::SmallVector<Group> groups;

private:
  /// The parts of a class, and those of so many steps, `step` of them or what
  /// is left in whole granules.
  mlir::FailureOr<Segments> segments(int cls) const;
  mlir::FailureOr<Segments> segments(int64_t extent, int64_t step,
                                     int64_t granule, bool open) const;
  llvm::SmallVector<int64_t> blocksWithin(int cls, int64_t height) const;
  std::vector<Node> takeBlocks(llvm::ArrayRef<OrderedSink> sinks, int row,
                               int64_t height,
                               llvm::ArrayRef<int64_t> heights) const;
  mlir::FailureOr<std::vector<Node>> squares(const OrderedSink &sink) const;
  mlir::FailureOr<std::vector<Node>> rowsAndColumns(const Group &group) const;
  bool divides(Extents part);
  void collect();
  bool isFill(mlir::Operation *op) const;
  void takeFromOutside(mlir::ValueRange operands);
  void leaveAsIs();
  bool isOpen(int cls) const;
  std::pair<int, int> splitClasses(const OrderedSink &sink);
  bool isSquare(const OrderedSink &sink);
  bool isInPlace(quant::LoadOp load, const OrderedSink &sink);
  bool isOverwritten(quant::LoadOp load, mlir::Operation *use,
                     const OrderedSink *sink);
  void keepWhole(mlir::Value v);
  bool isSmall(mlir::Value tile);
  mlir::LogicalResult keep(quant::LoadOp load);
  mlir::FailureOr<bool> keepOverwritten();
  /// Loops, each by an address of its own.
  using Readers = llvm::SmallPtrSet<const void *, 4>;
  llvm::MapVector<quant::LoadOp, Readers> readers();
  bool hasTallBlocks(mlir::Value tile) const;
  mlir::Value holder(mlir::Value tile, int64_t most);
  /// GPU: has shared memory hold what several loops would read; whether there
  /// is any.
  bool holdRereads();
  void hold(mlir::Value tile);
  bool isSplit(quant::ReduceOp reduce);
  /// CPU: has memory hold sums and maxima of tiles that are reduced along both
  /// directions and split in both; whether there is any.
  bool holdReductions();
  bool isTransposed(mlir::Value tile) const;
  /// CPU: has memory hold what is transposed and made of what is transposed;
  /// whether there is any.
  bool holdTransposed();
  void makeGroups();
  /// Step of the loop over a class.
  int64_t stepOf(const DimClasses::Class &c) const {
    int64_t want = c.isColumn ? cols : rows;
    return std::max(c.granule, want / c.granule * c.granule);
  }

  std::optional<Extents> edge;
  /// Whether it is what few programs do: the body for the edge of a tensor.
  bool isAtEdge;
  /// Classes longer than a fragment that are not split all the same.
  llvm::SmallPtrSet<const DimClasses::Class *, 4> unsplit;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTPLAN_H
