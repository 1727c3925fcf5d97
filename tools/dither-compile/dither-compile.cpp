//===- dither-compile.cpp - Compile a module of kernels -------------------===//
//
//   dither-compile kernel.mlir --target=sm_90a --emit=ptx
//   dither-compile kernel.mlir --target=host --emit=obj -o kernel.o
//
//===----------------------------------------------------------------------===//

#include "dither/Compiler.h"
#include "dither/Pipelines/Pipelines.h"
#include "dither/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

static cl::OptionCategory category("dither-compile");
static cl::opt<std::string> input(cl::Positional, cl::init("-"),
                                  cl::desc("<input .mlir>"), cl::cat(category));
static cl::opt<std::string> output("o", cl::init("-"), cl::desc("output file"),
                                   cl::cat(category));
static cl::opt<std::string>
    targetName("target", cl::init("host"), cl::cat(category),
               cl::desc("host, host:avx2, host:avx512, sm_90a, ..."));
static cl::opt<std::string>
    emitKind("emit", cl::init(""), cl::cat(category),
             cl::desc("quant, tiled, distributed, llvm, llvmir, ptx (the "
                      "default for a GPU), asm, obj (the default for a CPU), "
                      "info (what a launch needs)"));
static cl::opt<std::string>
    fromStage("from", cl::init("quant"), cl::cat(category),
              cl::desc("stage of the input: quant, tiled, distributed, llvm"));
static cl::opt<bool> timings("timings", cl::cat(category),
                             cl::desc("print milliseconds of each step"));
static cl::opt<std::string> reproducer("reproducer", cl::cat(category),
                                       cl::desc("file for a reproducer"));
static cl::opt<std::string> dumpDirectory("dump-dir", cl::cat(category),
                                          cl::desc("directory for the IR "
                                                   "after each pass"));

static const char *kindName(dither::runtime::ParamKind kind) {
  switch (kind) {
  case dither::runtime::ParamKind::Pointer:
    return "ptr";
  case dither::runtime::ParamKind::I64:
    return "i64";
  case dither::runtime::ParamKind::I32:
    return "i32";
  case dither::runtime::ParamKind::F32:
    return "f32";
  }
  return "";
}

static std::string launchInfo(const dither::Artifact &artifact) {
  std::string text;
  raw_string_ostream os(text);
  for (const dither::runtime::KernelImage &k : artifact.kernels) {
    os << k.name << ": target " << k.target << ", threads " << k.numThreads
       << ", shared " << k.sharedBytes;
    if (k.clusterSize > 1)
      os << ", clusters of " << k.clusterSize;
    os << ", params (";
    interleaveComma(k.params, os, [&](dither::runtime::ParamKind kind) {
      os << kindName(kind);
    });
    os << ")\n";
  }
  return text;
}

static int fail(const Twine &message) {
  WithColor::error(errs(), "dither-compile") << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "compile quantize kernels\n");

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  dither::prepareContext(context);
  std::string message;
  auto file = mlir::openInputFile(input, &message);
  if (!file)
    return fail(message);
  auto sources = std::make_shared<SourceMgr>();
  sources->AddNewSourceBuffer(std::move(file), SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*sources, &context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return 1;
  auto start = dither::pipelines::parseStage(fromStage);
  if (!start)
    return fail("found stage '" + fromStage +
                "', expected quant, tiled, distributed or llvm");

  dither::CompileOptions options;
  options.target = targetName;
  options.keepStages = true;
  options.verifyEach = true;
  options.reproducer = reproducer;
  options.dumpDirectory = dumpDirectory;
  Expected<dither::Artifact> artifact =
      dither::pipelines::compileFrom(*module, *start, options);
  if (!artifact)
    return fail(toString(artifact.takeError()));
  if (timings)
    for (const auto &[name, ms] : artifact->timings)
      errs() << format("%-20s %8.2f ms\n", name.c_str(), ms);

  std::string text;
  if (emitKind.empty() || emitKind == "obj") {
    if (emitKind == "obj" && dither::target::lookupTarget(targetName)->isGpu)
      return fail("found --emit=obj for " + targetName + ", expected ptx");
    text = artifact->kernels.front().code;
  } else if (emitKind == "info") {
    text = launchInfo(*artifact);
  } else {
    auto stage = find_if(artifact->stages, [](const auto &stage) {
      return stage.first == emitKind;
    });
    if (stage == artifact->stages.end())
      return fail("no stage '" + emitKind + "' from " + fromStage + " for " +
                  targetName);
    text = stage->second;
  }
  auto out = mlir::openOutputFile(output, &message);
  if (!out)
    return fail(message);
  out->os() << text;
  out->keep();
  return 0;
}
