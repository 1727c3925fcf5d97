//===- EmitConvert.cpp - Layout conversion --------------------------------===//
//
// Moves the units of a tile (a 32-bit word or value each) from the lanes that
// hold them to the lanes that need them: by renaming registers where that is
// enough, by lane shuffles inside a warp, through shared memory otherwise.
//
//===----------------------------------------------------------------------===//

#include "Emit/Emitter.h"
#include "Emit/Gpu.h"
#include "Emit/ThreadWords.h"
#include "Layouts/Movement.h"
#include "dither/Layout/SharedSwizzle.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

namespace {
class Converter {
public:
  /// `unitBytes` is what a unit has in shared memory that has an order.
  Converter(Emitter &e, const TileLayout &from, const TileLayout &to,
            unsigned unitBytes)
      : e(e), from(from), to(to), unitBytes(unitBytes), source(from) {}

  FailureOr<SmallVector<Value>> run(ArrayRef<Value> regs,
                                    const SharedOrder *order) {
    if (!source.valid())
      return failure();
    if (e.simd)
      return permuteLanes(regs);
    std::optional<Movement> move = planMovement(from, to);
    if (!move)
      return failure();
    switch (move->route) {
    case Movement::Registers:
      return rename(regs);
    case Movement::Shuffles:
      return shuffle(regs, move->sources);
    case Movement::Shared:
      break;
    }
    if (std::optional<Halves> halves = halvesOf(from, to))
      return inHalves(regs, *halves, order);
    return order ? throughOrder(regs, *order) : throughRows(regs);
  }

private:
  std::optional<Place> place(int64_t reg, int64_t lane, int64_t warp) const {
    return source.find(to.coord(reg, lane, warp), lane, warp);
  }
  Value zero(Type type) {
    return e.constant(cast<TypedAttr>(e.b.getZeroAttr(type)));
  }

  FailureOr<SmallVector<Value>> inHalves(ArrayRef<Value> regs,
                                         const Halves &halves,
                                         const SharedOrder *order) {
    SmallVector<Value> out(to.numRegs());
    for (int64_t half : {0, 1}) {
      auto select = [&](int64_t n, int64_t bit) {
        return llvm::make_filter_range(llvm::seq<int64_t>(n), [=](int64_t reg) {
          return (reg >> bit & 1) == half;
        });
      };
      SmallVector<Value> part;
      for (int64_t reg : select(from.numRegs(), halves.fromBit))
        part.push_back(regs[reg]);
      Converter converter(e, halves.from, halves.to, unitBytes);
      FailureOr<SmallVector<Value>> moved = converter.run(part, order);
      if (failed(moved))
        return failure();
      for (auto [reg, v] :
           llvm::zip_equal(select(to.numRegs(), halves.toBit), *moved))
        out[reg] = v;
    }
    return out;
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
    TileLayout cur = from;
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
  SmallVector<Value> shuffle(ArrayRef<Value> regs,
                             ArrayRef<ShuffleSource> sources) {
    int64_t laneBits = to.lane.size();
    SmallVector<Value> out;
    for (const ShuffleSource &f : sources) {
      Value sourceLane = e.i32(f.lane0);
      int64_t kept = keptBits(f);
      SmallVector<int64_t> choice;
      for (int64_t i = 0; i < laneBits; ++i) {
        if (f.reg[i])
          choice.push_back(i);
        if (f.lane[i] && !(kept >> i & 1))
          sourceLane = e.make<arith::XOrIOp>(sourceLane, ifBit(i, f.lane[i]));
      }
      SmallVector<Value> candidates;
      for (int64_t k = 0; k < int64_t(1) << choice.size(); ++k) {
        int64_t reg = f.reg0;
        for (auto [t, i] : llvm::enumerate(choice))
          if (k >> t & 1)
            reg ^= f.reg[i];
        candidates.push_back(gpu::shuffle(e.b, e.loc, regs[reg], sourceLane,
                                          gpu::Shuffle::Index, kept));
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
  /// The bits of the source lane's number that are those of the reading lane.
  static int64_t keptBits(const ShuffleSource &f) {
    int64_t kept = 0;
    for (auto [i, image] : llvm::enumerate(f.lane)) {
      int64_t bit = int64_t(1) << i, others = f.lane0;
      for (auto [k, other] : llvm::enumerate(f.lane))
        others |= k == i ? 0 : other;
      if (image == bit && !(others & bit))
        kept |= bit;
    }
    return kept;
  }

  /// Coordinate that a register of `l` has along `dim`, or where that is
  /// padding that `from` does not hold, the last one that it does hold.
  Value heldCoordinate(const TileLayout &l, int64_t dim, int64_t reg,
                       int64_t step) {
    Value at = e.coordinate(l, dim, reg);
    int64_t held = heldExtent(dim);
    if (l.base[dim] * l.repeats[dim] <= held)
      return at;
    return e.make<arith::MinSIOp>(at, e.i32(held - step));
  }
  int64_t heldExtent(int64_t dim) const {
    return from.base[dim] * from.repeats[dim];
  }

  /// Shared-memory word of (row, column): row-major, columns of a row XORed
  /// with the row so that neither the stores nor the loads of a warp meet in a
  /// bank.
  Value sharedWord(const TileLayout &l, int64_t reg, int64_t rowWords,
                   int64_t vec) {
    int64_t rank = to.rank();
    Value col = heldCoordinate(l, rank - 1, reg, vec);
    if (rank == 1)
      return col;
    Value row = heldCoordinate(l, 0, reg, 1);
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

  /// Where no order was planned (the two layouts cover different shapes).
  SmallVector<Value> throughRows(ArrayRef<Value> regs) {
    int64_t rank = to.rank(), rows = 1, cols = 1;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t extent =
          std::max(to.base[d] * to.repeats[d], from.base[d] * from.repeats[d]);
      (d == rank - 1 ? cols : rows) = llvm::PowerOf2Ceil(extent);
    }
    // Loads take the contiguous registers of the target at once.
    int64_t vec = std::min<int64_t>(4, int64_t(1) << to.contiguousBits());
    while (rank && heldExtent(rank - 1) % vec)
      vec /= 2;
    Type type = regs[0].getType();
    Value base = e.shared(rows * cols * 4);
    auto address = [&](Value word) -> Value {
      return e.make<LLVM::GEPOp>(base.getType(), type, base,
                                 ArrayRef<LLVM::GEPArg>{word});
    };
    // Lanes and warps that hold copies store the same values.
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

  /// In the order that dither-swizzle-shared planned.
  FailureOr<SmallVector<Value>> throughOrder(ArrayRef<Value> regs,
                                             const SharedOrder &order) {
    auto store = layout::describeAccess(from.repeated(), order.layout,
                                        unitBytes, order.storeVec);
    auto load = layout::describeAccess(to.repeated(), order.layout, unitBytes,
                                       order.loadVec);
    if (!store || !load)
      return failure();
    Type type = regs[0].getType();
    Type unit =
        unitBytes < kWordBytes ? e.b.getIntegerType(8 * unitBytes) : type;
    int64_t tileSize = 1, total = 1;
    for (uint32_t extent : order.layout.base().outSizes())
      tileSize *= extent;
    total = tileSize * order.layout.numRepeats();
    Value base = e.shared(total * unitBytes);
    ThreadWords stored(e, store->lanes, base, unit);
    for (const auto &access : store->accesses) {
      SmallVector<Value> parts;
      for (int64_t reg : access.regs)
        parts.push_back(unit == type
                            ? regs[reg]
                            : e.make<arith::TruncIOp>(unit, regs[reg]));
      Value v = parts[0];
      if (parts.size() > 1)
        v = e.make<vector::FromElementsOp>(
            VectorType::get({int64_t(parts.size())}, unit), parts);
      e.make<LLVM::StoreOp>(
          v, stored.address(access.offset, access.tile * tileSize),
          unitBytes * parts.size());
    }
    e.barrier();
    SmallVector<Value> out(to.numRegs());
    ThreadWords loaded(e, load->lanes, base, unit);
    for (const auto &access : load->accesses) {
      int64_t n = access.regs.size();
      Value v = e.make<LLVM::LoadOp>(
          n > 1 ? Type(VectorType::get({n}, unit)) : unit,
          loaded.address(access.offset, access.tile * tileSize), unitBytes * n);
      for (auto [i, reg] : llvm::enumerate(access.regs)) {
        Value part = n > 1 ? Value(e.make<vector::ExtractOp>(
                                 v, ArrayRef<int64_t>{int64_t(i)}))
                           : v;
        out[reg] = unit == type ? part : e.make<arith::ExtUIOp>(type, part);
      }
    }
    for (int64_t r = 0; r < to.numRegs(); ++r)
      if (!out[r])
        out[r] = out[load->representative[r]];
    e.barrier();
    return out;
  }

  Emitter &e;
  const TileLayout &from, &to;
  const unsigned unitBytes;
  Locator source;
};
} // namespace

FailureOr<Registers> Emitter::convert(Registers regs, Type elem,
                                      const TileLayout &from,
                                      const TileLayout &to,
                                      const SharedOrder *order) {
  if (from == to)
    return regs;
  // Shuffles and shared memory move words of 32 bits. What has 64 travels as
  // two, one after the other.
  if (elem.isInteger(64) && !simd) {
    Registers low, high;
    for (Value reg : regs) {
      low.push_back(make<arith::TruncIOp>(b.getI32Type(), reg));
      high.push_back(make<arith::TruncIOp>(b.getI32Type(),
                                           make<arith::ShRUIOp>(reg, i64(32))));
    }
    FailureOr<Registers> lows = convert(low, b.getI32Type(), from, to, order),
                         highs = convert(high, b.getI32Type(), from, to, order);
    if (failed(lows) || failed(highs))
      return failure();
    Registers moved;
    for (auto [l, h] : llvm::zip(*lows, *highs))
      moved.push_back(make<arith::OrIOp>(
          make<arith::ExtUIOp>(elem, l),
          make<arith::ShLIOp>(make<arith::ExtUIOp>(elem, h), i64(32))));
    return moved;
  }
  // A mask travels as a word.
  bool isMask = elem.isInteger(1) && !simd;
  if (isMask)
    for (Value &reg : regs)
      reg = make<arith::ExtUIOp>(b.getI32Type(), reg);
  int64_t bits = wordBits(elem);
  Units units = unitsOf(elem, from, to);
  if (bits && !units.log2)
    regs = unpackCodes(regs, wordGroup(from, bits), bits);
  unsigned unitBytes =
      order ? sharedUnitBytes(elem, units, order->storeVec, order->loadVec)
            : kWordBytes;
  Converter converter(*this, units.from, units.to, unitBytes);
  FailureOr<SmallVector<Value>> moved = converter.run(regs, order);
  if (failed(moved))
    return failure();
  if (bits && !units.log2)
    moved = packCodes(*moved, wordGroup(to, bits), bits);
  if (isMask)
    for (Value &reg : *moved)
      reg = make<arith::TruncIOp>(elem, reg);
  return *moved;
}

} // namespace dither::transforms
