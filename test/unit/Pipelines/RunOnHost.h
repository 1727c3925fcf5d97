//===- RunOnHost.h - Run a kernel given as text on this CPU -----*- C++ -*-===//

#ifndef DITHER_TEST_PIPELINES_RUNONHOST_H
#define DITHER_TEST_PIPELINES_RUNONHOST_H

#include "dither/Compiler.h"
#include "dither/Pipelines/Pipelines.h"
#include "dither/Runtime/CpuDevice.h"
#include "dither/Target/TargetInfo.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace dither::test {

/// The levels of CPUs whose code this machine runs.
inline std::vector<std::string> hostTargets() {
  std::vector<std::string> targets;
  for (llvm::StringRef name : target::targetNames())
    if (const target::TargetInfo *t = target::lookupTarget(name);
        target::runsOnHost(*t) && t->name == name)
      targets.push_back(name.str());
  return targets;
}

/// Compiles the only kernel of `text`, which is at `stage`, and runs `programs`
/// of it.
inline void runOnHost(const std::string &text, pipelines::Stage stage,
                      const std::string &target, llvm::ArrayRef<int64_t> slots,
                      int64_t programs) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  prepareContext(context);
  std::string diagnostics;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &d) {
    diagnostics += d.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module) << diagnostics;
  CompileOptions options;
  options.target = target;
  auto artifact = pipelines::compileFrom(*module, stage, options);
  ASSERT_TRUE(bool(artifact))
      << llvm::toString(artifact.takeError()) << diagnostics;
  auto device = runtime::makeCpuDevice();
  ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
  auto kernel = (*device)->load(artifact->kernels[0]);
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  llvm::Error e = (*kernel)->launch(slots, {programs, 1, 1}, nullptr);
  ASSERT_FALSE(bool(e)) << llvm::toString(std::move(e));
}

} // namespace dither::test

#endif // DITHER_TEST_PIPELINES_RUNONHOST_H
