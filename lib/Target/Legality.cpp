//===- Legality.cpp - What the lowering and the target can do -------------===//
//
// A list of what is allowed, not of what is known to fail: an operation that
// nobody has lowered yet is then an error with a location.
//
//===----------------------------------------------------------------------===//

#include "dither/Target/ModuleTarget.h"
#include "dither/Target/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace dither::target {
#define GEN_PASS_DEF_DITHERCHECKLEGALITY
#define GEN_PASS_DEF_DITHERCHECKRESOURCES
#include "dither/Target/Passes.h.inc"
} // namespace dither::target

using namespace mlir;
using namespace dither;
using dither::target::TargetInfo;

namespace {

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Operations that become a library call, or something else than what they say.
bool isUnlowerableArith(Operation *op) {
  // remf is fmod; NVPTX has an inexact expansion.
  return isa<arith::RemFOp, arith::ScalingExtFOp, arith::ScalingTruncFOp>(op);
}

bool isLowerableMath(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::RoundEvenOp,
             math::SqrtOp, math::TruncOp>(op);
}

bool isLowerableVector(Operation *op) {
  // The order of the lanes is nobody's where they are integers.
  if (auto reduction = dyn_cast<vector::ReductionOp>(op))
    return reduction.getVector().getType().getElementType().isInteger();
  return isa<vector::BitCastOp, vector::BroadcastOp, vector::DeinterleaveOp,
             vector::ExtractOp, vector::ExtractStridedSliceOp, vector::FMAOp,
             vector::FromElementsOp, vector::InsertOp,
             vector::InsertStridedSliceOp, vector::InterleaveOp,
             vector::ShapeCastOp, vector::ShuffleOp, vector::ToElementsOp>(op);
}

bool isLowerableLLVM(Operation *op) {
  return isa<LLVM::AddressOfOp, LLVM::AllocaOp, LLVM::AtomicRMWOp,
             LLVM::BitcastOp, LLVM::ConstantOp, LLVM::GEPOp, LLVM::GlobalOp,
             LLVM::LoadOp, LLVM::MaskedLoadOp, LLVM::MaskedStoreOp,
             LLVM::PoisonOp, LLVM::Prefetch, LLVM::PtrToIntOp, LLVM::ReturnOp,
             LLVM::StoreOp, LLVM::UAddSat, LLVM::USubSat, LLVM::UndefOp,
             LLVM::ZeroOp>(op);
}

bool isLowerableNVVM(Operation *op, const TargetInfo &target) {
  if (isa<NVVM::BlockInClusterIdXOp, NVVM::ClusterArriveOp, NVVM::ClusterDimXOp,
          NVVM::ClusterIdXOp, NVVM::ClusterWaitOp, NVVM::MapaOp>(op))
    return target.clusterBlocks > 1;
  return isa<NVVM::Barrier0Op, NVVM::BlockDimXOp, NVVM::BlockIdXOp,
             NVVM::BlockIdYOp, NVVM::BlockIdZOp, NVVM::CpAsyncCommitGroupOp,
             NVVM::CpAsyncOp, NVVM::CpAsyncWaitGroupOp, NVVM::GridDimXOp,
             NVVM::GridDimYOp, NVVM::GridDimZOp, NVVM::LaneIdOp,
             NVVM::RcpApproxFtzF32Op, NVVM::ReduxOp, NVVM::ShflOp,
             NVVM::SyncWarpOp, NVVM::ThreadIdXOp>(op);
}

bool isStructure(Operation *op) {
  return isa<ModuleOp, func::FuncOp, func::ReturnOp, scf::ForOp, scf::IfOp,
             scf::WhileOp, scf::ConditionOp, scf::YieldOp, cf::BranchOp,
             cf::CondBranchOp, ub::PoisonOp>(op);
}

bool isLegal(Operation *op, const TargetInfo &target) {
  if (isStructure(op))
    return true;
  Dialect *dialect = op->getDialect();
  if (isa_and_nonnull<arith::ArithDialect>(dialect))
    return !isUnlowerableArith(op);
  if (isa_and_nonnull<math::MathDialect>(dialect))
    return isLowerableMath(op);
  if (isa_and_nonnull<vector::VectorDialect>(dialect))
    return isLowerableVector(op);
  if (isa_and_nonnull<NVVM::NVVMDialect>(dialect))
    return target.isGpu && isLowerableNVVM(op, target);
  // The callee is of this module: external functions are refused. No GPU code
  // needs calls.
  if (isa<func::CallOp>(op))
    return !target.isGpu;
  // Instructions of the CPU that no operation stands for.
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return !target.isGpu && call.getIntrin().starts_with("llvm.x86.");
  // Conversions that have no operation; a struct of their results. On a CPU a
  // constant that LLVM does not know.
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return target.isGpu || (assembly.getAsmString().empty() &&
                            assembly.getConstraints() == "=r,0");
  if (isa<LLVM::ExtractValueOp>(op))
    return target.isGpu;
  return isLowerableLLVM(op);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// f16 and bf16 exist as the bits of a word and in conversions; narrower
/// formats only as words.
bool isLegalElement(Type type) {
  return type.isIndex() || type.isSignlessInteger(1) ||
         type.isSignlessInteger(8) || type.isSignlessInteger(16) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64) ||
         type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
         isa<LLVM::LLVMPointerType>(type);
}

bool isLegalType(Type type) {
  if (auto results = dyn_cast<LLVM::LLVMStructType>(type))
    return llvm::all_of(results.getBody(), isLegalElement);
  if (auto vector = dyn_cast<VectorType>(type))
    return !vector.isScalable() && isLegalElement(vector.getElementType());
  return isLegalElement(type);
}

Type elementOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getElementType() : type;
}

/// Arithmetic on 16-bit floats: only conversions are exact everywhere.
bool isNarrowArithmetic(Operation *op) {
  auto narrow = [](Type t) {
    return elementOf(t).isF16() || elementOf(t).isBF16();
  };
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
      isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp, arith::ExtFOp>(
          op))
    return false;
  if (isa<arith::TruncFOp>(op))
    // A CPU without the instruction calls a library for bf16.
    return elementOf(op->getResult(0).getType()).isBF16();
  return llvm::any_of(op->getOperandTypes(), narrow) ||
         llvm::any_of(op->getResultTypes(), narrow);
}

bool convertsF16(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp>(op) &&
         (elementOf(op->getOperand(0).getType()).isF16() ||
          elementOf(op->getResult(0).getType()).isF16());
}

LogicalResult check(Operation *op, const TargetInfo &target) {
  if (!isLegal(op, target))
    return op->emitOpError("has no lowering for ") << target.name;
  if (auto flags = dyn_cast<arith::ArithFastMathInterface>(op))
    if (auto attr = flags.getFastMathFlagsAttr();
        attr && attr.getValue() != arith::FastMathFlags::none &&
        !(target.isGpu && attr.getValue() == arith::FastMathFlags::contract))
      return op->emitOpError("has fast-math flags ")
             << arith::stringifyFastMathFlags(attr.getValue()) << ", expected "
             << (target.isGpu ? "none or contract" : "none");
  for (Value operand : op->getOperands())
    if (!isLegalType(operand.getType()))
      return op->emitOpError("has an operand of type ")
             << operand.getType() << ", which has no lowering";
  for (Type type : op->getResultTypes())
    if (!isLegalType(type))
      return op->emitOpError("has a result of type ")
             << type << ", which has no lowering";
  if (isNarrowArithmetic(op))
    return op->emitOpError("is arithmetic on a 16-bit type, expected f32");
  if (!target.fma && isa<math::FmaOp, vector::FMAOp>(op))
    return emitError(op->getLoc(), "needs a fused multiply-add instruction, "
                                   "which ")
           << target.name << " lacks";
  if (!target.roundToInteger &&
      isa<math::CeilOp, math::FloorOp, math::RoundEvenOp, math::TruncOp>(op))
    return emitError(op->getLoc(), "needs roundings to integers in hardware, "
                                   "which ")
           << target.name << " lacks";
  if (!target.cvtF16 && convertsF16(op))
    return emitError(op->getLoc(), "needs float16 conversions in hardware, "
                                   "which ")
           << target.name << " lacks";
  if (auto f = dyn_cast<func::FuncOp>(op)) {
    if (f.isExternal())
      return op->emitOpError("is external: compiled code calls nothing");
    for (Type type : f.getArgumentTypes())
      if (!isLegalType(type))
        return op->emitOpError("has an argument of type ")
               << type << ", which has no lowering";
  }
  return success();
}

struct CheckLegality
    : public dither::target::impl::DitherCheckLegalityBase<CheckLegality> {
  void runOnOperation() override {
    const TargetInfo *target = target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    // All errors of a kernel at once, but not thousands of one kind.
    int errors = 0;
    getOperation().walk([&](Operation *op) {
      return failed(check(op, *target)) && ++errors == 10
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (errors)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

constexpr int64_t kSlotBytes = 8;
/// Parameter space of a kernel before sm_70 with PTX 8.1, and of the driver
/// API.
constexpr int64_t kGpuParamBytes = 4096;

LogicalResult checkResources(func::FuncOp f, const TargetInfo &target) {
  auto number = [&](StringRef name, int64_t missing) {
    auto attr = f->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : missing;
  };
  int64_t threads = number("quant.num_threads", -1);
  if (threads < 0)
    return f.emitOpError("is not distributed: found no quant.num_threads");
  if (threads < 1 || threads > target.maxThreads)
    return emitError(f.getLoc(), "needs ")
           << threads << " threads, but " << target.name << " has "
           << target.maxThreads << ": use fewer warps";
  if (target.isGpu && threads % 32)
    return f.emitOpError("needs ")
           << threads << " threads, expected a multiple of 32";
  int64_t bytes = number("quant.shared_bytes", 0);
  if (target.isGpu && bytes > target.sharedBytes)
    return emitError(f.getLoc(), "needs ")
           << bytes << " bytes of shared memory, but " << target.name << " has "
           << target.sharedBytes << ": use smaller tiles and more programs";
  if (!target.isGpu && bytes > INT32_MAX)
    return emitError(f.getLoc(), "needs ")
           << bytes << " bytes of memory beside its tensors, expected at most "
           << INT32_MAX << ": use smaller tiles and more programs";
  int64_t blocks = number("quant.cluster", 1);
  if (blocks > target.clusterBlocks)
    return emitError(f.getLoc(), "needs clusters of ")
           << blocks << " blocks, but " << target.name << " has "
           << target.clusterBlocks;
  auto params = f->getAttrOfType<ArrayAttr>("quant.params");
  if (!params)
    return f.emitOpError("is not distributed: found no quant.params");
  if (target.isGpu && int64_t(params.size()) * kSlotBytes > kGpuParamBytes)
    return emitError(f.getLoc(), "takes ")
           << params.size() << " pointers, extents, strides and numbers, but "
           << target.name << " takes " << kGpuParamBytes / kSlotBytes;
  return success();
}

struct CheckResources
    : public dither::target::impl::DitherCheckResourcesBase<CheckResources> {
  void runOnOperation() override {
    const TargetInfo *target = target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    bool bad = false;
    getOperation().walk([&](func::FuncOp f) {
      if (f->hasAttr("quant.kernel"))
        bad |= failed(checkResources(f, *target));
    });
    if (bad)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
