//===- Movement.h - How a layout conversion moves a tile --------*- C++ -*-===//
//
// What has to move where when a tile changes its layout: analysed here for
// code generation and for the pass that plans shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_MOVEMENT_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_MOVEMENT_H

#include "Layouts/TileTypes.h"

namespace dither::transforms {

struct Place {
  int64_t reg, lane, warp;
};

/// Finds the place of an element in a layout whose images are single bits.
class Locator {
public:
  explicit Locator(const TileLayout &l);
  bool valid() const { return ok; }
  /// Copies are taken from the lane and warp that ask, where they hold one.
  std::optional<Place> find(const Coord &c, int64_t lane, int64_t warp) const;

private:
  struct Entry {
    int64_t dim, step;
    Place place;
  };
  void add(const Coord &c, Place p);
  const TileLayout &l;
  llvm::SmallVector<Entry> entries;
  int64_t freeLanes = 0, freeWarps = 0;
  bool ok = true;
};

/// Elements of a type below 32 bits move in words where both layouts pack the
/// same ones: the layouts of those units, 2^log2 elements each. Else they move
/// one by one, unpacked (log2 = 0).
struct Units {
  int64_t log2 = 0;
  TileLayout from, to;
};
Units unitsOf(mlir::Type elem, const TileLayout &from, const TileLayout &to);

/// Bytes of a word that moves.
constexpr unsigned kWordBytes = 4;

/// Bytes of a unit in shared memory: of a code alone as many as it has, where
/// each access is of one, and a word's else. Words of codes take fewer banks.
unsigned sharedUnitBytes(mlir::Type elem, const Units &units, unsigned storeVec,
                         unsigned loadVec);

/// A movement in two parts, each through half the shared memory: a bit of the
/// register index that selects the same half of the tile in both layouts.
struct Halves {
  int64_t fromBit, toBit;
  /// The layouts of either half.
  TileLayout from, to;
};
/// Nothing where the movement fits in shared memory, or has no such bit.
std::optional<Halves> halvesOf(const TileLayout &from, const TileLayout &to);

/// Where one register of the target comes from within a warp: an affine (XOR)
/// function of the lane.
struct ShuffleSource {
  int64_t lane0, reg0;
  llvm::SmallVector<int64_t> lane, reg;
};

/// How units get from `from` to `to` on a GPU.
struct Movement {
  enum Route { Registers, Shuffles, Shared } route;
  /// For Shuffles: one entry for each register of the target.
  llvm::SmallVector<ShuffleSource> sources;
};
/// Nothing if `from` is no layout that elements can be found in.
std::optional<Movement> planMovement(const TileLayout &from,
                                     const TileLayout &to);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_MOVEMENT_H
