//===- SharedSwizzle.cpp - Choice of a conflict-free memory order ---------===//
//
// Everything is linear algebra on the coordinate bits of a memory tile. The
// order of the elements in memory is a basis of that space: its first vectors
// are the elements of one access and of one 4-byte word, the next five select
// the bank, the rest are the *segments* S. Two lanes collide when their
// elements differ by a vector without a bank component, so an access that
// covers P (its lanes, its vector and the words they touch) is conflict-free
// when P meets S only in 0. Two subspaces of equal dimension always have a
// common complement: for P = I + <p1 .. pk> and Q = I + <q1 .. qk> over their
// intersection I it is spanned by p1+q1 .. pk+qk and whatever is outside P + Q.
// These sums are the XOR swizzle.
//
//===----------------------------------------------------------------------===//
#include "dither/Layout/SharedSwizzle.h"

#include "dither/Layout/BankModel.h"
#include "dither/Layout/Gf2.h"

#include <algorithm>
#include <set>

namespace dither::layout {

namespace {

using Vectors = std::vector<uint64_t>;

constexpr unsigned wordBytes = 4, bankBits = 5;
/// Register bits tried as extra vector bits: every subset is, so few.
constexpr unsigned maxExtensionBits = 10;

/// One register layout as vectors of coordinate bits of the memory tile.
struct Side {
  Vectors regs, lanes, warps;

  Side(const RepeatedLayout &layout, const LinearLayout &tile) {
    const LinearLayout &base = layout.base();
    auto bits = [&](InDim dim) {
      Vectors vectors;
      for (unsigned bit = 0; bit < base.inBits(dim); ++bit)
        vectors.push_back(tile.flatten(base.basis(dim, bit)));
      return vectors;
    };
    regs = bits(InDim::Reg);
    lanes = bits(InDim::Lane);
    warps = bits(InDim::Warp);
    // Repeats within the memory tile are further register bits.
    for (unsigned d = base.outRank(); d-- > 0;)
      for (uint32_t step = base.outSize(d); step < tile.outSize(d); step *= 2) {
        LinearLayout::Coord coord(base.outRank(), 0);
        coord[d] = step;
        regs.push_back(tile.flatten(coord));
      }
  }

  Vectors placed() const {
    Vectors all = lanes;
    all.insert(all.end(), warps.begin(), warps.end());
    return all;
  }
  /// Lanes served together by an access of this size.
  Vectors group(unsigned accessBytes) const {
    unsigned bits = log2Floor(lanesPerGroup(accessBytes));
    return Vectors(lanes.begin(),
                   lanes.begin() + std::min<size_t>(bits, lanes.size()));
  }
};

void append(Vectors &to, const Vectors &from) {
  to.insert(to.end(), from.begin(), from.end());
}

bool contains(const Vectors &vectors, uint64_t v) {
  return std::find(vectors.begin(), vectors.end(), v) != vectors.end();
}

Gf2Basis basisOf(const Vectors &vectors) {
  Gf2Basis basis;
  for (uint64_t v : vectors)
    basis.add(v);
  return basis;
}

/// The first `count` of `candidates` that are independent of `known` and each
/// other.
Vectors independentOf(const Vectors &known, const Vectors &candidates,
                      size_t count = 64) {
  Gf2Basis basis = basisOf(known);
  Vectors picked;
  for (uint64_t v : candidates)
    if (picked.size() < count && !basis.contains(v)) {
      basis.add(v);
      picked.push_back(v);
    }
  return picked;
}

/// Vector bits of the two sides. The lowest offset bits are `low`; the shorter
/// side's vector is a prefix of it.
struct Vectorization {
  Vectors low;
  unsigned storeBits, loadBits;
};

struct Choice {
  Vectors order; // basis of the tile, offset bit 0 first
  Vectorization vec;
  uint64_t wavefronts = 0, instructions = 0;
  /// What offsets of threads are put together from: bits of their numbers that
  /// move by as many places.
  size_t shifts = 0;
  bool betterThan(const Choice &o) const {
    return wavefronts != o.wavefronts ? wavefronts < o.wavefronts
                                      : instructions < o.instructions;
  }
};

class Chooser {
public:
  Chooser(Side src, Side dst, const LinearLayout &tile, unsigned unitBytes,
          unsigned maxAccessBytes)
      : src(std::move(src)), dst(std::move(dst)), numBits(tile.totalOutBits()),
        unitBytes(unitBytes),
        maxVecBits(log2Floor(maxAccessBytes / unitBytes)) {
    for (unsigned bit = 0; bit < numBits; ++bit)
      units.push_back(uint64_t(1) << bit);
  }

  Choice run();

private:
  unsigned wordBits() const {
    return unitBytes < wordBytes ? log2Floor(wordBytes / unitBytes) : 0;
  }
  unsigned bytes(unsigned vecBits) const { return unitBytes << vecBits; }

  Vectors commonVector() const;
  void extend(const Vectors &common, const Side &side, bool isStore);
  void consider(const Vectorization &vec);
  /// The same accesses in another order, where threads find what they access in
  /// fewer instructions and meet in no more banks. Only of one access to store
  /// and one to load: `shifts` says nothing of the addresses that a thread has
  /// beside its first.
  void simplify(const Side &side);
  /// What an order costs, or nothing if a vector is not contiguous in it.
  std::optional<Choice> choice(const Vectorization &vec, Vectors basis) const;
  Vectors pairs(const Vectors &p, const Vectors &q, unsigned count,
                const Vectors &extension, const Vectors &placedByQ) const;
  Vectors order(const Vectorization &vec) const;
  /// The elements in the order in which the threads of a side have them.
  static Vectors plainOrder(const Vectorization &vec, const Side &side);
  size_t shifts(const Side &side, const Gf2Basis &offsets) const;
  /// Wavefronts of one access, or nothing if its vector is not contiguous.
  std::optional<unsigned> wavefronts(const Side &side, const Gf2Basis &offsets,
                                     unsigned vecBits) const;

  Side src, dst;
  unsigned numBits, unitBytes, maxVecBits;
  Vectors units;
  std::optional<Choice> best;
};

/// Elements that are consecutive registers on both sides: what both can access
/// at once. Lanes and warps of neither side may step among them.
Vectors Chooser::commonVector() const {
  Vectors candidates;
  Gf2Basis ofSrc = basisOf(src.regs);
  for (uint64_t v : dst.regs)
    if (ofSrc.contains(v))
      candidates.push_back(v);
  append(candidates, gf2Intersection(src.regs, dst.regs));
  Vectors placed = src.placed();
  append(placed, dst.placed());
  return independentOf(placed, candidates, maxVecBits);
}

/// Sums p_i + q_i. A vector of `extension` (all in q) belongs to q's accesses:
/// a p that q's side holds in lanes or warps must not meet it, or the order
/// within an access would depend on the lane.
Vectors Chooser::pairs(const Vectors &p, const Vectors &q, unsigned count,
                       const Vectors &extension,
                       const Vectors &placedByQ) const {
  Gf2Basis placed = basisOf(placedByQ);
  Vectors heldInPlace, free;
  for (uint64_t v : p)
    (placed.contains(v) ? heldInPlace : free).push_back(v);
  Vectors inExtension, others;
  for (uint64_t v : q)
    (contains(extension, v) ? inExtension : others).push_back(v);
  size_t numOthers = std::min<size_t>(count, others.size());
  Vectors sums;
  auto pair = [&](uint64_t v, Vectors &preferred, Vectors &second) {
    Vectors &from = preferred.empty() ? second : preferred;
    sums.push_back(from.front() ^ v);
    from.erase(from.begin());
  };
  for (size_t i = 0; i < count - numOthers; ++i)
    pair(inExtension[i], free, heldInPlace);
  for (size_t i = 0; i < numOthers; ++i)
    pair(others[i], heldInPlace, free);
  return sums;
}

Vectors Chooser::order(const Vectorization &vec) const {
  const Vectors &low = vec.low;
  Vectors words(low.begin(),
                low.begin() + std::min<size_t>(wordBits(), low.size()));
  auto touched = [&](const Side &side, unsigned vecBits) {
    Vectors set = side.group(bytes(vecBits));
    set.insert(set.end(), low.begin(), low.begin() + vecBits);
    append(set, words);
    return set;
  };
  Vectors p = touched(src, vec.storeBits), q = touched(dst, vec.loadBits);
  Vectors common = gf2Intersection(p, q);
  Vectors onlyP = independentOf(common, p), onlyQ = independentOf(common, q);
  size_t spanned = common.size() + onlyP.size() + onlyQ.size();
  size_t banked = std::min<size_t>(bankBits + words.size(), numBits);

  // As few sums as possible: every other vector is a plain coordinate.
  unsigned numPairs =
      spanned > banked
          ? unsigned(std::min({spanned - banked, onlyP.size(), onlyQ.size()}))
          : 0;
  Vectors segments;
  if (vec.storeBits > vec.loadBits) {
    Vectors extension(low.begin() + vec.loadBits, low.end());
    segments = pairs(onlyQ, onlyP, numPairs, extension, src.placed());
  } else {
    Vectors extension(low.begin() + vec.storeBits, low.end());
    segments = pairs(onlyP, onlyQ, numPairs, extension, dst.placed());
  }
  // Lanes and warps before registers, so that the complement of the access's
  // vector holds all of them and its order stays the same in every lane.
  Vectors candidates = dst.warps;
  append(candidates, src.warps);
  append(candidates, dst.lanes);
  append(candidates, src.lanes);
  append(candidates, dst.regs);
  append(candidates, src.regs);
  append(candidates, units);
  Vectors known = p;
  append(known, q);
  append(segments,
         independentOf(known, candidates, numBits - banked - segments.size()));

  known = low;
  append(known, segments);
  Vectors bankCandidates = dst.lanes;
  append(bankCandidates, src.lanes);
  append(bankCandidates, candidates);
  Vectors banks = independentOf(known, bankCandidates);

  // A vector shorter than a word: the word is filled up with segments, which no
  // lanes of one access share.
  Vectors result = low;
  append(result, segments);
  size_t inWord = std::max<size_t>(low.size(), wordBits());
  result.insert(result.begin() + std::min(inWord, result.size()), banks.begin(),
                banks.end());
  return result;
}

std::optional<unsigned> Chooser::wavefronts(const Side &side,
                                            const Gf2Basis &offsets,
                                            unsigned vecBits) const {
  for (uint64_t v : side.placed())
    if (*offsets.solve(v) & ((uint64_t(1) << vecBits) - 1))
      return std::nullopt;
  Vectors addresses;
  for (uint64_t v : side.lanes)
    addresses.push_back(*offsets.solve(v) * unitBytes);
  return linearWavefronts(addresses, bytes(vecBits));
}

Vectors Chooser::plainOrder(const Vectorization &vec, const Side &side) {
  Vectors candidates = side.placed();
  append(candidates, side.regs);
  Vectors order = vec.low;
  append(order, independentOf(vec.low, candidates));
  return order;
}

size_t Chooser::shifts(const Side &side, const Gf2Basis &offsets) const {
  std::set<int> places;
  int from = 0;
  for (uint64_t v : side.placed()) {
    uint64_t offset = *offsets.solve(v);
    for (int to = 0; offset >> to; ++to)
      if (offset >> to & 1)
        places.insert(to - from);
    ++from;
  }
  return places.size();
}

std::optional<Choice> Chooser::choice(const Vectorization &vec,
                                      Vectors basis) const {
  Gf2Basis offsets = basisOf(basis);
  if (basis.size() != numBits || offsets.rank() != numBits)
    return std::nullopt;
  Choice choice{std::move(basis), vec};
  for (bool isStore : {true, false}) {
    const Side &side = isStore ? src : dst;
    unsigned bits = isStore ? vec.storeBits : vec.loadBits;
    std::optional<unsigned> each = wavefronts(side, offsets, bits);
    if (!each)
      return std::nullopt;
    uint64_t count = uint64_t(1) << (gf2Rank(side.regs) - bits);
    choice.instructions += count;
    choice.wavefronts += count * *each;
    choice.shifts += shifts(side, offsets);
  }
  return choice;
}

void Chooser::consider(const Vectorization &vec) {
  std::optional<Choice> found = choice(vec, order(vec));
  if (found && (!best || found->betterThan(*best)))
    best = std::move(found);
}

void Chooser::simplify(const Side &side) {
  if (best->instructions > 2)
    return;
  std::optional<Choice> plain = choice(best->vec, plainOrder(best->vec, side));
  if (plain && plain->wavefronts <= best->wavefronts &&
      plain->shifts < best->shifts)
    best = std::move(plain);
}

/// Tries longer vectors for one side only: registers that the other side does
/// not hold together.
void Chooser::extend(const Vectors &common, const Side &side, bool isStore) {
  Vectors known = common;
  append(known, side.placed());
  Vectors extra = independentOf(known, side.regs, maxExtensionBits);
  unsigned room = maxVecBits - unsigned(common.size());
  for (uint64_t subset = 1; subset < uint64_t(1) << extra.size(); ++subset) {
    Vectorization vec{common, unsigned(common.size()), unsigned(common.size())};
    for (size_t i = 0; i < extra.size(); ++i)
      if ((subset >> i) & 1)
        vec.low.push_back(extra[i]);
    if (vec.low.size() > common.size() + room)
      continue;
    (isStore ? vec.storeBits : vec.loadBits) = unsigned(vec.low.size());
    consider(vec);
  }
}

Choice Chooser::run() {
  Vectors common = commonVector();
  consider({common, unsigned(common.size()), unsigned(common.size())});
  extend(common, dst, /*isStore=*/false);
  extend(common, src, /*isStore=*/true);
  // Single elements in any order always work, so there is a choice.
  if (!best)
    consider({{}, 0, 0});
  simplify(dst);
  simplify(src);
  return *best;
}

} // namespace

Result<SharedSwizzle> chooseSwizzle(const RepeatedLayout &src,
                                    const RepeatedLayout &dst,
                                    unsigned unitBytes,
                                    unsigned maxAccessBytes) {
  if (unitBytes != 1 && unitBytes != 2 && unitBytes != 4)
    return Error{"elements of " + std::to_string(unitBytes) +
                 " bytes in shared memory, expected 1, 2 or 4"};
  if (!isPowerOf2(maxAccessBytes) || maxAccessBytes < unitBytes ||
      maxAccessBytes > 16)
    return Error{
        "accesses of up to " + std::to_string(maxAccessBytes) +
        " bytes, expected a power of two from the element's size to 16"};
  if (src.shape() != dst.shape())
    return Error{"conversion from layout " + src.toString() + " to " +
                 dst.toString() + " changes the shape"};
  if (!src.base().isSurjective())
    return Error{"layout " + src.toString() +
                 " does not hold every element, so it cannot be stored"};
  std::vector<uint32_t> sizes;
  std::vector<int64_t> repeats;
  for (unsigned d = 0; d < src.rank(); ++d) {
    // Both bases are powers of two that divide the shape, so the larger one
    // does.
    sizes.push_back(std::max(src.base().outSize(d), dst.base().outSize(d)));
    repeats.push_back(src.shape()[d] / sizes[d]);
  }
  Result<LinearLayout> tile = LinearLayout::empty(sizes);
  if (!tile)
    return tile.error();
  Choice choice = Chooser(Side(src, *tile), Side(dst, *tile), *tile, unitBytes,
                          maxAccessBytes)
                      .run();

  LinearLayout::Input offset{InDim::Offset, {}};
  for (uint64_t vector : choice.order)
    offset.bases.push_back(tile->unflatten(vector));
  Result<LinearLayout> base = LinearLayout::get({offset}, sizes);
  if (!base)
    return base.error();
  Result<RepeatedLayout> shared = RepeatedLayout::get(*base, repeats);
  if (!shared)
    return shared.error();
  Result<SharedAccess> store =
      describeAccess(src, *shared, unitBytes, 1u << choice.vec.storeBits);
  if (!store)
    return store.error();
  Result<SharedAccess> load =
      describeAccess(dst, *shared, unitBytes, 1u << choice.vec.loadBits);
  if (!load)
    return load.error();
  return SharedSwizzle{*shared, *store, *load};
}

} // namespace dither::layout
