//===- PastEdge.cpp - What is past the edge of a tile ---------------------===//

#include "dither/Dialect/Quant/PastEdge.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dither::quant {

namespace {

/// Values past edges as attributes of one number; null where they are not
/// known.
class PastEdge {
public:
  explicit PastEdge(ArrayRef<Edge> zeros) {
    for (const Edge &zero : zeros)
      known[zero] = positiveZero(zero.first.getType());
  }

  Attribute of(Edge e) {
    if (auto it = known.find(e); it != known.end())
      return it->second;
    Attribute number = find(e);
    known[e] = number;
    return number;
  }

private:
  static DenseElementsAttr splat(Attribute number, Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    auto dense = dyn_cast_or_null<DenseElementsAttr>(number);
    return tile && dense && tile.hasStaticShape() ? dense.resizeSplat(tile)
                                                  : DenseElementsAttr();
  }

  static DenseElementsAttr positiveZero(Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || !tile.hasStaticShape() ||
        !isa<FloatType>(tile.getElementType()))
      return {};
    return DenseElementsAttr::get(tile,
                                  FloatAttr::get(tile.getElementType(), 0.0));
  }

  static bool isPositiveZero(Attribute number) {
    auto dense = dyn_cast_or_null<DenseElementsAttr>(number);
    return dense && isa<FloatType>(dense.getElementType()) &&
           dense.getSplatValue<APFloat>().isPosZero();
  }

  /// The same number in another shape: that of dimension `d` of `source`, or
  /// what all of it is.
  Attribute moved(Value source, std::optional<unsigned> d, Type to) {
    if (!isa<RankedTensorType>(source.getType()))
      return {};
    if (!d) {
      DenseElementsAttr all;
      return matchPattern(source, m_Constant(&all)) && all.isSplat()
                 ? splat(all, to)
                 : Attribute();
    }
    return splat(of({source, *d}), to);
  }

  Attribute find(Edge e) {
    auto [v, d] = e;
    Operation *def = v.getDefiningOp();
    if (!def || !isa<RankedTensorType>(v.getType()))
      return {};
    if (DenseElementsAttr all; matchPattern(v, m_Constant(&all)))
      return all.isSplat() ? all : DenseElementsAttr();
    return llvm::TypeSwitch<Operation *, Attribute>(def)
        .Case<BroadcastOp>([&](BroadcastOp op) -> Attribute {
          // NumPy's rule: trailing dimensions are the same ones.
          auto from = dyn_cast<RankedTensorType>(op.getSource().getType());
          if (!from)
            return {};
          int64_t at = int64_t(d) - (op.getType().getRank() - from.getRank());
          bool has =
              at >= 0 && from.getDimSize(at) == op.getType().getDimSize(d);
          return moved(op.getSource(),
                       has ? std::optional<unsigned>(at) : std::nullopt,
                       v.getType());
        })
        .Case<ReshapeOp>([&](ReshapeOp op) {
          return moved(op.getSource(), sourceDim(op, d), v.getType());
        })
        .Case<TransposeOp>([&](TransposeOp op) {
          return moved(op.getSource(), 1 - d, v.getType());
        })
        .Case<ReduceOp>([&](ReduceOp op) -> Attribute {
          // Sums and maxima of zeros.
          bool along = d == unsigned(op.getAxis());
          return !along && isPositiveZero(of({op.getSource(), d}))
                     ? positiveZero(v.getType())
                     : Attribute();
        })
        .Case<arith::SelectOp>([&](arith::SelectOp op) -> Attribute {
          if (auto which = dyn_cast_or_null<DenseElementsAttr>(
                  of({op.getCondition(), d})))
            return of({which.getSplatValue<bool>() ? op.getTrueValue()
                                                   : op.getFalseValue(),
                       d});
          Attribute one = of({op.getTrueValue(), d});
          return one == of({op.getFalseValue(), d}) ? one : Attribute();
        })
        .Case<RmsNormBackwardOp, LayerNormBackwardOp>(
            [&](Operation *op) -> Attribute {
              // dz rsigma (x - mean), for rows.
              if (v != op->getResult(1) || d != 0)
                return {};
              for (auto [i, operand] : llvm::enumerate(op->getOperands()))
                if (i != kGamma && !isPositiveZero(of({operand, 0})))
                  return {};
              return positiveZero(v.getType());
            })
        .Default([&](Operation *op) { return folded(op, d); });
  }

  /// Dimensions longer than 1 keep their order.
  static std::optional<unsigned> sourceDim(ReshapeOp op, unsigned d) {
    ArrayRef<int64_t> from = op.getSource().getType().getShape(),
                      to = op.getType().getShape();
    if (to[d] == 1)
      return std::nullopt;
    size_t before =
        llvm::count_if(to.take_front(d), [](int64_t n) { return n != 1; });
    for (auto [i, extent] : llvm::enumerate(from))
      if (extent != 1 && before-- == 0)
        return i;
    return std::nullopt;
  }

  /// What an operation on each element gives of known numbers.
  Attribute folded(Operation *op, unsigned d) {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 ||
        op->getNumRegions())
      return {};
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type ||
          type.getShape() !=
              cast<RankedTensorType>(op->getResult(0).getType()).getShape())
        return {};
      operands.push_back(of({operand, d}));
      if (!operands.back())
        return {};
    }
    // MLIR folds comparisons of scalars alone.
    if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
      auto number = [&](unsigned i) {
        return cast<DenseElementsAttr>(operands[i]).getSplatValue<APFloat>();
      };
      return DenseElementsAttr::get(
          cast<RankedTensorType>(compare.getType()),
          arith::applyCmpPredicate(compare.getPredicate(), number(0),
                                   number(1)));
    }
    // Folding may change an operation.
    Operation *copy = op->clone();
    SmallVector<OpFoldResult> results;
    Attribute result;
    if (succeeded(copy->fold(operands, results)) && results.size() == 1) {
      result = dyn_cast<Attribute>(results.front());
      for (auto [operand, number] : llvm::zip(copy->getOperands(), operands))
        if (!result && operand == dyn_cast<Value>(results.front()))
          result = number;
    }
    copy->destroy();
    auto dense = dyn_cast_or_null<DenseElementsAttr>(result);
    return dense && dense.isSplat() ? dense : DenseElementsAttr();
  }

  static constexpr size_t kGamma = 2;
  llvm::DenseMap<Edge, Attribute> known;
};

} // namespace

std::optional<APFloat> floatPast(Edge of, ArrayRef<Edge> zeros) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(PastEdge(zeros).of(of));
  if (!dense || !isa<FloatType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APFloat>();
}

} // namespace dither::quant
