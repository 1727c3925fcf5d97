//===- FatalErrors.h - Errors that LLVM ends the process for ----*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_FATALERRORS_H
#define DITHER_LIB_TARGET_FATALERRORS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>

namespace dither::target {

/// Runs `body`; the reason if LLVM gave up in it (report_fatal_error), which
/// would end the process. Nothing is destroyed then: the caller must not use,
/// nor destroy, what `body` was changing, and `body` holds no lock. Errors of
/// other threads are theirs.
std::optional<std::string> catchFatalError(llvm::function_ref<void()> body);

} // namespace dither::target

#endif // DITHER_LIB_TARGET_FATALERRORS_H
