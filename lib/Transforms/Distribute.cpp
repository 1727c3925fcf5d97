//===- Distribute.cpp - From tiles to the code of one lane ----------------===//
//
// Rebuilds a kernel whose tile values carry layouts as the program of one lane:
// tiles become vectors of registers (architecture.md, Distributed types),
// memrefs become pointers with the dynamic sizes and strides as further
// parameters, program ids become block indices (GPU) or a loop (CPU).
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Target/TargetInfo.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

void Counter::notifyOperationInserted(Operation *op,
                                      OpBuilder::InsertPoint previous) {
  int64_t weight = weightOf(op);
  total += weight;
  places[op->getLoc()] += weight;
}

int64_t Counter::weightOf(Operation *op) {
  if (isa<math::AbsFOp, math::SqrtOp, math::FmaOp>(op))
    return 1;
  if (auto function = dyn_cast<quant::ElementaryOpInterface>(op))
    return numerics::stepsOf(function.getFunction());
  return isa<math::RsqrtOp>(op) ? 24 : 1;
}

std::pair<Location, int64_t> Counter::largest() const {
  return *std::max_element(
      places.begin(), places.end(),
      [](const auto &a, const auto &b) { return a.second < b.second; });
}

const target::TargetInfo *Distributor::targetInfo() {
  auto name = source->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(
      "quant.target");
  return name ? target::lookupTarget(name.getValue()) : nullptr;
}

LogicalResult Distributor::run() {
  if (failed(checkSignature()))
    return failure();
  b.setInsertionPoint(source);
  MLIRContext *ctx = b.getContext();
  ptrType = LLVM::LLVMPointerType::get(ctx, simd ? 0 : 1);
  SmallVector<Type> params = flatten();
  numSlots = params.size();
  FunctionType type =
      simd ? b.getFunctionType({LLVM::LLVMPointerType::get(ctx), i64(), i64(),
                                i64(), i64(), i64()},
                               {})
           : b.getFunctionType(params, {});
  func::FuncOp kernel =
      func::FuncOp::create(b, source.getLoc(), source.getName(), type);
  for (NamedAttribute attr : source->getDiscardableAttrs())
    kernel->setAttr(attr.getName(), attr.getValue());
  kernel->setAttr("quant.kernel", b.getUnitAttr());
  Block *entry = kernel.addEntryBlock();
  e.entry = entry;
  b.setInsertionPointToStart(entry);
  SmallVector<Value> args = simd ? readSlots(entry, params)
                                 : SmallVector<Value>(entry->getArguments());
  bindArguments(args);
  if (!simd) {
    if (const target::TargetInfo *info = targetInfo())
      e.maxVectorBytes = info->maxVectorBytes;
    annotate(kernel);
    e.tid = e.make<NVVM::ThreadIdXOp>(b.getI32Type());
    e.sharedBase = sharedScratch();
    if (failed(emitBlock(source.getBody().front())))
      return failure();
  } else if (failed(emitPrograms(entry))) {
    return failure();
  }
  // Other threads see stores past the caches after a fence.
  if (streams)
    LLVM::CallIntrinsicOp::create(b, source.getLoc(),
                                  b.getStringAttr("llvm.x86.sse.sfence"),
                                  ValueRange{});
  func::ReturnOp::create(b, source.getLoc());
  finishShared(kernel);
  kernel->setAttr("quant.num_threads",
                  b.getI64IntegerAttr(simd ? 1 : rules.warps() * kWarpLanes));
  kernel->setAttr("quant.params", paramKinds(params));
  source.erase();
  return success();
}

void Distributor::setValues(Value v, ArrayRef<Value> values) {
  if (tile(v))
    set(v, Registers(values));
  else
    map.map(v, values.front());
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
  if (auto id = dyn_cast<quant::ProgramIdOp>(op)) {
    map.map(id.getResult(), emitProgramId(int(id.getDim()), false));
    return success();
  }
  if (auto n = dyn_cast<quant::NumProgramsOp>(op)) {
    map.map(n.getResult(), emitProgramId(int(n.getDim()), true));
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    auto it = memrefs.find(dim.getSource());
    std::optional<int64_t> i = dim.getConstantIndex();
    if (it == memrefs.end() || !i)
      return op->emitOpError("expected a kernel argument and a constant");
    map.map(dim.getResult(), index(it->second.sizes[*i]));
    return success();
  }
  if (auto scratch = dyn_cast<memref::AllocaOp>(op)) {
    emitScratch(scratch);
    return success();
  }
  if (isa<quant::LoadOp, quant::StoreOp, quant::AtomicMaxOp>(op))
    return emitMemory(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  bool tiles =
      llvm::any_of(op->getOperands(), [](Value v) { return bool(tile(v)); }) ||
      llvm::any_of(op->getResults(), [](Value v) { return bool(tile(v)); });
  if (tiles)
    return emitTileOp(op);
  if (op->getNumRegions() || !llvm::all_of(op->getOperands(), [&](Value v) {
        return map.contains(v);
      }))
    return op->emitOpError("has no distributed form");
  b.clone(*op, map);
  return success();
}

LogicalResult Distributor::emitTileOp(Operation *op) {
  Value result = op->getResult(0);
  if (auto c = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(c.getValue());
    if (!dense || !dense.isSplat())
      return op->emitOpError("expected a splat");
    auto [type, n] = registerType(tile(result));
    TypedAttr value = dense.getSplatValue<TypedAttr>();
    if (int64_t bits = wordBits(value.getType()))
      value = wordOf(value, wordGroup(layout(result), bits));
    if (auto shaped = dyn_cast<ShapedType>(type))
      value = DenseElementsAttr::get(shaped, Attribute(value));
    set(result, Registers(n, e.constant(value)));
    return success();
  }
  if (auto encode = dyn_cast<quant::EncodeOp>(op)) {
    if (encode->hasAttr("quant.finite") && encodeProduct(encode))
      return success();
    encodeWords(op->getOperand(0), result, encode.getModeAttr());
    return success();
  }
  if (isa<quant::DecodeOp>(op)) {
    decodeWords(op->getOperand(0), result, false);
    return success();
  }
  if (isa<quant::E8M0InverseOp>(op)) {
    decodeWords(op->getOperand(0), result, true);
    return success();
  }
  if (isa<arith::ExtFOp>(op) && converts16(result, op->getOperand(0))) {
    decodeWords(op->getOperand(0), result, false);
    return success();
  }
  if (auto narrow = dyn_cast<arith::TruncFOp>(op);
      narrow && converts16(op->getOperand(0), result)) {
    constexpr auto nearest = arith::RoundingMode::to_nearest_even;
    if (narrow.getRoundingmode().value_or(nearest) != nearest)
      return op->emitOpError("rounds in a way that has no distributed form, "
                             "expected to_nearest_even");
    encodeWords(op->getOperand(0), result);
    return success();
  }
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && wordBits(tile(result).getElementType())) {
    selectWords(select);
    return success();
  }
  if (auto iota = dyn_cast<quant::IotaOp>(op)) {
    LaneLayout l = layout(result);
    Registers ramp;
    for (int64_t r = 0; r < l.numRegs(); ++r)
      ramp.push_back(e.coordinate(l, iota.getDim(), r));
    set(result, ramp);
    return success();
  }
  if (auto special = dyn_cast<quant::HasSpecialOp>(op)) {
    map.map(special.getResult(), e.hasSpecial(regs(special.getSource())));
    return success();
  }
  if (isa<quant::ReduceOp, quant::BlockReduceOp>(op))
    return emitReduce(op);
  if (isa<quant::BroadcastOp, quant::BlockBroadcastOp>(op))
    return emitBroadcast(op);
  if (isa<quant::ConvertLayoutOp, quant::ReshapeOp, quant::TransposeOp>(op))
    return emitMovement(op);
  if (!op->getNumRegions() &&
      (op->hasTrait<OpTrait::Elementwise>() ||
       isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))) {
    // What else than conversions knows how to read or make words.
    SmallVector<Value> values(op->getOperands());
    llvm::append_range(values, op->getResults());
    for (Value v : values)
      if (tile(v) && wordBits(tile(v).getElementType()))
        return op->emitOpError("arithmetic on ")
               << tile(v).getElementType()
               << " tiles, expected f32, i32, i64 or i1";
    emitElementwise(op);
    return success();
  }
  return op->emitOpError("has no distributed form");
}

namespace {
struct Distribute : public impl::DitherDistributeBase<Distribute> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    getOperation().walk([&](func::FuncOp f) {
      if (f->hasAttr("quant.kernel") && !f.isExternal() &&
          !f->hasAttr("quant.num_threads"))
        kernels.push_back(f);
    });
    for (func::FuncOp f : kernels)
      if (failed(Distributor(f).run()))
        return signalPassFailure();
  }
};

} // namespace

} // namespace dither::transforms
