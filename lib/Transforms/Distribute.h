//===- Distribute.h - From a kernel over tiles to one lane ------*- C++ -*-===//
//
// What the parts of dither-distribute share: the kernel that is being built,
// and what has become of the values of its source.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_DISTRIBUTE_H
#define DITHER_LIB_TRANSFORMS_DISTRIBUTE_H

#include "Emitter.h"
#include "LayoutRules.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace dither::transforms {

/// Counts what is emitted for each place in the source.
struct Counter : public mlir::OpBuilder::Listener {
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint previous) override;
  /// About as many operations as it becomes.
  static int64_t weightOf(mlir::Operation *op);
  /// The place with the most operations, and their number.
  std::pair<mlir::Location, int64_t> largest() const;
  int64_t total = 0;
  llvm::MapVector<mlir::Location, int64_t> places;
};

class Distributor {
public:
  Distributor(mlir::func::FuncOp source)
      : source(source), rules(source), simd(rules.isSimd()),
        b(source.getContext(), &counter),
        e(b, source.getLoc(), simd, rules.warps()) {}

  /// Puts the program of one lane in the place of the source.
  mlir::LogicalResult run();

private:
  mlir::Type i64() { return b.getI64Type(); }
  /// What the module's target can do; null for one that is not known.
  const target::TargetInfo *targetInfo();

  //===--- signature (DistributeKernel.cpp) -------------------------------===//
  mlir::LogicalResult checkSignature();
  llvm::SmallVector<mlir::Type> flatten();
  mlir::ArrayAttr paramKinds(llvm::ArrayRef<mlir::Type> params);
  llvm::SmallVector<mlir::Value> readSlots(mlir::Block *entry,
                                           llvm::ArrayRef<mlir::Type> params);
  void bindArguments(llvm::ArrayRef<mlir::Value> args);
  /// Whether a memref takes more bytes than caches hold.
  mlir::Value isLarge(const MemRefDesc &desc);
  /// What specialization knows about GPU pointer parameters.
  void annotate(mlir::func::FuncOp kernel);

  //===--- shared memory --------------------------------------------------===//
  mlir::Value sharedScratch();
  void finishShared(mlir::func::FuncOp kernel);

  //===--- programs -------------------------------------------------------===//
  /// CPU: a loop over the linear program ids [begin, end), x fastest.
  mlir::LogicalResult emitPrograms(mlir::Block *entry);
  mlir::Value emitProgramId(int dim, bool count);

  //===--- values ---------------------------------------------------------===//
  mlir::Value index(mlir::Value i) {
    return e.make<mlir::arith::IndexCastOp>(b.getIndexType(), i);
  }
  static mlir::RankedTensorType tile(mlir::Value v) {
    return llvm::dyn_cast<mlir::RankedTensorType>(v.getType());
  }
  LaneLayout layout(mlir::Value v) { return *layoutOf(v.getType()); }
  mlir::Value get(mlir::Value v) { return map.lookup(v); }
  const Registers &regs(mlir::Value v) { return tiles.find(v)->second; }
  void set(mlir::Value v, Registers registers) {
    tiles[v] = std::move(registers);
  }
  /// What a lane holds of `v`: registers of a tile, else one value.
  Registers values(mlir::Value v) {
    return tile(v) ? regs(v) : Registers{get(v)};
  }
  void setValues(mlir::Value v, llvm::ArrayRef<mlir::Value> values);
  /// Type of each register of a tile, and their number.
  std::pair<mlir::Type, int64_t> registerType(mlir::RankedTensorType type);

  //===--- ops ------------------------------------------------------------===//
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitTileOp(mlir::Operation *op);

  //===--- DistributeControl.cpp ------------------------------------------===//
  /// Each of `from` becomes the next of `to`, a tile as many as it has
  /// registers.
  void bind(mlir::ValueRange from, mlir::ValueRange to);
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  void emitYield(mlir::Operation *yield);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);

  //===--- DistributeMemory.cpp -------------------------------------------===//
  mlir::FailureOr<TileAccess> access(mlir::Operation *op, mlir::Value memref,
                                     mlir::ValueRange indices,
                                     const LaneLayout &layout,
                                     llvm::ArrayRef<int64_t> shape,
                                     bool inBounds);
  /// CPU: memory of a program, one for all programs of a call: of the stack, or
  /// of the runtime where that would be too much.
  void emitScratch(mlir::memref::AllocaOp op);
  mlir::LogicalResult emitMemory(mlir::Operation *op);
  /// What exists of the coordinates before `limit`. Differences to offsets of
  /// other limits may wrap.
  mlir::Value validPart(mlir::Value limit, mlir::Value size);

  //===--- DistributeWords.cpp --------------------------------------------===//
  /// An operation on words for every word: vectors of all registers would only
  /// be taken apart again.
  void convertWords(mlir::Value operand, mlir::Value result,
                    llvm::StringRef name, mlir::Type elem,
                    const LaneLayout &words, mlir::NamedAttrList attrs);
  void encodeWords(mlir::Value operand, mlir::Value result,
                   mlir::Attribute mode = {});
  void decodeWords(mlir::Value operand, mlir::Value result, bool inverse);
  /// The word of `group` elements that are all `value`.
  mlir::IntegerAttr wordOf(mlir::TypedAttr value, int64_t group);
  /// Whether these are a tile of f32 and one of a 16-bit float.
  static bool converts16(mlir::Value wide, mlir::Value narrow);
  /// A choice between tiles of a narrow type: of words where one condition
  /// decides for all elements, else of codes.
  void selectWords(mlir::arith::SelectOp op);

  //===--- DistributePeepholes.cpp ----------------------------------------===//
  /// CPU: products of finite values and factors, two to a word; false if they
  /// do not come in pairs, or if nobody knows which of the two is the factor,
  /// which has no sign: constants have been moved to the right.
  bool encodeProduct(quant::EncodeOp op);
  /// The amax of widened 16-bit values, two at a time; false if their words do
  /// not allow it.
  bool reduceWords(mlir::Operation *op, const ReducePlan &plan,
                   const LaneLayout &l, int64_t axis);

  //===--- tiles ----------------------------------------------------------===//
  /// The operation on every register; operands that are no tiles are shared.
  void emitElementwise(mlir::Operation *op);
  mlir::LogicalResult emitReduce(mlir::Operation *op);
  mlir::LogicalResult emitBroadcast(mlir::Operation *op);
  mlir::LogicalResult emitMovement(mlir::Operation *op);

  mlir::func::FuncOp source;
  LayoutRules rules;
  bool simd;
  /// Whether stores may go past the caches.
  bool streams = false;
  /// CPU: slots of the arguments, bytes taken of the stack, and the address of
  /// the memory that the runtime lends (null where nothing needs it).
  int64_t numSlots = 0, stackBytes = 0;
  mlir::Value scratchBase;
  Counter counter;
  mlir::OpBuilder b;
  Emitter e;
  mlir::Type ptrType;
  /// Values that are no tiles, and the registers of those that are.
  mlir::IRMapping map;
  llvm::DenseMap<mlir::Value, Registers> tiles;
  llvm::DenseMap<mlir::Value, MemRefDesc> memrefs;
  mlir::Value grid[3], programId[3];
  std::string sharedName;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_DISTRIBUTE_H
