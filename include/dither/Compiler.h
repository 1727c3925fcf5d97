//===- Compiler.h - What the bindings and the tools call -------*- C++ -*-===//
//
// From a module of tile programs (docs/architecture.md, 1) to code for one
// target, with the text of each stage for those who want to look.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_COMPILER_H
#define DITHER_COMPILER_H

#include "dither/Runtime/KernelImage.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dither {

/// What to compile for: "host", "host:avx2", "host:avx512", or "sm_90a" and
/// the other names that target::lookupTarget knows.
struct CompileOptions {
  std::string target = "host";
  /// Keep the text after each stage: "quant", "tiled", "distributed", "llvm",
  /// "llvmir", and "ptx" or "asm". Costs printing time, so off by default.
  bool keepStages = false;
  /// Verify the IR after every pass (dither-opt always does).
  bool verifyEach = false;
  /// Report what passes choose, and why, as remarks to the context's diagnostic
  /// handlers.
  bool remarks = false;
  /// PTX says with `.loc` which line of the source each instruction is of. The
  /// instructions are those of a compilation without.
  bool lineInfo = false;
  /// A launch that the code is for: its grid, and its slots, of which extents
  /// count. Where it has no tile past a tensor, the code is for such launches
  /// alone (KernelImage::tiles). Empty for code of any launch.
  std::optional<std::pair<std::array<int64_t, 3>, std::vector<int64_t>>> launch;
  /// Where an MLIR crash reproducer is written if a pass fails; empty for none.
  std::string reproducer;
  /// Print the IR after all passes, after changes only, to this directory (a
  /// file each); empty for none.
  std::string dumpDirectory;
};

struct Artifact {
  /// One image for each function with `quant.kernel`, in module order. All
  /// share one object or PTX text, the field `code` of the first.
  std::vector<runtime::KernelImage> kernels;
  /// Stage name and text, in order, where CompileOptions::keepStages.
  std::vector<std::pair<std::string, std::string>> stages;
  /// Stage name and milliseconds, in order: "passes.<stage>", "llvm.translate",
  /// "llvm.optimize", "llvm.codegen".
  std::vector<std::pair<std::string, double>> timings;
};

/// Registers into `context` every dialect, interface and translation that
/// compileModule needs, and nothing else. Threading stays as the caller set it.
void prepareContext(mlir::MLIRContext &context);

/// Compiles `module` in place (it is left in the LLVM dialect). Errors of
/// passes reach the context's diagnostic handlers with their locations; the
/// returned error says only which stage failed. Never aborts on bad input.
llvm::Expected<Artifact> compileModule(mlir::ModuleOp module,
                                       const CompileOptions &options);

} // namespace dither

#endif // DITHER_COMPILER_H
