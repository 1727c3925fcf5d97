//===- Kernel.cpp - Signature, memory and programs of kernels -------------===//

#include "Analysis/AccessOrder.h"
#include "Distribute/Distribute.h"
#include "Emit/Gpu.h"
#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Target/TargetInfo.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dither::transforms {

/// Bytes of the stack that a CPU program takes, at most, and how its memory is
/// aligned.
static constexpr int64_t kMostStack = int64_t(64) << 10;
/// Outputs of this many bytes are out of the caches before anything reads them.
static constexpr int64_t kLargeBytes = int64_t(4) << 20;

LogicalResult Distributor::checkSignature() {
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
    if (!quant::isMemoryElement(elem))
      return source.emitOpError("argument ")
             << i << " has elements of type " << elem
             << ", expected 4, 8, 16 or 32 bits, or i64";
    auto [strides, offset] = memref.getStridesAndOffset();
    if (offset != 0)
      return source.emitOpError("argument ")
             << i << " begins at an offset, expected none: pass a pointer to "
             << "its first element";
    if (memref.getMemorySpace())
      return source.emitOpError("argument ")
             << i << " is in memory space " << memref.getMemorySpace()
             << ", expected none";
    for (int64_t stride : ArrayRef(strides).drop_back(!strides.empty()))
      if (bits == 4 && !ShapedType::isDynamic(stride) && stride % 2)
        return source.emitOpError("argument ")
               << i << " has rows of " << stride
               << " four-bit elements, expected whole bytes";
  }
  return success();
}

SmallVector<Type> Distributor::flatten() {
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

ArrayAttr Distributor::paramKinds(ArrayRef<Type> params) {
  SmallVector<Attribute> kinds;
  for (Type type : params)
    kinds.push_back(b.getStringAttr(isa<LLVM::LLVMPointerType>(type) ? "ptr"
                                    : type.isInteger(64)             ? "i64"
                                    : type.isInteger(32)             ? "i32"
                                                                     : "f32"));
  return b.getArrayAttr(kinds);
}

SmallVector<Value> Distributor::readSlots(Block *entry, ArrayRef<Type> params) {
  SmallVector<Value> args;
  for (auto [i, type] : llvm::enumerate(params)) {
    Value at = e.make<LLVM::GEPOp>(entry->getArgument(0).getType(),
                                   b.getI64Type(), entry->getArgument(0),
                                   ArrayRef<LLVM::GEPArg>{int32_t(i)});
    args.push_back(e.make<LLVM::LoadOp>(type, at, 8));
  }
  return args;
}

void Distributor::bindArguments(ArrayRef<Value> args) {
  size_t next = 0;
  for (BlockArgument arg : source.getArguments()) {
    auto memref = dyn_cast<MemRefType>(arg.getType());
    if (!memref) {
      Value v = args[next++];
      if (arg.getType().isIndex())
        v = toIndex(v);
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
    desc.staticSizes.assign(memref.getShape().begin(), memref.getShape().end());
    desc.staticStrides.assign(strides.begin(), strides.end());
    for (int64_t size : desc.staticSizes)
      desc.sizes.push_back(ShapedType::isDynamic(size) ? args[next++]
                                                       : e.i64(size));
    for (int64_t stride : desc.staticStrides)
      desc.strides.push_back(ShapedType::isDynamic(stride) ? args[next++]
                                                           : e.i64(stride));
    desc.isOnlyRead =
        !source.getArgAttr(arg.getArgNumber(), "quant.exchanged") &&
        llvm::all_of(accessesOf(arg), [](Operation *user) {
          return isa<quant::LoadOp, quant::GatherOp, quant::LoadScalarOp,
                     memref::DimOp>(user);
        });
    if (simd && llvm::any_of(accessesOf(arg), [](Operation *user) {
          auto store = dyn_cast<quant::StoreOp>(user);
          return store && store.getStream();
        })) {
      desc.large = isLarge(desc);
      SmallVector<Value> places{desc.ptr};
      for (auto [stride, known] :
           llvm::drop_end(llvm::zip(desc.strides, desc.staticStrides)))
        if (ShapedType::isDynamic(known) ||
            known * quant::storageBits(desc.elem) % (8 * kLineBytes))
          places.push_back(bytesOf(*this, stride, desc.elem));
      desc.largeLines = e.make<arith::AndIOp>(desc.large, e.areLines(places));
    }
    memrefs.try_emplace(arg, std::move(desc));
  }
}

Value Distributor::isLarge(const MemRefDesc &desc) {
  streams = true;
  Value bits = e.i64(quant::storageBits(desc.elem));
  for (Value size : desc.sizes)
    bits = e.make<arith::MulIOp>(bits, size);
  return e.make<arith::CmpIOp>(arith::CmpIPredicate::sge, bits,
                               e.i64(8 * kLargeBytes));
}

void Distributor::annotate(func::FuncOp kernel) {
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

Value Distributor::scratch(int64_t bytes) {
  if (!simd) {
    // Before what threads exchange, whose size is known at the end.
    Value start = e.sharedBase;
    heldBytes += llvm::alignTo(bytes, kScratchAlign);
    e.sharedBase = e.make<LLVM::GEPOp>(
        start.getType(), b.getI8Type(), start,
        ArrayRef<LLVM::GEPArg>{int32_t(llvm::alignTo(bytes, kScratchAlign))});
    return start;
  }
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  OpBuilder::InsertionGuard guard(b);
  if (stackBytes + bytes <= kMostStack) {
    stackBytes += bytes;
    // Outside the loop over programs, after the constant that it needs.
    Value size = e.i64(bytes);
    b.setInsertionPointAfterValue(size);
    return e.make<LLVM::AllocaOp>(pointer, b.getI8Type(), size, kScratchAlign);
  }
  b.setInsertionPointToStart(e.entry);
  // Its address follows the slots of the arguments.
  if (!scratchBase) {
    Value at =
        e.make<LLVM::GEPOp>(pointer, b.getI64Type(), e.entry->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{int32_t(numSlots)});
    scratchBase = e.make<LLVM::LoadOp>(pointer, at, 8);
  }
  b.setInsertionPointAfterValue(scratchBase);
  Value start =
      e.make<LLVM::GEPOp>(pointer, b.getI8Type(), scratchBase,
                          ArrayRef<LLVM::GEPArg>{int32_t(e.sharedBytes)});
  e.sharedBytes += llvm::alignTo(bytes, kScratchAlign);
  return start;
}

std::string sharedNameOf(StringRef kernel) {
  return (kernel + "_shared").str();
}

Value Distributor::sharedScratch() {
  MLIRContext *ctx = b.getContext();
  sharedName = sharedNameOf(source.getName());
  return e.make<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(ctx, 3),
                                   sharedName);
}

void Distributor::finishShared(func::FuncOp kernel) {
  int64_t bytes = heldBytes + e.sharedBytes;
  kernel->setAttr("quant.shared_bytes", b.getI64IntegerAttr(bytes));
  if (simd)
    return;
  if (!bytes) {
    e.sharedBase.getDefiningOp()->erase();
    return;
  }
  // What is too large to be declared, a launch gives.
  bool declared = bytes <= target::kGpuSharedBytes;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(source);
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), declared ? bytes : 0);
  LLVM::GlobalOp::create(
      b, source.getLoc(), type, /*isConstant=*/false,
      declared ? LLVM::Linkage::Internal : LLVM::Linkage::External, sharedName,
      Attribute(), /*alignment=*/16, /*addrSpace=*/3);
}

LogicalResult Distributor::emitPrograms(Block *entry) {
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

/// What the module's target can do; null for one that is not known.
static const target::TargetInfo *targetOf(func::FuncOp source) {
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
    if (const target::TargetInfo *info = targetOf(source)) {
      e.maxVectorBytes = info->maxVectorBytes;
      e.maxXorsign = info->maxXorsign;
    }
    annotate(kernel);
    if (auto config = source->getAttrOfType<DictionaryAttr>("quant.config"))
      if (auto blocks = config.getAs<IntegerAttr>("cluster")) {
        e.clusterBlocks = blocks.getInt();
        kernel->setAttr("quant.cluster", blocks);
      }
    e.tid = gpu::threadId(b, e.loc);
    e.sharedBase = sharedScratch();
    if (e.clusterBlocks > 1)
      clusterPlaces = scratch(e.clusterBlocks * sizeof(float));
    if (failed(emitTiles()))
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
  int64_t threads = simd ? 1 : rules.warps() * kWarpLanes;
  if (partThreads)
    threads = partThreads;
  kernel->setAttr("quant.num_threads", b.getI64IntegerAttr(threads));
  kernel->setAttr("quant.params", paramKinds(params));
  source.erase();
  return success();
}

/// GPU: of the kernel's blocks, or of its clusters, in i32.
static Value programNumber(Emitter &e, unsigned d, bool count) {
  return gpu::programNumber(e.b, e.loc, d, count, e.clusterBlocks > 1);
}

Value Distributor::programIndex(quant::Dim dim, Counted what) {
  unsigned d = unsigned(dim);
  auto number = [&](bool count) {
    if (simd)
      return count ? grid[d] : programId[d];
    return programNumber(e, d, count);
  };
  Value v = number(what == Counted::All);
  if (what == Counted::IdFromLast) {
    Value one = simd ? e.i64(1) : e.i32(1);
    Value last = e.make<arith::SubIOp>(number(/*count=*/true), one);
    v = e.make<arith::SubIOp>(last, v);
  }
  if (simd)
    return toIndex(v);
  return e.make<arith::IndexCastUIOp>(b.getIndexType(), v);
}

static Emitted emitProgramId(Distributor &d, quant::ProgramIdOp op) {
  using Counted = Distributor::Counted;
  d.set(op.getResult(),
        d.programIndex(op.getDim(),
                       op.getBackwards() ? Counted::IdFromLast : Counted::Id));
  return success();
}

static Emitted emitNumPrograms(Distributor &d, quant::NumProgramsOp op) {
  d.set(op.getResult(), d.programIndex(op.getDim(), Distributor::Counted::All));
  return success();
}

void addProgramOps(OpTable &table) {
  table.add(emitProgramId);
  table.add(emitNumPrograms);
}

} // namespace dither::transforms
