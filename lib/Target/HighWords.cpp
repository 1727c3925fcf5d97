//===- HighWords.cpp - Numbers that fit 32 bits ---------------------------===//
//
// A GPU has registers of 32 bits. A comparison of 64 is two, and to put numbers
// of 64 together is one instruction for each half, while whether they are below
// 2^32 is told by their upper halves.
//
//===----------------------------------------------------------------------===//

#include "HighWords.h"
#include "Functions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace dither::target {

static Value *highWord(IRBuilder<> &b, Value *number) {
  // LLVM would shift numbers together, and compare them again.
  auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt64Ty()}, false);
  auto *move = InlineAsm::get(type, "{ .reg .b32 l; mov.b64 {l, $0}, $1; }",
                              "=r,l", /*hasSideEffects=*/false);
  return b.CreateCall(move, {number});
}

/// The upper half of numbers that are put together by `or`.
static Value *anyHighWord(IRBuilder<> &b, Value *numbers) {
  using namespace PatternMatch;
  Value *first, *second;
  if (!match(numbers, m_OneUse(m_Or(m_Value(first), m_Value(second)))))
    return highWord(b, numbers);
  Value *high = anyHighWord(b, first);
  return b.CreateOr(high, anyHighWord(b, second));
}

PreservedAnalyses HighWordsPass::run(Function &f, FunctionAnalysisManager &) {
  using namespace PatternMatch;
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    Value *numbers;
    if (!match(&i, m_SpecificICmp(CmpInst::ICMP_ULT, m_Value(numbers),
                                  m_SpecificInt(uint64_t(1) << 32))) ||
        !numbers->getType()->isIntegerTy(64))
      continue;
    IRBuilder<> b(&i);
    i.replaceAllUsesWith(b.CreateIsNull(anyHighWord(b, numbers)));
    i.eraseFromParent();
    changed = true;
  }
  return allButInstructions(changed);
}

} // namespace dither::target
