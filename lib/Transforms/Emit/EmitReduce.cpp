//===- EmitReduce.cpp - Reductions over registers, lanes and warps --------===//
//
// Follows a ReducePlan. Sums combine element bits from the lowest to the
// highest, so their bits depend on the row length alone (architecture.md,
// Order of sums). The other kinds are order-independent by construction: NaN
// loses against every number, and zeros come out as +0.
//
//===----------------------------------------------------------------------===//

#include "Emit/Emitter.h"
#include "Emit/Gpu.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using dither::quant::ReduceKind;

namespace dither::transforms {

namespace {
/// One reduction: the registers that are left and how two of them combine.
class Reducer {
public:
  /// `words` is the type of the two values in each register, if not f32.
  Reducer(Emitter &e, ReduceKind kind, bool bits, Type words)
      : e(e), kind(kind), bits(bits), words(words) {
    if (words && !bits && e.simd)
      bias = words.isBF16() ? 0x007F007F : 0x03FF03FF;
  }

  /// `a` is always an operand that has not been combined before where one
  /// exists: with amax on the CPU that order makes vmaxps drop its NaN.
  Value combine(Value a, Value c) {
    if (words)
      return e.simd
                 ? fromHalves(e.make<arith::MaxSIOp>(halves(a), halves(c)))
                 : gpu::maximaOfHalves(e.b, e.loc, a, c, words, e.maxXorsign);
    if (bits)
      return asFloat(e.make<arith::MaxSIOp>(asInt(a), asInt(c)));
    switch (kind) {
    case ReduceKind::sum:
      return e.make<arith::AddFOp>(a, c);
    case ReduceKind::amax:
      if (!e.simd)
        return e.make<arith::MaxNumFOp>(a, c);
      return e.make<arith::SelectOp>(
          e.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, c), a, c);
    case ReduceKind::max:
      return e.make<arith::MaxNumFOp>(a, c);
    case ReduceKind::min:
      return e.make<arith::MinNumFOp>(a, c);
    }
    return {};
  }

  double identity() const {
    switch (kind) {
    case ReduceKind::sum:
      return -0.0;
    case ReduceKind::amax:
      return 0.0;
    case ReduceKind::max:
    case ReduceKind::min:
      // What these are where there is no number.
      return std::numeric_limits<double>::quiet_NaN();
    }
    return 0;
  }

  /// Removes NaN from an amax leaf.
  Value clean(Value v) { return combine(v, e.splatF(0.0)); }

  void prepare(SmallVector<Value> &regs) {
    // Magnitudes order like their bits, and with infinity moved to 7FFF a NaN
    // is negative.
    if (words && e.maxXorsign)
      return;
    if (words)
      for (Value &v : regs) {
        v = e.make<arith::AndIOp>(v, word(0x7FFF7FFF));
        if (bias)
          v = fromHalves(e.make<arith::AddIOp>(halves(v), halves(word(bias))));
      }
    else if (kind == ReduceKind::amax)
      for (Value &v : regs)
        v = magnitude(v);
  }

  /// All registers must be free of NaN from here on (amax on the CPU).
  void settle(SmallVector<Value> &regs) {
    if (cleans() && !settled)
      for (Value &v : regs)
        v = clean(v);
    settled = true;
  }
  Value leaf(Value v) { return cleans() && !settled ? clean(v) : v; }
  bool settled = false;

  /// GPU: whether an instruction combines all lanes of a warp. Magnitudes that
  /// are numbers order like their bits.
  bool inOneStep() const {
    return kind == ReduceKind::amax && !e.simd && !words && !bits;
  }
  Value ofWarp(Value v) {
    return asFloat(gpu::maximumOfWarp(e.b, e.loc, asInt(clean(v))));
  }

  Value finish(Value v) {
    if (words && !bias)
      return v;
    if (bias) {
      Value least = word(bias);
      return fromHalves(
          e.make<arith::SubIOp>(halves(combine(v, least)), halves(least)));
    }
    if (kind == ReduceKind::amax && !e.simd && !bits)
      return clean(v);
    // Canonical zero: max(-0, +0) is not ordered by every target.
    if (kind == ReduceKind::max || kind == ReduceKind::min)
      return e.make<arith::AddFOp>(v, e.splatF(0.0));
    return v;
  }

private:
  /// Whether NaN goes before lanes exchange anything.
  bool cleans() const {
    return kind == ReduceKind::amax && e.simd && !words && !bits;
  }
  /// PTX leaves open which NaN the absolute value of one is.
  Value magnitude(Value v) {
    if (bits && !e.simd)
      return asFloat(e.make<arith::AndIOp>(asInt(v), word(0x7FFFFFFF)));
    return e.make<math::AbsFOp>(v);
  }
  Value asInt(Value v) {
    return e.make<arith::BitcastOp>(e.regType(e.b.getI32Type()), v);
  }
  Value asFloat(Value v) {
    return e.make<arith::BitcastOp>(e.regType(e.b.getF32Type()), v);
  }
  Value word(uint32_t v) { return e.splat(e.b.getI32Type(), int32_t(v)); }
  Value halves(Value v) {
    return e.make<vector::BitCastOp>(
        VectorType::get({2 * kSimdLanes}, e.b.getI16Type()), v);
  }
  Value fromHalves(Value v) {
    return e.make<vector::BitCastOp>(
        VectorType::get({kSimdLanes}, e.b.getI32Type()), v);
  }

  Emitter &e;
  ReduceKind kind;
  /// Whether an amax is of bits, where a NaN is above all.
  bool bits;
  /// Type of the two values in each register; null for registers of f32.
  Type words;
  /// What is added to both magnitudes of a word so that NaN loses.
  uint32_t bias = 0;
};
} // namespace

/// Bytes of shared memory that a reduction exchanges at once.
constexpr int64_t kMostExchanged = 32768;

/// Combines the copies of all warps that differ in `warpBits`, through shared
/// memory: every thread stores its registers and reads those of its peers.
static void exchangeWarps(Emitter &e, Reducer &r, MutableArrayRef<Value> regs,
                          ArrayRef<int64_t> warpBits) {
  OpBuilder &b = e.b;
  int64_t n = regs.size();
  Value base = e.shared(e.numWarps * n * kWarpLanes * 4);
  Type ptrType = base.getType(), f32 = b.getF32Type(), type = regs[0].getType();
  auto address = [&](Value warp, int64_t reg) {
    Value lane = e.make<arith::AndIOp>(e.tid, e.i32(kWarpLanes - 1));
    Value slot = e.make<arith::AddIOp>(
        e.make<arith::MulIOp>(warp, e.i32(n * kWarpLanes)), lane);
    return e.make<LLVM::GEPOp>(ptrType, f32, base, ArrayRef<LLVM::GEPArg>{slot})
        .getResult();
  };
  auto at = [&](Value address, int64_t reg) -> Value {
    return e.make<LLVM::GEPOp>(
        ptrType, f32, address,
        ArrayRef<LLVM::GEPArg>{int32_t(reg * kWarpLanes)});
  };
  Value warp = e.make<arith::ShRUIOp>(e.tid, e.i32(5));
  Value mine = address(warp, 0);
  for (int64_t i = 0; i < n; ++i)
    e.make<LLVM::StoreOp>(regs[i], at(mine, i), /*alignment=*/4);
  e.barrier();

  int64_t mask = 0;
  for (int64_t bit : warpBits)
    mask |= int64_t(1) << bit;
  Value others = e.make<arith::AndIOp>(warp, e.i32(~mask & (e.numWarps - 1)));
  int64_t peers = int64_t(1) << warpBits.size();
  SmallVector<SmallVector<Value>> read(peers);
  for (int64_t j = 0; j < peers; ++j) {
    int64_t bits = 0;
    for (auto [t, bit] : llvm::enumerate(warpBits))
      bits |= (j >> t & 1) << bit;
    Value peer = address(e.make<arith::OrIOp>(others, e.i32(bits)), 0);
    for (int64_t i = 0; i < n; ++i)
      read[j].push_back(e.make<LLVM::LoadOp>(type, at(peer, i), 4));
  }
  for (size_t t = 0; t < warpBits.size(); ++t)
    for (int64_t j = 0; j < peers; j += int64_t(2) << t)
      for (int64_t i = 0; i < n; ++i)
        read[j][i] = r.combine(read[j][i], read[j + (int64_t(1) << t)][i]);
  llvm::copy(read[0], regs.begin());
  e.barrier();
}

/// The same, of as many registers at a time as shared memory is sure to hold.
static void reduceWarps(Emitter &e, Reducer &r, MutableArrayRef<Value> regs,
                        ArrayRef<int64_t> warpBits) {
  size_t most = kMostExchanged / (e.numWarps * kWarpLanes * 4);
  for (; regs.size() > most; regs = regs.drop_front(most))
    exchangeWarps(e, r, regs.take_front(most), warpBits);
  exchangeWarps(e, r, regs, warpBits);
}

constexpr int64_t kLaneBits = llvm::ConstantLog2<kWarpLanes>();

/// Whether `step` is the first of those that leave one value in all lanes of a
/// warp.
static bool overWarp(const ReducePlan &plan, const ReduceStep &step) {
  auto whole = [](const ReduceStep &s) {
    return s.kind == ReduceStep::Lane && s.exchange < 0;
  };
  const ReduceStep *first = llvm::find_if(plan.steps, whole);
  return first == &step && llvm::count_if(plan.steps, whole) == kLaneBits;
}

/// Takes the steps of `plan`; `layout` is that of `regs` before all of them.
static void takeSteps(Emitter &e, Reducer &r, Registers &regs,
                      const TileLayout &layout, const ReducePlan &plan,
                      int64_t axis) {
  // Lane steps that one instruction has done.
  int64_t done = 0;
  Coord repeats = layout.repeats;
  int64_t perRepeat = layout.regsPerRepeat();
  for (const ReduceStep &step : plan.steps) {
    switch (step.kind) {
    case ReduceStep::Repeats: {
      int64_t inner = 1, outer = 1;
      for (int64_t d = 0; d < layout.rank(); ++d)
        (d < axis ? outer : inner) *= d == axis ? 1 : repeats[d];
      int64_t count = repeats[axis];
      SmallVector<Value> next;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t in = 0; in < inner; ++in) {
          auto at = [&](int64_t k, int64_t i) {
            return regs[((o * count + k) * inner + in) * perRepeat + i];
          };
          // Chain by chain on a CPU, which takes few registers; step by step on
          // a GPU, for dither-pair-registers.
          int64_t together = e.simd ? 1 : perRepeat;
          for (int64_t first = 0; first < perRepeat; first += together) {
            SmallVector<Value> accs;
            for (int64_t i = 0; i < together; ++i)
              accs.push_back(r.leaf(at(0, first + i)));
            for (int64_t k = 1; k < count; ++k)
              for (int64_t i = 0; i < together; ++i)
                accs[i] = r.combine(at(k, first + i), accs[i]);
            next.append(accs);
          }
        }
      regs = next;
      repeats[axis] = 1;
      r.settled = true;
      break;
    }
    case ReduceStep::Reg: {
      SmallVector<Value> next;
      int64_t bit = int64_t(1) << step.bit;
      for (int64_t i = 0, n = regs.size(); i < n; ++i)
        if (!(i & bit))
          next.push_back(r.combine(regs[i | bit], r.leaf(regs[i])));
      regs = next;
      perRepeat /= 2;
      r.settled = true;
      break;
    }
    case ReduceStep::Lane: {
      r.settle(regs);
      if (r.inOneStep() && overWarp(plan, step)) {
        for (Value &v : regs)
          v = r.ofWarp(v);
        done = kLaneBits;
      }
      if (done) {
        --done;
        break;
      }
      auto op = [&](Value a, Value c) { return r.combine(a, c); };
      if (step.exchange < 0) {
        for (Value &v : regs)
          v = op(v, e.shuffleXor(v, int64_t(1) << step.bit));
        break;
      }
      SmallVector<Value> next;
      int64_t bit = int64_t(1) << step.exchange;
      for (int64_t i = 0, n = regs.size(); i < n; ++i)
        if (!(i & bit))
          next.push_back(
              e.exchange(regs[i], regs[i | bit], step.bit, step.rotate, op));
      regs = next;
      perRepeat /= 2;
      break;
    }
    case ReduceStep::Warps:
      r.settle(regs);
      reduceWarps(e, r, regs, plan.warpBits);
      break;
    }
  }
}

Registers Emitter::reduce(Registers regs, const TileLayout &layout,
                          const ReducePlan &plan, ReduceKind kind,
                          int64_t limit, int64_t axis, bool bits) {
  Reducer r(*this, kind, bits, /*words=*/{});

  // Padding registers beyond the tile take the identity.
  if (limit < layout.base[axis] * layout.repeats[axis]) {
    Value identity = splatF(r.identity());
    Type type = b.getI32Type();
    for (int64_t i = 0, n = regs.size(); i < n; ++i) {
      int64_t last = layout.repeatOrigin(i / layout.regsPerRepeat())[axis] +
                     layout.base[axis];
      if (last <= limit)
        continue;
      Value inside =
          make<arith::CmpIOp>(arith::CmpIPredicate::slt,
                              coordinate(layout, axis, i), splat(type, limit));
      regs[i] = make<arith::SelectOp>(inside, regs[i], identity);
    }
  }
  r.prepare(regs);
  takeSteps(*this, r, regs, layout, plan, axis);
  r.settle(regs);
  for (Value &v : regs)
    v = r.finish(v);
  return regs;
}

Value Emitter::hasSpecial(Registers tile) {
  Type word = regType(b.getI32Type());
  Value any;
  for (Value v : tile) {
    Value is = make<arith::CmpIOp>(arith::CmpIPredicate::uge,
                                   make<arith::BitcastOp>(word, v),
                                   splat(b.getI32Type(), 0x7F800000));
    any = any ? make<arith::OrIOp>(any, is).getResult() : is;
  }
  auto bits = VectorType::get({1}, b.getIntegerType(kSimdLanes));
  Value mask = make<vector::ExtractOp>(make<vector::BitCastOp>(bits, any),
                                       ArrayRef<int64_t>{0});
  Value none = constant(b.getIntegerAttr(b.getIntegerType(kSimdLanes), 0));
  return make<arith::CmpIOp>(arith::CmpIPredicate::ne, mask, none);
}

/// GPU: takes from `plan` its steps on words: those before the first that is
/// about bit 0 of a register's number, which says which value of a word it is,
/// or that an instruction has for single values.
static ReducePlan takeWordSteps(ReducePlan &plan) {
  auto ends = [&](const ReduceStep &step) {
    return (step.kind == ReduceStep::Reg && step.bit == 0) ||
           step.exchange == 0 || overWarp(plan, step);
  };
  ReducePlan taken = plan;
  auto *first = llvm::find_if(plan.steps, ends);
  taken.steps.assign(plan.steps.begin(), first);
  plan.steps.erase(plan.steps.begin(), first);
  for (ReduceStep &step : taken.steps) {
    if (step.kind == ReduceStep::Reg)
      --step.bit;
    if (step.exchange > 0)
      --step.exchange;
  }
  return taken;
}

/// GPU: words in place of two each, of which they have the maxima of both
/// values: of the registers that differ in bit 0, the first in the lower half.
static Registers pairMaxima(Emitter &e, Reducer &r, ArrayRef<Value> words) {
  Registers pairs;
  for (size_t i = 0; i < words.size(); i += 2) {
    Value low = gpu::permuteBytes(e.b, e.loc, words[i], words[i + 1], 0x5410),
          high = gpu::permuteBytes(e.b, e.loc, words[i], words[i + 1], 0x7632);
    pairs.push_back(r.combine(low, high));
  }
  return pairs;
}

/// Whether values of a block remain in bit 0 of a register's number, and blocks
/// in others.
static bool pairsMaxima(const ReducePlan &all, const ReducePlan &left) {
  auto inRegisters = [](const ReduceStep &step) {
    return step.kind == ReduceStep::Reg;
  };
  return !left.steps.empty() && inRegisters(left.steps[0]) &&
         llvm::count_if(all.steps, inRegisters) <
             int64_t(all.source.reg.size());
}

Registers Emitter::reduceWords(Registers tile, Type elem,
                               const TileLayout &layout, const ReducePlan &plan,
                               int64_t axis, bool bits) {
  Reducer words(*this, ReduceKind::amax, bits, elem);
  words.prepare(tile);
  ReducePlan single = plan;
  takeSteps(*this, words, tile, layout, simd ? plan : takeWordSteps(single),
            axis);
  if (!simd && pairsMaxima(plan, single)) {
    tile = pairMaxima(*this, words, tile);
    single.steps.erase(single.steps.begin());
    takeSteps(*this, words, tile, layout, takeWordSteps(single), axis);
  }
  // What a GPU has in f32 keeps its signs, which the maxima that follow drop.
  Value upper = splat(b.getI32Type(), int32_t(simd ? 0x7FFF0000 : 0xFFFF0000)),
        half = splat(b.getI32Type(), 16);
  auto widen = [&](Value v) -> Value {
    if (elem.isBF16())
      return make<arith::BitcastOp>(regType(b.getF32Type()), v);
    Value bits = make<arith::TruncIOp>(regType(b.getI16Type()),
                                       make<arith::ShRUIOp>(v, half));
    Value value = make<arith::BitcastOp>(regType(b.getF16Type()), bits);
    return make<arith::ExtFOp>(regType(b.getF32Type()), value);
  };
  // Lanes that exchange the values of words have both, and take one.
  bool choose = !simd && !single.steps.empty() && single.steps[0].exchange == 0;
  Registers out;
  for (Value w : tile) {
    w = words.finish(w);
    if (choose) {
      int64_t lane = int64_t(1) << single.steps[0].bit;
      Value whole = words.combine(w, shuffleXor(w, lane));
      Value shift = make<arith::SelectOp>(isUpper(lane), i32(0), half);
      Value mine = make<arith::ShLIOp>(whole, shift);
      out.push_back(widen(make<arith::AndIOp>(mine, upper)));
      continue;
    }
    Value even = make<arith::ShLIOp>(w, half);
    Value odd = make<arith::AndIOp>(w, upper);
    if (simd && axis == layout.rank() - 1) {
      out.push_back(widen(make<arith::MaxSIOp>(even, odd)));
    } else {
      out.push_back(widen(even));
      out.push_back(widen(odd));
    }
  }
  if (simd)
    return out;
  if (choose)
    single.steps.erase(single.steps.begin());
  return reduce(out, layout, single, ReduceKind::amax,
                layout.base[axis] * layout.repeats[axis], axis);
}

} // namespace dither::transforms
