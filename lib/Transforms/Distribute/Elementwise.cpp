//===- Elementwise.cpp - Operations on every register ---------------------===//

#include "Distribute/Distribute.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dither::transforms {

static bool isElementwise(Operation *op) {
  return !op->getNumRegions() &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          isa<arith::ArithDialect, math::MathDialect>(op->getDialect()));
}

LogicalResult emitElementwise(Distributor &d, Operation *op) {
  if (!isElementwise(op))
    return op->emitOpError("has no distributed form");
  // What else than conversions knows how to read or make words.
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  for (Value v : values)
    if (d.tile(v) && wordBits(d.tile(v).getElementType()))
      return op->emitOpError("arithmetic on ")
             << d.tile(v).getElementType()
             << " tiles, expected f32, i32, i64 or i1";
  SmallVector<Registers> results(op->getNumResults());
  int64_t n = d.registerType(d.tile(op->getResult(0))).second;
  for (int64_t i = 0; i < n; ++i) {
    SmallVector<Value> operands;
    for (Value v : op->getOperands())
      operands.push_back(d.tile(v) ? d.regs(v)[i] : d.get(v));
    SmallVector<Type> types;
    for (Value v : op->getResults())
      types.push_back(d.registerType(d.tile(v)).first);
    OperationState state(d.e.loc, op->getName().getStringRef(), operands, types,
                         op->getAttrs());
    Operation *clone = d.b.create(state);
    for (auto [out, v] : llvm::zip(results, clone->getResults()))
      out.push_back(v);
  }
  for (auto [v, out] : llvm::zip(op->getResults(), results))
    d.setRegs(v, out);
  return success();
}

} // namespace dither::transforms
