//===- CodeTypes.cpp - Element types and what they are made of ------------===//

#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace dither::quant {

namespace {

struct Row {
  const numerics::ElementFormat *format;
  Type (*get)(MLIRContext *);
};

template <typename FloatType> Row row(const numerics::ElementFormat &format) {
  return {&format,
          [](MLIRContext *context) -> Type { return FloatType::get(context); }};
}

Type int8(MLIRContext *context) { return IntegerType::get(context, 8); }

ArrayRef<Row> table() {
  static const Row rows[] = {
      row<Float4E2M1FNType>(numerics::kE2M1),
      row<Float6E2M3FNType>(numerics::kE2M3),
      row<Float6E3M2FNType>(numerics::kE3M2),
      {&numerics::kINT8, int8},
      row<Float8E4M3FNType>(numerics::kE4M3),
      row<Float8E5M2Type>(numerics::kE5M2),
      row<Float8E8M0FNUType>(numerics::kE8M0),
      row<BFloat16Type>(numerics::kBF16),
      row<Float16Type>(numerics::kF16),
      row<Float32Type>(numerics::kF32),
  };
  return rows;
}

} // namespace

const numerics::ElementFormat *elementFormat(Type type) {
  const Row *found = llvm::find_if(table(), [&](const Row &row) {
    return row.get(type.getContext()) == type;
  });
  return found == table().end() ? nullptr : found->format;
}

Type elementType(MLIRContext *context, const numerics::ElementFormat &format) {
  const Row *found = llvm::find_if(
      table(), [&](const Row &row) { return row.format->name == format.name; });
  assert(found != table().end() && "every element format has a type");
  return found->get(context);
}

int64_t storageBits(Type type) {
  const numerics::ElementFormat *format = elementFormat(type);
  return format ? format->storageBits() : type.getIntOrFloatBitWidth();
}

const numerics::ElementFormat *codeFormat(Type type) {
  const numerics::ElementFormat *format = elementFormat(type);
  return format && format->hasSign && format->bits <= 8 ? format : nullptr;
}

} // namespace dither::quant
