//===- LinearLayoutAlgebra.cpp - Layouts from layouts ---------------------===//
#include "dither/Layout/Gf2.h"
#include "dither/Layout/LinearLayout.h"

namespace dither::layout {

static std::string sizesText(const std::vector<uint32_t> &sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? "," : "") + std::to_string(sizes[i]);
  return text + ")";
}

/// `mask` without the bits at and above `bits`.
static uint64_t lowBits(uint64_t mask, unsigned bits) {
  return bits >= 64 ? mask : mask & ((uint64_t(1) << bits) - 1);
}

Result<LinearLayout> LinearLayout::product(const LinearLayout &outer) const {
  if (outRank() != outer.outRank())
    return Error{"product of layouts of rank " + std::to_string(outRank()) +
                 " and " + std::to_string(outer.outRank()) +
                 ", expected equal ranks"};
  std::vector<uint32_t> newSizes(sizes);
  for (unsigned d = 0; d < sizes.size(); ++d) {
    if (outBits(d) + outer.outBits(d) > 31)
      return Error{"product has more than 2^31 values in output dimension " +
                   std::to_string(d)};
    newSizes[d] *= outer.sizes[d];
  }
  Result<LinearLayout> target = make({}, newSizes);
  if (!target)
    return target;
  auto embed = [&](const LinearLayout &from, uint64_t flat, bool high) {
    Coord coord = from.unflatten(flat);
    for (unsigned d = 0; high && d < coord.size(); ++d)
      coord[d] <<= outBits(d);
    return target->flatten(coord);
  };
  std::vector<In> newIns;
  for (const In &in : ins) {
    newIns.push_back({in.dim, {}});
    for (uint64_t basis : in.bases)
      newIns.back().bases.push_back(embed(*this, basis, false));
  }
  for (const In &in : outer.ins) {
    In *into = nullptr;
    for (In &candidate : newIns)
      if (candidate.dim == in.dim)
        into = &candidate;
    if (!into)
      into = &newIns.emplace_back(In{in.dim, {}});
    for (uint64_t basis : in.bases)
      into->bases.push_back(embed(outer, basis, true));
  }
  return make(std::move(newIns), std::move(newSizes));
}

Result<LinearLayout> LinearLayout::divideLeft(const LinearLayout &inner) const {
  auto no = [&](const std::string &why) {
    return Error{"layout " + toString() + " is not divisible by " +
                 inner.toString() + ": " + why};
  };
  if (outRank() != inner.outRank())
    return no("ranks differ");
  std::vector<uint32_t> newSizes(sizes);
  for (unsigned d = 0; d < sizes.size(); ++d) {
    if (inner.sizes[d] > sizes[d])
      return no("output dimension " + std::to_string(d) + " is too small");
    newSizes[d] /= inner.sizes[d];
  }
  for (const In &in : inner.ins)
    if (!hasInDim(in.dim))
      return no("no input dimension " + layout::toString(in.dim));
  Result<LinearLayout> target = make({}, newSizes);
  if (!target)
    return target;
  std::vector<In> newIns;
  for (const In &in : ins) {
    unsigned skip = inner.inBits(in.dim);
    if (skip > in.bases.size())
      return no("too few bits of " + layout::toString(in.dim));
    newIns.push_back({in.dim, {}});
    for (unsigned bit = 0; bit < in.bases.size(); ++bit) {
      Coord coord = unflatten(in.bases[bit]);
      if (bit < skip) {
        if (coord != inner.basis(in.dim, bit))
          return no("bit " + std::to_string(bit) + " of " +
                    layout::toString(in.dim) + " differs");
        continue;
      }
      for (unsigned d = 0; d < coord.size(); ++d) {
        if (coord[d] & (inner.sizes[d] - 1))
          return no("bit " + std::to_string(bit) + " of " +
                    layout::toString(in.dim) + " steps within the divisor");
        coord[d] >>= inner.outBits(d);
      }
      newIns.back().bases.push_back(target->flatten(coord));
    }
  }
  return make(std::move(newIns), std::move(newSizes));
}

Result<LinearLayout> LinearLayout::concatIns(const LinearLayout &other) const {
  if (sizes != other.sizes)
    return Error{"joined inputs go to outputs of sizes " + sizesText(sizes) +
                 " and " + sizesText(other.sizes) + ", expected the same"};
  std::vector<In> newIns = ins;
  newIns.insert(newIns.end(), other.ins.begin(), other.ins.end());
  return make(std::move(newIns), sizes);
}

Result<LinearLayout> LinearLayout::concatOuts(const LinearLayout &other) const {
  if (ins.size() != other.ins.size())
    return Error{"joined outputs have " + std::to_string(ins.size()) + " and " +
                 std::to_string(other.ins.size()) +
                 " input dimensions, expected the same"};
  std::vector<uint32_t> newSizes = sizes;
  newSizes.insert(newSizes.end(), other.sizes.begin(), other.sizes.end());
  if (totalOutBits() + other.totalOutBits() > 62)
    return Error{"joined outputs have more than 62 bits"};
  std::vector<In> newIns = ins;
  for (In &in : newIns) {
    const In *theirs = other.find(in.dim);
    if (!theirs || theirs->bases.size() != in.bases.size())
      return Error{"joined outputs differ in input dimension " +
                   layout::toString(in.dim)};
    for (size_t bit = 0; bit < in.bases.size(); ++bit)
      in.bases[bit] =
          in.bases[bit] << other.totalOutBits() | theirs->bases[bit];
  }
  return make(std::move(newIns), std::move(newSizes));
}

Result<LinearLayout> LinearLayout::compose(const LinearLayout &next) const {
  if (outRank() != next.ins.size())
    return Error{"composition feeds " + std::to_string(outRank()) +
                 " output dimensions to " + std::to_string(next.ins.size()) +
                 " input dimensions"};
  for (unsigned d = 0; d < outRank(); ++d)
    if (outBits(d) > next.ins[d].bases.size())
      return Error{"composition feeds output dimension " + std::to_string(d) +
                   " of size " + std::to_string(sizes[d]) + " to input " +
                   layout::toString(next.ins[d].dim) + " of size " +
                   std::to_string(next.inSize(next.ins[d].dim))};
  std::vector<In> newIns = ins;
  for (In &in : newIns)
    for (uint64_t &basis : in.bases) {
      Coord coord = unflatten(basis);
      basis = next.flatten(
          next.applyInOrder(std::vector<uint64_t>(coord.begin(), coord.end())));
    }
  return make(std::move(newIns), next.sizes);
}

std::vector<uint32_t> LinearLayout::inSizes() const {
  std::vector<uint32_t> result;
  for (const In &in : ins)
    result.push_back(uint32_t(1) << in.bases.size());
  return result;
}

LinearLayout::Coord LinearLayout::splitIns(uint64_t flat) const {
  Coord coord;
  for (const In &in : ins) {
    coord.push_back(uint32_t(lowBits(flat, unsigned(in.bases.size()))));
    flat >>= in.bases.size();
  }
  return coord;
}

Result<LinearLayout> LinearLayout::invert() const {
  if (!isInvertible())
    return Error{"layout " + toString() + " is not invertible: rank " +
                 std::to_string(rank()) + " of " +
                 std::to_string(totalInBits()) + " input and " +
                 std::to_string(totalOutBits()) + " output bits"};
  return pseudoinvert();
}

Result<LinearLayout> LinearLayout::pseudoinvert() const {
  Gf2Basis columns;
  for (uint64_t basis : allBases())
    columns.add(basis);
  if (columns.rank() != totalOutBits())
    return Error{"layout " + toString() + " holds 2^" +
                 std::to_string(columns.rank()) + " of 2^" +
                 std::to_string(totalOutBits()) + " elements, expected all"};
  Result<LinearLayout> target = make({}, inSizes());
  if (!target)
    return target;
  std::vector<In> newIns;
  for (unsigned d = 0; d < outRank(); ++d) {
    newIns.push_back({genericDim(d), {}});
    for (unsigned bit = 0; bit < outBits(d); ++bit)
      newIns.back().bases.push_back(target->flatten(
          splitIns(*columns.solve(uint64_t(1) << (outShift(d) + bit)))));
  }
  return make(std::move(newIns), target->sizes);
}

Result<LinearLayout>
LinearLayout::invertAndCompose(const LinearLayout &writer,
                               const LinearLayout &reader) {
  if (writer.sizes != reader.sizes)
    return Error{"writer has shape " + sizesText(writer.sizes) +
                 " and reader " + sizesText(reader.sizes) +
                 ", expected the same"};
  Gf2Basis columns;
  for (uint64_t basis : writer.allBases())
    columns.add(basis);
  Result<LinearLayout> target = make({}, writer.inSizes());
  if (!target)
    return target;
  std::vector<In> newIns;
  for (const In &in : reader.ins) {
    newIns.push_back({in.dim, {}});
    for (unsigned bit = 0; bit < in.bases.size(); ++bit) {
      std::optional<uint64_t> source = columns.solve(in.bases[bit]);
      if (!source)
        return Error{"the element that bit " + std::to_string(bit) + " of " +
                     layout::toString(in.dim) +
                     " reads is not held by the writer " + writer.toString()};
      Coord coord = writer.splitIns(*source);
      // Staying in place is always at least as good as moving.
      for (unsigned i = 0; i < writer.ins.size(); ++i)
        if (writer.ins[i].dim == in.dim && bit < writer.ins[i].bases.size() &&
            writer.ins[i].bases[bit] == in.bases[bit]) {
          coord.assign(coord.size(), 0);
          coord[i] = uint32_t(1) << bit;
        }
      newIns.back().bases.push_back(target->flatten(coord));
    }
  }
  return make(std::move(newIns), target->sizes);
}

Result<LinearLayout>
LinearLayout::sublayout(const std::vector<InDim> &wantedIns,
                        const std::vector<unsigned> &wantedOuts) const {
  std::vector<uint32_t> newSizes;
  for (unsigned d : wantedOuts) {
    if (d >= sizes.size())
      return Error{"no output dimension " + std::to_string(d) +
                   " in a layout of rank " + std::to_string(outRank())};
    newSizes.push_back(sizes[d]);
  }
  Result<LinearLayout> target = make({}, newSizes);
  if (!target)
    return target;
  std::vector<In> newIns;
  for (InDim dim : wantedIns) {
    const In *in = find(dim);
    if (!in)
      return Error{"no input dimension " + layout::toString(dim) +
                   " in layout " + toString()};
    newIns.push_back({dim, {}});
    for (uint64_t basis : in->bases) {
      Coord coord = unflatten(basis), picked;
      for (unsigned d : wantedOuts)
        picked.push_back(coord[d]);
      newIns.back().bases.push_back(target->flatten(picked));
    }
  }
  return make(std::move(newIns), std::move(newSizes));
}

Result<LinearLayout> LinearLayout::rename(InDim from, InDim to) const {
  if (!hasInDim(from))
    return Error{"no input dimension " + layout::toString(from) +
                 " in layout " + toString()};
  std::vector<In> newIns = ins;
  for (In &in : newIns)
    if (in.dim == from)
      in.dim = to;
  return make(std::move(newIns), sizes);
}

/// Whether `perm` holds each of 0 .. size-1 once.
static bool isPermutation(const std::vector<unsigned> &perm, size_t size) {
  std::vector<bool> seen(size, false);
  for (unsigned p : perm) {
    if (p >= size || seen[p])
      return false;
    seen[p] = true;
  }
  return perm.size() == size;
}

Result<LinearLayout>
LinearLayout::transposeOuts(const std::vector<unsigned> &perm) const {
  if (!isPermutation(perm, sizes.size()))
    return Error{"transpose of a layout of rank " + std::to_string(outRank()) +
                 " expects a permutation of its dimensions"};
  return sublayout(inDims(), perm);
}

Result<LinearLayout>
LinearLayout::permuteBits(InDim dim, const std::vector<unsigned> &perm) const {
  if (!isPermutation(perm, inBits(dim)))
    return Error{"expected a permutation of the " +
                 std::to_string(inBits(dim)) + " bits of " +
                 layout::toString(dim)};
  std::vector<In> newIns = ins;
  for (In &in : newIns)
    if (in.dim == dim)
      for (size_t bit = 0; bit < perm.size(); ++bit)
        in.bases[bit] = flatBasis(dim, perm[bit]);
  return make(std::move(newIns), sizes);
}

Result<LinearLayout>
LinearLayout::reshapeOuts(const std::vector<uint32_t> &newSizes) const {
  Result<LinearLayout> result = make(ins, newSizes);
  if (result && result->totalOutBits() != totalOutBits())
    return Error{"reshape from " + sizesText(sizes) + " to " +
                 sizesText(newSizes) + " changes the number of elements"};
  return result;
}

Result<LinearLayout> LinearLayout::flattenOuts() const {
  if (totalOutBits() > 31)
    return Error{"flattened output has 2^" + std::to_string(totalOutBits()) +
                 " elements, expected at most 2^31"};
  return make(ins, {uint32_t(1) << totalOutBits()});
}

Result<LinearLayout> LinearLayout::flattenIns(InDim dim) const {
  return make({In{dim, allBases()}}, sizes);
}

Result<LinearLayout> LinearLayout::resizeOut(unsigned d, uint32_t size) const {
  if (d >= sizes.size())
    return Error{"no output dimension " + std::to_string(d) +
                 " in a layout of rank " + std::to_string(outRank())};
  std::vector<uint32_t> newSizes = sizes;
  newSizes[d] = size;
  Result<LinearLayout> target = make({}, newSizes);
  if (!target)
    return target;
  std::vector<In> newIns = ins;
  for (In &in : newIns)
    for (uint64_t &basis : in.bases)
      basis = target->flatten(unflatten(basis));
  return make(std::move(newIns), std::move(newSizes));
}

Result<LinearLayout> LinearLayout::resizeIn(InDim dim, unsigned bits) const {
  if (bits > 31)
    return Error{"input dimension " + layout::toString(dim) + " resized to " +
                 std::to_string(bits) + " bits, expected at most 31"};
  std::vector<In> newIns = ins;
  bool found = false;
  for (In &in : newIns)
    if (in.dim == dim) {
      in.bases.resize(bits, 0);
      found = true;
    }
  if (!found)
    newIns.push_back({dim, std::vector<uint64_t>(bits, 0)});
  return make(std::move(newIns), sizes);
}

} // namespace dither::layout
