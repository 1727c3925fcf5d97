//===- CodeGenerator.cpp - LLVM dialect, LLVM IR, code --------------------===//

#include "CodeGenerator.h"
#include "Addresses.h"
#include "ComposeShuffles.h"
#include "FatalErrors.h"
#include "FetchAhead.h"
#include "HighWords.h"
#include "LaneLoops.h"
#include "Lifetimes.h"
#include "LoadsAtOnce.h"
#include "LoadsInStages.h"
#include "MaskedAccesses.h"
#include "NarrowStores.h"
#include "Occupancy.h"
#include "ShortBlocks.h"
#include "ShuffledWords.h"
#include "SignalingNaNs.h"
#include "SignedZeros.h"
#include "SpareBarriers.h"
#include "WideReversals.h"
#include "WidenHalves.h"
#include "dither/Support/Spare.h"
#include "dither/Target/Emit.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

#include <mutex>
#include <vector>

using namespace llvm;

namespace dither::target {

TargetOptions strictOptions() {
  TargetOptions options;
  // Also makes NVPTX say mul.rn and add.rn, which ptxas may not contract.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return options;
}

void registerTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

namespace {

/// Keeps the first error: LLVM's own handler would end the process.
struct Collector : public DiagnosticHandler {
  explicit Collector(std::string &first) : first(first) {}
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    if (info.getSeverity() == DS_Error && first.empty()) {
      raw_string_ostream os(first);
      DiagnosticPrinterRawOStream printer(os);
      info.print(printer);
    }
    return true;
  }
  std::string &first;
};

/// A machine for code, which the next compilation for its target has again.
struct Machine {
  const TargetInfo &target;
  std::unique_ptr<TargetMachine> machine;
  unsigned uses = 0;
};

/// What one is used for at most: it keeps the names that it has seen.
constexpr unsigned kMostUses = 64;

Spare<Machine> spare;

Expected<std::unique_ptr<Machine>> takeMachine(const TargetInfo &target) {
  std::unique_ptr<Machine> found = spare.take();
  if (found && &found->target == &target)
    return found;
  auto made =
      target.isGpu ? createPtxMachine(target) : createHostMachine(target);
  if (!made)
    return made.takeError();
  return std::unique_ptr<Machine>(new Machine{target, std::move(*made)});
}

} // namespace

struct CodeGenerator::State {
  explicit State(const TargetInfo &target) : target(target) {
    context->setDiagnosticHandler(std::make_unique<Collector>(error));
  }
  ~State() {
    if (owner && ++owner->uses < kMostUses)
      spare.leave(std::move(owner));
  }
  /// The error that LLVM reported since the last call, if any.
  Error reported(const char *step) {
    if (error.empty())
      return Error::success();
    std::string text;
    text.swap(error);
    return createStringError("%s: %s", step, text.c_str());
  }

  Expected<std::string> emit(CodeGenFileType type, bool last);

  TargetMachine &machine() { return *owner->machine; }

  const TargetInfo &target;
  std::string error;
  std::shared_ptr<LLVMContext> context = std::make_shared<LLVMContext>();
  std::unique_ptr<Machine> owner;
  std::unique_ptr<Module> module;
};

namespace {

/// One run of LLVM's code generator, which changes its module.
struct Emission {
  Emission(std::shared_ptr<LLVMContext> context, TargetMachine &machine,
           std::unique_ptr<Module> module)
      : context(std::move(context)), library(machine.getTargetTriple()),
        module(std::move(module)), os(code) {
    library.disableAllFunctions();
    passes.add(new TargetLibraryInfoWrapperPass(library));
  }

  std::shared_ptr<LLVMContext> context;
  TargetLibraryInfoImpl library;
  std::unique_ptr<Module> module;
  SmallString<0> code;
  raw_svector_ostream os;
  legacy::PassManager passes;
};

/// What code generation left when LLVM gave up in it: in no state to be
/// destroyed, and so kept.
void keepForever(std::unique_ptr<Emission> emission) {
  static std::mutex mutex;
  static auto *kept = new std::vector<Emission *>;
  std::lock_guard<std::mutex> lock(mutex);
  kept->push_back(emission.release());
}

} // namespace

/// As TargetMachine::addPassesToEmitFile; true if there is no such kind of
/// file. Where code is not optimized, copies go all the same: operands of
/// inline assembly have one each.
static bool addEmissionPasses(TargetMachine &machine,
                              legacy::PassManager &passes,
                              raw_pwrite_stream &os, CodeGenFileType type) {
  if (machine.getOptLevel() != CodeGenOptLevel::None)
    return machine.addPassesToEmitFile(passes, os, nullptr, type,
                                       /*DisableVerify=*/true);
  auto &generator = static_cast<CodeGenTargetMachineImpl &>(machine);
  TargetPassConfig *config = generator.createPassConfig(passes);
  config->setDisableVerify(true);
  config->insertPass(&TwoAddressInstructionPassID, &RegisterCoalescerID);
  auto *info = new MachineModuleInfoWrapperPass(&machine);
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses())
    return true;
  config->addMachinePasses();
  config->setInitialized();
  passes.add(createNarrowStoresPass());
  if (generator.addAsmPrinter(passes, os, nullptr, type,
                              info->getMMI().getContext()))
    return true;
  passes.add(createFreeMachineFunctionPass());
  return false;
}

/// Writes another version into the first directive of PTX.
static void setPtxVersion(std::string &ptx, unsigned version) {
  constexpr StringLiteral directive = ".version ";
  size_t begin = ptx.find(directive.str()) + directive.size();
  ptx.replace(begin, ptx.find('\n', begin) - begin,
              utostr(version / 10) + "." + utostr(version % 10));
}

Expected<std::string> CodeGenerator::State::emit(CodeGenFileType type,
                                                 bool last) {
  auto emission = std::make_unique<Emission>(
      context, machine(), last ? std::move(module) : CloneModule(*module));
  if (addEmissionPasses(machine(), emission->passes, emission->os, type))
    return createStringError("%s cannot emit this kind of file",
                             target.name.str().c_str());
  if (std::optional<std::string> reason =
          catchFatalError([&] { emission->passes.run(*emission->module); })) {
    keepForever(std::move(emission));
    owner.release(); // what was left there refers to it
    StringRef first = StringRef(*reason).split('\n').first;
    return createStringError("LLVM's code generator: %s", first.str().c_str());
  }
  if (Error e = reported("LLVM's code generator"))
    return e;
  std::string code = emission->code.str().str();
  if (target.ptxVersion && type == CodeGenFileType::AssemblyFile)
    setPtxVersion(code, target.ptxVersion);
  return code;
}

namespace {

/// Codegen may still call a library (memcpy of a large aggregate, a conversion
/// that the CPU lacks): nobody would resolve that.
Error checkSelfContained(StringRef code) {
  auto file = object::ObjectFile::createObjectFile(
      MemoryBufferRef(code, "kernel object"));
  if (!file)
    return file.takeError();
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined) ||
        (*flags & object::SymbolRef::SF_FormatSpecific))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    return createStringError("the code calls '%s', expected no calls",
                             name->str().c_str());
  }
  return Error::success();
}

} // namespace

CodeGenerator::CodeGenerator(const TargetInfo &target)
    : state(std::make_unique<State>(target)) {}
CodeGenerator::~CodeGenerator() = default;

Error CodeGenerator::translate(mlir::ModuleOp module) {
  auto machine = takeMachine(state->target);
  if (!machine)
    return machine.takeError();
  state->owner = std::move(*machine);
  StringRef name = module.getSymName().value_or("dither");
  state->module = mlir::translateModuleToLLVMIR(module, *state->context, name);
  if (Error e = state->reported("translation to LLVM IR"))
    return e;
  if (!state->module)
    return createStringError("the module has no translation to LLVM IR");
  state->module->setTargetTriple(state->machine().getTargetTriple());
  state->module->setDataLayout(state->machine().createDataLayout());
  if (!state->target.isGpu)
    annotateHostFunctions(*state->module, state->target);
  return Error::success();
}

static void addInstCombine(FunctionPassManager &passes) {
  passes.addPass(HideSelectionsPass());
  // One round: it looks for a fixed point only to report where there is none.
  passes.addPass(InstCombinePass(
      InstCombineOptions().setMaxIterations(1).setVerifyFixpoint(false)));
  passes.addPass(ShowSelectionsPass());
}

/// What the kernels gain from, and no more: LLVM's own O3 takes four times as
/// long and leaves the same loops. They have no calls, no allocas but scratch
/// and no structure that a pass could discover; MLIR unrolled what pays.
static FunctionPassManager kernelPasses(const TargetInfo &target) {
  FunctionPassManager passes;
  if (target.isGpu)
    passes.addPass(PromotePass());
  passes.addPass(EarlyCSEPass());
  passes.addPass(SimplifyCFGPass());
  addInstCombine(passes);
  if (!target.isGpu)
    passes.addPass(WidenHalvesPass());
  LoopPassManager loops;
  loops.addPass(LoopRotatePass());
  loops.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(loops),
                                                 /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(SimplifyCFGPass());
  return passes;
}

/// The order of instructions for a GPU, and the number of blocks that is asked
/// for with it. What follows takes instructions out and leaves the order.
static FunctionPassManager schedulePasses(const TargetInfo &target) {
  FunctionPassManager passes;
  passes.addPass(LifetimesPass(target));
  passes.addPass(FetchAheadPass());
  passes.addPass(OccupancyPass(target));
  passes.addPass(ThreadRangePass());
  addInstCombine(passes);
  passes.addPass(SplitOffsetsPass());
  // InstCombine would take back what these make.
  passes.addPass(WideReversalsPass());
  passes.addPass(SignedZerosPass());
  passes.addPass(HighWordsPass());
  passes.addPass(SpareBarriersPass());
  if (target.f32x2)
    passes.addPass(ShuffledWordsPass());
  if (asksInStages(target))
    passes.addPass(LoadsInStagesPass());
  passes.addPass(LoadsAtOncePass());
  return passes;
}

Error CodeGenerator::optimize() {
  PassBuilder builder(&state->machine());
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  // A loop that copies must not become a call of memcpy. Registered first: the
  // first registration of an analysis is the one that counts.
  TargetLibraryInfoImpl library(state->machine().getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  passes.addPass(
      createModuleToFunctionPassAdaptor(kernelPasses(state->target)));
  if (!state->target.isGpu) {
    passes.addPass(createModuleToFunctionPassAdaptor(LaneLoopsPass()));
    passes.addPass(createModuleToFunctionPassAdaptor(MaskedAccessesPass()));
    passes.addPass(createModuleToFunctionPassAdaptor(ComposeShufflesPass()));
    passes.addPass(createModuleToFunctionPassAdaptor(ShortBlocksPass()));
    if (state->target.signalingMaxnum) {
      passes.addPass(createModuleToFunctionPassAdaptor(SignedZerosPass()));
      passes.addPass(createModuleToFunctionPassAdaptor(SignalingNaNsPass()));
    }
  } else {
    passes.addPass(
        createModuleToFunctionPassAdaptor(schedulePasses(state->target)));
  }
  passes.run(*state->module, modules);
  return state->reported("LLVM's optimizer");
}

std::string CodeGenerator::llvmIR() const {
  std::string text;
  raw_string_ostream os(text);
  state->module->print(os, nullptr);
  return text;
}

Expected<std::string> CodeGenerator::emitAssembly(bool last) {
  return state->emit(CodeGenFileType::AssemblyFile, last);
}

Expected<std::string> CodeGenerator::emitObject() {
  if (state->target.isGpu)
    return createStringError("%s has no object files, expected a CPU",
                             state->target.name.str().c_str());
  Expected<std::string> object =
      state->emit(CodeGenFileType::ObjectFile, /*last=*/true);
  if (object)
    if (Error e = checkSelfContained(*object))
      return e;
  return object;
}

} // namespace dither::target
