//===- dither-reduce.cpp - Make a failing .mlir file small ----------------===//
//
// Erases what a test script does not need to call a file interesting:
//   dither-reduce crash.mlir -reduction-tree='traversal-mode=0 test=./test.sh'
// The script gets the name of a candidate and exits with 1 if it is still
// interesting.
//
//===----------------------------------------------------------------------===//

#include "dither/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dither::registerAllDialects(registry);
  dither::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
