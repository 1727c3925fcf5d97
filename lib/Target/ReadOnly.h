//===- ReadOnly.h - Tensors that a kernel only reads ------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_READONLY_H
#define DITHER_LIB_TARGET_READONLY_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

namespace dither::target {

/// Arguments of a function that nothing writes while it runs.
class ReadOnlyArguments {
public:
  explicit ReadOnlyArguments(llvm::Function &f) {
    for (llvm::Instruction &i : llvm::instructions(f))
      if (!llvm::isa<llvm::LoadInst>(i) && i.mayWriteToMemory())
        for (llvm::Value *operand : i.operands())
          if (operand->getType()->isPointerTy())
            written.insert(llvm::getUnderlyingObject(operand, /*MaxLookup=*/0));
  }

  /// Whether `load` gives the same wherever in the function it is made.
  bool isReadBy(const llvm::LoadInst &load) const {
    auto *argument = llvm::dyn_cast<llvm::Argument>(
        llvm::getUnderlyingObject(load.getPointerOperand(), /*MaxLookup=*/0));
    return load.isSimple() && argument && argument->hasNoAliasAttr() &&
           !written.contains(argument);
  }

private:
  llvm::SmallPtrSet<const llvm::Value *, 8> written;
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_READONLY_H
