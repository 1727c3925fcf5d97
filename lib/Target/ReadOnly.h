//===- ReadOnly.h - Tensors that a kernel only reads ------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_READONLY_H
#define DITHER_LIB_TARGET_READONLY_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

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

  /// Whether all programs read what `load` does, as the parameters of a norm:
  /// it is in a cache.
  bool isOfAllPrograms(const llvm::LoadInst &load) const {
    return isReadBy(load) && !dependsOnProgram(load.getPointerOperand());
  }

private:
  /// Operations between a program's id and an address, at most.
  static constexpr unsigned kAddressDepth = 24;

  static bool dependsOnProgram(const llvm::Value *v, unsigned depth = 0) {
    auto *i = llvm::dyn_cast<llvm::Instruction>(v);
    if (!i)
      return false;
    if (depth > kAddressDepth || llvm::isa<llvm::PHINode, llvm::LoadInst>(i))
      return true;
    if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(i))
      return call->getIntrinsicID() !=
             llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x;
    return llvm::any_of(i->operand_values(), [&](const llvm::Value *operand) {
      return dependsOnProgram(operand, depth + 1);
    });
  }

  llvm::SmallPtrSet<const llvm::Value *, 8> written;
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_READONLY_H
