//===- Describe.h - Tiles in the words of their user ------------*- C++ -*-===//
//
// What a program may meet as a limit is an emitError in the words of the
// language: types and shapes as Python has them, and no fragment, layout or
// lane. An emitOpError is for those who work on the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_ANALYSIS_DESCRIBE_H
#define DITHER_LIB_TRANSFORMS_ANALYSIS_DESCRIBE_H

#include "mlir/IR/BuiltinTypes.h"
#include <string>

namespace dither::transforms {

/// A type of elements: `float32`, `float8_e4m3`.
std::string describeElement(mlir::Type type);
/// `a float32 tile of shape (4, 128)`.
std::string describeTile(mlir::RankedTensorType type);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_ANALYSIS_DESCRIBE_H
