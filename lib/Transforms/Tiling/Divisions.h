//===- Divisions.h - Quotients of places ------------------------*- C++ -*-===//

#ifndef DITHER_TILING_DIVISIONS_H
#define DITHER_TILING_DIVISIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dither::transforms {

/// Quotients of what has no sign by constants, as kernels write the place of a
/// scale (`c // 32`): without a remainder they become products and sums, whose
/// divisors are known, and others divisions without a sign, which are shifts.
/// Shifts to the right (`c >> 5`) are such quotients, too.
void simplifyDivisions(mlir::func::FuncOp func);

} // namespace dither::transforms

#endif // DITHER_TILING_DIVISIONS_H
