//===- ScaleEncode.h - Encoding of finite products --------------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_SCALEENCODE_H
#define DITHER_LIB_CONVERSION_SCALEENCODE_H

#include "Words.h"
#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::conversion {

/// The words of `op` in integer and f32 arithmetic.
llvm::SmallVector<mlir::Value> expandScaleEncode(WordBuilder &w,
                                                 quant::ScaleEncodeWordsOp op);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_SCALEENCODE_H
