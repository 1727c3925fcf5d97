//===- DecomposeNorms.cpp - What norms compute ----------------------------===//

#include "Decompose.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dither::quant {

namespace {

/// What norms and their backward forms have in common. `source` is what the
/// norm normalizes.
template <typename Op> struct Norm {
  Norm(Op op, Value source, OpBuilder &b) : op(op), a(b, op.getLoc()) {
    x = a.widen(source);
  }

  /// The mean over the elements of each row that count: (rows, 1).
  Value mean(Value tile) {
    RankedTensorType type = Arith::shapeOf(tile);
    int64_t columns = type.getDimSize(1);
    Value sum =
        ReduceOp::create(a.b, a.loc, type.clone({type.getDimSize(0), 1}),
                         ReduceKind::sum, tile, 1, op.getCountAttr());
    return a.mul(sum, 1.0f / float(op.getCount().value_or(columns)));
  }
  /// 1 / sqrt(variance + eps).
  Value rsigma(Value variance) {
    Value root = math::SqrtOp::create(
        a.b, a.loc, a.add(variance, op.getEps().convertToFloat()));
    return a.div(1.0f, root);
  }
  /// x less the mean of each row.
  Value centered(Value mean) {
    return arith::SubFOp::create(a.b, a.loc, x, a.repeat(mean, x));
  }
  /// `y` times a number for each row.
  Value scaled(Value number, Value y) { return a.mul(a.repeat(number, y), y); }
  /// A parameter with an element for each column in the shape of the tile.
  Value row(Value parameter) {
    Value one = ReshapeOp::create(
        a.b, a.loc,
        RankedTensorType::get({1, Arith::shapeOf(x).getDimSize(1)},
                              a.b.getF32Type()),
        parameter);
    return a.repeat(one, x);
  }
  Value gamma() {
    Value gamma = a.widen(op.getGamma());
    return row(op.getZeroCenteredGamma() ? a.add(gamma, 1.0f) : gamma);
  }

  /// `y`, zero past the elements of a row that count.
  Value withoutPadding(Value y) {
    RankedTensorType type = Arith::shapeOf(y);
    if (int64_t(op.getCount().value_or(type.getDimSize(1))) ==
        type.getDimSize(1))
      return y;
    Value column = IotaOp::create(a.b, a.loc, type.clone(a.b.getI32Type()), 1);
    Value counts =
        arith::CmpIOp::create(a.b, a.loc, arith::CmpIPredicate::slt, column,
                              a.splatBits(y, uint32_t(*op.getCount())));
    return a.select(counts, y, a.splat(y, 0.0f));
  }

  Op op;
  Arith a;
  Value x;
};

/// The results of a backward form. `y` is what the norm scales by gamma;
/// `centered` says that it has taken the mean from each row.
template <typename Op>
SmallVector<Value> gradients(Norm<Op> &n, Value y, bool centered) {
  Arith &a = n.a;
  Value dz = a.widen(n.op.getDz());
  Value dy = a.mul(n.gamma(), dz);
  Value mean = centered ? n.mean(dy) : Value();
  Value along = n.scaled(n.mean(a.mul(dy, y)), y);
  if (centered)
    along = a.add(along, a.repeat(mean, along));
  Value rest = arith::SubFOp::create(a.b, a.loc, dy, along);
  Value dx = n.scaled(n.op.getRsigma(), rest);
  return {n.withoutPadding(dx), n.withoutPadding(a.mul(dz, y))};
}

struct DecomposeRmsNorm
    : DecomposableOpInterface::ExternalModel<DecomposeRmsNorm, RmsNormOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<RmsNormOp>(o);
    Norm<RmsNormOp> n(op, op.getSource(), b);
    Arith &a = n.a;
    Value rsigma = n.rsigma(n.mean(a.mul(n.x, n.x)));
    Value gamma = n.gamma();
    Value y = a.mul(gamma, n.scaled(rsigma, n.x));
    return SmallVector<Value>{y, rsigma};
  }
};

struct DecomposeLayerNorm
    : DecomposableOpInterface::ExternalModel<DecomposeLayerNorm, LayerNormOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<LayerNormOp>(o);
    Norm<LayerNormOp> n(op, op.getSource(), b);
    Arith &a = n.a;
    Value mean = n.mean(n.x);
    Value centered = n.centered(mean);
    Value rsigma = n.rsigma(n.mean(a.mul(centered, centered)));
    Value gamma = n.gamma(), beta = n.row(a.widen(n.op.getBeta()));
    Value scaled = a.mul(gamma, n.scaled(rsigma, centered));
    Value y = n.withoutPadding(a.add(scaled, beta));
    return SmallVector<Value>{y, mean, rsigma};
  }
};

struct DecomposeRmsNormBackward
    : DecomposableOpInterface::ExternalModel<DecomposeRmsNormBackward,
                                             RmsNormBackwardOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<RmsNormBackwardOp>(o);
    Norm<RmsNormBackwardOp> n(op, op.getX(), b);
    Value y = n.scaled(op.getRsigma(), n.x);
    return gradients(n, y, /*centered=*/false);
  }
};

struct DecomposeLayerNormBackward
    : DecomposableOpInterface::ExternalModel<DecomposeLayerNormBackward,
                                             LayerNormBackwardOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<LayerNormBackwardOp>(o);
    Norm<LayerNormBackwardOp> n(op, op.getX(), b);
    Value y = n.scaled(op.getRsigma(), n.centered(op.getMean()));
    return gradients(n, y, /*centered=*/true);
  }
};

} // namespace

void attachNormDecompositions(MLIRContext &context) {
  RmsNormOp::attachInterface<DecomposeRmsNorm>(context);
  LayerNormOp::attachInterface<DecomposeLayerNorm>(context);
  RmsNormBackwardOp::attachInterface<DecomposeRmsNormBackward>(context);
  LayerNormBackwardOp::attachInterface<DecomposeLayerNormBackward>(context);
}

} // namespace dither::quant
