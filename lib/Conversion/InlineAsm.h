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

} // namespace dither::conversion

#endif // DITHER_CONVERSION_INLINEASM_H
