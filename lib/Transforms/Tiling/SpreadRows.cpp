//===- SpreadRows.cpp - Rows that a cluster of GPU blocks holds -----------===//
//
// A row that has a sum or a maximum is read for it, and for what is made with
// it. Shared memory holds it meanwhile (Fragments/FragmentHold.cpp), of one
// block or of the blocks of a cluster.
//
// The sum of a row has P chains, one for each column modulo P, and then a tree
// over these, lowest bit first (Tiling/ReductionLoops.cpp). So each of B blocks
// takes P / B neighbouring chains: a run of columns in every P. Its sum is a
// subtree, and the tree over the blocks is what is left.
//
//===----------------------------------------------------------------------===//

#include "Analysis/DimClasses.h"
#include "Fragments/FragmentHold.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Numerics/ReductionOrder.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERSPREADROWS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

RankedTensorType tileType(Value v) {
  return dyn_cast<RankedTensorType>(v.getType());
}

/// A kernel that works on one row, and the class of its columns.
class Row {
public:
  explicit Row(func::FuncOp kernel) : kernel(kernel) {}

  /// Whether its columns can be taken apart.
  bool find();
  /// Bytes of the tiles that more than one loop would read.
  int64_t rereadBytes();
  /// Columns of each run where `blocks` share the row; 0 where they cannot.
  int64_t runOf(int64_t blocks) const;
  void spread(int64_t blocks);

private:
  /// The dimension of `v` along the row; none if it has one element for it.
  std::optional<unsigned> along(Value v) const {
    if (RankedTensorType type = tileType(v))
      for (int64_t d = 0; d < type.getRank(); ++d)
        if (classes->member(v, d).cls == columns)
          return unsigned(d);
    return std::nullopt;
  }
  bool isAlong(quant::ReduceOp reduce) const {
    return along(reduce.getSource()) == unsigned(reduce.getAxis());
  }
  /// Whether nothing but its use says which way `v` runs: a constant, an iota.
  static bool isRebuilt(Value v) {
    Operation *def = v.getDefiningOp();
    return tileType(v) && def && def->getNumOperands() == 0 && isPure(def);
  }
  /// The dimension along the row that a use gives to what is rebuilt.
  std::optional<unsigned> along(OpOperand &use) const;
  bool canSpread(Operation &op) const;
  bool canAccess(Value memref, ValueRange indices, Value tile) const;

  static void narrow(Value v, unsigned dim, int64_t blocks);
  void rebuild(OpOperand &use, int64_t run, int64_t blocks);
  Value part(Value memref, Value tile, int64_t run, int64_t blocks);
  void spreadStore(quant::StoreOp store, int64_t run, int64_t blocks);
  Value spreadIota(quant::IotaOp iota, int64_t step, int64_t blocks);
  void spreadReduce(quant::ReduceOp reduce, int64_t run, int64_t blocks);
  Value rank(OpBuilder &b, Location loc) {
    return quant::ClusterRankOp::create(b, loc, b.getIndexType());
  }

  func::FuncOp kernel;
  std::optional<DimClasses> classes;
  int columns = -1;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> parts;
};

/// Accesses begin at the first column, and columns are the last dimension.
bool Row::canAccess(Value memref, ValueRange indices, Value tile) const {
  std::optional<unsigned> d = along(tile);
  if (!d)
    return true;
  auto type = dyn_cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return int64_t(*d) + 1 == tileType(tile).getRank() && type &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides.back() == 1 && isConstantIntValue(indices.back(), 0);
}

std::optional<unsigned> Row::along(OpOperand &use) const {
  Operation *user = use.getOwner();
  for (OpResult result : user->getResults()) {
    auto relations = quant::getDimRelations(user, result.getResultNumber());
    if (!relations)
      continue;
    for (const quant::DimRelation &r : *relations)
      if (r.operand == use.getOperandNumber() &&
          classes->member(result, r.resultDim).cls == columns)
        return r.operandDim;
  }
  return std::nullopt;
}

bool Row::canSpread(Operation &op) const {
  if (op.getNumRegions())
    return false;
  // What is rebuilt is all the same along the row, or its index.
  for (OpOperand &use : op.getOpOperands())
    if (isRebuilt(use.get())) {
      bool isKnown = op.hasTrait<OpTrait::Elementwise>();
      auto constant = use.get().getDefiningOp<arith::ConstantOp>();
      bool isSplat = constant && isa<SplatElementsAttr>(constant.getValue());
      if (tileType(use.get()).getNumElements() > 1 && !isKnown && !isSplat)
        return false;
      if (isa<quant::StoreOp, quant::ReduceOp>(op))
        return false;
      if (along(use) && !isSplat && !use.get().getDefiningOp<quant::IotaOp>())
        return false;
    }
  if (op.hasTrait<OpTrait::IsTerminator>() || isa<quant::LoadScalarOp>(op))
    return true;
  if (auto load = dyn_cast<quant::LoadOp>(op))
    return canAccess(load.getMemref(), load.getIndices(), load.getResult());
  if (auto store = dyn_cast<quant::StoreOp>(op))
    return canAccess(store.getMemref(), store.getIndices(), store.getTile());
  if (auto atomic = dyn_cast<quant::AtomicOpInterface>(op))
    return !along(atomic.getTile());
  if (auto reduce = dyn_cast<quant::ReduceOp>(op))
    return !isAlong(reduce) ||
           (!reduce.getCount() && !reduce.getTree() && !reduce.getChains());
  if (!isPure(&op))
    return false;
  // Of what is left, nothing may look at more of a row than its own columns.
  auto isOfRow = [&](Value v) { return along(v).has_value(); };
  if (llvm::none_of(op.getOperands(), isOfRow) &&
      llvm::none_of(op.getResults(), isOfRow))
    return true;
  return llvm::all_of(op.getResults(), isOfRow) &&
         (op.hasTrait<OpTrait::Elementwise>() ||
          isa<quant::BlockReduceOp, quant::BlockBroadcastOp, quant::BroadcastOp,
              quant::ReshapeOp, quant::EncodeOp, quant::ScaleEncodeOp,
              quant::DecodeOp, quant::E8M0InverseOp, quant::HadamardOp>(op));
}

bool Row::find() {
  if (!kernel.getBody().hasOneBlock())
    return false;
  Block &block = kernel.front();
  SmallVector<Value> tiles;
  for (Operation &op : block)
    for (Value v : op.getOperands())
      if (tileType(v))
        tiles.push_back(v);
  classes.emplace(tiles);
  for (auto reduce : block.getOps<quant::ReduceOp>()) {
    int cls = classes->member(reduce.getSource(), reduce.getAxis()).cls;
    if (cls >= 0 && (*classes)[cls].isColumn &&
        (columns < 0 || (*classes)[cls].extent > (*classes)[columns].extent))
      columns = cls;
  }
  if (columns < 0)
    return false;
  const DimClasses::Class &info = (*classes)[columns];
  if (ShapedType::isDynamic(info.extent) || info.rigid ||
      info.extent % numerics::sumChains(info.extent))
    return false;
  for (Value v : classes->values())
    if (std::optional<unsigned> d = along(v))
      for (auto [other, extent] : llvm::enumerate(tileType(v).getShape()))
        if (other != *d && extent != 1)
          return false;
  return llvm::all_of(block, [&](Operation &op) { return canSpread(op); });
}

int64_t Row::rereadBytes() {
  // How many sums, maxima and stores of columns each load is read for.
  llvm::MapVector<Operation *, int64_t> readers;
  auto read = [&](Value from) {
    llvm::SetVector<Value> cone;
    cone.insert(from);
    for (size_t i = 0; i < cone.size(); ++i) {
      Operation *def = cone[i].getDefiningOp();
      // What a reduction is made of, its own loop reads.
      if (!def || isa<quant::ReduceOp>(def))
        continue;
      if (isa<quant::LoadOp>(def))
        ++readers[def];
      for (Value operand : def->getOperands())
        if (along(operand))
          cone.insert(operand);
    }
  };
  for (Operation &op : kernel.front())
    if (auto reduce = dyn_cast<quant::ReduceOp>(op); reduce && isAlong(reduce))
      read(reduce.getSource());
  bool stores = false;
  for (auto store : kernel.front().getOps<quant::StoreOp>())
    if (along(store.getTile())) {
      // One loop makes all that is stored.
      if (!stores)
        read(store.getTile());
      stores = true;
    }
  int64_t bytes = 0;
  for (auto [load, count] : readers)
    if (auto type = tileType(load->getResult(0));
        count > 1 && type.getRank() == 2)
      bytes += heldBytes(type);
  return bytes;
}

int64_t Row::runOf(int64_t blocks) const {
  const DimClasses::Class &info = (*classes)[columns];
  int64_t run = numerics::sumChains(info.extent) / blocks;
  return run % info.granule ? 0 : run;
}

/// Of `v`, what one of the blocks has.
void Row::narrow(Value v, unsigned dim, int64_t blocks) {
  RankedTensorType type = tileType(v);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= blocks;
  type = type.clone(shape);
  v.setType(type);
  if (auto constant = v.getDefiningOp<arith::ConstantOp>())
    constant.setValueAttr(
        cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type));
}

/// Its own for each use: another use may run another way.
void Row::rebuild(OpOperand &use, int64_t run, int64_t blocks) {
  std::optional<unsigned> dim = along(use);
  if (!dim)
    return;
  Operation *def = use.get().getDefiningOp(), *user = use.getOwner();
  Operation *own = OpBuilder(user).clone(*def);
  narrow(own->getResult(0), *dim, blocks);
  Value result = own->getResult(0);
  if (auto iota = dyn_cast<quant::IotaOp>(own); iota && iota.getDim() == *dim)
    // An elementwise use: its result has the unit.
    result = spreadIota(
        iota, run / classes->member(user->getResult(0), *dim).unit, blocks);
  use.set(result);
}

/// The part of `memref` that `tile`, of all columns, is loaded from or stored
/// to.
Value Row::part(Value memref, Value tile, int64_t run, int64_t blocks) {
  int64_t unit = classes->member(tile, *along(tile)).unit;
  Value &part = parts[{memref, unit}];
  if (!part) {
    OpBuilder b(kernel.getContext());
    b.setInsertionPointAfterValue(memref);
    part = quant::ClusterPartOp::create(b, memref.getLoc(), memref, run / unit,
                                        blocks);
  }
  return part;
}

void Row::spreadStore(quant::StoreOp store, int64_t run, int64_t blocks) {
  int64_t unit = classes->member(store.getTile(), *along(store.getTile())).unit;
  store.getMemrefMutable().assign(
      part(store.getMemref(), store.getTile(), run, blocks));
  if (store.getValid().empty())
    return;
  // Of the columns that are valid, those of this block: see
  // Distribute/Cluster.cpp.
  OpBuilder b(store);
  Location loc = store.getLoc();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value step = constant(run / unit), period = constant(run / unit * blocks),
        zero = constant(0);
  OpOperand &valid = *std::prev(store.getValidMutable().end());
  Value count = arith::MaxSIOp::create(b, loc, valid.get(), zero);
  Value whole = arith::MulIOp::create(
      b, loc, arith::DivUIOp::create(b, loc, count, period), step);
  Value rest = arith::SubIOp::create(
      b, loc, arith::RemUIOp::create(b, loc, count, period),
      arith::MulIOp::create(b, loc, rank(b, loc), step));
  rest = arith::MaxSIOp::create(b, loc, zero,
                                arith::MinSIOp::create(b, loc, rest, step));
  valid.set(arith::AddIOp::create(b, loc, whole, rest));
}

/// The columns of the whole row: column / run * period + column % run + first.
Value Row::spreadIota(quant::IotaOp iota, int64_t step, int64_t blocks) {
  OpBuilder b(iota);
  b.setInsertionPointAfter(iota);
  Location loc = iota.getLoc();
  RankedTensorType type = iota.getResult().getType();
  auto splat = [&](int64_t v) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getI32IntegerAttr(int32_t(v))));
  };
  Value first = arith::IndexCastOp::create(
      b, loc, b.getI32Type(),
      arith::MulIOp::create(b, loc, rank(b, loc),
                            arith::ConstantIndexOp::create(b, loc, step)));
  auto runs = arith::ShRUIOp::create(b, loc, iota.getResult(),
                                     splat(llvm::Log2_64(step)));
  Value at = arith::AddIOp::create(
      b, loc, iota.getResult(),
      arith::MulIOp::create(b, loc, runs, splat(step * (blocks - 1))));
  return arith::AddIOp::create(b, loc, at,
                               quant::BroadcastOp::create(b, loc, type, first));
}

void Row::spreadReduce(quant::ReduceOp reduce, int64_t run, int64_t blocks) {
  OpBuilder b(reduce);
  if (reduce.getKind() == quant::ReduceKind::sum)
    reduce.setChains(run);
  b.setInsertionPointAfter(reduce);
  auto all = quant::ClusterReduceOp::create(b, reduce.getLoc(),
                                            reduce.getType(), reduce.getKind(),
                                            reduce.getResult(), blocks);
  reduce.getResult().replaceAllUsesExcept(all, all);
}

void Row::spread(int64_t blocks) {
  int64_t run = runOf(blocks);
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.front())
    ops.push_back(&op);
  // Units are those of the values as they are, so types come last.
  for (Operation *op : ops) {
    if (auto load = dyn_cast<quant::LoadOp>(op)) {
      if (along(load.getResult()))
        load.getMemrefMutable().assign(
            part(load.getMemref(), load.getResult(), run, blocks));
    } else if (auto store = dyn_cast<quant::StoreOp>(op)) {
      if (along(store.getTile()))
        spreadStore(store, run, blocks);
    }
  }
  for (Operation *op : ops)
    for (OpOperand &use : op->getOpOperands())
      if (isRebuilt(use.get()))
        rebuild(use, run, blocks);
  for (Operation *op : ops)
    for (Value v : op->getResults())
      if (std::optional<unsigned> dim = along(v); dim && !isRebuilt(v))
        narrow(v, *dim, blocks);
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<quant::ReduceOp>(op); reduce && isAlong(reduce))
      spreadReduce(reduce, run, blocks);
  NamedAttrList config(kernel->getAttrOfType<DictionaryAttr>("quant.config"));
  config.set("cluster", IntegerAttr::get(
                            IntegerType::get(kernel.getContext(), 64), blocks));
  kernel->setAttr("quant.config", config.getDictionary(kernel.getContext()));
}

struct DitherSpreadRows : impl::DitherSpreadRowsBase<DitherSpreadRows> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    const target::TargetInfo *info = target::saidTarget(kernel);
    auto config = kernel->getAttrOfType<DictionaryAttr>("quant.config");
    if (!info || info->clusterBlocks < 2 || !config || config.get("cluster") ||
        config.get("tiles") || !kernel->hasAttr("quant.kernel") ||
        kernel.isExternal())
      return;
    Row row(kernel);
    if (!row.find())
      return;
    int64_t most = heldBytes >= 0 ? heldBytes : mostHeldBytes(*info);
    int64_t bytes = row.rereadBytes(), chosen = 1;
    for (int64_t blocks = 2;
         bytes > most * chosen && blocks <= info->clusterBlocks; blocks *= 2)
      if (row.runOf(blocks))
        chosen = blocks;
    if (chosen > 1)
      row.spread(chosen);
  }
};

} // namespace

} // namespace dither::transforms
