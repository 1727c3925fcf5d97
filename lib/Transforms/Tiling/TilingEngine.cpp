//===- TilingEngine.cpp - Parts of tile values on demand ------------------===//

#include "Tiling/TilingEngine.h"
#include "Analysis/Describe.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

int64_t powerOfTwoCeil(int64_t v) { return int64_t(llvm::PowerOf2Ceil(v)); }
int64_t powerOfTwoFloor(int64_t v) {
  return int64_t(llvm::bit_floor(uint64_t(v)));
}

//===----------------------------------------------------------------------===//
// LinearIndex
//===----------------------------------------------------------------------===//

void LinearIndex::add(Term term) {
  auto same = [&](const Term &t) {
    return t.value == term.value && t.div == term.div;
  };
  if (auto *it = llvm::find_if(terms, same); it != terms.end())
    it->num += term.num;
  else
    terms.push_back(term);
  llvm::erase_if(terms, [](const Term &t) { return t.num == 0; });
}

/// Adds num * floor(v / div).
static void accumulate(LinearIndex &out, OpFoldResult v, int64_t num,
                       int64_t div) {
  if (std::optional<int64_t> c = getConstantIntValue(v)) {
    out.constant += num * (*c / div);
    return;
  }
  Value value = cast<Value>(v);
  if (auto add = value.getDefiningOp<arith::AddIOp>()) {
    accumulate(out, add.getLhs(), num, div);
    accumulate(out, add.getRhs(), num, div);
    return;
  }
  if (auto mul = value.getDefiningOp<arith::MulIOp>())
    if (std::optional<int64_t> c = getConstantIntValue(mul.getRhs())) {
      int64_t common = std::gcd(*c, div);
      accumulate(out, mul.getLhs(), num * (*c / common), div / common);
      return;
    }
  if (auto divide = value.getDefiningOp<arith::DivUIOp>())
    if (std::optional<int64_t> c = getConstantIntValue(divide.getRhs())) {
      accumulate(out, divide.getLhs(), num, div * *c);
      return;
    }
  out.add({value, num, div});
}

LinearIndex LinearIndex::get(OpFoldResult v) {
  LinearIndex out;
  accumulate(out, v, 1, 1);
  return out;
}

void LinearIndex::appendKey(std::vector<int64_t> &key) const {
  SmallVector<std::array<int64_t, 3>> sorted;
  for (const Term &t : terms)
    sorted.push_back({reinterpret_cast<int64_t>(t.value.getAsOpaquePointer()),
                      t.num, t.div});
  llvm::sort(sorted);
  key.push_back(sorted.size());
  for (const auto &t : sorted)
    key.insert(key.end(), t.begin(), t.end());
  key.push_back(constant);
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

TilingEngine::TilingEngine(Operation *anchor, Resolver resolver)
    : b(anchor), resolver(std::move(resolver)) {
  scopes.push_back({anchor->getBlock(), anchor, {}, 0, 1, true, {}, {}});
}

OpBuilder &TilingEngine::builder() {
  const Scope &scope = scopes.back();
  if (scope.before)
    b.setInsertionPoint(scope.before);
  else
    b.setInsertionPointToEnd(scope.block);
  return b;
}

/// The offset of a block from that of a part of it: an induction variable that
/// stays below the divisor adds nothing, and one that steps over whole blocks
/// is divided without a rest.
LinearIndex TilingEngine::simplify(OpFoldResult v) const {
  LinearIndex index = LinearIndex::get(v), out;
  out.constant = index.constant;
  for (LinearIndex::Term term : index.terms) {
    auto scope = llvm::find_if(
        scopes, [&](const Scope &s) { return s.iv == term.value; });
    if (scope != scopes.end()) {
      if (scope->bound && scope->bound <= term.div)
        continue;
      if (scope->step % term.div == 0) {
        int64_t common = std::gcd(term.num, term.div);
        term.num /= common;
        term.div /= common;
      }
    }
    out.add(term);
  }
  return out;
}

size_t TilingEngine::depthOf(const LinearIndex &index) const {
  size_t depth = 0;
  for (const LinearIndex::Term &term : index.terms)
    for (size_t i = 1; i < scopes.size(); ++i)
      if (scopes[i].iv == term.value)
        depth = std::max(depth, i);
  return depth;
}

OpFoldResult TilingEngine::rebuild(Location loc, const LinearIndex &index) {
  if (index.terms.empty())
    return builder().getIndexAttr(index.constant);
  std::vector<int64_t> key;
  index.appendKey(key);
  for (Scope &scope : scopes)
    if (auto it = scope.indices.find(key); it != scope.indices.end())
      return it->second;
  OpBuilder &b = builder();
  Value sum;
  for (const LinearIndex::Term &term : index.terms) {
    Value v = term.value;
    if (term.div != 1)
      v = arith::DivUIOp::create(
          b, loc, v, arith::ConstantIndexOp::create(b, loc, term.div));
    if (term.num != 1)
      v = arith::MulIOp::create(
          b, loc, v, arith::ConstantIndexOp::create(b, loc, term.num));
    sum = sum ? arith::AddIOp::create(b, loc, sum, v).getResult() : v;
  }
  if (index.constant != 0)
    sum = arith::AddIOp::create(
        b, loc, sum, arith::ConstantIndexOp::create(b, loc, index.constant));
  scopes.back().indices[key] = sum;
  return sum;
}

FailureOr<TilingEngine::Values>
TilingEngine::forLoop(Location loc, OpFoldResult lb, OpFoldResult ub,
                      int64_t step, ValueRange inits, Body body, bool barrier) {
  std::optional<int64_t> from = getConstantIntValue(lb),
                         to = getConstantIntValue(ub);
  if (from && to && *from >= *to)
    return Values(inits);
  if (from && to && *to - *from <= step)
    return body(lb, inits);

  OpBuilder &b = builder();
  auto asValue = [&](OpFoldResult v) {
    return getValueOrCreateConstantIndexOp(b, loc, v);
  };
  Value lower = asValue(lb), upper = asValue(ub),
        by = asValue(b.getIndexAttr(step));
  auto loop = scf::ForOp::create(b, loc, lower, upper, by, inits);
  Block *block = loop.getBody();
  if (block->mightHaveTerminator())
    block->getTerminator()->erase();

  Operation *resume = scopes.back().before;
  scopes.back().before = loop;
  int64_t bound = from && *from == 0 && to ? *to : 0;
  // Loops that begin at a run-time index begin at whole blocks.
  int64_t multiple = std::gcd(from.value_or(0), step);
  scopes.push_back({block,
                    nullptr,
                    loop.getInductionVar(),
                    bound,
                    multiple,
                    barrier,
                    {},
                    {}});
  FailureOr<Values> carried =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scopes.pop_back();
  scopes.back().before = resume;
  b.setInsertionPointToEnd(block);
  scf::YieldOp::create(
      b, loc, succeeded(carried) ? ValueRange(*carried) : ValueRange(inits));
  if (failed(carried))
    return failure();
  return Values(loop.getResults());
}

FailureOr<TilingEngine::Values>
TilingEngine::ifThen(Location loc, Value condition, ValueRange otherwise,
                     llvm::function_ref<FailureOr<Values>()> body) {
  OpBuilder &b = builder();
  auto branch = scf::IfOp::create(b, loc, otherwise.getTypes(), condition,
                                  /*withElseRegion=*/true);
  for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
    if (!region->front().empty())
      region->front().clear();
  Operation *resume = scopes.back().before;
  scopes.back().before = branch;
  scopes.push_back({branch.thenBlock(), nullptr, {}, 0, 1, true, {}, {}});
  FailureOr<Values> result = body();
  scopes.pop_back();
  scopes.back().before = resume;
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, loc,
                       succeeded(result) ? ValueRange(*result) : otherwise);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  if (failed(result))
    return failure();
  return Values(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

LogicalResult TilingEngine::resolveSlices(ArrayRef<Operation *> slices) {
  Operation *resume = scopes.back().before;
  LogicalResult result = success();
  for (Operation *op : slices) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    if (!slice) {
      result = op->emitOpError("cannot be followed to a producer");
      break;
    }
    scopes.back().before = slice;
    FailureOr<Value> part = materialize(
        slice.getSource(), slice.getMixedOffsets(), slice.getType().getShape());
    if (failed(part)) {
      result = failure();
      break;
    }
    slice.getResult().replaceAllUsesWith(*part);
    slice.erase();
  }
  scopes.back().before = resume;
  return result;
}

FailureOr<Value> TilingEngine::produce(Value value, Offsets offsets,
                                       Sizes sizes) {
  if (resolver)
    if (std::optional<FailureOr<Value>> part = resolver(value, offsets, sizes))
      return *part;
  auto type = cast<RankedTensorType>(value.getType());
  if (auto producer = value.getDefiningOp<TilingInterface>()) {
    OpBuilder &b = builder();
    SmallVector<OpFoldResult> extents =
        getAsIndexOpFoldResult(b.getContext(), sizes);
    FailureOr<TilingResult> tiled = producer.generateResultTileValue(
        b, cast<OpResult>(value).getResultNumber(), offsets, extents);
    if (succeeded(tiled)) {
      if (failed(resolveSlices(tiled->generatedSlices)))
        return failure();
      return tiled->tiledValues.front();
    }
  }
  if (type.getShape() == sizes &&
      llvm::all_of(offsets, [](OpFoldResult o) { return isZeroInteger(o); }))
    return value;
  Operation *def = value.getDefiningOp();
  bool isCarried = !def || def->getNumRegions();
  return emitError(value.getLoc())
         << (isCarried ? "a loop or a branch hands on " : "")
         << describeTile(type)
         << (isCarried ? ", and it meets larger tiles than a program holds"
                       : " cannot be computed piece by piece")
         << ": use smaller tiles and more programs";
}

FailureOr<Value> TilingEngine::materialize(Value value, Offsets offsets,
                                           Sizes sizes) {
  std::vector<int64_t> key{
      reinterpret_cast<int64_t>(value.getAsOpaquePointer())};
  SmallVector<LinearIndex> forms;
  size_t depth = 0;
  for (OpFoldResult offset : offsets) {
    forms.push_back(simplify(offset));
    forms.back().appendKey(key);
    depth = std::max(depth, depthOf(forms.back()));
  }
  key.insert(key.end(), sizes.begin(), sizes.end());
  for (Scope &scope : scopes)
    if (auto it = scope.parts.find(key); it != scope.parts.end())
      return it->second;

  for (size_t i = depth + 1; i < scopes.size(); ++i)
    if (scopes[i].barrier)
      depth = i;
  // Leave the scopes that the part does not depend on for a while.
  std::vector<Scope> inner(std::make_move_iterator(scopes.begin() + depth + 1),
                           std::make_move_iterator(scopes.end()));
  scopes.resize(depth + 1);
  SmallVector<OpFoldResult> canonical;
  for (const LinearIndex &form : forms)
    canonical.push_back(rebuild(value.getLoc(), form));
  FailureOr<Value> part = produce(value, canonical, sizes);
  if (succeeded(part))
    scopes.back().parts[key] = *part;
  std::move(inner.begin(), inner.end(), std::back_inserter(scopes));
  return part;
}

FailureOr<Value> TilingEngine::materialize(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> zeros(type.getRank(), builder().getIndexAttr(0));
  return materialize(value, zeros, type.getShape());
}

LogicalResult TilingEngine::tileSink(Operation *sink, Offsets offsets,
                                     Sizes sizes) {
  auto tileable = dyn_cast<TilingInterface>(sink);
  if (!tileable)
    return sink->emitOpError("cannot be tiled");
  OpBuilder &b = builder();
  SmallVector<OpFoldResult> where;
  for (OpFoldResult offset : offsets)
    where.push_back(rebuild(sink->getLoc(), simplify(offset)));
  FailureOr<TilingResult> tiled = tileable.getTiledImplementation(
      builder(), where, getAsIndexOpFoldResult(b.getContext(), sizes));
  if (failed(tiled))
    return sink->emitOpError("cannot be tiled");
  return resolveSlices(tiled->generatedSlices);
}

} // namespace dither::transforms
