//===- Cluster.cpp - Programs that are clusters of thread blocks ----------===//

#include "Distribute/Distribute.h"
#include "Emit/Gpu.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using dither::quant::ReduceKind;

namespace dither::transforms {

static Emitted emitClusterRank(Distributor &d, quant::ClusterRankOp op) {
  if (d.simd || d.e.clusterBlocks < 2)
    return op.emitOpError("expected a GPU program that is a cluster");
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
  if (d.simd || int64_t(op.getBlocks()) != d.e.clusterBlocks)
    return op.emitOpError("expected a GPU program that is a cluster of ")
           << op.getBlocks() << " blocks";
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
  gpu::syncCluster(e.b, e.loc);
  {
    Value writes =
        e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, e.tid, e.i32(blocks));
    auto branch = e.make<scf::IfOp>(TypeRange{}, writes, false);
    OpBuilder::InsertionGuard guard(d.b);
    d.b.setInsertionPointToStart(branch.thenBlock());
    Value mine = at(places, LLVM::GEPArg(e.clusterRank()));
    Value theirs = gpu::sharedOfBlock(e.b, e.loc, mine, e.tid);
    e.make<LLVM::StoreOp>(in.front(), theirs, bytes);
  }
  gpu::syncCluster(e.b, e.loc);
  SmallVector<Value> all;
  for (int64_t rank = 0; rank < blocks; ++rank)
    all.push_back(e.make<LLVM::LoadOp>(
        d.b.getF32Type(), at(places, LLVM::GEPArg(int32_t(rank))), bytes));
  d.setRegs(op.getResult(), {combineAll(e, op.getKind(), std::move(all))});
  return success();
}

void addClusterOps(OpTable &table) {
  table.add(emitClusterRank);
  table.add(emitClusterPart);
  table.add(emitClusterReduce);
}

} // namespace dither::transforms
