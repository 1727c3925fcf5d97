//===- QuantAttrs.td - Formats and layouts -----------------*- tablegen -*-===//

#ifndef DITHER_QUANT_ATTRS
#define DITHER_QUANT_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "QuantEnums.td"

class Quant_Attr<string name, string mnemonic_, list<Trait> traits = []>
    : AttrDef<Quant_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

def Quant_FormatAttr : Quant_Attr<"Format", "format"> {
  let summary = "a block-scaled format";
  let description = [{
    Prints as the name of a descriptor and what deviates from it:
    `#quant.format<nvfp4>`, `#quant.format<mxfp8_e4m3, scale_rounding = floor>`.
    Names: `nvfp4`, `mxfp4`, `mxfp8_e4m3`, `mxfp8_e5m2`.
  }];
  let parameters = (ins
    StringRefParameter<"descriptor name">:$name,
    "::mlir::Type":$elem,
    "::mlir::Type":$scale,
    "int64_t":$block,
    "bool":$tensorScale,
    "::dither::quant::ScaleRounding":$scaleRounding,
    "::dither::quant::ScaleOrder":$order);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The format of this name with its default choices; null if there is none.
    static FormatAttr named(::mlir::MLIRContext *context, ::llvm::StringRef name);
    /// Names that `named` knows, for messages.
    static ::llvm::ArrayRef<::llvm::StringRef> names();
    /// Largest finite value of the element type, and the exponent of the power
    /// of two at or below it.
    double getElemMax() const;
    int64_t getElemEmax() const;
    /// Extents of a block that runs along `axis` of a tile of `rank`: the format's length
    /// there, 1 elsewhere.
    ::llvm::SmallVector<int64_t> getBlockExtents(int64_t axis, int64_t rank) const;
  }];
}

def Quant_LayoutAttr : Quant_Attr<"Layout", "layout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "which lane and register hold which element of a tile";
  let description = [{
    A GF(2)-linear map from (register, lane, warp) to the coordinates of a
    power-of-two fragment and its affine repeats, in the text form of
    `dither-layout`. The covered shape may exceed the tile: the registers beyond it
    are padding.
  }];
  let parameters = (ins "::dither::layout::RepeatedLayout":$layout);
  let hasCustomAssemblyFormat = 1;
}

#endif // DITHER_QUANT_ATTRS
