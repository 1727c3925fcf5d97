//===- NarrowProducts.h - Products of bf16 and powers of two ----*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_NARROWPRODUCTS_H
#define DITHER_LIB_CONVERSION_NARROWPRODUCTS_H

#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::conversion {

/// GPU: multiplies words of two bf16 by their factors before they are widened,
/// where such products are encoded to 8 bits or less, each factor is a power
/// of two, and nothing else takes the widened values but another such product;
/// that is no matter where codes are made of the words themselves (not
/// `widens`).
void narrowProducts(llvm::ArrayRef<quant::EncodeWordsOp> encodes, bool widens);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_NARROWPRODUCTS_H
