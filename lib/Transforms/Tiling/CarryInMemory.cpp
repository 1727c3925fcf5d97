//===- CarryInMemory.cpp - Tiles between blocks that registers do not hold
//-===//
//
// What a loop carries or a branch yields is a value of its own, which nobody
// can compute again in parts: it is in registers as a whole, or in memory. A
// CPU has registers for one fragment; code for larger tiles would grow with the
// tile. Those go to scratch memory, from where each use takes the part it
// needs.
//
//===----------------------------------------------------------------------===//

#include "Analysis/DimClasses.h"
#include "Layouts/LayoutRules.h"
#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERCARRYINMEMORY
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

bool isTile(Value v) { return isa<RankedTensorType>(v.getType()); }

/// What the operations of a kernel carry in registers, and what they do not.
class Carrier {
public:
  Carrier(func::FuncOp kernel, int64_t rows, int64_t cols)
      : kernel(kernel), rewriter(kernel.getContext()), rows(rows), cols(cols) {}

  void run() {
    SmallVector<Value> tiles;
    SmallVector<Operation *> found;
    kernel.walk([&](Operation *op) {
      llvm::copy_if(op->getOperands(), std::back_inserter(tiles), isTile);
      if (isa<scf::ForOp, scf::IfOp>(op) &&
          llvm::any_of(op->getResults(), isTile)) {
        llvm::copy_if(op->getResults(), std::back_inserter(tiles), isTile);
        found.push_back(op);
      }
    });
    if (found.empty())
      return;
    DimClasses classes(tiles);
    // Decided before anything changes: each choice looks at all uses.
    SmallVector<llvm::SmallBitVector> moves;
    for (Operation *op : found)
      moves.push_back(isa<scf::ForOp>(op)
                          ? choose(cast<scf::ForOp>(op), classes)
                          : choose(cast<scf::IfOp>(op), classes));
    for (auto [op, moved] : llvm::zip(found, moves)) {
      if (moved.none())
        continue;
      if (auto loop = dyn_cast<scf::ForOp>(op))
        rewrite(loop, moved);
      else
        rewrite(cast<scf::IfOp>(op), moved);
    }
  }

private:
  bool fits(Value v, const DimClasses &classes) const {
    auto type = cast<RankedTensorType>(v.getType());
    for (int64_t d = 0; d < type.getRank(); ++d) {
      DimClasses::Member m = classes.member(v, d);
      if (m.cls < 0)
        continue;
      const DimClasses::Class &info = classes[m.cls];
      if (info.extent > (info.isColumn ? cols : rows))
        return false;
    }
    return type.getNumElements() <= rows * cols;
  }

  llvm::SmallBitVector choose(scf::ForOp loop, const DimClasses &classes) {
    llvm::SmallBitVector moved(loop.getNumResults());
    for (unsigned i = 0; i < moved.size(); ++i)
      moved[i] = isTile(loop.getResult(i)) &&
                 canBeScratch(loop.getResult(i).getType()) &&
                 !(fits(loop.getResult(i), classes) &&
                   fits(loop.getInitArgs()[i], classes) &&
                   fits(loop.getRegionIterArg(i), classes) &&
                   fits(loop.getYieldedValues()[i], classes));
    return moved;
  }

  llvm::SmallBitVector choose(scf::IfOp branch, const DimClasses &classes) {
    llvm::SmallBitVector moved(branch.getNumResults());
    for (unsigned i = 0; i < moved.size(); ++i)
      moved[i] = isTile(branch.getResult(i)) &&
                 canBeScratch(branch.getResult(i).getType()) &&
                 !(fits(branch.getResult(i), classes) &&
                   fits(branch.thenYield().getOperand(i), classes) &&
                   fits(branch.elseYield().getOperand(i), classes));
    return moved;
  }

  static SmallVector<Value> kept(ValueRange values,
                                 const llvm::SmallBitVector &moved) {
    SmallVector<Value> out;
    for (auto [i, v] : llvm::enumerate(values))
      if (!moved[i])
        out.push_back(v);
    return out;
  }

  /// Results of `from` become those of `to`, or what lies in memory after it.
  void replaceResults(Operation *from, Operation *to,
                      const llvm::SmallBitVector &moved,
                      ArrayRef<Value> scratches) {
    rewriter.setInsertionPointAfter(to);
    unsigned next = 0;
    SmallVector<Value> results;
    for (unsigned i = 0; i < moved.size(); ++i)
      results.push_back(
          moved[i] ? loadScratch(
                         rewriter, from->getLoc(), scratches[i],
                         cast<RankedTensorType>(from->getResult(i).getType()))
                   : to->getResult(next++));
    rewriter.replaceOp(from, results);
  }

  void rewrite(scf::ForOp loop, const llvm::SmallBitVector &moved) {
    Location loc = loop.getLoc();
    SmallVector<Value> current(moved.size()), next(moved.size());
    rewriter.setInsertionPoint(loop);
    for (unsigned i : moved.set_bits()) {
      auto type = cast<RankedTensorType>(loop.getResult(i).getType());
      current[i] = makeScratch(kernel, loc, type);
      storeScratch(rewriter, loop.getInitArgs()[i].getLoc(), current[i],
                   loop.getInitArgs()[i]);
    }
    auto smaller = scf::ForOp::create(rewriter, loc, loop.getLowerBound(),
                                      loop.getUpperBound(), loop.getStep(),
                                      kept(loop.getInitArgs(), moved));
    smaller->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    Block *body = smaller.getBody();
    if (body->mightHaveTerminator())
      rewriter.eraseOp(body->getTerminator());
    rewriter.setInsertionPointToEnd(body);
    SmallVector<Value> args{smaller.getInductionVar()};
    unsigned arg = 0;
    for (unsigned i = 0; i < moved.size(); ++i)
      args.push_back(
          moved[i]
              ? loadScratch(rewriter, loop.getRegionIterArg(i).getLoc(),
                            current[i],
                            cast<RankedTensorType>(loop.getResult(i).getType()))
              : smaller.getRegionIterArg(arg++));
    rewriter.mergeBlocks(loop.getBody(), body, args);
    auto yield = cast<scf::YieldOp>(body->getTerminator());
    rewriter.setInsertionPoint(yield);
    // All of the next values first: they are computed from the current ones.
    for (unsigned i : moved.set_bits()) {
      if (yield.getOperand(i) == args[i + 1])
        continue;
      next[i] = makeScratch(
          kernel, loc, cast<RankedTensorType>(yield.getOperand(i).getType()));
      storeScratch(rewriter, yield.getOperand(i).getLoc(), next[i],
                   yield.getOperand(i));
    }
    for (unsigned i : moved.set_bits())
      if (next[i])
        storeScratch(
            rewriter, loc, current[i],
            loadScratch(rewriter, loc, next[i],
                        cast<RankedTensorType>(yield.getOperand(i).getType())));
    rewriter.replaceOpWithNewOp<scf::YieldOp>(yield,
                                              kept(yield.getOperands(), moved));
    replaceResults(loop, smaller, moved, current);
  }

  void rewrite(scf::IfOp branch, const llvm::SmallBitVector &moved) {
    Location loc = branch.getLoc();
    SmallVector<Value> scratches(moved.size());
    for (unsigned i : moved.set_bits())
      scratches[i] = makeScratch(
          kernel, loc, cast<RankedTensorType>(branch.getResult(i).getType()));
    for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()}) {
      rewriter.setInsertionPoint(yield);
      for (unsigned i : moved.set_bits())
        storeScratch(rewriter, yield.getOperand(i).getLoc(), scratches[i],
                     yield.getOperand(i));
      rewriter.replaceOpWithNewOp<scf::YieldOp>(
          yield, kept(yield.getOperands(), moved));
    }
    SmallVector<Type> types;
    for (unsigned i = 0; i < moved.size(); ++i)
      if (!moved[i])
        types.push_back(branch.getResult(i).getType());
    rewriter.setInsertionPoint(branch);
    auto smaller =
        scf::IfOp::create(rewriter, loc, types, branch.getCondition(),
                          /*addThenBlock=*/false, /*addElseBlock=*/false);
    smaller->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
    smaller.getThenRegion().takeBody(branch.getThenRegion());
    smaller.getElseRegion().takeBody(branch.getElseRegion());
    replaceResults(branch, smaller, moved, scratches);
  }

  func::FuncOp kernel;
  IRRewriter rewriter;
  int64_t rows, cols;
};

struct DitherCarryInMemory
    : impl::DitherCarryInMemoryBase<DitherCarryInMemory> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr("quant.kernel") || kernel.isExternal() ||
        kernel->hasAttr("quant.phases") || !hasScratch(kernel))
      return;
    SmallVector<int64_t> fragment = configuredExtents(kernel, "fragment");
    if (fragment.size() == 2)
      Carrier(kernel, fragment[0], fragment[1]).run();
  }
};

} // namespace

} // namespace dither::transforms
