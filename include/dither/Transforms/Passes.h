//===- Passes.h - Transformations of tile programs --------------*- C++ -*-===//

#ifndef DITHER_TRANSFORMS_PASSES_H
#define DITHER_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {

#define GEN_PASS_DECL
#include "dither/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dither/Transforms/Passes.h.inc"

} // namespace dither::transforms

#endif // DITHER_TRANSFORMS_PASSES_H
