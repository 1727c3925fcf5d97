//===- AssignLayouts.cpp - Give every tile value a layout -----------------===//
//
// Loads of whole tiles get a layout made for wide access (anchors); it flows
// forward through elementwise ops, and reductions derive theirs from it. Values
// that are cheap to recompute (constants, broadcasts, row vectors) have no
// layout of their own: they are cloned in the layout that each user asks for.
// Where two layouts meet, or a store would be narrow, a quant.convert_layout
// makes the movement explicit. On GPUs tiles are transposed before their
// columns combine (EarlyTransposes.h), codes of a tile and its transpose are
// made once (SharedCodes.h), and lanes add up what they have of a column before
// any of it moves (ColumnSums.h).
//
//===----------------------------------------------------------------------===//

#include "Layouts/ColumnSums.h"
#include "Layouts/EarlyTransposes.h"
#include "Layouts/LayoutRules.h"
#include "Layouts/Movement.h"
#include "Layouts/SharedCodes.h"
#include "Layouts/TileTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERASSIGNLAYOUTS
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;
using namespace dither;
using namespace dither::transforms;

namespace {

RankedTensorType tileType(Value v) {
  return dyn_cast<RankedTensorType>(v.getType());
}
bool isTile(Value v) { return bool(tileType(v)); }
bool hasLayout(Value v) { return layoutOf(v.getType()).has_value(); }

class Assigner {
public:
  explicit Assigner(func::FuncOp func)
      : func(func), rules(func), ctx(func.getContext()) {}

  LogicalResult run() {
    if (failed(assign(func.getBody().front())))
      return failure();
    // Clones replaced the values without a layout of their own.
    SmallVector<Operation *> dead;
    func.walk<WalkOrder::PostOrder>([&](Operation *op) { dead.push_back(op); });
    for (Operation *op : llvm::reverse(dead))
      if (llvm::any_of(op->getResults(),
                       [](Value v) { return isTile(v) && !hasLayout(v); })) {
        if (!op->use_empty())
          return op->emitOpError("has a user that no layout reached");
        op->erase();
      }
    return success();
  }

private:
  void setLayout(Value v, const TileLayout &layout) {
    v.setType(withLayout(tileType(v), layout));
  }

  TileLayout anchor(RankedTensorType type) {
    return rules.anchor(type.getShape());
  }

  /// `v` in `layout`: itself, a converted copy, or a clone of what computes it.
  FailureOr<Value> request(Value v, const TileLayout &layout) {
    if (auto have = layoutOf(v.getType())) {
      if (*have == layout)
        return v;
      quant::LayoutAttr key = toAttr(ctx, layout);
      if (Value hit = cache.lookup({v, key}))
        return hit;
      OpBuilder b(ctx);
      b.setInsertionPointAfterValue(v);
      if (auto widen = v.getDefiningOp<arith::ExtFOp>();
          widen && movesWords(widen.getIn(), layout)) {
        FailureOr<Value> narrow = request(widen.getIn(), layout);
        if (failed(narrow))
          return failure();
        IRMapping map;
        map.map(widen.getIn(), *narrow);
        Value wide = b.clone(*widen, map)->getResult(0);
        setLayout(wide, layout);
        return cache[{v, key}] = wide;
      }
      return cache[{v, key}] = quant::ConvertLayoutOp::create(
                 b, v.getLoc(), withLayout(tileType(v), layout), v);
    }
    quant::LayoutAttr key = toAttr(ctx, layout);
    if (Value hit = cache.lookup({v, key}))
      return hit;
    Operation *op = v.getDefiningOp();
    if (!op)
      return func.emitOpError("has a tile argument without a layout");
    // What is dear is computed once for all lanes that need it.
    if (!rules.isSimd() && !apart && isDear(v))
      if (TileLayout once = withoutCopies(layout); !(once == layout)) {
        llvm::SaveAndRestore whole(apart, true);
        FailureOr<Value> made = request(v, once);
        if (failed(made))
          return failure();
        OpBuilder b(ctx);
        b.setInsertionPointAfterValue(*made);
        Value copied = quant::ConvertLayoutOp::create(
            b, v.getLoc(), withLayout(tileType(v), layout), *made);
        cache[{v, key}] = copied;
        return copied;
      }
    IRMapping map;
    for (Value operand : op->getOperands()) {
      if (!isTile(operand))
        continue;
      FailureOr<Value> in =
          request(operand, operandLayout(op, operand, layout));
      if (failed(in))
        return failure();
      map.map(operand, *in);
    }
    OpBuilder b(ctx);
    b.setInsertionPointAfter(op);
    Operation *clone = b.clone(*op, map);
    Value result = clone->getResult(cast<OpResult>(v).getResultNumber());
    setLayout(result, layout);
    if (auto constant = dyn_cast<arith::ConstantOp>(clone))
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                                .reshape(cast<ShapedType>(result.getType())));
    cache[{v, key}] = result;
    return result;
  }

  /// Whether words with several elements of `v` change lanes for `layout`: what
  /// they are widened to would be several words.
  bool movesWords(Value v, const TileLayout &layout) const {
    auto have = layoutOf(v.getType());
    if (!have || rules.isSimd())
      return false;
    Units units = unitsOf(tileType(v).getElementType(), *have, layout);
    if (!units.log2)
      return false;
    std::optional<Movement> move = planMovement(units.from, units.to);
    return move && move->route != Movement::Registers;
  }

  /// Whether many instructions compute `v`, which has no layout of its own: the
  /// rounds of random bits.
  bool isDear(Value v) {
    if (auto known = dear.find(v); known != dear.end())
      return known->second;
    Operation *op = v.getDefiningOp();
    bool is = op && !hasLayout(v) &&
              (isa<quant::MulhiOp>(op) ||
               llvm::any_of(op->getOperands(), [&](Value operand) {
                 return isTile(operand) && isDear(operand);
               }));
    return dear[v] = is;
  }

  /// A layout in which lanes and warps that hold copies hold other elements,
  /// which registers have in `layout`: the last ones first.
  static TileLayout withoutCopies(TileLayout layout) {
    for (auto *bits : {&layout.lane, &layout.warp})
      for (layout::Coord &bit : *bits)
        if (isZero(bit) && !layout.reg.empty())
          bit = layout.reg.pop_back_val();
    return layout;
  }

  /// The layout in which `operand` must come for `op` to yield `layout`.
  TileLayout operandLayout(Operation *op, Value operand,
                           const TileLayout &layout) {
    auto in = tileType(operand), out = tileType(op->getResult(0));
    if (isa<quant::BroadcastOp, quant::BlockBroadcastOp>(op))
      return rules.broadcastOperand(op, layout);
    if (isa<quant::ReshapeOp>(op))
      return reshaped(layout, out.getShape(), in.getShape());
    if (isa<quant::TransposeOp>(op))
      return transposed(layout);
    return layout;
  }

  /// The layout of one element for each row, where each lane needs it.
  static TileLayout rowsOf(const TileLayout &layout) {
    return sliced(layout, {0, 0}, {false, true});
  }

  LogicalResult assign(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(visit(&op)))
        return failure();
    return success();
  }

  LogicalResult replaceOperand(Operation *op, unsigned i,
                               const TileLayout &layout) {
    FailureOr<Value> v = request(op->getOperand(i), layout);
    if (failed(v))
      return failure();
    op->setOperand(i, *v);
    return success();
  }

  LogicalResult ensureLayout(Operation *op, unsigned i) {
    Value v = op->getOperand(i);
    return hasLayout(v) ? success()
                        : replaceOperand(op, i, anchor(tileType(v)));
  }

  LogicalResult visit(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visitFor(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return visitIf(branch);
    bool tiles = llvm::any_of(op->getOperands(), isTile) ||
                 llvm::any_of(op->getResults(), isTile);
    if (!tiles || isa<scf::YieldOp>(op))
      return success();

    if (auto load = dyn_cast<quant::LoadOp>(op)) {
      if (rules.isAnchor(load))
        setLayout(load.getResult(), anchor(tileType(load.getResult())));
      return success();
    }
    if (auto gather = dyn_cast<quant::GatherOp>(op)) {
      TileLayout layout = anchor(gather.getResult().getType());
      setLayout(gather.getResult(), layout);
      return replaceOperand(op, 1, rowsOf(layout));
    }
    if (isa<quant::StoreOp, quant::ScatterOp, quant::AtomicOpInterface>(op)) {
      if (failed(ensureLayout(op, 0)))
        return failure();
      TileLayout have = *layoutOf(op->getOperand(0).getType());
      if (failed(replaceOperand(op, 0, rules.storage(op, have))))
        return failure();
      if (!isa<quant::ScatterOp>(op))
        return success();
      return replaceOperand(op, 2,
                            rowsOf(*layoutOf(op->getOperand(0).getType())));
    }
    if (isa<quant::HasSpecialOp>(op))
      return ensureLayout(op, 0);
    if (isa<quant::ReduceOp, quant::BlockReduceOp>(op))
      return visitReduce(op);
    if (auto hadamard = dyn_cast<quant::HadamardOp>(op)) {
      if (failed(ensureLayout(op, 0)))
        return failure();
      TileLayout in = *layoutOf(op->getOperand(0).getType());
      if (!placeBits(in, hadamard.getAxis(), hadamard.getSize())) {
        in = rules.transformable(hadamard);
        if (!placeBits(in, hadamard.getAxis(), hadamard.getSize()))
          return op->emitOpError("no layout of ")
                 << op->getOperand(0).getType()
                 << " has each run of its elements in one warp";
        if (failed(replaceOperand(op, 0, in)))
          return failure();
      }
      setLayout(op->getResult(0), in);
      return success();
    }
    // Cheap to recompute: decided by the users.
    if (isa<arith::ConstantOp, quant::IotaOp, quant::BroadcastOp,
            quant::BlockBroadcastOp>(op))
      return success();
    if (auto transpose = dyn_cast<quant::TransposeOp>(op))
      if (std::optional<TileLayout> layout = rules.turned(transpose)) {
        setLayout(transpose.getResult(), *layout);
        return replaceOperand(op, 0, transposed(*layout));
      }
    if (isa<quant::ReshapeOp, quant::TransposeOp>(op)) {
      auto in = layoutOf(op->getOperand(0).getType());
      if (!in)
        return success();
      auto from = tileType(op->getOperand(0)).getShape(),
           to = tileType(op->getResult(0)).getShape();
      TileLayout out = isa<quant::TransposeOp>(op) ? transposed(*in)
                                                   : reshaped(*in, from, to);
      // Words of what is narrow have the columns then.
      if (!rules.isSimd() && isa<quant::TransposeOp>(op) &&
          wordBits(tileType(op->getResult(0)).getElementType()))
        out = contiguousFirst(out);
      setLayout(op->getResult(0), out);
      return success();
    }
    return visitElementwise(op);
  }

  LogicalResult visitReduce(Operation *op) {
    if (failed(ensureLayout(op, 0)))
      return failure();
    TileLayout in = *layoutOf(op->getOperand(0).getType());
    std::optional<ReducePlan> plan = rules.plan(op, in);
    if (!plan) {
      // One made for the longest sum of the kernel, or for this reduction.
      in = anchor(tileType(op->getOperand(0)));
      plan = rules.plan(op, in);
      if (!plan) {
        in = rules.reducible(op);
        plan = rules.plan(op, in);
      }
      if (!plan)
        return op->emitOpError("no layout of ")
               << op->getOperand(0).getType() << " can be reduced this way";
      if (failed(replaceOperand(op, 0, in)))
        return failure();
    }
    if (auto sum = dyn_cast<quant::ReduceOp>(op); sum && gathers(sum, rules)) {
      addOwnRows(sum, rules);
      auto parts = tileType(sum.getSource()).getShape();
      in = rules.gathered(parts[0], parts[1]);
      if (failed(replaceOperand(op, 0, in)))
        return failure();
      plan = rules.plan(op, in);
      if (!plan)
        return op->emitOpError("no layout gathers its parts");
    }
    setLayout(op->getResult(0), plan->result);
    return success();
  }

  LogicalResult visitElementwise(Operation *op) {
    if (op->getNumRegions() || !llvm::all_of(op->getResults(), isTile))
      return op->emitOpError("is no operation of the tile language");
    std::optional<TileLayout> layout;
    for (Value v : op->getOperands()) {
      if (!isTile(v))
        continue;
      auto have = layoutOf(v.getType());
      if (have && !layout)
        layout = have;
    }
    if (!layout)
      return success();
    // Narrow results pack into words along the last dimension.
    if (wordBits(tileType(op->getResult(0)).getElementType()))
      layout = contiguousFirst(*layout);
    for (unsigned i = 0, n = op->getNumOperands(); i < n; ++i)
      if (isTile(op->getOperand(i)) && failed(replaceOperand(op, i, *layout)))
        return failure();
    for (Value v : op->getResults())
      setLayout(v, *layout);
    return success();
  }

  /// Whether a tile has one element for each row or column, at most.
  static bool isNarrow(Value v) {
    return llvm::is_contained(tileType(v).getShape(), 1);
  }

  /// GPU: the layouts in which a round of a loop leaves narrow tiles that begin
  /// as constants: that of a sum of rows, and not the one of a tile of their
  /// shape, from and to which each round would convert. Found by assigning a
  /// round with the constants in their places.
  FailureOr<SmallVector<std::optional<TileLayout>>>
  layoutsAfter(scf::ForOp loop) {
    SmallVector<std::optional<TileLayout>> found(loop.getNumRegionIterArgs());
    auto isOpen = [](Value init) {
      return isTile(init) && !hasLayout(init) && isNarrow(init);
    };
    if (rules.isSimd() || ahead == kMostAhead ||
        llvm::none_of(loop.getInitArgs(), isOpen))
      return found;
    llvm::SaveAndRestore deeper(ahead, ahead + 1);
    llvm::SaveAndRestore keepCache(cache);
    llvm::SaveAndRestore keepDear(dear);
    OpBuilder b(loop);
    auto round = cast<scf::ForOp>(b.clone(*loop));
    for (auto [init, arg] :
         llvm::zip(loop.getInitArgs(), round.getRegionIterArgs())) {
      if (isOpen(init))
        arg.replaceAllUsesWith(init);
      else if (isTile(init))
        setLayout(arg,
                  layoutOf(init.getType()).value_or(anchor(tileType(init))));
    }
    LogicalResult assigned = assign(*round.getBody());
    for (auto [i, init] : llvm::enumerate(loop.getInitArgs()))
      if (isOpen(init))
        found[i] = layoutOf(round.getYieldedValues()[i].getType());
    round.erase();
    if (failed(assigned))
      return failure();
    return found;
  }

  LogicalResult visitFor(scf::ForOp loop) {
    auto after = layoutsAfter(loop);
    if (failed(after))
      return failure();
    for (auto [i, init] : llvm::enumerate(loop.getInitArgs())) {
      if (!isTile(init))
        continue;
      unsigned operand = loop.getNumControlOperands() + i;
      if (failed((*after)[i] ? replaceOperand(loop, operand, *(*after)[i])
                             : ensureLayout(loop, operand)))
        return failure();
      TileLayout layout = *layoutOf(loop->getOperand(operand).getType());
      setLayout(loop.getRegionIterArg(i), layout);
      setLayout(loop.getResult(i), layout);
    }
    if (failed(assign(*loop.getBody())))
      return failure();
    Operation *yield = loop.getBody()->getTerminator();
    for (auto [i, arg] : llvm::enumerate(loop.getRegionIterArgs()))
      if (isTile(arg) &&
          failed(replaceOperand(yield, i, *layoutOf(arg.getType()))))
        return failure();
    return success();
  }

  LogicalResult visitIf(scf::IfOp branch) {
    for (Region *region : branch->getRegions().size()
                              ? SmallVector<Region *>{&branch.getThenRegion(),
                                                      &branch.getElseRegion()}
                              : SmallVector<Region *>{})
      if (!region->empty() && failed(assign(region->front())))
        return failure();
    for (auto [i, result] : llvm::enumerate(branch.getResults())) {
      if (!isTile(result))
        continue;
      Value then = branch.thenYield().getOperand(i);
      auto have = layoutOf(then.getType());
      TileLayout layout = have ? *have : anchor(tileType(result));
      if (failed(replaceOperand(branch.thenYield(), i, layout)) ||
          failed(replaceOperand(branch.elseYield(), i, layout)))
        return failure();
      setLayout(result, layout);
    }
    return success();
  }

  func::FuncOp func;
  LayoutRules rules;
  MLIRContext *ctx;
  DenseMap<std::pair<Value, Attribute>, Value> cache;
  DenseMap<Value, bool> dear;
  /// While what is dear is computed: all of it in one layout.
  bool apart = false;
  /// Loops in loops of which a round is assigned to look ahead: each doubles
  /// the work.
  static constexpr unsigned kMostAhead = 4;
  unsigned ahead = 0;
};

struct AssignLayouts
    : public dither::transforms::impl::DitherAssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("quant.kernel") || func.isExternal())
      return;
    bool done = false;
    func.walk([&](Operation *op) {
      for (Value v : op->getResults())
        done |= hasLayout(v);
    });
    if (done) // Already assigned: nothing to decide twice.
      return;
    if (!isForCpu(func)) {
      transposeEarly(func);
      shareCodes(func);
    }
    if (failed(checkElements(func)) || failed(Assigner(func).run()))
      signalPassFailure();
  }
};

} // namespace
