//===- QuantFolds.cpp - Folding and canonicalization ----------------------===//

#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace dither::quant {

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  auto type = cast<RankedTensorType>(getResult().getType());
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource());
      dense && dense.isSplat())
    return dense.resizeSplat(type);
  // A broadcast of a broadcast repeats the first source.
  if (auto inner = getSource().getDefiningOp<BroadcastOp>()) {
    auto source = dyn_cast<RankedTensorType>(inner.getSource().getType());
    if (!source || source.getRank() == 0 ||
        source.getRank() == type.getRank()) {
      getSourceMutable().assign(inner.getSource());
      return getResult();
    }
  }
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource());
      dense && dense.isSplat())
    return dense.resizeSplat(cast<RankedTensorType>(getResult().getType()));
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getSource().getDefiningOp<TransposeOp>();
      inner && inner.getSource().getType() == getResult().getType())
    return inner.getSource();
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource());
      dense && dense.isSplat())
    return dense.resizeSplat(cast<RankedTensorType>(getResult().getType()));
  return {};
}

/// transpose(encode(x)) -> encode(transpose(x)): f32 registers change hands
/// for free, packed codes do not.
LogicalResult TransposeOp::canonicalize(TransposeOp op,
                                        PatternRewriter &rewriter) {
  auto encode = op.getSource().getDefiningOp<EncodeOp>();
  if (!encode || cast<RankedTensorType>(op.getResult().getType()).getEncoding())
    return failure();
  Value wide = TransposeOp::create(rewriter, op.getLoc(), encode.getSource());
  auto moved = EncodeOp::create(rewriter, op.getLoc(), op.getResult().getType(),
                                wide, encode.getModeAttr());
  rewriter.replaceOp(op, moved.getResult());
  return success();
}

OpFoldResult EncodeOp::fold(FoldAdaptor) {
  // encode(decode(q)) is q: every code is its own nearest value. Codes without
  // a canonical form (NaN, infinity) exist in the 8-bit formats only.
  auto decode = getSource().getDefiningOp<DecodeOp>();
  if (!decode || decode.getSource().getType() != getResult().getType() ||
      getMode())
    return {};
  auto elem = cast<RankedTensorType>(getResult().getType()).getElementType();
  return isa<Float4E2M1FNType>(elem) ? decode.getSource() : Value();
}

OpFoldResult DecodeOp::fold(FoldAdaptor) { return {}; }
OpFoldResult E8M0InverseOp::fold(FoldAdaptor) { return {}; }

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  return {};
}

} // namespace dither::quant
