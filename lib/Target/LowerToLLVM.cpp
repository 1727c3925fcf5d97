//===- LowerToLLVM.cpp - Distributed kernels to the LLVM dialect ----------===//
//
// OneToOne.h, and upstream's conversion patterns for the rest: upstream's
// convert-gpu-to-nvvm would call libdevice for math.* and minnumf. Each
// operation becomes one operation or intrinsic that LLVM expands in line.
//
//===----------------------------------------------------------------------===//

#include "Occupancy.h"
#include "OneToOne.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Target/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace dither::target {
#define GEN_PASS_DEF_CONVERTDITHERTOLLVM
#include "dither/Target/Passes.h.inc"
} // namespace dither::target

using namespace mlir;
using namespace dither;

namespace {

/// A broadcast to the type that its source has already, as MLIR's pattern makes
/// for each row of a larger vector. It folds; where it does not, that pattern
/// takes it for one of a single element.
struct DropBroadcast : OpRewritePattern<vector::BroadcastOp> {
  explicit DropBroadcast(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}
  LogicalResult matchAndRewrite(vector::BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getSourceType() != op.getResultVectorType())
      return failure();
    rewriter.replaceOp(op, op.getSource());
    return success();
  }
};

/// Operations on vectors of more than one dimension that have no pattern of
/// their own become operations on vectors of one.
LogicalResult lowerVectors(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<DropBroadcast>(module.getContext());
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorFromElementsUnrollPatterns(patterns);
  vector::populateVectorToElementsUnrollPatterns(patterns);
  // What folds is left to LLVM: chains of constants would take a round for each
  // operation.
  GreedyRewriteConfig config;
  config.enableFolding(false);
  config.enableConstantCSE(false);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

/// Branches and loops become blocks, the last of a block first: each takes what
/// follows it to a block of its own. A conversion that can be undone would
/// record each operation that moves, for each branch before it.
LogicalResult lowerStructure(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  PatternRewriter rewriter(module.getContext());
  SmallVector<Operation *> structure;
  module.walk([&](Operation *op) {
    if (isa_and_nonnull<scf::SCFDialect>(op->getDialect()) &&
        !op->hasTrait<OpTrait::IsTerminator>())
      structure.push_back(op);
  });
  for (Operation *op : llvm::reverse(structure)) {
    rewriter.setInsertionPoint(op);
    if (failed(applicator.matchAndRewrite(op, rewriter)))
      return op->emitOpError("has no lowering to blocks");
  }
  return success();
}

LogicalResult lowerRest(ModuleOp module) {
  MLIRContext *ctx = module.getContext();
  LowerToLLVMOptions options(ctx);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(ctx, options);
  RewritePatternSet patterns(ctx);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns,
                                       /*approximateLog1p=*/false);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*ctx);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

/// What LLVM is to know of a kernel, beyond its body.
void annotate(LLVM::LLVMFuncOp kernel, const target::TargetInfo &target) {
  OpBuilder b(kernel.getContext());
  if (target.isGpu) {
    kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
    if (auto threads = kernel->getAttrOfType<IntegerAttr>("quant.num_threads"))
      kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                      b.getDenseI32ArrayAttr({int32_t(threads.getInt())}));
    if (auto blocks = kernel->getAttrOfType<IntegerAttr>("quant.cluster"))
      kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      b.getDenseI32ArrayAttr({int32_t(blocks.getInt()), 1, 1}));
    // For OccupancyPass: LLVM does not see what launches give.
    if (auto bytes = kernel->getAttrOfType<IntegerAttr>("quant.shared_bytes"))
      kernel.setPassthroughAttr(b.getArrayAttr(b.getStrArrayAttr(
          {target::kSharedBytesAttr, std::to_string(bytes.getInt())})));
    return;
  }
  kernel.setNoUnwind(true);
  // The array of slots is the caller's: no argument points to it.
  if (kernel.getNumArguments() &&
      isa<LLVM::LLVMPointerType>(kernel.getArgument(0).getType())) {
    for (StringRef name : {LLVM::LLVMDialect::getNoAliasAttrName(),
                           LLVM::LLVMDialect::getReadonlyAttrName(),
                           LLVM::LLVMDialect::getNoCaptureAttrName()})
      kernel.setArgAttr(0, name, b.getUnitAttr());
  }
}

struct LowerToLLVM
    : public dither::target::impl::ConvertDitherToLLVMBase<LowerToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const target::TargetInfo *target = target::moduleTarget(module);
    if (!target || failed(lowerVectors(module)) ||
        failed(lowerStructure(module)))
      return signalPassFailure();
    target::makeIndicesWords(module);
    target::convertOneToOne(module);
    if (failed(lowerRest(module)))
      return signalPassFailure();
    module.walk([&](LLVM::LLVMFuncOp f) {
      if (f->hasAttr("quant.kernel") && !f.isExternal())
        annotate(f, *target);
      else if (f.isPrivate() && !f.isExternal()) {
        f.setLinkage(LLVM::Linkage::Internal);
        f.setNoUnwind(true);
      }
    });
  }
};

} // namespace
