//===- CodeTypes.h - Element types and what they are made of ----*- C++ -*-===//
//
// The one place that relates types of MLIR to the tables of numerics. Whoever
// needs a largest value, a width or an exponent asks the table.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_CODETYPES_H
#define DITHER_DIALECT_QUANT_CODETYPES_H

#include "dither/Numerics/Formats.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dither::quant {

/// The format of elements of `type`; null for types that are in none of the
/// tables. i8 is integers here; what they stand for in a format that counts in
/// other units is in FormatAttr.
const numerics::ElementFormat *elementFormat(mlir::Type type);

/// The type of elements of a format.
mlir::Type elementType(mlir::MLIRContext *context,
                       const numerics::ElementFormat &format);

/// The format of codes with a sign that quant.encode rounds to; null for other
/// types: those of scales alone, and those that arith converts to.
const numerics::ElementFormat *codeFormat(mlir::Type type);

/// What the tile language calls elements of `type`, `float8_e4m3`; empty for
/// types that are in none of the tables.
llvm::StringRef languageName(mlir::Type type);

/// The types whose formats satisfy `wanted`, for a message: `f4E2M1FN or i8`.
std::string
listTypes(llvm::function_ref<bool(const numerics::ElementFormat &)> wanted);

/// Whether quant.encode rounds to codes of this format, as in `codeFormat`.
inline bool isCodeFormat(const numerics::ElementFormat &format) {
  return format.hasSign && format.bits <= 8;
}

/// Bits that an element of `type`, a float or an integer, takes in memory and
/// in packed registers.
int64_t storageBits(mlir::Type type);

/// Whether elements of `type` can lie in memory: they have 4, 8, 16 or 32 bits,
/// or are i64.
bool isMemoryElement(mlir::Type type);

/// Bytes of a program's memory beside its tensors, at most: launches count them
/// in 32 bits.
inline constexpr int64_t kMostScratchBytes = INT32_MAX;

/// Bytes of scratch memory for elements of `type`. Nothing where there are
/// none, or more than kMostScratchBytes.
std::optional<int64_t> scratchBytes(llvm::ArrayRef<int64_t> shape,
                                    mlir::Type type);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_CODETYPES_H
