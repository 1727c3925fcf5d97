//===- SplitLoops.cpp - The last rounds of a loop by themselves -----------===//
//
// Where the first of the last rounds begins, the first rounds carry to it:
// steps that are known at run time alone would take a division.
//
//===----------------------------------------------------------------------===//

#include "Tiling/SplitLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace dither::transforms {

scf::ForOp splitLoop(scf::ForOp &loop, Value end, int64_t divisor,
                     IRMapping &rest) {
  IRRewriter b(loop.getContext());
  Location loc = loop.getLoc();
  b.setInsertionPointAfter(loop);
  auto last = cast<scf::ForOp>(b.clone(*loop, rest));
  loop->replaceAllUsesWith(last);

  b.setInsertionPoint(loop);
  auto next = [](OpBuilder &b, Location loc, ArrayRef<BlockArgument> args) {
    auto loop = cast<scf::ForOp>(args[0].getOwner()->getParentOp());
    Value sum =
        arith::AddIOp::create(b, loc, loop.getInductionVar(), loop.getStep());
    return SmallVector<Value>{sum};
  };
  FailureOr<LoopLikeOpInterface> first = loop.replaceWithAdditionalYields(
      b, loop.getLowerBound(), /*replaceInitOperandUsesInLoop=*/false, next);
  loop = cast<scf::ForOp>(first->getOperation());
  b.setInsertionPoint(loop);
  loop.setUpperBound(arith::MinSIOp::create(b, loc, loop.getUpperBound(), end));

  // Later passes see what divides it.
  b.setInsertionPointAfter(loop);
  Value size = arith::ConstantIndexOp::create(b, loc, divisor);
  Value number = arith::DivUIOp::create(b, loc, loop.getResults().back(), size);
  last.setLowerBound(arith::MulIOp::create(b, loc, number, size));
  last.getInitArgsMutable().assign(loop.getResults().drop_back());
  return last;
}

} // namespace dither::transforms
