//===- QuantNormOps.cpp - Norms -------------------------------------------===//
//
// Verification and shape inference. Labels such as RN1 name the constraints of
// Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;

namespace dither::quant {

/// Of norms: the tile, and `columns` results with an element for each row.
static FailureOr<Types> normTypes(Value source, Where where, int columns) {
  FailureOr<RankedTensorType> in =
      tensorType(where, source, "source", 2); // RN1
  if (failed(in))
    return failure();
  Type f32 = Float32Type::get(in->getContext());
  Types types{RankedTensorType::get(in->getShape(), f32)};
  types.append(columns, RankedTensorType::get({in->getDimSize(0), 1}, f32));
  return types;
}

/// RN2 to RN4.
template <typename Op>
static LogicalResult
verifyNorm(Op op, ArrayRef<std::pair<StringRef, Value>> parameters) {
  int64_t columns = op.getSource().getType().getDimSize(1);
  for (auto [name, parameter] : parameters) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(parameter.getType()).getShape();
    if (shape != ArrayRef<int64_t>{columns})
      return Where(op).fail(name + " has shape " + str(shape) + ", expected " +
                            str(ArrayRef<int64_t>{columns}));
  }
  if (!op.getEps().isFinite() || op.getEps().isNegative())
    return Where(op).fail("eps is " + str(op.getEpsAttr()) +
                          ", expected a finite number of at least 0");
  return checkCount(op, op.getCount(), columns, 1);
}

static FailureOr<Types> resultTypes(RmsNormOp::Adaptor op, Where where) {
  return normTypes(op.getSource(), where, 1);
}
DITHER_INFER(RmsNormOp, 2)

LogicalResult RmsNormOp::verify() {
  if (failed(checkInferred(*this, {"result", "rsigma"}))) // RN5
    return failure();
  return verifyNorm(*this, {{"gamma", getGamma()}});
}

static FailureOr<Types> resultTypes(LayerNormOp::Adaptor op, Where where) {
  return normTypes(op.getSource(), where, 2);
}
DITHER_INFER(LayerNormOp, 3)

LogicalResult LayerNormOp::verify() {
  if (failed(checkInferred(*this, {"result", "mean", "rsigma"}))) // RN5
    return failure();
  return verifyNorm(*this, {{"gamma", getGamma()}, {"beta", getBeta()}});
}

} // namespace dither::quant
