//===- dither-lsp-server.cpp - Language server for .mlir files ------------===//
//
// Diagnostics, hover, go to definition and completion for our dialects in an
// editor: point the MLIR extension's server path at this binary.
//
//===----------------------------------------------------------------------===//

#include "dither/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LLVM.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dither::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
