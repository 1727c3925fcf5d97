//===- Emitter.h - Per-lane code for one kernel -----------------*- C++ -*-===//
//
// Both targets run the same distributed program: a GPU lane holds scalars, the
// CPU holds all 16 lanes of its warp in a vector. The emitter hides that
// difference: a "register" is a T on the GPU and a vector<16xT> on the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_EMIT_EMITTER_H
#define DITHER_LIB_TRANSFORMS_EMIT_EMITTER_H

#include "Layouts/TileTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace dither::transforms {

/// Bytes of a line of a CPU's cache.
inline constexpr int64_t kLineBytes = 64;

/// A memref argument after flattening: see architecture.md, Kernel ABI.
struct MemRefDesc {
  mlir::Value ptr;
  mlir::Type elem;
  /// Sizes and strides in elements, as i64 values (constants where static).
  llvm::SmallVector<mlir::Value> sizes, strides;
  llvm::SmallVector<int64_t> staticSizes, staticStrides;
  /// Known alignment in bytes of the pointer and of every outer stride.
  int64_t align = 1, strideAlign = 1;
  /// Nothing writes it while the kernel runs.
  bool isOnlyRead = false;
  /// CPU scratch: each 32 columns lie in memory as the 16 even and the 16 odd
  /// ones, as registers hold them.
  bool pairs = false;
  /// GPU scratch: chunks of 16 bytes change places so that lanes which have
  /// several chunks each do not meet in the banks (Emit/MemoryAccess.cpp).
  bool swizzled = false;
  /// CPU: whether it is too large for the caches (i1; null where not asked).
  mlir::Value large;
  /// Whether besides every row begins a line of memory (i1; null where not
  /// known).
  mlir::Value largeLines;
  /// The part of a block of a cluster: of each `period` columns `run`, from
  /// column `first` on, of `columns` in all (i64). 0: it is no such part.
  int64_t run = 0, period = 0;
  mlir::Value first, columns;

  /// In the memory, the column that is `column` of this part.
  int64_t columnOf(int64_t column) const {
    return run ? column / run * period + column % run : column;
  }
};

/// Where a tile lies in a memref, and what is known about the access.
struct TileAccess {
  const MemRefDesc &mem;
  const TileLayout &layout;
  /// Extents of what is accessed: those of the tile, up to the end of the
  /// memref where that is known (quant::knownInside).
  llvm::SmallVector<int64_t> shape;
  /// Offset of the tile in elements (i64) and a known divisor of each.
  llvm::SmallVector<mlir::Value> index;
  llvm::SmallVector<int64_t> divisor;
  /// Offsets that may be negative: the tile may start before the memref.
  llvm::SmallVector<bool> mayBeNegative;
  bool inBounds = false;
  /// The row of the memref that each row of the tile is (i32), one to a row,
  /// and how they are held; null for rows one after the other.
  const llvm::SmallVector<mlir::Value> *rows = nullptr;
  const TileLayout *rowsLayout = nullptr;
};

/// What a lane holds of a tile, register by register: values, or words of
/// narrow types.
using Registers = llvm::SmallVector<mlir::Value>;

/// The order in shared memory that dither-swizzle-shared chose for a
/// conversion: of units (`sharedUnitBytes`), and how many an access stores and
/// loads.
struct SharedOrder {
  layout::RepeatedLayout layout;
  unsigned storeVec, loadVec;
};

class Emitter {
public:
  Emitter(mlir::OpBuilder &b, mlir::Location loc, bool simd, int64_t numWarps)
      : b(b), loc(loc), simd(simd), numWarps(numWarps) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  const bool simd;
  const int64_t numWarps;
  /// Thread blocks of a program, a cluster where there are more than one.
  int64_t clusterBlocks = 1;
  /// Thread index in the block as i32 (GPU), set once per kernel.
  mlir::Value tid;
  /// Bytes of the widest access to global memory of one lane (GPU).
  int64_t maxVectorBytes = 16;
  /// GPU: as target::TargetInfo has it.
  bool maxXorsign = false;
  /// Most shared bytes that any exchange of the kernel needs.
  int64_t sharedBytes = 0;
  /// Where the next exchange may begin in the scratch area.
  int64_t nextShared = 0;
  /// Address of the shared scratch area (GPU).
  mlir::Value sharedBase;
  /// First block of the kernel, where constants go.
  mlir::Block *entry = nullptr;

  //===--- values ---------------------------------------------------------===//
  mlir::Type regType(mlir::Type elem) const;
  mlir::Value i32(int64_t v);
  mlir::Value i64(int64_t v);
  /// `attr` as a constant at the start of the kernel, each one once.
  mlir::Value constant(mlir::TypedAttr attr);
  /// A register filled with an integer (or float) constant of element type.
  mlir::Value splat(mlir::Type elem, int64_t v);
  mlir::Value splatF(double v);
  /// Scalar repeated over the lanes (the scalar itself on the GPU).
  mlir::Value fill(mlir::Value scalar);
  template <typename Op, typename... Args> auto make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }

  //===--- registers as operands and results of operations on words -------===//
  llvm::SmallVector<mlir::Value> unpack(mlir::Value vector);
  mlir::Value pack(llvm::ArrayRef<mlir::Value> regs, mlir::Type elem);

  /// CPU: memory that nobody looks at, of one element.
  mlir::Value elsewhere();
  /// CPU: whether all of these, pointers and numbers of bytes (i64), are
  /// multiples of kLineBytes.
  mlir::Value areLines(llvm::ArrayRef<mlir::Value> places);

  //===--- words ----------------------------------------------------------===//
  /// One code per register, from words of `group` codes of `bits` bits.
  llvm::SmallVector<mlir::Value> unpackCodes(llvm::ArrayRef<mlir::Value> words,
                                             int64_t group, int64_t bits);
  llvm::SmallVector<mlir::Value> packCodes(llvm::ArrayRef<mlir::Value> codes,
                                           int64_t group, int64_t bits);
  /// An order of the elements of a lane: what each bit of their number stands
  /// for, of which the lowest are the place in a word of `group`.
  struct WordOrder {
    llvm::ArrayRef<Coord> bits;
    int64_t group;
  };
  /// Words of elements of `bits` bits in another order, of the same bits. On a
  /// GPU a bit of the place in a word changes places with one of the word's
  /// number in one `prmt` a word.
  Registers repackWords(Registers words, WordOrder from, WordOrder to,
                        int64_t bits);

  //===--- coordinates ----------------------------------------------------===//
  /// Coordinate along `dim` held by register `reg`, as an i32 register.
  mlir::Value coordinate(const TileLayout &layout, int64_t dim, int64_t reg);
  /// GPU: the lane and warp part of the coordinate (i32).
  mlir::Value threadCoordinate(const TileLayout &layout, int64_t dim);

  //===--- lanes ----------------------------------------------------------===//
  /// GPU: whether a bit of the lane's number is set (i1).
  mlir::Value isUpper(int64_t mask);
  /// The register seen by lane ^ mask.
  mlir::Value shuffleXor(mlir::Value reg, int64_t mask);
  /// The register seen by the lane whose bits of `mask` are those of `lane`,
  /// and the others this lane's.
  mlir::Value shuffleWithin(mlir::Value reg, int64_t mask, int64_t lane);
  /// Of registers that differ in one bit of a place, and lanes that differ in
  /// another: those of the lower and of the upper place in `bit`, where lanes
  /// differ in what registers did. With `rotate` (CPU) lane bits as in
  /// ReduceStep.
  std::pair<mlir::Value, mlir::Value>
  exchangePlaces(mlir::Value a, mlir::Value c, int64_t bit, bool rotate);
  /// Combines two registers over lane bit `bit`: lanes whose bit is clear get
  /// a[lane] op a[lane ^ m], the others c[lane ^ m] op c[lane]. With `rotate`
  /// (CPU) lane bits as in ReduceStep.
  mlir::Value
  exchange(mlir::Value a, mlir::Value c, int64_t bit, bool rotate,
           llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>);
  /// CPU: lane l of the result is lane `index[l] % 16` of a (index < 16) or c.
  mlir::Value permute(mlir::Value a, mlir::Value c,
                      llvm::ArrayRef<int64_t> index);

  //===--- shared memory (GPU) --------------------------------------------===//
  void barrier();
  /// Which block of its cluster this is (i32).
  mlir::Value clusterRank();
  /// Reserves `bytes` of the scratch area until the next call and returns their
  /// address. Few bytes lie beside those before them, so that threads need not
  /// wait until all have read those (target::SpareBarriersPass).
  mlir::Value shared(int64_t bytes);

  //===--- operations on the registers of tiles ---------------------------===//
  mlir::FailureOr<Registers> load(const TileAccess &access);
  mlir::LogicalResult store(const TileAccess &access, Registers tile);
  /// GPU: copies a tile of global memory to shared memory, where it is after
  /// cp.async.wait_group, or at once if its rows are not aligned.
  mlir::LogicalResult copy(const TileAccess &from, const TileAccess &to);
  /// Stores one-byte scales through one of the orders of
  /// Layout/ScaleFactorLayout.h.
  mlir::LogicalResult storeScales(const TileAccess &access, Registers tile,
                                  quant::ScaleLayout order);
  /// Updates memory, of integers or, by their bits, of f32.
  void atomic(mlir::LLVM::AtomicBinOp kind, const TileAccess &access,
              Registers tile);
  /// `tile` with every element at or past `bound` (i64, relative to the tile)
  /// along dimension d replaced by zero.
  Registers zeroPast(Registers tile, mlir::Type elem, const TileLayout &layout,
                     llvm::ArrayRef<mlir::Value> bound);
  /// With `bits` amax takes the largest bits of |x|, where a NaN is above all.
  Registers reduce(Registers tile, const TileLayout &layout,
                   const ReducePlan &plan, quant::ReduceKind kind,
                   int64_t limit, int64_t axis, bool bits = false);
  /// The sum of each group of an ordered plan without warps: from the first
  /// element to the last, or by `halves`, upper half to lower, until one is
  /// left.
  Registers sumBlocks(Registers tile, const ReducePlan &plan, bool halves);
  /// Sums and differences of the elements whose places differ in each bit, one
  /// bit after the other.
  Registers butterflies(Registers tile, llvm::ArrayRef<PlaceBit> bits);
  /// CPU: whether any lane of any register is infinite, NaN or negative (i1).
  mlir::Value hasSpecial(Registers tile);
  /// The amax of 16-bit values, two in each word, without widening them first.
  /// `layout` is that of the words; the plan is that of words on a CPU, and
  /// that of single values on a GPU. The result is f32. `bits` is for CPUs.
  Registers reduceWords(Registers tile, mlir::Type elem,
                        const TileLayout &layout, const ReducePlan &plan,
                        int64_t axis, bool bits);
  mlir::FailureOr<Registers> convert(Registers tile, mlir::Type elem,
                                     const TileLayout &from,
                                     const TileLayout &to,
                                     const SharedOrder *order = nullptr);

private:
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  mlir::Value nowhere;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_EMIT_EMITTER_H
