//===- Vanishing.cpp - What zeros at the edge of a tile become ------------===//

#include "dither/Dialect/Quant/Vanishing.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dither::quant {

namespace {

/// Dimensions, as bits, past whose edge a value vanishes; all bits of one that
/// is zero everywhere.
using Dims = unsigned;
constexpr Dims kEverywhere = ~0u;

ArrayRef<int64_t> shapeOf(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type ? type.getShape() : ArrayRef<int64_t>();
}

/// Dimensions of `result` that have those of `source` under `dims`: each
/// dimension goes to the one that `to` gives, if any.
Dims moved(Dims dims, unsigned rank,
           function_ref<std::optional<unsigned>(unsigned)> to) {
  Dims out = dims == kEverywhere ? kEverywhere : 0;
  for (unsigned d = 0; d < rank; ++d)
    if (dims >> d & 1)
      if (std::optional<unsigned> target = to(d))
        out |= 1u << *target;
  return out;
}

/// NumPy's rule: trailing dimensions are the same ones.
Dims ofBroadcast(BroadcastOp op, Dims dims) {
  ArrayRef<int64_t> from = shapeOf(op.getSource()),
                    to = shapeOf(op.getResult());
  unsigned more = to.size() - from.size();
  return moved(dims, from.size(), [&](unsigned d) -> std::optional<unsigned> {
    if (from[d] != to[d + more])
      return std::nullopt;
    return d + more;
  });
}

/// Dimensions longer than 1 keep their order.
Dims ofReshape(ReshapeOp op, Dims dims) {
  SmallVector<unsigned> to;
  for (auto [d, extent] : llvm::enumerate(shapeOf(op.getResult())))
    if (extent != 1)
      to.push_back(d);
  ArrayRef<int64_t> from = shapeOf(op.getSource());
  return moved(dims, from.size(), [&](unsigned d) -> std::optional<unsigned> {
    if (from[d] == 1)
      return std::nullopt;
    size_t before = llvm::count_if(from.take_front(d),
                                   [](int64_t extent) { return extent != 1; });
    return before < to.size() ? std::optional(to[before]) : std::nullopt;
  });
}

class Vanishing {
public:
  explicit Vanishing(ArrayRef<Edge> zeros) {
    for (auto [v, d] : zeros)
      known[v] |= 1u << d;
  }

  void visit(Operation &op) {
    if (op.getNumResults() && !known.contains(op.getResult(0)))
      if (Dims dims = dimsOf(op))
        known[op.getResult(0)] = dims;
  }

  bool holds(Edge e) const { return known.lookup(e.first) >> e.second & 1; }

private:
  Dims at(Operation &op, unsigned operand) const {
    return known.lookup(op.getOperand(operand));
  }

  /// Of the first result. Zero times anything is zero or NaN.
  Dims dimsOf(Operation &op) const {
    return llvm::TypeSwitch<Operation *, Dims>(&op)
        .Case<arith::ConstantOp>([](arith::ConstantOp constant) -> Dims {
          return matchPattern(constant.getResult(), m_AnyZeroFloat())
                     ? kEverywhere
                     : 0;
        })
        .Case<arith::MulFOp>([&](auto) { return at(op, 0) | at(op, 1); })
        .Case<math::FmaOp, FmaTowardZeroOp>(
            [&](auto) { return (at(op, 0) | at(op, 1)) & at(op, 2); })
        .Case<arith::AddFOp, arith::SubFOp, arith::MaximumFOp,
              arith::MinimumFOp, RmsNormBackwardOp>(
            [&](auto) { return at(op, 0) & at(op, 1); })
        // Past the last column it is 0 less a mean.
        .Case<LayerNormBackwardOp>([&](auto) { return at(op, 0) & 1u; })
        .Case<arith::SelectOp>([&](auto) { return at(op, 1) & at(op, 2); })
        .Case<arith::DivFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp,
              math::AbsFOp, math::SqrtOp, math::FloorOp, math::CeilOp,
              math::RoundEvenOp, RmsNormOp, StochasticRoundOp>(
            [&](auto) { return at(op, 0); })
        .Case<ElementaryOpInterface>([&](ElementaryOpInterface function) {
          bool keepsZeros =
              numerics::evaluate(function.getFunction(), 0.0f) == 0;
          return keepsZeros ? at(op, 0) : Dims(0);
        })
        .Case<DecodeOp>([&](DecodeOp decode) -> Dims {
          // The codes of zero; that of E8M0 is 2^-127.
          Type elem = decode.getSource().getType().getElementType();
          return isa<Float8E8M0FNUType>(elem) ? 0 : at(op, 0);
        })
        .Case<ReduceOp>([&](ReduceOp reduce) {
          Dims dims = at(op, 0);
          return dims == kEverywhere ? dims : dims & ~(1u << reduce.getAxis());
        })
        .Case<TransposeOp>([&](auto) {
          return moved(at(op, 0), 2, [](unsigned d) { return 1 - d; });
        })
        .Case<BroadcastOp>(
            [&](BroadcastOp b) { return ofBroadcast(b, at(op, 0)); })
        .Case<ReshapeOp>([&](ReshapeOp r) { return ofReshape(r, at(op, 0)); })
        .Default(0u);
  }

  llvm::DenseMap<Value, Dims> known;
};

} // namespace

bool vanishes(Edge of, ArrayRef<Edge> zeros) {
  Vanishing analysis(zeros);
  for (Operation &op : *of.first.getParentBlock())
    analysis.visit(op);
  return analysis.holds(of);
}

} // namespace dither::quant
