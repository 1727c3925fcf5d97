//===- TileLayout.cpp - The layout of a tile, bit by bit ------------------===//

#include "dither/Layout/TileLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;

namespace dither::layout {

Coord stepAlong(int64_t rank, int64_t axis, int64_t step) {
  Coord c(rank, 0);
  c[axis] = step;
  return c;
}

bool isZero(const Coord &image) {
  return llvm::all_of(image, [](int64_t step) { return step == 0; });
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

Coord TileLayout::repeatOrigin(int64_t repeat) const {
  Coord origin(rank(), 0);
  for (int64_t d = rank() - 1; d >= 0; --d) {
    origin[d] = repeat % repeats[d] * base[d];
    repeat /= repeats[d];
  }
  return origin;
}

static void xorBits(Coord &c, ArrayRef<Coord> bases, int64_t index) {
  for (size_t i = 0; i < bases.size(); ++i)
    if (index >> i & 1)
      for (size_t d = 0; d < c.size(); ++d)
        c[d] ^= bases[i][d];
}

Coord TileLayout::coord(int64_t regIdx, int64_t laneIdx,
                        int64_t warpIdx) const {
  Coord c(rank(), 0);
  xorBits(c, reg, regIdx % regsPerRepeat());
  xorBits(c, lane, laneIdx);
  xorBits(c, warp, warpIdx);
  Coord origin = repeatOrigin(regIdx / regsPerRepeat());
  for (int64_t d = 0; d < rank(); ++d)
    c[d] += origin[d];
  return c;
}

int64_t TileLayout::contiguousBits() const {
  int64_t k = 0;
  if (rank() == 0)
    return 0;
  while (k < int64_t(reg.size()) &&
         reg[k] == stepAlong(rank(), rank() - 1, int64_t(1) << k))
    ++k;
  return k;
}

//===----------------------------------------------------------------------===//
// As a RepeatedLayout
//===----------------------------------------------------------------------===//

TileLayout::TileLayout(const RepeatedLayout &layout) {
  const LinearLayout &linear = layout.base();
  auto read = [&](InDim dim, SmallVector<Coord> &out) {
    for (unsigned bit = 0, e = linear.inBits(dim); bit < e; ++bit) {
      LinearLayout::Coord image = linear.basis(dim, bit);
      out.emplace_back(image.begin(), image.end());
    }
  };
  read(InDim::Reg, reg);
  read(InDim::Lane, lane);
  read(InDim::Warp, warp);
  for (unsigned d = 0; d < linear.outRank(); ++d) {
    base.push_back(linear.outSize(d));
    repeats.push_back(layout.repeats()[d]);
  }
}

RepeatedLayout TileLayout::repeated() const {
  auto write = [](InDim dim, ArrayRef<Coord> images) {
    LinearLayout::Input in{dim, {}};
    for (const Coord &c : images)
      in.bases.emplace_back(c.begin(), c.end());
    return in;
  };
  auto linear =
      LinearLayout::get({write(InDim::Reg, reg), write(InDim::Lane, lane),
                         write(InDim::Warp, warp)},
                        std::vector<uint32_t>(base.begin(), base.end()));
  auto repeated = RepeatedLayout::get(
      std::move(*linear), std::vector<int64_t>(repeats.begin(), repeats.end()));
  return std::move(*repeated);
}

//===----------------------------------------------------------------------===//
// Derived layouts
//===----------------------------------------------------------------------===//

static Coord sliceCoord(const Coord &c, ArrayRef<int64_t> shift,
                        ArrayRef<bool> full) {
  Coord s = c;
  for (size_t d = 0; d < c.size(); ++d)
    s[d] = full[d] ? 0 : c[d] >> shift[d];
  return s;
}

TileLayout sliced(const TileLayout &layout, ArrayRef<int64_t> shift,
                  ArrayRef<bool> full) {
  TileLayout s;
  for (const Coord &c : layout.reg) {
    Coord image = sliceCoord(c, shift, full);
    if (!isZero(image))
      s.reg.push_back(image);
  }
  for (const Coord &c : layout.lane)
    s.lane.push_back(sliceCoord(c, shift, full));
  for (const Coord &c : layout.warp)
    s.warp.push_back(sliceCoord(c, shift, full));
  for (int64_t d = 0; d < layout.rank(); ++d) {
    // A group may be longer than the fragment: several repeats share it.
    int64_t groups = llvm::divideCeil(layout.base[d] * layout.repeats[d],
                                      int64_t(1) << shift[d]);
    s.base.push_back(
        full[d] ? 1 : std::max<int64_t>(1, layout.base[d] >> shift[d]));
    s.repeats.push_back(full[d] ? 1 : llvm::divideCeil(groups, s.base[d]));
  }
  return s;
}

int64_t sliceRegister(const TileLayout &layout, ArrayRef<int64_t> shift,
                      ArrayRef<bool> full, int64_t regIdx) {
  int64_t bits = regIdx % layout.regsPerRepeat(), kept = 0, pos = 0;
  for (size_t i = 0; i < layout.reg.size(); ++i) {
    if (isZero(sliceCoord(layout.reg[i], shift, full)))
      continue;
    kept |= (bits >> i & 1) << pos++;
  }
  Coord origin = layout.repeatOrigin(regIdx / layout.regsPerRepeat());
  TileLayout s = sliced(layout, shift, full);
  int64_t repeat = 0;
  for (int64_t d = 0; d < layout.rank(); ++d)
    if (!full[d])
      repeat = repeat * s.repeats[d] + (origin[d] >> shift[d]) / s.base[d];
  return (repeat << pos) + kept;
}

TileLayout foldedRepeats(const TileLayout &layout) {
  TileLayout l = layout;
  // Repeats are numbered above the bits, the last dimension's first.
  for (int64_t d = l.rank() - 1; d >= 0; --d) {
    for (; l.repeats[d] % 2 == 0; l.repeats[d] /= 2) {
      l.reg.push_back(stepAlong(l.rank(), d, l.base[d]));
      l.base[d] *= 2;
    }
    if (l.repeats[d] > 1)
      break;
  }
  return l;
}

TileLayout transposed(const TileLayout &layout) {
  TileLayout t = layout;
  auto swapAll = [](SmallVector<Coord> &cs) {
    for (Coord &c : cs)
      std::swap(c[0], c[1]);
  };
  swapAll(t.reg), swapAll(t.lane), swapAll(t.warp);
  std::swap(t.base[0], t.base[1]);
  // Repeats are counted row-major, so a transpose reorders registers unless
  // at most one dimension repeats.
  std::swap(t.repeats[0], t.repeats[1]);
  return t;
}

TileLayout reshaped(const TileLayout &layout, ArrayRef<int64_t> from,
                    ArrayRef<int64_t> to) {
  // dimension d of the result is dimension source[d] of the operand, or new.
  SmallVector<int64_t> source;
  size_t i = 0;
  for (int64_t extent : to) {
    while (i < from.size() && from[i] == 1 && extent != 1)
      ++i;
    if (i < from.size() && from[i] == extent)
      source.push_back(i++);
    else
      source.push_back(-1);
  }
  auto map = [&](const Coord &c, int64_t fill) {
    Coord r;
    for (int64_t s : source)
      r.push_back(s < 0 ? fill : c[s]);
    return r;
  };
  TileLayout r;
  for (const Coord &c : layout.reg)
    r.reg.push_back(map(c, 0));
  for (const Coord &c : layout.lane)
    r.lane.push_back(map(c, 0));
  for (const Coord &c : layout.warp)
    r.warp.push_back(map(c, 0));
  r.base = map(layout.base, 1);
  r.repeats = map(layout.repeats, 1);
  return r;
}

TileLayout contiguousFirst(const TileLayout &layout) {
  TileLayout r = layout;
  if (r.rank() == 0)
    return r;
  size_t next = 0;
  for (int64_t step = 1;; step *= 2) {
    auto it = llvm::find(r.reg, stepAlong(r.rank(), r.rank() - 1, step));
    if (it == r.reg.end())
      return r;
    std::rotate(r.reg.begin() + next, it, it + 1);
    ++next;
  }
}

TileLayout lowestFirst(const TileLayout &layout, int64_t d) {
  TileLayout r = layout;
  SmallVector<Coord *> images;
  SmallVector<int64_t> steps;
  for (auto *bits : {&r.reg, &r.lane, &r.warp})
    for (Coord &c : *bits)
      if (c[d]) {
        images.push_back(&c);
        steps.push_back(c[d]);
      }
  llvm::sort(steps);
  for (auto [image, step] : llvm::zip_equal(images, steps))
    (*image)[d] = step;
  return r;
}

TileLayout inUnits(const TileLayout &l, int64_t k) {
  TileLayout u = l;
  u.reg.erase(u.reg.begin(), u.reg.begin() + k);
  auto shrink = [&](SmallVector<Coord> &cs) {
    for (Coord &c : cs)
      c.back() >>= k;
  };
  if (k) {
    shrink(u.reg), shrink(u.lane), shrink(u.warp);
    u.base.back() >>= k;
  }
  return u;
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

namespace {
/// Hands out the element bits of a tile, lowest first, dimension by dimension.
class BitSource {
public:
  BitSource(ArrayRef<int64_t> shape, Reduced reduced) : rank(shape.size()) {
    for (int64_t extent : shape) {
      limit.push_back(llvm::Log2_64(llvm::PowerOf2Ceil(extent)));
      need.push_back(llvm::isPowerOf2_64(extent) ? limit.back() : 0);
      used.push_back(0);
    }
    if (reduced.extent && rank) {
      int64_t bits = llvm::Log2_64(reduced.extent);
      int64_t &most = limit[reduced.axis];
      if (reduced.ordered)
        most = std::min(most, bits);
      need[reduced.axis] =
          std::max(std::min(need[reduced.axis], most), std::min(most, bits));
    }
  }
  int64_t remaining(int64_t d) const { return limit[d] - used[d]; }
  bool available(int64_t d) const { return d >= 0 && remaining(d) > 0; }
  /// Moves the next bit of dimension d, or of the next dimension in `order`
  /// that has one, to `out`; a zero image when all are used up.
  void take(ArrayRef<int64_t> order, SmallVector<Coord> &out) {
    for (int64_t d : order)
      if (available(d)) {
        out.push_back(stepAlong(rank, d, int64_t(1) << used[d]++));
        return;
      }
    out.push_back(Coord(rank, 0));
  }
  /// What power-of-two dimensions and reductions still need goes to registers.
  void rest(ArrayRef<int64_t> order, SmallVector<Coord> &out) {
    for (int64_t d : order)
      while (used[d] < need[d])
        out.push_back(stepAlong(rank, d, int64_t(1) << used[d]++));
  }
  void finish(ArrayRef<int64_t> shape, TileLayout &l) const {
    for (int64_t d = 0; d < rank; ++d) {
      l.base.push_back(int64_t(1) << used[d]);
      l.repeats.push_back(llvm::divideCeil(shape[d], l.base[d]));
    }
  }

private:
  int64_t rank;
  /// Bits of each dimension: at most, at least and so far.
  SmallVector<int64_t> limit, need, used;
};
} // namespace

TileLayout blockedLayout(ArrayRef<int64_t> shape, int64_t vec, int64_t lanes,
                         int64_t warps, Reduced reduced) {
  TileLayout l;
  int64_t last = int64_t(shape.size()) - 1;
  BitSource bits(shape, reduced);
  SmallVector<int64_t> columnsFirst, rowsFirst;
  for (int64_t d = last; d >= 0; --d)
    columnsFirst.push_back(d);
  for (int64_t d = 0; d <= last; ++d)
    rowsFirst.push_back(d);
  bool blocks = !reduced.ordered && reduced.extent > 1;
  bool across = blocks && reduced.axis < last;
  int64_t above = 0; // bits of the axis that tell blocks apart
  if (blocks)
    above = std::max<int64_t>(0, bits.remaining(reduced.axis) -
                                     llvm::Log2_64(reduced.extent));
  for (int64_t v = 1; v < vec && bits.available(last); v *= 2)
    bits.take({last}, l.reg);
  bool ordered = reduced.ordered && reduced.extent && !shape.empty();
  int64_t laneBits = llvm::Log2_64(lanes), rowLanes = 0;
  if (across) {
    // Blocks across rows stay inside a warp: what is left for the registers of
    // a lane are their rows, and lanes have the others.
    int64_t block = bits.remaining(reduced.axis) - above;
    int64_t left = -laneBits - int64_t(llvm::Log2_64(warps));
    for (int64_t d = 0; d <= last; ++d)
      left += bits.remaining(d);
    rowLanes = std::min(block - std::clamp<int64_t>(left, 0, block), laneBits);
  }
  for (int64_t i = rowLanes; i < laneBits; ++i)
    bits.take(columnsFirst, l.lane);
  for (int64_t i = 0; i < rowLanes; ++i)
    bits.take({reduced.axis, last}, l.lane);
  // What lanes have not of a block, registers have, and no other warp.
  while (blocks && bits.remaining(reduced.axis) > above)
    bits.take({reduced.axis}, l.reg);
  if (ordered) {
    // Sums combine the warps last: they take the highest bits of the axis.
    int64_t onAxis = llvm::Log2_64(warps);
    if (reduced.axis != last)
      onAxis = std::max<int64_t>(0, onAxis - bits.remaining(last));
    while (bits.remaining(reduced.axis) > onAxis)
      bits.take({reduced.axis}, l.reg);
  }
  for (int64_t n = 1; n < warps; n *= 2)
    bits.take(ordered || across ? columnsFirst : rowsFirst, l.warp);
  bits.rest(columnsFirst, l.reg);
  bits.finish(shape, l);
  return l;
}

} // namespace dither::layout
