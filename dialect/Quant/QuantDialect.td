//===- QuantDialect.td - The quant dialect -----------------*- tablegen -*-===//

#ifndef DITHER_QUANT_DIALECT
#define DITHER_QUANT_DIALECT

include "mlir/IR/OpBase.td"

def Quant_Dialect : Dialect {
  let name = "quant";
  let cppNamespace = "::dither::quant";
  let summary = "fused quantize kernels over tiles";
  let description = [{
    Block scaling, narrow casts, norms and scale orders as operations on tensors. The
    same operation is used on whole tensors and on tiles; tiling only changes
    shapes. Formats are data (`#quant.format`), algorithm choices are enums, and
    nothing is inferred from an element type or a shape.

    Upstream MLIR has another dialect of this name. A process registers one or the
    other; our tools list their dialects explicitly.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

class Quant_Op<string mnemonic, list<Trait> traits = []>
    : Op<Quant_Dialect, mnemonic, traits>;

#endif // DITHER_QUANT_DIALECT
