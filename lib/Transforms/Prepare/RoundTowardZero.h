//===- RoundTowardZero.h - Rounding by random bits, shorter -----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_PREPARE_ROUNDTOWARDZERO_H
#define DITHER_LIB_TRANSFORMS_PREPARE_ROUNDTOWARDZERO_H

#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/TargetInfo.h"

namespace dither::transforms {

/// What `op` gives, by multiply-adds that round toward zero, which `target`
/// has. `op` is left in its place.
mlir::Value roundTowardZero(quant::StochasticRoundOp op, mlir::OpBuilder &b,
                            const target::TargetInfo &target);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PREPARE_ROUNDTOWARDZERO_H
