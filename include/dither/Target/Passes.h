//===- Passes.h - From distributed kernels to the LLVM dialect --*- C++ -*-===//

#ifndef DITHER_TARGET_PASSES_H
#define DITHER_TARGET_PASSES_H

#include "mlir/Pass/Pass.h"

namespace dither::target {

#define GEN_PASS_DECL
#include "dither/Target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dither/Target/Passes.h.inc"

} // namespace dither::target

#endif // DITHER_TARGET_PASSES_H
