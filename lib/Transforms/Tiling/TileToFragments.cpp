//===- TileToFragments.cpp - Loops over parts that fit in registers -------===//
//
// Each block of a kernel is rebuilt around its stores: loops over rows, inside
// them loops over columns, and in those the part of every stored value. What
// does not depend on a loop (row statistics, constants) is built outside it;
// reductions over more than a fragment become loops of their own.
//
// Memory keeps the order of the source. Where a loop over parts would read what
// it has stored before, the tile that it reads is kept in memory of its own
// first; and sinks that touch the same elements get loops of their own, one
// after the other.
//
//===----------------------------------------------------------------------===//

#include "Analysis/AccessOrder.h"
#include "Analysis/Describe.h"
#include "Analysis/DimClasses.h"
#include "Analysis/Sinks.h"
#include "Layouts/LayoutRules.h"
#include "Tiling/ReductionLoops.h"
#include "Tiling/Scratch.h"
#include "Tiling/TilingEngine.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERTILETOFRAGMENTS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// A sink in the order of the source.
struct OrderedSink : Sink {
  explicit OrderedSink(const Sink &sink) : Sink(sink) {}

  /// Number of loops and branches before it: what they do stays between the
  /// sinks around them.
  int stretch = 0;
  /// The store or atomic itself, and the loads that its tile is computed from.
  SmallVector<MemoryAccess> accesses;
};

/// Whether a value is there as a whole, and nobody can compute it in parts:
/// what a loop carries, or a branch yields.
bool isComplete(Value v) {
  Operation *def = v.getDefiningOp();
  return !def ||
         !quant::getDimRelations(def, cast<OpResult>(v).getResultNumber());
}

/// Rows and columns of a part.
struct Extents {
  int64_t rows, cols;
};

/// `count` parts of `size` steps from `start` on.
struct Segment {
  int64_t start, count, size;
};

/// What the blocks of a kernel know of each other.
struct Shared {
  /// Values that inner blocks use as a whole.
  llvm::SetVector<Value> liveOut;
  /// Scratch memory of values that nobody can compute in parts.
  llvm::DenseMap<Value, Value> scratches;
  /// Loads whose tiles stay in registers, as their elements are overwritten
  /// before they are used.
  llvm::DenseSet<Value> kept;
};

/// The loads that computing a part of `v` makes again.
SmallVector<quant::LoadOp> loadsOf(Value v) {
  SmallVector<quant::LoadOp> loads;
  llvm::SetVector<Value> cone;
  cone.insert(v);
  for (size_t i = 0; i < cone.size(); ++i) {
    if (isComplete(cone[i]))
      continue;
    Operation *def = cone[i].getDefiningOp();
    if (auto load = dyn_cast<quant::LoadOp>(def))
      loads.push_back(load);
    for (Value operand : def->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        cone.insert(operand);
  }
  return loads;
}

/// Whether two accesses of an element, one of them writing, are among these.
bool meet(ArrayRef<MemoryAccess> first, ArrayRef<MemoryAccess> second) {
  return llvm::any_of(first, [&](const MemoryAccess &a) {
    return llvm::any_of(second, [&](const MemoryAccess &b) {
      return conflicts(a, b) && !areDisjoint(a, b);
    });
  });
}

/// Rebuilds one block.
class BlockTiler {
public:
  /// In parts of `edge` where they divide what the block computes, else of
  /// `fragment`.
  BlockTiler(func::FuncOp kernel, Block &block, Extents fragment,
             std::optional<Extents> edge, Shared &shared)
      : kernel(kernel), block(block), rows(fragment.rows), cols(fragment.cols),
        edge(edge), shared(shared) {}

  LogicalResult run();

private:
  bool divides(Extents part);
  void collect();
  bool isFill(Operation *op) const;
  bool fits(const DimClasses::Class &c) const {
    if (unsplit.contains(&c))
      return true;
    if (c.isSquare)
      return c.extent * c.extent <= rows * cols;
    return c.extent <= (c.isColumn ? cols : rows);
  }
  FailureOr<SmallVector<Segment>> segments(int cls);
  FailureOr<SmallVector<Segment>> segments(int64_t extent, int64_t step,
                                           int64_t granule, bool open);
  LogicalResult
  overSegments(Location loc, ArrayRef<Segment> parts,
               llvm::function_ref<LogicalResult(OpFoldResult, int64_t)> body);
  void takeFromOutside(ValueRange operands);
  LogicalResult leaveAsIs();
  bool isOpen(int cls);
  std::pair<int, int> splitClasses(const OrderedSink &sink);
  bool isSquare(const OrderedSink &sink);
  bool isInPlace(quant::LoadOp load, const OrderedSink &sink);
  bool isOverwritten(quant::LoadOp load, Operation *use,
                     const OrderedSink *sink);
  LogicalResult tooLarge(quant::LoadOp load);
  void keepWhole(Value v);
  bool isSmall(Value tile);
  LogicalResult keep(quant::LoadOp load);
  FailureOr<bool> keepOverwritten();
  void makeNests();
  SmallVector<int64_t> blocksWithin(int cls, int64_t height);
  LogicalResult emitNest(ArrayRef<OrderedSink> sinks, int rowClass,
                         int colClass);
  LogicalResult emitSquares(const OrderedSink &sink);
  LogicalResult emitSink(const OrderedSink &sink,
                         ArrayRef<std::pair<int, OpFoldResult>> at,
                         ArrayRef<std::pair<int, int64_t>> extents);
  std::optional<FailureOr<Value>> resolve(Value v, TilingEngine::Offsets,
                                          TilingEngine::Sizes);
  std::optional<FailureOr<Value>> resolveBlocks(quant::BlockReduceOp reduce,
                                                TilingEngine::Offsets,
                                                TilingEngine::Sizes);
  FailureOr<Value> partOfWhole(Value v, TilingEngine::Offsets,
                               TilingEngine::Sizes);
  /// Step of the loop over a class.
  int64_t stepOf(const DimClasses::Class &c) const {
    int64_t want = c.isColumn ? cols : rows;
    return std::max(c.granule, want / c.granule * c.granule);
  }

  func::FuncOp kernel;
  Block &block;
  int64_t rows, cols;
  std::optional<Extents> edge;
  Shared &shared;
  SmallVector<OrderedSink> sinks;
  llvm::SetVector<Value> roots;
  std::optional<DimClasses> classes;
  /// Classes longer than a fragment that are not split all the same.
  llvm::SmallPtrSet<const DimClasses::Class *, 4> unsplit;
  /// Sinks that share their loops over a class of rows and one of columns.
  struct Nest {
    int row, col;
    /// One sink, whose dimensions cannot go together.
    bool squares;
    SmallVector<OrderedSink> sinks;
  };
  SmallVector<Nest> nests;
  TilingEngine *engine = nullptr;
};

} // namespace

/// Whether `op` stores to scratch memory what is there as a whole.
bool BlockTiler::isFill(Operation *op) const {
  auto store = dyn_cast<quant::StoreOp>(op);
  return store && store.getMemref().getDefiningOp<quant::ScratchOp>() &&
         isComplete(store.getTile()) &&
         cast<RankedTensorType>(store.getTile().getType()).getNumElements() <=
             rows * cols;
}

void BlockTiler::collect() {
  auto addRoot = [&](Value v) {
    if (isa<RankedTensorType>(v.getType()) && v.getDefiningOp() &&
        v.getDefiningOp()->getBlock() == &block)
      roots.insert(v);
  };
  int stretch = 0;
  for (Operation &op : block) {
    if (isFill(&op))
      continue;
    stretch += op.getNumRegions() != 0;
    if (std::optional<Sink> found = asSink(&op)) {
      OrderedSink &sink = sinks.emplace_back(*found);
      sink.stretch = stretch;
    } else if (op.getNumRegions() || op.hasTrait<OpTrait::IsTerminator>()) {
      llvm::for_each(op.getOperands(), addRoot);
      takeFromOutside(op.getOperands());
    }
  }
  llvm::for_each(shared.liveOut, addRoot);
}

/// Notes which tiles of blocks around this one it uses as they are.
void BlockTiler::takeFromOutside(ValueRange operands) {
  for (Value v : operands)
    if (Operation *def = v.getDefiningOp();
        def && def->getBlock() != &block &&
        isa<RankedTensorType>(v.getType()) &&
        !def->hasTrait<OpTrait::ConstantLike>())
      shared.liveOut.insert(v);
}

/// Nothing in the block needs to be split.
LogicalResult BlockTiler::leaveAsIs() {
  for (Operation &op : block)
    takeFromOutside(op.getOperands());
  return success();
}

/// Whether a part along `cls` may reach past the end of the tile.
bool BlockTiler::isOpen(int cls) {
  return llvm::all_of(sinks, [&](const OrderedSink &sink) {
    return endsAtMemref(sink, [&](unsigned d) {
      return classes->member(sink.tile, d).cls == cls;
    });
  });
}

FailureOr<SmallVector<Segment>> BlockTiler::segments(int cls) {
  if (cls < 0)
    return SmallVector<Segment>{{0, 1, 1}};
  const DimClasses::Class &info = (*classes)[cls];
  if (fits(info))
    return SmallVector<Segment>{{0, 1, info.extent}};
  return segments(info.extent, stepOf(info), info.granule, isOpen(cls));
}

/// Parts of `step` and one or more smaller ones of whole granules. With `open`
/// the last one may reach past the end.
FailureOr<SmallVector<Segment>>
BlockTiler::segments(int64_t extent, int64_t step, int64_t granule, bool open) {
  SmallVector<Segment> out;
  if (int64_t count = extent / step)
    out.push_back({0, count, step});
  int64_t at = extent / step * step, rest = extent - at;
  if (rest == 0)
    return out;
  int64_t padded = powerOfTwoCeil(rest);
  if (padded != rest && padded % granule == 0 && open) {
    out.push_back({at, 1, padded});
    return out;
  }
  while (rest > 0) {
    int64_t piece = powerOfTwoFloor(rest);
    if (piece % granule != 0)
      return emitError(sinks.empty() ? block.getParentOp()->getLoc()
                                     : sinks.front().op->getLoc())
             << "a dimension of " << extent << " is computed " << step
             << " at a time, and what is left is no multiple of " << granule
             << ", its blocks: make it a multiple of " << step
             << ", or let the tile end where the tensor ends";
    out.push_back({at, 1, piece});
    at += piece;
    rest -= piece;
  }
  return out;
}

/// The classes of the loops around a sink: over rows, over columns; -1 for
/// none.
std::pair<int, int> BlockTiler::splitClasses(const OrderedSink &sink) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  int row = -1, col = -1;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int cls = classes->member(sink.tile, d).cls;
    const DimClasses::Class &info = (*classes)[cls];
    if (fits(info))
      continue;
    int &slot = info.isColumn ? col : row;
    if (slot < 0)
      slot = cls;
    else if (info.isColumn)
      row = cls;
    else
      col = cls;
  }
  return {row, col};
}

/// Whether dimensions of a sink that are split cannot go together.
bool BlockTiler::isSquare(const OrderedSink &sink) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  for (int64_t d = 0; d < type.getRank(); ++d) {
    const DimClasses::Class &info =
        (*classes)[classes->member(sink.tile, d).cls];
    if (!fits(info) && info.rigid)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The order of accesses
//===----------------------------------------------------------------------===//

/// Whether each part of the sink overwrites just what it was computed from, or
/// what was read before the loop over its columns.
bool BlockTiler::isInPlace(quant::LoadOp load, const OrderedSink &sink) {
  const MemoryAccess &write = sink.accesses.front();
  auto type = cast<RankedTensorType>(load.getResult().getType());
  if (load->getBlock() != &block || load.getMemref() != write.view ||
      write.swizzled || isSquare(sink) || load.getIndices() != sink.indices ||
      type.getShape() != write.tile.getShape())
    return false;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    DimClasses::Member from = classes->member(load.getResult(), d),
                       to = classes->member(sink.tile, d);
    if (from.cls != to.cls || from.unit != to.unit)
      return false;
  }
  int rows = splitClasses(sink).first;
  return rows < 0 || llvm::none_of(
                         classes->values(),
                         [&](Value v) {
                           auto reduce = v.getDefiningOp<quant::ReduceOp>();
                           return reduce && classes->member(reduce.getSource(),
                                                            reduce.getAxis())
                                                    .cls == rows;
                         });
}

/// Whether `load`, made again where `use` is, may find what was stored since.
bool BlockTiler::isOverwritten(quant::LoadOp load, Operation *use,
                               const OrderedSink *sink) {
  Block *home = load->getBlock();
  MemoryAccess read = *MemoryAccess::of(load);
  Operation *end = home->findAncestorOpInBlock(*use);
  for (Operation *user : accessesOf(read.memref)) {
    std::optional<MemoryAccess> write = MemoryAccess::of(user);
    if (!write || !write->writes || areDisjoint(read, *write))
      continue;
    Operation *at = home->findAncestorOpInBlock(*user);
    if (!at || !load->isBeforeInBlock(at) || end->isBeforeInBlock(at))
      continue;
    if (!(sink && user == use && isInPlace(load, *sink)))
      return true;
  }
  return false;
}

LogicalResult BlockTiler::tooLarge(quant::LoadOp load) {
  return emitError(load.getLoc())
         << "the program overwrites what it has loaded, "
         << describeTile(load.getResult().getType())
         << ", before it has used all of it, expected at most " << rows * cols
         << " elements: store to another tensor, or use smaller tiles and more "
            "programs";
}

/// Leaves the dimensions of `v`, of which there are no parts, unsplit: longer
/// ones than of a fragment too, if each tile that has them is no larger than
/// one. On a CPU such tiles are in memory, where there are parts.
void BlockTiler::keepWhole(Value v) {
  if (hasScratch(kernel))
    return;
  llvm::SmallPtrSet<const DimClasses::Class *, 2> found;
  auto has = [&](Value w) {
    auto type = cast<RankedTensorType>(w.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (int cls = classes->member(w, d).cls;
          cls >= 0 && found.contains(&(*classes)[cls]))
        return true;
    return false;
  };
  auto type = cast<RankedTensorType>(v.getType());
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (int cls = classes->member(v, d).cls; cls >= 0 && !fits((*classes)[cls]))
      found.insert(&(*classes)[cls]);
  for (Value w : classes->values())
    if (has(w) &&
        cast<RankedTensorType>(w.getType()).getNumElements() > rows * cols)
      return;
  unsplit.insert(found.begin(), found.end());
}

/// Whether a fragment holds all of a tile.
bool BlockTiler::isSmall(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  bool small = type.getNumElements() <= rows * cols;
  for (int64_t d = 0; d < type.getRank(); ++d)
    small &= fits((*classes)[classes->member(tile, d).cls]);
  return small;
}

/// Keeps what `load` reads, in registers or in memory, for all of its uses.
LogicalResult BlockTiler::keep(quant::LoadOp load) {
  Value tile = load.getResult();
  auto type = cast<RankedTensorType>(tile.getType());
  if (!isSmall(tile))
    keepWhole(tile);
  if (isSmall(tile)) {
    shared.kept.insert(tile);
    return success();
  }
  if (!hasScratch(kernel) || !canBeScratch(type))
    return tooLarge(load);
  OpBuilder b(load->getContext());
  b.setInsertionPointAfter(load);
  Value scratch = makeScratch(kernel, load.getLoc(), type);
  storeScratch(b, load.getLoc(), scratch, tile);
  Value again = loadScratch(b, load.getLoc(), scratch, type);
  Operation *copy = *tile.getUsers().begin();
  for (Operation *user : tile.getUsers())
    if (auto store = dyn_cast<quant::StoreOp>(user);
        store && store.getMemref() == scratch)
      copy = user;
  tile.replaceAllUsesExcept(again, copy);
  return success();
}

/// Keeps the tiles that would be read again too late; whether there are any.
FailureOr<bool> BlockTiler::keepOverwritten() {
  llvm::SetVector<quant::LoadOp> found;
  auto look = [&](Value v, Operation *use, const OrderedSink *sink) {
    for (quant::LoadOp load : loadsOf(v))
      if (!shared.kept.contains(load.getResult()) &&
          isOverwritten(load, use, sink))
        found.insert(load);
  };
  for (const OrderedSink &sink : sinks)
    look(sink.tile, sink.op, &sink);
  for (Value root : roots)
    look(root, root.getDefiningOp(), nullptr);
  for (quant::LoadOp load : found)
    if (failed(keep(load)))
      return failure();
  return !found.empty();
}

/// Sinks that split along the same dimensions share their loops. Those that
/// touch the same elements do not, and then loops follow each other as in the
/// source: delayed stores would pass what lies between them.
void BlockTiler::makeNests() {
  struct Event {
    Operation *op;
    SmallVector<MemoryAccess> accesses;
  };
  SmallVector<Event> events;
  for (const OrderedSink &sink : sinks)
    events.push_back({sink.op, sink.accesses});
  for (Value root : roots) {
    Event &event = events.emplace_back(Event{root.getDefiningOp(), {}});
    for (quant::LoadOp load : loadsOf(root))
      event.accesses.push_back(*MemoryAccess::of(load));
  }
  bool ordered = false;
  for (size_t i = 0; i < events.size() && !ordered; ++i)
    for (size_t j = 0; j < i && !ordered; ++j)
      ordered = meet(events[i].accesses, events[j].accesses);

  auto passes = [&](const Nest &nest, const OrderedSink &sink) {
    return llvm::any_of(nest.sinks, [&](const OrderedSink &member) {
      return llvm::any_of(events, [&](const Event &event) {
        return member.op->isBeforeInBlock(event.op) &&
               !sink.op->isBeforeInBlock(event.op) &&
               meet(member.accesses, event.accesses);
      });
    });
  };
  for (const OrderedSink &sink : sinks) {
    bool squares = isSquare(sink);
    auto [row, col] = splitClasses(sink);
    auto shares = [&, row = row, col = col](const Nest &n) {
      return !n.squares && !squares &&
             n.sinks.front().stretch == sink.stretch && n.row == row &&
             (n.col == col || n.col < 0 || col < 0) &&
             (!ordered || (&n == &nests.back() && !passes(n, sink)));
    };
    auto it = llvm::find_if(nests, shares);
    if (it == nests.end())
      it = &nests.emplace_back(Nest{row, col, squares, {}});
    if (it->col < 0)
      it->col = col;
    it->sinks.push_back(sink);
  }
}

std::optional<FailureOr<Value>>
BlockTiler::resolve(Value v, TilingEngine::Offsets offsets,
                    TilingEngine::Sizes sizes) {
  auto type = cast<RankedTensorType>(v.getType());
  Operation *def = v.getDefiningOp();
  bool whole = type.getShape() == sizes;
  bool isKept = shared.kept.contains(v);
  if (!whole && (isComplete(v) || isKept) && hasScratch(kernel) &&
      canBeScratch(type))
    return partOfWhole(v, offsets, sizes);
  if (isKept && !whole)
    return FailureOr<Value>(tooLarge(cast<quant::LoadOp>(def)));
  if (isKept && def->getBlock() == &block)
    return FailureOr<Value>(v);
  // Values of an enclosing block are shared where they are small.
  if (!def || def->getBlock() != &block) {
    if (whole && type.getNumElements() <= rows * cols &&
        !(def && def->hasTrait<OpTrait::ConstantLike>())) {
      if (def)
        shared.liveOut.insert(v);
      return FailureOr<Value>(v);
    }
    return std::nullopt;
  }
  if (auto blocks = dyn_cast<quant::BlockReduceOp>(def))
    return resolveBlocks(blocks, offsets, sizes);
  auto reduce = dyn_cast<quant::ReduceOp>(def);
  if (!reduce)
    return std::nullopt;
  int64_t axis = reduce.getAxis(), others = 1;
  for (auto [d, size] : llvm::enumerate(sizes))
    if (int64_t(d) != axis)
      others *= size;
  DimClasses::Member member = classes->member(reduce.getSource(), axis);
  int64_t granule = 1, limit = std::max<int64_t>(1, rows * cols / others);
  if (member.cls >= 0) {
    const DimClasses::Class &info = (*classes)[member.cls];
    if (hasScratch(kernel) && !info.isColumn)
      limit = std::min(limit, std::max(rows, kHostRows));
    granule = std::max<int64_t>(1, info.granule / member.unit);
    if (fits(info) && reduce.getSource().getType().getDimSize(axis) <= limit)
      return std::nullopt;
  }
  limit = std::max(granule, powerOfTwoFloor(limit));
  int64_t along = reduce.getSource().getType().getDimSize(axis);
  if (along <= limit && llvm::isPowerOf2_64(along) &&
      reduce.getExtent() == along &&
      (reduce.getKind() != quant::ReduceKind::sum || limit <= kSumPiece))
    return std::nullopt;
  return reduceInPieces(*engine, reduce, offsets, sizes, limit, granule);
}

/// Part of a value that is there as a whole: through memory.
FailureOr<Value> BlockTiler::partOfWhole(Value v, TilingEngine::Offsets offsets,
                                         TilingEngine::Sizes sizes) {
  auto type = cast<RankedTensorType>(v.getType());
  Value &scratch = shared.scratches[v];
  if (!scratch) {
    scratch = makeScratch(kernel, v.getLoc(), type);
    OpBuilder b(v.getContext());
    b.setInsertionPointAfterValue(v);
    storeScratch(b, v.getLoc(), scratch, v);
  }
  OpBuilder &b = engine->builder();
  return loadScratch(b, v.getLoc(), scratch,
                     RankedTensorType::get(sizes, type.getElementType()),
                     offsets);
}

/// The largest magnitudes of blocks that are taller than a fragment, without
/// NaN: one pass over the rows of the block.
std::optional<FailureOr<Value>>
BlockTiler::resolveBlocks(quant::BlockReduceOp reduce,
                          TilingEngine::Offsets offsets,
                          TilingEngine::Sizes sizes) {
  ArrayRef<int64_t> block = reduce.getBlock();
  if (block.size() != 2 || block[0] <= rows || block[1] != 1 || sizes[0] != 1 ||
      block[0] % rows || reduce.getKind() != quant::ReduceKind::amax ||
      reduce.getAmaxBits())
    return std::nullopt;
  Location loc = reduce.getLoc();
  OpBuilder &b = engine->builder();
  auto type = RankedTensorType::get({rows, sizes[1]}, b.getF32Type());
  Value zero = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getF32FloatAttr(0)));
  OpFoldResult first = quant::scaleOffset(b, loc, offsets[0], block[0], 1);
  FailureOr<TilingEngine::Values> best = engine->forLoop(
      loc, b.getIndexAttr(0), b.getIndexAttr(block[0]), rows, zero,
      [&](OpFoldResult at,
          ValueRange carried) -> FailureOr<TilingEngine::Values> {
        OpFoldResult row = quant::addOffsets(engine->builder(), loc, first, at);
        FailureOr<Value> x = engine->materialize(
            reduce.getSource(), {row, offsets[1]}, {rows, sizes[1]});
        if (failed(x))
          return failure();
        OpBuilder &b = engine->builder();
        Value magnitude = math::AbsFOp::create(b, loc, *x);
        // False for NaN, which therefore changes nothing.
        Value larger = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                             magnitude, carried.front());
        return TilingEngine::Values{arith::SelectOp::create(
            b, loc, larger, magnitude, carried.front())};
      });
  if (failed(best))
    return FailureOr<Value>(failure());
  if (rows == 1)
    return FailureOr<Value>(best->front());
  return FailureOr<Value>(
      quant::BlockReduceOp::create(
          engine->builder(), loc,
          RankedTensorType::get({1, sizes[1]}, b.getF32Type()),
          reduce.getKind(), best->front(), ArrayRef<int64_t>{rows, 1})
          .getResult());
}

LogicalResult BlockTiler::emitSink(const OrderedSink &sink,
                                   ArrayRef<std::pair<int, OpFoldResult>> at,
                                   ArrayRef<std::pair<int, int64_t>> extents) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> sizes;
  OpBuilder &b = engine->builder();
  for (int64_t d = 0; d < type.getRank(); ++d) {
    DimClasses::Member m = classes->member(sink.tile, d);
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(type.getDimSize(d));
    for (auto [position, extent] : llvm::zip(at, extents))
      if (position.first == m.cls && m.cls >= 0) {
        offsets.back() = quant::scaleOffset(b, sink.op->getLoc(),
                                            position.second, 1, m.unit);
        sizes.back() = extent.second / m.unit;
      }
  }
  return engine->tileSink(sink.op, offsets, sizes);
}

LogicalResult BlockTiler::overSegments(
    Location loc, ArrayRef<Segment> parts,
    llvm::function_ref<LogicalResult(OpFoldResult, int64_t)> body) {
  for (const Segment &part : parts) {
    OpBuilder &b = engine->builder();
    FailureOr<TilingEngine::Values> done = engine->forLoop(
        loc, b.getIndexAttr(part.start),
        b.getIndexAttr(part.start + part.count * part.size), part.size, {},
        [&](OpFoldResult at, ValueRange) -> FailureOr<TilingEngine::Values> {
          if (failed(body(at, part.size)))
            return failure();
          return TilingEngine::Values{};
        });
    if (failed(done))
      return failure();
  }
  return success();
}

/// A sink whose dimensions belong to one class, such as a square and its
/// transpose: each of them has a loop, and parts are squares. What a part is
/// computed from lies elsewhere in the tile, in parts as large.
LogicalResult BlockTiler::emitSquares(const OrderedSink &sink) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  int64_t side = int64_t(1) << (llvm::Log2_64(rows * cols) / 2);
  Location loc = sink.op->getLoc();
  SmallVector<SmallVector<Segment>> parts;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    DimClasses::Member m = classes->member(sink.tile, d);
    int64_t granule = std::max<int64_t>(1, (*classes)[m.cls].granule / m.unit);
    int64_t step = std::max(granule, side / granule * granule);
    FailureOr<SmallVector<Segment>> along =
        segments(type.getDimSize(d), std::min(step, type.getDimSize(d)),
                 granule, /*open=*/false);
    if (failed(along))
      return failure();
    parts.push_back(*along);
  }
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> sizes;
  std::function<LogicalResult()> emit = [&]() -> LogicalResult {
    if (offsets.size() == parts.size())
      return engine->tileSink(sink.op, offsets, sizes);
    return overSegments(loc, parts[offsets.size()],
                        [&](OpFoldResult at, int64_t size) {
                          offsets.push_back(at);
                          sizes.push_back(size);
                          LogicalResult result = emit();
                          offsets.pop_back();
                          sizes.pop_back();
                          return result;
                        });
  };
  return emit();
}

/// The blocks of a class that are shorter than `height` and taller than a
/// fragment, tallest first: what belongs to one is computed once for it.
SmallVector<int64_t> BlockTiler::blocksWithin(int cls, int64_t height) {
  llvm::SetVector<int64_t> units;
  for (Value v : classes->values())
    for (int64_t d = 0; d < cast<RankedTensorType>(v.getType()).getRank(); ++d)
      if (DimClasses::Member m = classes->member(v, d); m.cls == cls)
        units.insert(m.unit);
  SmallVector<int64_t> sorted = units.takeVector();
  llvm::sort(sorted, std::greater<>());
  SmallVector<int64_t> blocks;
  for (int64_t unit : sorted)
    if (unit > rows && unit % rows == 0 && unit < height &&
        (blocks.empty() ? height : blocks.back()) % unit == 0)
      blocks.push_back(unit);
  return blocks;
}

/// One nest of loops for sinks with the same classes. A class of -1 stands for
/// a dimension that the sinks do not have.
LogicalResult BlockTiler::emitNest(ArrayRef<OrderedSink> group, int rowClass,
                                   int colClass) {
  FailureOr<SmallVector<Segment>> rowParts = segments(rowClass),
                                  colParts = segments(colClass);
  if (failed(rowParts) || failed(colParts))
    return failure();
  Location loc = group.front().op->getLoc();
  auto rowUnit = [&](const OrderedSink &sink, int cls) -> int64_t {
    auto type = cast<RankedTensorType>(sink.tile.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (classes->member(sink.tile, d).cls == cls)
        return classes->member(sink.tile, d).unit;
    return 0;
  };
  auto uses = [&](const OrderedSink &sink, int cls) {
    auto type = cast<RankedTensorType>(sink.tile.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (classes->member(sink.tile, d).cls == cls)
        return true;
    return false;
  };
  // Blocks taller than a fragment: what has a row for each block is stored once
  // for the block, what has all rows in parts of it.
  auto emit = [&](ArrayRef<OrderedSink> sinks, OpFoldResult row, int64_t height,
                  ArrayRef<std::pair<int, OpFoldResult>> at,
                  ArrayRef<std::pair<int, int64_t>> extents) -> LogicalResult {
    auto place = [&](const OrderedSink &sink, OpFoldResult row,
                     int64_t height) {
      SmallVector<std::pair<int, OpFoldResult>> where{{rowClass, row}};
      SmallVector<std::pair<int, int64_t>> size{{rowClass, height}};
      llvm::append_range(where, at);
      llvm::append_range(size, extents);
      return emitSink(sink, where, size);
    };
    std::function<LogicalResult(ArrayRef<OrderedSink>, OpFoldResult, int64_t,
                                ArrayRef<int64_t>)>
        parts = [&](ArrayRef<OrderedSink> sinks, OpFoldResult row,
                    int64_t height, ArrayRef<int64_t> steps) -> LogicalResult {
      SmallVector<OrderedSink> inner;
      for (const OrderedSink &sink : sinks) {
        int64_t unit = rowUnit(sink, rowClass);
        if (!steps.empty() && unit && steps.front() % unit == 0)
          inner.push_back(sink);
        else if (failed(place(sink, row, height)))
          return failure();
      }
      if (inner.empty())
        return success();
      int64_t step = steps.front();
      return overSegments(
          loc, {{0, height / step, step}}, [&](OpFoldResult offset, int64_t) {
            OpFoldResult at =
                quant::addOffsets(engine->builder(), loc, row, offset);
            return parts(inner, at, step, steps.drop_front());
          });
    };
    SmallVector<int64_t> steps;
    if (rowClass >= 0 && height == (*classes)[rowClass].granule &&
        height > rows && height % rows == 0 &&
        rows % (*classes)[rowClass].atom == 0) {
      steps = blocksWithin(rowClass, height);
      steps.push_back(rows);
    }
    return parts(sinks, row, height, steps);
  };
  return overSegments(loc, *rowParts, [&](OpFoldResult row, int64_t height) {
    SmallVector<OrderedSink> rowSinks, tileSinks;
    for (const OrderedSink &sink : group)
      (colClass >= 0 && !uses(sink, colClass) ? rowSinks : tileSinks)
          .push_back(sink);
    if (failed(emit(rowSinks, row, height, {}, {})))
      return failure();
    return overSegments(loc, *colParts, [&](OpFoldResult col, int64_t width) {
      return emit(tileSinks, row, height, {{colClass, col}},
                  {{colClass, width}});
    });
  });
}

/// Whether all that the block computes is whole parts of this size, one after
/// the other, and nothing in it has to be kept meanwhile.
bool BlockTiler::divides(Extents part) {
  if (!roots.empty() || llvm::any_of(block, [](Operation &op) {
        return op.getNumRegions() != 0;
      }))
    return false;
  for (const OrderedSink &sink : sinks)
    for (const OrderedSink &other : sinks)
      if (meet(sink.accesses.front(),
               ArrayRef(other.accesses).drop_front(&sink == &other)))
        return false;
  for (size_t i = 0; i < classes->size(); ++i) {
    const DimClasses::Class &info = (*classes)[i];
    int64_t want = info.isColumn ? part.cols : part.rows;
    int64_t step = std::max(info.granule, want / info.granule * info.granule);
    // Sums take blocks of up to kSumPiece elements.
    if (info.extent > step &&
        (info.rigid || info.extent % step != 0 || info.granule > kSumPiece))
      return false;
  }
  return true;
}

LogicalResult BlockTiler::run() {
  for (bool again = true; again;) {
    sinks.clear();
    roots.clear();
    collect();
    if (sinks.empty() && roots.empty())
      return leaveAsIs();
    SmallVector<Value> tiles(roots.begin(), roots.end());
    for (OrderedSink &sink : sinks) {
      tiles.push_back(sink.tile);
      sink.accesses.push_back(*MemoryAccess::of(sink.op));
      for (quant::LoadOp load : loadsOf(sink.tile))
        sink.accesses.push_back(*MemoryAccess::of(load));
    }
    classes.emplace(tiles);
    if (edge && divides(*edge))
      std::tie(rows, cols) = std::pair(edge->rows, edge->cols);
    edge.reset();
    unsplit.clear();
    for (Value v : classes->values())
      if (isComplete(v) || shared.kept.contains(v))
        keepWhole(v);
    bool all = true;
    for (size_t i = 0; i < classes->size(); ++i)
      all &= fits((*classes)[i]);
    if (all)
      return leaveAsIs();
    FailureOr<bool> kept = keepOverwritten();
    if (failed(kept))
      return failure();
    again = *kept;
  }
  makeNests();

  for (Value root : roots) {
    auto type = cast<RankedTensorType>(root.getType());
    if (type.getNumElements() > rows * cols)
      return emitError(root.getLoc())
             << "a loop or a branch hands on " << describeTile(type)
             << ", expected at most " << rows * cols
             << " elements: use smaller tiles and more programs";
    TilingEngine here(
        root.getDefiningOp(),
        [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
          return resolve(v, o, s);
        });
    engine = &here;
    // A value that is no tile computation (the result of a loop) stays.
    if (isComplete(root))
      continue;
    FailureOr<Value> part = here.materialize(root);
    if (failed(part))
      return failure();
    root.replaceUsesWithIf(*part, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user->getBlock() != &block || user->getNumRegions() ||
             user->hasTrait<OpTrait::IsTerminator>();
    });
  }
  for (const Nest &nest : nests) {
    TilingEngine here(
        nest.sinks.back().op,
        [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
          return resolve(v, o, s);
        });
    engine = &here;
    if (failed(nest.squares ? emitSquares(nest.sinks.front())
                            : emitNest(nest.sinks, nest.row, nest.col)))
      return failure();
  }
  for (const OrderedSink &sink : sinks)
    sink.op->erase();
  return success();
}

namespace {
struct DitherTileToFragments
    : impl::DitherTileToFragmentsBase<DitherTileToFragments> {
  using Base::Base;

  /// Blocks inside out, so that an outer block sees which of its values the
  /// inner ones still need.
  LogicalResult tileBlocks(Operation *op, Extents fragment,
                           std::optional<Extents> edge, Shared &shared) {
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (Operation &inner : llvm::make_early_inc_range(block))
          if (failed(tileBlocks(&inner, fragment, edge, shared)))
            return failure();
        if (failed(BlockTiler(getOperation(), block, fragment,
                              isUnlikely(region) ? edge : std::nullopt, shared)
                       .run()))
          return failure();
      }
    return success();
  }

  /// Whether nearly all programs take another branch.
  static bool isUnlikely(Region &region) {
    auto branch = dyn_cast<scf::IfOp>(region.getParentOp());
    return branch && &region == &branch.getElseRegion() &&
           branch.getCondition().getDefiningOp<quant::LikelyOp>();
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("quant.kernel") || func.isExternal() ||
        func->hasAttr("quant.phases"))
      return;
    SmallVector<int64_t> extents(fragment.begin(), fragment.end());
    if (extents.empty())
      extents = configuredExtents(func, "fragment");
    if (extents.size() != 2 || extents[0] < 1 || extents[1] < 1) {
      func.emitOpError("has no fragment; expected quant.config with fragment = "
                       "array<i64: rows, columns> or the pass option");
      return signalPassFailure();
    }
    std::optional<Extents> edge;
    if (SmallVector<int64_t> small = configuredExtents(func, "edge");
        !small.empty())
      edge = {small[0], small[1]};
    Shared shared;
    if (failed(tileBlocks(func, {extents[0], extents[1]}, edge, shared)))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, func->getRegions());
  }
};
} // namespace

} // namespace dither::transforms
