//===- DistributeReduce.cpp - Reductions of tiles ------------------------===//

#include "Distribute.h"

using namespace mlir;

namespace dither::transforms {

LogicalResult Distributor::emitReduce(Operation *op) {
  Value in = op->getOperand(0);
  LaneLayout l = layout(in);
  std::optional<ReducePlan> plan = rules.plan(op, l);
  if (!plan || plan->result != layout(op->getResult(0)))
    return op->emitOpError("operand layout cannot be reduced this way");
  if (!tile(in).getElementType().isF32())
    return op->emitOpError("expected an f32 tile");
  auto kind = quant::ReduceKind::amax;
  int64_t axis, limit;
  if (auto reduce = dyn_cast<quant::ReduceOp>(op)) {
    kind = reduce.getKind();
    axis = reduce.getAxis();
    limit = reduce.getExtent();
  } else {
    auto blocks = cast<quant::BlockReduceOp>(op);
    kind = blocks.getKind();
    axis = *LayoutRules::blockAxis(blocks);
    limit = l.base[axis] * l.repeats[axis];
  }
  if (simd && kind == quant::ReduceKind::amax &&
      limit == l.base[axis] * l.repeats[axis] &&
      reduceWords(op, *plan, l, axis))
    return success();
  set(op->getResult(0), e.reduce(regs(in), l, *plan, kind, limit, axis,
                                 op->hasAttr("quant.raw")));
  return success();
}

} // namespace dither::transforms
