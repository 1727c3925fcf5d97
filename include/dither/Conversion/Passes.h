//===- Passes.h - Conversions to target-level dialects ----------*- C++ -*-===//

#ifndef DITHER_CONVERSION_PASSES_H
#define DITHER_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace dither::conversion {

#define GEN_PASS_DECL
#include "dither/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dither/Conversion/Passes.h.inc"

} // namespace dither::conversion

#endif // DITHER_CONVERSION_PASSES_H
