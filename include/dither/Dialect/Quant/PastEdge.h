//===- PastEdge.h - What is past the edge of a tile -------------*- C++ -*-===//
//
// A tile that reaches past a tensor is zero there, and what is computed of
// zeros alone is a number that is known. A sum over rows that is made of zeros
// past the last row of a tensor needs no mask, and ends at that row.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_PASTEDGE_H
#define DITHER_DIALECT_QUANT_PASTEDGE_H

#include "dither/Dialect/Quant/Vanishing.h"
#include "llvm/ADT/APFloat.h"
#include <optional>

namespace dither::quant {

/// The float that all elements of `of` past its edge are, where those past the
/// edges `zeros` are +0; nothing where it is not known.
std::optional<llvm::APFloat> floatPast(Edge of, llvm::ArrayRef<Edge> zeros);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_PASTEDGE_H
