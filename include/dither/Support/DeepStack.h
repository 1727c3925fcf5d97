//===- DeepStack.h - Work that recurses deeply ------------------*- C++ -*-===//
//
// LLVM and MLIR recurse along the operations of a program: along a chain of a
// thousand, in frames of kilobytes. The stack of a caller may be anything.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_SUPPORT_DEEPSTACK_H
#define DITHER_SUPPORT_DEEPSTACK_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace dither {

/// Runs `body`, which throws nothing, on a thread with a large stack, and waits
/// for it. Signals go to other threads meanwhile. Where no thread can be
/// started, `body` runs on this one.
void runOnDeepStack(llvm::function_ref<void()> body);

} // namespace dither

#endif // DITHER_SUPPORT_DEEPSTACK_H
