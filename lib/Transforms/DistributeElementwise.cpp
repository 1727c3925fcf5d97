//===- DistributeElementwise.cpp - Operations on every register ----------===//

#include "Distribute.h"

using namespace mlir;

namespace dither::transforms {

void Distributor::emitElementwise(Operation *op) {
  SmallVector<Registers> results(op->getNumResults());
  for (int64_t i = 0, n = registerType(tile(op->getResult(0))).second; i < n;
       ++i) {
    SmallVector<Value> operands;
    for (Value v : op->getOperands())
      operands.push_back(tile(v) ? regs(v)[i] : get(v));
    SmallVector<Type> types;
    for (Value v : op->getResults())
      types.push_back(registerType(tile(v)).first);
    OperationState state(e.loc, op->getName().getStringRef(), operands, types,
                         op->getAttrs());
    Operation *clone = b.create(state);
    for (auto [out, v] : llvm::zip(results, clone->getResults()))
      out.push_back(v);
  }
  for (auto [v, out] : llvm::zip(op->getResults(), results))
    set(v, out);
}

} // namespace dither::transforms
