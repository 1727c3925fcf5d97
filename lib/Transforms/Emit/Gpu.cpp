//===- Gpu.cpp - Operations that GPUs alone have --------------------------===//

#include "Emit/Gpu.h"
#include "Layouts/TileTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace dither::transforms::gpu {

/// Address space of distributed shared memory: that of another block.
static constexpr unsigned kSharedCluster = 7;

static Value constant(OpBuilder &b, Location loc, int32_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

/// All lanes of a warp.
static Value everyLane(OpBuilder &b, Location loc) {
  return constant(b, loc, -1);
}

void barrier(OpBuilder &b, Location loc) { NVVM::Barrier0Op::create(b, loc); }
bool isBarrier(Operation *op) { return isa<NVVM::Barrier0Op>(op); }

void syncWarp(OpBuilder &b, Location loc) {
  NVVM::SyncWarpOp::create(b, loc, everyLane(b, loc));
}
bool isSyncWarp(Operation *op) { return isa<NVVM::SyncWarpOp>(op); }

void syncCluster(OpBuilder &b, Location loc) {
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

Value threadId(OpBuilder &b, Location loc) {
  return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
}

Value clusterRank(OpBuilder &b, Location loc) {
  return NVVM::BlockInClusterIdXOp::create(b, loc, b.getI32Type());
}

Value programNumber(OpBuilder &b, Location loc, unsigned dim, bool count,
                    bool clusters) {
  Type t = b.getI32Type();
  if (dim == 0 && clusters)
    return count ? Value(NVVM::ClusterDimXOp::create(b, loc, t))
                 : Value(NVVM::ClusterIdXOp::create(b, loc, t));
  if (count)
    return dim == 0   ? Value(NVVM::GridDimXOp::create(b, loc, t))
           : dim == 1 ? Value(NVVM::GridDimYOp::create(b, loc, t))
                      : Value(NVVM::GridDimZOp::create(b, loc, t));
  return dim == 0   ? Value(NVVM::BlockIdXOp::create(b, loc, t))
         : dim == 1 ? Value(NVVM::BlockIdYOp::create(b, loc, t))
                    : Value(NVVM::BlockIdZOp::create(b, loc, t));
}

Value sharedOfBlock(OpBuilder &b, Location loc, Value pointer, Value rank) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedCluster);
  return NVVM::MapaOp::create(b, loc, type, pointer, rank);
}

Value shuffle(OpBuilder &b, Location loc, Value word, Value lane, Shuffle kind,
              int64_t kept) {
  // The segments of PTX are lanes that are alike in any bits of their numbers.
  Value all = everyLane(b, loc);
  Value segment = constant(b, loc, kept << 8 | (kWarpLanes - 1));
  return NVVM::ShflOp::create(b, loc, word.getType(), all, word, lane, segment,
                              kind == Shuffle::Xor ? NVVM::ShflKind::bfly
                                                   : NVVM::ShflKind::idx,
                              UnitAttr());
}

Value maximumOfWarp(OpBuilder &b, Location loc, Value word) {
  return NVVM::ReduxOp::create(b, loc, word.getType(), word,
                               NVVM::ReduxKind::UMAX, everyLane(b, loc));
}

/// An instruction; without `effects` one that takes place where its result is
/// needed, else as often as it is written.
static LLVM::InlineAsmOp assembly(OpBuilder &b, Location loc, TypeRange results,
                                  ValueRange operands, const Twine &text,
                                  StringRef constraints, bool effects) {
  return LLVM::InlineAsmOp::create(
      b, loc, results, operands, text.str(), constraints, effects,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

Value permuteBytes(OpBuilder &b, Location loc, Value low, Value high,
                   unsigned selector) {
  return assembly(b, loc, b.getI32Type(), {low, high},
                  "prmt.b32 $0, $1, $2, 0x" + Twine::utohexstr(selector) + ";",
                  "=r,r,r", /*effects=*/false)
      .getResult(0);
}

Value maximaOfHalves(OpBuilder &b, Location loc, Value x, Value y, Type elem,
                     bool xorsign) {
  StringRef sign = xorsign ? "xorsign.abs." : "",
            type = elem.isBF16() ? "bf16x2" : "f16x2";
  return assembly(b, loc, b.getI32Type(), {x, y},
                  "max." + sign + type + " $0, $1, $2;", "=r,r,r",
                  /*effects=*/false)
      .getResult(0);
}

void copyAsync(OpBuilder &b, Location loc, Value to, Value from, int64_t bytes,
               bool past) {
  NVVM::CpAsyncOp::create(b, loc, to, from, bytes,
                          past ? NVVM::LoadCacheModifierKind::CG
                               : NVVM::LoadCacheModifierKind::CA,
                          Value());
}

void awaitCopies(OpBuilder &b, Location loc) {
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
  NVVM::CpAsyncWaitGroupOp::create(b, loc, 0);
}

Value loadRelaxed(OpBuilder &b, Location loc, Value pointer) {
  return assembly(b, loc, b.getI32Type(), pointer,
                  "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l",
                  /*effects=*/true)
      .getResult(0);
}

void storeRelaxed(OpBuilder &b, Location loc, Value word, Value pointer) {
  assembly(b, loc, {}, {pointer, word}, "st.relaxed.gpu.global.b32 [$0], $1;",
           "l,r", /*effects=*/true);
}

void prefetch(OpBuilder &b, Location loc, Value pointer) {
  // LLVM has an operation for it, for sm_90 and later alone.
  assembly(b, loc, {}, pointer, "prefetch.global.L2 [$0];", "l",
           /*effects=*/true);
}

} // namespace dither::transforms::gpu
