//===- SplitLoops.h - The last rounds of a loop by themselves ---*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_TILING_SPLITLOOPS_H
#define DITHER_LIB_TRANSFORMS_TILING_SPLITLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace dither::transforms {

/// Ends `loop`, which counts up over multiples of `divisor` from 0 or above in
/// `index`, before `end`, and has another one do what is left of it. Returns
/// that one; `rest` maps what is in `loop` to what is in there. `loop` becomes
/// the loop with the first rounds, with the operations that it has.
mlir::scf::ForOp splitLoop(mlir::scf::ForOp &loop, mlir::Value end,
                           int64_t divisor, mlir::IRMapping &rest);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_TILING_SPLITLOOPS_H
