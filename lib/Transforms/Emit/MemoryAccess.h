//===- MemoryAccess.h - Where the registers of a tile lie -------*- C++ -*-===//
//
// Addresses and bounds of the loads and stores of a tile, shared by the code
// for whole words and that for half bytes.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_EMIT_MEMORYACCESS_H
#define DITHER_LIB_TRANSFORMS_EMIT_MEMORYACCESS_H

#include "Emit/Emitter.h"

namespace dither::transforms {

/// Bytes of a row in which chunks of swizzled memory change places.
inline constexpr int64_t kSwizzledBytes = 512;

/// Address arithmetic and bounds of one tile access, shared by both targets.
class Access {
public:
  Access(Emitter &e, const TileAccess &a);

  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value stride, int64_t known);
  /// In the memory, the column that is `column` of the part of a block of a
  /// cluster, but for the first; `column` of another memref.
  mlir::Value columnOf(mlir::Value column);
  /// Offset in elements of the coordinate `dynamic + fixed` inside the tile.
  mlir::Value offset(llvm::ArrayRef<mlir::Value> dynamic, const Coord &fixed);
  /// Address of an element (of four bits: of its byte).
  mlir::Value pointer(mlir::Value elements);
  /// Bytes that the address of a run starting at a multiple of `step` columns
  /// is known to be aligned to.
  int64_t alignment(int64_t step) const;
  /// Does the layout reach past the tile (padding registers)?
  bool padded(int64_t d) const {
    return a.layout.base[d] * a.layout.repeats[d] > a.shape[d];
  }
  /// Extent left along d for a coordinate of the tile, as an i64 limit on that
  /// coordinate; nothing if no access can leave.
  mlir::Value limit(int64_t d);
  /// First coordinate of the tile along d that the memref has; nothing if that
  /// is certainly 0.
  mlir::Value first(int64_t d);
  /// Where rows are named: whether the memref has the one of a coordinate of
  /// the tile; on a GPU, of that coordinate of each thread.
  mlir::Value rowExists(const Coord &fixed);
  /// Whether a column of the tile is the last one of the memref: what follows
  /// in a byte is padding.
  mlir::Value isLast(mlir::Value column);

  Emitter &e;
  const TileAccess &a;
  int64_t bits, rank;
  mlir::Value origin;

private:
  void readRows();
  /// The row of the memref (i64) for each row of the tile.
  llvm::DenseMap<int64_t, mlir::Value> rows;
};

/// CPU: the registers of a tile in memory order: vectors of 16 units (words of
/// `group` elements, or values) such that unit u belongs to lane u / perLane.
class SimdAccess : public Access {
public:
  SimdAccess(Emitter &e, const TileAccess &a, int64_t group);

  /// Where an element lies in memory, as a coordinate.
  Coord place(Coord c) const;

  struct Run {
    int64_t unit, units; // position in the vector and length, in units
    Coord coord;         // of the first element
  };
  /// Maximal contiguous runs of vector `part` of the register group at `reg`,
  /// their lengths powers of two.
  llvm::SmallVector<Run> runs(int64_t reg, int64_t part) const;
  /// Statically outside the tile: padding registers.
  bool dead(const Run &r) const;
  /// Whether part of a run may not exist.
  bool isGuarded(const Run &r) const;
  /// Elements of a run that exist, as an i32 in [0, count]; nothing if all do.
  mlir::Value remaining(const Run &r);
  /// Elements of a run that lie before the memref, as an i32 in [0, count];
  /// nothing if there are none.
  mlir::Value skipped(const Run &r);

  /// Vectors in memory order from the registers `sources` of the lanes, and
  /// back: vector `part` of them, and register `j` of a lane.
  mlir::Value toMemoryOrder(llvm::ArrayRef<mlir::Value> sources, int64_t part);
  mlir::Value fromMemoryOrder(llvm::ArrayRef<mlir::Value> parts, int64_t j);

  int64_t contiguous, group, perLane, unitBits, copies = 0;
  llvm::SmallVector<mlir::Value> limits, firsts;
};

/// GPU: contiguous registers of a lane.
class LaneAccess : public Access {
public:
  LaneAccess(Emitter &e, const TileAccess &a);

  mlir::Value address(int64_t reg);
  /// Whether nothing can be past the memref but the ends of rows, and every
  /// lane may load where a row begins: it is there, and nothing writes it. Not
  /// so for rows that are much shorter than the tile.
  bool rowsBegin() const;
  /// As address() where `inside` (i1) is true; else where the row begins, which
  /// may be loaded whatever `inside` is. For what rowsBegin().
  mlir::Value addressOrFirst(int64_t reg, mlir::Value inside);
  /// As address(), where chunks change places.
  mlir::Value swizzledAddress(int64_t reg);
  /// Coordinate along the last dimension of the element `next` columns after
  /// that of a register.
  mlir::Value column(int64_t reg, int64_t next);
  /// True where the element (or piece) at `reg` exists; nothing if it always
  /// does.
  mlir::Value inside(int64_t reg);
  /// Whether a register holds nothing but padding in every lane.
  bool dead(int64_t reg) const;
  /// True in the one lane and warp of each set of copies that stores.
  mlir::Value owner();

  /// Elements of a word, and of an access.
  int64_t group, step, copies = 0;
  /// Whether the bits of registers and of threads are apart in every dimension.
  bool disjoint;
  llvm::SmallVector<mlir::Value> limits, firsts, thread;
};

//===--- four-bit codes, one by one (EmitNibbles.cpp)
//-----------------------===//

/// As Emitter::load and store, for tiles that begin or end anywhere, in any
/// layout. What shares a byte with the tile is kept.
mlir::FailureOr<Registers> loadNibbles(Emitter &e, const TileAccess &a);
mlir::LogicalResult storeNibbles(Emitter &e, const TileAccess &a,
                                 llvm::ArrayRef<mlir::Value> tile);
/// GPU: stores the code of a register, an i32.
void storeNibble(LaneAccess &s, int64_t reg, mlir::Value code);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_EMIT_MEMORYACCESS_H
