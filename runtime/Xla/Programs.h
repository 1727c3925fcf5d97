//===- Programs.h - The programs of custom calls ---------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_XLA_PROGRAMS_H
#define DITHER_RUNTIME_XLA_PROGRAMS_H

#include "dither/Runtime/Program.h"

namespace dither::runtime {

/// Decodes a program that is not known yet; `digest` stands for it from then
/// on. Errors: no base64, or what Program::decode gives; another digest than
/// the program has.
llvm::Error addProgram(llvm::StringRef digest, llvm::StringRef base64);

/// The program with its kernels on a device ("cpu", "cuda:0"), loaded once. It
/// lives as long as the process: calls of it may come at any time. Errors: a
/// program that was not added; no such device; an image that does not run
/// there.
llvm::Expected<const LoadedProgram *> findProgram(llvm::StringRef digest,
                                                  llvm::StringRef device);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_XLA_PROGRAMS_H
