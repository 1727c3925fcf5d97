//===- Describe.cpp - Tiles in the words of their user --------------------===//

#include "Describe.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace dither::transforms {

std::string describeElement(Type type) {
  return llvm::TypeSwitch<Type, std::string>(type)
      .Case<Float32Type>([](Type) { return "float32"; })
      .Case<Float16Type>([](Type) { return "float16"; })
      .Case<BFloat16Type>([](Type) { return "bfloat16"; })
      .Case<Float8E4M3FNType>([](Type) { return "float8_e4m3"; })
      .Case<Float8E5M2Type>([](Type) { return "float8_e5m2"; })
      .Case<Float6E2M3FNType>([](Type) { return "float6_e2m3"; })
      .Case<Float6E3M2FNType>([](Type) { return "float6_e3m2"; })
      .Case<Float8E8M0FNUType>([](Type) { return "e8m0"; })
      .Case<Float4E2M1FNType>([](Type) { return "float4_e2m1"; })
      .Case<IntegerType>([](IntegerType integer) {
        return integer.getWidth() == 1
                   ? std::string("bool")
                   : "int" + std::to_string(integer.getWidth());
      })
      .Default([](Type other) {
        std::string text;
        llvm::raw_string_ostream(text) << other;
        return text;
      });
}

std::string describeTile(RankedTensorType type) {
  std::string element = describeElement(type.getElementType());
  bool vowel = StringRef("aeiou").contains(element.front());
  std::string text = (vowel ? "an " : "a ") + element + " tile of shape (";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(type.getShape(), os, [&](int64_t extent) {
    if (ShapedType::isDynamic(extent))
      os << '?';
    else
      os << extent;
  });
  // As Python writes a tuple of one.
  return text + (type.getRank() == 1 ? ",)" : ")");
}

} // namespace dither::transforms
