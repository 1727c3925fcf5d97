//===- SignalingNaNs.cpp - Maxima that ignore every NaN -------------------===//
//
// A maximum of ours is the number where the other operand is a NaN, of either
// kind. So are max of PTX and what LLVM makes of maxnum on x86. On AArch64 it
// is fmaxnm, as of IEEE 754-2008: a signaling NaN, which tensors may hold,
// makes a NaN. LLVM's maximumnum, as of IEEE 754-2019, ignores those too. The
// code generator also makes fmaxnm of a comparison and a select, where one of
// the operands is no NaN.
//
//===----------------------------------------------------------------------===//

#include "SignalingNaNs.h"
#include "Functions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace dither::target {

namespace {

/// A maximum or a minimum that ignores NaN, or what is not one.
struct Extremum {
  Value *left = nullptr, *right = nullptr;
  bool isMax = false;
};

Extremum extremumOf(Instruction &i) {
  if (auto *call = dyn_cast<IntrinsicInst>(&i)) {
    Intrinsic::ID id = call->getIntrinsicID();
    if (id == Intrinsic::maxnum || id == Intrinsic::minnum)
      return {call->getArgOperand(0), call->getArgOperand(1),
              id == Intrinsic::maxnum};
    return {};
  }
  Value *left, *right;
  SelectPatternResult found = matchSelectPattern(&i, left, right);
  if (!SelectPatternResult::isMinOrMax(found.Flavor) ||
      found.NaNBehavior != SPNB_RETURNS_OTHER)
    return {};
  return {left, right, found.Flavor == SPF_FMAXNUM};
}

} // namespace

PreservedAnalyses SignalingNaNsPass::run(Function &f,
                                         FunctionAnalysisManager &analyses) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    Extremum found = extremumOf(i);
    if (!found.left || !i.getType()->isFPOrFPVectorTy())
      continue;
    IRBuilder<> b(&i);
    i.replaceAllUsesWith(b.CreateBinaryIntrinsic(
        found.isMax ? Intrinsic::maximumnum : Intrinsic::minimumnum, found.left,
        found.right));
    i.eraseFromParent();
    changed = true;
  }
  return allButInstructions(changed);
}

} // namespace dither::target
