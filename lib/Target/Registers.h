//===- Registers.h - How many registers a kernel needs ----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_REGISTERS_H
#define DITHER_LIB_TARGET_REGISTERS_H

#include "llvm/IR/Function.h"

namespace dither::target {

/// Registers of 32 bits that a value of `type` takes on a GPU; conditions have
/// registers of their own.
unsigned registersOf(llvm::Type *type);

/// Registers that are alive at once in a function whose instructions run in the
/// order in which they stand.
struct AliveRegisters {
  /// At most.
  unsigned most = 0;
  /// At a barrier, over which nothing can be moved.
  unsigned waiting = 0;
};
AliveRegisters aliveRegisters(llvm::Function &f);

/// Whether `f` divides so often that its order says little: each quotient has a
/// slow path, and ptxas does better by itself.
bool hasManyQuotients(llvm::Function &f);

} // namespace dither::target

#endif // DITHER_LIB_TARGET_REGISTERS_H
