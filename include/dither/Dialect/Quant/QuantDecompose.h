//===- QuantDecompose.h - Aggregates as simpler operations ------*- C++ -*-===//

#ifndef DITHER_DIALECT_QUANT_QUANTDECOMPOSE_H
#define DITHER_DIALECT_QUANT_QUANTDECOMPOSE_H

#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::quant {

/// Attaches DecomposableOpInterface to block_scale, casts, dequantize and
/// norms.
void registerDecomposeInterfaceExternalModels(mlir::DialectRegistry &registry);

/// What `op` gives, by multiply-adds that round toward zero, for targets that
/// have them; `onGpu`: that keep a NaN in minima, too. `op` is left in its
/// place.
mlir::Value roundTowardZero(StochasticRoundOp op, mlir::OpBuilder &b,
                            bool onGpu);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_QUANTDECOMPOSE_H
