//===- Elements.h - What vectors of registers are made of -------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_ELEMENTS_H
#define DITHER_LIB_CONVERSION_ELEMENTS_H

#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace dither::conversion {

/// The operation that `v` is an element of the result of, and which element; a
/// null one if it is none of `Op`.
template <typename Op> std::pair<Op, int64_t> elementOf(mlir::Value v) {
  auto extract = v.getDefiningOp<mlir::vector::ExtractOp>();
  if (!extract || extract.hasDynamicPosition() ||
      extract.getStaticPosition().size() != 1)
    return {};
  return {extract.getSource().getDefiningOp<Op>(),
          extract.getStaticPosition()[0]};
}

/// What decoded both values from the halves of one word of bf16, and the number
/// of that word; a null one if nothing did.
inline std::pair<quant::DecodeWordsOp, int64_t> wordOf(mlir::Value even,
                                                       mlir::Value odd) {
  auto [decode, at] = elementOf<quant::DecodeWordsOp>(even);
  if (!decode || !decode.getElem().isBF16() || decode.getGroup() != 2 ||
      at % 2 ||
      elementOf<quant::DecodeWordsOp>(odd) != std::pair(decode, at + 1))
    return {};
  return {decode, at / 2};
}

/// The scalars that a vector was put together from; none if it was not.
inline llvm::SmallVector<mlir::Value> elementsOf(mlir::Value v) {
  if (auto op = v.getDefiningOp<mlir::vector::FromElementsOp>())
    return llvm::to_vector(op.getElements());
  // One element, after canonicalization.
  auto op = v.getDefiningOp<mlir::vector::BroadcastOp>();
  if (op && !mlir::isa<mlir::VectorType>(op.getSourceType()) &&
      op.getResultVectorType().getNumElements() == 1)
    return {op.getSource()};
  return {};
}

/// Register `at` of a value of several, where something has put it there; null
/// if that is not known.
inline mlir::Value registerOf(mlir::Value v, int64_t at) {
  auto type = mlir::cast<mlir::VectorType>(v.getType());
  if (auto broadcast = v.getDefiningOp<mlir::vector::BroadcastOp>()) {
    auto source = mlir::dyn_cast<mlir::VectorType>(broadcast.getSourceType());
    return source && source.getRank() == 1 ? broadcast.getSource()
                                           : mlir::Value();
  }
  if (auto insert = v.getDefiningOp<mlir::vector::InsertOp>()) {
    if (insert.hasDynamicPosition() || insert.getStaticPosition().size() != 1)
      return {};
    return insert.getStaticPosition()[0] == at
               ? insert.getValueToStore()
               : registerOf(insert.getDest(), at);
  }
  auto made = v.getDefiningOp<mlir::vector::FromElementsOp>();
  if (!made || type.getRank() != 2)
    return {};
  int64_t lanes = type.getDimSize(1);
  mlir::ValueRange own = made.getElements().slice(at * lanes, lanes);
  auto whole = own[0].getDefiningOp<mlir::vector::ToElementsOp>();
  if (!whole || whole->getNumResults() != size_t(lanes) ||
      !llvm::equal(own, whole->getResults()))
    return {};
  return whole.getSource();
}

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_ELEMENTS_H
