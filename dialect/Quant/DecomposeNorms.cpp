//===- DecomposeNorms.cpp - What norms compute ----------------------------===//

#include "Decompose.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dither::quant {

namespace {

/// What norms have in common.
template <typename Op> struct Norm {
  Norm(Op op, OpBuilder &b) : op(op), a(b, op.getLoc()) {
    x = a.widen(op.getSource());
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

struct DecomposeRmsNorm
    : DecomposableOpInterface::ExternalModel<DecomposeRmsNorm, RmsNormOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    Norm<RmsNormOp> n(cast<RmsNormOp>(o), b);
    Arith &a = n.a;
    Value rsigma = n.rsigma(n.mean(a.mul(n.x, n.x)));
    Value gamma = n.gamma();
    Value y = a.mul(gamma, a.mul(a.repeat(rsigma, n.x), n.x));
    return SmallVector<Value>{y, rsigma};
  }
};

struct DecomposeLayerNorm
    : DecomposableOpInterface::ExternalModel<DecomposeLayerNorm, LayerNormOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    Norm<LayerNormOp> n(cast<LayerNormOp>(o), b);
    Arith &a = n.a;
    Value mean = n.mean(n.x);
    Value centered = arith::SubFOp::create(b, a.loc, n.x, a.repeat(mean, n.x));
    Value rsigma = n.rsigma(n.mean(a.mul(centered, centered)));
    Value gamma = n.gamma(), beta = n.row(a.widen(n.op.getBeta()));
    Value scaled = a.mul(gamma, a.mul(a.repeat(rsigma, n.x), centered));
    Value y = n.withoutPadding(a.add(scaled, beta));
    return SmallVector<Value>{y, mean, rsigma};
  }
};

} // namespace

void attachNormDecompositions(MLIRContext &context) {
  RmsNormOp::attachInterface<DecomposeRmsNorm>(context);
  LayerNormOp::attachInterface<DecomposeLayerNorm>(context);
}

} // namespace dither::quant
