//===- QuantEnums.td - Algorithm choices -------------------*- tablegen -*-===//

#ifndef DITHER_QUANT_ENUMS
#define DITHER_QUANT_ENUMS

include "mlir/IR/EnumAttr.td"
include "QuantDialect.td"

class Quant_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::dither::quant";
  let genSpecializedAttr = 0;
}

def Quant_Dim : Quant_Enum<"Dim", "dimension of the program grid", [
  I32EnumAttrCase<"x", 0>, I32EnumAttrCase<"y", 1>, I32EnumAttrCase<"z", 2>]>;
def Quant_DimAttr : EnumAttr<Quant_Dialect, Quant_Dim, "dim">;

def Quant_ReduceKind : Quant_Enum<"ReduceKind", "what a reduction combines with", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>,
  I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"amax", 3>]>;
def Quant_ReduceKindAttr : EnumAttr<Quant_Dialect, Quant_ReduceKind, "reduce_kind">;

def Quant_ScaleLayout : Quant_Enum<"ScaleLayout", "order of scales in memory", [
  I32EnumAttrCase<"linear", 0>, I32EnumAttrCase<"swizzle_128x4", 1>,
  I32EnumAttrCase<"swizzle_8x4", 2>, I32EnumAttrCase<"packed_column_major", 3>]>;
def Quant_ScaleLayoutAttr : EnumAttr<Quant_Dialect, Quant_ScaleLayout, "scale_layout"> {
  let assemblyFormat = "`<` $value `>`";
}

def Quant_E8M0Mode : Quant_Enum<"E8M0Mode", "how an f32 becomes a shared exponent", [
  I32EnumAttrCase<"rceil", 0>, I32EnumAttrCase<"floor", 1>]>;
def Quant_E8M0ModeAttr : EnumAttr<Quant_Dialect, Quant_E8M0Mode, "e8m0_mode"> {
  let assemblyFormat = "`<` $value `>`";
}

def Quant_ScaleRounding : Quant_Enum<"ScaleRounding",
    "how the shared exponent of a block is picked", [
  I32EnumAttrCase<"rceil", 0>, I32EnumAttrCase<"floor", 1>,
  I32EnumAttrCase<"ceil", 2>, I32EnumAttrCase<"even", 3>]>;

def Quant_ScaleOrder : Quant_Enum<"ScaleOrder",
    "expression order of the block scale", [
  I32EnumAttrCase<"te", 0>, I32EnumAttrCase<"div6_mul", 1>,
  I32EnumAttrCase<"div6_div", 2>, I32EnumAttrCase<"encode_first", 3>,
  I32EnumAttrCase<"mul_inv6", 4>]>;

def Quant_TensorScaleAs : Quant_Enum<"TensorScaleAs",
    "what stands for the tensor scale", [
  I32EnumAttrCase<"amax", 0>, I32EnumAttrCase<"encode", 1>, I32EnumAttrCase<"decode", 2>]>;

def Quant_InfScale : Quant_Enum<"InfScale", "the E8M0 scale of an infinite amax", [
  I32EnumAttrCase<"FE", 0>, I32EnumAttrCase<"FF", 1>]>;

def Quant_FourOverSix : Quant_Enum<"FourOverSix",
    "the error by which a block's largest element becomes 4 or 6", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"mae", 1>, I32EnumAttrCase<"mse", 2>]>;

#endif // DITHER_QUANT_ENUMS
