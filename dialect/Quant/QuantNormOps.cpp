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

/// RN2.
static LogicalResult
checkColumns(Where where, int64_t columns,
             ArrayRef<std::pair<StringRef, Value>> parameters) {
  for (auto [name, parameter] : parameters) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(parameter.getType()).getShape();
    if (shape != ArrayRef<int64_t>{columns})
      return where.fail(name + " has shape " + str(shape) + ", expected " +
                        str(ArrayRef<int64_t>{columns}));
  }
  return success();
}

template <typename Op>
static LogicalResult
verifyNorm(Op op, ArrayRef<std::pair<StringRef, Value>> parameters) {
  int64_t columns = op.getSource().getType().getDimSize(1);
  if (failed(checkColumns(op, columns, parameters)))
    return failure();
  if (!op.getEps().isFinite() || op.getEps().isNegative()) // RN3
    return Where(op).fail("eps is " + str(op.getEpsAttr()) +
                          ", expected a finite number of at least 0");
  return checkCount(op, op.getCount(), columns, 1); // RN4
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

//===----------------------------------------------------------------------===//
// Backward forms
//===----------------------------------------------------------------------===//

/// The gradients have the shape of x.
static FailureOr<Types> backwardTypes(Value x, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, x, "x", 2); // NB1
  if (failed(in))
    return failure();
  return Types(2, RankedTensorType::get(in->getShape(),
                                        Float32Type::get(in->getContext())));
}

template <typename Op>
static LogicalResult
verifyBackward(Op op, ArrayRef<std::pair<StringRef, Value>> statistics) {
  if (failed(checkInferred(op, {"dx", "dgamma_terms"}))) // NB4
    return failure();
  RankedTensorType x = op.getX().getType();
  Type dz = op.getDz().getType().getElementType();
  if (failed(checkType(op, op.getDz(), "dz", x.getShape(), dz))) // NB2
    return failure();
  Type f32 = Float32Type::get(op.getContext());
  for (auto [name, value] : statistics) // NB3
    if (failed(checkType(op, value, name, {x.getDimSize(0), 1}, f32)))
      return failure();
  if (failed(checkColumns(op, x.getDimSize(1), {{"gamma", op.getGamma()}})))
    return failure();
  return checkCount(op, op.getCount(), x.getDimSize(1), 1); // RN4
}

static FailureOr<Types> resultTypes(RmsNormBackwardOp::Adaptor op,
                                    Where where) {
  return backwardTypes(op.getX(), where);
}
DITHER_INFER(RmsNormBackwardOp, 4)

LogicalResult RmsNormBackwardOp::verify() {
  return verifyBackward(*this, {{"rsigma", getRsigma()}});
}

static FailureOr<Types> resultTypes(LayerNormBackwardOp::Adaptor op,
                                    Where where) {
  return backwardTypes(op.getX(), where);
}
DITHER_INFER(LayerNormBackwardOp, 5)

LogicalResult LayerNormBackwardOp::verify() {
  return verifyBackward(*this, {{"mean", getMean()}, {"rsigma", getRsigma()}});
}

} // namespace dither::quant
