//===- Pipelines.h - The order of passes ------------------------*- C++ -*-===//
//
// The only place that says in which order passes run. Three parts, each ending
// where a stage of CompileOptions::keepStages does; tests and tools may stop or
// start between them.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PIPELINES_PIPELINES_H
#define DITHER_PIPELINES_PIPELINES_H

#include "dither/Compiler.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace dither::pipelines {

/// What a module holds: a tile program, tiles that fit in registers, the
/// program of one lane, or the LLVM dialect.
enum class Stage { Quant, Tiled, Distributed, LLVM };

/// "quant", "tiled", "distributed" or "llvm".
llvm::StringRef stageName(Stage stage);
std::optional<Stage> parseStage(llvm::StringRef name);

/// The passes from the stage before `stage` to it; none for Quant. With
/// `remarks` they report what they choose.
void buildStage(mlir::OpPassManager &pm, Stage stage, bool remarks = false);

/// Sets `quant.target` and `quant.features` of `module` to what `name` means
/// here
/// ("host" is the CPU of this machine); an error if it means nothing.
llvm::LogicalResult setModuleTarget(mlir::ModuleOp module,
                                    llvm::StringRef name);

/// Every dialect, interface and translation that the passes and the code
/// generator need, by name: upstream's registerAllDialects brings another
/// dialect called `quant`.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers for dither-opt:
///   dither-to-tiled, dither-to-distributed, dither-to-llvm   for the target
///   the
///     module names; each contains those before it
///   dither-to-ptx{target=sm_90a}, dither-to-host{target=host:avx2}   set the
///     target first, then dither-to-llvm
void registerPipelines();

/// compileModule for a module that is at `start` already.
llvm::Expected<Artifact> compileFrom(mlir::ModuleOp module, Stage start,
                                     const CompileOptions &options);

} // namespace dither::pipelines

#endif // DITHER_PIPELINES_PIPELINES_H
