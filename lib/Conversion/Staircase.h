//===- Staircase.h - Codes as the least of a few sums -----------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_STAIRCASE_H
#define DITHER_LIB_CONVERSION_STAIRCASE_H

#include "Words.h"
#include "dither/Numerics/Formats.h"

namespace dither::conversion {

/// Whether `f` has few enough exponents to be encoded as a staircase, and no
/// NaN.
bool isStaircase(const numerics::ElementFormat &f);

/// GPU: the word of the codes of `xs`, the lowest first, of a format that is a
/// staircase.
mlir::Value encodeStaircase(WordBuilder &w, llvm::ArrayRef<mlir::Value> xs,
                            const numerics::ElementFormat &f);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_STAIRCASE_H
