//===- WideReversals.cpp - Bits turned around in words --------------------===//
//
// After lanes exchange what they have of columns, the column of a lane is its
// number with the bits in another order, often the reverse one. InstCombine
// makes a reversal of just these bits of that. A GPU has an instruction for 32
// and 64 bits; code generation makes about 15 of a reversal of fewer.
//
//===----------------------------------------------------------------------===//

#include "WideReversals.h"
#include "Functions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace dither::target {

PreservedAnalyses WideReversalsPass::run(Function &f,
                                         FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    using namespace PatternMatch;
    Value *bits;
    auto *type = dyn_cast<IntegerType>(i.getType());
    if (!type || type->getBitWidth() >= 32 ||
        !match(&i, m_BitReverse(m_Value(bits))))
      continue;
    IRBuilder<> b(&i);
    Value *word = b.CreateUnaryIntrinsic(Intrinsic::bitreverse,
                                         b.CreateZExt(bits, b.getInt32Ty()));
    Value *low = b.CreateLShr(word, 32 - type->getBitWidth());
    i.replaceAllUsesWith(b.CreateTrunc(low, type));
    i.eraseFromParent();
    changed = true;
  }
  return allButInstructions(changed);
}

} // namespace dither::target
