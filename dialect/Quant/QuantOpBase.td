//===- QuantOpBase.td - Types and traits shared by the ops -*- tablegen -*-===//

#ifndef DITHER_QUANT_OP_BASE
#define DITHER_QUANT_OP_BASE

include "mlir/Dialect/Arith/IR/ArithBase.td"
include "mlir/Dialect/Arith/IR/ArithOpsInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "QuantAttrs.td"
include "QuantInterfaces.td"

def Quant_WideFloat : AnyTypeOf<[F32, BF16, F16]>;
def Quant_Narrow : AnyTypeOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, I8, F8E4M3FN, F8E5M2, F8E8M0FNU]>;
def Quant_ScaleType : AnyTypeOf<[F8E4M3FN, F8E8M0FNU, F32]>;
def Quant_Tile : RankedTensorOf<[AnyType]>;
def Quant_FloatTile : RankedTensorOf<[Quant_WideFloat]>;
def Quant_F32Tile : RankedTensorOf<[F32]>;
/// Scalars, vectors and tiles.
def Quant_F32Like : TypeOrValueSemanticsContainer<F32, "f32-like">;
def Quant_I32Like : TypeOrValueSemanticsContainer<I32, "i32-like">;
def Quant_NarrowTile : RankedTensorOf<[Quant_Narrow]>;
def Quant_ScaleTile : RankedTensorOf<[Quant_ScaleType]>;

/// Pure operations whose result types follow from operands and attributes. Inferred
/// types carry no layout; given ones may.
class Quant_InferredOp<string mnemonic, list<Trait> traits = []>
    : Quant_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>] # traits> {
  code moreClassDeclaration = "";
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange a, ::mlir::TypeRange b) {
      return sameButForLayout(a, b);
    }
  }] # moreClassDeclaration;
}

#endif // DITHER_QUANT_OP_BASE
