//===- CopyEdges.cpp - Tiles at the edges of tensors, row by row ----------===//
//
// Each row of a tile that may reach past a tensor is an access of its own, with
// masks and branches: the code of a tall tile would be mostly that. A loop over
// its rows copies it to or from memory that the tile fills, and the code is
// that of one row.
//
//===----------------------------------------------------------------------===//

#include "Scratch.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

  /// Calls `body` in a loop over the rows of `type`, with the number of a row,
  /// where it lies in the tensor, where in scratch memory, and its type.
  template <typename Op>
  static void
  forRows(OpBuilder &b, Op access, RankedTensorType type,
          llvm::function_ref<void(OpBuilder &, ValueRange inTensor,
                                  ValueRange inScratch, RankedTensorType row)>
              body) {
    Location loc = access.getLoc();
    auto row =
        RankedTensorType::get({1, type.getDimSize(1)}, type.getElementType());
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value count = arith::ConstantIndexOp::create(b, loc, type.getDimSize(0));
    scf::ForOp::create(b, loc, zero, count, one, {},
                       [&](OpBuilder &inner, Location, Value r, ValueRange) {
                         SmallVector<Value> at(access.getIndices());
                         Value &first = at[at.size() - 2];
                         first = arith::AddIOp::create(inner, loc, first, r);
                         body(inner, at, {r, zero}, row);
                         scf::YieldOp::create(inner, loc);
                       });
  }

  static void copy(func::FuncOp kernel, quant::LoadOp load) {
    OpBuilder b(load);
    Location loc = load.getLoc();
    RankedTensorType type = load.getResult().getType();
    Value scratch = makeScratch(kernel, loc, type);
    forRows(b, load, type,
            [&](OpBuilder &inner, ValueRange inTensor, ValueRange inScratch,
                RankedTensorType row) {
              Value part = quant::LoadOp::create(
                  inner, loc, row, load.getMemref(), inTensor, false);
              quant::StoreOp::create(inner, loc, part, scratch, inScratch)
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
    forRows(b, store, type,
            [&](OpBuilder &inner, ValueRange inTensor, ValueRange inScratch,
                RankedTensorType row) {
              Value part = quant::LoadOp::create(inner, loc, row, scratch,
                                                 inScratch, true);
              auto out = quant::StoreOp::create(inner, loc, part,
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
