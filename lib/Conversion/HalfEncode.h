//===- HalfEncode.h - Encoding two values of bf16 at once -------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_HALFENCODE_H
#define DITHER_LIB_CONVERSION_HALFENCODE_H

#include "Words.h"
#include "dither/Numerics/Formats.h"

namespace dither::conversion {

/// Words of two factors of f32, which are powers of two, as bf16.
mlir::Value factorHalves(WordBuilder &w, mlir::Value even, mlir::Value odd);

/// By how much the exponent fields of values of bf16 are above those of their
/// products in binary16, where they are: of words of two factors of bf16.
mlir::Value shortfall(WordBuilder &w, mlir::Value halves);
/// The same of one factor for all values, a scalar of f32.
mlir::Value shortfallOf(WordBuilder &w, mlir::Value factor);

/// AVX-512 with FP16: the codes of words of two bf16 times factors whose
/// shortfall is `less`. What quant.scale_encode_words says of `powers` and
/// `bounded` is so, and `f` has a rounding in binary16. Codes of two values in
/// bytes 0 and 2 of a word, those of four bits both in byte 1; elsewhere are
/// other bits.
mlir::Value encodeHalves(WordBuilder &w, const numerics::ElementFormat &f,
                         mlir::Value words, mlir::Value less);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_HALFENCODE_H
