//===- Distribute.cpp - From tiles to the code of one lane ----------------===//
//
// Rebuilds a kernel whose tile values carry layouts as the program of one lane:
// tiles become vectors of registers (architecture.md, Distributed types),
// memrefs become pointers with the dynamic sizes and strides as further
// parameters, program ids become block indices (GPU) or a loop (CPU).
//
//===----------------------------------------------------------------------===//

#include "Distribute/Distribute.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERDISTRIBUTE
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

/// Operations of a kernel, at most: LLVM takes more than ten seconds for as
/// many, and for twice as many more than twice that.
static constexpr int64_t kMostOperations = 200000;

/// About as many operations as `op` becomes.
static int64_t weightOf(Operation *op) {
  if (isa<math::AbsFOp, math::SqrtOp, math::FmaOp>(op))
    return 1;
  if (auto function = dyn_cast<quant::ElementaryOpInterface>(op))
    return numerics::stepsOf(function.getFunction());
  return isa<math::RsqrtOp>(op) ? 24 : 1;
}

void Counter::notifyOperationInserted(Operation *op,
                                      OpBuilder::InsertPoint previous) {
  int64_t weight = weightOf(op);
  total += weight;
  places[op->getLoc()] += weight;
}

std::pair<Location, int64_t> Counter::largest() const {
  return *std::max_element(
      places.begin(), places.end(),
      [](const auto &a, const auto &b) { return a.second < b.second; });
}

Distributor::Distributor(func::FuncOp source)
    : source(source), rules(source), simd(rules.isSimd()),
      b(source.getContext(), &counter),
      e(b, source.getLoc(), simd, rules.warps()) {
  if (simd)
    addCpuPeepholes(table);
  for (auto add : {addWordReductions, addRoundTrips, addProgramOps,
                   addControlOps, addPartOps, addMemoryOps, addWordOps,
                   addReduceOps, addClusterOps, addTileOps, addShapeOps})
    add(table);
}

Emitted OpTable::emit(Distributor &d, Operation *op) const {
  auto it = forms.find(op->getName().getStringRef());
  if (it == forms.end())
    return std::nullopt;
  for (const Form &form : it->second)
    if (Emitted done = form(d, op))
      return done;
  return std::nullopt;
}

std::pair<Type, int64_t> Distributor::registerType(RankedTensorType type) {
  VectorType all = distributedType(type, simd);
  return {e.regType(all.getElementType()), all.getDimSize(0)};
}

LogicalResult Distributor::emitBlock(Block &block) {
  for (Operation &op : block) {
    e.loc = op.getLoc();
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (failed(emitOp(&op)))
      return failure();
    if (counter.total > kMostOperations) {
      auto [place, count] = counter.largest();
      return emitError(place)
             << "compiles to more than " << kMostOperations << " operations, "
             << count
             << " of them for this line: use smaller tiles, or range in "
                "place of dl.static_range";
    }
  }
  return success();
}

LogicalResult Distributor::emitOp(Operation *op) {
  if (Emitted done = table.emit(*this, op))
    return *done;
  auto isTile = [](Value v) { return bool(tile(v)); };
  if (llvm::any_of(op->getOperands(), isTile) ||
      llvm::any_of(op->getResults(), isTile))
    return emitElementwise(*this, op);
  if (op->getNumRegions() || !llvm::all_of(op->getOperands(), [&](Value v) {
        return map.contains(v);
      }))
    return op->emitOpError("has no distributed form");
  b.clone(*op, map);
  return success();
}

namespace {
struct Distribute : impl::DitherDistributeBase<Distribute> {
  /// Functions whose code is in another, and their shared memory.
  void dropParts(ArrayAttr parts) {
    SymbolTable symbols(getOperation());
    for (auto name : parts.getAsRange<FlatSymbolRefAttr>()) {
      if (Operation *part = symbols.lookup(name.getValue()))
        symbols.erase(part);
      if (Operation *shared = symbols.lookup(sharedNameOf(name.getValue())))
        symbols.erase(shared);
    }
  }

  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    getOperation().walk([&](func::FuncOp f) {
      if ((f->hasAttr("quant.kernel") || f->hasAttr("quant.parts")) &&
          !f.isExternal() && !f->hasAttr("quant.num_threads"))
        kernels.push_back(f);
    });
    // Kernels take the code of their parts.
    llvm::stable_sort(kernels, [](func::FuncOp a, func::FuncOp b) {
      return !a->hasAttr("quant.parts") && b->hasAttr("quant.parts");
    });
    for (func::FuncOp f : kernels) {
      auto parts = f->getAttrOfType<ArrayAttr>("quant.parts");
      if (failed(checkLayouts(f)) || failed(Distributor(f).run()))
        return signalPassFailure();
      if (parts)
        dropParts(parts);
    }
  }
};
} // namespace

} // namespace dither::transforms
