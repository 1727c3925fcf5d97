//===- Totals.cpp - Values over all rows of a tile ------------------------===//

#include "Phases/Totals.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <limits>
#include <numeric>

using namespace mlir;

namespace dither::transforms {

/// Columns that are taken at once after all rows.
static constexpr int64_t kColumns = 64;

/// What no element is further from.
static double identityOf(quant::ReduceKind kind) {
  return kind == quant::ReduceKind::amax
             ? 0
             : std::numeric_limits<double>::quiet_NaN();
}

Totals::Totals(OpBuilder &b, Location loc, const PhasePlan &plan,
               TilingEngine &engine, bool pairs, Index rows)
    : loc(loc), plan(plan), engine(engine), rows(rows) {
  for (auto [i, total] : llvm::enumerate(plan.totals))
    collected.push_back(quant::ScratchOp::create(
        b, loc, MemRefType::get({heightOf(i), total.columns}, b.getF32Type()),
        pairs && total.columns % 32 == 0));
}

int64_t Totals::heightOf(unsigned total) const {
  return kindOf(total) == quant::ReduceKind::sum
             ? llvm::Log2_64_Ceil(plan.rows) + 1
             : 1;
}

int64_t Totals::widthOf(int64_t columns) { return std::gcd(columns, kColumns); }

Value Totals::splat(double v, int64_t width) {
  OpBuilder &b = engine.builder();
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(RankedTensorType::get({1, width}, b.getF32Type()),
                             b.getF32FloatAttr(v)));
}

Value Totals::load(OpBuilder &b, unsigned total, int64_t row, Index col,
                   int64_t width) {
  SmallVector<Value> at{arith::ConstantIndexOp::create(b, loc, row),
                        getValueOrCreateConstantIndexOp(b, loc, col)};
  return quant::LoadOp::create(
      b, loc, RankedTensorType::get({1, width}, b.getF32Type()),
      collected[total], at, /*in_bounds=*/true);
}

void Totals::store(OpBuilder &b, unsigned total, int64_t row, Index col,
                   Value x) {
  SmallVector<Value> at{arith::ConstantIndexOp::create(b, loc, row),
                        getValueOrCreateConstantIndexOp(b, loc, col)};
  quant::StoreOp::create(b, loc, x, collected[total], at).setInBounds(true);
}

void Totals::clear(unsigned total, Index col, int64_t width) {
  store(engine.builder(), total, 0, col,
        splat(identityOf(kindOf(total)), width));
}

Value Totals::larger(quant::ReduceKind kind, Value acc, Value x) {
  OpBuilder &b = engine.builder();
  if (kind == quant::ReduceKind::max)
    return arith::MaxNumFOp::create(b, loc, acc, x);
  if (kind == quant::ReduceKind::min)
    return arith::MinNumFOp::create(b, loc, acc, x);
  // A NaN compares false, and changes nothing.
  Value better =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, acc);
  return arith::SelectOp::create(b, loc, better, x, acc);
}

/// Adds the sum `x` of the 2^level rows up to `row` to the pairwise tree over
/// the bits of the row's index (ReductionOrder.h): row `level` of what is
/// collected has the first half of a pair until the second one comes.
void Totals::addToTree(OpBuilder &b, unsigned total, int64_t level, Index row,
                       Index col, Value x) {
  if (level + 1 == heightOf(total))
    return store(b, total, level, col, x);
  Value at = getValueOrCreateConstantIndexOp(b, loc, row);
  Value bit = arith::ConstantIndexOp::create(b, loc, int64_t(1) << level);
  Value isSecond = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ne, arith::AndIOp::create(b, loc, at, bit),
      arith::ConstantIndexOp::create(b, loc, 0));
  scf::IfOp::create(
      b, loc, isSecond,
      [&](OpBuilder &then, Location) {
        int64_t width = cast<RankedTensorType>(x.getType()).getDimSize(1);
        Value first = load(then, total, level, col, width);
        addToTree(then, total, level + 1, row, col,
                  arith::AddFOp::create(then, loc, first, x));
        scf::YieldOp::create(then, loc);
      },
      [&](OpBuilder &other, Location) {
        store(other, total, level, col, x);
        scf::YieldOp::create(other, loc);
      });
}

/// Halves that no second one came to, from the shortest on. Rows after those
/// are +0: a sum of -0 becomes +0 by them.
FailureOr<Value> Totals::sumOfTree(unsigned total, Index col, int64_t width) {
  auto add = [&](Value a, Value b) -> Value {
    return arith::AddFOp::create(engine.builder(), loc, a, b);
  };
  auto levelOf = [&](int64_t level) {
    return load(engine.builder(), total, level, col, width);
  };
  if (std::optional<int64_t> known = getConstantIntValue(rows)) {
    Value sum;
    for (int64_t level = 0; *known >> level; ++level)
      if (*known >> level & 1)
        sum = sum ? add(levelOf(level), sum) : levelOf(level);
    if (*known == plan.rows)
      return sum;
    Value zero = splat(0.0, width);
    return sum ? add(sum, zero) : zero;
  }
  TilingEngine::Values sum{splat(-0.0, width)};
  auto addIf = [&](arith::CmpIPredicate predicate, Value x, int64_t y,
                   llvm::function_ref<Value()> term) {
    OpBuilder &b = engine.builder();
    Value condition = arith::CmpIOp::create(
        b, loc, predicate, x, arith::ConstantIndexOp::create(b, loc, y));
    FailureOr<TilingEngine::Values> added = engine.ifThen(
        loc, condition, sum, [&]() -> FailureOr<TilingEngine::Values> {
          return TilingEngine::Values{add(term(), sum.front())};
        });
    sum = *added;
  };
  auto count = cast<Value>(rows);
  for (int64_t level = 0; level < heightOf(total); ++level) {
    OpBuilder &b = engine.builder();
    Value bit = arith::AndIOp::create(
        b, loc, count,
        arith::ConstantIndexOp::create(b, loc, int64_t(1) << level));
    addIf(arith::CmpIPredicate::ne, bit, 0, [&] { return levelOf(level); });
  }
  addIf(arith::CmpIPredicate::slt, count, plan.rows,
        [&] { return splat(0.0, width); });
  return sum.front();
}

void Totals::collect(unsigned total, Value part, Index row, Index col) {
  OpBuilder &b = engine.builder();
  quant::ReduceKind kind = kindOf(total);
  // Where all columns are reduced, parts share one place.
  Index at = plan.totals[total].columns == plan.cols ? col : b.getIndexAttr(0);
  if (kind == quant::ReduceKind::sum)
    return addToTree(b, total, 0, row, at, part);
  if (kind == quant::ReduceKind::amax)
    part = math::AbsFOp::create(b, loc, part);
  int64_t width = cast<RankedTensorType>(part.getType()).getDimSize(1);
  Value before = load(b, total, 0, at, width);
  store(b, total, 0, at, larger(kind, before, part));
}

FailureOr<Value> Totals::part(unsigned total, Index col,
                              ArrayRef<int64_t> sizes) {
  quant::ReduceKind kind = kindOf(total);
  // The reduction of one row, or of a part, gives the form that reductions
  // have: no maximum is -0.
  auto reduced = [&](Value x, unsigned axis) -> Value {
    OpBuilder &b = engine.builder();
    return quant::ReduceOp::create(
        b, loc, RankedTensorType::get(sizes, b.getF32Type()), kind, x, axis,
        /*count=*/IntegerAttr());
  };
  if (kind == quant::ReduceKind::sum) {
    FailureOr<Value> sum = sumOfTree(total, col, sizes[1]);
    if (failed(sum))
      return failure();
    return reduced(*sum, /*axis=*/0);
  }
  if (!plan.totals[total].alongColumns)
    return reduced(load(engine.builder(), total, 0, col, sizes[1]), /*axis=*/0);
  int64_t columns = plan.totals[total].columns;
  int64_t width = widthOf(columns);
  Builder b(loc.getContext());
  FailureOr<TilingEngine::Values> best = engine.forLoop(
      loc, b.getIndexAttr(0), b.getIndexAttr(columns), width,
      splat(identityOf(kind), width),
      [&](Index at, ValueRange carried) -> FailureOr<TilingEngine::Values> {
        Value x = load(engine.builder(), total, 0, at, width);
        return TilingEngine::Values{larger(kind, carried.front(), x)};
      },
      /*barrier=*/true);
  if (failed(best))
    return failure();
  return reduced(best->front(), /*axis=*/1);
}

} // namespace dither::transforms
