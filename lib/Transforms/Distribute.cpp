//===- Distribute.cpp - From tiles to the code of one lane ----------------===//
//
// Rebuilds a kernel whose tile values carry layouts as the program of one lane:
// tiles become vectors of registers (architecture.md, Distributed types),
// memrefs become pointers with the dynamic sizes and strides as further
// parameters, program ids become block indices (GPU) or a loop (CPU).
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "LayoutRules.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include <numeric>

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERDISTRIBUTE
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;
using namespace dither;
using namespace dither::transforms;

namespace {

constexpr int64_t kMaxDivisor = 1 << 12;

/// A number that is known to divide an index value (0 divides only zero).
int64_t divisorOf(Value v, int depth = 0) {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant))) {
    int64_t c = std::abs(constant.getSExtValue());
    return c == 0 ? 0 : c;
  }
  if (depth > 8)
    return 1;
  if (auto arg = dyn_cast<BlockArgument>(v)) {
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    if (loop && arg == loop.getInductionVar())
      return std::gcd(divisorOf(loop.getLowerBound(), depth + 1),
                      divisorOf(loop.getStep(), depth + 1));
    return 1;
  }
  Operation *op = v.getDefiningOp();
  auto of = [&](unsigned i) { return divisorOf(op->getOperand(i), depth + 1); };
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return std::gcd(of(0), of(1));
  if (isa<arith::MulIOp>(op)) {
    int64_t a = of(0), c = of(1);
    return a && c && a > kMaxDivisor / c ? std::max(a, c) : a * c;
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return of(0);
  return 1;
}

class Distributor {
public:
  Distributor(func::FuncOp source)
      : source(source), rules(source), simd(rules.isSimd()),
        b(source.getContext()), e(b, source.getLoc(), simd, rules.warps()) {}

  LogicalResult run() {
    b.setInsertionPoint(source);
    MLIRContext *ctx = b.getContext();
    ptrType = LLVM::LLVMPointerType::get(ctx, simd ? 0 : 1);
    SmallVector<Type> params = flatten();
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
    b.setInsertionPointToStart(entry);
    SmallVector<Value> args = simd ? readSlots(entry, params)
                                   : SmallVector<Value>(entry->getArguments());
    bindArguments(args);
    if (!simd) {
      annotate(kernel);
      e.tid = e.make<NVVM::ThreadIdXOp>(b.getI32Type());
      e.sharedBase = sharedScratch();
      if (failed(emitBlock(source.getBody().front())))
        return failure();
    } else if (failed(emitPrograms(entry))) {
      return failure();
    }
    func::ReturnOp::create(b, source.getLoc());
    finishShared(kernel);
    kernel->setAttr("quant.num_threads",
                    b.getI64IntegerAttr(simd ? 1 : rules.warps() * kWarpLanes));
    kernel->setAttr("quant.params", paramKinds(params));
    source.erase();
    return success();
  }

private:
  Type i64() { return b.getI64Type(); }

  //===--- signature ------------------------------------------------------===//
  SmallVector<Type> flatten() {
    SmallVector<Type> params;
    for (Type type : source.getArgumentTypes()) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref) {
        params.push_back(type.isIndex() ? i64() : type);
        continue;
      }
      params.push_back(ptrType);
      auto [strides, offset] = memref.getStridesAndOffset();
      for (int64_t size : memref.getShape())
        if (ShapedType::isDynamic(size))
          params.push_back(i64());
      for (int64_t stride : strides)
        if (ShapedType::isDynamic(stride))
          params.push_back(i64());
    }
    return params;
  }

  ArrayAttr paramKinds(ArrayRef<Type> params) {
    SmallVector<Attribute> kinds;
    for (Type type : params)
      kinds.push_back(b.getStringAttr(isa<LLVM::LLVMPointerType>(type) ? "ptr"
                                      : type.isInteger(64)             ? "i64"
                                      : type.isInteger(32) ? "i32"
                                                           : "f32"));
    return b.getArrayAttr(kinds);
  }

  SmallVector<Value> readSlots(Block *entry, ArrayRef<Type> params) {
    SmallVector<Value> args;
    for (auto [i, type] : llvm::enumerate(params)) {
      Value at = e.make<LLVM::GEPOp>(entry->getArgument(0).getType(),
                                     b.getI64Type(), entry->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
      args.push_back(e.make<LLVM::LoadOp>(type, at, 8));
    }
    return args;
  }

  void bindArguments(ArrayRef<Value> args) {
    size_t next = 0;
    for (BlockArgument arg : source.getArguments()) {
      auto memref = dyn_cast<MemRefType>(arg.getType());
      if (!memref) {
        Value v = args[next++];
        if (arg.getType().isIndex())
          v = e.make<arith::IndexCastOp>(b.getIndexType(), v);
        map.map(arg, v);
        continue;
      }
      MemRefDesc desc;
      desc.elem = memref.getElementType();
      desc.ptr = args[next++];
      int64_t bytes =
          std::max<int64_t>(1, desc.elem.getIntOrFloatBitWidth() / 8);
      auto known = [&](StringRef name) {
        auto attr =
            source.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), name);
        return attr ? attr.getInt() : bytes;
      };
      desc.align = known("quant.align");
      desc.strideAlign = known("quant.stride_align");
      auto [strides, offset] = memref.getStridesAndOffset();
      desc.staticSizes.assign(memref.getShape().begin(),
                              memref.getShape().end());
      desc.staticStrides.assign(strides.begin(), strides.end());
      for (int64_t size : desc.staticSizes)
        desc.sizes.push_back(ShapedType::isDynamic(size) ? args[next++]
                                                         : e.i64(size));
      for (int64_t stride : desc.staticStrides)
        desc.strides.push_back(ShapedType::isDynamic(stride) ? args[next++]
                                                             : e.i64(stride));
      memrefs.try_emplace(arg, std::move(desc));
    }
  }

  /// What specialization knows about GPU pointer parameters.
  void annotate(func::FuncOp kernel) {
    unsigned param = 0;
    for (BlockArgument arg : source.getArguments()) {
      auto memref = dyn_cast<MemRefType>(arg.getType());
      if (!memref) {
        ++param;
        continue;
      }
      const MemRefDesc &desc = memrefs.find(arg)->second;
      kernel.setArgAttr(param, "llvm.align", b.getI64IntegerAttr(desc.align));
      kernel.setArgAttr(param, "llvm.noalias", b.getUnitAttr());
      ++param;
      for (int64_t s : desc.staticSizes)
        param += ShapedType::isDynamic(s);
      for (int64_t s : desc.staticStrides)
        param += ShapedType::isDynamic(s);
    }
  }

  //===--- shared memory --------------------------------------------------===//
  Value sharedScratch() {
    MLIRContext *ctx = b.getContext();
    sharedName = (source.getName() + "_shared").str();
    return e.make<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(ctx, 3),
                                     sharedName);
  }

  void finishShared(func::FuncOp kernel) {
    kernel->setAttr("quant.shared_bytes", b.getI64IntegerAttr(e.sharedBytes));
    if (simd)
      return;
    if (!e.sharedBytes) {
      e.sharedBase.getDefiningOp()->erase();
      return;
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(source);
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), e.sharedBytes);
    LLVM::GlobalOp::create(b, source.getLoc(), type, /*isConstant=*/false,
                           LLVM::Linkage::Internal, sharedName, Attribute(),
                           /*alignment=*/16, /*addrSpace=*/3);
  }

  //===--- programs -------------------------------------------------------===//
  /// CPU: a loop over the linear program ids [begin, end), x fastest.
  LogicalResult emitPrograms(Block *entry) {
    for (int i = 0; i < 3; ++i)
      grid[i] = entry->getArgument(1 + i);
    Value one = e.i64(1);
    auto loop =
        e.make<scf::ForOp>(entry->getArgument(4), entry->getArgument(5), one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value linear = loop.getInductionVar();
    programId[0] = e.make<arith::RemUIOp>(linear, grid[0]);
    Value rest = e.make<arith::DivUIOp>(linear, grid[0]);
    programId[1] = e.make<arith::RemUIOp>(rest, grid[1]);
    programId[2] = e.make<arith::DivUIOp>(rest, grid[1]);
    return emitBlock(source.getBody().front());
  }

  Value index(Value i) {
    return e.make<arith::IndexCastOp>(b.getIndexType(), i);
  }

  Value emitProgramId(int dim, bool count) {
    if (simd)
      return index(count ? grid[dim] : programId[dim]);
    Type t = b.getI32Type();
    Value v;
    if (count)
      v = dim == 0   ? Value(e.make<NVVM::GridDimXOp>(t))
          : dim == 1 ? Value(e.make<NVVM::GridDimYOp>(t))
                     : Value(e.make<NVVM::GridDimZOp>(t));
    else
      v = dim == 0   ? Value(e.make<NVVM::BlockIdXOp>(t))
          : dim == 1 ? Value(e.make<NVVM::BlockIdYOp>(t))
                     : Value(e.make<NVVM::BlockIdZOp>(t));
    return e.make<arith::IndexCastUIOp>(b.getIndexType(), v);
  }

  //===--- ops ------------------------------------------------------------===//
  LogicalResult emitBlock(Block &block) {
    for (Operation &op : block) {
      e.loc = op.getLoc();
      if (op.hasTrait<OpTrait::IsTerminator>())
        continue;
      if (failed(emitOp(&op)))
        return failure();
    }
    return success();
  }

  static RankedTensorType tile(Value v) {
    return dyn_cast<RankedTensorType>(v.getType());
  }
  Type convert(Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      return distributedType(tensor, simd);
    return type;
  }
  LaneLayout layout(Value v) { return *layoutOf(v.getType()); }
  Value get(Value v) { return map.lookup(v); }

  FailureOr<TileAccess> access(Operation *op, Value memref, ValueRange indices,
                               const LaneLayout &layout,
                               ArrayRef<int64_t> shape, bool inBounds) {
    auto it = memrefs.find(memref);
    if (it == memrefs.end())
      return op->emitOpError("memref is not a kernel argument");
    TileAccess a{it->second, layout, shape, {}, {}, inBounds};
    for (Value i : indices) {
      a.divisor.push_back(divisorOf(i));
      a.index.push_back(e.make<arith::IndexCastOp>(b.getI64Type(), get(i)));
    }
    return a;
  }

  LogicalResult emitOp(Operation *op) {
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
    if (isa<quant::LoadOp, quant::StoreOp, quant::AtomicMaxOp>(op))
      return emitMemory(op);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return emitFor(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return emitIf(branch);
    bool tiles =
        llvm::any_of(op->getOperands(),
                     [](Value v) { return bool(tile(v)); }) ||
        llvm::any_of(op->getResults(), [](Value v) { return bool(tile(v)); });
    if (!tiles) {
      b.clone(*op, map);
      return success();
    }
    return emitTileOp(op);
  }

  LogicalResult emitMemory(Operation *op) {
    if (auto load = dyn_cast<quant::LoadOp>(op)) {
      LaneLayout l = layout(load.getResult());
      auto type = tile(load.getResult());
      auto a = access(op, load.getMemref(), load.getIndices(), l,
                      type.getShape(), load.getInBounds());
      if (failed(a))
        return failure();
      FailureOr<Value> v = e.load(*a);
      if (failed(v))
        return op->emitOpError("cannot be loaded in layout ")
               << load.getResult().getType();
      map.map(load.getResult(), *v);
      return success();
    }
    Value tileValue = op->getOperand(0);
    LaneLayout l = layout(tileValue);
    auto type = tile(tileValue);
    Value v = get(tileValue);
    if (auto atomic = dyn_cast<quant::AtomicMaxOp>(op)) {
      auto a = access(op, atomic.getMemref(), atomic.getIndices(), l,
                      type.getShape(), false);
      if (failed(a))
        return failure();
      e.atomicMax(*a, v);
      return success();
    }
    auto store = cast<quant::StoreOp>(op);
    auto a = access(op, store.getMemref(), store.getIndices(), l,
                    type.getShape(), store.getInBounds());
    if (failed(a))
      return failure();
    if (!store.getValid().empty()) {
      SmallVector<Value> bound;
      for (auto [limit, at] : llvm::zip(store.getValid(), a->index))
        bound.push_back(e.make<arith::SubIOp>(
            e.make<arith::IndexCastOp>(b.getI64Type(), get(limit)), at));
      v = e.zeroPast(v, type.getElementType(), l, bound);
    }
    bool swizzled = store.getScaleLayout() == quant::ScaleLayout::swizzle_128x4;
    if (failed(swizzled ? e.storeSwizzled(*a, v) : e.store(*a, v)))
      return op->emitOpError("cannot be stored in layout ") << type;
    return success();
  }

  LogicalResult emitFor(scf::ForOp loop) {
    SmallVector<Value> inits;
    for (Value v : loop.getInitArgs())
      inits.push_back(get(v));
    auto out =
        e.make<scf::ForOp>(get(loop.getLowerBound()), get(loop.getUpperBound()),
                           get(loop.getStep()), inits);
    map.map(loop.getInductionVar(), out.getInductionVar());
    for (auto [from, to] :
         llvm::zip(loop.getRegionIterArgs(), out.getRegionIterArgs()))
      map.map(from, to);
    OpBuilder::InsertionGuard guard(b);
    Block *body = out.getBody();
    if (!body->empty() && body->back().hasTrait<OpTrait::IsTerminator>())
      body->back().erase();
    b.setInsertionPointToStart(body);
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    emitYield(loop.getBody()->getTerminator());
    for (auto [from, to] : llvm::zip(loop.getResults(), out.getResults()))
      map.map(from, to);
    return success();
  }

  void emitYield(Operation *yield) {
    SmallVector<Value> values;
    for (Value v : yield->getOperands())
      values.push_back(get(v));
    e.make<scf::YieldOp>(values);
  }

  LogicalResult emitIf(scf::IfOp branch) {
    SmallVector<Type> types;
    for (Type t : branch.getResultTypes())
      types.push_back(convert(t));
    bool hasElse = !branch.getElseRegion().empty();
    auto out = e.make<scf::IfOp>(types, get(branch.getCondition()), hasElse);
    auto side = [&](Region &from, Region &to) -> LogicalResult {
      OpBuilder::InsertionGuard guard(b);
      Block &block = to.front();
      if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>())
        block.back().erase();
      b.setInsertionPointToStart(&block);
      if (failed(emitBlock(from.front())))
        return failure();
      emitYield(from.front().getTerminator());
      return success();
    };
    if (failed(side(branch.getThenRegion(), out.getThenRegion())) ||
        (hasElse && failed(side(branch.getElseRegion(), out.getElseRegion()))))
      return failure();
    for (auto [from, to] : llvm::zip(branch.getResults(), out.getResults()))
      map.map(from, to);
    return success();
  }

  NamedAttrList wordAttrs(Type elem, int64_t group) {
    NamedAttrList attrs;
    attrs.set("elem", TypeAttr::get(elem));
    attrs.set("group", b.getI64IntegerAttr(group));
    return attrs;
  }

  Value encodeWords(Value v, Value result, Attribute mode = {}) {
    Type elem = tile(result).getElementType();
    int64_t group = wordGroup(layout(result), elem.getIntOrFloatBitWidth());
    NamedAttrList attrs = wordAttrs(elem, group);
    if (mode)
      attrs.set("mode", mode);
    OperationState state(e.loc, quant::EncodeWordsOp::getOperationName(), {v},
                         {convert(result.getType())}, attrs);
    return b.create(state)->getResult(0);
  }

  Value decodeWords(Value operand, Value result, bool inverse) {
    Type elem = tile(operand).getElementType();
    int64_t group = wordGroup(layout(operand), elem.getIntOrFloatBitWidth());
    NamedAttrList attrs = wordAttrs(elem, group);
    if (inverse)
      attrs.erase("elem");
    OperationState state(e.loc,
                         inverse ? quant::E8M0InverseWordsOp::getOperationName()
                                 : quant::DecodeWordsOp::getOperationName(),
                         {get(operand)}, {convert(result.getType())}, attrs);
    return b.create(state)->getResult(0);
  }

  LogicalResult emitTileOp(Operation *op) {
    Value result = op->getResult(0);
    if (auto c = dyn_cast<arith::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(c.getValue());
      if (!dense || !dense.isSplat() || wordBits(tile(result).getElementType()))
        return op->emitOpError("expected a splat of a 32-bit type");
      map.map(result, e.make<arith::ConstantOp>(dense.resizeSplat(
                          cast<ShapedType>(convert(result.getType())))));
      return success();
    }
    if (auto encode = dyn_cast<quant::EncodeOp>(op)) {
      map.map(result, encodeWords(get(op->getOperand(0)), result,
                                  encode.getModeAttr()));
      return success();
    }
    if (isa<quant::DecodeOp>(op)) {
      map.map(result, decodeWords(op->getOperand(0), result, false));
      return success();
    }
    if (isa<quant::E8M0InverseOp>(op)) {
      map.map(result, decodeWords(op->getOperand(0), result, true));
      return success();
    }
    if (isa<arith::ExtFOp>(op)) {
      map.map(result, decodeWords(op->getOperand(0), result, false));
      return success();
    }
    if (isa<arith::TruncFOp>(op)) {
      map.map(result, encodeWords(get(op->getOperand(0)), result));
      return success();
    }
    if (auto iota = dyn_cast<quant::IotaOp>(op)) {
      LaneLayout l = layout(result);
      SmallVector<Value> regs;
      for (int64_t r = 0; r < l.numRegs(); ++r)
        regs.push_back(e.coordinate(l, iota.getDim(), r));
      map.map(result, e.pack(regs, b.getI32Type()));
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
      for (Value v : op->getOperands())
        if (tile(v) && wordBits(tile(v).getElementType()))
          return op->emitOpError("arithmetic on ")
                 << tile(v).getElementType() << " tiles, expected f32 or i32";
      SmallVector<Value> operands;
      bool anyTile = false;
      for (Value v : op->getOperands())
        anyTile |= bool(tile(v));
      for (Value v : op->getOperands())
        operands.push_back(get(v));
      (void)anyTile;
      SmallVector<Type> types;
      for (Type t : op->getResultTypes())
        types.push_back(convert(t));
      OperationState state(e.loc, op->getName().getStringRef(), operands, types,
                           op->getAttrs());
      Operation *clone = b.create(state);
      for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
        map.map(from, to);
      return success();
    }
    return op->emitOpError("has no distributed form");
  }

  LogicalResult emitReduce(Operation *op) {
    Value in = op->getOperand(0);
    LaneLayout l = layout(in);
    std::optional<ReducePlan> plan = rules.plan(op, l);
    if (!plan || plan->result != layout(op->getResult(0)))
      return op->emitOpError("operand layout cannot be reduced this way");
    if (!tile(in).getElementType().isF32())
      return op->emitOpError("expected an f32 tile");
    auto kind = quant::ReduceKind::amax;
    int64_t axis, limit;
    if (auto reduce = dyn_cast<quant::ReduceOp>(op)) {
      kind = reduce.getKind();
      axis = reduce.getAxis();
      limit = reduce.getExtent();
    } else {
      auto block = cast<quant::BlockReduceOp>(op).getBlock();
      axis = block[0] > 1 ? 0 : 1;
      limit = l.base[axis] * l.repeats[axis];
    }
    map.map(op->getResult(0), e.reduce(get(in), l, *plan, kind, limit, axis));
    return success();
  }

  LogicalResult emitBroadcast(Operation *op) {
    Value in = op->getOperand(0), result = op->getResult(0);
    LaneLayout out = layout(result);
    Type elem = tile(result).getElementType();
    if (wordBits(elem))
      return op->emitOpError("broadcast of ")
             << elem << " tiles, expected 32 bits";
    if (!tile(in)) {
      Value filled = e.fill(get(in));
      map.map(result, e.pack(SmallVector<Value>(out.numRegs(), filled), elem));
      return success();
    }
    SmallVector<int64_t> shift;
    SmallVector<bool> full;
    LayoutRules::broadcastGroups(op, shift, full);
    SmallVector<Value> regs = e.registers(get(in)), spread;
    for (int64_t r = 0; r < out.numRegs(); ++r) {
      int64_t source =
          tile(in).getRank() ? sliceRegister(out, shift, full, r) : 0;
      if (source >= int64_t(regs.size()))
        return op->emitOpError("operand layout does not match the result");
      spread.push_back(regs[source]);
    }
    map.map(result, e.pack(spread, elem));
    return success();
  }

  LogicalResult emitMovement(Operation *op) {
    Value in = op->getOperand(0), result = op->getResult(0);
    LaneLayout from = layout(in), to = layout(result);
    auto type = tile(in);
    Type elem = type.getElementType();
    Value v = get(in);
    if (isa<quant::ConvertLayoutOp>(op)) {
      FailureOr<Value> moved = e.convert(v, elem, from, to);
      if (failed(moved))
        return op->emitOpError("no way from ")
               << in.getType() << " to " << result.getType();
      map.map(result, *moved);
      return success();
    }
    // A relabelling: the same registers, possibly packed along another
    // dimension and with the repeats in another order.
    int64_t bits = wordBits(elem);
    SmallVector<Value> regs = e.registers(v);
    int64_t gf = bits ? wordGroup(from, bits) : 1,
            gt = bits ? wordGroup(to, bits) : 1;
    bool reorder = isa<quant::TransposeOp>(op) && from.numRepeats() > 1;
    if (gf != gt || reorder) {
      if (bits)
        regs = e.unpackCodes(regs, gf, bits);
      if (reorder) {
        SmallVector<Value> swapped;
        int64_t n = from.regsPerRepeat();
        for (int64_t c = 0; c < to.repeats[0]; ++c)
          for (int64_t r = 0; r < to.repeats[1]; ++r)
            for (int64_t i = 0; i < n; ++i)
              swapped.push_back(regs[(r * to.repeats[0] + c) * n + i]);
        regs = swapped;
      }
      if (bits)
        regs = e.packCodes(regs, gt, bits);
      v = e.pack(regs, cast<VectorType>(v.getType()).getElementType());
    }
    map.map(result, v);
    return success();
  }

  func::FuncOp source;
  LayoutRules rules;
  bool simd;
  OpBuilder b;
  Emitter e;
  Type ptrType;
  IRMapping map;
  DenseMap<Value, MemRefDesc> memrefs;
  Value grid[3], programId[3];
  std::string sharedName;
};

struct Distribute
    : public dither::transforms::impl::DitherDistributeBase<Distribute> {
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
