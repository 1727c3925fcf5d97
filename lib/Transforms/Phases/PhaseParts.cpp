//===- PhaseParts.cpp - What a phase computes of a value ------------------===//

#include "Phases/Blocks.h"
#include "Phases/PhaseBuilder.h"
#include "Tiling/ReductionLoops.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include <tuple>

using namespace mlir;

namespace dither::transforms {

/// Bytes that are asked for ahead of what is read, at least, of all that is
/// loaded: memory sends about as many until it answers.
static constexpr int64_t kLeastAhead = 16384;
/// Bytes of a band that the second cache has room for beside the one before it.
static constexpr int64_t kMostAhead = 524288;
/// Elements that a sum or maximum along a row takes at once.
static constexpr int64_t kReducePiece = 256;

Value PhaseBuilder::loadScratch(unsigned cut, Offsets offsets, Sizes sizes) {
  SmallVector<Value> at =
      inScratch(plan.takesWholeRows(plan.cuts[cut].kind), offsets);
  auto type = RankedTensorType::get(
      sizes, getElementTypeOrSelf(plan.cuts[cut].value.getType()));
  Type kept = getElementTypeOrSelf(scratches[cut].getType());
  Value part = quant::LoadOp::create(builder(), loc, type.clone(kept),
                                     scratches[cut], at, /*in_bounds=*/true);
  return kept == type.getElementType()
             ? part
             : arith::ExtFOp::create(builder(), loc, type, part).getResult();
}

PhaseBuilder::Resolved PhaseBuilder::resolve(Value v, Offsets offsets,
                                             Sizes sizes) {
  int64_t cut = plan.cutOf(v);
  if (cut >= 0 && plan.cuts[cut].kind < kind())
    return FailureOr<Value>(loadScratch(cut, offsets, sizes));
  for (auto [i, total] : llvm::enumerate(plan.totals))
    if (total.result() == v)
      return totals->part(i, offsets[1], sizes);
  Operation *def = v.getDefiningOp();
  if (auto load = dyn_cast<quant::LoadOp>(def)) {
    auto type = RankedTensorType::get(
        sizes, cast<RankedTensorType>(v.getType()).getElementType());
    auto part = quant::LoadOp::create(
        builder(), load.getLoc(), type, load.getMemref(),
        indicesOf(load, offsets), load.getInBounds() || inside);
    if (inside && streams)
      fetchAhead(load, offsets, sizes);
    return FailureOr<Value>(part.getResult());
  }
  if (auto broadcast = dyn_cast<quant::BlockBroadcastOp>(def))
    return blockBroadcast(broadcast, offsets, sizes);
  if (auto reduce = dyn_cast<quant::BlockReduceOp>(def))
    if (reduce.getKind() == quant::ReduceKind::amax)
      return blockReduce(reduce, offsets, sizes);
  if (auto encode = dyn_cast<quant::EncodeOp>(def)) {
    if (isFast() && plan.products.contains(encode))
      return encodeFinite(encode, offsets, sizes);
  }
  if (auto reduce = dyn_cast<quant::ReduceOp>(def)) {
    int64_t along = reduce.getSource().getType().getDimSize(reduce.getAxis());
    if (along <= kReducePiece && llvm::isPowerOf2_64(along) &&
        reduce.getExtent() == along)
      return std::nullopt;
    return reduceInPieces(*engine, reduce, offsets, sizes, kReducePiece,
                          /*granule=*/1);
  }
  return std::nullopt;
}

/// Where the part of a tile that begins at `offsets` lies in memory.
SmallVector<Value> PhaseBuilder::indicesOf(quant::LoadOp load,
                                           Offsets offsets) {
  SmallVector<Value> at(load.getIndices());
  size_t lead = at.size() - offsets.size();
  for (auto [d, offset] : llvm::enumerate(offsets))
    at[lead + d] = getValueOrCreateConstantIndexOp(
        builder(), loc,
        quant::addOffsets(builder(), loc, at[lead + d], offset));
  return at;
}

/// What the phase fetches of what is read later, for a part of `load`.
void PhaseBuilder::fetchAhead(quant::LoadOp load, Offsets offsets,
                              Sizes sizes) {
  Value whole = load.getResult();
  auto [begin, end] = plan.fetchedBy(kind(), whole);
  if (begin == end)
    return;
  unsigned last = sizes.size() - 1;
  int64_t col = plan.colUnit(whole, last),
          row = last == 0 ? 0 : plan.rowUnit(whole, last - 1);
  if (!col || (plan.rows > 1 && !row))
    return;
  int64_t bits = quant::storageBits(getElementTypeOrSelf(whole.getType()));
  Index rows = index(0), cols;
  if (!PhasePlan::isOfRows(kind()) && plan.bandRows > 1) {
    if (col > 1 || (plan.readsWholeBands() &&
                    plan.bandRows * plan.cols * bits / 8 > kMostAhead))
      return;
    std::tie(rows, cols) = *next;
    rows =
        quant::scaleOffset(builder(), loc, rows, 1, std::max<int64_t>(row, 1));
  } else {
    // Whole rows or stretches: the rest of this one is there.
    int64_t each = std::max<int64_t>(
        1, (plan.readsWholeRows() ? plan.cols : plan.bandCols) / col);
    int64_t least = kLeastAhead / plan.loadedBytes();
    cols = index(llvm::alignTo(std::max<int64_t>(1, least / col), each));
  }
  // Some of each part of elements, also where this one has many of them.
  bool isAll = begin == 0 && end == 4;
  int64_t each =
      isAll ? sizes[last]
            : std::clamp<int64_t>(plan.elementCols() / col, 1, sizes[last]);
  int64_t skipped = each * begin / 4, extent = each * end / 4 - skipped;
  if (extent == 0)
    return;
  OpBuilder &b = builder();
  auto move = [&](Value &v, Index by) {
    v = getValueOrCreateConstantIndexOp(b, loc,
                                        quant::addOffsets(b, loc, v, by));
  };
  for (int64_t at = skipped; at < sizes[last]; at += each) {
    SmallVector<Index> from(offsets);
    SmallVector<int64_t> extents(sizes);
    from[last] = quant::addOffsets(b, loc, from[last], index(at));
    extents[last] = extent;
    SmallVector<Value> later = indicesOf(load, from);
    move(later.back(), cols);
    if (last > 0)
      move(*std::prev(later.end(), 2), rows);
    quant::PrefetchOp::create(b, loc, load.getMemref(), later, extents);
  }
}

/// A part may be smaller than a block: it then lies inside one.
FailureOr<Value> PhaseBuilder::blockBroadcast(quant::BlockBroadcastOp op,
                                              Offsets offsets, Sizes sizes) {
  SmallVector<Index> from;
  SmallVector<int64_t> shape, block;
  for (auto [d, extent] : llvm::enumerate(op.getBlock())) {
    from.push_back(quant::scaleOffset(builder(), loc, offsets[d], 1, extent));
    shape.push_back(std::max<int64_t>(1, sizes[d] / extent));
    block.push_back(sizes[d] / shape.back());
  }
  FailureOr<Value> source = engine->materialize(op.getSource(), from, shape);
  if (failed(source) || shape == sizes)
    return source;
  auto type = RankedTensorType::get(
      sizes, cast<RankedTensorType>(source->getType()).getElementType());
  return quant::BlockBroadcastOp::create(builder(), loc, type, *source, block)
      .getResult();
}

/// Whether what is special is found in this phase, or was before it: not where
/// a phase before them computes blocks for itself.
bool PhaseBuilder::isFast() const {
  return inside && plan.checkKind && kind() >= *plan.checkKind;
}

/// Fast parts take maxima of the bits of magnitudes, NaN above all: cheaper,
/// and what tells of infinities and NaN.
FailureOr<Value> PhaseBuilder::blockReduce(quant::BlockReduceOp op,
                                           Offsets offsets, Sizes sizes) {
  // Blocks along rows: a vector has columns alone.
  auto [source, block] = ReducedBlocks(op);
  if (int64_t piece = plan.pieceOf(op);
      piece >= 0 && inside && kind() == PhasePlan::ColBlocks)
    return joinPieces(op, piece, offsets, sizes);
  if (block.size() == 2 && sizes.front() == 1 &&
      (block[0] > PhasePlan::kPieceRows || (block[0] > 1 && block[1] > 1)))
    return tallBlockReduce(op, offsets, sizes);
  SmallVector<Index> from;
  SmallVector<int64_t> shape;
  for (auto [d, extent] : llvm::enumerate(block)) {
    from.push_back(quant::scaleOffset(builder(), loc, offsets[d], extent, 1));
    shape.push_back(sizes[d] * extent);
  }
  FailureOr<Value> x = engine->materialize(source, from, shape);
  if (failed(x))
    return failure();
  auto type = RankedTensorType::get(sizes, builder().getF32Type());
  return amaxOf(op, *x, type, block).getResult();
}

/// An amax of the pieces that the phase of blocks along rows has found.
Value PhaseBuilder::joinPieces(quant::BlockReduceOp op, unsigned piece,
                               Offsets offsets, Sizes sizes) {
  int64_t each = ReducedBlocks(op).block.front() / PhasePlan::kPieceRows;
  SmallVector<Index> from(offsets);
  from[0] = quant::scaleOffset(builder(), loc, from[0], each, 1);
  auto type = RankedTensorType::get(sizes, builder().getF32Type());
  Value found = quant::LoadOp::create(
      builder(), loc, type.clone({sizes[0] * each, sizes[1]}), pieces[piece],
      inScratch(/*ofWholeRows=*/false, from), /*in_bounds=*/true);
  return amaxOf(op, found, type, {each, 1}).getResult();
}

/// What `op` gives for a part of its source. Where infinities and NaN are asked
/// for, a fast part takes the amax of bits.
quant::BlockReduceOp PhaseBuilder::amaxOf(quant::BlockReduceOp op, Value part,
                                          Type type, ArrayRef<int64_t> block) {
  bool asks = isFast() && plan.isChecked(ReducedBlocks(op).source);
  return quant::BlockReduceOp::create(builder(), loc, type, op.getKind(), part,
                                      block, asks || op.getAmaxBits());
}

FailureOr<Value> PhaseBuilder::encodeFinite(quant::EncodeOp op, Offsets offsets,
                                            Sizes sizes) {
  auto product = op.getSource().getDefiningOp<arith::MulFOp>();
  FailureOr<Value> x = engine->materialize(product.getLhs(), offsets, sizes);
  FailureOr<Value> factor =
      engine->materialize(product.getRhs(), offsets, sizes);
  if (failed(x) || failed(factor))
    return failure();
  auto type = RankedTensorType::get(sizes, op.getType().getElementType());
  PhasePlan::Product found = plan.products.lookup(op);
  return quant::ScaleEncodeOp::create(builder(), loc, type, *x, *factor,
                                      /*finite=*/true, found.bounded,
                                      /*powers=*/bool(found.amax))
      .getResult();
}

/// The amax of a block of several rows, some of them at a time, or one where it
/// has columns, too. Maxima are not negative: they order like their bits.
FailureOr<Value> PhaseBuilder::tallBlockReduce(quant::BlockReduceOp op,
                                               Offsets offsets, Sizes sizes) {
  ReducedBlocks blocks(op);
  int64_t block = blocks.block.front(), width = blocks.block.back();
  int64_t height = width > 1 ? 1 : PhasePlan::kPieceRows;
  auto type = RankedTensorType::get(sizes, builder().getF32Type());
  auto bitsType = type.clone(builder().getI32Type());
  Index first = quant::scaleOffset(builder(), loc, offsets[0], block, 1);
  Index col = quant::scaleOffset(builder(), loc, offsets[1], width, 1);
  Value none = arith::ConstantOp::create(
      builder(), loc,
      DenseElementsAttr::get(bitsType, builder().getI32IntegerAttr(0)));
  FailureOr<TilingEngine::Values> best = engine->forLoop(
      loc, index(0), index(block), height, none,
      [&](Index at, ValueRange carried) -> FailureOr<TilingEngine::Values> {
        Index row = quant::addOffsets(builder(), loc, first, at);
        FailureOr<Value> x = engine->materialize(blocks.source, {row, col},
                                                 {height, sizes[1] * width});
        if (failed(x))
          return failure();
        OpBuilder &b = builder();
        Value rows = amaxOf(op, *x, type, {height, width});
        Value bits = arith::BitcastOp::create(b, loc, bitsType, rows);
        Value most = arith::MaxSIOp::create(b, loc, carried.front(), bits);
        return TilingEngine::Values{most};
      },
      /*barrier=*/true);
  if (failed(best))
    return failure();
  return arith::BitcastOp::create(builder(), loc, type, best->front())
      .getResult();
}

} // namespace dither::transforms
