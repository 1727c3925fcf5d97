//===- dither-opt.cpp - Run passes on .mlir files -------------------------===//

#include "dither/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dither::registerAllDialects(registry);
  dither::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "dither optimizer driver\n", registry));
}
