//===- AccessOrder.h - Whether accesses of a tensor may meet ----*- C++ -*-===//
//
// Accesses of tiles of one memref at places that are sums of constants, loop
// counters and values that are the same for both.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_ANALYSIS_ACCESSORDER_H
#define DITHER_LIB_TRANSFORMS_ANALYSIS_ACCESSORDER_H

#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace dither::transforms {

/// A load, a store or an atomic.
struct MemoryAccess {
  /// Nothing for other operations.
  static std::optional<MemoryAccess> of(mlir::Operation *op);

  /// Whether the tile begins at a multiple of two elements along the last
  /// dimension: at a byte of four-bit elements.
  bool startsByte() const;

  mlir::Operation *op;
  /// What has the elements; of a quant.view, what it is a view of.
  mlir::Value memref;
  /// What the indices are of.
  mlir::Value view;
  mlir::RankedTensorType tile;
  llvm::SmallVector<mlir::Value> indices;
  bool writes = false, isAtomic = false;
  /// The elements lie in another order than those of other accesses.
  quant::ScaleLayout order = quant::ScaleLayout::linear;
  /// The rows are those that a tile names: any.
  bool anyRows = false;
};

/// The asynchronous store that copies, on its own, what `load` reads; null if
/// there is none.
quant::StoreOp copyOf(quant::LoadOp load);
/// The loads, stores and atomics of a memref, those of its views among them.
llvm::SmallVector<mlir::Operation *> accessesOf(mlir::Value memref);

/// Whether two accesses of one memref need an order where they touch the same
/// element: one of them writes, and they are not both atomic.
bool conflicts(const MemoryAccess &a, const MemoryAccess &b);

/// What has become of the loops around an access since it was made: it may have
/// been in an earlier iteration of some, or in any iteration of others, which
/// have ended.
class LoopRelations {
public:
  enum Relation { Same, Earlier, Any };
  Relation of(mlir::Operation *loop) const;
  /// A new iteration of `loop` begins.
  void advance(mlir::Operation *loop);
  /// `loop` ends.
  void leave(mlir::Operation *loop);
  bool operator==(const LoopRelations &other) const;

private:
  /// In another iteration of a loop those inside are other loops.
  void forgetInside(mlir::Operation *loop);

  llvm::SmallDenseMap<mlir::Operation *, Relation, 4> relations; ///< not Same
};

/// Whether `before` and `after`, of one memref, touch no element (no byte of
/// four-bit elements) both. If not and if it is known, `delta` is the distance
/// from the first tile to the second.
bool areDisjoint(const MemoryAccess &before, const MemoryAccess &after,
                 const LoopRelations &loops = {},
                 std::optional<llvm::SmallVector<int64_t>> *delta = nullptr);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_ANALYSIS_ACCESSORDER_H
