//===- AccessOrder.cpp - Whether accesses of a tensor may meet ------------===//

#include "Analysis/AccessOrder.h"
#include "dither/Dialect/Quant/Offsets.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

std::optional<MemoryAccess> MemoryAccess::of(Operation *op) {
  auto make = [&](Value memref, Value tile, ValueRange indices) {
    return MemoryAccess{op, quant::viewed(memref), memref,
                        cast<RankedTensorType>(tile.getType()),
                        llvm::to_vector(indices)};
  };
  if (auto load = dyn_cast<quant::LoadOp>(op))
    return make(load.getMemref(), load.getResult(), load.getIndices());
  if (auto store = dyn_cast<quant::StoreOp>(op)) {
    MemoryAccess access =
        make(store.getMemref(), store.getTile(), store.getIndices());
    access.writes = true;
    access.order = store.getScaleLayout();
    return access;
  }
  if (auto gather = dyn_cast<quant::GatherOp>(op)) {
    MemoryAccess access =
        make(gather.getMemref(), gather.getResult(), gather.getColumn());
    access.anyRows = true;
    return access;
  }
  if (auto scatter = dyn_cast<quant::ScatterOp>(op)) {
    MemoryAccess access =
        make(scatter.getMemref(), scatter.getTile(), scatter.getColumn());
    access.writes = access.anyRows = true;
    return access;
  }
  if (auto atomic = dyn_cast<quant::AtomicOpInterface>(op)) {
    MemoryAccess access =
        make(atomic.getMemref(), atomic.getTile(), atomic.getIndices());
    access.writes = access.isAtomic = true;
    return access;
  }
  return std::nullopt;
}

quant::StoreOp copyOf(quant::LoadOp load) {
  if (!load->hasOneUse())
    return nullptr;
  auto store = dyn_cast<quant::StoreOp>(*load->user_begin());
  return store && store.getAsync() ? store : nullptr;
}

SmallVector<Operation *> accessesOf(Value memref) {
  SmallVector<Operation *> accesses;
  for (Operation *user : memref.getUsers())
    if (auto view = dyn_cast<ViewLikeOpInterface>(user))
      llvm::append_range(accesses, accessesOf(view.getViewDest()));
    else
      accesses.push_back(user);
  return accesses;
}

/// Whether the indices of both are of the same elements: of one view that every
/// iteration of every loop shares.
static bool isComparable(const MemoryAccess &a, const MemoryAccess &b) {
  Operation *view = a.view.getDefiningOp<ViewLikeOpInterface>();
  return a.view == b.view && (!view || isa<func::FuncOp>(view->getParentOp()));
}

bool conflicts(const MemoryAccess &a, const MemoryAccess &b) {
  return a.memref == b.memref && (a.writes || b.writes) &&
         !(a.isAtomic && b.isAtomic);
}

LoopRelations::Relation LoopRelations::of(Operation *loop) const {
  for (Operation *outer = loop->getParentOp(); outer;
       outer = outer->getParentOp())
    if (relations.contains(outer))
      return Any;
  auto it = relations.find(loop);
  return it == relations.end() ? Same : it->second;
}

void LoopRelations::forgetInside(Operation *loop) {
  for (auto it = relations.begin(); it != relations.end();) {
    auto at = it++;
    if (loop->isProperAncestor(at->first))
      relations.erase(at);
  }
}

void LoopRelations::advance(Operation *loop) {
  forgetInside(loop);
  relations.try_emplace(loop, Earlier);
}

void LoopRelations::leave(Operation *loop) {
  forgetInside(loop);
  relations[loop] = Any;
}

bool LoopRelations::operator==(const LoopRelations &other) const {
  return relations.size() == other.relations.size() &&
         llvm::all_of(relations, [&](const auto &entry) {
           auto it = other.relations.find(entry.first);
           return it != other.relations.end() && it->second == entry.second;
         });
}

namespace {

/// A sum of values times constants, plus a constant. The induction variable of
/// a loop stands for the number of the iteration.
struct Sum {
  llvm::SmallMapVector<Value, int64_t, 4> terms;
  int64_t constant = 0;
};

/// Adds `factor` times `v`. False where a factor does not fit.
bool accumulate(Sum &sum, Value v, int64_t factor) {
  auto addTerm = [&](Value term, int64_t f) {
    int64_t &at = sum.terms[term];
    return !llvm::AddOverflow(at, f, at);
  };
  if (std::optional<int64_t> c = getConstantIntValue(v)) {
    int64_t product;
    return !llvm::MulOverflow(*c, factor, product) &&
           !llvm::AddOverflow(sum.constant, product, sum.constant);
  }
  if (isa<BlockArgument>(v)) {
    scf::ForOp loop = quant::countingLoop(v);
    std::optional<int64_t> step;
    if (loop)
      step = getConstantIntValue(loop.getStep());
    int64_t product;
    if (!step)
      return addTerm(v, factor);
    return !llvm::MulOverflow(*step, factor, product) && addTerm(v, product) &&
           accumulate(sum, loop.getLowerBound(), factor);
  }
  if (auto add = v.getDefiningOp<arith::AddIOp>())
    return accumulate(sum, add.getLhs(), factor) &&
           accumulate(sum, add.getRhs(), factor);
  if (auto sub = v.getDefiningOp<arith::SubIOp>())
    return accumulate(sum, sub.getLhs(), factor) &&
           accumulate(sum, sub.getRhs(), -factor);
  if (auto mul = v.getDefiningOp<arith::MulIOp>())
    for (bool swap : {false, true}) {
      std::optional<int64_t> c =
          getConstantIntValue(swap ? mul.getLhs() : mul.getRhs());
      int64_t product;
      if (c && !llvm::MulOverflow(*c, factor, product))
        return accumulate(sum, swap ? mul.getRhs() : mul.getLhs(), product);
    }
  // Divisions without a remainder.
  Operation *def = v.getDefiningOp();
  if (isa_and_present<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(def))
    if (std::optional<int64_t> c = getConstantIntValue(def->getOperand(1));
        c && *c > 0 && quant::isNonNegative(def->getOperand(0))) {
      Sum whole;
      bool exact = accumulate(whole, def->getOperand(0), 1) &&
                   whole.constant % *c == 0 &&
                   llvm::all_of(whole.terms, [&](const auto &term) {
                     return term.second % *c == 0;
                   });
      if (exact) {
        for (const auto &[term, f] : whole.terms) {
          int64_t product;
          if (llvm::MulOverflow(f / *c, factor, product) ||
              !addTerm(term, product))
            return false;
        }
        int64_t product;
        return !llvm::MulOverflow(whole.constant / *c, factor, product) &&
               !llvm::AddOverflow(sum.constant, product, sum.constant);
      }
    }
  return addTerm(v, factor);
}

std::optional<Sum> sumOf(Value v) {
  Sum sum;
  if (!accumulate(sum, v, 1))
    return std::nullopt;
  return sum;
}

/// The loop that counts with `v`; null for other values.
scf::ForOp counterOf(Value v) {
  scf::ForOp loop = quant::countingLoop(v);
  return loop && getConstantIntValue(loop.getStep()) ? loop : scf::ForOp();
}

/// Iterations of a loop, if they are known.
std::optional<int64_t> tripCount(scf::ForOp loop) {
  Sum extent;
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!step || *step <= 0 || !accumulate(extent, loop.getUpperBound(), 1) ||
      !accumulate(extent, loop.getLowerBound(), -1) ||
      llvm::any_of(extent.terms, [](auto &term) { return term.second != 0; }))
    return std::nullopt;
  return std::max<int64_t>(0, llvm::divideCeilSigned(extent.constant, *step));
}

/// What a number lies in; nothing for no bound.
struct Interval {
  std::optional<int64_t> low, high;

  void add(int64_t factor, std::optional<int64_t> least,
           std::optional<int64_t> most) {
    if (!factor)
      return;
    if (factor < 0)
      std::swap(least, most);
    auto grow = [&](std::optional<int64_t> &at, std::optional<int64_t> by) {
      int64_t product;
      if (!at || !by || llvm::MulOverflow(*by, factor, product) ||
          llvm::AddOverflow(*at, product, product))
        at = std::nullopt;
      else
        at = product;
    };
    grow(low, least);
    grow(high, most);
  }
  void addAnything() { low = high = std::nullopt; }
};

/// The loop whose iterations tell values of `v` apart; null for none.
Operation *loopAround(Value v) {
  Operation *op = v.getParentBlock()->getParentOp();
  while (op && !isa<scf::ForOp>(op))
    op = op->getParentOp();
  return op;
}

/// From where `before` was to where `after` is, along one dimension.
Interval distance(Value before, Value after, const LoopRelations &loops) {
  std::optional<Sum> from = sumOf(before), to = sumOf(after);
  if (!from || !to)
    return {};
  int64_t constant;
  if (llvm::SubOverflow(to->constant, from->constant, constant))
    return {};
  Interval d{constant, constant};
  for (const auto &[term, factor] : from->terms)
    to->terms.insert({term, 0});
  for (const auto &[term, now] : to->terms) {
    int64_t then = from->terms.lookup(term);
    Operation *around = loopAround(term);
    auto relation = around ? loops.of(around) : LoopRelations::Same;
    scf::ForOp loop = counterOf(term);
    std::optional<int64_t> count = loop ? tripCount(loop) : std::nullopt, most;
    if (count)
      most = *count - 1;
    std::optional<int64_t> least =
        loop ? std::optional<int64_t>(0) : std::nullopt;
    switch (relation) {
    case LoopRelations::Same:
      d.add(now - then, least, most);
      break;
    case LoopRelations::Earlier:
      if (loop) {
        d.add(now - then, least, most);
        d.add(now, 1, most); // iterations since
        break;
      }
      [[fallthrough]];
    case LoopRelations::Any:
      d.add(now, least, most);
      d.add(-then, least, most);
      break;
    }
  }
  return d;
}

} // namespace

bool MemoryAccess::startsByte() const {
  if (indices.empty())
    return true;
  std::optional<Sum> sum = sumOf(indices.back());
  return sum && sum->constant % 2 == 0 &&
         llvm::all_of(sum->terms,
                      [](auto &term) { return term.second % 2 == 0; });
}

bool areDisjoint(const MemoryAccess &before, const MemoryAccess &after,
                 const LoopRelations &loops,
                 std::optional<SmallVector<int64_t>> *delta) {
  if (before.anyRows || after.anyRows || before.order != after.order ||
      !isComparable(before, after))
    return false;
  SmallVector<int64_t> known;
  bool halves = before.tile.getElementTypeBitWidth() == 4;
  for (int64_t d = 0, rank = before.tile.getRank(); d < rank; ++d) {
    Interval at = distance(before.indices[d], after.indices[d], loops);
    // Neighbours of four bits may share a byte.
    bool shares = halves && d == rank - 1;
    auto extent = [&](const MemoryAccess &access) {
      int64_t n = access.tile.getDimSize(d);
      return n + (shares && (n % 2 || !access.startsByte()));
    };
    if ((at.low && *at.low >= extent(before)) ||
        (at.high && -*at.high >= extent(after)))
      return true;
    if (at.low && at.low == at.high)
      known.push_back(*at.low);
  }
  if (delta && int64_t(known.size()) == before.tile.getRank())
    *delta = known;
  return false;
}

} // namespace dither::transforms
