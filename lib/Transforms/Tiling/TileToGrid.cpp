//===- TileToGrid.cpp - Tile programs from whole-tensor programs ----------===//
//
// The results of a function over whole tensors become memref arguments, and its
// body becomes the computation of one tile of each of them at a position given
// by the program ids. Arguments are loaded tile by tile.
//
//===----------------------------------------------------------------------===//

#include "Analysis/DimClasses.h"
#include "Tiling/TilingEngine.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERTILETOGRID
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// A result of the function. `swizzled` results are scales in the 128x4 order:
/// `tile` is what the swizzle reads.
struct Output {
  Value tile, memref;
  bool swizzled = false;
};

class GridTiler {
public:
  GridTiler(func::FuncOp func, int64_t tileRows, int64_t tileCols)
      : func(func), tile{tileRows, tileCols} {}
  LogicalResult run();

private:
  LogicalResult chooseTiles();
  std::optional<FailureOr<Value>> resolve(Value v, TilingEngine::Offsets,
                                          TilingEngine::Sizes);
  std::optional<FailureOr<Value>> paddedNorm(OpResult v, TilingEngine::Offsets,
                                             TilingEngine::Sizes);
  OpFoldResult extentOf(Value v, unsigned dim);

  func::FuncOp func;
  int64_t tile[2];
  SmallVector<Output> outputs;
  DenseMap<Value, Value> memrefOf;
  std::optional<DimClasses> classes;
  /// Per class: steps of a tile, and the steps that padding rounds up to.
  SmallVector<int64_t> extents, padding;
  int axisClass[2] = {-1, -1};
  TilingEngine *engine = nullptr;
};

} // namespace

/// Picks the class that each axis of the grid walks, and the extent of tiles.
LogicalResult GridTiler::chooseTiles() {
  SmallVector<Value> roots;
  for (const Output &out : outputs)
    roots.push_back(out.tile);
  classes.emplace(roots);
  extents.assign(classes->size(), 1);
  padding.assign(classes->size(), 1);
  for (const Output &out : outputs)
    if (out.swizzled)
      for (unsigned d = 0; d < 2; ++d) {
        DimClasses::Member m = classes->member(out.tile, d);
        padding[m.cls] = std::lcm(padding[m.cls], (d ? 4 : 128) * m.unit);
      }
  for (const Output &out : outputs) {
    auto type = cast<RankedTensorType>(out.tile.getType());
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int cls = classes->member(out.tile, d).cls;
      const DimClasses::Class &info = (*classes)[cls];
      if (info.extent == 1 && padding[cls] == 1)
        continue;
      int &axis = axisClass[info.isColumn];
      if (axis >= 0 && axis != cls)
        return func.emitOpError("has results that run along more than two "
                                "dimensions; expected rows and columns");
      axis = cls;
    }
  }
  for (int axis = 0; axis < 2; ++axis) {
    int cls = axisClass[axis];
    if (cls < 0)
      continue;
    const DimClasses::Class &info = (*classes)[cls];
    bool dynamic = ShapedType::isDynamic(info.extent);
    if (info.rigid)
      return func.emitOpError("uses one dimension as rows and as columns and "
                              "cannot be tiled");
    int64_t want = tile[axis];
    if (want == 0 && dynamic)
      return func.emitOpError("has a dynamic ")
             << (axis ? "column" : "row")
             << " dimension; expected a tile size for it";
    if (want % info.granule != 0)
      return func.emitOpError("tile size ")
             << want << " is not a multiple of the block of " << info.granule;
    // The tile that takes everything also takes the padding.
    if (want == 0 || (!dynamic && want >= info.extent))
      want = llvm::alignTo(info.extent, std::lcm(padding[cls], info.granule));
    extents[cls] = want;
  }
  return success();
}

/// A norm whose rows were padded, to whole columns of swizzled scales, stays
/// the norm of the elements that exist. Nothing for others.
std::optional<FailureOr<Value>>
GridTiler::paddedNorm(OpResult v, TilingEngine::Offsets offsets,
                      TilingEngine::Sizes sizes) {
  auto norm = dyn_cast<quant::NormOpInterface>(v.getOwner());
  if (!norm)
    return std::nullopt;
  Value tile = norm->getResult(0);
  int64_t columns = cast<RankedTensorType>(tile.getType()).getDimSize(1);
  DimClasses::Member m = classes->member(tile, 1);
  if (m.cls < 0 || extents[m.cls] / m.unit <= columns)
    return std::nullopt;
  int64_t width = extents[m.cls] / m.unit;
  if (v.getResultNumber() != 0) {
    // The statistics, and other tiles, come with the first one.
    FailureOr<Value> y = engine->materialize(tile, offsets, {sizes[0], width});
    if (failed(y))
      return FailureOr<Value>(failure());
    return FailureOr<Value>(y->getDefiningOp()->getResult(v.getResultNumber()));
  }
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(norm->getOperands())) {
    bool hasColumns = cast<RankedTensorType>(operand.getType()).getRank() == 1;
    FailureOr<Value> part =
        i < norm.getNumTileOperands()
            ? engine->materialize(operand, offsets, sizes)
        : hasColumns
            ? engine->materialize(operand, offsets[1], width)
            : engine->materialize(
                  operand, {offsets[0], engine->builder().getIndexAttr(0)},
                  {sizes[0], 1});
    if (failed(part))
      return FailureOr<Value>(failure());
    operands.push_back(*part);
  }
  SmallVector<Type> types;
  for (OpResult result : norm->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    bool isTile = result.getResultNumber() < norm.getNumTileResults();
    types.push_back(type.clone({sizes[0], isTile ? sizes[1] : 1}));
  }
  OpBuilder &b = engine->builder();
  auto padded = cast<quant::NormOpInterface>(
      mlir::clone(b, norm.getOperation(), types, operands));
  padded.setCountAttr(b.getI64IntegerAttr(norm.getCount().value_or(columns)));
  return FailureOr<Value>(padded->getResult(0));
}

/// Arguments are loaded; everything else goes through its TilingInterface.
std::optional<FailureOr<Value>>
GridTiler::resolve(Value v, TilingEngine::Offsets offsets,
                   TilingEngine::Sizes sizes) {
  if (auto result = dyn_cast<OpResult>(v))
    return paddedNorm(result, offsets, sizes);
  OpBuilder &b = engine->builder();
  auto type = cast<RankedTensorType>(v.getType());
  SmallVector<Value> indices;
  for (OpFoldResult offset : offsets)
    indices.push_back(getValueOrCreateConstantIndexOp(b, v.getLoc(), offset));
  return FailureOr<Value>(
      quant::LoadOp::create(b, v.getLoc(),
                            RankedTensorType::get(sizes, type.getElementType()),
                            memrefOf.lookup(v), indices, /*in_bounds=*/false)
          .getResult());
}

/// Size of a dimension of `v` from a memref that shares it.
OpFoldResult GridTiler::extentOf(Value v, unsigned dim) {
  OpBuilder &b = engine->builder();
  auto type = cast<RankedTensorType>(v.getType());
  if (!type.isDynamicDim(dim))
    return b.getIndexAttr(type.getDimSize(dim));
  DimClasses::Member want = classes->member(v, dim);
  for (BlockArgument arg : func.getArguments()) {
    auto argType = dyn_cast<RankedTensorType>(arg.getType());
    for (int64_t d = 0; argType && d < argType.getRank(); ++d) {
      DimClasses::Member have = classes->member(arg, d);
      if (have.cls != want.cls || !memrefOf.contains(arg))
        continue;
      Value index = arith::ConstantIndexOp::create(b, v.getLoc(), d);
      Value size =
          memref::DimOp::create(b, v.getLoc(), memrefOf.lookup(arg), index);
      return quant::scaleOffset(b, v.getLoc(), size, have.unit, want.unit);
    }
  }
  return {};
}

LogicalResult GridTiler::run() {
  Block &block = func.front();
  Location loc = func.getLoc();
  auto end = cast<func::ReturnOp>(block.getTerminator());
  MLIRContext *ctx = func.getContext();
  unsigned numInputs = block.getNumArguments();

  auto memrefType = [&](RankedTensorType t) {
    auto plain = MemRefType::get(t.getShape(), t.getElementType());
    // Rows of four-bit codes are padded to whole bytes.
    if (t.getRank() != 2 || t.getElementTypeBitWidth() != 4 ||
        t.isDynamicDim(1) || t.getDimSize(1) % 2 == 0)
      return plain;
    auto rows = StridedLayoutAttr::get(ctx, 0, {t.getDimSize(1) + 1, 1});
    return MemRefType::get(t.getShape(), t.getElementType(), rows);
  };
  SmallVector<DictionaryAttr> attrs;
  func.getAllArgAttrs(attrs);
  attrs.resize(numInputs, DictionaryAttr::get(ctx));
  SmallVector<BlockArgument> inputs(block.getArguments());
  auto hasRank = [&](const char *what, unsigned number, Type t) {
    auto type = dyn_cast<RankedTensorType>(t);
    if (type && type.getRank() <= 2)
      return success();
    InFlightDiagnostic diag = func.emitOpError(what) << " " << number;
    if (type)
      diag << " has rank " << type.getRank() << "; expected at most 2";
    else
      diag << " is a " << t << "; expected a ranked tensor";
    return LogicalResult(diag);
  };
  for (BlockArgument arg : inputs)
    if (isa<TensorType>(arg.getType()) &&
        failed(hasRank("argument", arg.getArgNumber(), arg.getType())))
      return failure();
  for (auto [i, value] : llvm::enumerate(end.getOperands())) {
    if (failed(hasRank("result", i, value.getType())))
      return failure();
    Output out;
    out.tile = value;
    if (auto swizzle = value.getDefiningOp<quant::SwizzleScalesOp>()) {
      out.swizzled = true;
      out.tile = swizzle.getSource();
    }
    outputs.push_back(out);
  }
  if (failed(chooseTiles()))
    return failure();

  // New arguments first, so that the old ones can be read while tiles are made.
  SmallVector<Type> types;
  for (BlockArgument arg : inputs) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    types.push_back(type ? Type(memrefType(type)) : arg.getType());
    BlockArgument fresh = block.addArgument(types.back(), arg.getLoc());
    memrefOf[arg] = fresh;
    if (!type)
      arg.replaceAllUsesWith(fresh);
  }
  for (auto [i, value] : llvm::enumerate(end.getOperands())) {
    types.push_back(memrefType(cast<RankedTensorType>(value.getType())));
    outputs[i].memref = block.addArgument(types.back(), value.getLoc());
    DictionaryAttr known = func.getResultAttrDict(i);
    attrs.push_back(known ? known : DictionaryAttr::get(ctx));
  }

  TilingEngine tiler(
      end, [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
        return resolve(v, o, s);
      });
  engine = &tiler;
  OpBuilder &b = tiler.builder();
  SmallVector<OpFoldResult> position(classes->size(), b.getIndexAttr(0));
  SmallVector<Attribute> grid;
  for (int axis = 0; axis < 2; ++axis) {
    int cls = axisClass[axis];
    if (cls < 0)
      continue;
    const DimClasses::Class &info = (*classes)[cls];
    if (!ShapedType::isDynamic(info.extent) &&
        extents[cls] >= int64_t(llvm::alignTo(info.extent, padding[cls])))
      continue;
    auto id = quant::ProgramIdOp::create(b, loc,
                                         axis ? quant::Dim::y : quant::Dim::x);
    position[cls] = quant::scaleOffset(b, loc, id.getResult(), extents[cls], 1);
  }
  // The grid follows the result that reaches furthest with its padding.
  for (int axis = 0; axis < 2; ++axis) {
    int64_t arg = -1, dim = 0, step = 1, reach = 0;
    for (auto [i, out] : llvm::enumerate(outputs))
      for (int64_t d = 0,
                   e = cast<RankedTensorType>(out.tile.getType()).getRank();
           d < e; ++d) {
        DimClasses::Member m = classes->member(out.tile, d);
        int64_t padded = (out.swizzled ? (d ? 4 : 128) : 1) * m.unit;
        if (m.cls != axisClass[axis] || m.cls < 0 || padded <= reach)
          continue;
        reach = padded;
        arg = numInputs + i;
        dim = d;
        step = extents[m.cls] / m.unit;
      }
    Builder attr(ctx);
    SmallVector<NamedAttribute> entry;
    if (arg >= 0) {
      entry.push_back(attr.getNamedAttr("arg", attr.getI64IntegerAttr(arg)));
      entry.push_back(attr.getNamedAttr("dim", attr.getI64IntegerAttr(dim)));
      entry.push_back(attr.getNamedAttr("step", attr.getI64IntegerAttr(step)));
    }
    grid.push_back(attr.getDictionaryAttr(entry));
  }

  for (const Output &out : outputs) {
    auto type = cast<RankedTensorType>(out.tile.getType());
    SmallVector<OpFoldResult> offsets;
    SmallVector<int64_t> sizes;
    SmallVector<Value> indices, valid;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      DimClasses::Member m = classes->member(out.tile, d);
      OpBuilder &b = tiler.builder();
      offsets.push_back(quant::scaleOffset(b, loc, position[m.cls], 1, m.unit));
      sizes.push_back(extents[m.cls] / m.unit);
      indices.push_back(
          getValueOrCreateConstantIndexOp(b, loc, offsets.back()));
      if (out.swizzled) {
        OpFoldResult extent = extentOf(out.tile, d);
        if (!extent)
          return func.emitOpError("cannot tell the extent of dimension ")
                 << d << " of swizzled scales";
        valid.push_back(getValueOrCreateConstantIndexOp(b, loc, extent));
      }
    }
    FailureOr<Value> part = tiler.materialize(out.tile, offsets, sizes);
    if (failed(part))
      return failure();
    quant::StoreOp::create(tiler.builder(), loc, *part, out.memref, indices,
                           valid,
                           out.swizzled ? quant::ScaleLayout::swizzle_128x4
                                        : quant::ScaleLayout::linear,
                           /*in_bounds=*/false, /*stream=*/false,
                           /*async=*/false, /*once=*/false,
                           /*total=*/IntegerAttr());
  }

  // The whole-tensor computation is dead now, consumers first.
  end->setOperands({});
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() &&
        op.getNumResults() && isPure(&op))
      op.erase();
  // Where one tile takes everything, the engine leaves what it cannot follow.
  for (BlockArgument arg : inputs)
    if (!arg.use_empty())
      return arg.user_begin()->emitOpError(
          "cannot be computed in tiles; expected an operation of the tile "
          "language on all paths to the results");
  block.eraseArguments(0, numInputs);
  func.setType(FunctionType::get(ctx, types, {}));
  func.setAllArgAttrs(attrs);
  func.removeResAttrsAttr();
  func->setAttr("quant.kernel", UnitAttr::get(ctx));
  func->setAttr("quant.grid", ArrayAttr::get(ctx, grid));
  return success();
}

namespace {
struct DitherTileToGrid : impl::DitherTileToGridBase<DitherTileToGrid> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    bool isWhole = llvm::any_of(
        func.getResultTypes(), [](Type t) { return isa<RankedTensorType>(t); });
    if (func.isExternal() || !isWhole || func->hasAttr("quant.kernel"))
      return;
    SmallVector<int64_t> sizes(tileSizes.begin(), tileSizes.end());
    if (sizes.empty())
      if (auto config = func->getAttrOfType<DictionaryAttr>("quant.config"))
        if (auto attr = config.getAs<DenseI64ArrayAttr>("tile"))
          sizes.assign(attr.asArrayRef().begin(), attr.asArrayRef().end());
    sizes.resize(2, 0);
    if (sizes[0] < 0 || sizes[1] < 0) {
      func.emitOpError("tile sizes ")
          << sizes[0] << ", " << sizes[1] << " are negative";
      return signalPassFailure();
    }
    if (failed(GridTiler(func, sizes[0], sizes[1]).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace dither::transforms
