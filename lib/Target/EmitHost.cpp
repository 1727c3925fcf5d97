//===- EmitHost.cpp - LLVM's machines for CPUs ----------------------------===//

#include "CodeGenerator.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace llvm;

namespace dither::target {

Expected<std::unique_ptr<TargetMachine>>
createHostMachine(const TargetInfo &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    // Of both architectures: what is built ahead of time is for any.
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  Triple triple(target.llvmTriple);
  std::string error;
  const Target *t = TargetRegistry::lookupTarget(triple, error);
  if (!t)
    return createStringError("found no code generator for %s: %s",
                             triple.str().c_str(), error.c_str());
  // Small and position independent: constants are within 2 GiB of the code, in
  // one mapping, wherever it lands.
  std::unique_ptr<TargetMachine> machine(t->createTargetMachine(
      triple, target.llvmChip, target.llvmFeatures, strictOptions(),
      Reloc::PIC_, CodeModel::Small, CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("cannot create a target machine for %s",
                             target.name.str().c_str());
  return machine;
}

void annotateHostFunctions(Module &module, const TargetInfo &target) {
  std::string width = std::to_string(target.maxVectorBytes * 8);
  for (Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target.llvmChip);
    if (!target.llvmFeatures.empty())
      f.addFnAttr("target-features", target.llvmFeatures);
    // x86-64-v4 alone would split 512-bit operations in two.
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
    f.addFnAttr("no-builtins");
  }
}

} // namespace dither::target
