//===- OneToOne.h - Arithmetic that is an operation of LLVM -----*- C++ -*-===//
//
// Most of a kernel is arithmetic on types that LLVM has, and each operation of
// it is one of the LLVM dialect. Upstream's conversion looks for a pattern, a
// type and a mapping for each: a sixth of the time that a norm takes to
// compile. What is left is for it.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TARGET_ONETOONE_H
#define DITHER_LIB_TARGET_ONETOONE_H

#include "mlir/IR/BuiltinOps.h"

namespace dither::target {

/// Makes i64 of every index in functions without regions inside.
void makeIndicesWords(mlir::ModuleOp module);

/// Replaces arithmetic by operations of the LLVM dialect, those that upstream's
/// patterns give, where an operation has one and LLVM has its types.
void convertOneToOne(mlir::ModuleOp module);

} // namespace dither::target

#endif // DITHER_LIB_TARGET_ONETOONE_H
