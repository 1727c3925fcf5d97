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

def Quant_ScaledOpInterface : OpInterface<"ScaledOpInterface"> {
  let cppNamespace = "::dither::quant";
  let description = [{
    An operation from a tile of codes, or to one, with a scale for each block: casts and
    `dequantize`. The tile is its first operand, the scales are the second.
  }];
  let methods = [
    InterfaceMethod<"The format of the codes.", "::dither::quant::FormatAttr", "getFormat">,
    InterfaceMethod<"The dimension that blocks run along.", "uint64_t", "getAxis">
  ];
}

def Quant_NormOpInterface : OpInterface<"NormOpInterface"> {
  let cppNamespace = "::dither::quant";
  let description = [{
    A norm of rows, or the backward form of one. Tiles come first among operands and among
    results, and all have the same shape. Of other operands those of rank 1 have an element
    for each column, and those of rank 2 one for each row; other results have one for each
    row. A row is normalized as a whole: its first `count` elements where there is one, the
    others are padding.
  }];
  let methods = [
    InterfaceMethod<"How many operands are tiles.", "unsigned", "getNumTileOperands">,
    InterfaceMethod<"How many results are tiles.", "unsigned", "getNumTileResults">,
    InterfaceMethod<"Elements of a row that count; all of them if there is none.",
                    "::std::optional<uint64_t>", "getCount">,
    InterfaceMethod<"", "void", "setCountAttr", (ins "::mlir::IntegerAttr":$count)>
  ];
}

def Quant_ElementaryOpInterface : OpInterface<"ElementaryOpInterface"> {
  let cppNamespace = "::dither::quant";
  let description = [{
    A function of each element of its one operand, in the steps of Numerics/Elementary.h: what
    it costs, what constants fold to and what it becomes are all read from these.
  }];
  let methods = [
    InterfaceMethod<"", "::dither::numerics::Function", "getFunction">
  ];
}

def Quant_AtomicOpInterface : OpInterface<"AtomicOpInterface"> {
  let cppNamespace = "::dither::quant";
  let description = [{
    An update of elements of memory by those of a tile, one after the other in any order, which
    gives the same whatever that is.
  }];
  let methods = [
    InterfaceMethod<"", "::mlir::TypedValue<::mlir::RankedTensorType>", "getTile">,
    InterfaceMethod<"", "::mlir::TypedValue<::mlir::MemRefType>", "getMemref">,
    InterfaceMethod<"", "::mlir::Operation::operand_range", "getIndices">
  ];
}

#endif // DITHER_QUANT_INTERFACES
