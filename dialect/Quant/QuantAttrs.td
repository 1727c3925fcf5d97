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
    What the codes of a tensor are, and how the scales of its blocks are made. Begins with
    the name of a built-in format or with the type of the elements; options follow, and
    only those that deviate are printed:
    `#quant.format<nvfp4>`, `#quant.format<mxfp8_e4m3, scale_rounding = floor>`,
    `#quant.format<f4E2M1FN, scale = f8E4M3FN, block = [1, 64]>`. An extent `?` of a block is
    that of the tensor: `[1, ?]` is a scale for each row, `[?, ?]` one for all.
    A name means its description and nothing else. Names: `nvfp4`, `mxfp4`, `mxfp6_e2m3`,
    `mxfp6_e3m2`, `mxfp8_e4m3`, `mxfp8_e5m2`, `mxint8`, `int8_tensor`, `int8_row`, and `fp8_tensor`,
    `fp8_row`, `fp8_1x128` and `fp8_128x128`, each with `_e4m3` or `_e5m2`.
  }];
  let parameters = (ins
    "::mlir::Type":$elem,
    "::mlir::Type":$scale,
    "int64_t":$blockRows,
    "int64_t":$blockCols,
    "bool":$tensorScale,
    "bool":$transposed,
    "::dither::numerics::ScaleRule":$rule);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The built-in format of this name; null if there is none.
    static FormatAttr named(::mlir::MLIRContext *context, ::llvm::StringRef name);
    /// Names that `named` knows, for messages.
    static ::llvm::ArrayRef<::llvm::StringRef> names();
    /// The built-in format that this is but for how scales are made; empty if there is
    /// none.
    ::llvm::StringRef getName() const;
    /// As it is printed, without the brackets; for messages.
    std::string describe() const;
    /// What elements and scales are made of.
    const ::dither::numerics::ElementFormat &getElemFormat() const;
    const ::dither::numerics::ElementFormat &getScaleFormat() const;
    /// What a value of 1 of the element type stands for in the format: 2^-6 for
    /// integers with scales of E8M0, 1 for all others.
    float getElemUnit() const;
    /// What the amax of the tensor is scaled to.
    float getRange() const { return getRule().largestScale * getElemFormat().max; }
    /// Extents of a block of a tile of this rank whose rows of blocks run along `axis`: of
    /// rank 2 rows and columns of the block for axis 1, exchanged for axis 0; of rank 1
    /// its columns. `?` where the block is as long as the tile.
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
