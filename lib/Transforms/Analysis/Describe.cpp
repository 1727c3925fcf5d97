//===- Describe.cpp - Tiles in the words of their user --------------------===//

#include "Analysis/Describe.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace dither::transforms {

std::string describeElement(Type type) {
  if (StringRef name = quant::languageName(type); !name.empty())
    return name.str();
  if (type.isInteger(1))
    return "bool";
  if (type.isSignlessInteger())
    return "int" + std::to_string(type.getIntOrFloatBitWidth());
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
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
