//===- MixedPrecision.h - Arithmetic on halves of words ---------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_MIXEDPRECISION_H
#define DITHER_LIB_CONVERSION_MIXEDPRECISION_H

#include "mlir/IR/Region.h"

namespace dither::conversion {

/// GPUs with sums and multiply-adds of f32 that take bf16 and f16 as they are
/// (PTX ISA, Mixed Precision Floating Point Instructions): lets sums, squares
/// and products by powers of two take what was decoded for them alone out of
/// its word. The bits are the same.
void mixPrecision(mlir::Region &body);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_MIXEDPRECISION_H
