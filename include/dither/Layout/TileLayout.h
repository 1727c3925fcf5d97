//===- TileLayout.h - The layout of a tile, bit by bit ----------*- C++ -*-===//
//
// A RepeatedLayout over registers, lanes and warps with the image of every bit
// apart: ready to be permuted, sliced and reduced. Layout assignment and code
// generation derive every layout of a program with the functions below, so that
// both always agree on them.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LAYOUT_TILELAYOUT_H
#define DITHER_LAYOUT_TILELAYOUT_H

#include "dither/Layout/RepeatedLayout.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace dither::layout {

using Coord = llvm::SmallVector<int64_t, 2>;

/// The image of a bit that steps by `step` along `axis` and nothing else.
Coord stepAlong(int64_t rank, int64_t axis, int64_t step);

/// Whether a bit of the register, lane or warp index selects no element.
bool isZero(const Coord &image);

struct TileLayout {
  /// Image of bit i of the register, lane and warp index, one coordinate per
  /// tile dimension. A zero image means that the bit does not select an
  /// element: the lanes (warps) that differ in it hold copies.
  llvm::SmallVector<Coord> reg, lane, warp;
  /// Extent of the power-of-two fragment that the bits cover.
  Coord base;
  /// Affine repeats of the fragment; register index = repeat * 2^|reg| + bits,
  /// repeats counted row-major.
  Coord repeats;

  int64_t rank() const { return base.size(); }
  int64_t regsPerRepeat() const { return int64_t(1) << reg.size(); }
  int64_t numRepeats() const {
    int64_t n = 1;
    for (int64_t r : repeats)
      n *= r;
    return n;
  }
  int64_t numRegs() const { return numRepeats() * regsPerRepeat(); }
  int64_t numLanes() const { return int64_t(1) << lane.size(); }
  int64_t numWarps() const { return int64_t(1) << warp.size(); }

  /// That of a layout over registers, lanes and warps; other inputs are left
  /// out.
  explicit TileLayout(const RepeatedLayout &layout);
  TileLayout() = default;
  RepeatedLayout repeated() const;

  /// Coordinate of the first element of a repeat.
  Coord repeatOrigin(int64_t repeat) const;
  /// Coordinate held by (reg, lane, warp). May lie outside a tile whose shape
  /// is not a multiple of the fragment: such registers are padding.
  Coord coord(int64_t regIdx, int64_t laneIdx = 0, int64_t warpIdx = 0) const;
  /// Number k of leading register bits that step 1, 2, 4, .. along the last
  /// dimension.
  int64_t contiguousBits() const;
  bool operator==(const TileLayout &o) const {
    return reg == o.reg && lane == o.lane && warp == o.warp && base == o.base &&
           repeats == o.repeats;
  }
  bool operator!=(const TileLayout &o) const { return !(*this == o); }
};

/// Layout of `x` such that broadcasting it over groups of 2^shift[d] elements
/// (a whole dimension where `full[d]`) gives `layout` with no data movement.
TileLayout sliced(const TileLayout &layout, llvm::ArrayRef<int64_t> shift,
                  llvm::ArrayRef<bool> full);
/// Register of the sliced layout that feeds register `regIdx` of `layout`.
int64_t sliceRegister(const TileLayout &layout, llvm::ArrayRef<int64_t> shift,
                      llvm::ArrayRef<bool> full, int64_t regIdx);

TileLayout transposed(const TileLayout &layout);
/// Unit dimensions inserted or dropped, as quant.reshape does.
TileLayout reshaped(const TileLayout &layout, llvm::ArrayRef<int64_t> from,
                    llvm::ArrayRef<int64_t> to);
/// The same elements per lane with the registers that step along the last
/// dimension first, so that narrow types pack into full words.
TileLayout contiguousFirst(const TileLayout &layout);

/// The same registers with repeats as register bits where these number them
/// alike: `4 * 3` repeats of the last dimension become two bits and 3 repeats.
TileLayout foldedRepeats(const TileLayout &layout);

/// The same shape with the bits of dimension `d` handed out anew: registers
/// step the lowest, lanes the next ones, warps the highest. Elements that are
/// summed pair by pair from the lowest bit up then meet in registers first.
TileLayout lowestFirst(const TileLayout &layout, int64_t d);

/// The layout of units of 2^k elements along the last dimension, the leading
/// register bits of which are those elements.
TileLayout inUnits(const TileLayout &layout, int64_t k);

/// A reduction that a layout is made for. The fragment holds `extent` elements
/// along `axis`, padding included: a block, or the width P of a canonical sum,
/// which is also the most it holds then (`ordered`). Extent 0 for none.
struct Reduced {
  int64_t axis = 0, extent = 0;
  bool ordered = false;
};
/// Wide-access layout of a whole tile: `vec` contiguous elements per lane.
TileLayout blockedLayout(llvm::ArrayRef<int64_t> shape, int64_t vec,
                         int64_t lanes, int64_t warps, Reduced reduced);

} // namespace dither::layout

#endif // DITHER_LAYOUT_TILELAYOUT_H
