//===- RandomLayout.h - Random layouts for property tests -------*- C++ -*-===//
#ifndef DITHER_TEST_UNIT_LAYOUT_RANDOMLAYOUT_H
#define DITHER_TEST_UNIT_LAYOUT_RANDOMLAYOUT_H

#include "dither/Layout/LinearLayout.h"

#include <algorithm>
#include <random>

namespace dither::layout {

using Rng = std::mt19937_64;

inline unsigned below(Rng &rng, unsigned n) { return unsigned(rng() % n); }

/// Bases drawn from all vectors: swizzles, duplicates and zeros included.
inline LinearLayout randomLayout(Rng &rng, const std::vector<InDim> &ins,
                                 unsigned maxInBits,
                                 const std::vector<uint32_t> &sizes) {
  std::vector<LinearLayout::Input> inputs;
  for (InDim dim : ins) {
    inputs.push_back({dim, {}});
    for (unsigned bits = below(rng, maxInBits + 1); bits-- > 0;) {
      LinearLayout::Coord basis;
      for (uint32_t size : sizes)
        basis.push_back(below(rng, size));
      inputs.back().bases.push_back(basis);
    }
  }
  return *LinearLayout::get(inputs, sizes);
}

/// An invertible layout: a random invertible matrix, its columns dealt to the
/// inputs.
inline LinearLayout randomInvertible(Rng &rng, const std::vector<InDim> &ins,
                                     const std::vector<uint32_t> &sizes) {
  LinearLayout shape = *LinearLayout::empty(sizes);
  unsigned bits = shape.totalOutBits();
  std::vector<uint64_t> columns;
  for (unsigned i = 0; i < bits; ++i)
    columns.push_back(uint64_t(1) << i);
  std::shuffle(columns.begin(), columns.end(), rng);
  for (unsigned n = 0; bits > 1 && n < 4 * bits; ++n) {
    unsigned a = below(rng, bits), b = below(rng, bits);
    if (a != b)
      columns[a] ^= columns[b];
  }
  std::vector<LinearLayout::Input> inputs;
  for (InDim dim : ins)
    inputs.push_back({dim, {}});
  for (uint64_t column : columns)
    inputs[below(rng, unsigned(inputs.size()))].bases.push_back(
        shape.unflatten(column));
  return *LinearLayout::get(inputs, sizes);
}

/// As randomInvertible but every basis is one coordinate bit, plus `zeros`
/// broadcast bits: what tile layouts look like.
inline LinearLayout randomPermutation(Rng &rng, const std::vector<InDim> &ins,
                                      const std::vector<uint32_t> &sizes,
                                      unsigned zeros = 0) {
  LinearLayout shape = *LinearLayout::empty(sizes);
  std::vector<uint64_t> columns(zeros, 0);
  for (unsigned i = 0; i < shape.totalOutBits(); ++i)
    columns.push_back(uint64_t(1) << i);
  std::shuffle(columns.begin(), columns.end(), rng);
  std::vector<LinearLayout::Input> inputs;
  for (InDim dim : ins)
    inputs.push_back({dim, {}});
  for (uint64_t column : columns)
    inputs[below(rng, unsigned(inputs.size()))].bases.push_back(
        shape.unflatten(column));
  return *LinearLayout::get(inputs, sizes);
}

inline std::vector<uint32_t> randomSizes(Rng &rng, unsigned rank,
                                         unsigned maxBits) {
  std::vector<uint32_t> sizes;
  for (unsigned d = 0; d < rank; ++d)
    sizes.push_back(uint32_t(1) << below(rng, maxBits + 1));
  return sizes;
}

} // namespace dither::layout

#endif // DITHER_TEST_UNIT_LAYOUT_RANDOMLAYOUT_H
