//===- Gpu.h - Operations that GPUs alone have ------------------*- C++ -*-===//
//
// Those of the NVVM dialect that programs become. They are made here and not
// where they are used: the dialect's header takes longer to read than all
// others of a file.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_EMIT_GPU_H
#define DITHER_LIB_TRANSFORMS_EMIT_GPU_H

#include "mlir/IR/Builders.h"

namespace dither::transforms::gpu {

/// Waits for the threads of the block, and for what they wrote.
void barrier(mlir::OpBuilder &b, mlir::Location loc);
bool isBarrier(mlir::Operation *op);

/// The same of the threads of a warp.
void syncWarp(mlir::OpBuilder &b, mlir::Location loc);
bool isSyncWarp(mlir::Operation *op);

/// The same of the blocks of a cluster.
void syncCluster(mlir::OpBuilder &b, mlir::Location loc);

/// The thread of its block, in i32.
mlir::Value threadId(mlir::OpBuilder &b, mlir::Location loc);

/// The block of its cluster, in i32.
mlir::Value clusterRank(mlir::OpBuilder &b, mlir::Location loc);

/// The block of the grid along a dimension (0 to 2), or how many there are, in
/// i32; `clusters`: the cluster, along dimension 0.
mlir::Value programNumber(mlir::OpBuilder &b, mlir::Location loc, unsigned dim,
                          bool count, bool clusters);

/// Where `pointer` of this block's shared memory is in that of block `rank` of
/// the cluster.
mlir::Value sharedOfBlock(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value pointer, mlir::Value rank);

enum class Shuffle { Xor, Index };

/// What a lane of the warp has in `word`, of 32 bits: that of this number, or
/// that whose number differs in these bits. Of an index the bits in `kept` are
/// those of the reading lane's own number, whatever `lane` has there.
mlir::Value shuffle(mlir::OpBuilder &b, mlir::Location loc, mlir::Value word,
                    mlir::Value lane, Shuffle kind, int64_t kept = 0);

/// The greatest i32 of the lanes of a warp, without a sign.
mlir::Value maximumOfWarp(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value word);

/// The bytes of two words that the digits of `selector` name, the lowest first:
/// 0 to 3 are those of `low`, 4 to 7 those of `high` (PTX ISA, prmt).
mlir::Value permuteBytes(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value low, mlir::Value high, unsigned selector);

/// The larger of each of two magnitudes of bf16 or f16 (`elem`), a number
/// rather than a NaN. With `xorsign` magnitudes are taken first, and signs that
/// are left mean nothing.
mlir::Value maximaOfHalves(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value x, mlir::Value y, mlir::Type elem,
                           bool xorsign);

/// Copies bytes to shared memory, asynchronously; `past` the first cache.
void copyAsync(mlir::OpBuilder &b, mlir::Location loc, mlir::Value to,
               mlir::Value from, int64_t bytes, bool past);

/// Waits for the copies that this thread began.
void awaitCopies(mlir::OpBuilder &b, mlir::Location loc);

/// Loads and stores a word of 32 bits of global memory that other blocks access
/// at the same time: whole, and in no order with what is elsewhere.
mlir::Value loadRelaxed(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value pointer);
void storeRelaxed(mlir::OpBuilder &b, mlir::Location loc, mlir::Value word,
                  mlir::Value pointer);

/// Brings the cache line at `pointer`, of global memory, to L2.
void prefetch(mlir::OpBuilder &b, mlir::Location loc, mlir::Value pointer);

} // namespace dither::transforms::gpu

#endif // DITHER_LIB_TRANSFORMS_EMIT_GPU_H
