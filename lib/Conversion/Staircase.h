//===- Staircase.h - Encoding f32 by a few sums ----------------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_STAIRCASE_H
#define DITHER_LIB_CONVERSION_STAIRCASE_H

#include "Words.h"
#include "dither/Numerics/Formats.h"

namespace dither::conversion {

/// GPU: the word of the codes of `xs`, the lowest first, of a format that is a
/// staircase (numerics::isStaircase).
mlir::Value encodeStaircase(WordBuilder &w, llvm::ArrayRef<mlir::Value> xs,
                            const numerics::ElementFormat &f);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_STAIRCASE_H
