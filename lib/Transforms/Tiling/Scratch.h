//===- Scratch.h - Memory of a program for its tiles ------------*- C++ -*-===//
//
// A CPU program keeps tiles that registers do not hold in memory of its own; on
// a GPU shared memory holds some that are read again.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_TILING_SCRATCH_H
#define DITHER_LIB_TRANSFORMS_TILING_SCRATCH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dither::transforms {

/// Where scratch memory begins.
constexpr int64_t kScratchAlign = 64;

/// Bytes of shared memory for what warps exchange beside a row, and for the
/// system.
constexpr int64_t kHeldExchange = 2048;

/// Whether programs of the kernel have scratch memory for any tile: those of a
/// CPU.
bool hasScratch(mlir::func::FuncOp kernel);
/// Whether tiles of `type` can lie in memory.
bool canBeScratch(mlir::Type type);
/// Memory for a tile of `type`, for as long as the kernel runs.
mlir::Value makeScratch(mlir::func::FuncOp kernel, mlir::Location loc,
                        mlir::RankedTensorType type);
/// Writes `tile` to its scratch memory.
void storeScratch(mlir::OpBuilder &b, mlir::Location loc, mlir::Value scratch,
                  mlir::Value tile);
/// Reads a part of it, of this type; at the start where there are no offsets.
mlir::Value loadScratch(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value scratch, mlir::RankedTensorType type,
                        llvm::ArrayRef<mlir::OpFoldResult> offsets = {});

/// Whether `op` stores to scratch memory.
bool storesToScratch(mlir::Operation *op);

/// Copies `tile` to scratch memory where it is made, and has its users read it
/// there.
void readThrough(mlir::Value tile, mlir::Value scratch);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_TILING_SCRATCH_H
