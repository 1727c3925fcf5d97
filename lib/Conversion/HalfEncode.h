//===- HalfEncode.h - Encoding two values of bf16 at once -------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_HALFENCODE_H
#define DITHER_LIB_CONVERSION_HALFENCODE_H

#include "Words.h"
#include "dither/Numerics/Formats.h"

namespace dither::conversion {

/// AVX-512 with FP16: the codes of words of two bf16 times registers `at` and
/// at + 1 of factors, which are powers of two. What quant.scale_encode_words
/// says of `powers` and `bounded` is so, and `f` has a rounding in binary16.
/// Codes of two values in bytes 0 and 2 of a word, those of four bits both in
/// byte 1; elsewhere are other bits.
mlir::Value encodeHalves(WordBuilder &w, const numerics::ElementFormat &f,
                         mlir::Value words, mlir::Value factors, int64_t at);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_HALFENCODE_H
