//===- LayoutRules.h - Which layout a kernel's values take ------*- C++ -*-===//
//
// The choices that layout assignment makes and distribution must repeat, as
// functions of the kernel alone.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_LAYOUTRULES_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_LAYOUTRULES_H

#include "Layouts/TileTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dither::transforms {

/// Whether a kernel is for a CPU, as it is where no target is named.
bool isForCpu(mlir::func::FuncOp kernel);
/// Elements of 32 bits in a vector register of the CPU that a kernel is for;
/// where the module does not say which, those of the widest, so that choices
/// are the same on every machine.
int64_t cpuLanes(mlir::func::FuncOp kernel);
/// Extents that `quant.config` of a kernel has under a name, such as those of
/// its "fragment"; none if it does not say.
llvm::SmallVector<int64_t> configuredExtents(mlir::func::FuncOp kernel,
                                             llvm::StringRef name);

/// Error at the first operation of a kernel with a tile that has no layout.
mlir::LogicalResult checkLayouts(mlir::func::FuncOp kernel);
/// Error at the first one with a tile of more elements than layouts count.
mlir::LogicalResult checkElements(mlir::func::FuncOp kernel);

class LayoutRules {
public:
  explicit LayoutRules(mlir::func::FuncOp kernel);

  bool isSimd() const { return simd; }
  int64_t warps() const { return numWarps; }
  /// Whether registers hold the even or the odd columns (CPU).
  bool keepsPairs() const { return simd && vec == 2; }

  /// Layout for wide access to a whole tile of this shape.
  TileLayout anchor(llvm::ArrayRef<int64_t> shape) const;
  /// Layout for wide access in which `op`, a quant.reduce or
  /// quant.block_reduce, can reduce its operand.
  TileLayout reducible(mlir::Operation *op) const;
  /// Loads that decide a layout; the others follow their users.
  bool isAnchor(quant::LoadOp load) const;
  /// Layout in which `op` (a store) should get its tile, given the one it has.
  TileLayout storage(mlir::Operation *op, const TileLayout &have) const;
  /// Layout of a transposed tile for what reduces its rows: a lane has whole
  /// blocks, and neighbouring rows. Nothing where nothing reduces them.
  std::optional<TileLayout> turned(quant::TransposeOp op) const;
  /// Layout in which the `parts` that add up to each of `sums` columns are
  /// registers of one lane, or, where they are many, of a few warps.
  TileLayout gathered(int64_t parts, int64_t sums) const;
  /// Layout for wide access in which each run of elements of a quant.hadamard
  /// belongs to the registers and lanes of one warp.
  TileLayout transformable(quant::HadamardOp op) const;
  /// Plan of a quant.reduce or quant.block_reduce.
  std::optional<ReducePlan> plan(mlir::Operation *op,
                                 const TileLayout &in) const;
  /// The dimension that a quant.block_reduce shortens; the last one for blocks
  /// of one element, nothing for blocks that run along two.
  static std::optional<int64_t> blockAxis(quant::BlockReduceOp op);
  /// Operand layout of a quant.broadcast or quant.block_broadcast.
  TileLayout broadcastOperand(mlir::Operation *op, const TileLayout &out) const;
  /// Group sizes of a broadcast: log2 per dimension, and whole dimensions.
  static void broadcastGroups(mlir::Operation *op,
                              llvm::SmallVectorImpl<int64_t> &shift,
                              llvm::SmallVectorImpl<bool> &full);

  /// Layout of the codes of `bits` of a tile in `have` as a CPU stores them,
  /// made of several registers that follow each other: a word has neighbours,
  /// and a register is 64 bytes in order. Nothing where none follow each other.
  static std::optional<TileLayout> inOrder(const TileLayout &have,
                                           int64_t bits);
  /// The encoding of finite products whose codes `op` wants in order; null if
  /// it is no such conversion.
  static quant::ScaleEncodeOp encodedInOrder(quant::ConvertLayoutOp op);

private:
  TileLayout widest(llvm::ArrayRef<int64_t> shape, Reduced reduced,
                    int64_t most = 16) const;

  bool simd = false;
  int64_t numWarps = 1;
  /// Contiguous elements a lane owns, and the fewest in a tile of little work:
  /// a byte of four-bit codes.
  int64_t vec = 1, leastVec = 1;
  /// Chains of the longest sum along rows, on a CPU along either direction; 0
  /// for none.
  int64_t sumChains = 0;
  /// Whether a GPU holds rows in quant.scratch.
  bool holds = false;
  /// Lengths of the rows that sums are of.
  llvm::SmallDenseSet<int64_t, 4> summed;
  /// Elements of the longest sum along columns (GPU), and rows of the tallest
  /// block that is reduced; 0 for none.
  int64_t sumRows = 0, columnBlock = 0;
  /// Rows that a word of columns has (GPU), where a tile is transposed that is
  /// narrow, or becomes so; 1 elsewhere.
  int64_t turnedRows = 1;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_LAYOUTRULES_H
