//===- QuantDialect.h - The quant dialect: attributes, enums ----*- C++ -*-===//

#ifndef DITHER_DIALECT_QUANT_QUANTDIALECT_H
#define DITHER_DIALECT_QUANT_QUANTDIALECT_H

#include "dither/Layout/RepeatedLayout.h"
#include "dither/Numerics/Formats.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/TensorEncoding.h"
#include "llvm/ADT/Hashing.h"

namespace dither::layout {
inline llvm::hash_code hash_value(const RepeatedLayout &l) { return l.hash(); }
} // namespace dither::layout

namespace dither::numerics {
inline llvm::hash_code hash_value(const ScaleRule &r) {
  return llvm::hash_value(r.key());
}
} // namespace dither::numerics

#include "dither/Dialect/Quant/QuantEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dither/Dialect/Quant/QuantAttrs.h.inc"

#include "dither/Dialect/Quant/QuantDialect.h.inc"

#endif // DITHER_DIALECT_QUANT_QUANTDIALECT_H
