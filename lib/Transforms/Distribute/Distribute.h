//===- Distribute.h - From a kernel over tiles to one lane ------*- C++ -*-===//
//
// What the parts of dither-distribute share: the kernel that is being built,
// what has become of the values of its source, and the table of who builds
// which operation. Each family of operations has a file.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_DISTRIBUTE_DISTRIBUTE_H
#define DITHER_LIB_TRANSFORMS_DISTRIBUTE_DISTRIBUTE_H

#include "Emit/Emitter.h"
#include "Layouts/LayoutRules.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <optional>

namespace dither::transforms {

class Distributor;

/// What became of an operation; nothing if it has another form than the one
/// that was asked about.
using Emitted = std::optional<mlir::LogicalResult>;

/// Who builds which operation.
class OpTable {
public:
  /// Adds a form of an operation, after those that it has.
  template <typename Op> void add(Emitted (*emit)(Distributor &, Op)) {
    forms[Op::getOperationName()].push_back(
        [emit](Distributor &d, mlir::Operation *op) {
          return emit(d, llvm::cast<Op>(op));
        });
  }
  /// Builds `op` in the first of its forms that it has, if any.
  Emitted emit(Distributor &d, mlir::Operation *op) const;

private:
  using Form = std::function<Emitted(Distributor &, mlir::Operation *)>;
  llvm::StringMap<llvm::SmallVector<Form, 1>> forms;
};

/// Shorter forms that CPUs have for some operands; they go before the others.
void addCpuPeepholes(OpTable &table);
/// Maxima of 16-bit values in their words; they go before the others.
void addWordReductions(OpTable &table);
/// Shorter forms of decoding what was just encoded; they go before the others.
void addRoundTrips(OpTable &table);
void addProgramOps(OpTable &table);
void addControlOps(OpTable &table);
void addPartOps(OpTable &table);
void addMemoryOps(OpTable &table);
void addWordOps(OpTable &table);
void addReduceOps(OpTable &table);
void addClusterOps(OpTable &table);
void addTileOps(OpTable &table);
void addShapeOps(OpTable &table);
/// The operation on every register; operands that are no tiles are shared.
mlir::LogicalResult emitElementwise(Distributor &d, mlir::Operation *op);

/// The global of a GPU kernel's shared memory.
std::string sharedNameOf(llvm::StringRef kernel);

/// The bytes of so many elements (i64).
mlir::Value bytesOf(Distributor &d, mlir::Value elements, mlir::Type elem);

/// Brings the row of the next tile that `load` will read to L2.
void prefetchNextTile(Distributor &d, quant::LoadOp load);

/// The sum of what tiles of a program have of `tile`, at the last of them: the
/// insertion point moves to where only that is done.
Registers emitTotal(Distributor &d, quant::StoreOp store, Registers tile);

/// Where a thread keeps sums that wait for those of other tiles: of one tile
/// each register, if it has room for them, and of more shared memory.
struct TotalPlaces {
  llvm::SmallVector<mlir::Value> one;
  mlir::Value more;
};

/// A reduction of registers of f32, as its operand's layout allows it.
struct Reduction {
  ReducePlan plan;
  TileLayout layout;
  quant::ReduceKind kind;
  /// The elements along `axis` that are not padding.
  int64_t axis, limit;
  /// An amax of bits, where a NaN is above all.
  bool bits = false;
};
/// Nothing if the operand cannot be reduced to the layout of the result.
std::optional<Reduction> reductionOf(Distributor &d, mlir::Operation *op);

/// Counts what is emitted for each place in the source.
struct Counter : public mlir::OpBuilder::Listener {
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint previous) override;
  /// The place with the most operations, and their number.
  std::pair<mlir::Location, int64_t> largest() const;
  int64_t total = 0;
  llvm::MapVector<mlir::Location, int64_t> places;
};

class Distributor {
public:
  explicit Distributor(mlir::func::FuncOp source);

  /// Puts the program of one lane in the place of the source.
  mlir::LogicalResult run();

  /// What a block becomes, at the insertion point; its terminator is left to
  /// the caller.
  mlir::LogicalResult emitBlock(mlir::Block &block);

  //===--- values ---------------------------------------------------------===//
  static mlir::RankedTensorType tile(mlir::Value v) {
    return llvm::dyn_cast<mlir::RankedTensorType>(v.getType());
  }
  static TileLayout layout(mlir::Value v) { return *layoutOf(v.getType()); }
  /// The value of what is no tile.
  mlir::Value get(mlir::Value v) { return map.lookup(v); }
  void set(mlir::Value v, mlir::Value value) { map.map(v, value); }
  /// The registers of a tile.
  const Registers &regs(mlir::Value v) { return tiles.find(v)->second; }
  void setRegs(mlir::Value v, Registers registers) {
    tiles[v] = std::move(registers);
  }
  /// What a lane holds of `v`: registers of a tile, else one value.
  Registers values(mlir::Value v) {
    return tile(v) ? regs(v) : Registers{get(v)};
  }
  /// Type of each register of a tile, and their number.
  std::pair<mlir::Type, int64_t> registerType(mlir::RankedTensorType type);
  mlir::Value toIndex(mlir::Value i) {
    return e.make<mlir::arith::IndexCastOp>(b.getIndexType(), i);
  }

  //===--- the kernel (Kernel.cpp) ----------------------------------------===//
  /// Index of the program along a dimension of the grid, from the first one or
  /// from the last one, or how many there are.
  enum class Counted { Id, IdFromLast, All };
  mlir::Value programIndex(quant::Dim dim, Counted what);
  /// An argument, or scratch memory; null for others.
  const MemRefDesc *memref(mlir::Value v) {
    auto it = memrefs.find(v);
    return it == memrefs.end() ? nullptr : &it->second;
  }
  void setMemref(mlir::Value v, MemRefDesc desc) {
    memrefs.try_emplace(v, std::move(desc));
  }
  /// CPU: memory of a program, one for all programs of a call: of the stack, or
  /// of the runtime where that would be too much.
  mlir::Value scratch(int64_t bytes);
  /// Shared memory that the blocks of a cluster write to for each other, 32
  /// bits for each of them.
  mlir::Value clusterPlaces;

  //===--- tiles of a program (Tiles.cpp) ---------------------------------===//
  /// Which of its tiles a program is at, i32, and how many there are; null and
  /// 1 where it has one.
  mlir::Value tileId;
  int64_t numTiles = 1;
  /// Where each thread keeps its parts of sums over tiles, by their number.
  llvm::SmallVector<TotalPlaces> totals;

  //===--- parts of a kernel (Parts.cpp) ----------------------------------===//
  /// A part, distributed already, is in this kernel.
  mlir::LogicalResult takePart(mlir::func::FuncOp part);

private:
  mlir::func::FuncOp source;
  Counter counter;

public:
  const LayoutRules rules;
  const bool simd;
  mlir::OpBuilder b;
  Emitter e;

private:
  mlir::Type i64() { return b.getI64Type(); }
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
  mlir::Value sharedScratch();
  void finishShared(mlir::func::FuncOp kernel);
  /// CPU: a loop over the linear program ids [begin, end), x fastest.
  mlir::LogicalResult emitPrograms(mlir::Block *entry);
  /// Stores of what a part hands on to another, and its loads of that, which
  /// wait.
  mlir::LogicalResult handOn(mlir::func::FuncOp part);
  /// GPU: the kernel for each tile of a program, one after the other.
  mlir::LogicalResult emitTiles();
  mlir::LogicalResult emitOp(mlir::Operation *op);

  OpTable table;
  /// Whether stores may go past the caches.
  bool streams = false;
  /// CPU: slots of the arguments, bytes taken of the stack, and the address of
  /// the memory that the runtime lends (null where nothing needs it).
  int64_t numSlots = 0, stackBytes = 0;
  /// GPU: the threads of each part of the kernel; 0 where it has none.
  int64_t partThreads = 0;
  /// GPU: bytes of shared memory that hold tiles.
  int64_t heldBytes = 0;
  mlir::Value scratchBase;
  mlir::Type ptrType;
  /// Values that are no tiles, and the registers of those that are.
  mlir::IRMapping map;
  llvm::DenseMap<mlir::Value, Registers> tiles;
  llvm::DenseMap<mlir::Value, MemRefDesc> memrefs;
  mlir::Value grid[3], programId[3];
  std::string sharedName;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_DISTRIBUTE_DISTRIBUTE_H
