//===- Bounds.cpp - How much of a tile lies inside its tensors ------------===//

#include "Phases/Bounds.h"
#include "Phases/PhasePlan.h"
#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Dialect/Quant/PastEdge.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dither::transforms {

namespace {

/// Index arithmetic that folds constants.
class Fold {
public:
  Fold(OpBuilder &b, Location loc) : b(b), loc(loc) {}
  Value value(OpFoldResult v) {
    return getValueOrCreateConstantIndexOp(b, loc, v);
  }
  template <typename Op, typename Fn>
  OpFoldResult apply(OpFoldResult x, OpFoldResult y, Fn fold) {
    std::optional<int64_t> a = getConstantIntValue(x),
                           c = getConstantIntValue(y);
    if (a && c)
      return b.getIndexAttr(fold(*a, *c));
    return Op::create(b, loc, value(x), value(y)).getResult();
  }
  OpFoldResult min(OpFoldResult x, OpFoldResult y) {
    return apply<arith::MinSIOp>(
        x, y, [](int64_t a, int64_t c) { return std::min(a, c); });
  }
  OpFoldResult max(OpFoldResult x, OpFoldResult y) {
    return apply<arith::MaxSIOp>(
        x, y, [](int64_t a, int64_t c) { return std::max(a, c); });
  }
  OpFoldResult sub(OpFoldResult x, OpFoldResult y) {
    if (getConstantIntValue(y) == 0)
      return x;
    return apply<arith::SubIOp>(x, y,
                                [](int64_t a, int64_t c) { return a - c; });
  }
  OpFoldResult add(OpFoldResult x, OpFoldResult y) {
    return apply<arith::AddIOp>(x, y,
                                [](int64_t a, int64_t c) { return a + c; });
  }
  OpFoldResult mul(OpFoldResult x, int64_t c) {
    return c == 1 ? x
                  : apply<arith::MulIOp>(
                        x, b.getIndexAttr(c),
                        [](int64_t a, int64_t c) { return a * c; });
  }
  /// x >= 0 rounded down to a multiple of `step`.
  OpFoldResult floor(OpFoldResult x, int64_t step) {
    if (step == 1)
      return x;
    OpFoldResult rest = apply<arith::RemUIOp>(
        x, b.getIndexAttr(step), [](int64_t a, int64_t c) { return a % c; });
    return sub(x, rest);
  }
  Value atMost(OpFoldResult x, OpFoldResult y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, value(x),
                                 value(y));
  }
  Value both(Value x, Value y) {
    return x ? arith::AndIOp::create(b, loc, x, y).getResult() : y;
  }

  OpBuilder &b;
  Location loc;
};

/// Where rows (or columns) of tiles are +0 from some on: that of the last load,
/// or those that a mask counts.
struct Edges {
  Edges(const PhasePlan &plan, bool ofColumns) : dim(ofColumns ? 1 : 0) {
    for (Value v : plan.values()) {
      auto type = cast<RankedTensorType>(v.getType());
      for (unsigned d = 0; d < type.getRank(); ++d) {
        if ((ofColumns ? plan.colUnit(v, d) : plan.rowUnit(v, d)) != 1)
          continue;
        if (v.getDefiningOp<quant::LoadOp>() &&
            isa<FloatType>(type.getElementType()))
          zeros.push_back({v, d});
        else if (Value count = maskedAfter(v, d)) {
          zeros.push_back({v, d});
          counts.insert(count);
        }
      }
    }
  }

  /// Whether nothing follows the last of these that would change a total.
  bool end(const PhasePlan::Total &total) const {
    quant::ReduceKind kind = quant::ReduceOp(total.reduce).getKind();
    if (kind != quant::ReduceKind::sum && kind != quant::ReduceKind::amax)
      return false;
    std::optional<APFloat> rest = quant::floatPast({total.source, dim}, zeros);
    return rest && rest->isPosZero();
  }

  unsigned dim;
  SmallVector<quant::Edge> zeros;
  /// Numbers of rows or columns, i32.
  llvm::SetVector<Value> counts;

private:
  /// n, where `v` is `iota < n ? x : +0` along a dimension.
  static Value maskedAfter(Value v, unsigned dim) {
    auto select = v.getDefiningOp<arith::SelectOp>();
    if (!select || !matchPattern(select.getFalseValue(), m_PosZeroFloat()))
      return {};
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
      return {};
    auto place = compare.getLhs().getDefiningOp<quant::IotaOp>();
    auto count = compare.getRhs().getDefiningOp<quant::BroadcastOp>();
    bool counts = place && count && unsigned(place.getDim()) == dim &&
                  count.getSource().getType().isInteger(32);
    return counts ? count.getSource() : Value();
  }
};

} // namespace

TileBounds::TileBounds(OpBuilder &b, Location loc, const PhasePlan &plan)
    : loc(loc), plan(plan), rows(b.getIndexAttr(plan.rows)),
      cols(b.getIndexAttr(plan.cols)), end(b.getIndexAttr(plan.rows)),
      colsEnd(b.getIndexAttr(plan.cols)) {
  Fold f(b, loc);
  // Ends of what is stored, and of what is loaded.
  std::optional<OpFoldResult> last, read, lastCol, readCol;
  auto upTo = [&](std::optional<OpFoldResult> &most, OpFoldResult room) {
    most = most ? f.max(*most, room) : room;
  };
  bool endless = false;
  auto roomOf = [&](Value memref, unsigned dim, Value index) {
    auto type = cast<MemRefType>(memref.getType());
    OpFoldResult extent = b.getIndexAttr(type.getShape()[dim]);
    if (type.isDynamicDim(dim))
      extent = memref::DimOp::create(b, loc, memref, dim).getResult();
    // A constant that folding has not seen is one all the same.
    OpFoldResult at = index;
    if (std::optional<int64_t> c = getConstantIntValue(index))
      at = b.getIndexAttr(*c);
    return std::pair(at, f.sub(extent, at));
  };
  // No product wraps.
  auto within = [&](OpFoldResult room, int64_t size) {
    return f.max(f.min(room, b.getIndexAttr(size)), b.getIndexAttr(0));
  };
  auto addEdges = [&](const Edges &edges, std::optional<OpFoldResult> loaded,
                      std::optional<OpFoldResult> &most) {
    if (loaded)
      upTo(most, *loaded);
    for (Value count : edges.counts)
      upTo(most, arith::IndexCastOp::create(b, loc, b.getIndexType(), count)
                     .getResult());
  };
  auto consider = [&](Value memref, ValueRange indices, Value tile,
                      bool isSink) {
    auto type = cast<MemRefType>(memref.getType());
    auto shape = cast<RankedTensorType>(tile.getType()).getShape();
    int64_t lead = type.getRank() - int64_t(shape.size());
    bool hasRows = false;
    for (auto [i, index] : llvm::enumerate(indices)) {
      int64_t d = int64_t(i) - lead;
      int64_t size = d < 0 ? 1 : shape[d];
      int64_t row = d < 0 ? 0 : plan.rowUnit(tile, d),
              col = d < 0 ? 0 : plan.colUnit(tile, d);
      auto [at, room] = roomOf(memref, i, index);
      if (!quant::isNonNegative(index))
        inside = f.both(inside, f.atMost(b.getIndexAttr(0), at));
      if (std::max(row, col) > 1)
        room = within(room, size);
      if (row) {
        room = f.mul(room, row);
        rows = f.min(rows, room);
        upTo(isSink ? last : read, room);
        hasRows |= isSink;
      } else if (col) {
        room = f.mul(room, col);
        cols = f.min(cols, room);
        upTo(isSink ? lastCol : readCol, room);
      } else if (std::optional<int64_t> known = getConstantIntValue(room)) {
        never |= *known < size;
      } else {
        inside = f.both(inside, f.atMost(b.getIndexAttr(size), room));
      }
    }
    endless |= isSink && !hasRows;
  };
  for (Value v : plan.values())
    if (auto load = v.getDefiningOp<quant::LoadOp>())
      consider(load.getMemref(), load.getIndices(), v, false);
  for (const Sink &sink : plan.sinks)
    consider(sink.memref, sink.indices, sink.tile, true);
  // What no row of a tensor has is collected, too, unless it adds nothing.
  if (!plan.totals.empty()) {
    Edges edges(plan, /*ofColumns=*/false);
    endless |= llvm::any_of(plan.totals, [&](const PhasePlan::Total &total) {
      return !edges.end(total);
    });
    if (!endless)
      addEdges(edges, read, last);
  }
  // So are columns, in a total of all of them. Those of each column are stored.
  bool endlessCols = false;
  if (llvm::any_of(plan.totals,
                   [](const auto &total) { return total.alongColumns; })) {
    Edges edges(plan, /*ofColumns=*/true);
    endlessCols = llvm::any_of(plan.totals, [&](const auto &total) {
      return total.alongColumns && !edges.end(total);
    });
    if (!endlessCols)
      addEdges(edges, readCol, lastCol);
  }
  for (const Sink &sink : plan.lateSinks) {
    unsigned rank = cast<RankedTensorType>(sink.tile.getType()).getRank();
    unsigned lead = sink.indices.size() - rank;
    bool hasCols = false;
    for (unsigned d = 0; d < rank; ++d)
      if (int64_t col = plan.colUnit(sink.tile, d)) {
        hasCols = true;
        OpFoldResult room =
            roomOf(sink.memref, lead + d, sink.indices[lead + d]).second;
        upTo(lastCol, f.mul(within(room, sink.type().getDimSize(d)), col));
      }
    endlessCols |=
        !hasCols && llvm::any_of(plan.totals, [&](const auto &total) {
          return !total.alongColumns && isMadeFrom(sink.tile, total.result());
        });
  }
  OpFoldResult nothing = b.getIndexAttr(0);
  rows = f.max(rows, nothing);
  cols = f.max(cols, nothing);
  if (last && !endless)
    end = f.max(f.min(end, *last), nothing);
  if (lastCol && !endlessCols) {
    OpFoldResult most = f.max(f.min(colsEnd, *lastCol), nothing);
    colsEnd =
        f.min(colsEnd, f.floor(f.add(most, b.getIndexAttr(plan.blockCols - 1)),
                               plan.blockCols));
  }
  computed = end;
  if (plan.blockRows > 1 && getConstantIntValue(end) != plan.rows)
    computed =
        f.floor(f.add(end, b.getIndexAttr(plan.blockRows - 1)), plan.blockRows);
}

void TileBounds::enterBand(OpBuilder &b, Index row, int64_t count) {
  Fold f(b, loc);
  bandInside = inside;
  // Bands do not reach past the end of the tile.
  if (getConstantIntValue(rows) == plan.rows)
    return;
  OpFoldResult lastRow = f.sub(rows, b.getIndexAttr(count));
  bandInside = f.both(bandInside, f.atMost(row, lastRow));
}

TileBounds::Index TileBounds::rowsOfBand(OpBuilder &b, Index row) {
  Fold f(b, loc);
  Index all = b.getIndexAttr(plan.bandRows);
  if (getConstantIntValue(end) == plan.rows && plan.rows % plan.bandRows == 0)
    return all;
  return f.min(all, f.sub(computed, row));
}

TileBounds::Index TileBounds::choose(OpBuilder &b, Index ifInside) {
  if (never || getConstantIntValue(ifInside) == 0)
    return b.getIndexAttr(0);
  if (!bandInside)
    return ifInside;
  Fold f(b, loc);
  return arith::SelectOp::create(b, loc, bandInside, f.value(ifInside),
                                 f.value(b.getIndexAttr(0)))
      .getResult();
}

TileBounds::Index TileBounds::rowsInside(OpBuilder &b) {
  Fold f(b, loc);
  Index band = b.getIndexAttr(plan.bandRows), all = b.getIndexAttr(plan.cols);
  std::optional<int64_t> known = getConstantIntValue(cols);
  if (known)
    return choose(b, *known >= plan.cols ? band : Index(b.getIndexAttr(0)));
  Value enough = f.atMost(all, cols);
  Index either = arith::SelectOp::create(b, loc, enough, f.value(band),
                                         f.value(b.getIndexAttr(0)))
                     .getResult();
  return choose(b, either);
}

TileBounds::Index TileBounds::width(OpBuilder &b, Index col) {
  bool isWhole = getConstantIntValue(colsEnd) == plan.cols;
  if (isWhole && plan.cols % plan.bandCols == 0)
    return b.getIndexAttr(plan.bandCols);
  Fold f(b, loc);
  OpFoldResult rest = f.sub(colsEnd, col);
  return f.min(b.getIndexAttr(plan.bandCols),
               isWhole ? rest : f.max(rest, b.getIndexAttr(0)));
}

TileBounds::Index TileBounds::colsInside(OpBuilder &b, Index col, Index width,
                                         int64_t step) {
  Fold f(b, loc);
  Index here = width;
  if (getConstantIntValue(cols) != plan.cols)
    here = f.max(f.min(f.sub(cols, col), width), b.getIndexAttr(0));
  return choose(b, f.floor(here, step));
}

} // namespace dither::transforms
