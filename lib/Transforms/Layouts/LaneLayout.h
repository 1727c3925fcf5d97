//===- LaneLayout.h - Tile layouts as code generation sees them -*- C++ -*-===//
//
// A working copy of layout::RepeatedLayout: the image of every register, lane
// and warp bit, ready to be permuted, sliced and reduced. Layout assignment and
// distribution derive every layout of a program with the functions below, so
// that both always agree on them.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_LANELAYOUT_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_LANELAYOUT_H

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Layout/RepeatedLayout.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace dither::transforms {

using Coord = llvm::SmallVector<int64_t, 2>;

/// Lanes of the CPU's only warp: the 32-bit lanes of a 512-bit register.
/// Narrower machines split the vectors; the bits do not change.
constexpr int64_t kSimdLanes = 16;
constexpr int64_t kWarpLanes = 32;

struct LaneLayout {
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

  /// Coordinate of the first element of a repeat.
  Coord repeatOrigin(int64_t repeat) const;
  /// Coordinate held by (reg, lane, warp). May lie outside a tile whose shape
  /// is not a multiple of the fragment: such registers are padding.
  Coord coord(int64_t regIdx, int64_t laneIdx = 0, int64_t warpIdx = 0) const;
  /// Number k of leading register bits that step 1, 2, 4, .. along the last
  /// dimension.
  int64_t contiguousBits() const;
  bool operator==(const LaneLayout &o) const {
    return reg == o.reg && lane == o.lane && warp == o.warp && base == o.base &&
           repeats == o.repeats;
  }
  bool operator!=(const LaneLayout &o) const { return !(*this == o); }
};

LaneLayout fromAttr(quant::LayoutAttr attr);
layout::RepeatedLayout toRepeated(const LaneLayout &layout);
quant::LayoutAttr toAttr(mlir::MLIRContext *ctx, const LaneLayout &layout);
/// The layout of a tile value; nothing if its type carries none.
std::optional<LaneLayout> layoutOf(mlir::Type type);
/// `type` with `layout` as its encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  const LaneLayout &layout);

/// Layout of `x` such that broadcasting it over groups of 2^shift[d] elements
/// (a whole dimension where `full[d]`) gives `layout` with no data movement.
LaneLayout sliceLayout(const LaneLayout &layout, llvm::ArrayRef<int64_t> shift,
                       llvm::ArrayRef<bool> full);
/// Register of the sliced layout that feeds register `regIdx` of `layout`.
int64_t sliceRegister(const LaneLayout &layout, llvm::ArrayRef<int64_t> shift,
                      llvm::ArrayRef<bool> full, int64_t regIdx);

LaneLayout transposeLayout(const LaneLayout &layout);
/// Unit dimensions inserted or dropped, as quant.reshape does.
LaneLayout reshapeLayout(const LaneLayout &layout, llvm::ArrayRef<int64_t> from,
                         llvm::ArrayRef<int64_t> to);
/// The same elements per lane with the registers that step along the last
/// dimension first, so that narrow types pack into full words.
LaneLayout contiguousFirst(const LaneLayout &layout);

/// The layout of units of 2^k elements along the last dimension, the leading
/// register bits of which are those elements.
LaneLayout unitLayout(const LaneLayout &layout, int64_t k);

/// One step of a reduction along an axis; steps run in order.
struct ReduceStep {
  enum Kind { Repeats, Reg, Lane, Warps } kind;
  int64_t bit = 0;
  /// Register bit that moves into the freed lane bit (exchange-reduce halves
  /// the registers instead of leaving copies); -1 for none.
  int64_t exchange = -1;
  /// The lane bit above moves down and the register bit takes its place: two
  /// shuffles that a CPU has as instructions.
  bool rotate = false;
};
/// Whether lanes exchange registers, and how: as a lane shuffle does, or as the
/// instructions of a CPU do.
enum class Exchange { None, Shuffle, Rotate };
struct ReducePlan {
  llvm::SmallVector<ReduceStep> steps;
  /// Element bits of the warp bits that the final step combines.
  llvm::SmallVector<int64_t> warpBits;
  /// Elements of a group, inside one repeat.
  int64_t extent = 1;
  LaneLayout result;
};
/// Plans the reduction of groups of `extent` consecutive elements along `axis`
/// (the whole axis if `full`). With `ordered` the element bits are combined
/// from the lowest to the highest, as sums require. Fails if a bit of the group
/// is not the image of exactly one register, lane or warp bit.
std::optional<ReducePlan> planReduce(const LaneLayout &layout, int64_t axis,
                                     int64_t extent, bool full, bool ordered,
                                     Exchange exchange);

/// Who holds the elements of a run of 2^n elements along an axis that differ in
/// bit 0, 1, .. n - 1 of their place: registers that differ in a bit, or lanes.
struct PlaceBit {
  enum Kind { Reg, Lane } kind;
  int64_t bit;
};
/// Nothing if a bit of the place is another one's, or a warp's.
std::optional<llvm::SmallVector<PlaceBit>>
placeBits(const LaneLayout &layout, int64_t axis, int64_t size);

/// Codes per 32-bit word for elements of `bits` bits: see architecture.md §2.
int64_t wordGroup(const LaneLayout &layout, int64_t bits);
/// Number of bits of an element type that is kept in words; 0 for the others.
int64_t wordBits(mlir::Type elem);
/// vector<R x T>, vector<R x 16 x T> or the word form of a tile type.
mlir::VectorType distributedType(mlir::RankedTensorType type, bool simd);

/// A reduction that a layout is made for. The fragment holds `extent` elements
/// along `axis`, padding included: a block, or the width P of a canonical sum,
/// which is also the most it holds then (`ordered`). Extent 0 for none.
struct Reduced {
  int64_t axis = 0, extent = 0;
  bool ordered = false;
};
/// Wide-access layout of a whole tile: `vec` contiguous elements per lane.
LaneLayout blockedLayout(llvm::ArrayRef<int64_t> shape, int64_t vec,
                         int64_t lanes, int64_t warps, Reduced reduced);
/// SIMD layout: `pack` contiguous elements per lane, then lanes along columns.
LaneLayout simdLayout(llvm::ArrayRef<int64_t> shape, int64_t pack,
                      Reduced reduced);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_LANELAYOUT_H
