//===- SignedZeros.cpp - Selections that are no maxima --------------------===//
//
// x < y ? x : y is y where both are zeros, whatever their signs. A minimum of
// PTX or AArch64 is -0 then, if one of them is; LLVM makes one of the other all
// the same, where y is no NaN.
//
// InstCombine compares halves where f32 of them are compared with a constant,
// takes what is selected of f32 and of 0 for a maximum of a half and 0, and
// forgets which of two zeros was selected.
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

static PreservedAnalyses kept(bool changed) {
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses kept;
  kept.preserveSet<CFGAnalyses>();
  return kept;
}

/// The operand that `select` chooses where the operands of `compare`, its
/// condition, are equal: 1, or 2.
static unsigned chosenWhenEqual(const FCmpInst &compare) {
  return FCmpInst::isTrueWhenEqual(compare.getPredicate()) ? 1 : 2;
}

PreservedAnalyses HideSelectionsPass::run(Function &f,
                                          FunctionAnalysisManager &) {
  using namespace PatternMatch;
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    auto *select = dyn_cast<SelectInst>(&i);
    if (!select || !select->getType()->isFPOrFPVectorTy())
      continue;
    auto *compare = dyn_cast<FCmpInst>(select->getCondition());
    if (!compare || (!match(compare->getOperand(0), m_AnyZeroFP()) &&
                     !match(compare->getOperand(1), m_AnyZeroFP())))
      continue;
    unsigned chosen = chosenWhenEqual(*compare);
    Value *value = select->getOperand(chosen);
    if (isa<Constant>(value) ||
        !match(select->getOperand(3 - chosen), m_AnyZeroFP()))
      continue;
    IRBuilder<> b(select);
    select->setOperand(chosen,
                       b.CreateArithmeticFence(value, value->getType()));
    changed = true;
  }
  return kept(changed);
}

PreservedAnalyses ShowSelectionsPass::run(Function &f,
                                          FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    auto *fence = dyn_cast<IntrinsicInst>(&i);
    if (!fence || fence->getIntrinsicID() != Intrinsic::arithmetic_fence)
      continue;
    fence->replaceAllUsesWith(fence->getArgOperand(0));
    fence->eraseFromParent();
    changed = true;
  }
  return kept(changed);
}

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
  unsigned at = chosenWhenEqual(*compare);
  Value *chosen = select.getOperand(at), *other = select.getOperand(3 - at);
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
  return kept(changed);
}

} // namespace dither::target
