//===- CodeGenerator.h - What the parts of the emitter share ----*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_CODEGENERATOR_H
#define DITHER_LIB_TARGET_CODEGENERATOR_H

#include "dither/Target/TargetInfo.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace dither::target {

/// Numerics first: nothing is contracted, calls to libm are not assumed.
llvm::TargetOptions strictOptions();

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createPtxMachine(const TargetInfo &target);
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(const TargetInfo &target);

/// Function attributes that codegen for a CPU reads from each function.
void annotateHostFunctions(llvm::Module &module, const TargetInfo &target);

} // namespace dither::target

#endif // DITHER_LIB_TARGET_CODEGENERATOR_H
