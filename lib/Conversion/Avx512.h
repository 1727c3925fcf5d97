//===- Avx512.h - Instructions of AVX-512 and AVX2 by name ------*- C++ -*-===//
//
// What LLVM does not find by itself, or finds too late to see what it costs.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_CONVERSION_AVX512_H
#define DITHER_LIB_CONVERSION_AVX512_H

#include "Words.h"

namespace dither::conversion {

/// mask ? x : y, bit by bit. With AVX-512 one vpternlogd: LLVM would make
/// permutations of 16-bit elements of what is moved by 16 bits before, which
/// take Intel's CPUs three times as long.
mlir::Value merge(WordBuilder &w, uint32_t mask, mlir::Value x, mlir::Value y);

/// x | y & mask, likewise.
mlir::Value orMasked(WordBuilder &w, mlir::Value x, mlir::Value y,
                     uint32_t mask);

/// AVX2 and AVX-512: in each word of the sum of products of its signed halves
/// (vpmaddwd).
mlir::Value multiplyAddHalves(WordBuilder &w, mlir::Value words,
                              uint32_t factors);

/// AVX-512: in each half of the sum of products of its bytes, and the signed
/// ones of `factors` (vpmaddubsw).
mlir::Value multiplyAddBytes(WordBuilder &w, mlir::Value words,
                             uint32_t factors);

/// AVX-512 with VBMI: of the 128 bytes of `low` and `high` those that the lower
/// seven bits of the bytes of `places` name.
mlir::Value lookUpBytes(WordBuilder &w, mlir::Value low, mlir::Value places,
                        mlir::Value high);

/// AVX-512 with VBMI: of the 64 bytes of a register those that `places` name
/// (vpermb); both are vector<64xi8>.
mlir::Value permuteBytes(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value bytes, mlir::Value places);

/// AVX-512 with FP16: x y + z in each half, rounded once.
mlir::Value multiplyAddF16(WordBuilder &w, mlir::Value x, mlir::Value y,
                           mlir::Value z);

/// AVX-512: x y + z in f32, rounded once, toward zero.
mlir::Value multiplyAddTowardZero(mlir::OpBuilder &b, mlir::Location loc,
                                  mlir::Value x, mlir::Value y, mlir::Value z);

/// Of finite f32 the smaller or the larger magnitude, with the sign of `x`.
/// With AVX-512 one vrangeps; elsewhere neither may be negative.
mlir::Value smallerMagnitude(WordBuilder &w, mlir::Value x, mlir::Value y);
mlir::Value largerMagnitude(WordBuilder &w, mlir::Value x, mlir::Value y);

/// AVX-512: unsigned halves less others, at least zero.
mlir::Value subtractSaturated(WordBuilder &w, mlir::Value words,
                              mlir::Value less);

/// 16-bit integers and one more where `here`, below 0xFFFF. With AVX-512 one
/// instruction with a mask: LLVM would make numbers of the mask, and add these.
mlir::Value increment(WordBuilder &w, mlir::Value halves, mlir::Value here);

/// The bits of `x`, which is f32; `nan` where it is a NaN. With AVX-512 one
/// vfixupimmps.
mlir::Value replaceNaN(WordBuilder &w, mlir::Value x, uint32_t nan);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_AVX512_H
