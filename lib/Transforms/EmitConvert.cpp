//===- EmitConvert.cpp - Layout conversion --------------------------------===//
//
// Moves the units of a tile (a 32-bit word or value each) from the lanes that
// hold them to the lanes that need them: by renaming registers where that is
// enough, by lane shuffles inside a warp, through shared memory otherwise.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

namespace {
struct Place {
  int64_t reg, lane, warp;
};

/// Finds the place of an element in a layout whose images are single bits.
class Locator {
public:
  explicit Locator(const LaneLayout &l) : l(l) {
    for (auto [i, c] : llvm::enumerate(l.reg))
      add(c, {int64_t(1) << i, 0, 0});
    for (auto [i, c] : llvm::enumerate(l.lane))
      add(c, {0, int64_t(1) << i, 0});
    for (auto [i, c] : llvm::enumerate(l.warp))
      add(c, {0, 0, int64_t(1) << i});
  }
  bool valid() const { return ok; }

  /// Copies are taken from the lane and warp that ask, where they hold one.
  std::optional<Place> find(const Coord &c, int64_t lane, int64_t warp) const {
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

private:
  struct Entry {
    int64_t dim, step;
    Place place;
  };
  void add(const Coord &c, Place p) {
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
  const LaneLayout &l;
  SmallVector<Entry> entries;
  int64_t freeLanes = 0, freeWarps = 0;
  bool ok = true;
};

/// The layout of units of 2^k elements along the last dimension, the leading
/// register bits of which are those elements.
LaneLayout unitLayout(const LaneLayout &l, int64_t k) {
  LaneLayout u = l;
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

class Converter {
public:
  Converter(Emitter &e, const LaneLayout &from, const LaneLayout &to)
      : e(e), from(from), to(to), source(from) {}

  FailureOr<SmallVector<Value>> run(ArrayRef<Value> regs) {
    if (!source.valid())
      return failure();
    if (e.simd)
      return permuteLanes(regs);
    int64_t lanes = to.numLanes(), warps = to.numWarps();
    bool sameWarp = true, sameLane = true, sameReg = true;
    for (int64_t r = 0; r < to.numRegs(); ++r) {
      std::optional<Place> first = place(r, 0, 0);
      for (int64_t w = 0; w < warps; ++w)
        for (int64_t l = 0; l < lanes; ++l) {
          std::optional<Place> p = place(r, l, w);
          if (!p)
            continue;
          sameWarp &= p->warp == w;
          sameLane &= p->lane == l;
          sameReg &= first && p->reg == first->reg;
        }
    }
    if (sameWarp && sameLane && sameReg)
      return rename(regs);
    if (sameWarp) {
      FailureOr<SmallVector<Value>> shuffled = shuffle(regs);
      if (succeeded(shuffled))
        return shuffled;
    }
    return throughShared(regs);
  }

private:
  std::optional<Place> place(int64_t reg, int64_t lane, int64_t warp) const {
    return source.find(to.coord(reg, lane, warp), lane, warp);
  }
  Value zero(Type type) {
    return e.constant(cast<TypedAttr>(e.b.getZeroAttr(type)));
  }

  SmallVector<Value> rename(ArrayRef<Value> regs) {
    SmallVector<Value> out;
    for (int64_t r = 0; r < to.numRegs(); ++r) {
      auto p = place(r, 0, 0);
      out.push_back(p ? regs[p->reg] : zero(regs[0].getType()));
    }
    return out;
  }

  /// CPU: lane numbers are constants, so every register is a chain of
  /// two-input permutes; bits that swap between lanes and registers go first,
  /// one permute a register each.
  SmallVector<Value> permuteLanes(ArrayRef<Value> input) {
    SmallVector<Value> regs = llvm::to_vector(input);
    LaneLayout cur = from;
    // A lane bit of `to` that lives in a register bit of `from`: swap it with
    // a lane bit that `to` does not keep in the lanes.
    for (const Coord &want : to.lane) {
      auto it = llvm::find(cur.reg, want);
      if (it == cur.reg.end() || llvm::is_contained(cur.lane, want))
        continue;
      for (auto [l, have] : llvm::enumerate(cur.lane)) {
        if (llvm::is_contained(to.lane, have) ||
            !llvm::is_contained(to.reg, have))
          continue;
        swapBits(regs, cur.regsPerRepeat(), it - cur.reg.begin(), l);
        std::swap(*it, cur.lane[l]);
        break;
      }
    }
    Locator locate(cur);
    SmallVector<Value> out;
    for (int64_t r = 0; r < to.numRegs(); ++r) {
      SmallVector<std::optional<Place>> lanes;
      SmallVector<int64_t> sources;
      for (int64_t l = 0; l < kSimdLanes; ++l) {
        lanes.push_back(locate.find(to.coord(r, l), l, 0));
        if (lanes.back() && !llvm::is_contained(sources, lanes.back()->reg))
          sources.push_back(lanes.back()->reg);
      }
      if (sources.empty()) {
        out.push_back(zero(regs[0].getType()));
        continue;
      }
      Value acc = regs[sources[0]];
      for (size_t s = 0; s < std::max<size_t>(1, sources.size() - 1); ++s) {
        // Merge source s+1 (and, first, arrange source 0).
        int64_t second = s + 1 < sources.size() ? sources[s + 1] : sources[0];
        SmallVector<int64_t> index;
        for (int64_t l = 0; l < kSimdLanes; ++l) {
          int64_t pick = s == 0 && lanes[l] ? lanes[l]->lane : l;
          if (lanes[l] && s + 1 < sources.size() && lanes[l]->reg == second)
            pick = kSimdLanes + lanes[l]->lane;
          index.push_back(pick);
        }
        acc = e.permute(acc, regs[second], index);
      }
      out.push_back(acc);
    }
    return out;
  }

  void swapBits(SmallVector<Value> &regs, int64_t perRepeat, int64_t regBit,
                int64_t laneBit) {
    int64_t rm = int64_t(1) << regBit, lm = int64_t(1) << laneBit;
    SmallVector<int64_t> lo, hi;
    for (int64_t l = 0; l < kSimdLanes; ++l) {
      lo.push_back(l & lm ? kSimdLanes + (l & ~lm) : l);
      hi.push_back(l & lm ? kSimdLanes + l : l | lm);
    }
    for (int64_t r = 0, n = regs.size(); r < n; ++r) {
      if (r % perRepeat & rm)
        continue;
      Value a = regs[r], c = regs[r | rm];
      regs[r] = e.permute(a, c, lo);
      regs[r | rm] = e.permute(a, c, hi);
    }
  }

  /// GPU, inside a warp: every lane reads the source register of the lane that
  /// holds its element. Where that register depends on the reading lane, all
  /// candidates are shuffled and the right one is selected.
  FailureOr<SmallVector<Value>> shuffle(ArrayRef<Value> regs) {
    int64_t laneBits = to.lane.size();
    struct Form {
      int64_t lane0, reg0;
      SmallVector<int64_t> lane, reg;
    };
    SmallVector<Form> forms;
    int64_t cost = 0;
    for (int64_t r = 0; r < to.numRegs(); ++r) {
      auto p0 = place(r, 0, 0);
      if (!p0)
        return failure();
      Form f{p0->lane, p0->reg, {}, {}};
      int64_t selects = 1;
      for (int64_t i = 0; i < laneBits; ++i) {
        auto p = place(r, int64_t(1) << i, 0);
        if (!p)
          return failure();
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
          auto p = place(r, l, w);
          if (!p || p->lane != lane || p->reg != reg)
            return failure();
        }
      cost += selects;
      forms.push_back(f);
    }
    if (cost > 32)
      return failure();
    SmallVector<Value> out;
    for (const Form &f : forms) {
      Value sourceLane = e.i32(f.lane0);
      SmallVector<int64_t> choice;
      for (int64_t i = 0; i < laneBits; ++i) {
        if (f.reg[i])
          choice.push_back(i);
        if (f.lane[i])
          sourceLane = e.make<arith::XOrIOp>(sourceLane, ifBit(i, f.lane[i]));
      }
      SmallVector<Value> candidates;
      for (int64_t k = 0; k < int64_t(1) << choice.size(); ++k) {
        int64_t reg = f.reg0;
        for (auto [t, i] : llvm::enumerate(choice))
          if (k >> t & 1)
            reg ^= f.reg[i];
        candidates.push_back(shuffleFrom(regs[reg], sourceLane));
      }
      for (auto [t, i] : llvm::enumerate(choice)) {
        Value set = e.make<arith::CmpIOp>(
            arith::CmpIPredicate::ne,
            e.make<arith::AndIOp>(e.tid, e.i32(int64_t(1) << i)), e.i32(0));
        for (size_t k = 0; k < candidates.size() / 2; ++k)
          candidates[k] = e.make<arith::SelectOp>(set, candidates[2 * k + 1],
                                                  candidates[2 * k]);
        candidates.resize(candidates.size() / 2);
      }
      out.push_back(candidates[0]);
    }
    return out;
  }

  /// `value` if lane bit `bit` of this thread is set, else 0.
  Value ifBit(int64_t bit, int64_t value) {
    Value v = e.make<arith::AndIOp>(
        bit ? Value(e.make<arith::ShRUIOp>(e.tid, e.i32(bit))) : e.tid,
        e.i32(1));
    return e.make<arith::MulIOp>(v, e.i32(value));
  }
  Value shuffleFrom(Value reg, Value lane) {
    return e.make<NVVM::ShflOp>(reg.getType(), e.i32(-1), reg, lane, e.i32(31),
                                NVVM::ShflKind::idx, UnitAttr());
  }

  /// Shared-memory word of (row, column): row-major, columns of a row XORed
  /// with the row so that neither the stores nor the loads of a warp meet in a
  /// bank.
  Value sharedWord(const LaneLayout &l, int64_t reg, int64_t rowWords,
                   int64_t vec) {
    int64_t rank = to.rank();
    Value col = e.coordinate(l, rank - 1, reg);
    if (rank == 1)
      return col;
    Value row = e.coordinate(l, 0, reg);
    int64_t chunks = rowWords / vec;
    if (chunks > 1) {
      int64_t mask = std::min<int64_t>(chunks, 32) - 1;
      Value mix = e.make<arith::ShLIOp>(e.make<arith::AndIOp>(row, e.i32(mask)),
                                        e.i32(llvm::Log2_64(vec)));
      col = e.make<arith::XOrIOp>(col, mix);
    }
    return e.make<arith::AddIOp>(e.make<arith::MulIOp>(row, e.i32(rowWords)),
                                 col);
  }

  FailureOr<SmallVector<Value>> throughShared(ArrayRef<Value> regs) {
    int64_t rank = to.rank(), rows = 1, cols = 1;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t extent =
          std::max(to.base[d] * to.repeats[d], from.base[d] * from.repeats[d]);
      (d == rank - 1 ? cols : rows) = llvm::PowerOf2Ceil(extent);
    }
    // Loads take the contiguous registers of the target at once.
    int64_t vec = std::min<int64_t>(4, int64_t(1) << to.contiguousBits());
    Type type = regs[0].getType();
    Value base = e.shared(rows * cols * 4);
    auto address = [&](Value word) -> Value {
      return e.make<LLVM::GEPOp>(base.getType(), type, base,
                                 ArrayRef<LLVM::GEPArg>{word});
    };
    // One writer per element: copies in other lanes and warps stay silent.
    int64_t copies = 0;
    for (auto [i, c] : llvm::enumerate(from.lane))
      if (llvm::all_of(c, [](int64_t v) { return !v; }))
        copies |= int64_t(1) << i;
    for (auto [i, c] : llvm::enumerate(from.warp))
      if (llvm::all_of(c, [](int64_t v) { return !v; }))
        copies |= int64_t(kWarpLanes) << i;
    (void)copies; // identical values to the same word: harmless, and uniform.
    for (int64_t r = 0; r < from.numRegs(); ++r)
      e.make<LLVM::StoreOp>(regs[r], address(sharedWord(from, r, cols, vec)),
                            /*alignment=*/4);
    e.barrier();
    SmallVector<Value> out;
    for (int64_t r = 0; r < to.numRegs(); r += vec) {
      Value at = address(sharedWord(to, r, cols, vec));
      if (vec == 1) {
        out.push_back(e.make<LLVM::LoadOp>(type, at, 4));
        continue;
      }
      Value v = e.make<LLVM::LoadOp>(VectorType::get({vec}, type), at, 4 * vec);
      for (int64_t i = 0; i < vec; ++i)
        out.push_back(e.make<vector::ExtractOp>(v, ArrayRef<int64_t>{i}));
    }
    e.barrier();
    return out;
  }

  Emitter &e;
  const LaneLayout &from, &to;
  Locator source;
};
} // namespace

FailureOr<Registers> Emitter::convert(Registers regs, Type elem,
                                      const LaneLayout &from,
                                      const LaneLayout &to) {
  if (from == to)
    return regs;
  int64_t bits = wordBits(elem), unit = 0, group = 1;
  if (bits) {
    int64_t gf = wordGroup(from, bits), gt = wordGroup(to, bits);
    group = gt;
    if (gf == gt && to.base.back() % gt == 0 && from.base.back() % gt == 0)
      unit = llvm::Log2_64(gt);
    else
      regs = unpackCodes(regs, gf, bits);
  }
  LaneLayout f = unitLayout(from, unit), t = unitLayout(to, unit);
  Converter converter(*this, f, t);
  FailureOr<SmallVector<Value>> moved = converter.run(regs);
  if (failed(moved))
    return failure();
  if (bits && !unit)
    moved = packCodes(*moved, group, bits);
  return *moved;
}

} // namespace dither::transforms
