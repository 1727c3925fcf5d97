//===- DistributeControl.cpp - Loops and branches of one lane ------------===//

#include "Distribute.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dither::transforms {

void Distributor::bind(ValueRange from, ValueRange to) {
  for (Value v : from) {
    RankedTensorType type = tile(v);
    size_t n = type ? registerType(type).second : 1;
    setValues(v, llvm::to_vector(to.take_front(n)));
    to = to.drop_front(n);
  }
}

LogicalResult Distributor::emitFor(scf::ForOp loop) {
  SmallVector<Value> inits;
  for (Value v : loop.getInitArgs())
    llvm::append_range(inits, values(v));
  auto out =
      e.make<scf::ForOp>(get(loop.getLowerBound()), get(loop.getUpperBound()),
                         get(loop.getStep()), inits);
  map.map(loop.getInductionVar(), out.getInductionVar());
  bind(ValueRange(loop.getRegionIterArgs()),
       ValueRange(out.getRegionIterArgs()));
  OpBuilder::InsertionGuard guard(b);
  Block *body = out.getBody();
  if (!body->empty() && body->back().hasTrait<OpTrait::IsTerminator>())
    body->back().erase();
  b.setInsertionPointToStart(body);
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  emitYield(loop.getBody()->getTerminator());
  bind(loop.getResults(), out.getResults());
  return success();
}

void Distributor::emitYield(Operation *yield) {
  SmallVector<Value> yielded;
  for (Value v : yield->getOperands())
    llvm::append_range(yielded, values(v));
  e.make<scf::YieldOp>(yielded);
}

LogicalResult Distributor::emitIf(scf::IfOp branch) {
  SmallVector<Type> types;
  for (Type t : branch.getResultTypes()) {
    auto type = dyn_cast<RankedTensorType>(t);
    auto [one, n] = type ? registerType(type) : std::pair(t, int64_t(1));
    types.append(n, one);
  }
  bool hasElse = !branch.getElseRegion().empty();
  auto out = e.make<scf::IfOp>(types, get(branch.getCondition()), hasElse);
  auto side = [&](Region &from, Region &to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    Block &block = to.front();
    if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>())
      block.back().erase();
    b.setInsertionPointToStart(&block);
    if (failed(emitBlock(from.front())))
      return failure();
    emitYield(from.front().getTerminator());
    return success();
  };
  if (failed(side(branch.getThenRegion(), out.getThenRegion())) ||
      (hasElse && failed(side(branch.getElseRegion(), out.getElseRegion()))))
    return failure();
  bind(branch.getResults(), out.getResults());
  return success();
}

} // namespace dither::transforms
