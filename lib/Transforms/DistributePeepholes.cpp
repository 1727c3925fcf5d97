//===- DistributePeepholes.cpp - CPU peepholes ---------------------------===//

#include "Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dither::transforms {

bool Distributor::encodeProduct(quant::EncodeOp op) {
  Type elem = op.getResult().getType().getElementType();
  auto product = op.getSource().getDefiningOp<arith::MulFOp>();
  LaneLayout l = layout(op.getResult());
  if (!simd || !product || matchPattern(product.getRhs(), m_Constant()) ||
      layout(product.getLhs()) != l ||
      wordGroup(l, quant::storageBits(elem)) != 2)
    return false;
  Value source = product.getLhs();
  auto widened = source.getDefiningOp<arith::ExtFOp>();
  bool words = widened && tile(widened.getIn()).getElementType().isBF16() &&
               layout(widened.getIn()) == l;
  Registers from = regs(words ? widened.getIn() : source),
            factors = regs(product.getRhs()), codes;
  size_t step = words ? 1 : 2;
  Type result = VectorType::get({1, kSimdLanes}, b.getI32Type());
  for (size_t i = 0; i < factors.size() / 2; ++i) {
    ArrayRef<Value> x = ArrayRef<Value>(from).slice(i * step, step);
    Value code = e.make<quant::ScaleEncodeWordsOp>(
        result, e.pack(x, words ? Type(b.getI32Type()) : Type(b.getF32Type())),
        e.pack(ArrayRef<Value>(factors).slice(2 * i, 2), b.getF32Type()), elem,
        op->hasAttr("quant.bounded"));
    llvm::append_range(codes, e.unpack(code));
  }
  set(op.getResult(), codes);
  return true;
}

bool Distributor::reduceWords(Operation *op, const ReducePlan &plan,
                              const LaneLayout &l, int64_t axis) {
  auto widened = op->getOperand(0).getDefiningOp<arith::ExtFOp>();
  if (!widened)
    return false;
  Value source = widened.getIn();
  Type elem = tile(source).getElementType();
  if (!(elem.isBF16() || elem.isF16()) || layout(source) != l ||
      wordGroup(l, 16) != 2)
    return false;
  bool folds = axis == l.rank() - 1;
  LaneLayout words = unitLayout(l, 1);
  int64_t extent = plan.extent / (folds ? 2 : 1);
  std::optional<ReducePlan> half = planReduce(
      words, axis, extent, isa<quant::ReduceOp>(op), false, Exchange::Rotate);
  if (!half || extent < 1)
    return false;
  LaneLayout result = half->result;
  if (!folds) {
    Coord step(l.rank(), 0);
    step.back() = 1;
    for (auto *images : {&result.reg, &result.lane, &result.warp})
      for (Coord &c : *images)
        c.back() *= 2;
    result.base.back() *= 2;
    result.reg.insert(result.reg.begin(), step);
  }
  if (result != plan.result)
    return false;
  set(op->getResult(0), e.reduceWords(regs(source), elem, words, *half, axis,
                                      folds, op->hasAttr("quant.raw")));
  return true;
}

} // namespace dither::transforms
