//===- Memory.cpp - Loads, stores, atomics and scratch memory -------------===//

#include "Analysis/AccessOrder.h"
#include "Distribute/Distribute.h"
#include "Emit/Gpu.h"
#include "Emit/MemoryAccess.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/Offsets.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

static FailureOr<TileAccess> access(Distributor &d, Operation *op, Value memref,
                                    ValueRange indices,
                                    const TileLayout &layout,
                                    ArrayRef<int64_t> shape, bool inBounds) {
  const MemRefDesc *desc = d.memref(memref);
  if (!desc)
    return op->emitOpError("memref is not a kernel argument");
  TileAccess a{*desc, layout, llvm::to_vector(shape), {}, {}, {}, inBounds};
  if (inBounds)
    a.shape = quant::knownInside(memref, indices, shape);
  for (Value i : indices) {
    a.divisor.push_back(quant::divisorOf(i));
    a.mayBeNegative.push_back(!quant::isNonNegative(i));
    a.index.push_back(d.e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(i)));
  }
  return a;
}

static Emitted emitLoad(Distributor &d, quant::LoadOp load) {
  if (!d.simd && copyOf(load))
    return success();
  TileLayout l = d.layout(load.getResult());
  RankedTensorType type = d.tile(load.getResult());
  auto a = access(d, load, load.getMemref(), load.getIndices(), l,
                  type.getShape(), load.getInBounds());
  if (failed(a))
    return failure();
  if (d.numTiles > 1)
    prefetchNextTile(d, load);
  FailureOr<Registers> v = d.e.load(*a);
  if (failed(v))
    return load.emitOpError("cannot be loaded in layout ") << type;
  d.setRegs(load.getResult(), *v);
  return success();
}

static LogicalResult emitAtomic(Distributor &d, quant::AtomicOpInterface atomic,
                                LLVM::AtomicBinOp kind) {
  Value tile = atomic.getTile();
  TileLayout l = d.layout(tile);
  auto a = access(d, atomic, atomic.getMemref(), atomic.getIndices(), l,
                  d.tile(tile).getShape(), false);
  if (failed(a))
    return failure();
  d.e.atomic(kind, *a, d.regs(tile));
  return success();
}

/// Non-negative f32 order like their bits, so an integer maximum is exact and
/// needs no particular order.
static Emitted emitAtomicMax(Distributor &d, quant::AtomicMaxOp atomic) {
  return emitAtomic(d, atomic, LLVM::AtomicBinOp::umax);
}

static Emitted emitAtomicAdd(Distributor &d, quant::AtomicAddOp atomic) {
  return emitAtomic(d, atomic, LLVM::AtomicBinOp::add);
}

Value bytesOf(Distributor &d, Value elements, Type elem) {
  int64_t bits = quant::storageBits(elem);
  if (bits == 4)
    return d.e.make<arith::ShRSIOp>(elements, d.e.i64(1));
  return d.e.make<arith::MulIOp>(elements, d.e.i64(bits / 8));
}

static Emitted emitLoadScalar(Distributor &d, quant::LoadScalarOp op) {
  const MemRefDesc *source = d.memref(op.getMemref());
  if (!source)
    return op.emitOpError("memref is not a kernel argument");
  Type type = op.getResult().getType();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  Value inside, place = d.e.i64(0);
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    Value at = d.e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(index));
    // Unsigned: what is before the memref is outside, too.
    Value in = d.e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, at,
                                       source->sizes[dim]);
    inside = inside ? Value(d.e.make<arith::AndIOp>(inside, in)) : in;
    place = d.e.make<arith::AddIOp>(
        place, d.e.make<arith::MulIOp>(at, source->strides[dim]));
  }
  if (!inside) {
    d.set(op.getResult(), d.e.make<LLVM::LoadOp>(type, source->ptr, bytes));
    return success();
  }
  Value at = d.e.make<LLVM::GEPOp>(
      source->ptr.getType(), d.b.getI8Type(), source->ptr,
      ArrayRef<LLVM::GEPArg>{bytesOf(d, place, source->elem)});
  auto read = d.e.make<scf::IfOp>(TypeRange{type}, inside,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder b = read.getThenBodyBuilder();
  scf::YieldOp::create(
      b, d.e.loc,
      LLVM::LoadOp::create(b, d.e.loc, type, at, bytes).getResult());
  b = read.getElseBodyBuilder();
  scf::YieldOp::create(
      b, d.e.loc,
      arith::ConstantOp::create(b, d.e.loc, b.getZeroAttr(type)).getResult());
  d.set(op.getResult(), read.getResult(0));
  return success();
}

/// The lines of a tile, one after the other.
static Emitted emitPrefetch(Distributor &d, quant::PrefetchOp op) {
  const MemRefDesc *from = d.memref(op.getMemref());
  if (!from)
    return op.emitOpError("memref is not a kernel argument");
  if (!d.simd)
    return success();
  Value first = d.e.i64(0);
  for (auto [index, stride] : llvm::zip(op.getIndices(), from->strides))
    first = d.e.make<arith::AddIOp>(
        first, d.e.make<arith::MulIOp>(
                   d.e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(index)),
                   stride));
  int64_t rowBytes = std::max<int64_t>(
      1, op.getShape().back() * quant::storageBits(from->elem) / 8);
  int64_t rows = op.getShape().size() == 2 ? op.getShape().front() : 1;
  for (int64_t row = 0; row < rows; ++row) {
    Value start =
        row == 0 ? first
                 : d.e.make<arith::AddIOp>(
                       first,
                       d.e.make<arith::MulIOp>(from->strides[0], d.e.i64(row)));
    Value begin = bytesOf(d, start, from->elem);
    for (int64_t byte = 0; byte < rowBytes; byte += kLineBytes) {
      Value at = d.e.make<arith::AddIOp>(begin, d.e.i64(byte));
      Value line = d.e.make<LLVM::GEPOp>(from->ptr.getType(), d.b.getI8Type(),
                                         from->ptr, ArrayRef<LLVM::GEPArg>{at});
      // The first cache has few lines on their way at once, which what is
      // stored past the caches takes, too.
      constexpr uint32_t read = 0, secondCache = 2, data = 1;
      d.e.make<LLVM::Prefetch>(line, read, secondCache, data);
    }
  }
  return success();
}

/// One thread adds, and the others of a block hear of it through shared memory.
static Emitted emitFetchAdd(Distributor &d, quant::FetchAddOp op) {
  const MemRefDesc *counter = d.memref(op.getMemref());
  if (!counter)
    return op.emitOpError("memref is not a kernel argument");
  Type i64 = d.b.getI64Type();
  Value amount = d.e.make<arith::IndexCastOp>(i64, d.get(op.getAmount()));
  auto add = [&]() -> Value {
    return d.e.make<LLVM::AtomicRMWOp>(LLVM::AtomicBinOp::add, counter->ptr,
                                       amount, LLVM::AtomicOrdering::monotonic);
  };
  if (d.simd) {
    d.set(op.getResult(), d.toIndex(add()));
    return success();
  }
  Value place = d.e.shared(sizeof(int64_t));
  Value first =
      d.e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, d.e.tid, d.e.i32(0));
  {
    auto branch = d.e.make<scf::IfOp>(TypeRange{}, first, false);
    OpBuilder::InsertionGuard guard(d.b);
    d.b.setInsertionPointToStart(branch.thenBlock());
    d.e.make<LLVM::StoreOp>(add(), place, /*alignment=*/8);
  }
  d.e.barrier();
  Value before = d.e.make<LLVM::LoadOp>(i64, place, /*alignment=*/8);
  d.e.barrier();
  d.set(op.getResult(), d.toIndex(before));
  return success();
}

/// Where a tile lies whose rows another one names. `rows` is kept by the
/// caller.
static FailureOr<TileAccess>
rowAccess(Distributor &d, Operation *op, Value memref, Value rows, Value column,
          const TileLayout &layout, const TileLayout &rowsLayout,
          const Registers &held, ArrayRef<int64_t> shape) {
  const MemRefDesc *desc = d.memref(memref);
  if (!desc)
    return op->emitOpError("memref is not a kernel argument");
  TileAccess a{*desc, layout, llvm::to_vector(shape), {}, {}, {}};
  Value at = d.e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(column));
  a.index = {d.e.i64(0), at};
  a.divisor = {1, quant::divisorOf(column)};
  a.mayBeNegative = {false, !quant::isNonNegative(column)};
  a.rows = &held;
  a.rowsLayout = &rowsLayout;
  return a;
}

static Emitted emitGather(Distributor &d, quant::GatherOp op) {
  RankedTensorType type = d.tile(op.getResult());
  TileLayout layout = d.layout(op.getResult()),
             rowsLayout = d.layout(op.getRows());
  Registers rows = d.regs(op.getRows());
  auto a = rowAccess(d, op, op.getMemref(), op.getRows(), op.getColumn(),
                     layout, rowsLayout, rows, type.getShape());
  if (failed(a))
    return failure();
  FailureOr<Registers> v = d.e.load(*a);
  if (failed(v))
    return op.emitOpError("cannot be loaded in layout ") << type;
  d.setRegs(op.getResult(), *v);
  return success();
}

static Emitted emitScatter(Distributor &d, quant::ScatterOp op) {
  RankedTensorType type = d.tile(op.getTile());
  TileLayout layout = d.layout(op.getTile()),
             rowsLayout = d.layout(op.getRows());
  Registers rows = d.regs(op.getRows());
  auto a = rowAccess(d, op, op.getMemref(), op.getRows(), op.getColumn(),
                     layout, rowsLayout, rows, type.getShape());
  if (failed(a))
    return failure();
  if (failed(d.e.store(*a, d.regs(op.getTile()))))
    return op.emitOpError("cannot be stored in layout ") << type;
  return success();
}

/// What exists of the coordinates before `limit`. Differences to offsets of
/// other limits may wrap.
static Value validPart(Distributor &d, Value limit, Value size) {
  Value v = d.e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(limit));
  std::optional<int64_t> most = quant::largest(limit);
  if (most && *most <= quant::kMostExtent)
    return v;
  if (!most)
    v = d.e.make<arith::MaxSIOp>(v, d.e.i64(0));
  return d.e.make<arith::MinSIOp>(v, size);
}

/// What an order of scales has room for in a matrix whose extents nobody has
/// checked: each of its blocks has all of its elements in the matrix.
static MemRefDesc wholeBlocks(Distributor &d, const MemRefDesc &mem,
                              quant::ScaleLayout order) {
  MemRefDesc whole = mem;
  const int64_t step[2] = {quant::paddedRows(order), 4};
  for (int64_t dim = 0; dim < 2; ++dim)
    whole.sizes[dim] =
        d.e.make<arith::AndIOp>(mem.sizes[dim], d.e.i64(-step[dim]));
  return whole;
}

static Emitted emitCopy(Distributor &d, quant::StoreOp store) {
  auto load = store.getTile().getDefiningOp<quant::LoadOp>();
  if (d.simd || !load || copyOf(load) != store)
    return std::nullopt;
  TileLayout l = d.layout(load.getResult());
  ArrayRef<int64_t> shape = d.tile(load.getResult()).getShape();
  auto from = access(d, load, load.getMemref(), load.getIndices(), l, shape,
                     load.getInBounds()),
       to = access(d, store, store.getMemref(), store.getIndices(), l, shape,
                   store.getInBounds());
  if (failed(from) || failed(to))
    return failure();
  if (failed(d.e.copy(*from, *to)))
    return store.emitOpError("cannot copy in layout ") << store.getTile();
  return success();
}

static Emitted emitAwaitCopies(Distributor &d, quant::AwaitCopiesOp) {
  if (!d.simd)
    gpu::awaitCopies(d.b, d.e.loc);
  return success();
}

/// Whether the program is the first of its grid.
static Value isFirstProgram(Distributor &d) {
  Value first;
  for (quant::Dim dim : {quant::Dim::x, quant::Dim::y, quant::Dim::z}) {
    Value id = d.programIndex(dim, Distributor::Counted::Id);
    first = first ? Value(d.e.make<arith::OrIOp>(first, id)) : id;
  }
  Value zero = d.e.make<arith::ConstantIndexOp>(0);
  return d.e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, first, zero);
}

static Emitted emitStore(Distributor &d, quant::StoreOp store) {
  OpBuilder::InsertionGuard guard(d.b);
  if (store.getOnce()) {
    auto branch =
        d.e.make<scf::IfOp>(TypeRange{}, isFirstProgram(d), /*else=*/false);
    d.b.setInsertionPointToStart(branch.thenBlock());
  }
  Value tile = store.getTile();
  TileLayout l = d.layout(tile);
  RankedTensorType type = d.tile(tile);
  Registers v = d.regs(tile);
  if (store.getTotal()) {
    if (*store.getTotal() >= d.totals.size())
      return store.emitOpError("has a total, expected a GPU program of tiles");
    v = emitTotal(d, store, std::move(v));
  }
  auto a = access(d, store, store.getMemref(), store.getIndices(), l,
                  type.getShape(), store.getInBounds());
  if (failed(a))
    return failure();
  if (!store.getValid().empty()) {
    SmallVector<Value> bound;
    for (auto [limit, at, size] :
         llvm::zip(store.getValid(), a->index, a->mem.sizes))
      bound.push_back(d.e.make<arith::SubIOp>(validPart(d, limit, size), at));
    v = d.e.zeroPast(v, type.getElementType(), l, bound);
  }
  quant::ScaleLayout order = store.getScaleLayout();
  LogicalResult stored = success();
  if (order == quant::ScaleLayout::linear) {
    stored = d.e.store(*a, v);
  } else if (!quant::isSliced(store.getMemref())) {
    stored = d.e.storeScales(*a, v, order);
  } else {
    MemRefDesc whole = wholeBlocks(d, a->mem, order);
    TileAccess part{whole,    l,          llvm::to_vector(type.getShape()),
                    a->index, a->divisor, a->mayBeNegative};
    stored = d.e.storeScales(part, v, order);
  }
  if (failed(stored))
    return store.emitOpError("cannot be stored in layout ") << type;
  return success();
}

/// Whether chunks of the memory may change places: rows are whole groups of
/// them.
static bool canSwizzle(MemRefType type) {
  int64_t bits = quant::storageBits(type.getElementType());
  return type.getRank() == 2 && bits >= 8 &&
         type.getDimSize(1) * bits / 8 % kSwizzledBytes == 0;
}

/// Memory that a kernel takes for itself.
static Emitted emitScratch(Distributor &d, quant::ScratchOp op) {
  auto type = cast<MemRefType>(op.getResult().getType());
  MemRefDesc desc;
  desc.elem = type.getElementType();
  desc.align = desc.strideAlign = 64;
  desc.pairs = op.getPairs() && d.rules.keepsPairs();
  desc.swizzled = !d.simd && canSwizzle(type);
  auto [strides, offset] = type.getStridesAndOffset();
  desc.staticSizes.assign(type.getShape().begin(), type.getShape().end());
  desc.staticStrides.assign(strides.begin(), strides.end());
  for (int64_t size : desc.staticSizes)
    desc.sizes.push_back(d.e.i64(size));
  for (int64_t stride : desc.staticStrides)
    desc.strides.push_back(d.e.i64(stride));
  desc.ptr = d.scratch(llvm::divideCeil(
      type.getNumElements() * quant::storageBits(desc.elem), 8));
  d.setMemref(op.getResult(), std::move(desc));
  return success();
}

/// A pointer to where the view begins, and no rows where that is nowhere.
static Emitted emitView(Distributor &d, quant::ViewOp view) {
  const MemRefDesc *of = d.memref(view.getMemref());
  if (!of)
    return view.emitOpError("memref is not a kernel argument");
  MemRefDesc desc = *of;
  desc.sizes.clear(), desc.strides.clear();
  desc.staticSizes.clear(), desc.staticStrides.clear();
  ArrayRef<int64_t> dims = view.getDims();
  Value start = d.e.i64(0), inside;
  size_t next = 0;
  for (int64_t dim = 0, rank = of->sizes.size(); dim < rank; ++dim) {
    if (llvm::is_contained(dims, dim)) {
      desc.sizes.push_back(of->sizes[dim]);
      desc.strides.push_back(of->strides[dim]);
      desc.staticSizes.push_back(of->staticSizes[dim]);
      desc.staticStrides.push_back(of->staticStrides[dim]);
      continue;
    }
    Value at = d.e.make<arith::IndexCastOp>(d.b.getI64Type(),
                                            d.get(view.getIndices()[next++]));
    // Unsigned: what is before the memref is outside, too.
    Value in =
        d.e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, at, of->sizes[dim]);
    inside = inside ? Value(d.e.make<arith::AndIOp>(inside, in)) : in;
    start = d.e.make<arith::AddIOp>(
        start, d.e.make<arith::MulIOp>(at, of->strides[dim]));
    int64_t stride = of->staticStrides[dim];
    int64_t known = ShapedType::isDynamic(stride)
                        ? of->strideAlign
                        : stride * quant::storageBits(of->elem) / 8;
    desc.align = std::gcd(desc.align, std::max<int64_t>(1, known));
  }
  if (inside) {
    start = d.e.make<arith::SelectOp>(inside, start, d.e.i64(0));
    desc.ptr = d.e.make<LLVM::GEPOp>(
        of->ptr.getType(), d.b.getI8Type(), of->ptr,
        ArrayRef<LLVM::GEPArg>{bytesOf(d, start, of->elem)});
    desc.sizes.front() =
        d.e.make<arith::SelectOp>(inside, desc.sizes.front(), d.e.i64(0));
    desc.staticSizes.front() = ShapedType::kDynamic;
    desc.large = desc.largeLines = {};
  }
  d.setMemref(view.getResult(), std::move(desc));
  return success();
}

/// What is known to divide an offset of `elements`, in bytes.
static int64_t bytesDividing(Value elements, Type elem) {
  int64_t divisor = quant::divisorOf(elements);
  return divisor ? std::max<int64_t>(1, divisor * quant::storageBits(elem) / 8)
                 : quant::kMaxDivisor;
}

static Value clamped(Distributor &d, Value v, Value least, Value most) {
  return d.e.make<arith::MaxSIOp>(d.e.make<arith::MinSIOp>(v, most), least);
}

static Value asI64(Distributor &d, Value index) {
  return d.e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(index));
}

/// A pointer to the first element, and as many as the memref has from there on.
static Emitted emitSlice(Distributor &d, quant::SliceOp slice) {
  const MemRefDesc *of = d.memref(slice.getMemref());
  if (!of)
    return slice.emitOpError("memref is not a kernel argument");
  MemRefDesc desc = *of;
  desc.largeLines = {};
  int64_t dim = slice.getDim(), stride = of->staticStrides[dim];
  int64_t divisor = bytesDividing(slice.getStart(), of->elem);
  if (ShapedType::isDynamic(stride))
    divisor = of->strideAlign;
  else
    divisor *= stride;
  desc.align = std::gcd(desc.align, std::max<int64_t>(1, divisor));
  // The count ends where it would before a start below 0 is moved. Past the
  // largest number it goes on to the end.
  Value zero = d.e.i64(0), size = of->sizes[dim],
        start = asI64(d, slice.getStart()), count = asI64(d, slice.getCount());
  auto select = [&](arith::CmpIPredicate is, Value a, Value b, Value then,
                    Value orelse) {
    Value condition = d.e.make<arith::CmpIOp>(is, a, b);
    return d.e.make<arith::SelectOp>(condition, then, orelse).getResult();
  };
  Value end = d.e.make<arith::AddIOp>(start, count);
  end = select(arith::CmpIPredicate::slt, end, start, size, end);
  end = select(arith::CmpIPredicate::sle, count, zero, start, end);
  start = clamped(d, start, zero, size);
  desc.sizes[dim] =
      d.e.make<arith::SubIOp>(clamped(d, end, start, size), start);
  desc.staticSizes[dim] = ShapedType::kDynamic;
  Value place = d.e.make<arith::MulIOp>(start, of->strides[dim]);
  desc.ptr = d.e.make<LLVM::GEPOp>(
      of->ptr.getType(), d.b.getI8Type(), of->ptr,
      ArrayRef<LLVM::GEPArg>{bytesOf(d, place, of->elem)});
  d.setMemref(slice.getResult(), std::move(desc));
  return success();
}

/// A pointer to the first element, and no rows where some are outside.
static Emitted emitMatrix(Distributor &d, quant::MatrixOp matrix) {
  const MemRefDesc *of = d.memref(matrix.getMemref());
  if (!of)
    return matrix.emitOpError("memref is not a kernel argument");
  auto [strides, offset] = matrix.getResult().getType().getStridesAndOffset();
  MemRefDesc desc = *of;
  desc.largeLines = {};
  bool nibbles = quant::storageBits(of->elem) == 4;
  desc.staticSizes.assign(matrix.getResult().getType().getShape().begin(),
                          matrix.getResult().getType().getShape().end());
  desc.staticStrides.assign(strides.begin(), strides.end());
  desc.align = std::gcd(desc.align, bytesDividing(matrix.getStart(), of->elem));
  // No product of such numbers wraps.
  Value most = d.e.i64(std::numeric_limits<int32_t>::max()), zero = d.e.i64(0);
  Value start = asI64(d, matrix.getStart()),
        rows = clamped(d, asI64(d, matrix.getRows()), zero, most), cols, step;
  if (Value given = matrix.getCols()) {
    cols = step = clamped(d, asI64(d, given), zero, most);
    int64_t bytes = bytesDividing(given, of->elem);
    desc.strideAlign = bytes & -bytes;
    if (nibbles)
      step = d.e.make<arith::AndIOp>(d.e.make<arith::AddIOp>(cols, d.e.i64(1)),
                                     d.e.i64(~int64_t(1)));
  } else {
    cols = d.e.i64(desc.staticSizes.back());
    step = d.e.i64(strides.front());
  }
  Value room = d.e.make<arith::SubIOp>(of->sizes.front(), start);
  Value inside = d.e.make<arith::AndIOp>(
      d.e.make<arith::CmpIOp>(arith::CmpIPredicate::sge, start, zero),
      d.e.make<arith::CmpIOp>(arith::CmpIPredicate::sle,
                              d.e.make<arith::MulIOp>(rows, step), room));
  if (nibbles)
    inside = d.e.make<arith::AndIOp>(
        inside, d.e.make<arith::CmpIOp>(
                    arith::CmpIPredicate::eq,
                    d.e.make<arith::AndIOp>(start, d.e.i64(1)), zero));
  start = d.e.make<arith::SelectOp>(inside, start, zero);
  rows = d.e.make<arith::SelectOp>(inside, rows, zero);
  desc.sizes.assign({rows, cols});
  desc.strides.assign({step, d.e.i64(1)});
  desc.ptr = d.e.make<LLVM::GEPOp>(
      of->ptr.getType(), d.b.getI8Type(), of->ptr,
      ArrayRef<LLVM::GEPArg>{bytesOf(d, start, of->elem)});
  d.setMemref(matrix.getResult(), std::move(desc));
  return success();
}

static Emitted emitDim(Distributor &d, memref::DimOp dim) {
  const MemRefDesc *desc = d.memref(dim.getSource());
  std::optional<int64_t> i = dim.getConstantIndex();
  if (!desc || !i)
    return dim.emitOpError("expected a kernel argument and a constant");
  d.set(dim.getResult(), d.toIndex(desc->sizes[*i]));
  return success();
}

/// The same memory, of extents that are known.
static Emitted emitCast(Distributor &d, memref::CastOp cast) {
  const MemRefDesc *of = d.memref(cast.getSource());
  auto type = dyn_cast<MemRefType>(cast.getType());
  if (!of || !type)
    return cast.emitOpError("expected a kernel argument and its rank");
  MemRefDesc desc = *of;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (!ShapedType::isDynamic(extent)) {
      desc.staticSizes[dim] = extent;
      desc.sizes[dim] = d.e.i64(extent);
    }
  d.setMemref(cast.getResult(), std::move(desc));
  return success();
}

void addMemoryOps(OpTable &table) {
  table.add(emitLoad);
  table.add(emitCopy);
  table.add(emitStore);
  table.add(emitAwaitCopies);
  table.add(emitAtomicMax);
  table.add(emitAtomicAdd);
  table.add(emitLoadScalar);
  table.add(emitPrefetch);
  table.add(emitFetchAdd);
  table.add(emitScratch);
  table.add(emitDim);
  table.add(emitCast);
  table.add(emitView);
  table.add(emitSlice);
  table.add(emitMatrix);
  table.add(emitGather);
  table.add(emitScatter);
}

} // namespace dither::transforms
