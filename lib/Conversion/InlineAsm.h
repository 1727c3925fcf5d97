//===- InlineAsm.h - Instructions of PTX ------------------------*- C++ -*-===//

#ifndef DITHER_CONVERSION_INLINEASM_H
#define DITHER_CONVERSION_INLINEASM_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace dither::conversion {

/// Pure inline assembly: `$0` and on are results, then operands.
inline mlir::LLVM::InlineAsmOp inlineAsm(mlir::OpBuilder &b, mlir::Location loc,
                                         mlir::Type result,
                                         mlir::ValueRange operands,
                                         llvm::StringRef text,
                                         llvm::StringRef constraints) {
  namespace LLVM = mlir::LLVM;
  return LLVM::InlineAsmOp::create(
      b, loc, result, operands, text, constraints,
      /*has_side_effects=*/false, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      mlir::ArrayAttr());
}

/// `instruction` on one f32.
inline mlir::Value onFloat(mlir::OpBuilder &b, mlir::Location loc,
                           llvm::StringRef instruction, mlir::Value x) {
  return inlineAsm(b, loc, b.getF32Type(), x, (instruction + " $0, $1;").str(),
                   "=f,f")
      .getResult(0);
}

/// |x| of f32. LLVM would make an instruction on bits of math.absf where x is
/// bits; to most instructions on f32 an absolute value costs nothing.
inline mlir::Value magnitudeOf(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::Value x) {
  return onFloat(b, loc, "abs.f32", x);
}

/// mask ? x : y, bit by bit, of i32. LLVM would make two instructions where it
/// knows bits of x or y.
inline mlir::Value selectBits(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value mask, mlir::Value x, mlir::Value y) {
  return inlineAsm(b, loc, x.getType(), {mask, x, y},
                   "lop3.b32 $0, $1, $2, $3, 0xCA;", "=r,r,r,r")
      .getResult(0);
}

/// Byte k of the result is the highest byte of xs[k], which are at most four
/// i32; the others are of no consequence.
mlir::Value topBytes(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::ArrayRef<mlir::Value> xs);

} // namespace dither::conversion

#endif // DITHER_CONVERSION_INLINEASM_H
