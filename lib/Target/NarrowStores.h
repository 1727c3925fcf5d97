//===- NarrowStores.h - Stores of a part of a register ----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_NARROWSTORES_H
#define DITHER_LIB_TARGET_NARROWSTORES_H

namespace llvm {
class FunctionPass;
} // namespace llvm

namespace dither::target {

/// Moves a register to one of its own before an instruction stores less than
/// all of it, in PTX. Where a floating-point instruction made it, ptxas (12.9
/// to 13.0) takes the store for one that converts the number to an integer of
/// the stored width. After the move it is bits, and ptxas drops the move.
llvm::FunctionPass *createNarrowStoresPass();

} // namespace dither::target

#endif // DITHER_LIB_TARGET_NARROWSTORES_H
