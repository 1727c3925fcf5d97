//===- Vanishing.h - What zeros at the edge of a tile become ----*- C++ -*-===//
//
// A tile that reaches past a tensor is zero there. Whether what is computed of
// it is zero there, too, decides whether a maximum needs a mask.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_VANISHING_H
#define DITHER_DIALECT_QUANT_VANISHING_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"

namespace dither::quant {

/// A value and one of its dimensions: elements past some coordinate along it.
using Edge = std::pair<mlir::Value, unsigned>;

/// Whether elements past the edge of `of` are zeros of either sign, or NaN,
/// where those past the edges `zeros` are +0, whatever everything else is.
/// False where it is not known. Looks at the block of `of` alone.
bool vanishes(Edge of, llvm::ArrayRef<Edge> zeros);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_VANISHING_H
