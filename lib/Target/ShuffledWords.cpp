//===- ShuffledWords.cpp - Words of 32 bits that pairs hide ---------------===//
//
// Where a GPU computes with pairs of f32, LLVM has pairs of words in registers
// of 64 bits: it loads eight words as four of these if two of them are stored
// as one, or stores eight so. ptxas copies a word that is taken out of such a
// register before most instructions, or puts it in: 50 copies in the kernel
// of NVFP4 along both directions. A move between single words costs nothing,
// and LLVM does not see through it. It must see through a shuffle of products
// that it may contract with a sum: those stay.
//
//===----------------------------------------------------------------------===//

#include "ShuffledWords.h"
#include "Functions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace dither::target {

static Value *move(IRBuilder<> &b, Value *word) {
  Type *type = word->getType();
  auto *copy =
      InlineAsm::get(FunctionType::get(type, {type}, false), "mov.b32 $0, $1;",
                     type->isFloatTy() ? "=f,f" : "=r,r",
                     /*hasSideEffects=*/false);
  return b.CreateCall(copy, {word});
}

static bool mayContract(const Value *value) {
  auto *operation = dyn_cast<FPMathOperator>(value);
  return operation && operation->hasAllowContract();
}

PreservedAnalyses ShuffledWordsPass::run(Function &f,
                                         FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    auto *shuffle = dyn_cast<ShuffleVectorInst>(&i);
    if (!shuffle || shuffle->getType()->getScalarSizeInBits() != 32 ||
        any_of(shuffle->operand_values(), mayContract))
      continue;
    auto *source = cast<FixedVectorType>(shuffle->getOperand(0)->getType());
    int width = source->getNumElements();
    IRBuilder<> b(shuffle);
    Value *words = PoisonValue::get(shuffle->getType());
    for (auto [to, from] : enumerate(shuffle->getShuffleMask())) {
      if (from < 0)
        continue;
      Value *word = b.CreateExtractElement(shuffle->getOperand(from >= width),
                                           uint64_t(from % width));
      words = b.CreateInsertElement(words, move(b, word), uint64_t(to));
    }
    shuffle->replaceAllUsesWith(words);
    shuffle->eraseFromParent();
    changed = true;
  }
  return allButInstructions(changed);
}

} // namespace dither::target
