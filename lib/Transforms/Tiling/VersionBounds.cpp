//===- VersionBounds.cpp - A copy of the body without masks ---------------===//
//
// Masked accesses cost compares and branches in every fragment, while only the
// programs at the edges need them. One test at the start of the program decides
// between the body as it is and a copy whose accesses are known to be inside.
// A kernel that is compiled for a launch with all tiles inside is that copy
// alone (WholeTiles.h).
// A loop over tiles up to an extent has one tile at most that is not inside,
// the last one, whatever programs share the loop: in the copy it is a loop of
// its own.
// Masks that a program makes itself, of as many rows or columns as its tensor
// has from there on, are all true in that copy.
//
// A row that ends inside of its tile, as its type says, is no reason for masks
// of all: nothing else is outside in the copy. Vectors of as many columns, such
// as the parameters of a norm, have their length at run time; in the copy it is
// that of the row.
//
//===----------------------------------------------------------------------===//

#include "Layouts/LayoutRules.h"
#include "Tiling/Divisions.h"
#include "Tiling/SplitLoops.h"
#include "Tiling/WholeTiles.h"
#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERVERSIONBOUNDS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// A load or store of a tile.
struct Access {
  Operation *op;
  Value memref;
  SmallVector<Value> indices;
  SmallVector<int64_t> shape;
};

/// An access to a matrix of a tensor as one to the tensor: one that is inside
/// of it is inside of the matrix, which has no elements where it is outside.
Access ofTensor(Access access) {
  auto view = access.memref.getDefiningOp<quant::ViewOp>();
  if (!view || !isa<BlockArgument>(view.getMemref()))
    return access;
  size_t rank = cast<MemRefType>(view.getMemref().getType()).getRank();
  Access whole{access.op, view.getMemref(), {}, SmallVector<int64_t>(rank, 1)};
  size_t own = 0, other = 0;
  size_t lead = access.indices.size() - access.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    if (!llvm::is_contained(view.getDims(), int64_t(d))) {
      whole.indices.push_back(view.getIndices()[other++]);
      continue;
    }
    if (own >= lead)
      whole.shape[d] = access.shape[own - lead];
    whole.indices.push_back(access.indices[own++]);
  }
  return whole;
}

template <typename Op> Access describe(Op op, Value tile) {
  return ofTensor({op, op.getMemref(), SmallVector<Value>(op.getIndices()),
                   SmallVector<int64_t>(
                       cast<RankedTensorType>(tile.getType()).getShape())});
}

std::optional<Access> asAccess(Operation *op) {
  if (auto load = dyn_cast<quant::LoadOp>(op))
    if (!load.getInBounds())
      return describe(load, load.getResult());
  if (auto store = dyn_cast<quant::StoreOp>(op))
    if (!store.getInBounds())
      return describe(store, store.getTile());
  return std::nullopt;
}

void setInBounds(Operation *op) {
  if (auto load = dyn_cast<quant::LoadOp>(op))
    load.setInBounds(true);
  if (auto store = dyn_cast<quant::StoreOp>(op))
    store.setInBounds(true);
}

/// The operations at the top of `entry` that `v` is computed by, if all of them
/// are free of side effects and do not read memory.
bool collectSlice(Value v, Block &entry, llvm::SetVector<Operation *> &slice) {
  Operation *def = v.getDefiningOp();
  if (!def)
    return v.getParentBlock() == &entry;
  // Nobody writes what a number is read from.
  if (def->getBlock() != &entry || def->getNumRegions() ||
      !(isPure(def) || isa<quant::LoadScalarOp>(def)))
    return false;
  if (slice.contains(def))
    return true;
  for (Value operand : def->getOperands())
    if (!collectSlice(operand, entry, slice))
      return false;
  slice.insert(def);
  return true;
}

/// Whether `v` is a program's number, among all or in a group of them, whose
/// first one lies in memory; or a sum of such.
bool isProgram(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def)
    return false;
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
           arith::IndexCastOp>(def))
    return isa<quant::ProgramIdOp, quant::LoadScalarOp>(def);
  auto isConstant = [](Value operand) {
    return getConstantIntValue(operand).has_value();
  };
  return llvm::any_of(def->getOperands(), isProgram) &&
         llvm::all_of(def->getOperands(), [&](Value operand) {
           return isConstant(operand) || isProgram(operand);
         });
}

/// What few programs store, for many that would store past the end: a number
/// that all have in common, or one for each column. Its masks cost next to
/// nothing where it is so many times smaller than what the program works on.
constexpr int64_t kFewInMany = 64;

bool isOfFewPrograms(const Access &access, int64_t largest) {
  int64_t elements = llvm::product_of(access.shape);
  if (!isa<quant::StoreOp>(access.op) || elements > largest / kFewInMany ||
      access.shape.empty())
    return false;
  if (elements == 1) // A program alone numbers rows, too.
    return llvm::any_of(access.indices, [](Value index) {
      return isProgram(index) && index.getDefiningOp<arith::AddIOp>();
    });
  return access.shape.back() == 1 && isProgram(access.indices.back());
}

/// The largest kernel of a CPU that is worth two copies, in instructions. Those
/// of the operators have a few hundred; code generation takes a second for
/// several thousand.
constexpr int64_t kMostInstructions = 1500;

/// About how many instructions `op` becomes for each register of its tiles.
int64_t instructions(Operation *op) {
  if (auto function = dyn_cast<quant::ElementaryOpInterface>(op))
    return numerics::stepsOf(function.getFunction());
  if (isa<quant::EncodeOp, quant::ScaleEncodeOp, quant::DecodeOp>(op))
    return 12;
  return op->hasTrait<OpTrait::ConstantLike>() ? 0 : 1;
}

/// About how many instructions the body of a CPU kernel becomes: each tile is
/// worked on in fragments.
int64_t instructions(func::FuncOp kernel) {
  SmallVector<int64_t> extents = configuredExtents(kernel, "fragment");
  int64_t fragment = extents.empty() ? std::numeric_limits<int64_t>::max()
                                     : llvm::product_of(extents);
  int64_t lanes = cpuLanes(kernel), total = 0;
  kernel.walk([&](Operation *op) {
    if (op->getNumRegions())
      return;
    int64_t elements = 0;
    auto consider = [&](Value v) {
      if (auto type = dyn_cast<RankedTensorType>(v.getType()))
        elements =
            std::max(elements, std::min(fragment, type.getNumElements()));
    };
    llvm::for_each(op->getOperands(), consider);
    llvm::for_each(op->getResults(), consider);
    total += instructions(op) * llvm::divideCeil(elements, lanes);
  });
  return total;
}

/// `index` is the number of a program times `size`, a power of two: that
/// number; else null.
Value programOf(Value index, int64_t size) {
  auto product = index.getDefiningOp<arith::MulIOp>();
  if (!llvm::isPowerOf2_64(size))
    return {};
  if (!product)
    return size == 1 && index.getDefiningOp<quant::ProgramIdOp>() ? index
                                                                  : Value();
  for (auto [program, step] : {std::pair(product.getLhs(), product.getRhs()),
                               std::pair(product.getRhs(), product.getLhs())})
    if (program.getDefiningOp<quant::ProgramIdOp>() &&
        getConstantIntValue(step) == size)
      return program;
  return {};
}

/// Extents along which one program index numbers tiles of one size, by both.
using Numbered = llvm::MapVector<std::pair<Value, int64_t>, SmallVector<Value>>;

/// GPU: whether the tiles of a program are inside of all extents.
/// Programs are numbered in 32 bits, so that 32 bits of extents are enough to
/// compare with, and all of 64 take several times as many instructions. Larger
/// extents count as too small.
Value insideAll(OpBuilder &b, Location loc, const Numbered &numbered) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto constant = [&](Type type, int64_t v) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, v));
  };
  auto both = [&](Value a, Value other) -> Value {
    return a ? arith::AndIOp::create(b, loc, a, other).getResult() : other;
  };
  Value any, below;
  for (auto &[tile, extents] : numbered) {
    auto [program, size] = tile;
    Value least;
    for (Value extent : extents) {
      Value wide = arith::IndexCastOp::create(b, loc, i64, extent);
      Value narrow = arith::TruncIOp::create(b, loc, i32, wide);
      any = any ? arith::OrIOp::create(b, loc, any, wide).getResult() : wide;
      least = least ? arith::MinUIOp::create(b, loc, least, narrow).getResult()
                    : narrow;
    }
    Value count = arith::ShRUIOp::create(b, loc, least,
                                         constant(i32, llvm::Log2_64(size)));
    below = both(below,
                 arith::CmpIOp::create(
                     b, loc, arith::CmpIPredicate::ult,
                     arith::IndexCastOp::create(b, loc, i32, program), count));
  }
  Value high = arith::TruncIOp::create(
      b, loc, i32, arith::ShRUIOp::create(b, loc, any, constant(i64, 32)));
  return both(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, high,
                                    constant(i32, 0)),
              below);
}

/// How many elements an index leaves room for, at least, by memref and
/// dimension.
using Room = llvm::MapVector<std::tuple<Value, Value, int64_t>, int64_t>;

/// Whether `v` is the extent of a dimension of `memref`.
bool isExtent(Value v, Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return getConstantIntValue(v) == type.getDimSize(dim);
  auto op = v.getDefiningOp<memref::DimOp>();
  return op && op.getSource() == memref && op.getConstantIndex() == dim;
}

/// min(extent - index, c), where the index leaves room for c: c.
std::optional<int64_t> knownRest(arith::MinSIOp rest, const Room &room,
                                 const IRMapping &map) {
  std::optional<int64_t> most = getConstantIntValue(rest.getRhs());
  auto left = rest.getLhs().getDefiningOp<arith::SubIOp>();
  if (!most || !left)
    return std::nullopt;
  for (auto &[key, size] : room) {
    auto &[index, memref, dim] = key;
    if (size >= *most && map.lookupOrDefault(index) == left.getRhs() &&
        isExtent(left.getLhs(), memref, dim))
      return most;
  }
  return std::nullopt;
}

/// The comparisons of coordinates with `count`, spread over a tile of no more
/// elements along them.
void collectMasks(Value count, int64_t least,
                  SmallVectorImpl<arith::CmpIOp> &masks) {
  for (Operation *user : count.getUsers()) {
    if (isa<arith::IndexCastOp, quant::BroadcastOp>(user))
      collectMasks(user->getResult(0), least, masks);
    auto compare = dyn_cast<arith::CmpIOp>(user);
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
        compare.getRhs() != count)
      continue;
    auto iota = compare.getLhs().getDefiningOp<quant::IotaOp>();
    if (iota && iota.getType().getDimSize(iota.getDim()) <= least)
      masks.push_back(compare);
  }
}

/// Takes out masks that are true wherever the copy runs.
void dropMasks(Block &copy, const Room &room, const IRMapping &map) {
  SmallVector<arith::CmpIOp> masks;
  copy.walk([&](arith::MinSIOp rest) {
    if (std::optional<int64_t> count = knownRest(rest, room, map))
      collectMasks(rest, *count, masks);
  });
  while (!masks.empty()) {
    arith::CmpIOp mask = masks.pop_back_val();
    for (Operation *user :
         llvm::SetVector<Operation *>(mask->user_begin(), mask->user_end())) {
      Value kept;
      if (auto select = dyn_cast<arith::SelectOp>(user);
          select && select.getCondition() == mask)
        kept = select.getTrueValue();
      else if (auto both = dyn_cast<arith::AndIOp>(user))
        kept = both.getLhs() == mask ? both.getRhs() : both.getLhs();
      if (!kept)
        continue;
      // A mask and itself is that mask, which has more users then.
      if (kept == mask)
        masks.push_back(mask);
      user->getResult(0).replaceAllUsesWith(kept);
      user->erase();
    }
  }
}

/// Rows that end inside of the tile of a GPU's program, which is not cut into
/// parts.
class RowEnds {
public:
  explicit RowEnds(func::FuncOp func) {
    SmallVector<int64_t> fragment = configuredExtents(func, "fragment");
    if (isForCpu(func) || fragment.size() != 2)
      return;
    widest = fragment[1];
    func.walk([&](Operation *op) {
      std::optional<Access> access = asAccess(op);
      if (!access || access->indices.empty())
        return;
      size_t d = access->indices.size() - 1;
      if (!isEnd(*access, d))
        return;
      int64_t end = cast<MemRefType>(access->memref.getType()).getDimSize(d);
      auto [it, isFirst] = endOf.try_emplace(access->shape.back(), end);
      // Of two lengths vectors could have either.
      if (!isFirst && it->second != end)
        it->second = 0;
    });
  }

  /// Whether what is past the end of dimension `d`, which is static, is past
  /// the end of a row.
  bool isEnd(const Access &access, size_t d) const {
    auto type = cast<MemRefType>(access.memref.getType());
    return isPlain(access, d) && !type.isDynamicDim(d) &&
           type.getDimSize(d) > 0 && type.getDimSize(d) < access.shape.back();
  }

  /// The length that a vector of as many columns as the tile of such a row has,
  /// if it is one of the row.
  std::optional<int64_t> ofVector(const Access &access, size_t d) const {
    auto type = cast<MemRefType>(access.memref.getType());
    if (!isa<quant::LoadOp>(access.op) || type.getRank() != 1 ||
        !isPlain(access, d) || !type.isDynamicDim(d) ||
        !isa<BlockArgument>(access.memref))
      return std::nullopt;
    int64_t end = endOf.lookup(access.shape.back());
    return end ? std::optional(end) : std::nullopt;
  }

private:
  /// Whether dimension `d` is that of columns, from the first one on, and they
  /// are in order.
  bool isPlain(const Access &access, size_t d) const {
    auto store = dyn_cast<quant::StoreOp>(access.op);
    bool isInOrder =
        !store || (store.getValid().empty() &&
                   store.getScaleLayout() == quant::ScaleLayout::linear);
    return isInOrder && d + 1 == access.indices.size() &&
           !access.shape.empty() && access.shape.back() <= widest &&
           getConstantIntValue(access.indices[d]) == 0 &&
           !quant::isSliced(access.memref);
  }

  int64_t widest = 0;
  llvm::SmallDenseMap<int64_t, int64_t> endOf;
};

/// index + size must not exceed dimension `dim`.
struct Check {
  Value index;
  int64_t dim, size;
};

/// Up to where a loop counts tiles: to an extent, which must be a multiple of
/// `size`. The tiles of an access are as many in every `part` elements of it.
struct Counted {
  Extent to;
  int64_t size, part;
  scf::ForOp loop;
  /// Elements of the extent that the loop counts as one: `size` where it counts
  /// tiles, and not their first elements.
  int64_t unit = 1;

  bool needsMultiple() const { return size > 1; }
  /// Whether `own`, the extent that the tiles are of, may be too small for all.
  bool needsReach(const Extent &own) const { return part > 1 || !(to == own); }
};

/// What an access needs to be inside of its tensor.
struct Demand {
  Access access;
  SmallVector<Check> checks;
  SmallVector<Value> maybeNegative;
  /// The length that a vector must have.
  std::optional<int64_t> length;
  /// What loops count to, and the dimensions of `access` that they are about.
  SmallVector<std::pair<int64_t, Counted>> counted;

  bool isNothing() const {
    return checks.empty() && maybeNegative.empty() && !length &&
           counted.empty();
  }
};

/// The extent of a kernel's own tensor, or the number that it is given, that
/// `limit` is no more than.
std::optional<Extent> extentOf(Value limit) {
  if (auto least = limit.getDefiningOp<arith::MinSIOp>()) {
    std::optional<Extent> extent = extentOf(least.getLhs());
    return extent ? extent : extentOf(least.getRhs());
  }
  if (auto cast = limit.getDefiningOp<arith::IndexCastOp>();
      cast && cast.getIn().getType().isInteger(64) &&
      isKernelArgument(cast.getIn()))
    return Extent{cast.getIn(), Extent::kNumber};
  auto dim = limit.getDefiningOp<memref::DimOp>();
  if (!dim || !dim.getConstantIndex() || !isKernelArgument(dim.getSource()))
    return std::nullopt;
  return Extent{dim.getSource(), *dim.getConstantIndex()};
}

/// The extent that a quotient, rounded up or down, is of, and its divisor, a
/// power of two.
std::optional<std::pair<Extent, int64_t>> dividedExtent(Value quotient) {
  Operation *op = quotient.getDefiningOp();
  if (!op || !isa<arith::DivUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return std::nullopt;
  std::optional<int64_t> size = getConstantIntValue(op->getOperand(1));
  if (!size || *size < 1 || !llvm::isPowerOf2_64(*size))
    return std::nullopt;
  Value dividend = op->getOperand(0);
  // What is given may be negative.
  if (!isa<arith::CeilDivSIOp>(op) && !quant::isNonNegative(dividend))
    return std::nullopt;
  if (auto sum = dividend.getDefiningOp<arith::AddIOp>();
      sum && isa<arith::DivUIOp>(op))
    if (std::optional<int64_t> more = getConstantIntValue(sum.getRhs());
        more && *more >= 0 && *more < *size)
      dividend = sum.getLhs();
  std::optional<Extent> extent = extentOf(dividend);
  return extent ? std::optional(std::pair(*extent, *size)) : std::nullopt;
}

/// The loop that counts with `counter`, from 0 or above, where `index` is a
/// multiple of `size`, a power of two; null for others.
scf::ForOp countsTiles(Value counter, Value index, int64_t size) {
  scf::ForOp loop = quant::countingLoop(counter);
  bool counts = loop && llvm::isPowerOf2_64(size) &&
                quant::isNonNegative(loop.getLowerBound()) &&
                quant::divisorOf(index) % size == 0;
  return counts ? loop : scf::ForOp();
}

/// What a loop counts with `index` to, tiles of `size` elements, one after the
/// other or with others left out.
std::optional<Counted> countedBy(Value index, int64_t size) {
  if (auto quotient = index.getDefiningOp<arith::DivUIOp>()) {
    std::optional<int64_t> part = getConstantIntValue(quotient.getRhs());
    if (!part || *part < 1 || *part > quant::kMostExtent / size)
      return std::nullopt;
    std::optional<Counted> whole = countedBy(quotient.getLhs(), size * *part);
    if (whole)
      whole->part *= *part;
    return whole;
  }
  // The number of a tile, or its first element.
  auto product = index.getDefiningOp<arith::MulIOp>();
  bool isNumber = product && getConstantIntValue(product.getRhs()) == size;
  scf::ForOp loop =
      countsTiles(isNumber ? product.getLhs() : index, index, size);
  if (!loop)
    return std::nullopt;
  Value upper = loop.getUpperBound();
  if (!isNumber) {
    std::optional<Extent> to = extentOf(upper);
    return to ? std::optional(Counted{*to, size, 1, loop}) : std::nullopt;
  }
  auto tiles = dividedExtent(upper);
  if (!tiles || tiles->second % size != 0)
    return std::nullopt;
  auto [to, whole] = *tiles;
  return Counted{to, whole, whole / size, loop, /*unit=*/whole};
}

/// Whether a loop counts `index` to a number of the source, or to the end of a
/// dimension, so that none of the tiles of `size` is past it.
bool isCountedInside(Value index, Value memref, int64_t dim, int64_t size) {
  scf::ForOp loop = countsTiles(index, index, size);
  if (!loop)
    return false;
  auto type = cast<MemRefType>(memref.getType());
  if (type.isDynamicDim(dim))
    return size == 1 && isExtent(loop.getUpperBound(), memref, dim);
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  return upper && *upper >= 0 && *upper <= type.getDimSize(dim) &&
         int64_t(llvm::alignTo(*upper, size)) <= type.getDimSize(dim);
}

/// Nothing for what always reaches outside.
std::optional<Demand> demandOf(Access access, const RowEnds &ends) {
  auto type = cast<MemRefType>(access.memref.getType());
  int64_t lead = type.getRank() - int64_t(access.shape.size());
  Demand demand;
  for (auto [d, index] : llvm::enumerate(access.indices)) {
    int64_t size = int64_t(d) < lead ? 1 : access.shape[d - lead];
    std::optional<int64_t> at = getConstantIntValue(index);
    if (at && !type.isDynamicDim(d)) {
      bool isPast = *at > type.getDimSize(d) - size;
      if (*at < 0 || (isPast && !ends.isEnd(access, d)))
        return std::nullopt;
      continue;
    }
    if (std::optional<int64_t> end = ends.ofVector(access, d)) {
      demand.length = *end;
      continue;
    }
    // In each iteration of a loop.
    if (std::optional<int64_t> last = lastOf(index);
        last && !type.isDynamicDim(d) && *last <= type.getDimSize(d) - size)
      continue;
    if (isCountedInside(index, access.memref, d, size))
      continue;
    if (std::optional<Counted> counted = countedBy(index, size)) {
      demand.counted.push_back({int64_t(d), *counted});
      continue;
    }
    if (!quant::isNonNegative(index))
      demand.maybeNegative.push_back(index);
    demand.checks.push_back({index, int64_t(d), size});
  }
  demand.access = std::move(access);
  return demand;
}

/// A loop over tiles of tensors, in dimensions of theirs.
struct Counting {
  SmallVector<std::pair<Extent, Counted>> dims;
  llvm::SetVector<Operation *> ops;
};

/// Accesses that are inside together, and what they need for it.
struct Insiders {
  llvm::SetVector<Operation *> ops;
  Room room;
  llvm::SetVector<Value> signs;
  /// Vectors, and the lengths that they must have.
  llvm::SmallSetVector<std::pair<Value, int64_t>, 4> lengths;
  /// Extents, and what they must be multiples of.
  llvm::SetVector<std::tuple<Value, int64_t, int64_t>> multiples;
  /// Loops that are split where the first tile is not inside.
  llvm::MapVector<scf::ForOp, Counting> loops;
  /// Extents, and others that they must not be less than a part of.
  llvm::SetVector<std::tuple<Value, int64_t, Value, int64_t, int64_t>> longer;

  void add(const Demand &demand) {
    const Access &access = demand.access;
    ops.insert(access.op);
    signs.insert_range(demand.maybeNegative);
    if (demand.length)
      lengths.insert({access.memref, *demand.length});
    for (const Check &check : demand.checks) {
      int64_t &most = room[{check.index, access.memref, check.dim}];
      most = std::max(most, check.size);
    }
    for (auto &[dim, counted] : demand.counted) {
      Counting &counting = loops[counted.loop];
      counting.dims.push_back({Extent{access.memref, dim}, counted});
      counting.ops.insert(access.op);
    }
  }

  /// Whether they are inside in every launch, but for the last tiles of loops.
  bool needsNothing() const {
    return room.empty() && signs.empty() && lengths.empty() &&
           multiples.empty() && longer.empty();
  }

  /// Leaves loops that have no others of these in them: code would grow with
  /// the product. The others are to have no tile that is not inside.
  void chooseLoops() {
    auto isInnermost = [&](scf::ForOp loop) {
      return llvm::none_of(loops, [&](auto &other) {
        return loop != other.first && loop->isAncestor(other.first);
      });
    };
    SmallVector<scf::ForOp> others;
    for (auto &[loop, counting] : loops)
      if (!isa<IndexType>(scf::ForOp(loop).getInductionVar().getType()) ||
          !isInnermost(loop))
        others.push_back(loop);
    for (scf::ForOp loop : others) {
      for (auto &[own, counted] : loops[loop].dims) {
        auto [of, to] = counted.to;
        if (counted.needsMultiple())
          multiples.insert({of, to, counted.size});
        if (counted.needsReach(own))
          longer.insert({own.of, own.dim, of, to, counted.part});
      }
      loops.erase(loop);
    }
  }
};

/// What keeps an access inside in all programs of a launch; nothing where its
/// grid and the extents do not tell, or no launch does.
std::optional<SmallVector<runtime::TileBound>> boundsOf(const Demand &demand) {
  Value memref = demand.access.memref;
  SmallVector<runtime::TileBound> bounds;
  auto add = [&](std::optional<runtime::TileBound> bound) {
    if (!bound)
      return false;
    if (bound->kind == runtime::TileBound::Kind::Enough && bound->slot < 0 &&
        bound->extent < bound->end)
      return false;
    bounds.push_back(*bound);
    return true;
  };
  if (!demand.maybeNegative.empty() ||
      (demand.length && !add(lengthBound(memref, *demand.length))))
    return std::nullopt;
  for (const Check &check : demand.checks)
    if (!add(boundOf(check.index, memref, check.dim, check.size)))
      return std::nullopt;
  for (auto &[dim, counted] : demand.counted) {
    Extent own{memref, dim};
    if (counted.needsMultiple() &&
        !add(multipleBound(counted.to, counted.size)))
      return std::nullopt;
    if (counted.needsReach(own) &&
        !add(reachBound(own, counted.to, counted.part)))
      return std::nullopt;
  }
  return bounds;
}

/// Takes for granted that `access`, a copy of one of `insiders`, is inside.
void assumeInside(Operation *access, const Insiders &insiders) {
  setInBounds(access);
  auto load = dyn_cast<quant::LoadOp>(access);
  for (auto [memref, length] : insiders.lengths) {
    if (!load || load.getMemref() != memref)
      continue;
    OpBuilder b(load);
    MemRefType known = MemRefType::Builder(cast<MemRefType>(memref.getType()))
                           .setShape({length});
    load.getMemrefMutable().assign(
        memref::CastOp::create(b, load.getLoc(), known, memref).getResult());
    break;
  }
}

/// The same of all of them in `body`, which has what `map` makes of them.
void assumeInside(Block &body, const Insiders &insiders, const IRMapping &map) {
  for (Operation *op : insiders.ops)
    assumeInside(map.lookupOrDefault(op), insiders);
  dropMasks(body, insiders.room, map);
}

Value extentOf(OpBuilder &b, Location loc, Extent extent) {
  auto [of, dim] = extent;
  if (dim == Extent::kNumber)
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), of);
  auto type = cast<MemRefType>(of.getType());
  Value at = arith::ConstantIndexOp::create(
      b, loc, type.isDynamicDim(dim) ? dim : type.getDimSize(dim));
  return type.isDynamicDim(dim)
             ? memref::DimOp::create(b, loc, of, at).getResult()
             : at;
}

/// Where the loop that comes next is to end, for its tiles to be inside, and
/// what divides what it counts, at least.
std::pair<Value, int64_t> endOf(OpBuilder &b, Location loc,
                                const Counting &counting) {
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value end;
  int64_t divisor = 1;
  for (auto &[own, counted] : counting.dims) {
    Value tiles = arith::ShRUIOp::create(
        b, loc, extentOf(b, loc, own),
        constant(llvm::Log2_64(counted.size / counted.part)));
    Value there = arith::MulIOp::create(b, loc, tiles,
                                        constant(counted.size / counted.unit));
    end = end ? arith::MinSIOp::create(b, loc, end, there).getResult() : there;
    divisor = std::max(divisor, counted.size / counted.unit);
  }
  return {end, divisor};
}

/// Makes the last tiles of loops, which may reach outside, loops of their own,
/// in what `map` makes of those of `insiders`.
void splitLoops(const Insiders &insiders, const IRMapping &map) {
  for (auto [whole, counting] : insiders.loops) {
    auto loop = cast<scf::ForOp>(map.lookupOrDefault(whole.getOperation()));
    SmallVector<Operation *> beside;
    for (Operation *op : insiders.ops)
      if (whole->isAncestor(op) && !counting.ops.contains(op))
        beside.push_back(map.lookupOrDefault(op));
    OpBuilder b(loop);
    auto [end, divisor] = endOf(b, loop.getLoc(), counting);
    IRMapping rest;
    splitLoop(loop, end, divisor, rest);
    for (Operation *op : beside)
      assumeInside(rest.lookup(op), insiders);
  }
}

struct DitherVersionBounds
    : impl::DitherVersionBoundsBase<DitherVersionBounds> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("quant.kernel") || func.isExternal())
      return;
    Attribute launch = func->removeAttr("quant.launch");
    simplifyDivisions(func);
    if (func->hasAttr("quant.phases"))
      return;
    Block &entry = func.front();

    int64_t largest = 0;
    func.walk([&](Operation *op) {
      for (Value v : op->getResults())
        if (auto type = dyn_cast<RankedTensorType>(v.getType()))
          largest = std::max(largest, type.getNumElements());
    });
    RowEnds ends(func);
    llvm::DenseMap<Operation *, Demand> demands;
    // A launch that keeps an access inside does so wherever it is.
    Insiders whole;
    SmallVector<runtime::TileBound> bounds;
    func.walk([&](Operation *op) {
      std::optional<Access> access = asAccess(op);
      if (!access || isOfFewPrograms(*access, largest))
        return;
      std::optional<Demand> demand = demandOf(std::move(*access), ends);
      if (!demand)
        return;
      if (demand->isNothing())
        return setInBounds(op);
      if (auto own = boundsOf(*demand)) {
        whole.add(*demand);
        for (const runtime::TileBound &bound : *own)
          if (!llvm::is_contained(bounds, bound))
            bounds.push_back(bound);
      }
      demands.try_emplace(op, std::move(*demand));
    });
    Insiders versioned;
    llvm::SetVector<Operation *> slice;
    auto consider = [&](Operation *op) {
      auto demand = demands.find(op);
      if (demand == demands.end())
        return;
      const Access &access = demand->second.access;
      llvm::SetVector<Operation *> needed;
      for (Value index : access.indices) {
        // What a loop counts is inside, or checked.
        bool isChecked = llvm::is_contained(
            llvm::map_range(demand->second.checks,
                            [](const Check &check) { return check.index; }),
            index);
        if ((isChecked || getConstantIntValue(index)) &&
            !collectSlice(index, entry, needed))
          return;
      }
      if (!isa<BlockArgument>(access.memref) &&
          !(access.memref.getDefiningOp<ViewLikeOpInterface>() &&
            collectSlice(access.memref, entry, needed)))
        return;
      slice.insert_range(needed);
      versioned.add(demand->second);
    };
    // Inside loops, only offsets from outside can be checked; inside branches
    // nothing is certain to run.
    std::function<void(Block &)> visit = [&](Block &block) {
      for (Operation &op : block) {
        consider(&op);
        if (auto loop = dyn_cast<scf::ForOp>(op))
          visit(*loop.getBody());
      }
    };
    visit(entry);
    // Code for whole tiles has no mask that the copy would not have.
    if (!bounds.empty() && llvm::all_of(versioned.ops, [&](Operation *op) {
          return whole.ops.contains(op);
        })) {
      bool isWhole = holds(launch, bounds);
      setWholeTiles(func, bounds, isWhole);
      if (isWhole)
        return assumeInside(entry, whole, IRMapping());
    }
    if (versioned.ops.empty())
      return;
    if (isForCpu(func) && instructions(func) > kMostInstructions)
      return;
    versioned.chooseLoops();
    if (versioned.needsNothing()) {
      splitLoops(versioned, IRMapping());
      return assumeInside(entry, versioned, IRMapping());
    }

    OpBuilder b = OpBuilder::atBlockBegin(&entry);
    Location loc = func.getLoc();
    // The offsets first, in their own order, and memory that both copies use.
    for (Operation &op : llvm::make_early_inc_range(entry))
      if (slice.contains(&op) || isa<quant::ScratchOp>(op)) {
        op.moveBefore(&entry, b.getInsertionPoint());
        b.setInsertionPointAfter(&op);
      }
    auto constant = [&](int64_t v) -> Value {
      return arith::ConstantIndexOp::create(b, loc, v);
    };
    Value inside;
    auto all = [&](Value holds) {
      inside = inside ? arith::AndIOp::create(b, loc, inside, holds).getResult()
                      : holds;
    };
    auto require = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
      all(arith::CmpIOp::create(b, loc, predicate, lhs, rhs));
    };
    auto extent = [&](Value of, int64_t dim) {
      return extentOf(b, loc, {of, dim});
    };
    for (Value index : versioned.signs)
      require(arith::CmpIPredicate::sge, index, constant(0));
    for (auto [memref, length] : versioned.lengths)
      require(arith::CmpIPredicate::eq, extent(memref, 0), constant(length));
    for (auto [memref, dim, size] : versioned.multiples)
      require(arith::CmpIPredicate::eq,
              arith::AndIOp::create(b, loc, extent(memref, dim),
                                    constant(size - 1)),
              constant(0));
    for (auto [memref, dim, other, of, part] : versioned.longer) {
      Value least = extent(other, of);
      if (part > 1)
        least = arith::DivUIOp::create(
            b, loc, arith::AddIOp::create(b, loc, least, constant(part - 1)),
            constant(part));
      require(arith::CmpIPredicate::sge, extent(memref, dim), least);
    }
    Numbered numbered;
    for (auto &[key, size] : versioned.room) {
      auto &[index, memref, dim] = key;
      auto type = cast<MemRefType>(memref.getType());
      if (!type.isDynamicDim(dim)) {
        require(arith::CmpIPredicate::sle, index,
                constant(type.getDimSize(dim) - size));
        continue;
      }
      Value there = extent(memref, dim);
      const target::TargetInfo *target = target::saidTarget(func);
      bool gpu = target && target->isGpu;
      Value program = gpu ? programOf(index, size) : Value();
      if (program) {
        numbered[{program, size}].push_back(there);
        continue;
      }
      // index <= extent - size, which cannot overflow.
      require(arith::CmpIPredicate::sle, index,
              arith::SubIOp::create(b, loc, there, constant(size)));
    }
    if (!numbered.empty())
      all(insideAll(b, loc, numbered));
    inside = quant::LikelyOp::create(b, loc, b.getI1Type(), inside);
    auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/true);
    Operation *thenEnd = branch.thenBlock()->getTerminator();
    Operation *elseEnd = branch.elseBlock()->getTerminator();
    IRMapping map;
    b.setInsertionPoint(thenEnd);
    for (Operation &op : llvm::make_range(std::next(branch->getIterator()),
                                          entry.getTerminator()->getIterator()))
      b.clone(op, map);
    splitLoops(versioned, map);
    assumeInside(*branch.thenBlock(), versioned, map);
    while (branch->getNextNode() != entry.getTerminator())
      branch->getNextNode()->moveBefore(elseEnd);
  }
};

} // namespace

} // namespace dither::transforms
