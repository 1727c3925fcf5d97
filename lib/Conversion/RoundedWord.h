//===- RoundedWord.h - Encoding f32 by one multiply-add ---------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_ROUNDEDWORD_H
#define DITHER_LIB_CONVERSION_ROUNDEDWORD_H

#include "Words.h"
#include "dither/Numerics/Formats.h"

namespace dither::conversion {

/// GPU: the word of the codes of `xs`, the lowest first, of a signed format
/// whose codes have a byte each.
mlir::Value encodeRoundedWord(WordBuilder &w, llvm::ArrayRef<mlir::Value> xs,
                              const numerics::ElementFormat &f);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_ROUNDEDWORD_H
