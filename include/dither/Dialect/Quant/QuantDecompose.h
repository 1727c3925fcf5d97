//===- QuantDecompose.h - Aggregates as simpler operations ------*- C++ -*-===//

#ifndef DITHER_DIALECT_QUANT_QUANTDECOMPOSE_H
#define DITHER_DIALECT_QUANT_QUANTDECOMPOSE_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace dither::quant {

/// Attaches DecomposableOpInterface to block_scale, casts, dequantize and
/// norms.
void registerDecomposeInterfaceExternalModels(mlir::DialectRegistry &registry);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_QUANTDECOMPOSE_H
