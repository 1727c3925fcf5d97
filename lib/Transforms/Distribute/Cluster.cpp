//===- Cluster.cpp - Programs that are clusters of thread blocks ----------===//

#include "Distribute/Distribute.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using dither::quant::ReduceKind;

namespace dither::transforms {

/// Distributed shared memory of another block.
static constexpr unsigned kSharedCluster = 7;

static Emitted emitClusterRank(Distributor &d, quant::ClusterRankOp op) {
  d.set(op.getResult(),
        d.e.make<arith::IndexCastUIOp>(d.b.getIndexType(), d.e.clusterRank()));
  return success();
}

/// How many of the first `columns` columns are in the part of this block: of
/// whole periods a run each, and of the rest what reaches past the runs of the
/// blocks before.
static Value columnsOfPart(Emitter &e, Value columns, int64_t period,
                           int64_t run, Value first) {
  Value whole = e.make<arith::MulIOp>(
      e.make<arith::DivUIOp>(columns, e.i64(period)), e.i64(run));
  Value rest = e.make<arith::SubIOp>(
      e.make<arith::RemUIOp>(columns, e.i64(period)), first);
  rest = e.make<arith::MaxSIOp>(e.i64(0),
                                e.make<arith::MinSIOp>(rest, e.i64(run)));
  return e.make<arith::AddIOp>(whole, rest);
}

static Emitted emitClusterPart(Distributor &d, quant::ClusterPartOp op) {
  const MemRefDesc *of = d.memref(op.getMemref());
  if (!of)
    return op.emitOpError("memref is not a kernel argument");
  MemRefDesc desc = *of;
  desc.run = op.getRun();
  desc.period = op.getRun() * op.getBlocks();
  Value rank = d.e.make<arith::ExtUIOp>(d.b.getI64Type(), d.e.clusterRank());
  desc.first = d.e.make<arith::MulIOp>(rank, d.e.i64(desc.run));
  desc.columns = of->sizes.back();
  int64_t columns = op.getResult().getType().getShape().back();
  desc.staticSizes.back() = columns;
  desc.sizes.back() =
      ShapedType::isDynamic(columns)
          ? columnsOfPart(d.e, desc.columns, desc.period, desc.run, desc.first)
          : d.e.i64(columns);
  d.setMemref(op.getResult(), std::move(desc));
  return success();
}

static Value combine(Emitter &e, ReduceKind kind, Value a, Value c) {
  switch (kind) {
  case ReduceKind::sum:
    return e.make<arith::AddFOp>(a, c);
  case ReduceKind::min:
    return e.make<arith::MinNumFOp>(a, c);
  case ReduceKind::max:
  case ReduceKind::amax:
    return e.make<arith::MaxNumFOp>(a, c);
  }
  llvm_unreachable("all kinds are above");
}

/// Waits for all threads of all blocks of the cluster, and for what they wrote.
static void clusterBarrier(Emitter &e) {
  NVVM::ClusterArriveOp::create(e.b, e.loc, e.b.getUnitAttr());
  NVVM::ClusterWaitOp::create(e.b, e.loc, e.b.getUnitAttr());
}

/// In pairs of neighbours, then pairs of these.
static Value combineAll(Emitter &e, ReduceKind kind, SmallVector<Value> all) {
  for (; all.size() > 1; all.truncate(all.size() / 2))
    for (size_t i = 0; i < all.size() / 2; ++i)
      all[i] = combine(e, kind, all[2 * i], all[2 * i + 1]);
  return all.front();
}

/// Each block has a place for the element of every block. Between two barriers
/// of the cluster they write, one thread to each block. The first barrier also
/// waits for those that still read what was written before, or have not begun.
static Emitted emitClusterReduce(Distributor &d, quant::ClusterReduceOp op) {
  Emitter &e = d.e;
  MLIRContext *ctx = d.b.getContext();
  const Registers &in = d.regs(op.getSource());
  int64_t blocks = op.getBlocks();
  if (d.simd || blocks != e.clusterBlocks || in.size() != 1)
    return op.emitOpError("expected a GPU program that is a cluster of ")
           << blocks << " blocks, and one element";
  constexpr int64_t bytes = sizeof(float);
  Value places = d.clusterPlaces;
  auto at = [&](Value base, LLVM::GEPArg place) -> Value {
    return e.make<LLVM::GEPOp>(base.getType(), d.b.getF32Type(), base,
                               ArrayRef<LLVM::GEPArg>{place});
  };
  clusterBarrier(e);
  {
    Value writes =
        e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, e.tid, e.i32(blocks));
    auto branch = e.make<scf::IfOp>(TypeRange{}, writes, false);
    OpBuilder::InsertionGuard guard(d.b);
    d.b.setInsertionPointToStart(branch.thenBlock());
    Value mine = at(places, LLVM::GEPArg(e.clusterRank()));
    Value theirs = e.make<NVVM::MapaOp>(
        LLVM::LLVMPointerType::get(ctx, kSharedCluster), mine, e.tid);
    e.make<LLVM::StoreOp>(in.front(), theirs, bytes);
  }
  clusterBarrier(e);
  SmallVector<Value> all;
  for (int64_t rank = 0; rank < blocks; ++rank)
    all.push_back(e.make<LLVM::LoadOp>(
        d.b.getF32Type(), at(places, LLVM::GEPArg(int32_t(rank))), bytes));
  d.setRegs(op.getResult(), {combineAll(e, op.getKind(), std::move(all))});
  return success();
}

/// Words that a lane moves at once to or from a row that blocks share.
static int64_t wordsAtOnce(const TileLayout &layout) {
  return std::min<int64_t>(4, int64_t(1) << layout.contiguousBits());
}

int64_t sharedRowBytes(Distributor &d, quant::ClusterShareOp op) {
  TileLayout layout = d.layout(op.getSources().front());
  return layout.base[1] * layout.repeats[1] * sizeof(float);
}

/// Where a row that blocks share has a column. Lanes with more words than they
/// move at once would meet in the banks: what is 32 words further on changes
/// places with its neighbours.
static Value sharedColumn(Emitter &e, const TileLayout &layout, Value row,
                          Value column) {
  int64_t run = int64_t(1) << layout.contiguousBits();
  if (int64_t spread = run / wordsAtOnce(layout) - 1;
      spread && layout.base[1] * layout.repeats[1] % run == 0) {
    Value mix = e.make<arith::AndIOp>(e.make<arith::ShRUIOp>(column, e.i32(5)),
                                      e.i32(spread));
    column =
        e.make<arith::XOrIOp>(column, e.make<arith::ShLIOp>(mix, e.i32(2)));
  }
  return e.make<LLVM::GEPOp>(row.getType(), e.b.getF32Type(), row,
                             ArrayRef<LLVM::GEPArg>{column});
}

/// Each block writes its rows to `clusterRows`, and says so.
static Emitted emitClusterShare(Distributor &d, quant::ClusterShareOp op) {
  Emitter &e = d.e;
  if (e.clusterBlocks < 2)
    return op.emitOpError("expected a GPU program that is a cluster");
  TileLayout layout = d.layout(op.getSources().front());
  Type f32 = d.b.getF32Type();
  int64_t words = wordsAtOnce(layout), bytes = sharedRowBytes(d, op);
  for (auto [i, source, shared] :
       llvm::enumerate(op.getSources(), op.getShared())) {
    Value row = e.make<LLVM::GEPOp>(
        d.clusterRows.getType(), d.b.getI8Type(), d.clusterRows,
        ArrayRef<LLVM::GEPArg>{int32_t(int64_t(i) * bytes)});
    const Registers &in = d.regs(source);
    for (size_t r = 0; r < in.size(); r += words) {
      Value v = in[r];
      if (words > 1)
        v = e.make<vector::FromElementsOp>(VectorType::get({words}, f32),
                                           ArrayRef(in).slice(r, words));
      e.make<LLVM::StoreOp>(
          v, sharedColumn(e, layout, row, e.coordinate(layout, 1, r)),
          words * sizeof(float));
    }
    d.setRegs(shared, {row});
  }
  NVVM::ClusterArriveOp::create(d.b, e.loc, d.b.getUnitAttr());
  return success();
}

/// Each block reads its part of all rows. It begins when all have written them,
/// and ends when all have read what they share.
static Emitted emitClusterReduceScatter(Distributor &d,
                                        quant::ClusterReduceScatterOp op) {
  Emitter &e = d.e;
  int64_t blocks = op.getBlocks();
  auto share = op.getSource().getDefiningOp<quant::ClusterShareOp>();
  if (!share || share->getBlock() != op->getBlock() ||
      blocks != e.clusterBlocks)
    return op.emitOpError("expected what blocks of a cluster of ")
           << blocks << " share";
  bool isFirst = llvm::none_of(share->getUsers(), [&](Operation *user) {
    return user->isBeforeInBlock(op);
  });
  bool isLast = llvm::none_of(share->getUsers(), [&](Operation *user) {
    return op->isBeforeInBlock(user);
  });
  if (isFirst)
    NVVM::ClusterWaitOp::create(d.b, e.loc, d.b.getUnitAttr());
  TileLayout from = d.layout(op.getSource()), to = d.layout(op.getResult());
  Type f32 = d.b.getF32Type();
  SmallVector<Value> rows;
  for (int64_t rank = 0; rank < blocks; ++rank)
    rows.push_back(e.make<NVVM::MapaOp>(
        LLVM::LLVMPointerType::get(d.b.getContext(), kSharedCluster),
        d.regs(op.getSource()).front(), e.i32(rank)));
  int64_t columns = d.tile(op.getResult()).getDimSize(1),
          words = wordsAtOnce(to);
  while (columns % words)
    words /= 2;
  Value first = e.make<arith::MulIOp>(e.clusterRank(), e.i32(columns));
  Registers out;
  for (int64_t r = 0; r < to.numRegs(); r += words) {
    Value column = e.coordinate(to, 1, r);
    // Lanes that have columns past the end read the last ones.
    if (to.base[1] * to.repeats[1] > columns)
      column = e.make<arith::MinSIOp>(column, e.i32(columns - words));
    column = e.make<arith::AddIOp>(first, column);
    SmallVector<SmallVector<Value>> all(words);
    for (Value row : rows) {
      Type type = words > 1 ? Type(VectorType::get({words}, f32)) : f32;
      Value v = e.make<LLVM::LoadOp>(type, sharedColumn(e, from, row, column),
                                     words * sizeof(float));
      for (int64_t i = 0; i < words; ++i)
        all[i].push_back(words > 1 ? Value(e.make<vector::ExtractOp>(
                                         v, ArrayRef<int64_t>{i}))
                                   : v);
    }
    for (SmallVector<Value> &one : all)
      out.push_back(combineAll(e, op.getKind(), std::move(one)));
  }
  if (isLast)
    clusterBarrier(e);
  d.setRegs(op.getResult(), std::move(out));
  return success();
}

void addClusterOps(OpTable &table) {
  table.add(emitClusterRank);
  table.add(emitClusterPart);
  table.add(emitClusterReduce);
  table.add(emitClusterShare);
  table.add(emitClusterReduceScatter);
}

} // namespace dither::transforms
