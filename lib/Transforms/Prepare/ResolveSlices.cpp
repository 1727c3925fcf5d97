//===- ResolveSlices.cpp - Slices and concatenations of tiles -------------===//
//
// No later pass knows a slice of a tile, or tiles side by side. A slice moves
// up: the operation that makes the tile is made again for that part, at its own
// place, so that a load finds what it would have found. A concatenation moves
// down: each operation on it becomes one for each of the tiles, until the
// stores take them apart. What a loop carries or a branch yields is carried in
// parts.
//
// An amax along the axis is that of the parts. Sums along it, and blocks across
// a seam, need the elements side by side: a concatenation that one of them is
// made of becomes a tile at once. Each part is made as wide as all of them, and
// every element is chosen from the one that has it.
//
//===----------------------------------------------------------------------===//

#include "Analysis/Describe.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"
#include <map>

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERRESOLVESLICES
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;
using namespace dither;

namespace {

using Extents = SmallVector<int64_t>;

ArrayRef<int64_t> shapeOf(Value v) {
  return cast<RankedTensorType>(v.getType()).getShape();
}

/// The operation around a value that a loop carries or a branch yields, and
/// which of its results it is.
std::optional<std::pair<Operation *, unsigned>> carrierOf(Value v) {
  if (auto result = dyn_cast<OpResult>(v)) {
    if (isa<scf::ForOp, scf::IfOp>(result.getOwner()))
      return {{result.getOwner(), result.getResultNumber()}};
    return std::nullopt;
  }
  auto arg = cast<BlockArgument>(v);
  if (auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()))
    return {{loop, arg.getArgNumber() - loop.getNumInductionVars()}};
  return std::nullopt;
}

/// Parts that were computed, by the whole, offsets and sizes, for as long as
/// both are there.
class KnownParts : public RewriterBase::Listener {
public:
  Value lookup(Value whole, const Extents &offsets, const Extents &sizes) {
    auto found = parts.find({whole.getAsOpaquePointer(), offsets, sizes});
    return found == parts.end() ? Value() : found->second;
  }
  void insert(Value whole, const Extents &offsets, const Extents &sizes,
              Value part) {
    Part key{whole.getAsOpaquePointer(), offsets, sizes};
    parts[key] = part;
    of[whole.getDefiningOp()].push_back(key);
    of[part.getDefiningOp()].push_back(key);
  }
  void notifyOperationErased(Operation *op) override {
    auto found = of.find(op);
    if (found == of.end())
      return;
    for (const Part &key : found->second)
      parts.erase(key);
    of.erase(found);
  }

private:
  using Part = std::tuple<void *, Extents, Extents>;
  std::map<Part, Value> parts;
  llvm::DenseMap<Operation *, SmallVector<Part>> of;
};

class Resolver {
public:
  explicit Resolver(func::FuncOp func)
      : func(func), b(func.getContext(), &parts) {}

  LogicalResult run();

private:
  void eraseDead();
  LogicalResult resolve(tensor::ExtractSliceOp slice);
  LogicalResult computeAgain(tensor::ExtractSliceOp slice, OpResult whole,
                             const Extents &offsets, const Extents &sizes);
  LogicalResult partOfTransform(tensor::ExtractSliceOp slice,
                                quant::HadamardOp whole, Extents offsets,
                                Extents sizes);
  static OpOperand *firstUse(tensor::ConcatOp concat);
  LogicalResult resolve(tensor::ConcatOp concat, OpOperand &use);
  LogicalResult moveBelow(tensor::ConcatOp concat, OpOperand &use);
  void largestOfParts(quant::ReduceOp reduce, ArrayRef<int64_t> seams);
  LogicalResult chooseElements(tensor::ConcatOp concat, OpOperand &use);
  FailureOr<Value> chosen(tensor::ConcatOp concat, Value &missing);
  FailureOr<Value> widen(Value v, int64_t axis, int64_t before, int64_t total);
  void carryInParts(Operation *carrier, unsigned which, int64_t axis,
                    ArrayRef<int64_t> cuts);
  LogicalResult decompose(quant::DecomposableOpInterface op);

  Value slice(Location loc, Value source, ArrayRef<int64_t> offsets,
              ArrayRef<int64_t> sizes);
  SmallVector<Value> cut(Location loc, Value source, int64_t axis,
                         ArrayRef<int64_t> cuts);
  Value join(Location loc, int64_t axis, ValueRange parts);

  func::FuncOp func;
  KnownParts parts;
  IRRewriter b;
  SmallVector<tensor::ExtractSliceOp> slices;
};

bool isAmaxOfAll(quant::ReduceOp reduce) {
  return reduce.getKind() == quant::ReduceKind::amax && !reduce.getCount();
}

/// Where the tiles of a concatenation meet.
Extents seamsOf(tensor::ConcatOp concat) {
  Extents seams;
  int64_t at = 0;
  for (Value input : concat.getInputs().drop_back())
    seams.push_back(at += shapeOf(input)[concat.getDim()]);
  return seams;
}

} // namespace

Value Resolver::slice(Location loc, Value source, ArrayRef<int64_t> offsets,
                      ArrayRef<int64_t> sizes) {
  if (shapeOf(source) == sizes)
    return source;
  MLIRContext *ctx = b.getContext();
  auto op = tensor::ExtractSliceOp::create(
      b, loc, cast<RankedTensorType>(source.getType()).clone(sizes), source,
      getAsIndexOpFoldResult(ctx, offsets), getAsIndexOpFoldResult(ctx, sizes),
      SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(1)));
  slices.push_back(op);
  return op;
}

/// The parts of `source` between `cuts` along an axis.
SmallVector<Value> Resolver::cut(Location loc, Value source, int64_t axis,
                                 ArrayRef<int64_t> cuts) {
  SmallVector<Value> out;
  Extents offsets(shapeOf(source).size(), 0), sizes(shapeOf(source));
  Extents ends(cuts);
  ends.push_back(sizes[axis]);
  for (int64_t end : ends) {
    sizes[axis] = end - offsets[axis];
    out.push_back(slice(loc, source, offsets, sizes));
    offsets[axis] = end;
  }
  return out;
}

Value Resolver::join(Location loc, int64_t axis, ValueRange parts) {
  return parts.size() == 1
             ? parts.front()
             : Value(tensor::ConcatOp::create(b, loc, axis, parts));
}

LogicalResult Resolver::decompose(quant::DecomposableOpInterface op) {
  b.setInsertionPoint(op);
  FailureOr<SmallVector<Value>> values = op.decompose(b);
  if (failed(values))
    return failure();
  b.replaceOp(op, *values);
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

LogicalResult Resolver::resolve(tensor::ExtractSliceOp op) {
  Location loc = op.getLoc();
  Value source = op.getSource();
  Extents offsets(op.getStaticOffsets()), sizes(op.getStaticSizes());
  auto isConstant = [](int64_t v) { return !ShapedType::isDynamic(v); };
  if (!llvm::all_of(offsets, isConstant) || !llvm::all_of(sizes, isConstant) ||
      !op.hasUnitStride() || op.getType().getRank() != int64_t(sizes.size()))
    return op.emitOpError("is not of constant offsets and sizes, with strides "
                          "of 1 and the rank of its tile");
  b.setInsertionPoint(op);
  auto replace = [&](Value v) {
    b.replaceOp(op, v);
    return success();
  };
  if (shapeOf(source) == ArrayRef<int64_t>(sizes))
    return replace(source);
  if (auto outer = source.getDefiningOp<tensor::ExtractSliceOp>()) {
    for (auto [at, more] : llvm::zip(offsets, outer.getStaticOffsets()))
      at += more;
    return replace(slice(loc, outer.getSource(), offsets, sizes));
  }
  if (auto concat = source.getDefiningOp<tensor::ConcatOp>()) {
    int64_t axis = concat.getDim(), start = 0, from = offsets[axis],
            to = from + sizes[axis];
    SmallVector<Value> pieces;
    for (Value input : concat.getInputs()) {
      int64_t end = start + shapeOf(input)[axis];
      if (start < to && from < end) {
        offsets[axis] = std::max(from - start, int64_t(0));
        sizes[axis] = std::min(to, end) - start - offsets[axis];
        pieces.push_back(slice(loc, input, offsets, sizes));
      }
      start = end;
    }
    return replace(join(loc, axis, pieces));
  }
  if (auto carrier = carrierOf(source)) {
    for (auto [axis, extent] : llvm::enumerate(shapeOf(source))) {
      Extents cuts;
      for (int64_t at : {offsets[axis], offsets[axis] + sizes[axis]})
        if (at > 0 && at < extent)
          cuts.push_back(at);
      if (cuts.empty())
        continue;
      carryInParts(carrier->first, carrier->second, axis, cuts);
      slices.push_back(op);
      return success();
    }
  }
  if (auto result = dyn_cast<OpResult>(source))
    return computeAgain(op, result, offsets, sizes);
  return op.emitOpError("is of a tile that nothing computes");
}

/// A part that begins or ends inside a run. The last step of a transform is
/// between two of half the size, which have taken the steps before it.
LogicalResult Resolver::partOfTransform(tensor::ExtractSliceOp op,
                                        quant::HadamardOp whole,
                                        Extents offsets, Extents sizes) {
  Location loc = op.getLoc();
  int64_t axis = whole.getAxis(), run = whole.getSize(), half = run / 2;
  int64_t at = offsets[axis], end = at + sizes[axis];
  // Whole runs, or what lies in one half.
  int64_t cut = at % run == 0 && end / run * run > at ? end / run * run
                                                      : at / half * half + half;
  b.setInsertionPoint(op);
  if (cut < end) {
    sizes[axis] = cut - at;
    Value first = slice(loc, whole.getResult(), offsets, sizes);
    offsets[axis] = cut;
    sizes[axis] = end - cut;
    Value rest = slice(loc, whole.getResult(), offsets, sizes);
    b.replaceOp(op, join(loc, axis, {first, rest}));
    return success();
  }
  Extents extents(sizes);
  extents[axis] = half;
  auto transformed = [&](int64_t from) -> Value {
    offsets[axis] = from;
    Value part = slice(loc, whole.getSource(), offsets, extents);
    if (half == 1)
      return part;
    return quant::HadamardOp::create(b, loc, part, axis, half).getResult();
  };
  int64_t start = at / run * run;
  Value low = transformed(start), high = transformed(start + half);
  Value made = at < start + half
                   ? arith::AddFOp::create(b, loc, low, high).getResult()
                   : arith::SubFOp::create(b, loc, low, high).getResult();
  Extents from(offsets.size(), 0);
  from[axis] = at % half;
  b.replaceOp(op, slice(loc, made, from, sizes));
  return success();
}

/// The part of an operation's result, by the operation for this part alone.
LogicalResult Resolver::computeAgain(tensor::ExtractSliceOp op, OpResult whole,
                                     const Extents &offsets,
                                     const Extents &sizes) {
  if (Value known = parts.lookup(whole, offsets, sizes)) {
    b.replaceOp(op, known);
    return success();
  }
  Operation *def = whole.getOwner();
  std::optional<SmallVector<quant::DimRelation>> relations =
      quant::getDimRelations(def, whole.getResultNumber());
  bool inBlocks = relations.has_value();
  for (const quant::DimRelation &r :
       relations.value_or(SmallVector<quant::DimRelation>())) {
    int64_t at = offsets[r.resultDim], size = sizes[r.resultDim];
    int64_t unit = std::max(r.div, r.granule);
    if (at % unit == 0 && size % unit == 0)
      continue;
    if (!isa<quant::BlockBroadcastOp>(def)) {
      inBlocks = false;
      continue;
    }
    int64_t next = at / r.div * r.div + r.div,
            last = (at + size) / r.div * r.div;
    if (at + size <= next)
      continue; // of one block
    // The rest of a block, whole blocks, and the first elements of one.
    Extents cuts;
    for (int64_t cut : {at % r.div ? next - at : 0, last - at})
      if (cut > 0 && cut < size && (cuts.empty() || cuts.back() != cut))
        cuts.push_back(cut);
    SmallVector<Value> pieces;
    Extents from(offsets), extents(sizes);
    cuts.push_back(size);
    for (int64_t end : cuts) {
      extents[r.resultDim] = at + end - from[r.resultDim];
      pieces.push_back(slice(op.getLoc(), whole, from, extents));
      from[r.resultDim] = at + end;
    }
    b.replaceOp(op, join(op.getLoc(), r.resultDim, pieces));
    return success();
  }
  auto tiling = dyn_cast<TilingInterface>(def);
  if (inBlocks && tiling) {
    MLIRContext *ctx = b.getContext();
    b.setInsertionPoint(def);
    FailureOr<TilingResult> made = tiling.generateResultTileValue(
        b, whole.getResultNumber(), getAsIndexOpFoldResult(ctx, offsets),
        getAsIndexOpFoldResult(ctx, sizes));
    if (succeeded(made)) {
      for (Operation *operand : made->generatedSlices)
        slices.push_back(cast<tensor::ExtractSliceOp>(operand));
      Value part = made->tiledValues.front();
      parts.insert(whole, offsets, sizes, part);
      b.replaceOp(op, part);
      return success();
    }
  }
  if (auto aggregate = dyn_cast<quant::DecomposableOpInterface>(def)) {
    slices.push_back(op);
    return decompose(aggregate);
  }
  if (auto hadamard = dyn_cast<quant::HadamardOp>(def))
    return partOfTransform(op, hadamard, offsets, sizes);
  return emitError(op.getLoc())
         << "a part of "
         << transforms::describeTile(cast<RankedTensorType>(whole.getType()))
         << " cannot be computed by itself";
}

/// Makes a loop carry, or a branch yield, the parts of a tile between `cuts`.
void Resolver::carryInParts(Operation *carrier, unsigned which, int64_t axis,
                            ArrayRef<int64_t> cuts) {
  Location loc = carrier->getLoc();
  unsigned count = cuts.size() + 1;
  auto splice = [&](ValueRange values, ValueRange pieces) {
    SmallVector<Value> all(values.take_front(which));
    llvm::append_range(all, pieces);
    llvm::append_range(all, values.drop_front(which + 1));
    return all;
  };
  auto cutYield = [&](Block &block) {
    Operation *yield = block.getTerminator();
    b.setInsertionPoint(yield);
    yield->setOperands(splice(yield->getOperands(),
                              cut(loc, yield->getOperand(which), axis, cuts)));
  };
  // Values of the new operation in the place of those of the old one.
  auto gather = [&](ValueRange values) {
    SmallVector<Value> all(values.take_front(which));
    all.push_back(join(loc, axis, values.slice(which, count)));
    llvm::append_range(all, values.drop_front(which + count));
    return all;
  };
  if (auto loop = dyn_cast<scf::ForOp>(carrier)) {
    b.setInsertionPoint(loop);
    SmallVector<Value> inits = splice(
        loop.getInitArgs(), cut(loc, loop.getInitArgs()[which], axis, cuts));
    auto fresh =
        scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(),
                           loop.getStep(), inits);
    fresh->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    b.setInsertionPointToStart(fresh.getBody());
    SmallVector<Value> args{fresh.getInductionVar()};
    llvm::append_range(args, gather(fresh.getRegionIterArgs()));
    b.mergeBlocks(loop.getBody(), fresh.getBody(), args);
    cutYield(*fresh.getBody());
    b.setInsertionPointAfter(fresh);
    b.replaceOp(loop, gather(fresh.getResults()));
    return;
  }
  auto branch = cast<scf::IfOp>(carrier);
  for (Region &region : branch->getRegions())
    cutYield(region.front());
  b.setInsertionPoint(branch);
  auto fresh = scf::IfOp::create(b, loc, branch.thenYield().getOperandTypes(),
                                 branch.getCondition(),
                                 /*withElseRegion=*/true);
  fresh.getThenRegion().takeBody(branch.getThenRegion());
  fresh.getElseRegion().takeBody(branch.getElseRegion());
  b.setInsertionPointAfter(fresh);
  b.replaceOp(branch, gather(fresh.getResults()));
}

//===----------------------------------------------------------------------===//
// Concatenations
//===----------------------------------------------------------------------===//

/// The first use that a concatenation can move below: not that by one along the
/// other axis, which moves below its own users first.
OpOperand *Resolver::firstUse(tensor::ConcatOp concat) {
  for (OpOperand &use : concat->getUses()) {
    auto outer = dyn_cast<tensor::ConcatOp>(use.getOwner());
    if (!outer || outer->use_empty() || outer.getDim() == concat.getDim())
      return &use;
  }
  return nullptr;
}

/// The dimension of the result of `user` that the seams of an operand along
/// `axis` divide, and where they are there; nothing if they are inside of what
/// it takes together.
std::optional<std::pair<int64_t, Extents>> seamsBelow(Operation *user,
                                                      unsigned operand,
                                                      int64_t axis,
                                                      ArrayRef<int64_t> seams) {
  if (user->getNumResults() != 1 || !isa<TilingInterface>(user))
    return std::nullopt;
  std::optional<SmallVector<quant::DimRelation>> relations =
      quant::getDimRelations(user, 0);
  std::optional<std::pair<int64_t, Extents>> found;
  for (const quant::DimRelation &r :
       relations.value_or(SmallVector<quant::DimRelation>()))
    if (r.operand == operand && r.operandDim == axis &&
        llvm::all_of(seams, [&](int64_t at) {
          return at % std::max(r.mul, r.granule) == 0;
        }))
      found = {r.resultDim, llvm::map_to_vector(seams, [&](int64_t at) {
                 return at / r.mul * r.div;
               })};
  return found;
}

/// Whether something that is made of a tile takes elements on both sides of a
/// seam together, and not only the largest.
bool crossesSeams(Value tile, int64_t axis, ArrayRef<int64_t> seams) {
  SmallVector<std::tuple<Value, int64_t, Extents>> rest{
      {tile, axis, Extents(seams)}};
  llvm::SmallDenseSet<Value> seen{tile};
  while (!rest.empty()) {
    auto [v, dim, at] = rest.pop_back_val();
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      if (user->getNumResults() != 1 || isa<tensor::ExtractSliceOp>(user) ||
          isa<tensor::ConcatOp>(user) || user->getNumRegions())
        continue;
      if (auto below = seamsBelow(user, use.getOperandNumber(), dim, at)) {
        if (seen.insert(user->getResult(0)).second)
          rest.push_back({user->getResult(0), below->first, below->second});
        continue;
      }
      auto reduce = dyn_cast<quant::ReduceOp>(user);
      if (!(reduce && isAmaxOfAll(reduce)))
        return true;
    }
  }
  return false;
}

LogicalResult Resolver::resolve(tensor::ConcatOp concat, OpOperand &use) {
  // What has to be one tile in the end is so from here on: one in place of as
  // many as there are parts.
  if (crossesSeams(concat, concat.getDim(), seamsOf(concat))) {
    b.setInsertionPointAfter(concat);
    Value missing;
    if (FailureOr<Value> all = chosen(concat, missing); succeeded(all)) {
      b.replaceOp(concat, *all);
      return success();
    }
  }
  return moveBelow(concat, use);
}

/// Makes the user of a concatenation one for each of its tiles.
LogicalResult Resolver::moveBelow(tensor::ConcatOp concat, OpOperand &use) {
  Operation *user = use.getOwner();
  Location loc = user->getLoc();
  int64_t axis = concat.getDim();
  Extents seams = seamsOf(concat);
  if (isa<scf::ForOp>(user)) {
    auto loop = cast<scf::ForOp>(user);
    carryInParts(loop, loop.getTiedLoopResult(&use).getResultNumber(), axis,
                 seams);
    return success();
  }
  if (isa<scf::YieldOp>(user)) {
    carryInParts(user->getParentOp(), use.getOperandNumber(), axis, seams);
    return success();
  }
  auto tiling = dyn_cast<TilingInterface>(user);
  if (tiling && user->getNumResults() == 0) {
    b.setInsertionPoint(user);
    Extents sizes(shapeOf(user->getOperand(0))), offsets(sizes.size(), 0);
    seams.push_back(sizes[axis]);
    for (int64_t end : seams) {
      sizes[axis] = end - offsets[axis];
      FailureOr<TilingResult> part = tiling.getTiledImplementation(
          b, getAsIndexOpFoldResult(b.getContext(), offsets),
          getAsIndexOpFoldResult(b.getContext(), sizes));
      if (failed(part))
        return user->emitOpError("cannot take a part of its tile");
      for (Operation *operand : part->generatedSlices)
        slices.push_back(cast<tensor::ExtractSliceOp>(operand));
      offsets[axis] = end;
    }
    b.eraseOp(user);
    return success();
  }
  if (auto outer = dyn_cast<tensor::ConcatOp>(user)) {
    SmallVector<Value> inputs;
    for (Value input : outer.getInputs())
      if (input == concat.getResult())
        llvm::append_range(inputs, concat.getInputs());
      else
        inputs.push_back(input);
    b.setInsertionPoint(outer);
    b.replaceOp(outer, join(loc, axis, inputs));
    return success();
  }
  if (auto below = seamsBelow(user, use.getOperandNumber(), axis, seams)) {
    auto &[resultAxis, cuts] = *below;
    Value whole = user->getResult(0);
    b.setInsertionPointAfter(user);
    llvm::SmallPtrSet<Operation *, 4> slices;
    SmallVector<Value> pieces = cut(loc, whole, resultAxis, cuts);
    for (Value piece : pieces)
      slices.insert(piece.getDefiningOp());
    b.replaceAllUsesExcept(whole, join(loc, resultAxis, pieces), slices);
    return success();
  }
  if (auto aggregate = dyn_cast<quant::DecomposableOpInterface>(user))
    return decompose(aggregate);
  if (auto reduce = dyn_cast<quant::ReduceOp>(user);
      reduce && isAmaxOfAll(reduce)) {
    largestOfParts(reduce, seams);
    return success();
  }
  return chooseElements(concat, use);
}

/// The amax of parts, and the largest of these: it is no NaN, and has no order.
/// An amax of that along the other axis is one of each part, too, as of a tile
/// that is not in parts.
void Resolver::largestOfParts(quant::ReduceOp reduce, ArrayRef<int64_t> seams) {
  SmallVector<quant::ReduceOp> chain{reduce};
  while (chain.back()->hasOneUse()) {
    auto next = dyn_cast<quant::ReduceOp>(*chain.back()->user_begin());
    if (!next || !isAmaxOfAll(next))
      break;
    chain.push_back(next);
  }
  Location loc = reduce.getLoc();
  b.setInsertionPoint(chain.back());
  Value most;
  for (Value part : cut(loc, reduce.getSource(), reduce.getAxis(), seams)) {
    for (quant::ReduceOp op : chain) {
      IRMapping map;
      map.map(op.getSource(), part);
      part = b.clone(*op, map)->getResult(0);
    }
    most =
        most ? arith::MaxNumFOp::create(b, loc, most, part).getResult() : part;
  }
  b.replaceOp(chain.back(), most);
}

/// What a use reads of a concatenation as one tile.
LogicalResult Resolver::chooseElements(tensor::ConcatOp concat,
                                       OpOperand &use) {
  b.setInsertionPoint(use.getOwner());
  Value missing;
  FailureOr<Value> all = chosen(concat, missing);
  if (failed(all))
    return emitError(use.getOwner()->getLoc())
           << "this needs the elements of concatenated tiles "
              "side by side, and a loop or a branch hands on "
           << transforms::describeTile(
                  cast<RankedTensorType>(missing.getType()))
           << " of them: apply it to each tile, or "
              "concatenate along the other axis";
  use.set(*all);
  return success();
}

/// The tiles of a concatenation as one, element by element; `missing` is one
/// that cannot be made wider, and then this fails.
FailureOr<Value> Resolver::chosen(tensor::ConcatOp concat, Value &missing) {
  OpBuilder::InsertPoint here = b.saveInsertionPoint();
  Location loc = concat.getLoc();
  int64_t axis = concat.getDim();
  auto type = cast<RankedTensorType>(concat.getType());
  int64_t total = type.getDimSize(axis), before = 0;
  SmallVector<Value> wide;
  for (Value input : concat.getInputs()) {
    FailureOr<Value> made = widen(input, axis, before, total);
    if (failed(made)) {
      missing = input;
      return failure();
    }
    wide.push_back(*made);
    before += shapeOf(input)[axis];
  }
  b.restoreInsertionPoint(here);
  Value place = quant::IotaOp::create(b, loc, type.clone(b.getI32Type()),
                                      b.getI64IntegerAttr(axis));
  Extents seams = seamsOf(concat);
  Value all = wide.back();
  for (size_t i = seams.size(); i-- > 0;) {
    Value end = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(type.clone(b.getI32Type()),
                               b.getI32IntegerAttr(seams[i])));
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, end);
    all = arith::SelectOp::create(b, loc, inside, wide[i], all);
  }
  return all;
}

/// A tile of `total` elements along an axis with those of `v` after `before`
/// others, whatever these are.
FailureOr<Value> Resolver::widen(Value v, int64_t axis, int64_t before,
                                 int64_t total) {
  Operation *def = v.getDefiningOp();
  if (!def || carrierOf(v) || def->getNumResults() != 1)
    return failure();
  auto type = cast<RankedTensorType>(v.getType());
  Extents shape(type.getShape());
  if (shape[axis] == total)
    return v;
  Extents wideShape(shape);
  wideShape[axis] = total;
  auto wideType = type.clone(wideShape);
  Location loc = def->getLoc();
  if (auto constant = dyn_cast<arith::ConstantOp>(def)) {
    b.setInsertionPoint(def);
    auto value = cast<SplatElementsAttr>(constant.getValue());
    return Value(
        arith::ConstantOp::create(b, loc, value.resizeSplat(wideType)));
  }
  if (auto load = dyn_cast<quant::LoadOp>(def)) {
    b.setInsertionPoint(def);
    SmallVector<Value> indices(load.getIndices());
    Value &at = indices[indices.size() - shape.size() + axis];
    at = getValueOrCreateConstantIndexOp(
        b, loc, quant::addOffsets(b, loc, at, b.getIndexAttr(-before)));
    return quant::LoadOp::create(b, loc, wideType, load.getMemref(), indices,
                                 /*in_bounds=*/false)
        .getResult();
  }
  if (auto iota = dyn_cast<quant::IotaOp>(def)) {
    b.setInsertionPoint(def);
    Value ramp = quant::IotaOp::create(b, loc, wideType, iota.getDimAttr());
    if (int64_t(iota.getDim()) != axis || before == 0)
      return ramp;
    Value less = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(wideType, b.getI32IntegerAttr(-before)));
    return Value(arith::AddIOp::create(b, loc, ramp, less));
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(def)) {
    SmallVector<Value> inputs;
    for (Value input : concat.getInputs()) {
      FailureOr<Value> wide = widen(input, axis, before, total);
      if (failed(wide))
        return failure();
      inputs.push_back(*wide);
    }
    b.setInsertionPoint(def);
    return join(loc, concat.getDim(), inputs);
  }
  std::optional<SmallVector<quant::DimRelation>> relations =
      quant::getDimRelations(def, 0);
  if (!relations)
    return failure();
  SmallVector<Value> operands(def->getOperands());
  auto ofAxis = [&](const quant::DimRelation &r) {
    return int64_t(r.resultDim) == axis;
  };
  // Of one element that no operand has along the axis, as reshapes and sums
  // make it, all others are copies.
  if (shape[axis] == 1 && llvm::none_of(*relations, ofAxis)) {
    b.setInsertionPointAfter(def);
    return Value(quant::BroadcastOp::create(b, loc, wideType, v));
  }
  for (const quant::DimRelation &r : *relations) {
    if (!ofAxis(r))
      continue;
    int64_t unit = std::max(r.div, r.granule);
    if (before % unit || total % unit)
      return failure();
    FailureOr<Value> operand =
        widen(operands[r.operand], r.operandDim, before / r.div * r.mul,
              total / r.div * r.mul);
    if (failed(operand))
      return failure();
    operands[r.operand] = *operand;
  }
  b.setInsertionPoint(def);
  Operation *wide = clone(b, def, TypeRange{wideType}, operands);
  if (auto gather = dyn_cast<quant::GatherOp>(wide); gather && axis == 1) {
    b.setInsertionPoint(wide);
    gather.getColumnMutable().assign(getValueOrCreateConstantIndexOp(
        b, loc,
        quant::addOffsets(b, loc, gather.getColumn(),
                          b.getIndexAttr(-before))));
  }
  return wide->getResult(0);
}

/// What nothing uses any more would be taken apart, too, and what that makes.
void Resolver::eraseDead() {
  func.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op))
      b.eraseOp(op);
  });
}

LogicalResult Resolver::run() {
  func.walk([&](tensor::ExtractSliceOp op) { slices.push_back(op); });
  while (true) {
    while (!slices.empty()) {
      tensor::ExtractSliceOp next = slices.pop_back_val();
      if (failed(resolve(next)))
        return failure();
    }
    eraseDead();
    // In the order of the program: what is above is resolved.
    tensor::ConcatOp next;
    OpOperand *use = nullptr;
    func.walk([&](tensor::ConcatOp op) {
      use = firstUse(op);
      next = op;
      return use ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!use)
      return success();
    if (next.getInputs().size() == 1)
      b.replaceOp(next, next.getInputs().front());
    else if (failed(resolve(next, *use)))
      return failure();
  }
}

namespace {
struct ResolveSlices
    : public transforms::impl::DitherResolveSlicesBase<ResolveSlices> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    bool any = false;
    func.walk([&](Operation *op) {
      any |= isa<tensor::ExtractSliceOp, tensor::ConcatOp>(op);
    });
    if (!any)
      return;
    if (failed(Resolver(func).run()))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, func->getRegions());
    // What several tiles have in common was made for each.
    DominanceInfo dominance(func);
    eliminateCommonSubExpressions(rewriter, dominance, func);
  }
};
} // namespace
