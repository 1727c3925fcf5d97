//===- QuantInterfaces.td - Interfaces of the dialect ------*- tablegen -*-===//

#ifndef DITHER_QUANT_INTERFACES
#define DITHER_QUANT_INTERFACES

include "mlir/IR/OpBase.td"

def Quant_DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::dither::quant";
  let description = [{
    An operation that stands for a short program of simpler ones. Implemented by external
    models (`registerDecomposeInterfaceExternalModels`), so that the dialect itself
    does not depend on how it is compiled.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the simpler operations at the builder's insertion point and returns
      the values that replace the results; the operation itself stays.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
    (ins "::mlir::OpBuilder &":$builder)>
  ];
}

#endif // DITHER_QUANT_INTERFACES
