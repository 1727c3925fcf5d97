//===- EmitReduce.cpp - Reductions over registers, lanes and warps --------===//
//
// Follows a ReducePlan. Sums combine element bits from the lowest to the
// highest, so their bits depend on the row length alone (architecture.md,
// Order of sums). The other kinds are order-independent by construction: NaN
// loses against every number, and zeros come out as +0.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using dither::quant::ReduceKind;

namespace dither::transforms {

namespace {
/// One reduction: the registers that are left and how two of them combine.
class Reducer {
public:
  Reducer(Emitter &e, ReduceKind kind) : e(e), kind(kind) {}

  /// `a` is always an operand that has not been combined before where one
  /// exists: with amax on the CPU that order makes vmaxps drop its NaN.
  Value combine(Value a, Value c) {
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
    if (kind == ReduceKind::amax)
      for (Value &v : regs)
        v = e.make<math::AbsFOp>(v);
  }

  /// All registers must be free of NaN from here on (amax on the CPU).
  void settle(SmallVector<Value> &regs) {
    if (kind == ReduceKind::amax && e.simd && !settled)
      for (Value &v : regs)
        v = clean(v);
    settled = true;
  }
  Value leaf(Value v) {
    return kind == ReduceKind::amax && e.simd && !settled ? clean(v) : v;
  }
  bool settled = false;

  Value finish(Value v) {
    if (kind == ReduceKind::amax && !e.simd)
      return clean(v);
    // Canonical zero: max(-0, +0) is not ordered by every target.
    if (kind == ReduceKind::max || kind == ReduceKind::min)
      return e.make<arith::AddFOp>(v, e.splatF(0.0));
    return v;
  }

private:
  Emitter &e;
  ReduceKind kind;
};
} // namespace

/// Combines the copies of all warps that differ in `warpBits`, through shared
/// memory: every thread stores its registers and reads those of its peers.
static void reduceWarps(Emitter &e, Reducer &r, SmallVector<Value> &regs,
                        ArrayRef<int64_t> warpBits) {
  OpBuilder &b = e.b;
  int64_t n = regs.size();
  Value base = e.shared(e.numWarps * n * kWarpLanes * 4);
  Type ptrType = base.getType(), f32 = b.getF32Type();
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
      read[j].push_back(e.make<LLVM::LoadOp>(f32, at(peer, i), 4));
  }
  for (size_t t = 0; t < warpBits.size(); ++t)
    for (int64_t j = 0; j < peers; j += int64_t(2) << t)
      for (int64_t i = 0; i < n; ++i)
        read[j][i] = r.combine(read[j][i], read[j + (int64_t(1) << t)][i]);
  regs = read[0];
  e.barrier();
}

Registers Emitter::reduce(Registers regs, const LaneLayout &layout,
                          const ReducePlan &plan, ReduceKind kind,
                          int64_t limit, int64_t axis) {
  Reducer r(*this, kind);

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
        for (int64_t in = 0; in < inner; ++in)
          for (int64_t i = 0; i < perRepeat; ++i) {
            auto at = [&](int64_t k) {
              return regs[((o * count + k) * inner + in) * perRepeat + i];
            };
            Value acc = r.leaf(at(0));
            for (int64_t k = 1; k < count; ++k)
              acc = r.combine(at(k), acc);
            next.push_back(acc);
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
      auto op = [&](Value a, Value c) { return r.combine(a, c); };
      if (step.exchange < 0) {
        for (Value &v : regs)
          v = op(v, shuffleXor(v, int64_t(1) << step.bit));
        break;
      }
      SmallVector<Value> next;
      int64_t bit = int64_t(1) << step.exchange;
      for (int64_t i = 0, n = regs.size(); i < n; ++i)
        if (!(i & bit))
          next.push_back(
              exchange(regs[i], regs[i | bit], step.bit, step.rotate, op));
      regs = next;
      perRepeat /= 2;
      break;
    }
    case ReduceStep::Warps:
      r.settle(regs);
      reduceWarps(*this, r, regs, plan.warpBits);
      break;
    }
  }
  r.settle(regs);
  for (Value &v : regs)
    v = r.finish(v);
  return regs;
}

} // namespace dither::transforms
