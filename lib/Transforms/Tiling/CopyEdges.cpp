//===- CopyEdges.cpp - Tiles at the edges of tensors, row by row ----------===//
//
// Each row of a tile that may reach past a tensor is an access of its own, with
// masks and branches: the code of a tall tile would be mostly that. A loop over
// its rows copies it to or from memory that the tile fills, and the code is
// that of one row.
//
//===----------------------------------------------------------------------===//

#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERCOPYEDGES
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// Rows that are accesses one after the other in the code.
constexpr int64_t kMostRows = 4;

struct DitherCopyEdges : impl::DitherCopyEdgesBase<DitherCopyEdges> {
  static bool isTall(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    return type.getRank() == 2 && canBeScratch(type) &&
           type.getDimSize(0) > kMostRows;
  }

  using Body = llvm::function_ref<void(OpBuilder &, ValueRange inTensor,
                                       ValueRange inScratch)>;

  /// Calls `body` in a loop over `rows` rows, with where each begins: in the
  /// tensor, where the tile is at `indices`, and in scratch memory.
  static void forRows(OpBuilder &b, Location loc, int64_t rows,
                      ValueRange indices, Body body) {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value count = arith::ConstantIndexOp::create(b, loc, rows);
    scf::ForOp::create(b, loc, zero, count, one, {},
                       [&](OpBuilder &inner, Location, Value r, ValueRange) {
                         SmallVector<Value> at(indices);
                         Value &first = at[at.size() - 2];
                         first = arith::AddIOp::create(inner, loc, first, r);
                         body(inner, at, {r, zero});
                         scf::YieldOp::create(inner, loc);
                       });
  }

  static RankedTensorType rowOf(RankedTensorType type) {
    return RankedTensorType::get({1, type.getDimSize(1)},
                                 type.getElementType());
  }

  static void copy(func::FuncOp kernel, quant::LoadOp load) {
    OpBuilder b(load);
    Location loc = load.getLoc();
    RankedTensorType type = load.getResult().getType();
    Value scratch = makeScratch(kernel, loc, type);
    forRows(b, loc, type.getDimSize(0), load.getIndices(),
            [&](OpBuilder &inner, ValueRange inTensor, ValueRange inScratch) {
              Value row = quant::LoadOp::create(
                  inner, loc, rowOf(type), load.getMemref(), inTensor, false);
              quant::StoreOp::create(inner, loc, row, scratch, inScratch)
                  .setInBounds(true);
            });
    load.replaceAllUsesWith(loadScratch(b, loc, scratch, type));
    load.erase();
  }

  static void copy(func::FuncOp kernel, quant::StoreOp store) {
    OpBuilder b(store);
    Location loc = store.getLoc();
    auto type = cast<RankedTensorType>(store.getTile().getType());
    Value scratch = makeScratch(kernel, loc, type);
    storeScratch(b, loc, scratch, store.getTile());
    forRows(b, loc, type.getDimSize(0), store.getIndices(),
            [&](OpBuilder &inner, ValueRange inTensor, ValueRange inScratch) {
              Value row = loadScratch(inner, loc, scratch, rowOf(type),
                                      getAsOpFoldResult(inScratch));
              auto out = quant::StoreOp::create(inner, loc, row,
                                                store.getMemref(), inTensor);
              out.getValidMutable().assign(store.getValid());
              out.setScaleLayout(store.getScaleLayout());
            });
    store.erase();
  }

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr("quant.kernel") || kernel.isExternal() ||
        kernel->hasAttr("quant.phases") || !hasScratch(kernel))
      return;
    SmallVector<quant::LoadOp> loads;
    SmallVector<quant::StoreOp> stores;
    kernel.walk([&](quant::LoadOp load) {
      if (!load.getInBounds() && isTall(load.getResult()))
        loads.push_back(load);
    });
    kernel.walk([&](quant::StoreOp store) {
      if (!store.getInBounds() && isTall(store.getTile()))
        stores.push_back(store);
    });
    for (quant::LoadOp load : loads)
      copy(kernel, load);
    for (quant::StoreOp store : stores)
      copy(kernel, store);
  }
};

} // namespace

} // namespace dither::transforms
