//===- Registers.h - How many registers a kernel needs ----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_REGISTERS_H
#define DITHER_LIB_TARGET_REGISTERS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace dither::target {

/// Registers of 32 bits that a value of `type` takes on a GPU; conditions have
/// registers of their own.
unsigned registersOf(llvm::Type *type);

/// The order in which instructions of a block run: as they stand, or each as
/// late as something with an effect needs it. Loads, and what else has an
/// effect, keep their places.
enum class Order { Written, Late };

/// Registers that are alive at once in a function.
struct AliveRegisters {
  /// At most.
  unsigned most = 0;
  /// At a barrier, over which nothing can be moved; with kShufflesAttr, at the
  /// shuffles of waitsOf, too.
  unsigned waiting = 0;
};
/// How many registers are alive after each instruction.
using AliveAfter = llvm::DenseMap<const llvm::Instruction *, unsigned>;

/// Registers that are alive at once in `f`; `after`, if given, takes those
/// after each of its instructions.
AliveRegisters aliveRegisters(llvm::Function &f, Order order = Order::Written,
                              AliveAfter *after = nullptr);

/// Whether threads wait for others of their block or cluster here.
bool isBarrier(const llvm::Instruction &i);

/// Where the threads of `f` wait for others: at barriers, over which nothing
/// can be moved, and in blocks without, at the last shuffle of each sum.
using Waits = llvm::SmallPtrSet<const llvm::Instruction *, 8>;
Waits waitsOf(llvm::Function &f);

/// Says of a function that lanes held much at its shuffles, so that Lifetimes
/// put its code into an order in which they hold little there.
inline constexpr llvm::StringLiteral kShufflesAttr = "dither-shuffles";

/// Registers that a lane is to hold where it waits: two thirds of 96, which
/// leave a multiprocessor room for 20 warps.
constexpr unsigned kHeld = 64;

/// Whether a load is worth waiting for with others. Narrower ones are of the
/// version of a loop that goes past an edge, one for each element.
bool isWide(const llvm::LoadInst &load);

/// Whether `f` divides so often that its order says little: each quotient has a
/// slow path, and ptxas does better by itself.
bool hasManyQuotients(llvm::Function &f);

} // namespace dither::target

#endif // DITHER_LIB_TARGET_REGISTERS_H
