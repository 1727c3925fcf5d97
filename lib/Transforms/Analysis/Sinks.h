//===- Sinks.h - Where tiles go ---------------------------------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_ANALYSIS_SINKS_H
#define DITHER_LIB_TRANSFORMS_ANALYSIS_SINKS_H

#include "dither/Dialect/Quant/QuantOps.h"
#include <optional>

namespace dither::transforms {

/// The tile that a store, a scatter or an atomic takes, and where it goes.
struct Sink {
  mlir::Operation *op;
  mlir::Value tile, memref;
  mlir::OperandRange indices;

  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(tile.getType());
  }
};

/// Nothing for other operations.
std::optional<Sink> asSink(mlir::Operation *op);

/// Whether `sink` ends where its memref ends along each dimension that
/// `follows` is true for: a part of it may then reach past the end of the tile.
bool endsAtMemref(const Sink &sink, llvm::function_ref<bool(unsigned)> follows);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_ANALYSIS_SINKS_H
