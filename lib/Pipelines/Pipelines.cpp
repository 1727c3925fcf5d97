//===- Pipelines.cpp - The order of passes --------------------------------===//

#include "dither/Pipelines/Pipelines.h"
#include "dither/Conversion/Passes.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Target/Passes.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace dither::pipelines {

StringRef stageName(Stage stage) {
  switch (stage) {
  case Stage::Quant:
    return "quant";
  case Stage::Tiled:
    return "tiled";
  case Stage::Distributed:
    return "distributed";
  case Stage::LLVM:
    return "llvm";
  }
  return "";
}

std::optional<Stage> parseStage(StringRef name) {
  for (Stage s : {Stage::Quant, Stage::Tiled, Stage::Distributed, Stage::LLVM})
    if (stageName(s) == name)
      return s;
  return std::nullopt;
}

namespace {

void addCanonicalizer(OpPassManager &pm) {
  // Kernels are structured: no block is dead, and none has a twin.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  pm.addPass(createCanonicalizerPass(config));
}

void addCleanup(OpPassManager &pm) {
  addCanonicalizer(pm);
  pm.addPass(createCSEPass());
}

/// Whole-tensor and tile programs to tiles that fit in registers.
void buildTiled(OpPassManager &pm, bool remarks) {
  using namespace transforms;
  pm.addPass(createDitherSplitParts());
  pm.addNestedPass<func::FuncOp>(createDitherPreparePrograms());
  pm.addNestedPass<func::FuncOp>(createDitherResolveSlices());
  DitherSelectConfigOptions config;
  config.remarks = remarks;
  pm.addNestedPass<func::FuncOp>(createDitherSelectConfig(config));
  pm.addNestedPass<func::FuncOp>(createDitherTileToGrid());
  addCanonicalizer(pm);
  pm.addNestedPass<func::FuncOp>(createDitherDecomposeOps());
  pm.addPass(createCSEPass());
  DitherTileToPhasesOptions phases;
  phases.remarks = remarks;
  pm.addNestedPass<func::FuncOp>(createDitherTileToPhases(phases));
  pm.addNestedPass<func::FuncOp>(createDitherCarryInMemory());
  pm.addNestedPass<func::FuncOp>(createDitherSpreadRows());
  pm.addNestedPass<func::FuncOp>(createDitherVersionBounds());
  pm.addNestedPass<func::FuncOp>(createDitherTileToFragments());
  pm.addNestedPass<func::FuncOp>(createDitherCopyEdges());
  pm.addNestedPass<func::FuncOp>(createDitherCopyAsync());
  addCleanup(pm);
}

/// Tiles to the registers of one lane.
void buildDistributed(OpPassManager &pm) {
  using namespace transforms;
  pm.addNestedPass<func::FuncOp>(createDitherAssignLayouts());
  pm.addNestedPass<func::FuncOp>(createDitherSwizzleShared());
  pm.addNestedPass<func::FuncOp>(createDitherOrderAccesses());
  pm.addPass(createDitherDistribute());
  pm.addNestedPass<func::FuncOp>(createDitherFold());
  addCleanup(pm);
}

/// Registers to the LLVM dialect.
void buildLLVM(OpPassManager &pm) {
  // What the target converts itself is gone before the rest is expanded.
  pm.addPass(conversion::createConvertDitherQuantToNVVM());
  pm.addPass(conversion::createConvertDitherQuantToArith());
  pm.addPass(conversion::createDitherShareReciprocals());
  pm.addPass(conversion::createDitherPairRegisters());
  pm.addPass(conversion::createDitherExpandMath());
  pm.addPass(conversion::createDitherEmulateInstructions());
  // No canonicalizer: convert-dither-to-llvm folds as it goes, and LLVM sees
  // the same IR a third faster. CSE drops what is dead before it is checked.
  pm.addPass(createCSEPass());
  pm.addPass(target::createDitherCheckLegality());
  pm.addPass(target::createDitherCheckResources());
  pm.addPass(target::createConvertDitherToLLVM());
}

/// Sets the attributes that target::moduleTarget reads.
struct SetTarget : public PassWrapper<SetTarget, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SetTarget)
  SetTarget() = default;
  SetTarget(const SetTarget &other) : PassWrapper(other) {}
  explicit SetTarget(StringRef name) { target = name.str(); }

  StringRef getArgument() const override { return "dither-set-target"; }
  StringRef getDescription() const override {
    return "set quant.target and quant.features of the module";
  }
  void runOnOperation() override {
    if (failed(setModuleTarget(getOperation(), target)))
      signalPassFailure();
  }
  Option<std::string> target{*this, "target", llvm::cl::init("host"),
                             llvm::cl::desc("name of the target")};
};

struct TargetOptions : public PassPipelineOptions<TargetOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("name of the target")};
};

void buildUpTo(OpPassManager &pm, Stage last) {
  for (Stage s : {Stage::Tiled, Stage::Distributed, Stage::LLVM})
    if (s <= last)
      buildStage(pm, s);
}

} // namespace

LogicalResult setModuleTarget(ModuleOp module, StringRef name) {
  const target::TargetInfo *info = target::lookupTarget(name);
  if (!info) {
    auto diag = module.emitError("found target \"")
                << name << "\", expected one of ";
    llvm::interleaveComma(target::targetNames(), diag);
    return failure();
  }
  MLIRContext *ctx = module.getContext();
  auto [target, features] = info->name.split(':');
  module->setAttr("quant.target", StringAttr::get(ctx, target));
  if (features.empty())
    module->removeAttr("quant.features");
  else
    module->setAttr("quant.features", StringAttr::get(ctx, features));
  return success();
}

void buildStage(OpPassManager &pm, Stage stage, bool remarks) {
  switch (stage) {
  case Stage::Quant:
    return;
  case Stage::Tiled:
    return buildTiled(pm, remarks);
  case Stage::Distributed:
    return buildDistributed(pm);
  case Stage::LLVM:
    return buildLLVM(pm);
  }
}

void registerPipelines() {
  PassRegistration<SetTarget>();
  PassPipelineRegistration<>(
      "dither-to-tiled", "tile programs to tiles that fit in registers",
      [](OpPassManager &pm) { buildUpTo(pm, Stage::Tiled); });
  PassPipelineRegistration<>(
      "dither-to-distributed", "tile programs to the program of one lane",
      [](OpPassManager &pm) { buildUpTo(pm, Stage::Distributed); });
  PassPipelineRegistration<>(
      "dither-to-llvm", "tile programs to the LLVM dialect",
      [](OpPassManager &pm) { buildUpTo(pm, Stage::LLVM); });
  auto forTarget = [](StringRef fallback) {
    return [fallback](OpPassManager &pm, const TargetOptions &options) {
      pm.addPass(std::make_unique<SetTarget>(
          options.target.empty() ? fallback : StringRef(options.target)));
      buildUpTo(pm, Stage::LLVM);
    };
  };
  PassPipelineRegistration<TargetOptions>(
      "dither-to-ptx", "tile programs to the LLVM dialect for a GPU",
      forTarget("sm_90a"));
  PassPipelineRegistration<TargetOptions>(
      "dither-to-host", "tile programs to the LLVM dialect for a CPU",
      forTarget("host"));
}

} // namespace dither::pipelines
