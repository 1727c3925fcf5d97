//===- Gf2.cpp - Elimination over GF(2) -----------------------------------===//
#include "dither/Layout/Gf2.h"

namespace dither::layout {

Gf2Basis::Row Gf2Basis::reduce(Row row) const {
  for (unsigned bit = 64; bit-- > 0 && row.value;) {
    const Row &pivot = rowOfLeadingBit[bit];
    if (((row.value >> bit) & 1) && pivot.value) {
      row.value ^= pivot.value;
      row.columns ^= pivot.columns;
    }
  }
  return row;
}

bool Gf2Basis::add(uint64_t column) {
  uint64_t self = numColumns < 64 ? uint64_t(1) << numColumns : 0;
  ++numColumns;
  Row row = reduce({column, self});
  if (!row.value) {
    kernelSets.push_back(row.columns);
    return false;
  }
  rowOfLeadingBit[log2Floor(row.value)] = row;
  ++numIndependent;
  return true;
}

std::optional<uint64_t> Gf2Basis::solve(uint64_t target) const {
  Row row = reduce({target, 0});
  if (row.value)
    return std::nullopt;
  return row.columns;
}

unsigned gf2Rank(const std::vector<uint64_t> &vectors) {
  Gf2Basis basis;
  for (uint64_t v : vectors)
    basis.add(v);
  return basis.rank();
}

std::vector<uint64_t> gf2Intersection(const std::vector<uint64_t> &a,
                                      const std::vector<uint64_t> &b) {
  // Reduced bases first: then every dependency between the two lists names one
  // independent vector of the intersection, and 64 columns always suffice.
  auto reduced = [](const std::vector<uint64_t> &vectors) {
    Gf2Basis basis;
    std::vector<uint64_t> kept;
    for (uint64_t v : vectors)
      if (basis.add(v))
        kept.push_back(v);
    return kept;
  };
  std::vector<uint64_t> ra = reduced(a), rb = reduced(b);
  std::vector<uint64_t> result;
  Gf2Basis both;
  for (uint64_t v : ra)
    both.add(v);
  size_t known = 0;
  for (uint64_t v : rb) {
    both.add(v);
    if (both.kernel().size() == known)
      continue;
    known = both.kernel().size();
    uint64_t columns = both.kernel().back(), sum = 0;
    for (size_t i = 0; i < ra.size(); ++i)
      if ((columns >> i) & 1)
        sum ^= ra[i];
    result.push_back(sum);
  }
  return result;
}

} // namespace dither::layout
