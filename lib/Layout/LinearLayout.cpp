//===- LinearLayout.cpp - Construction, application, predicates -----------===//
#include "dither/Layout/LinearLayout.h"

#include "dither/Layout/Gf2.h"

#include <algorithm>

namespace dither::layout {

static constexpr unsigned maxBits = 62;

std::string toString(InDim dim) {
  switch (dim) {
  case InDim::Reg:
    return "reg";
  case InDim::Lane:
    return "lane";
  case InDim::Warp:
    return "warp";
  case InDim::Offset:
    return "offset";
  default:
    return "in" + std::to_string(unsigned(dim) - unsigned(InDim::FirstGeneric));
  }
}

Result<LinearLayout> LinearLayout::make(std::vector<In> ins,
                                        std::vector<uint32_t> sizes) {
  unsigned outBits = 0, inBits = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!isPowerOf2(sizes[d]))
      return Error{"size " + std::to_string(sizes[d]) +
                   " of output dimension " + std::to_string(d) +
                   " is not a power of two"};
    outBits += log2Floor(sizes[d]);
  }
  for (size_t i = 0; i < ins.size(); ++i) {
    if (ins[i].bases.size() > 31)
      return Error{"input dimension " + layout::toString(ins[i].dim) + " has " +
                   std::to_string(ins[i].bases.size()) +
                   " bits, expected at most 31"};
    inBits += unsigned(ins[i].bases.size());
    for (size_t j = 0; j < i; ++j)
      if (ins[j].dim == ins[i].dim)
        return Error{"input dimension " + layout::toString(ins[i].dim) +
                     " is given twice"};
  }
  if (outBits > maxBits || inBits > maxBits)
    return Error{"layout has " + std::to_string(inBits) + " input and " +
                 std::to_string(outBits) + " output bits, expected at most " +
                 std::to_string(maxBits)};
  LinearLayout l;
  l.ins = std::move(ins);
  l.sizes = std::move(sizes);
  return l;
}

Result<LinearLayout> LinearLayout::get(const std::vector<Input> &inputs,
                                       const std::vector<uint32_t> &outSizes) {
  std::vector<In> ins;
  for (const Input &input : inputs)
    ins.push_back({input.dim, std::vector<uint64_t>(input.bases.size(), 0)});
  Result<LinearLayout> l = make(std::move(ins), outSizes);
  if (!l)
    return l;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t bit = 0; bit < inputs[i].bases.size(); ++bit) {
      const Coord &basis = inputs[i].bases[bit];
      auto where = [&] {
        return "basis of bit " + std::to_string(bit) + " of " +
               layout::toString(inputs[i].dim);
      };
      if (basis.size() != outSizes.size())
        return Error{where() + " has " + std::to_string(basis.size()) +
                     " coordinates, expected " +
                     std::to_string(outSizes.size())};
      for (size_t d = 0; d < basis.size(); ++d)
        if (basis[d] >= outSizes[d])
          return Error{where() + " has coordinate " + std::to_string(basis[d]) +
                       " in dimension " + std::to_string(d) +
                       ", expected less than " + std::to_string(outSizes[d])};
      l->ins[i].bases[bit] = l->flatten(basis);
    }
  }
  return l;
}

Result<LinearLayout>
LinearLayout::empty(const std::vector<uint32_t> &outSizes) {
  return make({}, outSizes);
}

// -- Shape --------------------------------------------------------------------

unsigned LinearLayout::outBits(unsigned d) const {
  return log2Floor(outSize(d));
}

unsigned LinearLayout::totalOutBits() const {
  unsigned bits = 0;
  for (uint32_t size : sizes)
    bits += log2Floor(size);
  return bits;
}

std::vector<InDim> LinearLayout::inDims() const {
  std::vector<InDim> dims;
  for (const In &in : ins)
    dims.push_back(in.dim);
  return dims;
}

const LinearLayout::In *LinearLayout::find(InDim dim) const {
  for (const In &in : ins)
    if (in.dim == dim)
      return &in;
  return nullptr;
}

unsigned LinearLayout::inBits(InDim dim) const {
  const In *in = find(dim);
  return in ? unsigned(in->bases.size()) : 0;
}

unsigned LinearLayout::totalInBits() const {
  unsigned bits = 0;
  for (const In &in : ins)
    bits += unsigned(in.bases.size());
  return bits;
}

unsigned LinearLayout::outShift(unsigned d) const {
  unsigned shift = 0;
  for (unsigned i = d + 1; i < sizes.size(); ++i)
    shift += log2Floor(sizes[i]);
  return shift;
}

// -- Bases and application
// ------------------------------------------------------

uint64_t LinearLayout::flatten(const Coord &coord) const {
  uint64_t flat = 0;
  for (unsigned d = 0; d < sizes.size(); ++d) {
    uint64_t c = d < coord.size() ? coord[d] : 0;
    flat |= (c & (sizes[d] - 1)) << outShift(d);
  }
  return flat;
}

LinearLayout::Coord LinearLayout::unflatten(uint64_t flat) const {
  Coord coord(sizes.size());
  for (unsigned d = 0; d < sizes.size(); ++d)
    coord[d] = uint32_t(flat >> outShift(d)) & (sizes[d] - 1);
  return coord;
}

uint64_t LinearLayout::flatBasis(InDim dim, unsigned bit) const {
  const In *in = find(dim);
  return in && bit < in->bases.size() ? in->bases[bit] : 0;
}

std::vector<uint64_t> LinearLayout::flatBases(InDim dim) const {
  const In *in = find(dim);
  return in ? in->bases : std::vector<uint64_t>();
}

LinearLayout::Coord LinearLayout::basis(InDim dim, unsigned bit) const {
  return unflatten(flatBasis(dim, bit));
}

std::vector<uint64_t> LinearLayout::allBases() const {
  std::vector<uint64_t> all;
  for (const In &in : ins)
    all.insert(all.end(), in.bases.begin(), in.bases.end());
  return all;
}

static uint64_t xorOfBits(const std::vector<uint64_t> &bases, uint64_t bits) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bases.size(); ++i)
    if ((bits >> i) & 1)
      sum ^= bases[i];
  return sum;
}

LinearLayout::Coord
LinearLayout::apply(const std::vector<std::pair<InDim, uint64_t>> &in) const {
  uint64_t sum = 0;
  for (const auto &[dim, value] : in)
    if (const In *input = find(dim))
      sum ^= xorOfBits(input->bases, value);
  return unflatten(sum);
}

LinearLayout::Coord
LinearLayout::applyInOrder(const std::vector<uint64_t> &in) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < ins.size() && i < in.size(); ++i)
    sum ^= xorOfBits(ins[i].bases, in[i]);
  return unflatten(sum);
}

// -- Predicates
// -----------------------------------------------------------------

unsigned LinearLayout::rank() const { return gf2Rank(allBases()); }

std::vector<std::pair<InDim, uint64_t>>
LinearLayout::freeVariableMasks() const {
  std::vector<std::pair<InDim, uint64_t>> masks;
  Gf2Basis basis;
  for (const In &in : ins) {
    uint64_t mask = 0;
    for (size_t bit = 0; bit < in.bases.size(); ++bit)
      if (!basis.add(in.bases[bit]))
        mask |= uint64_t(1) << bit;
    masks.emplace_back(in.dim, mask);
  }
  return masks;
}

unsigned LinearLayout::numContiguous(InDim dim) const {
  if (sizes.empty())
    return 0;
  unsigned bits = 0, limit = log2Floor(sizes.back());
  while (bits < limit && bits < inBits(dim) &&
         flatBasis(dim, bits) == uint64_t(1) << bits)
    ++bits;
  return bits;
}

bool LinearLayout::operator==(const LinearLayout &other) const {
  return sizes == other.sizes &&
         std::equal(ins.begin(), ins.end(), other.ins.begin(), other.ins.end(),
                    [](const In &a, const In &b) {
                      return a.dim == b.dim && a.bases == b.bases;
                    });
}

size_t LinearLayout::hash() const {
  uint64_t h = 0xcbf29ce484222325u; // FNV-1a over words
  auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x100000001b3u ^ (h >> 32); };
  for (uint32_t size : sizes)
    mix(size);
  for (const In &in : ins) {
    mix(uint64_t(in.dim) << 32 | in.bases.size());
    for (uint64_t basis : in.bases)
      mix(basis);
  }
  return size_t(h);
}

} // namespace dither::layout
