//===- SharedSwizzle.h - Conflict-free shared memory ------------*- C++ -*-===//
//
// A conversion between two register layouts goes through shared memory: the
// warps store with the layout `src` and load with the layout `dst`.
// chooseSwizzle picks the order of the elements in memory so that both sides
// use wide accesses without bank conflicts.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_SHAREDSWIZZLE_H
#define DITHER_LAYOUT_SHAREDSWIZZLE_H

#include "dither/Layout/RepeatedLayout.h"

namespace dither::layout {

/// How the registers of one side reach shared memory. Offsets count elements.
struct SharedAccess {
  /// Elements per lane and access; a power of two.
  unsigned vecElems = 1;
  /// Wavefronts of one warp-wide access, and what it takes without conflicts.
  unsigned wavefronts = 1, ideal = 1;
  unsigned conflicts() const { return wavefronts - ideal; }

  /// (lane, warp) to the lane's part of the offset within a memory tile (rank
  /// 1). It leaves the low log2(vecElems) bits alone.
  LinearLayout lanes;
  /// One warp-wide access: the registers in the order of their offsets. Element
  /// k is at tile * size + ((offset ^ lanes(lane, warp)) + k) for memory tiles
  /// of so many elements.
  struct Access {
    int64_t tile;
    uint32_t offset;
    std::vector<int64_t> regs;
  };
  std::vector<Access> accesses;
  /// Per register the register that holds the same element and takes part in an
  /// access (itself, unless the layout holds elements in several registers).
  std::vector<int64_t> representative;
};

struct SharedSwizzle {
  /// offset to tensor coordinates: an XOR-swizzled tile, repeated row-major;
  /// repeats follow one another in memory.
  RepeatedLayout shared;
  SharedAccess store, load;
};

/// Chooses the order in memory of elements of `unitBytes` (1, 2 or 4) bytes,
/// minimizing the wavefronts and then the instructions of storing all of `src`
/// and loading all of `dst` with accesses of up to maxAccessBytes (a power of
/// two up to 16). Both have input dimensions reg, lane, warp and the same
/// shape. Errors: shapes differ, src does not hold every element, bad sizes.
Result<SharedSwizzle> chooseSwizzle(const RepeatedLayout &src,
                                    const RepeatedLayout &dst,
                                    unsigned unitBytes,
                                    unsigned maxAccessBytes = 16);

/// The accesses of `regs` to a given memory order with vectors of vecElems
/// elements. `shared` has one input dimension, offset, an invertible base whose
/// sizes are multiples of those of regs, and the same shape. Errors: otherwise,
/// or if vecElems registers are not contiguous in memory for every lane.
Result<SharedAccess> describeAccess(const RepeatedLayout &regs,
                                    const RepeatedLayout &shared,
                                    unsigned unitBytes, unsigned vecElems);

} // namespace dither::layout

#endif // DITHER_LAYOUT_SHAREDSWIZZLE_H
