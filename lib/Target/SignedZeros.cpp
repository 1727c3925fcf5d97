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
#include "Functions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownFPClass.h"

using namespace llvm;

namespace dither::target {

/// The operand that `select` chooses where the operands of `compare`, its
/// condition, are equal: 1, or 2.
static unsigned chosenWhenEqual(const FCmpInst &compare) {
  return FCmpInst::isTrueWhenEqual(compare.getPredicate()) ? 1 : 2;
}

/// Comparisons that are put together, at most, one above the other.
constexpr unsigned kDepth = 6;

/// Whether a condition is put together of comparisons, one of them with zero.
static bool comparesWithZero(Value *condition, unsigned depth = 0) {
  using namespace PatternMatch;
  if (auto *compare = dyn_cast<FCmpInst>(condition))
    return match(compare->getOperand(0), m_AnyZeroFP()) ||
           match(compare->getOperand(1), m_AnyZeroFP());
  auto *logic = dyn_cast<Instruction>(condition);
  return logic && isa<BinaryOperator, SelectInst>(logic) && depth < kDepth &&
         any_of(
             logic->operands(),
             [&](Value *part) { return comparesWithZero(part, depth + 1); });
}

/// The operand that is a number where `select` chooses between one and a zero,
/// and another zero may be chosen of it; null if it is no such selection.
static Use *selectedNumber(SelectInst &select) {
  using namespace PatternMatch;
  Value *condition = select.getCondition();
  if (!select.getType()->isFPOrFPVectorTy() || !comparesWithZero(condition))
    return nullptr;
  unsigned number = match(select.getTrueValue(), m_AnyZeroFP()) ? 2 : 1;
  auto *compare = dyn_cast<FCmpInst>(condition);
  if ((compare && chosenWhenEqual(*compare) != number) ||
      isa<Constant>(select.getOperand(number)) ||
      !match(select.getOperand(3 - number), m_AnyZeroFP()))
    return nullptr;
  return &select.getOperandUse(number);
}

PreservedAnalyses HideSelectionsPass::run(Function &f,
                                          FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    auto *select = dyn_cast<SelectInst>(&i);
    Use *number = select ? selectedNumber(*select) : nullptr;
    if (!number)
      continue;
    IRBuilder<> b(select);
    number->set(b.CreateArithmeticFence(*number, select->getType()));
    changed = true;
  }
  return allButInstructions(changed);
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
  return allButInstructions(changed);
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
  return allButInstructions(changed);
}

} // namespace dither::target
