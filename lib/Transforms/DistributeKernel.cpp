//===- DistributeKernel.cpp - Signature, memory and programs of kernels --===//

#include "Distribute.h"
#include "IndexSign.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dither::transforms {

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
    desc.staticSizes.assign(memref.getShape().begin(), memref.getShape().end());
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

Value Distributor::sharedScratch() {
  MLIRContext *ctx = b.getContext();
  sharedName = (source.getName() + "_shared").str();
  return e.make<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(ctx, 3),
                                   sharedName);
}

void Distributor::finishShared(func::FuncOp kernel) {
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

Value Distributor::emitProgramId(int dim, bool count) {
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

} // namespace dither::transforms
