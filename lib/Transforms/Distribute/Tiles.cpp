//===- Tiles.cpp - Programs that have several tiles -----------------------===//
//
// A program of a GPU that does all of its kernel for one tile after the other
// (quant.tile_id) stores less of what it sums over them. Each thread keeps the
// sums of tiles, of pairs of them, of pairs of these, and so on, which wait for
// their neighbours: those of a tile in registers where they are few, and the
// others in shared memory that no other thread touches. While a program
// works on a tile, rows of the next one are on their way to L2.
//
//===----------------------------------------------------------------------===//

#include "Distribute/Distribute.h"
#include "Emit/Gpu.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

/// Bytes that one prefetch brings.
static constexpr int64_t kFetchedBytes = 128;

/// Registers of the sums of one tile that a thread has room for: those of 8192
/// columns, of all sums together. dither.ops.column_sum counts on it.
static constexpr int64_t kFewRegisters = 32;

/// Registers of f32 that a thread moves at once to or from shared memory.
static int64_t wordsAtOnce(int64_t registers) {
  return std::min<int64_t>(4, registers & -registers);
}

/// Bytes of a block for one sum that waits.
static int64_t bytesOfSum(Distributor &d, quant::StoreOp store) {
  return d.layout(store.getTile()).numRegs() * sizeof(float) * d.e.numWarps *
         kWarpLanes;
}

/// Makes room for the sums of `source`.
static LogicalResult reserveTotals(Distributor &d, func::FuncOp source) {
  SmallVector<quant::StoreOp> first;
  WalkResult walked = source.walk([&](quant::StoreOp store) {
    if (!store.getTotal())
      return WalkResult::advance();
    first.resize(std::max<size_t>(first.size(), *store.getTotal() + 1));
    quant::StoreOp &known = first[*store.getTotal()];
    if (!known)
      known = store;
    if (d.layout(known.getTile()) == d.layout(store.getTile()))
      return WalkResult::advance();
    store.emitOpError("total ")
        << *store.getTotal() << " has layout " << store.getTile().getType()
        << ", expected that of the other store of it";
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  int64_t ofAll = 0;
  for (quant::StoreOp store : first)
    ofAll += store ? d.layout(store.getTile()).numRegs() : 0;
  for (quant::StoreOp store : first) {
    TotalPlaces &places = d.totals.emplace_back();
    if (!store)
      continue;
    int64_t registers = d.layout(store.getTile()).numRegs(),
            levels = llvm::Log2_64(d.numTiles);
    if (ofAll <= kFewRegisters) {
      // Addresses that LLVM makes registers of.
      Value one = d.e.i64(1), nothing = d.e.splatF(-0.0);
      auto pointer = LLVM::LLVMPointerType::get(d.b.getContext());
      for (int64_t r = 0; r < registers; ++r) {
        places.one.push_back(d.e.make<LLVM::AllocaOp>(pointer, d.b.getF32Type(),
                                                      one, sizeof(float)));
        d.e.make<LLVM::StoreOp>(nothing, places.one.back(), sizeof(float));
      }
      --levels;
    }
    if (levels)
      places.more = d.scratch(levels * bytesOfSum(d, store));
  }
  return success();
}

/// Leaves what is the same for all tiles in the loop. It is mostly what
/// programs at the edges of tensors need, and would take registers from all of
/// them.
static LLVM::LoopAnnotationAttr invariantsInside(MLIRContext *ctx) {
  auto licm = LLVM::LoopLICMAttr::get(ctx, BoolAttr::get(ctx, true), {});
  return LLVM::LoopAnnotationAttr::get(ctx, {}, {}, {}, {}, {}, licm, {}, {},
                                       {}, {}, {}, {}, {}, {}, {});
}

LogicalResult Distributor::emitTiles() {
  Block &body = source.getBody().front();
  auto config = source->getAttrOfType<DictionaryAttr>("quant.config");
  if (auto count = config ? config.getAs<IntegerAttr>("tiles") : IntegerAttr())
    numTiles = count.getInt();
  if (numTiles == 1)
    return emitBlock(body);
  if (failed(reserveTotals(*this, source)))
    return failure();
  Value zero = e.i32(0), one = e.i32(1), count = e.i32(numTiles);
  auto loop = e.make<scf::ForOp>(zero, count, one);
  loop->setAttr("loop_annotation", invariantsInside(b.getContext()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  tileId = loop.getInductionVar();
  if (failed(emitBlock(body)))
    return failure();
  // Exchanges of registers end with a barrier, those through memory do not: the
  // next tile may overwrite what others are to read.
  WalkResult exchanges = source.walk([](Operation *op) {
    return isa<quant::ScratchOp>(op) || gpu::isBarrier(op) ||
                   gpu::isSyncWarp(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (exchanges.wasInterrupted())
    e.barrier();
  return success();
}

/// How many more `v` is for the next tile of a program; nothing if that is not
/// the same for all.
static std::optional<int64_t> perTile(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def)
    return 0;
  if (isa<quant::TileIdOp>(def))
    return 1;
  SmallVector<int64_t> of;
  for (Value operand : def->getOperands()) {
    std::optional<int64_t> one = perTile(operand);
    if (!one)
      return std::nullopt;
    of.push_back(*one);
  }
  if (llvm::all_of(of, [](int64_t n) { return n == 0; }))
    return 0;
  if (isa<arith::IndexCastOp>(def))
    return of[0];
  if (isa<arith::AddIOp>(def))
    return of[0] + of[1];
  if (isa<arith::MulIOp>(def))
    for (unsigned i : {0, 1})
      if (std::optional<int64_t> n = getConstantIntValue(def->getOperand(i));
          n && of[i] == 0)
        return *n * of[1 - i];
  return std::nullopt;
}

void prefetchNextTile(Distributor &d, quant::LoadOp load) {
  Emitter &e = d.e;
  RankedTensorType type = d.tile(load.getResult());
  const MemRefDesc *from = d.memref(load.getMemref());
  if (!quant::isInside(load) || type.getRank() != 2 ||
      type.getDimSize(0) != 1 || from->run || from->sizes.size() != 2)
    return;
  std::optional<int64_t> rows = perTile(load.getIndices()[0]);
  if (!rows || *rows <= 0 || perTile(load.getIndices()[1]) != 0)
    return;
  auto i64 = [&](Value v) -> Value {
    return e.make<arith::IndexCastOp>(d.b.getI64Type(), d.get(v));
  };
  int64_t bits = quant::storageBits(from->elem),
          lines =
              llvm::divideCeil(type.getDimSize(1) * bits, 8 * kFetchedBytes),
          threads = e.numWarps * kWarpLanes;
  Value row = e.make<arith::AddIOp>(i64(load.getIndices()[0]), e.i64(*rows));
  Value exists = e.make<arith::AndIOp>(
      e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, row, from->sizes[0]),
      e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, d.tileId,
                            e.i32(d.numTiles - 1)));
  OpBuilder::InsertionGuard guard(d.b);
  for (int64_t first = 0; first < lines; first += threads) {
    Value line = e.make<arith::AddIOp>(e.tid, e.i32(first));
    Value moves = e.make<arith::AndIOp>(
        exists,
        e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, line, e.i32(lines)));
    auto branch = e.make<scf::IfOp>(TypeRange{}, moves, /*else=*/false);
    OpBuilder::InsertionGuard inside(d.b);
    d.b.setInsertionPointToStart(branch.thenBlock());
    Value place =
        e.make<arith::AddIOp>(e.make<arith::MulIOp>(row, from->strides[0]),
                              i64(load.getIndices()[1]));
    Value inRow = e.make<arith::ExtUIOp>(
        d.b.getI64Type(), e.make<arith::MulIOp>(line, e.i32(kFetchedBytes)));
    Value bytes = e.make<arith::AddIOp>(bytesOf(d, place, from->elem), inRow);
    Value at = e.make<LLVM::GEPOp>(from->ptr.getType(), d.b.getI8Type(),
                                   from->ptr, ArrayRef<LLVM::GEPArg>{bytes});
    gpu::prefetch(d.b, e.loc, at);
  }
}

/// Where a thread keeps register `r` of a sum of 2^`level` tiles, in shared
/// memory.
static Value placeOf(Distributor &d, const TotalPlaces &places, int64_t level,
                     size_t registers, size_t r) {
  Emitter &e = d.e;
  if (!places.one.empty())
    --level;
  // Neighbours in shared memory are of neighbours among threads: no lanes meet
  // in a bank.
  int64_t words = wordsAtOnce(registers), threads = e.numWarps * kWarpLanes;
  Type f32 = d.b.getF32Type();
  Value thread = e.make<arith::MulIOp>(e.tid, e.i32(words));
  Value mine = e.make<LLVM::GEPOp>(places.more.getType(), f32, places.more,
                                   ArrayRef<LLVM::GEPArg>{thread});
  int64_t place = (level * registers + r) * threads;
  return e.make<LLVM::GEPOp>(mine.getType(), f32, mine,
                             ArrayRef<LLVM::GEPArg>{int32_t(place)});
}

/// The branch on whether the tiles before this one have a sum of 2^`level` that
/// waits for that of this one.
static scf::IfOp ifNeighbour(Distributor &d, int64_t level, bool otherwise) {
  Emitter &e = d.e;
  Value bit = e.make<arith::AndIOp>(d.tileId, e.i32(int64_t(1) << level));
  Value has = e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, bit, e.i32(0));
  return e.make<scf::IfOp>(TypeRange{}, has, otherwise);
}

/// Adds a tile to what registers have of the tile before it, or to -0, which
/// leaves all of it: one sum for each tile, where a choice between the two
/// would move what is kept. The insertion point moves to where that is the sum
/// of both.
static void addInRegisters(Distributor &d, ArrayRef<Value> places,
                           MutableArrayRef<Value> tile) {
  Emitter &e = d.e;
  for (auto [at, v] : llvm::zip_equal(places, tile)) {
    Value before = e.make<LLVM::LoadOp>(d.b.getF32Type(), at, sizeof(float));
    v = e.make<arith::AddFOp>(before, v);
    e.make<LLVM::StoreOp>(v, at, sizeof(float));
  }
  auto branch = ifNeighbour(d, /*level=*/0, /*otherwise=*/false);
  d.b.setInsertionPointToStart(branch.thenBlock());
  for (Value at : places)
    e.make<LLVM::StoreOp>(e.splatF(-0.0), at, sizeof(float));
}

Registers emitTotal(Distributor &d, quant::StoreOp store, Registers tile) {
  Emitter &e = d.e;
  const TotalPlaces &places = d.totals[*store.getTotal()];
  bool inRegisters = !places.one.empty();
  if (inRegisters)
    addInRegisters(d, places.one, tile);
  int64_t words = wordsAtOnce(tile.size());
  auto type = VectorType::get({words}, d.b.getF32Type());
  for (int64_t level = inRegisters; int64_t(1) << level < d.numTiles; ++level) {
    auto branch = ifNeighbour(d, level, /*otherwise=*/true);
    d.b.setInsertionPointToStart(branch.elseBlock());
    for (size_t r = 0; r < tile.size(); r += words) {
      Value v =
          e.make<vector::FromElementsOp>(type, ArrayRef(tile).slice(r, words));
      e.make<LLVM::StoreOp>(v, placeOf(d, places, level, tile.size(), r),
                            words * sizeof(float));
    }
    d.b.setInsertionPointToStart(branch.thenBlock());
    for (size_t r = 0; r < tile.size(); r += words) {
      Value at = placeOf(d, places, level, tile.size(), r);
      Value v = e.make<LLVM::LoadOp>(type, at, words * sizeof(float));
      for (int64_t i = 0; i < words; ++i)
        tile[r + i] = e.make<arith::AddFOp>(
            e.make<vector::ExtractOp>(v, ArrayRef<int64_t>{i}), tile[r + i]);
    }
  }
  return tile;
}

static Emitted emitTileId(Distributor &d, quant::TileIdOp op) {
  if (d.numTiles != int64_t(op.getCount()))
    return op.emitOpError("is of ")
           << op.getCount() << " tiles, expected a GPU program of as many";
  d.set(op.getResult(),
        d.e.make<arith::IndexCastUIOp>(d.b.getIndexType(), d.tileId));
  return success();
}

void addTileOps(OpTable &table) { table.add(emitTileId); }

} // namespace dither::transforms
