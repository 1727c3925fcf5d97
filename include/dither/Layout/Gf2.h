//===- Gf2.h - Elimination over GF(2) ---------------------------*- C++ -*-===//
//
// Vectors over GF(2) of at most 64 components are bit masks; addition is XOR.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_GF2_H
#define DITHER_LAYOUT_GF2_H

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace dither::layout {

/// Columns added one by one and kept in echelon form. At most 64 columns.
class Gf2Basis {
public:
  /// Adds the next column. Returns false if it is a sum of earlier ones (zero
  /// included); it then joins the kernel instead of the basis.
  bool add(uint64_t column);

  unsigned rank() const { return numIndependent; }
  bool contains(uint64_t vector) const { return solve(vector).has_value(); }

  /// A set of columns (bit i = i-th column added) whose sum is `target`, or
  /// nothing. Dependent columns are never part of it.
  std::optional<uint64_t> solve(uint64_t target) const;

  /// For every dependent column the set of columns, itself included, that sum
  /// to zero. These sets are a basis of the kernel.
  const std::vector<uint64_t> &kernel() const { return kernelSets; }

private:
  struct Row {
    uint64_t value = 0;
    uint64_t columns = 0;
  };
  Row reduce(Row row) const;

  std::array<Row, 64> rowOfLeadingBit{};
  unsigned numIndependent = 0;
  unsigned numColumns = 0;
  std::vector<uint64_t> kernelSets;
};

/// Number of independent vectors.
unsigned gf2Rank(const std::vector<uint64_t> &vectors);

/// A basis of the intersection of the spans of `a` and `b`.
std::vector<uint64_t> gf2Intersection(const std::vector<uint64_t> &a,
                                      const std::vector<uint64_t> &b);

/// Number of bits, position of the only bit of a power of two.
inline bool isPowerOf2(uint64_t v) { return v && !(v & (v - 1)); }
inline unsigned log2Floor(uint64_t v) {
  unsigned bits = 0;
  while (v >>= 1)
    ++bits;
  return bits;
}

} // namespace dither::layout

#endif // DITHER_LAYOUT_GF2_H
