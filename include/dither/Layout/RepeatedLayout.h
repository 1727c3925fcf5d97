//===- RepeatedLayout.h - Linear tiles, affine repeats ----------*- C++ -*-===//
//
// Sizes such as 2880 or 7168 are no powers of two, and padding them to one
// wastes registers and bandwidth. A RepeatedLayout is a linear layout of a
// power-of-two tile that is repeated a whole number of times along each
// dimension; every repeat is held in further registers of the same lanes.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_REPEATEDLAYOUT_H
#define DITHER_LAYOUT_REPEATEDLAYOUT_H

#include "dither/Layout/LinearLayout.h"

namespace dither::layout {

class RepeatedLayout {
public:
  /// The layout of a rank-0 tensor held by one thread.
  RepeatedLayout() = default;
  /// `base` once.
  RepeatedLayout(LinearLayout base)
      : linear(std::move(base)), reps(linear.outRank(), 1) {}

  /// `base` repeats[d] times along each dimension d. Errors: repeats of another
  /// rank or not positive, more than 2^31 registers, coordinates above 2^32.
  static Result<RepeatedLayout> get(LinearLayout base,
                                    std::vector<int64_t> repeats);

  const LinearLayout &base() const { return linear; }
  const std::vector<int64_t> &repeats() const { return reps; }
  unsigned rank() const { return linear.outRank(); }
  /// Product of the repeats.
  int64_t numRepeats() const;
  /// base size * repeats, per dimension.
  std::vector<int64_t> shape() const;

  /// Registers per lane: numRepeats * 2^(register bits of the base). Register r
  /// belongs to repeat r >> bits, numbered row-major over the repeats (last
  /// dimension fastest).
  int64_t numRegs() const;
  int64_t numLanes() const { return int64_t(linear.inSize(InDim::Lane)); }
  int64_t numWarps() const { return int64_t(linear.inSize(InDim::Warp)); }
  /// Repeat index per dimension of the row-major repeat `rep`.
  std::vector<int64_t> repeatCoordinate(int64_t rep) const;
  /// The element held by a register of a lane of a warp.
  std::vector<int64_t> coordinate(int64_t reg, uint64_t lane,
                                  uint64_t warp) const;

  bool operator==(const RepeatedLayout &other) const {
    return linear == other.linear && reps == other.reps;
  }
  bool operator!=(const RepeatedLayout &other) const {
    return !(*this == other);
  }
  size_t hash() const;

  /// As LinearLayout, followed by ` rep (1,3)` if anything is repeated.
  std::string toString() const;
  static Result<RepeatedLayout> parse(std::string_view text);

private:
  LinearLayout linear;
  std::vector<int64_t> reps;
};

} // namespace dither::layout

template <> struct std::hash<dither::layout::RepeatedLayout> {
  size_t operator()(const dither::layout::RepeatedLayout &l) const {
    return l.hash();
  }
};

#endif // DITHER_LAYOUT_REPEATEDLAYOUT_H
