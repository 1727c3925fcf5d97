//===- Registers.h - How many registers a kernel needs ----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_REGISTERS_H
#define DITHER_LIB_TARGET_REGISTERS_H

#include "llvm/IR/Function.h"

namespace dither::target {

/// Registers of 32 bits that a value of `type` takes on a GPU; conditions have
/// registers of their own.
unsigned registersOf(llvm::Type *type);

/// The most registers that are alive at once in a function whose instructions
/// run in the order in which they stand.
unsigned mostRegisters(llvm::Function &f);

/// Whether `f` divides so often that its order says little: each quotient has a
/// slow path, and ptxas does better by itself.
bool hasManyQuotients(llvm::Function &f);

} // namespace dither::target

#endif // DITHER_LIB_TARGET_REGISTERS_H
