//===- EmitPtx.cpp - LLVM's machine for NVPTX -----------------------------===//

#include "CodeGenerator.h"
#include "llvm/MC/TargetRegistry.h"

#include <mutex>

// The initializers by name: InitializeAllTargets would link every target.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace llvm;

namespace dither::target {

Expected<std::unique_ptr<TargetMachine>>
createPtxMachine(const TargetInfo &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  Triple triple("nvptx64-nvidia-cuda");
  // ptxas orders, combines and allocates again whatever it gets: of the
  // library's kernels it makes as many instructions of what LLVM does not
  // optimize after its selection, and that takes LLVM half of the time.
  constexpr CodeGenOptLevel level = CodeGenOptLevel::None;
  std::string error;
  const Target *t = TargetRegistry::lookupTarget(triple, error);
  if (!t)
    return createStringError("found no NVPTX in this LLVM: %s", error.c_str());
  std::unique_ptr<TargetMachine> machine(t->createTargetMachine(
      triple, target.llvmChip, target.llvmFeatures, strictOptions(),
      Reloc::PIC_, std::nullopt, level));
  if (!machine)
    return createStringError("cannot create a target machine for %s",
                             target.name.str().c_str());
  return machine;
}

} // namespace dither::target
