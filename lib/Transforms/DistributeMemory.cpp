//===- DistributeMemory.cpp - Loads, stores, atomics and scratch memory --===//

#include "Distribute.h"
#include "IndexSign.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

namespace {

constexpr int64_t kMaxDivisor = 1 << 12;
/// Bytes of the stack that a CPU program takes, at most, and how its memory is
/// aligned.
constexpr int64_t kMostStack = int64_t(64) << 10;
constexpr int64_t kScratchAlign = 64;

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

} // namespace

FailureOr<TileAccess> Distributor::access(Operation *op, Value memref,
                                          ValueRange indices,
                                          const LaneLayout &layout,
                                          ArrayRef<int64_t> shape,
                                          bool inBounds) {
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

void Distributor::emitScratch(memref::AllocaOp op) {
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
      Value at =
          e.make<LLVM::GEPOp>(pointer, b.getI64Type(), e.entry->getArgument(0),
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

LogicalResult Distributor::emitMemory(Operation *op) {
  if (auto load = dyn_cast<quant::LoadOp>(op)) {
    LaneLayout l = layout(load.getResult());
    auto type = tile(load.getResult());
    auto a = access(op, load.getMemref(), load.getIndices(), l, type.getShape(),
                    load.getInBounds());
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
  auto a = access(op, store.getMemref(), store.getIndices(), l, type.getShape(),
                  store.getInBounds());
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

Value Distributor::validPart(Value limit, Value size) {
  Value v = e.make<arith::IndexCastOp>(b.getI64Type(), get(limit));
  std::optional<int64_t> most = largest(limit);
  if (most && *most <= kMostExtent)
    return v;
  if (!most)
    v = e.make<arith::MaxSIOp>(v, e.i64(0));
  return e.make<arith::MinSIOp>(v, size);
}

} // namespace dither::transforms
