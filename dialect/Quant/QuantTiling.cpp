//===- QuantTiling.cpp - TilingInterface of the tile language -------------===//
//
// One model serves every operation: tiling clones the operation onto slices of
// its operands, and the only thing that differs is which slice, given by
// getDimRelations. Loads, stores, index ramps and splats have a position or a
// shape of their own and are treated apart.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;

namespace dither::quant {

using Offsets = ArrayRef<OpFoldResult>;

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

OpFoldResult addOffsets(OpBuilder &b, Location loc, OpFoldResult a,
                        OpFoldResult c) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(c);
  if (x && y)
    return b.getIndexAttr(*x + *y);
  if (x && *x == 0)
    return c;
  if (y && *y == 0)
    return a;
  return arith::AddIOp::create(b, loc,
                               getValueOrCreateConstantIndexOp(b, loc, a),
                               getValueOrCreateConstantIndexOp(b, loc, c))
      .getResult();
}

OpFoldResult scaleOffset(OpBuilder &b, Location loc, OpFoldResult v,
                         int64_t mul, int64_t div) {
  if (std::optional<int64_t> x = getConstantIntValue(v))
    return b.getIndexAttr(*x * mul / div);
  Value result = cast<Value>(v);
  auto constant = [&](int64_t c) -> Value {
    return arith::ConstantIndexOp::create(b, loc, c);
  };
  if (mul != 1)
    result = arith::MulIOp::create(b, loc, result, constant(mul));
  if (div != 1)
    result = arith::DivUIOp::create(b, loc, result, constant(div));
  return result;
}

//===----------------------------------------------------------------------===//
// Relations between dimensions
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Value v) {
  return dyn_cast<RankedTensorType>(v.getType());
}

/// Every dimension of the operand follows the same dimension of the result.
static void relateIdentity(Operation *op, unsigned operand,
                           SmallVectorImpl<DimRelation> &out) {
  if (RankedTensorType type = tensorType(op->getOperand(operand)))
    for (unsigned d = 0; d < type.getRank(); ++d)
      out.push_back({operand, d, d});
}

/// The amax of each row of blocks, where it is not one of all.
static void relateAmax(Operation *op, unsigned operand,
                       SmallVectorImpl<DimRelation> &out) {
  if (op->getNumOperands() <= operand)
    return;
  RankedTensorType type = tensorType(op->getOperand(operand));
  for (unsigned d = 0; d < type.getRank(); ++d)
    if (type.getDimSize(d) != 1)
      out.push_back({operand, d, d});
}

/// Blocks of the operand become elements of the result (`grow` false), or the
/// other way round. Parts of a tile with whole blocks have all of them.
static void relateBlocks(Operation *op, unsigned operand,
                         ArrayRef<int64_t> block, bool grow,
                         SmallVectorImpl<DimRelation> &out) {
  for (auto [d, extent] : llvm::enumerate(block))
    if (!ShapedType::isDynamic(extent))
      out.push_back({operand, unsigned(d), unsigned(d), grow ? 1 : extent,
                     grow ? extent : 1});
}

std::optional<SmallVector<DimRelation>> getDimRelations(Operation *op,
                                                        unsigned resultNumber) {
  SmallVector<DimRelation> out;
  auto result =
      dyn_cast<RankedTensorType>(op->getResult(resultNumber).getType());
  if (!result)
    return std::nullopt;
  if (isa<LoadOp, IotaOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return out;
  if (isa<EncodeOp, ScaleEncodeOp, DecodeOp, E8M0InverseOp, ConvertLayoutOp,
          ClusterReduceOp>(op) ||
      op->hasTrait<OpTrait::Elementwise>()) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      relateIdentity(op, i, out);
    return out;
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    RankedTensorType type = tensorType(broadcast.getSource());
    if (type)
      for (unsigned d = 0; d < type.getRank(); ++d)
        if (type.getDimSize(d) == result.getDimSize(d))
          out.push_back({0, d, d});
    return out;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    RankedTensorType type = tensorType(reshape.getSource());
    SmallVector<unsigned> from, to;
    for (unsigned d = 0; d < type.getRank(); ++d)
      if (type.getDimSize(d) != 1)
        from.push_back(d);
    for (unsigned d = 0; d < result.getRank(); ++d)
      if (result.getDimSize(d) != 1)
        to.push_back(d);
    if (from.size() != to.size())
      return std::nullopt;
    for (auto [f, t] : llvm::zip(from, to))
      out.push_back({0, f, t});
    return out;
  }
  if (isa<TransposeOp>(op)) {
    out.push_back({0, 0, 1});
    out.push_back({0, 1, 0});
    return out;
  }
  if (isa<GatherOp>(op)) {
    out.push_back({1, 0, 0});
    return out;
  }
  if (auto hadamard = dyn_cast<HadamardOp>(op)) {
    relateIdentity(op, 0, out);
    out[hadamard.getAxis()].granule = hadamard.getSize();
    return out;
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    for (unsigned d = 0; d < result.getRank(); ++d)
      if (d != reduce.getAxis())
        out.push_back({0, d, d});
    return out;
  }
  if (auto reduce = dyn_cast<BlockReduceOp>(op)) {
    relateBlocks(op, 0, reduce.getBlock(), /*grow=*/false, out);
    return out;
  }
  if (auto broadcast = dyn_cast<BlockBroadcastOp>(op)) {
    relateBlocks(op, 0, broadcast.getBlock(), /*grow=*/true, out);
    return out;
  }
  if (auto scale = dyn_cast<BlockScaleOp>(op)) {
    relateBlocks(
        op, 0,
        scale.getFormat().getBlockExtents(scale.getAxis(), result.getRank()),
        /*grow=*/false, out);
    relateAmax(op, 1, out);
    return out;
  }
  if (auto scaled = dyn_cast<ScaledOpInterface>(op)) {
    relateIdentity(op, 0, out);
    relateBlocks(
        op, 1,
        scaled.getFormat().getBlockExtents(scaled.getAxis(), result.getRank()),
        /*grow=*/true, out);
    relateAmax(op, 2, out);
    return out;
  }
  if (isa<NormOpInterface>(op)) {
    // A part has all columns: its rows are normalized as a whole.
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (tensorType(operand).getRank() == 2)
        out.push_back({unsigned(i), 0, 0});
    return out;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Tiling
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<int64_t>> staticSizes(Offsets sizes) {
  SmallVector<int64_t> out;
  for (OpFoldResult size : sizes) {
    std::optional<int64_t> value = getConstantIntValue(size);
    if (!value)
      return failure();
    out.push_back(*value);
  }
  return out;
}

static tensor::ExtractSliceOp sliceOf(OpBuilder &b, Location loc, Value source,
                                      Offsets offsets,
                                      ArrayRef<int64_t> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(sizes, tensorType(source).getElementType()),
      source, offsets, getAsIndexOpFoldResult(b.getContext(), sizes), strides);
}

/// `indices` of the memref moved by the tile's offsets, which are those of the
/// trailing dimensions.
static SmallVector<Value> shiftIndices(OpBuilder &b, Location loc,
                                       ValueRange indices, Offsets offsets) {
  SmallVector<Value> out(indices);
  size_t first = out.size() - offsets.size();
  for (auto [d, offset] : llvm::enumerate(offsets))
    out[first + d] = getValueOrCreateConstantIndexOp(
        b, loc, addOffsets(b, loc, out[first + d], offset));
  return out;
}

/// A part that reaches past the end of the tile lost what the tile knew about
/// its bounds.
static bool staysInside(Offsets offsets, ArrayRef<int64_t> sizes,
                        ArrayRef<int64_t> shape) {
  for (auto [offset, size, extent] : llvm::zip(offsets, sizes, shape)) {
    std::optional<int64_t> at = getConstantIntValue(offset);
    if (size > extent || (at && *at + size > extent))
      return false;
  }
  return true;
}

static TilingResult single(Operation *op) {
  return {{op}, SmallVector<Value>(op->getResults()), {}};
}

static FailureOr<TilingResult> tileResult(Operation *op, OpBuilder &b,
                                          unsigned resultNumber,
                                          Offsets offsets, Offsets sizes) {
  FailureOr<SmallVector<int64_t>> extents = staticSizes(sizes);
  std::optional<SmallVector<DimRelation>> relations =
      getDimRelations(op, resultNumber);
  if (failed(extents) || !relations)
    return failure();
  Location loc = op->getLoc();
  auto resultType =
      cast<RankedTensorType>(op->getResult(resultNumber).getType());
  auto tileType = RankedTensorType::get(*extents, resultType.getElementType());

  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!value)
      return failure();
    return single(
        arith::ConstantOp::create(b, loc, value.resizeSplat(tileType)));
  }
  if (auto load = dyn_cast<LoadOp>(op)) {
    SmallVector<Value> indices =
        shiftIndices(b, loc, load.getIndices(), offsets);
    auto tiled =
        LoadOp::create(b, loc, tileType, load.getMemref(), indices,
                       isInside(load) && staysInside(offsets, *extents,
                                                     resultType.getShape()));
    return single(tiled);
  }
  if (auto iota = dyn_cast<IotaOp>(op)) {
    Value ramp = IotaOp::create(b, loc, tileType, iota.getDim());
    OpFoldResult offset = offsets[iota.getDim()];
    if (isZeroInteger(offset))
      return single(ramp.getDefiningOp());
    Value start = arith::IndexCastOp::create(
        b, loc, tileType.getElementType(),
        getValueOrCreateConstantIndexOp(b, loc, offset));
    Value base = BroadcastOp::create(b, loc, tileType, start);
    return single(arith::AddIOp::create(b, loc, base, ramp));
  }

  SmallVector<Value> operands(op->getOperands());
  SmallVector<Operation *> slices;
  // Dimensions of a part inside one block whose extents no block can have.
  SmallVector<unsigned> odd;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    RankedTensorType type = tensorType(operand);
    if (!type)
      continue;
    SmallVector<OpFoldResult> where(type.getRank(), b.getIndexAttr(0));
    SmallVector<int64_t> shape(type.getShape());
    for (const DimRelation &r : *relations) {
      if (r.operand != number)
        continue;
      int64_t size = (*extents)[r.resultDim];
      if (size % r.granule)
        return failure();
      // A part inside one block reads one element for the block.
      std::optional<int64_t> at = getConstantIntValue(offsets[r.resultDim]);
      bool divides = r.div % size == 0,
           inside = isa<BlockBroadcastOp>(op) &&
                    (divides || (at && *at % r.div + size <= r.div));
      if (inside && !divides)
        odd.push_back(r.resultDim);
      if (size % r.div != 0 && !inside)
        return failure();
      where[r.operandDim] =
          scaleOffset(b, loc, offsets[r.resultDim], r.mul, r.div);
      shape[r.operandDim] = inside ? 1 : size / r.div * r.mul;
    }
    if (ShapedType::isDynamicShape(shape))
      return failure();
    slices.push_back(sliceOf(b, loc, operand, where, shape));
    operand = slices.back()->getResult(0);
  }
  SmallVector<Type> types{tileType};
  if (isa<NormOpInterface>(op)) {
    if (extents->back() != resultType.getDimSize(1))
      return failure();
    types.clear();
    for (Value result : op->getResults()) {
      RankedTensorType type = tensorType(result);
      types.push_back(type.clone({extents->front(), type.getDimSize(1)}));
    }
  }
  if (auto broadcast = dyn_cast<BlockBroadcastOp>(op)) {
    SmallVector<int64_t> block, repeated(*extents);
    for (auto [extent, size] : llvm::zip(broadcast.getBlock(), *extents))
      block.push_back(std::min(extent, size));
    for (unsigned d : odd)
      block[d] = repeated[d] = 1;
    Value spread = BlockBroadcastOp::create(b, loc, tileType.clone(repeated),
                                            operands.front(), block);
    if (!odd.empty())
      spread = BroadcastOp::create(b, loc, tileType, spread);
    return TilingResult{{spread.getDefiningOp()}, {spread}, slices};
  }
  if (auto gather = dyn_cast<GatherOp>(op))
    operands[2] =
        shiftIndices(b, loc, gather.getColumn(), offsets.back()).front();
  Operation *tiled = clone(b, op, types, operands);
  return TilingResult{{tiled}, {tiled->getResult(resultNumber)}, slices};
}

/// A store or an atomic of part of its tile.
template <typename SinkOp>
static FailureOr<TilingResult> tileSink(SinkOp op, OpBuilder &b,
                                        Offsets offsets, Offsets sizes) {
  FailureOr<SmallVector<int64_t>> extents = staticSizes(sizes);
  if (failed(extents))
    return failure();
  Location loc = op.getLoc();
  auto slice = sliceOf(b, loc, op.getTile(), offsets, *extents);
  SmallVector<Value> indices = shiftIndices(b, loc, op.getIndices(), offsets);
  auto tiled = cast<SinkOp>(b.clone(*op.getOperation()));
  tiled.getTileMutable().assign(slice.getResult());
  tiled.getIndicesMutable().assign(indices);
  if constexpr (std::is_same_v<SinkOp, StoreOp>)
    if (!isInside(op) ||
        !staysInside(offsets, *extents, tensorType(op.getTile()).getShape()))
      tiled.setInBounds(false);
  return TilingResult{{tiled}, {}, {slice}};
}

static FailureOr<TilingResult> tileSink(ScatterOp op, OpBuilder &b,
                                        Offsets offsets, Offsets sizes) {
  FailureOr<SmallVector<int64_t>> extents = staticSizes(sizes);
  if (failed(extents))
    return failure();
  Location loc = op.getLoc();
  auto tile = sliceOf(b, loc, op.getTile(), offsets, *extents);
  auto rows =
      sliceOf(b, loc, op.getRows(), {offsets.front(), b.getIndexAttr(0)},
              {extents->front(), 1});
  Value column = shiftIndices(b, loc, op.getColumn(), offsets.back()).front();
  auto tiled = ScatterOp::create(b, loc, tile, op.getMemref(), rows, column);
  return TilingResult{{tiled}, {}, {tile, rows}};
}

namespace {

SmallVector<Range> wholeTile(OpBuilder &b, Location loc, Value tile) {
  SmallVector<Range> out;
  RankedTensorType type = tensorType(tile);
  for (int64_t d = 0; d < type.getRank(); ++d) {
    OpFoldResult size = b.getIndexAttr(type.getDimSize(d));
    if (type.isDynamicDim(d))
      size = tensor::DimOp::create(b, loc, tile, d).getResult();
    out.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  }
  return out;
}

/// The iteration domain of an operation is its first result.
template <typename OpTy>
struct ResultTiling : TilingInterface::ExternalModel<ResultTiling<OpTy>, OpTy> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return SmallVector<utils::IteratorType>(
        tensorType(op->getResult(0)).getRank(), utils::IteratorType::parallel);
  }
  SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &b) const {
    return wholeTile(b, op->getLoc(), op->getResult(0));
  }
  FailureOr<TilingResult> getTiledImplementation(Operation *op, OpBuilder &b,
                                                 Offsets offsets,
                                                 Offsets sizes) const {
    return tileResult(op, b, 0, offsets, sizes);
  }
  LogicalResult
  getResultTilePosition(Operation *op, OpBuilder &b, unsigned resultNumber,
                        Offsets offsets, Offsets sizes,
                        SmallVector<OpFoldResult> &resultOffsets,
                        SmallVector<OpFoldResult> &resultSizes) const {
    if (resultNumber != 0)
      return failure();
    resultOffsets.assign(offsets.begin(), offsets.end());
    resultSizes.assign(sizes.begin(), sizes.end());
    return success();
  }
  FailureOr<TilingResult> generateResultTileValue(Operation *op, OpBuilder &b,
                                                  unsigned resultNumber,
                                                  Offsets offsets,
                                                  Offsets sizes) const {
    return tileResult(op, b, resultNumber, offsets, sizes);
  }
};

/// The iteration domain of a store is the stored tile.
template <typename OpTy>
struct SinkTiling : TilingInterface::ExternalModel<SinkTiling<OpTy>, OpTy> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return SmallVector<utils::IteratorType>(
        tensorType(cast<OpTy>(op).getTile()).getRank(),
        utils::IteratorType::parallel);
  }
  SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &b) const {
    return wholeTile(b, op->getLoc(), cast<OpTy>(op).getTile());
  }
  FailureOr<TilingResult> getTiledImplementation(Operation *op, OpBuilder &b,
                                                 Offsets offsets,
                                                 Offsets sizes) const {
    return tileSink(cast<OpTy>(op), b, offsets, sizes);
  }
};

template <typename... Ops> void attachResults(MLIRContext *ctx) {
  (Ops::template attachInterface<ResultTiling<Ops>>(*ctx), ...);
}

} // namespace

void registerTilingInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *ctx, QuantDialect *) {
    attachResults<LoadOp, GatherOp, BroadcastOp, ReshapeOp, TransposeOp, IotaOp,
                  ReduceOp, BlockScaleOp, CastFp4Op, CastFp6Op, CastInt8Op,
                  CastFp8Op, ScaleOp, DequantizeOp, RmsNormOp, LayerNormOp,
                  RmsNormBackwardOp, LayerNormBackwardOp, EncodeOp,
                  ScaleEncodeOp, DecodeOp, E8M0InverseOp, BlockReduceOp,
                  BlockBroadcastOp, HadamardOp, ConvertLayoutOp, ExpOp, Exp2Op,
                  LogOp, Log2Op, TanhOp, SigmoidOp, ErfOp, SinOp, CosOp,
                  MulhiOp, FmaTowardZeroOp, StochasticRoundOp>(ctx);
    StoreOp::attachInterface<SinkTiling<StoreOp>>(*ctx);
    ScatterOp::attachInterface<SinkTiling<ScatterOp>>(*ctx);
    AtomicMaxOp::attachInterface<SinkTiling<AtomicMaxOp>>(*ctx);
    AtomicAddOp::attachInterface<SinkTiling<AtomicAddOp>>(*ctx);
  });
  registry.addExtension(+[](MLIRContext *ctx, arith::ArithDialect *) {
    ctx->loadDialect<tensor::TensorDialect>();
    attachResults<
        arith::ConstantOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
        arith::DivFOp, arith::RemFOp, arith::NegFOp, arith::MaximumFOp,
        arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp, arith::CmpFOp,
        arith::CmpIOp, arith::SelectOp, arith::AddIOp, arith::SubIOp,
        arith::MulIOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
        arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
        arith::CeilDivUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp,
        arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::MaxSIOp,
        arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp, arith::ExtFOp,
        arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
        arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
        arith::BitcastOp, arith::IndexCastOp>(ctx);
  });
  registry.addExtension(+[](MLIRContext *ctx, math::MathDialect *) {
    attachResults<math::AbsFOp, math::SqrtOp, math::RsqrtOp, math::Exp2Op,
                  math::LogOp, math::Log2Op, math::ErfOp, math::FmaOp,
                  math::FloorOp, math::CeilOp, math::RoundEvenOp,
                  math::CopySignOp, math::SinOp, math::CosOp, math::AbsIOp,
                  math::PowFOp, math::Log1pOp, math::ExpM1Op>(ctx);
  });
}

} // namespace dither::quant
