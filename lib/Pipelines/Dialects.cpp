//===- Dialects.cpp - What a context for dither holds ---------------------===//

#include "dither/Dialect/Quant/QuantDecompose.h"
#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Pipelines/Pipelines.h"
#include "dither/Target/Emit.h"
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

using namespace mlir;

void dither::pipelines::registerDialects(DialectRegistry &registry) {
  registry
      .insert<quant::QuantDialect, arith::ArithDialect, cf::ControlFlowDialect,
              func::FuncDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
              math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
              tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  quant::registerDecomposeInterfaceExternalModels(registry);
  quant::registerTilingInterfaceExternalModels(registry);
  target::registerTranslations(registry);
}

void dither::prepareContext(MLIRContext &context) {
  DialectRegistry registry;
  pipelines::registerDialects(registry);
  context.appendDialectRegistry(registry);
  // Loaded now: builders create operations by name, and a context without
  // locks must not load one while another thread looks.
  context.loadAllAvailableDialects();
}
