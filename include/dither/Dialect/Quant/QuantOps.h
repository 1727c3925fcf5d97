//===- QuantOps.h - Operations of the quant dialect -------------*- C++ -*-===//

#ifndef DITHER_DIALECT_QUANT_QUANTOPS_H
#define DITHER_DIALECT_QUANT_QUANTOPS_H

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Numerics/Elementary.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "dither/Dialect/Quant/QuantInterfaces.h.inc"

namespace dither::quant {
/// Whether the types are the same but for the encodings of tensors: inferred
/// types carry no layout, given ones may.
bool sameButForLayout(mlir::TypeRange a, mlir::TypeRange b);

/// `function` of a constant, a number or a splat; null if `operand` is none.
mlir::OpFoldResult foldElementary(numerics::Function function,
                                  mlir::Attribute operand);
} // namespace dither::quant

#define GET_OP_CLASSES
#include "dither/Dialect/Quant/QuantOps.h.inc"

namespace dither::quant {
/// What the rows of a padded matrix of scales are a multiple of; its columns
/// are one of four.
int64_t paddedRows(ScaleLayout order);

/// What a memref is a view of, or of a view; else itself. Operations are
/// verified before their order is: views of each other are views of nothing.
mlir::Value viewed(mlir::Value memref);

/// Whether a memref has the extents that a program gives it: nobody has
/// checked them before the launch.
bool isSliced(mlir::Value memref);

/// The extents of a tile of `shape` at `indices` of a memref that are not past
/// its end for certain: fewer where a constant index and a static extent leave
/// no room for all.
llvm::SmallVector<int64_t> knownInside(mlir::Value memref,
                                       mlir::ValueRange indices,
                                       llvm::ArrayRef<int64_t> shape);

/// Whether all elements of the tile are in bounds.
bool isInside(LoadOp load);
bool isInside(StoreOp store);
} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_QUANTOPS_H
