//===- ReduceWords.cpp - Maxima of 16-bit values, two at a time -----------===//

#include "Distribute/Distribute.h"

using namespace mlir;

namespace dither::transforms {

/// CPU: the plan of a reduction of two values to a word, `words` their layout;
/// not if its result is another layout than that of single values.
static std::optional<ReducePlan>
planOfWords(const Reduction &r, const TileLayout &words, bool full) {
  bool folds = r.axis == r.layout.rank() - 1;
  int64_t extent = r.plan.extent / (folds ? 2 : 1);
  layout::Result<ReducePlan> plan =
      planReduce(words, r.axis, extent, full, false, Exchange::Rotate);
  if (!plan || extent < 1)
    return std::nullopt;
  TileLayout result = plan->result;
  if (!folds) {
    Coord step(r.layout.rank(), 0);
    step.back() = 1;
    for (auto *images : {&result.reg, &result.lane, &result.warp})
      for (Coord &c : *images)
        c.back() *= 2;
    result.base.back() *= 2;
    result.reg.insert(result.reg.begin(), step);
  }
  return result == r.plan.result ? std::optional(std::move(*plan))
                                 : std::nullopt;
}

/// The amax of widened 16-bit values, two at a time; not if their words do not
/// allow it.
template <typename Op> static Emitted reduceWords(Distributor &d, Op op) {
  Value from = op.getSource();
  std::optional<Reduction> r = reductionOf(d, op);
  // What was transposed has its words along columns of the source.
  if (auto turn = from.getDefiningOp<quant::TransposeOp>(); turn && r) {
    const TileLayout &result = r->plan.result;
    // Repeats in both directions would have another order of registers.
    if (result.rank() != 2 || (result.repeats[0] > 1 && result.repeats[1] > 1))
      return std::nullopt;
    from = turn.getSource();
    r->layout = transposed(r->layout);
    r->plan.result = transposed(r->plan.result);
    r->axis = 1 - r->axis;
  }
  auto widened = from.getDefiningOp<arith::ExtFOp>();
  if (!widened || !r || r->kind != quant::ReduceKind::amax ||
      (r->bits && !d.simd) ||
      r->limit != r->layout.base[r->axis] * r->layout.repeats[r->axis])
    return std::nullopt;
  Value source = widened.getIn();
  Type elem = d.tile(source).getElementType();
  if (!(elem.isBF16() || elem.isF16()) ||
      foldedRepeats(d.layout(source)) != foldedRepeats(r->layout) ||
      wordGroup(r->layout, 16) != 2)
    return std::nullopt;
  TileLayout words = inUnits(r->layout, 1);
  std::optional<ReducePlan> plan = r->plan;
  if (d.simd)
    plan = planOfWords(*r, words, std::is_same_v<Op, quant::ReduceOp>);
  if (!plan)
    return std::nullopt;
  d.setRegs(op.getResult(), d.e.reduceWords(d.regs(source), elem, words, *plan,
                                            r->axis, r->bits));
  return success();
}

void addWordReductions(OpTable &table) {
  table.add(reduceWords<quant::ReduceOp>);
  table.add(reduceWords<quant::BlockReduceOp>);
}

} // namespace dither::transforms
