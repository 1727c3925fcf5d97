//===- Magnitudes.h - Numbers that are known to have no sign ----*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_MAGNITUDES_H
#define DITHER_LIB_CONVERSION_MAGNITUDES_H

#include "mlir/IR/Value.h"

namespace dither::conversion {

/// GPU: whether `v` is a number or infinity, and its sign bit is clear. An amax
/// ends in a maximum with +0, which is above -0 (PTX ISA, max) and replaces a
/// NaN.
bool isMagnitude(mlir::Value v);

/// Whether `v` is one of the powers of two that factors of blocks are,
/// e8m0_inverse_words, in whichever lane that was computed.
bool isPowerOfTwo(mlir::Value v);

/// GPU: whether `x`, if it is a NaN, has no sign: what single-precision
/// instructions make of NaN is 7FFFFFFF (CUDA C++ Programming Guide,
/// Floating-Point Standard), and those on bf16 7FFF (PTX ISA). Products by
/// constants may become negations, which are none; see ConstantNaNs, too.
bool hasPlainNaN(mlir::Value x);

/// While it lives, products of a function whose arithmetic has a constant NaN
/// are none that `hasPlainNaN` knows: LLVM computes with the constant itself,
/// and keeps its sign.
class ConstantNaNs {
public:
  explicit ConstantNaNs(mlir::Operation *function);
  ~ConstantNaNs();
  ConstantNaNs(const ConstantNaNs &) = delete;
  ConstantNaNs &operator=(const ConstantNaNs &) = delete;

private:
  mlir::Operation *function;
};

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_MAGNITUDES_H
