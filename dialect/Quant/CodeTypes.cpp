//===- CodeTypes.cpp - Element types and what they are made of ------------===//

#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dither::quant {

namespace {

struct Row {
  const numerics::ElementFormat *format;
  StringRef languageName;
  Type (*get)(MLIRContext *);
};

template <typename FloatType>
Row row(const numerics::ElementFormat &format, StringRef languageName) {
  return {&format, languageName,
          [](MLIRContext *context) -> Type { return FloatType::get(context); }};
}

Type int8(MLIRContext *context) { return IntegerType::get(context, 8); }

ArrayRef<Row> table() {
  static const Row rows[] = {
      row<Float4E2M1FNType>(numerics::kE2M1, "float4_e2m1"),
      row<Float6E2M3FNType>(numerics::kE2M3, "float6_e2m3"),
      row<Float6E3M2FNType>(numerics::kE3M2, "float6_e3m2"),
      {&numerics::kINT8, "int8", int8},
      row<Float8E4M3FNType>(numerics::kE4M3, "float8_e4m3"),
      row<Float8E5M2Type>(numerics::kE5M2, "float8_e5m2"),
      row<Float8E8M0FNUType>(numerics::kE8M0, "e8m0"),
      row<BFloat16Type>(numerics::kBF16, "bfloat16"),
      row<Float16Type>(numerics::kF16, "float16"),
      row<Float32Type>(numerics::kF32, "float32"),
  };
  return rows;
}

/// The row of a type; null for types of others.
const Row *find(Type type) {
  const Row *found = llvm::find_if(table(), [&](const Row &row) {
    return row.get(type.getContext()) == type;
  });
  return found == table().end() ? nullptr : found;
}

} // namespace

const numerics::ElementFormat *elementFormat(Type type) {
  const Row *row = find(type);
  return row ? row->format : nullptr;
}

StringRef languageName(Type type) {
  const Row *row = find(type);
  return row ? row->languageName : StringRef();
}

std::string
listTypes(llvm::function_ref<bool(const numerics::ElementFormat &)> wanted) {
  SmallVector<StringRef> names;
  for (const Row &row : table())
    if (wanted(*row.format))
      names.push_back(row.format->name);
  std::string text = llvm::join(ArrayRef(names).drop_back(), ", ");
  return text + (names.size() > 1 ? " or " : "") + names.back().str();
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

bool isMemoryElement(Type type) {
  if (!type.isIntOrFloat())
    return false;
  int64_t bits = storageBits(type);
  return bits == 4 || bits == 8 || bits == 16 || bits == 32 ||
         type.isInteger(64);
}

std::optional<int64_t> scratchBytes(ArrayRef<int64_t> shape, Type type) {
  int64_t bits = storageBits(type);
  for (int64_t extent : shape)
    if (extent < 1 || llvm::MulOverflow(bits, extent, bits) ||
        bits > 8 * kMostScratchBytes)
      return std::nullopt;
  return llvm::divideCeil(bits, 8);
}

const numerics::ElementFormat *codeFormat(Type type) {
  const numerics::ElementFormat *format = elementFormat(type);
  return format && isCodeFormat(*format) ? format : nullptr;
}

} // namespace dither::quant
