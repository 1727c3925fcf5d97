//===- Passes.td - From distributed kernels to LLVM --------*- tablegen -*-===//

#ifndef DITHER_TARGET_PASSES
#define DITHER_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def ConvertDitherToLLVM : Pass<"convert-dither-to-llvm", "::mlir::ModuleOp"> {
  let summary = "lower distributed kernels to the LLVM dialect";
  let description = [{
    Requires: distributed kernels that passed dither-check-legality.
    Guarantees: only operations of the LLVM and NVVM dialects are left. Nothing
    carries fast-math flags, a multiply and an add are fused only where
    `math.fma` says so, and no library function is called. Kernels are
    nvvm.kernel with the block size they need on a GPU, and cannot unwind on a CPU.

    Example: test/Target/to-llvm.mlir.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::cf::ControlFlowDialect"];
}

def DitherCheckLegality : Pass<"dither-check-legality", "::mlir::ModuleOp"> {
  let summary = "check that the target has an instruction for everything left";
  let description = [{
    LLVM ends the process at an operation that it cannot select, and silently
    calls a library for others. This pass lists what the lowering and every
    target can do, and what only some can, and gives an error for the rest.
    Changes nothing.
  }];
}

def DitherCheckResources : Pass<"dither-check-resources", "::mlir::ModuleOp"> {
  let summary = "check threads, shared memory and parameters of kernels";
  let description = [{
    Requires: distributed kernels. An error for each `quant.num_threads`,
    `quant.shared_bytes` or `quant.params` that no launch on the target could have.
    Changes nothing.
  }];
}

#endif // DITHER_TARGET_PASSES
