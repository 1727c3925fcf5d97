//===- InitAll.cpp - The dialects and passes of dither --------------------===//

#include "dither/InitAll.h"
#include "dither/Conversion/Passes.h"
#include "dither/Dialect/Quant/QuantDecompose.h"
#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void dither::registerAllDialects(DialectRegistry &registry) {
  registry
      .insert<quant::QuantDialect, arith::ArithDialect, cf::ControlFlowDialect,
              func::FuncDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
              math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
              tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  quant::registerDecomposeInterfaceExternalModels(registry);
  quant::registerTilingInterfaceExternalModels(registry);
}

void dither::registerAllPasses() {
  transforms::registerDitherTransformsPasses();
  conversion::registerDitherConversionPasses();
  registerCanonicalizerPass();
  registerCSEPass();
  registerSymbolDCEPass();
}
