//===- EmitPlaces.cpp - What depends on the places of elements ------------===//
//
// Sums of blocks in an order, and butterflies: both go by the place that an
// element has in its block, wherever its registers and lanes are.
//
//===----------------------------------------------------------------------===//

#include "Emit/Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dither::transforms {

Registers Emitter::sumBlocks(Registers regs, const ReducePlan &plan,
                             bool halves) {
  auto add = [&](Value a, Value c) { return make<arith::AddFOp>(a, c); };
  // The elements of a block that a lane has, by their place: steps go from the
  // lowest bit of the place to the highest. Where registers are used up, the
  // highest bits stay lanes.
  SmallVector<Registers> found;
  for (Value v : regs)
    found.push_back({v});
  SmallVector<int64_t> lanes;
  for (const ReduceStep &step : plan.steps) {
    if (step.kind == ReduceStep::Lane && step.exchange < 0) {
      lanes.push_back(int64_t(1) << step.bit);
      continue;
    }
    bool isReg = step.kind == ReduceStep::Reg;
    size_t bit = size_t(1) << (isReg ? step.bit : step.exchange);
    SmallVector<Registers> next;
    for (size_t i = 0; i < found.size(); ++i) {
      if (i & bit)
        continue;
      Registers low = found[i], high = found[i | bit];
      if (!isReg)
        for (auto [a, c] : llvm::zip_equal(low, high))
          std::tie(a, c) = exchangePlaces(a, c, step.bit, step.rotate);
      low.append(high);
      next.push_back(low);
    }
    found = next;
  }

  Registers sums;
  for (Registers &block : found) {
    if (halves) {
      for (int64_t lane : llvm::reverse(lanes))
        for (Value &v : block)
          v = add(v, shuffleXor(v, lane));
      for (; block.size() > 1; block.truncate(block.size() / 2))
        for (size_t i = 0, half = block.size() / 2; i < half; ++i)
          block[i] = add(block[i], block[half + i]);
      sums.push_back(block.front());
      continue;
    }
    // Each lane adds its own to the sum of the lanes before it, which they
    // hand on; what a lane has before its turn is not used.
    int64_t mask = 0;
    for (int64_t lane : lanes)
      mask |= lane;
    Value sum;
    for (size_t place = 0; place < size_t(1) << lanes.size(); ++place) {
      for (Value v : block)
        sum = sum ? add(sum, v) : v;
      int64_t turn = 0;
      for (auto [k, lane] : llvm::enumerate(lanes))
        turn |= place >> k & 1 ? lane : 0;
      if (mask)
        sum = shuffleWithin(sum, mask, turn);
    }
    sums.push_back(sum);
  }
  return sums;
}

Registers Emitter::butterflies(Registers regs, ArrayRef<PlaceBit> bits) {
  for (PlaceBit place : bits) {
    int64_t mask = int64_t(1) << place.bit;
    // What neighbours do alike stands together, for dither-pair-registers.
    int64_t count = regs.size(), together = count % 2 ? 1 : 2;
    if (place.kind == PlaceBit::Reg) {
      together = std::min(together, mask);
      for (int64_t first = 0; first < count; first += together) {
        if (first & mask)
          continue;
        MutableArrayRef<Value> low = MutableArrayRef(regs), high = low;
        low = low.slice(first, together);
        high = high.slice(first | mask, together);
        Registers a(low), c(high);
        for (auto [sum, x, y] : llvm::zip_equal(low, a, c))
          sum = make<arith::AddFOp>(x, y);
        for (auto [difference, x, y] : llvm::zip_equal(high, a, c))
          difference = make<arith::SubFOp>(x, y);
      }
      continue;
    }
    // The lane of the upper element takes its own away: 1 and -1 times it are
    // exact, so a multiply-add rounds once.
    Value sign;
    if (simd) {
      SmallVector<float> signs;
      for (int64_t l = 0; l < kSimdLanes; ++l)
        signs.push_back(l & mask ? -1.0f : 1.0f);
      sign = constant(DenseElementsAttr::get(
          cast<ShapedType>(regType(b.getF32Type())), ArrayRef<float>(signs)));
    } else {
      Value upper =
          make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                              make<arith::AndIOp>(tid, i32(mask)), i32(0));
      sign = make<arith::SelectOp>(upper, splatF(-1), splatF(1));
    }
    for (int64_t first = 0; first < count; first += together) {
      auto own = MutableArrayRef(regs).slice(first, together);
      Registers others;
      for (Value reg : own)
        others.push_back(shuffleXor(reg, mask));
      for (auto [reg, other] : llvm::zip_equal(own, others))
        reg = make<math::FmaOp>(reg, sign, other);
    }
  }
  return regs;
}

} // namespace dither::transforms
