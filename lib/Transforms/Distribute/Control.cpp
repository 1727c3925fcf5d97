//===- Control.cpp - Loops and branches of one lane -----------------------===//

#include "Distribute/Distribute.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dither::transforms {

/// Each of `from` becomes the next of `to`, a tile as many as it has registers.
static void bind(Distributor &d, ValueRange from, ValueRange to) {
  for (Value v : from) {
    RankedTensorType type = Distributor::tile(v);
    size_t n = type ? d.registerType(type).second : 1;
    if (type)
      d.setRegs(v, llvm::to_vector(to.take_front(n)));
    else
      d.set(v, to.front());
    to = to.drop_front(n);
  }
}

/// What a block becomes, as the body of a new operation.
static LogicalResult emitBody(Distributor &d, Block &from, Block &to) {
  OpBuilder::InsertionGuard guard(d.b);
  if (!to.empty() && to.back().hasTrait<OpTrait::IsTerminator>())
    to.back().erase();
  d.b.setInsertionPointToStart(&to);
  if (failed(d.emitBlock(from)))
    return failure();
  SmallVector<Value> yielded;
  for (Value v : from.getTerminator()->getOperands())
    llvm::append_range(yielded, d.values(v));
  d.e.make<scf::YieldOp>(yielded);
  return success();
}

static Emitted emitFor(Distributor &d, scf::ForOp loop) {
  SmallVector<Value> inits;
  for (Value v : loop.getInitArgs())
    llvm::append_range(inits, d.values(v));
  auto out = d.e.make<scf::ForOp>(d.get(loop.getLowerBound()),
                                  d.get(loop.getUpperBound()),
                                  d.get(loop.getStep()), inits);
  d.set(loop.getInductionVar(), out.getInductionVar());
  bind(d, loop.getRegionIterArgs(), out.getRegionIterArgs());
  if (failed(emitBody(d, *loop.getBody(), *out.getBody())))
    return failure();
  bind(d, loop.getResults(), out.getResults());
  return success();
}

static Emitted emitIf(Distributor &d, scf::IfOp branch) {
  SmallVector<Type> types;
  for (Type t : branch.getResultTypes()) {
    auto type = dyn_cast<RankedTensorType>(t);
    auto [one, n] = type ? d.registerType(type) : std::pair(t, int64_t(1));
    types.append(n, one);
  }
  bool hasElse = !branch.getElseRegion().empty();
  auto out = d.e.make<scf::IfOp>(types, d.get(branch.getCondition()), hasElse);
  if (failed(emitBody(d, branch.getThenRegion().front(),
                      out.getThenRegion().front())) ||
      (hasElse && failed(emitBody(d, branch.getElseRegion().front(),
                                  out.getElseRegion().front()))))
    return failure();
  bind(d, branch.getResults(), out.getResults());
  return success();
}

/// Its branches are as long as they should be by now.
static Emitted emitLikely(Distributor &d, quant::LikelyOp op) {
  d.set(op.getResult(), d.get(op.getCondition()));
  return success();
}

void addControlOps(OpTable &table) {
  table.add(emitLikely);
  table.add(emitFor);
  table.add(emitIf);
}

} // namespace dither::transforms
