//===- ReductionLoops.cpp - Reductions longer than a fragment -------------===//
//
// A sum of N elements has one order whatever the tile and the target: chains of
// stride P = 256 W, then a pairwise tree over the position r < P, lowest bit
// first (Numerics/ReductionOrder.h). A piece of f elements (a power of two up
// to 256, or to P where threads share a row) covers the low bits of r: its
// chain is a loop over the pieces with the same r, and quant.reduce on it is
// the low part of the tree. Each higher bit of r is a loop of two iterations
// around that, the highest outermost, that starts from the identity:
// (-0.0 + a) + b is a + b, bit for bit.
//
//===----------------------------------------------------------------------===//

#include "Tiling/ReductionLoops.h"
#include "Layouts/LayoutRules.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Numerics/ReductionOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

namespace {

class Reducer {
public:
  Reducer(TilingEngine &engine, quant::ReduceOp reduce,
          TilingEngine::Offsets offsets, TilingEngine::Sizes sizes)
      : engine(engine), reduce(reduce), loc(reduce.getLoc()),
        axis(reduce.getAxis()), offsets(offsets), sizes(sizes),
        extent(reduce.getExtent()) {}

  FailureOr<Value> sum(int64_t piece);
  FailureOr<Value> extremum(int64_t piece);

private:
  RankedTensorType type(int64_t along) {
    SmallVector<int64_t> shape(sizes);
    shape[axis] = along;
    return RankedTensorType::get(
        shape,
        cast<RankedTensorType>(reduce.getSource().getType()).getElementType());
  }
  Value splat(double v, int64_t along) {
    RankedTensorType t = type(along);
    auto elem = cast<FloatType>(t.getElementType());
    return arith::ConstantOp::create(
        engine.builder(), loc,
        DenseElementsAttr::get(t, FloatAttr::get(elem, v)));
  }
  /// The operand's elements [at, at + piece) along the axis.
  FailureOr<Value> elements(OpFoldResult at, int64_t piece) {
    SmallVector<OpFoldResult> where(offsets);
    SmallVector<int64_t> extents(sizes);
    where[axis] = at;
    extents[axis] = piece;
    return engine.materialize(reduce.getSource(), where, extents);
  }
  /// As elements(), with `identity` at and past the end of the axis.
  FailureOr<Value> lastElements(int64_t at, int64_t piece, double identity) {
    FailureOr<Value> x = elements(engine.builder().getIndexAttr(at), piece);
    if (failed(x))
      return failure();
    OpBuilder &b = engine.builder();
    auto t = cast<RankedTensorType>(x->getType());
    auto indexType = t.clone(b.getI32Type());
    Value index = quant::IotaOp::create(b, loc, indexType, axis);
    Value end = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(indexType, b.getI32IntegerAttr(extent - at)));
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, end);
    Value none = splat(identity, piece);
    return arith::SelectOp::create(b, loc, inside, *x, none).getResult();
  }
  Value reduceWhole(Value x) {
    // A sum of so many has chains of its own but for this.
    bool tree =
        reduce.getKind() == quant::ReduceKind::sum &&
        cast<RankedTensorType>(x.getType()).getDimSize(axis) > kSumPiece;
    return quant::ReduceOp::create(engine.builder(), loc, type(1),
                                   reduce.getKind(), x, axis,
                                   /*count=*/IntegerAttr(), tree);
  }
  Value add(Value a, Value c) {
    return arith::AddFOp::create(engine.builder(), loc, a, c);
  }
  /// The larger (or smaller) of two, or the one that is a number.
  Value pick(Value acc, Value x) {
    OpBuilder &b = engine.builder();
    if (reduce.getKind() == quant::ReduceKind::max)
      return arith::MaxNumFOp::create(b, loc, acc, x);
    if (reduce.getKind() == quant::ReduceKind::min)
      return arith::MinNumFOp::create(b, loc, acc, x);
    // The accumulator of an amax is no NaN, and one in x compares false: fmax
    // with one compare.
    Value better =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, acc);
    return arith::SelectOp::create(b, loc, better, x, acc);
  }

  FailureOr<Value> chain(OpFoldResult start, int64_t piece, int64_t stride);
  FailureOr<Value> tree(OpFoldResult start, int64_t width, int64_t piece,
                        int64_t stride);

  TilingEngine &engine;
  quant::ReduceOp reduce;
  Location loc;
  int64_t axis;
  TilingEngine::Offsets offsets;
  TilingEngine::Sizes sizes;
  int64_t extent;
};

} // namespace

/// Elements start, start + stride, ...: pieces added up one after the other,
/// then the tree over the piece.
FailureOr<Value> Reducer::chain(OpFoldResult start, int64_t piece,
                                int64_t stride) {
  int64_t whole = extent / piece * piece;
  Value acc = splat(-0.0, piece);
  std::optional<int64_t> fixed = getConstantIntValue(start);
  auto step = [&](OpFoldResult at,
                  ValueRange carried) -> FailureOr<TilingEngine::Values> {
    FailureOr<Value> x = elements(at, piece);
    if (failed(x))
      return failure();
    return TilingEngine::Values{add(carried.front(), *x)};
  };
  // One piece in each chain needs no loop.
  FailureOr<TilingEngine::Values> sums =
      whole == stride
          ? step(start, acc)
          : engine.forLoop(loc, start, engine.builder().getIndexAttr(whole),
                           stride, acc, step);
  if (failed(sums))
    return failure();
  if (whole != extent) {
    // Exactly one chain ends with the piece that reaches past the end.
    int64_t last = whole % stride;
    auto addLast = [&]() -> FailureOr<TilingEngine::Values> {
      FailureOr<Value> x = lastElements(whole, piece, -0.0);
      if (failed(x))
        return failure();
      return TilingEngine::Values{add(sums->front(), *x)};
    };
    if (fixed && *fixed == last) {
      sums = addLast();
    } else if (!fixed) {
      OpBuilder &b = engine.builder();
      Value isLast = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq, cast<Value>(start),
          arith::ConstantIndexOp::create(b, loc, last));
      sums = engine.ifThen(loc, isLast, *sums, addLast);
    }
    if (failed(sums))
      return failure();
  }
  return reduceWhole(sums->front());
}

/// Positions [start, start + width) of the tree.
FailureOr<Value> Reducer::tree(OpFoldResult start, int64_t width, int64_t piece,
                               int64_t stride) {
  if (width == piece)
    return chain(start, piece, stride);
  int64_t half = width / 2;
  FailureOr<TilingEngine::Values> sums = engine.forLoop(
      loc, start,
      quant::addOffsets(engine.builder(), loc, start,
                        engine.builder().getIndexAttr(width)),
      half, splat(-0.0, 1),
      [&](OpFoldResult at,
          ValueRange carried) -> FailureOr<TilingEngine::Values> {
        FailureOr<Value> x = tree(at, half, piece, stride);
        if (failed(x))
          return failure();
        return TilingEngine::Values{add(carried.front(), *x)};
      });
  if (failed(sums))
    return failure();
  return sums->front();
}

FailureOr<Value> Reducer::sum(int64_t piece) {
  int64_t stride = reduce.getNumChains();
  // Positions that no element has add nothing.
  int64_t width = std::min(stride, powerOfTwoCeil(extent));
  piece = std::min(piece, width);
  return tree(engine.builder().getIndexAttr(0), width, piece, stride);
}

FailureOr<Value> Reducer::extremum(int64_t piece) {
  bool magnitude = reduce.getKind() == quant::ReduceKind::amax;
  // NaN is what max and min of no number are.
  double identity = magnitude ? 0 : std::numeric_limits<double>::quiet_NaN();
  auto prepare = [&](Value x) -> Value {
    return magnitude ? math::AbsFOp::create(engine.builder(), loc, x) : x;
  };

  int64_t whole = extent / piece * piece, rest = extent - whole;
  Value result;
  if (whole) {
    FailureOr<TilingEngine::Values> best = engine.forLoop(
        loc, engine.builder().getIndexAttr(0),
        engine.builder().getIndexAttr(whole), piece, splat(identity, piece),
        [&](OpFoldResult at,
            ValueRange carried) -> FailureOr<TilingEngine::Values> {
          FailureOr<Value> x = elements(at, piece);
          if (failed(x))
            return failure();
          return TilingEngine::Values{pick(carried.front(), prepare(*x))};
        });
    if (failed(best))
      return failure();
    result = reduceWhole(best->front());
  }
  if (rest) {
    int64_t last = powerOfTwoCeil(rest);
    FailureOr<Value> x = lastElements(whole, last, identity);
    if (failed(x))
      return failure();
    Value tail = reduceWhole(*x);
    result = result ? pick(result, tail) : tail;
  }
  return result;
}

FailureOr<Value> reduceInPieces(TilingEngine &engine, quant::ReduceOp reduce,
                                TilingEngine::Offsets offsets,
                                TilingEngine::Sizes sizes, int64_t limit,
                                int64_t granule) {
  Reducer reducer(engine, reduce, offsets, sizes);
  if (reduce.getKind() != quant::ReduceKind::sum)
    return reducer.extremum(limit);
  bool alongRow = int64_t(reduce.getAxis()) + 1 == reduce.getType().getRank();
  bool isShared =
      alongRow && !isForCpu(reduce->getParentOfType<func::FuncOp>());
  int64_t piece =
      std::min(limit, isShared ? numerics::kMaxSumChains : kSumPiece);
  if (granule > piece || !llvm::isPowerOf2_64(piece))
    return emitError(reduce.getLoc(), "sums values that come in blocks of ")
           << granule << ", expected blocks of at most " << piece
           << ": use smaller tiles";
  return reducer.sum(piece);
}

} // namespace dither::transforms
