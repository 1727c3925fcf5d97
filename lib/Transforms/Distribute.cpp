//===- Distribute.cpp - From tiles to the code of one lane ----------------===//
//
// Rebuilds a kernel whose tile values carry layouts as the program of one lane:
// tiles become vectors of registers (architecture.md, Distributed types),
// memrefs become pointers with the dynamic sizes and strides as further
// parameters, program ids become block indices (GPU) or a loop (CPU).
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "IndexSign.h"
#include "LayoutRules.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/TargetInfo.h"
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
#include "llvm/ADT/MapVector.h"
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
/// Bytes of the stack that a CPU program takes, at most, and how its memory is
/// aligned.
constexpr int64_t kMostStack = int64_t(64) << 10;
constexpr int64_t kScratchAlign = 64;
/// Outputs of this many bytes are out of the caches before anything reads them.
constexpr int64_t kLargeBytes = int64_t(4) << 20;

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

/// Operations of a kernel, at most: LLVM takes more than ten seconds for as
/// many, and for twice as many more than twice that.
constexpr int64_t kMostOperations = 200000;

/// Counts what is emitted for each place in the source.
struct Counter : public OpBuilder::Listener {
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) override {
    int64_t weight = weightOf(op);
    total += weight;
    places[op->getLoc()] += weight;
  }
  /// About as many operations as it becomes.
  static int64_t weightOf(Operation *op) {
    if (isa<math::AbsFOp, math::SqrtOp, math::FmaOp>(op))
      return 1;
    if (auto function = dyn_cast<quant::ElementaryOpInterface>(op))
      return numerics::stepsOf(function.getFunction());
    return isa<math::RsqrtOp>(op) ? 24 : 1;
  }
  /// The place with the most operations, and their number.
  std::pair<Location, int64_t> largest() const {
    return *std::max_element(
        places.begin(), places.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
  }
  int64_t total = 0;
  llvm::MapVector<Location, int64_t> places;
};

class Distributor {
public:
  Distributor(func::FuncOp source)
      : source(source), rules(source), simd(rules.isSimd()),
        b(source.getContext(), &counter),
        e(b, source.getLoc(), simd, rules.warps()) {}

  LogicalResult run() {
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

private:
  Type i64() { return b.getI64Type(); }
  /// What the module's target can do; null for one that is not known.
  const target::TargetInfo *targetInfo() {
    auto name = source->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(
        "quant.target");
    return name ? target::lookupTarget(name.getValue()) : nullptr;
  }

  //===--- signature ------------------------------------------------------===//
  LogicalResult checkSignature() {
    if (source.getNumResults())
      return source.emitOpError("has results, expected a kernel without any");
    for (auto [i, type] : llvm::enumerate(source.getArgumentTypes())) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref && !type.isF32() && !type.isIndex() && !type.isInteger(32) &&
          !type.isInteger(64))
        return source.emitOpError("argument ")
               << i << " is a " << type
               << ", expected a ranked memref, i32, i64, index or f32";
      if (!memref)
        continue;
      Type elem = memref.getElementType();
      unsigned bits = elem.isIntOrFloat() ? quant::storageBits(elem) : 0;
      if (!isMemoryElement(elem))
        return source.emitOpError("argument ")
               << i << " has elements of type " << elem
               << ", expected 4, 8, 16 or 32 bits, or i64";
      auto [strides, offset] = memref.getStridesAndOffset();
      for (int64_t stride : ArrayRef(strides).drop_back(!strides.empty()))
        if (bits == 4 && !ShapedType::isDynamic(stride) && stride % 2)
          return source.emitOpError("argument ")
                 << i << " has rows of " << stride
                 << " four-bit elements, expected whole bytes";
    }
    return success();
  }

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
      int64_t bytes = std::max<int64_t>(1, quant::storageBits(desc.elem) / 8);
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
      if (simd && llvm::any_of(arg.getUsers(), [](Operation *user) {
            return user->hasAttr("quant.stream");
          }))
        desc.large = isLarge(desc);
      memrefs.try_emplace(arg, std::move(desc));
    }
  }

  /// Whether a memref takes more bytes than caches hold.
  Value isLarge(const MemRefDesc &desc) {
    streams = true;
    Value bits = e.i64(quant::storageBits(desc.elem));
    for (Value size : desc.sizes)
      bits = e.make<arith::MulIOp>(bits, size);
    return e.make<arith::CmpIOp>(arith::CmpIPredicate::sge, bits,
                                 e.i64(8 * kLargeBytes));
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
      // Other threads change what this one has seen.
      if (!source.getArgAttr(arg.getArgNumber(), "quant.exchanged"))
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

  static RankedTensorType tile(Value v) {
    return dyn_cast<RankedTensorType>(v.getType());
  }
  LaneLayout layout(Value v) { return *layoutOf(v.getType()); }
  Value get(Value v) { return map.lookup(v); }
  const Registers &regs(Value v) { return tiles.find(v)->second; }
  void set(Value v, Registers registers) { tiles[v] = std::move(registers); }
  /// What a lane holds of `v`: registers of a tile, else one value.
  Registers values(Value v) { return tile(v) ? regs(v) : Registers{get(v)}; }
  void setValues(Value v, ArrayRef<Value> values) {
    if (tile(v))
      set(v, Registers(values));
    else
      map.map(v, values.front());
  }
  /// Type of each register of a tile, and their number.
  std::pair<Type, int64_t> registerType(RankedTensorType type) {
    VectorType all = distributedType(type, simd);
    return {e.regType(all.getElementType()), all.getDimSize(0)};
  }

  FailureOr<TileAccess> access(Operation *op, Value memref, ValueRange indices,
                               const LaneLayout &layout,
                               ArrayRef<int64_t> shape, bool inBounds) {
    auto it = memrefs.find(memref);
    if (it == memrefs.end())
      return op->emitOpError("memref is not a kernel argument");
    TileAccess a{it->second, layout, shape, {}, {}, {}, inBounds};
    for (Value i : indices) {
      a.divisor.push_back(divisorOf(i));
      a.mayBeNegative.push_back(!isNonNegative(i));
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
        llvm::any_of(op->getOperands(),
                     [](Value v) { return bool(tile(v)); }) ||
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

  /// CPU: memory of a program, one for all programs of a call: of the stack, or
  /// of the runtime where that would be too much.
  void emitScratch(memref::AllocaOp op) {
    MemRefType type = op.getType();
    MemRefDesc desc;
    desc.elem = type.getElementType();
    desc.align = desc.strideAlign = 64;
    desc.pairs = op->hasAttr("quant.pairs") && rules.keepsPairs();
    auto [strides, offset] = type.getStridesAndOffset();
    desc.staticSizes.assign(type.getShape().begin(), type.getShape().end());
    desc.staticStrides.assign(strides.begin(), strides.end());
    for (int64_t size : desc.staticSizes)
      desc.sizes.push_back(e.i64(size));
    for (int64_t stride : desc.staticStrides)
      desc.strides.push_back(e.i64(stride));
    int64_t bytes = llvm::divideCeil(
        type.getNumElements() * quant::storageBits(desc.elem), 8);
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    OpBuilder::InsertionGuard guard(b);
    if (stackBytes + bytes <= kMostStack) {
      stackBytes += bytes;
      // Outside the loop over programs, after the constant that it needs.
      Value size = e.i64(bytes);
      b.setInsertionPointAfterValue(size);
      desc.ptr = e.make<LLVM::AllocaOp>(pointer, b.getI8Type(), size,
                                        /*alignment=*/kScratchAlign);
    } else {
      b.setInsertionPointToStart(e.entry);
      // Its address follows the slots of the arguments.
      if (!scratchBase) {
        Value at = e.make<LLVM::GEPOp>(
            pointer, b.getI64Type(), e.entry->getArgument(0),
            ArrayRef<LLVM::GEPArg>{int32_t(numSlots)});
        scratchBase = e.make<LLVM::LoadOp>(pointer, at, 8);
      }
      b.setInsertionPointAfterValue(scratchBase);
      desc.ptr =
          e.make<LLVM::GEPOp>(pointer, b.getI8Type(), scratchBase,
                              ArrayRef<LLVM::GEPArg>{int32_t(e.sharedBytes)});
      e.sharedBytes += llvm::alignTo(bytes, kScratchAlign);
    }
    memrefs.try_emplace(op.getResult(), std::move(desc));
  }

  LogicalResult emitMemory(Operation *op) {
    if (auto load = dyn_cast<quant::LoadOp>(op)) {
      LaneLayout l = layout(load.getResult());
      auto type = tile(load.getResult());
      auto a = access(op, load.getMemref(), load.getIndices(), l,
                      type.getShape(), load.getInBounds());
      if (failed(a))
        return failure();
      if (auto ahead = load->getAttrOfType<IntegerAttr>("quant.ahead"))
        a->ahead = ahead.getInt();
      if (auto share =
              load->getAttrOfType<DenseI64ArrayAttr>("quant.ahead_share")) {
        a->aheadIndex = share[0];
        a->aheadShare = share[1];
      }
      FailureOr<Registers> v = e.load(*a);
      if (failed(v))
        return op->emitOpError("cannot be loaded in layout ")
               << load.getResult().getType();
      set(load.getResult(), *v);
      return success();
    }
    Value tileValue = op->getOperand(0);
    LaneLayout l = layout(tileValue);
    auto type = tile(tileValue);
    Registers v = regs(tileValue);
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
      for (auto [limit, at, size] :
           llvm::zip(store.getValid(), a->index, a->mem.sizes))
        bound.push_back(e.make<arith::SubIOp>(validPart(limit, size), at));
      v = e.zeroPast(v, type.getElementType(), l, bound);
    }
    bool swizzled = store.getScaleLayout() == quant::ScaleLayout::swizzle_128x4;
    if (failed(swizzled ? e.storeSwizzled(*a, v) : e.store(*a, v)))
      return op->emitOpError("cannot be stored in layout ") << type;
    return success();
  }

  /// What exists of the coordinates before `limit`. Differences to offsets of
  /// other limits may wrap.
  Value validPart(Value limit, Value size) {
    Value v = e.make<arith::IndexCastOp>(b.getI64Type(), get(limit));
    std::optional<int64_t> most = largest(limit);
    if (most && *most <= kMostExtent)
      return v;
    if (!most)
      v = e.make<arith::MaxSIOp>(v, e.i64(0));
    return e.make<arith::MinSIOp>(v, size);
  }

  /// Each of `from` becomes the next of `to`, a tile as many as it has
  /// registers.
  void bind(ValueRange from, ValueRange to) {
    for (Value v : from) {
      RankedTensorType type = tile(v);
      size_t n = type ? registerType(type).second : 1;
      setValues(v, llvm::to_vector(to.take_front(n)));
      to = to.drop_front(n);
    }
  }

  LogicalResult emitFor(scf::ForOp loop) {
    SmallVector<Value> inits;
    for (Value v : loop.getInitArgs())
      llvm::append_range(inits, values(v));
    auto out =
        e.make<scf::ForOp>(get(loop.getLowerBound()), get(loop.getUpperBound()),
                           get(loop.getStep()), inits);
    map.map(loop.getInductionVar(), out.getInductionVar());
    bind(ValueRange(loop.getRegionIterArgs()),
         ValueRange(out.getRegionIterArgs()));
    OpBuilder::InsertionGuard guard(b);
    Block *body = out.getBody();
    if (!body->empty() && body->back().hasTrait<OpTrait::IsTerminator>())
      body->back().erase();
    b.setInsertionPointToStart(body);
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    emitYield(loop.getBody()->getTerminator());
    bind(loop.getResults(), out.getResults());
    return success();
  }

  void emitYield(Operation *yield) {
    SmallVector<Value> yielded;
    for (Value v : yield->getOperands())
      llvm::append_range(yielded, values(v));
    e.make<scf::YieldOp>(yielded);
  }

  LogicalResult emitIf(scf::IfOp branch) {
    SmallVector<Type> types;
    for (Type t : branch.getResultTypes()) {
      auto type = dyn_cast<RankedTensorType>(t);
      auto [one, n] = type ? registerType(type) : std::pair(t, int64_t(1));
      types.append(n, one);
    }
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
    bind(branch.getResults(), out.getResults());
    return success();
  }

  /// An operation on words for every word: vectors of all registers would only
  /// be taken apart again.
  void convertWords(Value operand, Value result, StringRef name, Type elem,
                    const LaneLayout &words, NamedAttrList attrs) {
    int64_t group = wordGroup(words, quant::storageBits(elem));
    attrs.set("group", b.getI64IntegerAttr(group));
    bool encodes = tile(result).getElementType() == elem;
    int64_t in = encodes ? group : 1, out = encodes ? 1 : group;
    Type to = encodes ? b.getI32Type() : Type(b.getF32Type());
    Registers from = regs(operand), converted;
    for (size_t i = 0; i < from.size(); i += in) {
      ArrayRef<Value> part = ArrayRef<Value>(from).slice(i, in);
      Type type = getElementTypeOrSelf(part.front().getType());
      SmallVector<int64_t> shape{out};
      if (simd)
        shape.push_back(kSimdLanes);
      OperationState state(e.loc, name, {e.pack(part, type)},
                           {VectorType::get(shape, to)}, attrs);
      llvm::append_range(converted, e.unpack(b.create(state)->getResult(0)));
    }
    set(result, converted);
  }

  void encodeWords(Value operand, Value result, Attribute mode = {}) {
    Type elem = tile(result).getElementType();
    NamedAttrList attrs;
    attrs.set("elem", TypeAttr::get(elem));
    if (mode)
      attrs.set("mode", mode);
    convertWords(operand, result, quant::EncodeWordsOp::getOperationName(),
                 elem, layout(result), attrs);
  }

  /// CPU: products of finite values and factors, two to a word; false if they
  /// do not come in pairs, or if nobody knows which of the two is the factor,
  /// which has no sign: constants have been moved to the right.
  bool encodeProduct(quant::EncodeOp op) {
    Type elem = op.getResult().getType().getElementType();
    auto product = op.getSource().getDefiningOp<arith::MulFOp>();
    LaneLayout l = layout(op.getResult());
    if (!simd || !product || matchPattern(product.getRhs(), m_Constant()) ||
        layout(product.getLhs()) != l ||
        wordGroup(l, quant::storageBits(elem)) != 2)
      return false;
    Value source = product.getLhs();
    auto widened = source.getDefiningOp<arith::ExtFOp>();
    bool words = widened && tile(widened.getIn()).getElementType().isBF16() &&
                 layout(widened.getIn()) == l;
    Registers from = regs(words ? widened.getIn() : source),
              factors = regs(product.getRhs()), codes;
    size_t step = words ? 1 : 2;
    Type result = VectorType::get({1, kSimdLanes}, b.getI32Type());
    for (size_t i = 0; i < factors.size() / 2; ++i) {
      ArrayRef<Value> x = ArrayRef<Value>(from).slice(i * step, step);
      Value code = e.make<quant::ScaleEncodeWordsOp>(
          result,
          e.pack(x, words ? Type(b.getI32Type()) : Type(b.getF32Type())),
          e.pack(ArrayRef<Value>(factors).slice(2 * i, 2), b.getF32Type()),
          elem, op->hasAttr("quant.bounded"));
      llvm::append_range(codes, e.unpack(code));
    }
    set(op.getResult(), codes);
    return true;
  }

  void decodeWords(Value operand, Value result, bool inverse) {
    Type elem = tile(operand).getElementType();
    NamedAttrList attrs;
    if (!inverse)
      attrs.set("elem", TypeAttr::get(elem));
    convertWords(operand, result,
                 inverse ? quant::E8M0InverseWordsOp::getOperationName()
                         : quant::DecodeWordsOp::getOperationName(),
                 elem, layout(operand), attrs);
  }

  /// The word of `group` elements that are all `value`.
  IntegerAttr wordOf(TypedAttr value, int64_t group) {
    APInt code = isa<FloatAttr>(value)
                     ? cast<FloatAttr>(value).getValue().bitcastToAPInt()
                     : cast<IntegerAttr>(value).getValue();
    code = code.zext(quant::storageBits(value.getType()));
    return b.getIntegerAttr(
        b.getI32Type(),
        APInt::getSplat(group * code.getBitWidth(), code).zext(32));
  }

  /// Whether these are a tile of f32 and one of a 16-bit float.
  static bool converts16(Value wide, Value narrow) {
    Type elem = tile(narrow).getElementType();
    return tile(wide).getElementType().isF32() &&
           (elem.isBF16() || elem.isF16());
  }

  /// A choice between tiles of a narrow type: of words where one condition
  /// decides for all elements, else of codes.
  void selectWords(arith::SelectOp op) {
    Value condition = op.getCondition(), result = op.getResult();
    Registers yes = regs(op.getTrueValue()), no = regs(op.getFalseValue());
    int64_t bits = wordBits(tile(result).getElementType());
    int64_t group = wordGroup(layout(result), bits);
    bool each = bool(tile(condition));
    if (each) {
      yes = e.unpackCodes(yes, group, bits);
      no = e.unpackCodes(no, group, bits);
    }
    Registers chosen;
    for (auto [i, pair] : llvm::enumerate(llvm::zip(yes, no))) {
      Value flag = each ? regs(condition)[i] : get(condition);
      chosen.push_back(
          e.make<arith::SelectOp>(flag, std::get<0>(pair), std::get<1>(pair)));
    }
    set(result, each ? Registers(e.packCodes(chosen, group, bits)) : chosen);
  }

  LogicalResult emitTileOp(Operation *op) {
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

  /// The operation on every register; operands that are no tiles are shared.
  void emitElementwise(Operation *op) {
    SmallVector<Registers> results(op->getNumResults());
    for (int64_t i = 0, n = registerType(tile(op->getResult(0))).second; i < n;
         ++i) {
      SmallVector<Value> operands;
      for (Value v : op->getOperands())
        operands.push_back(tile(v) ? regs(v)[i] : get(v));
      SmallVector<Type> types;
      for (Value v : op->getResults())
        types.push_back(registerType(tile(v)).first);
      OperationState state(e.loc, op->getName().getStringRef(), operands, types,
                           op->getAttrs());
      Operation *clone = b.create(state);
      for (auto [out, v] : llvm::zip(results, clone->getResults()))
        out.push_back(v);
    }
    for (auto [v, out] : llvm::zip(op->getResults(), results))
      set(v, out);
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
      auto blocks = cast<quant::BlockReduceOp>(op);
      kind = blocks.getKind();
      axis = *LayoutRules::blockAxis(blocks);
      limit = l.base[axis] * l.repeats[axis];
    }
    if (simd && kind == quant::ReduceKind::amax &&
        limit == l.base[axis] * l.repeats[axis] &&
        reduceWords(op, *plan, l, axis))
      return success();
    set(op->getResult(0), e.reduce(regs(in), l, *plan, kind, limit, axis,
                                   op->hasAttr("quant.raw")));
    return success();
  }

  /// The amax of widened 16-bit values, two at a time; false if their words do
  /// not allow it.
  bool reduceWords(Operation *op, const ReducePlan &plan, const LaneLayout &l,
                   int64_t axis) {
    auto widened = op->getOperand(0).getDefiningOp<arith::ExtFOp>();
    if (!widened)
      return false;
    Value source = widened.getIn();
    Type elem = tile(source).getElementType();
    if (!(elem.isBF16() || elem.isF16()) || layout(source) != l ||
        wordGroup(l, 16) != 2)
      return false;
    bool folds = axis == l.rank() - 1;
    LaneLayout words = unitLayout(l, 1);
    int64_t extent = plan.extent / (folds ? 2 : 1);
    std::optional<ReducePlan> half = planReduce(
        words, axis, extent, isa<quant::ReduceOp>(op), false, Exchange::Rotate);
    if (!half || extent < 1)
      return false;
    LaneLayout result = half->result;
    if (!folds) {
      Coord step(l.rank(), 0);
      step.back() = 1;
      for (auto *images : {&result.reg, &result.lane, &result.warp})
        for (Coord &c : *images)
          c.back() *= 2;
      result.base.back() *= 2;
      result.reg.insert(result.reg.begin(), step);
    }
    if (result != plan.result)
      return false;
    set(op->getResult(0), e.reduceWords(regs(source), elem, words, *half, axis,
                                        folds, op->hasAttr("quant.raw")));
    return true;
  }

  LogicalResult emitBroadcast(Operation *op) {
    Value in = op->getOperand(0), result = op->getResult(0);
    LaneLayout out = layout(result);
    Type elem = tile(result).getElementType();
    if (wordBits(elem))
      return op->emitOpError("broadcast of ")
             << elem << " tiles, expected 32 bits";
    if (!tile(in)) {
      set(result, Registers(out.numRegs(), e.fill(get(in))));
      return success();
    }
    SmallVector<int64_t> shift;
    SmallVector<bool> full;
    LayoutRules::broadcastGroups(op, shift, full);
    const Registers &from = regs(in);
    Registers spread;
    for (int64_t r = 0; r < out.numRegs(); ++r) {
      int64_t source =
          tile(in).getRank() ? sliceRegister(out, shift, full, r) : 0;
      if (source >= int64_t(from.size()))
        return op->emitOpError("operand layout does not match the result");
      spread.push_back(from[source]);
    }
    set(result, spread);
    return success();
  }

  LogicalResult emitMovement(Operation *op) {
    Value in = op->getOperand(0), result = op->getResult(0);
    LaneLayout from = layout(in), to = layout(result);
    auto type = tile(in);
    Type elem = type.getElementType();
    Registers held = regs(in);
    if (auto convert = dyn_cast<quant::ConvertLayoutOp>(op)) {
      std::optional<SharedOrder> order;
      if (auto attr = convert.getSharedAttr()) {
        ArrayRef<int64_t> vec = *convert.getSharedVec();
        order = {attr.getLayout(), unsigned(vec[0]), unsigned(vec[1])};
      }
      FailureOr<Registers> moved =
          e.convert(held, elem, from, to, order ? &*order : nullptr);
      if (failed(moved))
        return op->emitOpError("no way from ")
               << in.getType() << " to " << result.getType();
      set(result, *moved);
      return success();
    }
    // A relabelling: the same registers, possibly packed along another
    // dimension and with the repeats in another order.
    int64_t bits = wordBits(elem);
    int64_t gf = bits ? wordGroup(from, bits) : 1,
            gt = bits ? wordGroup(to, bits) : 1;
    bool reorder = isa<quant::TransposeOp>(op) && from.numRepeats() > 1;
    if (gf != gt || reorder) {
      if (bits)
        held = e.unpackCodes(held, gf, bits);
      if (reorder) {
        Registers swapped;
        int64_t n = from.regsPerRepeat();
        for (int64_t c = 0; c < to.repeats[0]; ++c)
          for (int64_t r = 0; r < to.repeats[1]; ++r)
            for (int64_t i = 0; i < n; ++i)
              swapped.push_back(held[(r * to.repeats[0] + c) * n + i]);
        held = swapped;
      }
      if (bits)
        held = e.packCodes(held, gt, bits);
    }
    set(result, held);
    return success();
  }

  func::FuncOp source;
  LayoutRules rules;
  bool simd;
  /// Whether stores may go past the caches.
  bool streams = false;
  /// CPU: slots of the arguments, bytes taken of the stack, and the address of
  /// the memory that the runtime lends (null where nothing needs it).
  int64_t numSlots = 0, stackBytes = 0;
  Value scratchBase;
  Counter counter;
  OpBuilder b;
  Emitter e;
  Type ptrType;
  /// Values that are no tiles, and the registers of those that are.
  IRMapping map;
  DenseMap<Value, Registers> tiles;
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
