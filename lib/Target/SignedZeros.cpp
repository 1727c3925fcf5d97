//===- SignedZeros.cpp - Selections that are no maxima --------------------===//
//
// x < y ? x : y is y where both are zeros, whatever their signs. A minimum of
// PTX or AArch64 is -0 then, if one of them is; LLVM makes one of the other all
// the same, where y is no NaN.
//
//===----------------------------------------------------------------------===//

#include "SignedZeros.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownFPClass.h"

using namespace llvm;

namespace dither::target {

/// Whether code generation takes `select` for a maximum or minimum that may be
/// another zero.
static bool losesSign(SelectInst &select) {
  Value *left, *right;
  SelectPatternFlavor flavor = matchSelectPattern(&select, left, right).Flavor;
  if (flavor != SPF_FMAXNUM && flavor != SPF_FMINNUM)
    return false;
  auto *compare = dyn_cast<FCmpInst>(select.getCondition());
  if (!compare)
    return true;
  SimplifyQuery query(select.getDataLayout(), &select);
  auto isNeverZero = [&](Value *v) {
    return computeKnownFPClass(v, fcZero, query).isKnownNeverZero();
  };
  if (isNeverZero(select.getTrueValue()) || isNeverZero(select.getFalseValue()))
    return false;
  // Of two zeros a maximum is +0, if one of them is.
  Value *chosen = select.getTrueValue(), *other = select.getFalseValue();
  if (!FCmpInst::isTrueWhenEqual(compare->getPredicate()))
    std::swap(chosen, other);
  using namespace PatternMatch;
  return flavor == SPF_FMAXNUM
             ? !match(chosen, m_PosZeroFP()) && !match(other, m_NegZeroFP())
             : !match(chosen, m_NegZeroFP()) && !match(other, m_PosZeroFP());
}

PreservedAnalyses SignedZerosPass::run(Function &f, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    auto *select = dyn_cast<SelectInst>(&i);
    if (!select || !select->getType()->isFPOrFPVectorTy() ||
        !losesSign(*select))
      continue;
    IRBuilder<> b(select);
    Type *bits = select->getType()->getWithNewType(
        b.getIntNTy(select->getType()->getScalarSizeInBits()));
    Value *chosen = b.CreateSelect(
        select->getCondition(), b.CreateBitCast(select->getTrueValue(), bits),
        b.CreateBitCast(select->getFalseValue(), bits));
    select->replaceAllUsesWith(b.CreateBitCast(chosen, select->getType()));
    select->eraseFromParent();
    changed = true;
  }
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses kept;
  kept.preserveSet<CFGAnalyses>();
  return kept;
}

} // namespace dither::target
