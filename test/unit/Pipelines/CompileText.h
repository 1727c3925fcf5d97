//===- CompileText.h - Compile a kernel given as text -----------*- C++ -*-===//

#ifndef DITHER_TEST_PIPELINES_COMPILETEXT_H
#define DITHER_TEST_PIPELINES_COMPILETEXT_H

#include "dither/Compiler.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

namespace dither::test {

/// A context of its own, as each thread that compiles has.
class CompileText {
public:
  CompileText() : context(mlir::MLIRContext::Threading::DISABLED) {
    prepareContext(context);
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) {
      diagnostics += d.str() + "\n";
      return mlir::success();
    });
  }

  llvm::Expected<Artifact> operator()(llvm::StringRef text,
                                      const CompileOptions &options) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return llvm::createStringError("does not parse: %s", diagnostics.c_str());
    return compileModule(*module, options);
  }

  /// All messages so far, a line each.
  std::string diagnostics;

private:
  mlir::MLIRContext context;
};

} // namespace dither::test

#endif // DITHER_TEST_PIPELINES_COMPILETEXT_H
