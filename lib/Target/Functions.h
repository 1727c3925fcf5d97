//===- Functions.h - What passes say and ask of functions -------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_FUNCTIONS_H
#define DITHER_LIB_TARGET_FUNCTIONS_H

#include "llvm/IR/Analysis.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace dither::target {

/// What a pass preserves that changes no block's place, if it changed anything.
inline llvm::PreservedAnalyses allButInstructions(bool changed) {
  if (!changed)
    return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

/// A number that a function has as an attribute; 0 if it has none.
inline unsigned numberOf(const llvm::Function &f, llvm::StringRef attribute) {
  unsigned number = 0;
  if (f.getFnAttribute(attribute).getValueAsString().getAsInteger(10, number))
    return 0;
  return number;
}

/// Whether `i` calls a function by its name, which begins with `prefix`.
inline bool calls(const llvm::Instruction &i, llvm::StringRef prefix) {
  auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
  const llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName().starts_with(prefix);
}

} // namespace dither::target

#endif // DITHER_LIB_TARGET_FUNCTIONS_H
