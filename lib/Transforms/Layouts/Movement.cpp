//===- Movement.cpp - How a layout conversion moves a tile ----------------===//

#include "Layouts/Movement.h"
#include "dither/Target/TargetInfo.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

Locator::Locator(const TileLayout &l) : l(l) {
  for (auto [i, c] : llvm::enumerate(l.reg))
    add(c, {int64_t(1) << i, 0, 0});
  for (auto [i, c] : llvm::enumerate(l.lane))
    add(c, {0, int64_t(1) << i, 0});
  for (auto [i, c] : llvm::enumerate(l.warp))
    add(c, {0, 0, int64_t(1) << i});
}

void Locator::add(const Coord &c, Place p) {
  int64_t dims = 0;
  for (int64_t d = 0; d < l.rank(); ++d)
    if (c[d]) {
      ++dims;
      ok &= llvm::isPowerOf2_64(c[d]);
      for (const Entry &e : entries)
        ok &= e.dim != d || e.step != c[d];
      entries.push_back({d, c[d], p});
    }
  ok &= dims <= 1;
  if (!dims) {
    freeLanes |= p.lane;
    freeWarps |= p.warp;
    ok &= !p.reg;
  }
}

std::optional<Place> Locator::find(const Coord &c, int64_t lane,
                                   int64_t warp) const {
  Place p{0, lane & freeLanes, warp & freeWarps};
  int64_t repeat = 0;
  for (int64_t d = 0; d < l.rank(); ++d) {
    if (c[d] >= l.base[d] * l.repeats[d])
      return std::nullopt;
    repeat = repeat * l.repeats[d] + c[d] / l.base[d];
    int64_t local = c[d] % l.base[d];
    for (const Entry &e : entries)
      if (e.dim == d && (local & e.step)) {
        p.reg |= e.place.reg;
        p.lane |= e.place.lane;
        p.warp |= e.place.warp;
      }
  }
  p.reg += repeat * l.regsPerRepeat();
  return p;
}

Units unitsOf(Type elem, const TileLayout &from, const TileLayout &to) {
  Units u;
  if (int64_t bits = wordBits(elem)) {
    int64_t gf = wordGroup(from, bits), gt = wordGroup(to, bits);
    if (gf == gt && to.base.back() % gt == 0 && from.base.back() % gt == 0)
      u.log2 = llvm::Log2_64(gt);
  }
  u.from = inUnits(from, u.log2);
  u.to = inUnits(to, u.log2);
  return u;
}

unsigned sharedUnitBytes(Type elem, const Units &units, unsigned storeVec,
                         unsigned loadVec) {
  int64_t bits = wordBits(elem);
  bool isAlone = bits >= 8 && bits < 32 && !units.log2;
  return isAlone && storeVec == 1 && loadVec == 1 ? bits / 8 : kWordBytes;
}

/// More selects and shuffles than this are slower than shared memory.
constexpr int64_t kMaxShuffles = 32;

static std::optional<SmallVector<ShuffleSource>> planShuffles(
    const TileLayout &to,
    llvm::function_ref<std::optional<Place>(int64_t, int64_t, int64_t)> place) {
  SmallVector<ShuffleSource> sources;
  int64_t cost = 0, laneBits = to.lane.size();
  for (int64_t r = 0; r < to.numRegs(); ++r) {
    std::optional<Place> p0 = place(r, 0, 0);
    if (!p0)
      return std::nullopt;
    ShuffleSource f{p0->lane, p0->reg, {}, {}};
    int64_t selects = 1;
    for (int64_t i = 0; i < laneBits; ++i) {
      std::optional<Place> p = place(r, int64_t(1) << i, 0);
      if (!p)
        return std::nullopt;
      f.lane.push_back(p->lane ^ p0->lane);
      f.reg.push_back(p->reg ^ p0->reg);
      selects *= f.reg.back() ? 2 : 1;
    }
    for (int64_t w = 0; w < to.numWarps(); ++w)
      for (int64_t l = 0; l < to.numLanes(); ++l) {
        int64_t lane = f.lane0, reg = f.reg0;
        for (int64_t i = 0; i < laneBits; ++i)
          if (l >> i & 1)
            lane ^= f.lane[i], reg ^= f.reg[i];
        std::optional<Place> p = place(r, l, w);
        if (!p || p->lane != lane || p->reg != reg)
          return std::nullopt;
      }
    cost += selects;
    sources.push_back(f);
  }
  if (cost > kMaxShuffles)
    return std::nullopt;
  return sources;
}

std::optional<Movement> planMovement(const TileLayout &from,
                                     const TileLayout &to) {
  Locator source(from);
  if (!source.valid())
    return std::nullopt;
  auto place = [&](int64_t reg, int64_t lane, int64_t warp) {
    return source.find(to.coord(reg, lane, warp), lane, warp);
  };
  bool sameWarp = true, sameLane = true, sameReg = true;
  for (int64_t r = 0; r < to.numRegs(); ++r) {
    std::optional<Place> first = place(r, 0, 0);
    for (int64_t w = 0; w < to.numWarps(); ++w)
      for (int64_t l = 0; l < to.numLanes(); ++l) {
        std::optional<Place> p = place(r, l, w);
        if (!p)
          continue;
        sameWarp &= p->warp == w;
        sameLane &= p->lane == l;
        sameReg &= first && p->reg == first->reg;
      }
  }
  if (sameWarp && sameLane && sameReg)
    return Movement{Movement::Registers, {}};
  if (sameWarp)
    if (auto sources = planShuffles(to, place))
      return Movement{Movement::Shuffles, std::move(*sources)};
  return Movement{Movement::Shared, {}};
}

std::optional<Halves> halvesOf(const TileLayout &from, const TileLayout &to) {
  int64_t words = 1;
  for (auto [extent, count] : llvm::zip(from.base, from.repeats))
    words *= extent * count;
  if (words * kWordBytes <= target::kGpuSharedBytes || from.base != to.base ||
      from.numRepeats() != 1 || to.numRepeats() != 1)
    return std::nullopt;
  for (int64_t d = 0; d < from.rank(); ++d) {
    int64_t step = from.base[d] / 2;
    Coord image = layout::stepAlong(from.rank(), d, step);
    auto bitOf = [&](const TileLayout &l) -> std::optional<int64_t> {
      auto touches = [&](const Coord &c) { return (c[d] & step) != 0; };
      auto it = llvm::find(l.reg, image);
      if (it == l.reg.end() || llvm::count_if(l.reg, touches) != 1 ||
          llvm::any_of(l.lane, touches) || llvm::any_of(l.warp, touches))
        return std::nullopt;
      return it - l.reg.begin();
    };
    std::optional<int64_t> fromBit = bitOf(from), toBit = bitOf(to);
    if (!step || !fromBit || !toBit)
      continue;
    Halves halves{*fromBit, *toBit, from, to};
    for (auto [l, bit] :
         {std::pair(&halves.from, *fromBit), std::pair(&halves.to, *toBit)}) {
      l->reg.erase(l->reg.begin() + bit);
      l->base[d] = step;
    }
    return halves;
  }
  return std::nullopt;
}

} // namespace dither::transforms
