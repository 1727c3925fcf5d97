//===- Reduce.cpp - Reductions and transforms of tiles --------------------===//

#include "Distribute/Distribute.h"

using namespace mlir;
using dither::quant::ReduceKind;

namespace dither::transforms {

std::optional<Reduction> reductionOf(Distributor &d, Operation *op) {
  std::optional<ReducePlan> plan =
      d.rules.plan(op, d.layout(op->getOperand(0)));
  if (!plan || plan->result != d.layout(op->getResult(0)))
    return std::nullopt;
  const TileLayout &l = plan->source;
  if (auto reduce = dyn_cast<quant::ReduceOp>(op))
    return Reduction{*plan, l, reduce.getKind(), int64_t(reduce.getAxis()),
                     reduce.getExtent()};
  auto blocks = cast<quant::BlockReduceOp>(op);
  int64_t axis = *LayoutRules::blockAxis(blocks);
  return Reduction{*plan,
                   l,
                   blocks.getKind(),
                   axis,
                   l.base[axis] * l.repeats[axis],
                   blocks.getAmaxBits()};
}

template <typename Op> static Emitted emitReduce(Distributor &d, Op op) {
  std::optional<Reduction> r = reductionOf(d, op);
  if (!r)
    return op.emitOpError("operand layout cannot be reduced this way");
  Value in = op.getSource();
  if (!d.tile(in).getElementType().isF32())
    return op.emitOpError("expected an f32 tile");
  if constexpr (std::is_same_v<Op, quant::BlockReduceOp>)
    if (op.getKind() == ReduceKind::sum) {
      d.setRegs(op.getResult(),
                d.e.sumBlocks(d.regs(in), r->plan, op.getHalves()));
      return success();
    }
  d.setRegs(op.getResult(), d.e.reduce(d.regs(in), r->layout, r->plan, r->kind,
                                       r->limit, r->axis, r->bits));
  return success();
}

static Emitted emitHasSpecial(Distributor &d, quant::HasSpecialOp op) {
  if (!d.simd)
    return op.emitOpError("expected a program for a CPU");
  d.set(op.getResult(), d.e.hasSpecial(d.regs(op.getSource())));
  return success();
}

static Emitted emitHadamard(Distributor &d, quant::HadamardOp op) {
  auto bits = placeBits(d.layout(op.getSource()), op.getAxis(), op.getSize());
  if (!bits)
    return op.emitOpError("operand layout cannot be transformed");
  d.setRegs(op.getResult(), d.e.butterflies(d.regs(op.getSource()), *bits));
  return success();
}

void addReduceOps(OpTable &table) {
  table.add(emitReduce<quant::ReduceOp>);
  table.add(emitReduce<quant::BlockReduceOp>);
  table.add(emitHasSpecial);
  table.add(emitHadamard);
}

} // namespace dither::transforms
