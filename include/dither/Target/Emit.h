//===- Emit.h - From the LLVM dialect to code -------------------*- C++ -*-===//

#ifndef DITHER_TARGET_EMIT_H
#define DITHER_TARGET_EMIT_H

#include "dither/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace dither::target {

/// Registers the translations to LLVM IR that CodeGenerator needs.
void registerTranslations(mlir::DialectRegistry &registry);

/// Generates code for one module. Each step needs those above it; each may be
/// called once. Errors of LLVM come back as text; none ends the process.
class CodeGenerator {
public:
  explicit CodeGenerator(const TargetInfo &target);
  ~CodeGenerator();
  CodeGenerator(const CodeGenerator &) = delete;
  CodeGenerator &operator=(const CodeGenerator &) = delete;

  /// LLVM IR of a module that convert-dither-to-llvm has lowered.
  llvm::Error translate(mlir::ModuleOp module);
  /// LLVM's O3 pipeline without the vectorizers: kernels are vectors already.
  llvm::Error optimize();
  /// The LLVM IR as text; any number of times, after translate.
  std::string llvmIR() const;
  /// PTX text for a GPU, x86 (or Arm) assembly for a CPU: of a copy of the LLVM
  /// IR, or of itself, which is the `last` that can be emitted.
  llvm::Expected<std::string> emitAssembly(bool last);
  /// A relocatable ELF object for a CPU: position independent, no undefined
  /// symbol, no unwind tables. An error for GPUs. The last that can be emitted.
  llvm::Expected<std::string> emitObject();

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dither::target

#endif // DITHER_TARGET_EMIT_H
