//===- LinearLayout.h - Linear maps over GF(2) ------------------*- C++ -*-===//
//
// A LinearLayout says which tensor element lives where: it maps hardware
// coordinates (register, lane, warp, or an offset in memory) to the coordinates
// of a tensor tile whose sizes are powers of two. The map is linear over GF(2):
// every bit of the input has an image, its *basis vector*, and the image of an
// input is the XOR of the basis vectors of its set bits. A zero basis vector is
// a broadcast (the bit does not change which element is held), a permutation of
// unit vectors is a transpose, anything else is a swizzle.
//
// The direction is hardware to tensor because one element may be held in
// several places. Example, a 2x8 tile held by 4 lanes with 4 registers each:
//
//   (2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)]
//
// lane 3, register 2 holds element (1, 4^2) = (1, 6).
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_LINEARLAYOUT_H
#define DITHER_LAYOUT_LINEARLAYOUT_H

#include "dither/Layout/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dither::layout {

/// Names of input dimensions. Values from FirstGeneric on are in0, in1, ...:
/// the inputs of inverses, numbered like the output dimensions they come from.
enum class InDim : uint16_t { Reg, Lane, Warp, Offset, FirstGeneric };

constexpr InDim genericDim(unsigned index) {
  return InDim(unsigned(InDim::FirstGeneric) + index);
}

/// reg, lane, warp, offset, in0, in1, ...
std::string toString(InDim dim);

class LinearLayout {
public:
  /// Coordinates, one per output dimension.
  using Coord = std::vector<uint32_t>;
  /// One input dimension with the images of its bits, bit 0 first.
  struct Input {
    InDim dim;
    std::vector<Coord> bases;
  };

  /// The layout without inputs of a rank-0 tensor.
  LinearLayout() = default;

  /// A layout from explicit bases. Output sizes are powers of two; the order of
  /// `inputs` is kept and matters to invert. Errors: a size that
  /// is no power of two, a basis of the wrong rank or outside the output, a
  /// repeated input dimension, more than 31 bits of one dimension or 62 of all
  /// inputs or outputs.
  static Result<LinearLayout> get(const std::vector<Input> &inputs,
                                  const std::vector<uint32_t> &outSizes);

  /// No input bits, an output of these sizes (only its element 0 is held).
  static Result<LinearLayout> empty(const std::vector<uint32_t> &outSizes);

  // -- Shape ------------------------------------------------------------------

  unsigned outRank() const { return unsigned(sizes.size()); }
  const std::vector<uint32_t> &outSizes() const { return sizes; }
  uint32_t outSize(unsigned d) const { return d < sizes.size() ? sizes[d] : 1; }
  unsigned outBits(unsigned d) const;
  unsigned totalOutBits() const;

  /// Input dimensions in order. A dimension with no bits may be listed.
  std::vector<InDim> inDims() const;
  bool hasInDim(InDim dim) const { return find(dim) != nullptr; }
  /// Number of bits (0 if there is no such dimension) and of values.
  unsigned inBits(InDim dim) const;
  uint64_t inSize(InDim dim) const { return uint64_t(1) << inBits(dim); }
  unsigned totalInBits() const;

  // -- Bases and application --------------------------------------------------

  /// Image of one input bit; zero for a bit that does not exist.
  Coord basis(InDim dim, unsigned bit) const;
  /// The same packed into one word: the row-major index of the coordinate, so
  /// the last dimension has the low bits.
  uint64_t flatBasis(InDim dim, unsigned bit) const;
  std::vector<uint64_t> flatBases(InDim dim) const;
  uint64_t flatten(const Coord &coord) const;
  Coord unflatten(uint64_t flat) const;

  /// Coordinates held at the input; dimensions not named are 0, bits beyond a
  /// dimension's size are ignored.
  Coord apply(const std::vector<std::pair<InDim, uint64_t>> &in) const;
  /// The same with one value per input dimension, in their order.
  Coord applyInOrder(const std::vector<uint64_t> &in) const;

  // -- Predicates -------------------------------------------------------------

  /// Number of independent basis vectors.
  unsigned rank() const;
  /// Every element is held somewhere.
  bool isSurjective() const { return rank() == totalOutBits(); }
  /// No element is held twice.
  bool isInjective() const { return rank() == totalInBits(); }
  bool isInvertible() const { return isSurjective() && isInjective(); }
  /// Bits of each input dimension, in order, that hold nothing new: their basis
  /// is zero or depends on the bits before them (of this and the earlier
  /// dimensions).
  std::vector<std::pair<InDim, uint64_t>> freeVariableMasks() const;
  /// Number of leading bits of `dim` that are the unit steps 1, 2, 4, .. of the
  /// last output dimension: 2^n elements are contiguous in a row-major tensor.
  unsigned numContiguous(InDim dim = InDim::Reg) const;

  // -- Inverses ---------------------------------------------------------------

  /// Inverse of an invertible layout: inputs in0, in1, .. are this layout's
  /// output dimensions, outputs are its input dimensions in order.
  Result<LinearLayout> invert() const;
  /// Right inverse of a surjective layout: of all places that hold an element,
  /// the one that uses no free variable (see freeVariableMasks).
  Result<LinearLayout> pseudoinvert() const;

  // -- Identity and text
  // --------------------------------------------------------

  /// Same inputs in the same order, same sizes, same bases.
  bool operator==(const LinearLayout &other) const;
  bool operator!=(const LinearLayout &other) const { return !(*this == other); }
  size_t hash() const;

  /// `(2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)] warp=[]`: sizes, then inputs;
  /// RepeatedLayout::parse reads it.
  std::string toString() const;

private:
  struct In {
    InDim dim;
    std::vector<uint64_t> bases; // packed as by flatBasis
  };
  const In *find(InDim dim) const;
  /// Position of dimension d's lowest bit in a packed coordinate.
  unsigned outShift(unsigned d) const;
  static Result<LinearLayout> make(std::vector<In> ins,
                                   std::vector<uint32_t> sizes);
  std::vector<uint64_t> allBases() const;
  /// Splits a mask of flattened input bits over the input dimensions.
  Coord splitIns(uint64_t flat) const;
  std::vector<uint32_t> inSizes() const;

  std::vector<In> ins;
  std::vector<uint32_t> sizes;
};

} // namespace dither::layout

template <> struct std::hash<dither::layout::LinearLayout> {
  size_t operator()(const dither::layout::LinearLayout &l) const {
    return l.hash();
  }
};

#endif // DITHER_LAYOUT_LINEARLAYOUT_H
