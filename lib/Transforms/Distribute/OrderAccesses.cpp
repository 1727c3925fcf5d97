//===- OrderAccesses.cpp - Barriers between accesses of one tensor --------===//
//
// In a program the accesses of a tensor happen in the order of the source
// (Semantics.md, Programs and memory). On a GPU each lane keeps that order for
// itself; where an element goes from one lane to another, a barrier keeps it.
//
// Walks a kernel with the accesses made so far, and puts a barrier in front of
// each one that may touch an element which another lane has touched since the
// last barrier, one of them writing; in front of the loop where only accesses
// before the loop ask for it. All threads of a block meet there: conditions of
// branches and bounds of loops are scalars, the same for all.
//
//===----------------------------------------------------------------------===//

#include "Analysis/AccessOrder.h"
#include "Emit/Gpu.h"
#include "Layouts/LayoutRules.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <tuple>
#include <vector>

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERORDERACCESSES
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// Who must meet between two accesses, or has met since one.
enum class Meeting { None, Warp, Block };

/// The threads (of a block) of each element of a tile that an access touches.
class Owners {
public:
  Owners(const MemoryAccess &access, int64_t warps) {
    TileLayout layout = *layoutOf(access.tile);
    int64_t lanes = 0, copies = 0;
    for (auto [i, c] : llvm::enumerate(layout.lane))
      lanes |= int64_t(isZero(c)) << i;
    for (auto [i, c] : llvm::enumerate(layout.warp))
      copies |= int64_t(isZero(c)) << i;
    copies |= (warps - 1) & ~(layout.numWarps() - 1);
    ArrayRef<int64_t> shape = access.tile.getShape();
    bool bytes = access.tile.getElementTypeBitWidth() == 4;
    for (int64_t warp = 0; warp < warps; ++warp)
      for (int64_t lane = 0; lane < layout.numLanes(); ++lane) {
        // Of copies the first one stores.
        if (access.writes && (lane & lanes || warp & copies))
          continue;
        for (int64_t reg = 0; reg < layout.numRegs(); ++reg) {
          Coord c = layout.coord(reg, lane, warp & (layout.numWarps() - 1));
          if (llvm::any_of(llvm::zip(c, shape), [](auto at) {
                return std::get<0>(at) >= std::get<1>(at);
              }))
            continue;
          if (bytes && !c.empty())
            c.back() /= 2;
          threads[key(c)].insert(warp * kWarpLanes + lane);
        }
      }
  }
  using Threads = llvm::SmallSetVector<int64_t, 4>;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Threads> threads;

private:
  static std::pair<int64_t, int64_t> key(const Coord &c) {
    return {c.size() > 1 ? c.front() : 0, c.empty() ? 0 : c.back()};
  }
};

/// Who must meet between accesses of tiles that lie `delta` apart.
Meeting meetingOf(const MemoryAccess &before, const MemoryAccess &after,
                  ArrayRef<int64_t> delta, int64_t warps) {
  std::pair<int64_t, int64_t> shift{delta.size() > 1 ? delta.front() : 0,
                                    delta.empty() ? 0 : delta.back()};
  if (before.tile.getElementTypeBitWidth() == 4) {
    // Bytes, where tiles begin with one.
    if (!before.startsByte() || !after.startsByte())
      return Meeting::Block;
    shift.second /= 2;
  }
  Owners from(before, warps), to(after, warps);
  Meeting meeting = Meeting::None;
  for (auto &[at, threads] : to.threads) {
    auto it =
        from.threads.find({at.first + shift.first, at.second + shift.second});
    if (it == from.threads.end())
      continue;
    for (int64_t a : it->second)
      for (int64_t b : threads) {
        if (a / kWarpLanes != b / kWarpLanes)
          return Meeting::Block;
        if (a != b)
          meeting = Meeting::Warp;
      }
  }
  return meeting;
}

/// An access made before.
struct Made {
  Operation *op;
  /// Who has met since.
  Meeting met = Meeting::None;
  /// What has become of the loops around it.
  LoopRelations loops;
  /// Whether it is of an asynchronous copy that nobody has waited for: it is
  /// made then, and no meeting before counts.
  bool pending = false;
};

/// Whether `op` is of an asynchronous copy: the store, or its load.
bool isOfCopy(Operation *op) {
  if (auto load = dyn_cast<quant::LoadOp>(op))
    return bool(copyOf(load));
  auto store = dyn_cast<quant::StoreOp>(op);
  return store && store.getAsync();
}

/// The accesses made so far.
class State {
public:
  void add(const Made &made) {
    for (Made &old : all)
      if (old.op == made.op && old.loops == made.loops) {
        old.met = std::min(old.met, made.met);
        old.pending |= made.pending;
        return;
      }
    all.push_back(made);
  }
  void add(const State &other) {
    for (const Made &made : other.all)
      add(made);
  }
  void meet(Meeting who) {
    for (Made &made : all)
      if (!made.pending)
        made.met = std::max(made.met, who);
  }
  /// Each thread has waited for what it copies.
  void awaitCopies() {
    for (Made &made : all)
      made.pending = false;
  }
  /// `change` of the loops around the accesses inside `loop`.
  void change(Operation *loop, void (LoopRelations::*change)(Operation *)) {
    State changed;
    for (Made &made : all) {
      if (loop->isProperAncestor(made.op))
        (made.loops.*change)(loop);
      changed.add(made);
    }
    all = std::move(changed.all);
  }
  ArrayRef<Made> made() const { return all; }

private:
  SmallVector<Made> all;
};

class Orderer {
public:
  explicit Orderer(func::FuncOp kernel)
      : kernel(kernel), warps(LayoutRules(kernel).warps()) {}

  LogicalResult run() {
    State state;
    if (failed(walk(kernel.getBody().front(), state)))
      return failure();
    // No thread knows what the others store between two barriers: what it has
    // read before one may not be taken for what it would read after.
    for (Value memref : exchanged)
      if (auto arg = dyn_cast<BlockArgument>(memref))
        kernel.setArgAttr(arg.getArgNumber(), "quant.exchanged",
                          UnitAttr::get(kernel.getContext()));
    return success();
  }

private:
  LogicalResult walk(Block &block, State &state);
  LogicalResult walkLoop(scf::ForOp loop, State &state);
  LogicalResult walkBranch(scf::IfOp branch, State &state);
  void visit(const MemoryAccess &access, State &state);
  Meeting meetingBetween(const MemoryAccess &before, const MemoryAccess &access,
                         ArrayRef<int64_t> delta);
  static void meet(Operation *op, Meeting who, State &state);
  LogicalResult checkUniform(Operation *op, Value v);

  /// While a loop is looked at: who must meet before it, for accesses before
  /// it. Nothing is put into the kernel meanwhile.
  struct Look {
    Operation *loop;
    Meeting needed = Meeting::None;
  };

  func::FuncOp kernel;
  int64_t warps;
  llvm::SetVector<Value> exchanged;
  Look *look = nullptr;
  /// What meetingOf gave.
  std::map<std::tuple<Operation *, Operation *, std::vector<int64_t>>, Meeting>
      known;
};

Meeting Orderer::meetingBetween(const MemoryAccess &before,
                                const MemoryAccess &access,
                                ArrayRef<int64_t> delta) {
  auto [it, isNew] = known.try_emplace(
      {before.op, access.op, std::vector<int64_t>(delta)}, Meeting::None);
  if (isNew)
    it->second = meetingOf(before, access, delta, warps);
  return it->second;
}

void Orderer::meet(Operation *op, Meeting who, State &state) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (who == Meeting::Block)
    gpu::barrier(b, loc);
  else
    gpu::syncWarp(b, loc);
  state.meet(who);
}

void Orderer::visit(const MemoryAccess &access, State &state) {
  Meeting needed = Meeting::None;
  for (const Made &made : state.made()) {
    MemoryAccess before = *MemoryAccess::of(made.op);
    if (!conflicts(before, access))
      continue;
    std::optional<SmallVector<int64_t>> delta;
    if (areDisjoint(before, access, made.loops, &delta))
      continue;
    Meeting meeting =
        delta ? meetingBetween(before, access, *delta) : Meeting::Block;
    if (meeting == Meeting::None)
      continue;
    exchanged.insert(access.memref);
    if (warps == 1)
      meeting = Meeting::Warp;
    if (meeting <= made.met)
      continue;
    needed = std::max(needed, meeting);
    if (look && !look->loop->isProperAncestor(made.op))
      look->needed = std::max(look->needed, meeting);
  }
  if (needed != Meeting::None) {
    if (look)
      state.meet(needed);
    else
      meet(access.op, needed, state);
  }
  state.add(Made{access.op, Meeting::None, {}, isOfCopy(access.op)});
}

/// Threads meet at barriers inside `op`: `v` decides whether they get there. A
/// number that a loop or a branch hands on is none of the tiles beside it.
LogicalResult Orderer::checkUniform(Operation *op, Value v) {
  Operation *def = v.getDefiningOp();
  if (def && !def->getNumRegions() &&
      llvm::any_of(def->getOperands(), [](Value operand) {
        return isa<RankedTensorType>(operand.getType());
      }))
    return op->emitOpError("depends on elements of a tile, expected a "
                           "condition that is the same for all lanes");
  return success();
}

LogicalResult Orderer::walkLoop(scf::ForOp loop, State &state) {
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    if (failed(checkUniform(loop, bound)))
      return failure();
  if (!look) {
    Look ahead{loop};
    look = &ahead;
    State first = state;
    LogicalResult walked = walk(*loop.getBody(), first);
    look = nullptr;
    if (failed(walked))
      return failure();
    if (ahead.needed != Meeting::None)
      meet(loop, ahead.needed, state);
  }
  State first = state;
  if (failed(walk(*loop.getBody(), first)))
    return failure();
  // What the next iteration finds: all that the first one leaves.
  first.change(loop, &LoopRelations::advance);
  State next = state;
  next.add(first);
  if (failed(walk(*loop.getBody(), next)))
    return failure();
  next.change(loop, &LoopRelations::leave);
  state.add(next);
  return success();
}

LogicalResult Orderer::walkBranch(scf::IfOp branch, State &state) {
  if (failed(checkUniform(branch, branch.getCondition())))
    return failure();
  State other = state;
  if (failed(walk(*branch.thenBlock(), state)) ||
      (branch.elseBlock() && failed(walk(*branch.elseBlock(), other))))
    return failure();
  state.add(other);
  return success();
}

LogicalResult Orderer::walk(Block &block, State &state) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(walkLoop(loop, state)))
        return failure();
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (failed(walkBranch(branch, state)))
        return failure();
    } else if (gpu::isBarrier(&op)) {
      state.meet(Meeting::Block);
    } else if (isa<quant::AwaitCopiesOp>(op)) {
      state.awaitCopies();
    } else if (gpu::isSyncWarp(&op)) {
      state.meet(Meeting::Warp);
    } else if (auto convert = dyn_cast<quant::ConvertLayoutOp>(op)) {
      // Through shared memory: it has barriers of its own.
      if (convert.getShared())
        state.meet(Meeting::Block);
    } else if (std::optional<MemoryAccess> access = MemoryAccess::of(&op)) {
      visit(*access, state);
    }
  }
  return success();
}

struct DitherOrderAccesses
    : impl::DitherOrderAccessesBase<DitherOrderAccesses> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr("quant.kernel") || kernel.isExternal() ||
        LayoutRules(kernel).isSimd())
      return;
    if (failed(checkLayouts(kernel)) || failed(Orderer(kernel).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace dither::transforms
