//===- Compiler.cpp - A module of kernels to an artifact ------------------===//

#include "dither/Compiler.h"
#include "dither/Pipelines/Pipelines.h"
#include "dither/Support/DeepStack.h"
#include "dither/Target/Emit.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <optional>

using namespace mlir;
using dither::pipelines::Stage;

namespace dither {
namespace {

/// One compilation: appends to the artifact as it goes.
class Compilation {
public:
  Compilation(ModuleOp module, const CompileOptions &options,
              const target::TargetInfo &target)
      : module(module), options(options), target(target) {}

  llvm::Error run(Stage start) {
    sayLaunch();
    keepModule(start);
    for (Stage s : {Stage::Tiled, Stage::Distributed, Stage::LLVM})
      if (s > start)
        if (llvm::Error e = runPasses(s))
          return e;
    if (llvm::Error e = readKernels())
      return e;
    if (options.lineInfo && target.isGpu)
      if (llvm::Error e = addLineInfo())
        return e;
    return generate();
  }

  Artifact artifact;

private:
  /// Runs `step`, a function that returns llvm::Error, and notes its time.
  template <typename Step> llvm::Error timed(const char *name, Step step) {
    auto begin = std::chrono::steady_clock::now();
    llvm::Error e = step();
    std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    artifact.timings.emplace_back(name, spent.count());
    return e;
  }

  /// Tells the kernels of the launch that they are compiled for. Text that
  /// stands in the place of a module may have been told of another.
  void sayLaunch() {
    for (Operation &op : *module.getBody())
      op.removeAttr("quant.launch");
    if (!options.launch)
      return;
    Builder b(module->getContext());
    auto &[grid, slots] = *options.launch;
    DictionaryAttr launch = b.getDictionaryAttr(
        {b.getNamedAttr("grid", b.getDenseI64ArrayAttr(grid)),
         b.getNamedAttr("slots", b.getDenseI64ArrayAttr(slots))});
    for (Operation &op : *module.getBody())
      if (op.hasAttr("quant.kernel"))
        op.setAttr("quant.launch", launch);
  }

  void keepModule(Stage stage) {
    if (!options.keepStages)
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    artifact.stages.emplace_back(pipelines::stageName(stage).str(),
                                 std::move(text));
  }

  llvm::Error runPasses(Stage stage) {
    // Nested passes are added to their own kind of operation by buildStage.
    PassManager pm(module->getName());
    pm.enableVerifier(options.verifyEach);
    if (!options.reproducer.empty())
      pm.enableCrashReproducerGeneration(options.reproducer);
    // A directory for each stage; upstream numbers the files inside. It does
    // not make parents.
    if (!options.dumpDirectory.empty()) {
      if (std::error_code e =
              llvm::sys::fs::create_directories(options.dumpDirectory))
        return llvm::createStringError(e, "cannot create directory '%s'",
                                       options.dumpDirectory.c_str());
      pm.enableIRPrintingToFileTree(
          /*shouldPrintBeforePass=*/nullptr,
          [](Pass *, Operation *) { return true; },
          /*printModuleScope=*/!module->getContext()->isMultithreadingEnabled(),
          /*printAfterOnlyOnChange=*/true, /*printAfterOnlyOnFailure=*/false,
          (options.dumpDirectory + "/" + pipelines::stageName(stage)).str());
    }
    pipelines::buildStage(pm, stage, options.remarks);
    std::string name = ("passes." + pipelines::stageName(stage)).str();
    if (llvm::Error e = timed(name.c_str(), [&]() -> llvm::Error {
          if (failed(pm.run(module)))
            return llvm::createStringError("the passes to stage '%s' failed",
                                           name.c_str() + strlen("passes."));
          return llvm::Error::success();
        }))
      return e;
    keepModule(stage);
    return llvm::Error::success();
  }

  /// Locations reach LLVM where their function has a scope.
  llvm::Error addLineInfo() {
    PassManager pm(module->getName());
    LLVM::DIScopeForLLVMFuncOpPassOptions directives;
    directives.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
    pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass(directives));
    if (failed(pm.run(module)))
      return llvm::createStringError("the module cannot have line information");
    return llvm::Error::success();
  }

  /// What dither-version-bounds says of the tiles of a launch.
  static llvm::Expected<runtime::WholeTiles> wholeTiles(Operation &kernel,
                                                        size_t params) {
    runtime::WholeTiles tiles;
    tiles.required = kernel.hasAttr("quant.whole");
    auto bounds = kernel.getAttrOfType<ArrayAttr>("quant.whole_if");
    if (!bounds) {
      if (tiles.required)
        return llvm::createStringError(
            "the kernel is for whole tiles and does not say by what they are");
      return tiles;
    }
    for (auto entry : bounds.getAsRange<DictionaryAttr>()) {
      auto number = [&](StringRef name, int64_t missing) {
        auto attr = entry.getAs<IntegerAttr>(name);
        return attr ? attr.getInt() : missing;
      };
      runtime::TileBound bound;
      bound.axis = number("axis", -1);
      bound.slot = number("slot", -1);
      bound.extent = number("extent", 0);
      bound.end = number("end", 1);
      bound.step = number("step", 1);
      using Kind = runtime::TileBound::Kind;
      bound.other = number("other", -1);
      bound.kind = entry.contains("exact")      ? Kind::Exact
                   : entry.contains("multiple") ? Kind::Multiple
                   : bound.other >= 0           ? Kind::Other
                                                : Kind::Enough;
      if (std::max(bound.slot, bound.other) >= int64_t(params))
        return llvm::createStringError(
            "the kernel has an extent in slot " +
            llvm::Twine(std::max(bound.slot, bound.other)) + " of " +
            llvm::Twine(params));
      tiles.bounds.push_back(bound);
    }
    return tiles;
  }

  /// Launch information, from the attributes that dither-distribute left.
  llvm::Error readKernels() {
    for (Operation &op : *module.getBody()) {
      if (!op.hasAttr("quant.kernel"))
        continue;
      runtime::KernelImage image;
      image.name = op.getAttrOfType<StringAttr>("sym_name").str();
      image.target = target.name.str();
      auto number = [&](StringRef name, uint32_t missing) {
        auto attr = op.getAttrOfType<IntegerAttr>(name);
        return attr ? uint32_t(attr.getInt()) : missing;
      };
      image.numThreads = number("quant.num_threads", 1);
      image.sharedBytes = number("quant.shared_bytes", 0);
      image.clusterSize = number("quant.cluster", 1);
      auto params = op.getAttrOfType<ArrayAttr>("quant.params");
      if (!params)
        return llvm::createStringError("kernel '%s' has no quant.params",
                                       image.name.c_str());
      for (Attribute param : params) {
        auto text = dyn_cast<StringAttr>(param);
        auto kind = llvm::StringSwitch<std::optional<runtime::ParamKind>>(
                        text ? text.getValue() : "")
                        .Case("ptr", runtime::ParamKind::Pointer)
                        .Case("i64", runtime::ParamKind::I64)
                        .Case("i32", runtime::ParamKind::I32)
                        .Case("f32", runtime::ParamKind::F32)
                        .Default(std::nullopt);
        if (!kind)
          return llvm::createStringError(
              "kernel '%s' has a parameter of unknown kind",
              image.name.c_str());
        image.params.push_back(*kind);
      }
      auto tiles = wholeTiles(op, image.params.size());
      if (!tiles)
        return tiles.takeError();
      image.tiles = std::move(*tiles);
      artifact.kernels.push_back(std::move(image));
    }
    if (artifact.kernels.empty())
      return llvm::createStringError(
          "the module has no function with quant.kernel");
    return llvm::Error::success();
  }

  llvm::Error generate() {
    target::CodeGenerator generator(target);
    if (llvm::Error e = timed("llvm.translate",
                              [&] { return generator.translate(module); }))
      return e;
    if (llvm::Error e =
            timed("llvm.optimize", [&] { return generator.optimize(); }))
      return e;
    if (options.keepStages)
      artifact.stages.emplace_back("llvmir", generator.llvmIR());
    // Of a copy, and the code of the module itself, kept stages or not: in a
    // copy values have their uses in another order, which LLVM's choices
    // follow.
    std::string assembly;
    if (options.keepStages && !target.isGpu) {
      auto text = generator.emitAssembly(/*last=*/false);
      if (!text)
        return text.takeError();
      assembly = std::move(*text);
    }
    std::string &code = artifact.kernels.front().code;
    if (llvm::Error e = timed("llvm.codegen", [&]() -> llvm::Error {
          auto result = target.isGpu ? generator.emitAssembly(/*last=*/true)
                                     : generator.emitObject();
          if (!result)
            return result.takeError();
          code = std::move(*result);
          return llvm::Error::success();
        }))
      return e;
    // What replaces this text is for the same launches, as far as it says so.
    if (target.isGpu && artifact.kernels.front().tiles.required)
      code += "// for launches of whole tiles alone\n";
    if (options.keepStages)
      artifact.stages.emplace_back(target.isGpu ? "ptx" : "asm",
                                   target.isGpu ? code : assembly);
    return llvm::Error::success();
  }

  ModuleOp module;
  const CompileOptions &options;
  const target::TargetInfo &target;
};

} // namespace

llvm::Expected<Artifact> pipelines::compileFrom(ModuleOp module, Stage start,
                                                const CompileOptions &options) {
  if (failed(setModuleTarget(module, options.target)))
    return llvm::createStringError("unknown target '%s'",
                                   options.target.c_str());
  Compilation compilation(module, options,
                          *target::lookupTarget(options.target));
  std::optional<llvm::Error> result;
  runOnDeepStack([&] { result = compilation.run(start); });
  if (*result)
    return std::move(*result);
  return std::move(compilation.artifact);
}

llvm::Expected<Artifact> compileModule(ModuleOp module,
                                       const CompileOptions &options) {
  return pipelines::compileFrom(module, Stage::Quant, options);
}

} // namespace dither
