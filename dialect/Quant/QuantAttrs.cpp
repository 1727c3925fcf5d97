//===- QuantAttrs.cpp - Formats and layouts -------------------------------===//

#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Numerics/Formats.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dither::quant;

#include "dither/Dialect/Quant/QuantEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dither/Dialect/Quant/QuantAttrs.cpp.inc"

namespace dither::quant {

void QuantDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dither/Dialect/Quant/QuantAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// FormatAttr
//===----------------------------------------------------------------------===//

static_assert(unsigned(ScaleRounding::even) ==
                      unsigned(numerics::ScaleRounding::Even) &&
                  unsigned(ScaleOrder::encode_first) ==
                      unsigned(numerics::ScaleOrder::EncodeFirst),
              "the dialect's choices are those of the numerics library");

ArrayRef<StringRef> FormatAttr::names() {
  static const SmallVector<StringRef> table = [] {
    SmallVector<StringRef> names;
    for (const numerics::BlockFormat &format : numerics::kBlockFormats)
      names.emplace_back(format.name.data(), format.name.size());
    return names;
  }();
  return table;
}

FormatAttr FormatAttr::named(MLIRContext *context, StringRef name) {
  const numerics::BlockFormat *f =
      numerics::findBlockFormat({name.data(), name.size()});
  if (!f)
    return {};
  auto extent = [](unsigned n) {
    return n ? int64_t(n) : ShapedType::kDynamic;
  };
  return get(context, elementType(context, *f->elem),
             elementType(context, *f->scale), extent(f->blockRows),
             extent(f->blockCols), f->tensorScale, f->transposed,
             ScaleRounding(f->rounding), ScaleOrder(f->order), f->pow2Scales,
             APFloat(f->epsilon));
}

StringRef FormatAttr::getName() const {
  for (StringRef name : names()) {
    FormatAttr f = named(getContext(), name);
    if (f.getElem() == getElem() && f.getScale() == getScale() &&
        f.getBlockRows() == getBlockRows() &&
        f.getBlockCols() == getBlockCols() &&
        f.getTensorScale() == getTensorScale() &&
        f.getTransposed() == getTransposed())
      return name;
  }
  return "";
}

/// A block as it is written.
static std::string blockText(int64_t rows, int64_t cols) {
  auto extent = [](int64_t n) {
    return ShapedType::isDynamic(n) ? std::string("?") : std::to_string(n);
  };
  return "[" + extent(rows) + ", " + extent(cols) + "]";
}

/// FO2, FO3, FO7 to FO10, FO12 to FO14.
LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Type elem, Type scale, int64_t blockRows,
                                 int64_t blockCols, bool tensorScale,
                                 bool transposed, ScaleRounding rounding,
                                 ScaleOrder order, bool pow2Scales,
                                 APFloat epsilon) {
  if (!codeFormat(elem))
    return emitError() << "found elements of " << elem << ", expected "
                       << listTypes(isCodeFormat);
  const numerics::ElementFormat *scales = elementFormat(scale);
  if (scales != &numerics::kE8M0 && scales != &numerics::kE4M3 &&
      scales != &numerics::kF32)
    return emitError() << "found scales of " << scale
                       << ", expected f8E8M0FNU, f8E4M3FN or f32";
  bool wholeRow = ShapedType::isDynamic(blockCols) &&
                  (blockRows == 1 || ShapedType::isDynamic(blockRows));
  if (!wholeRow &&
      (blockRows < 1 || blockCols < 1 || !llvm::isPowerOf2_64(blockRows) ||
       !llvm::isPowerOf2_64(blockCols)))
    return emitError() << "found blocks of " << blockText(blockRows, blockCols)
                       << ", expected positive powers of two, [1, ?] or "
                          "[?, ?]";
  if (tensorScale && scales != &numerics::kE4M3)
    return emitError() << "found a tensor scale with scales of " << scale
                       << ", expected it for f8E4M3FN scales only";
  if (tensorScale && wholeRow)
    return emitError() << "found a tensor scale with blocks of "
                       << blockText(blockRows, blockCols)
                       << ", expected it for shorter blocks only";
  if (rounding != ScaleRounding::rceil && scales != &numerics::kE8M0)
    return emitError() << "found scale_rounding = "
                       << stringifyScaleRounding(rounding) << " with scales of "
                       << scale << ", expected it for f8E8M0FNU scales only";
  bool encodeFirst = order == ScaleOrder::encode_first;
  if (encodeFirst && scales != &numerics::kF32)
    return emitError() << "found order = encode_first with scales of " << scale
                       << ", expected it for f32 scales only";
  if (order != ScaleOrder::te && !encodeFirst && !tensorScale)
    return emitError() << "found order = " << stringifyScaleOrder(order)
                       << " without a tensor scale, expected it for formats "
                          "with one only";
  if (!encodeFirst && (pow2Scales || !epsilon.isZero()))
    return emitError() << "found " << (pow2Scales ? "pow2_scales" : "epsilon")
                       << " with order = " << stringifyScaleOrder(order)
                       << ", expected it with order = encode_first only";
  if (!epsilon.isFinite() || epsilon.isNegative())
    return emitError() << "found epsilon = " << epsilon.convertToDouble()
                       << ", expected a finite number that is not negative";
  return success();
}

const numerics::ElementFormat &FormatAttr::getElemFormat() const {
  const numerics::ElementFormat &ofType = *elementFormat(getElem());
  // Under shared exponents, integers are the fixed-point numbers of MXINT8.
  bool fixedPoint =
      &ofType == &numerics::kINT8 && isa<Float8E8M0FNUType>(getScale());
  return fixedPoint ? numerics::kMXINT8 : ofType;
}

float FormatAttr::getElemUnit() const {
  return getElemFormat().max / elementFormat(getElem())->max;
}

const numerics::ElementFormat &FormatAttr::getScaleFormat() const {
  return *elementFormat(getScale());
}

SmallVector<int64_t> FormatAttr::getBlockExtents(int64_t axis,
                                                 int64_t rank) const {
  if (rank == 1)
    return {getBlockCols()};
  SmallVector<int64_t> extents{getBlockRows(), getBlockCols()};
  if (axis == 0)
    std::swap(extents[0], extents[1]);
  return extents;
}

std::string FormatAttr::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  // What is not said.
  ScaleRounding rounding = ScaleRounding::rceil;
  ScaleOrder order = ScaleOrder::te;
  bool pow2Scales = false;
  if (StringRef name = getName(); !name.empty()) {
    os << name;
    FormatAttr standard = named(getContext(), name);
    rounding = standard.getScaleRounding();
    order = standard.getOrder();
    pow2Scales = standard.getPow2Scales();
  } else {
    os << getElem() << ", scale = " << getScale()
       << ", block = " << blockText(getBlockRows(), getBlockCols());
    if (getTensorScale())
      os << ", tensor_scale = true";
    if (getTransposed())
      os << ", transposed = true";
  }
  if (getScaleRounding() != rounding)
    os << ", scale_rounding = " << stringifyScaleRounding(getScaleRounding());
  if (getOrder() != order)
    os << ", order = " << stringifyScaleOrder(getOrder());
  if (getPow2Scales() != pow2Scales)
    os << ", pow2_scales = " << (getPow2Scales() ? "true" : "false");
  if (!getEpsilon().isZero()) {
    SmallString<16> digits;
    getEpsilon().toString(digits, /*FormatPrecision=*/0,
                          /*FormatMaxPadding=*/0, /*TruncateZero=*/false);
    os << ", epsilon = " << digits;
  }
  return text;
}

void FormatAttr::print(AsmPrinter &p) const { p << "<" << describe() << ">"; }

namespace {

/// Base and options of a format as they are written.
class FormatParser {
public:
  explicit FormatParser(AsmParser &p) : p(p) {}

  FormatAttr parse();

private:
  ParseResult parseBase();
  ParseResult parseOption();
  ParseResult parseBlock();
  ParseResult parseBool(StringRef key, bool &value);
  /// A keyword of an enum: FO6.
  template <typename Enum>
  ParseResult parseChoice(StringRef key,
                          std::optional<Enum> (*symbolize)(StringRef),
                          StringRef expected, Enum &choice) {
    SMLoc loc = p.getCurrentLocation();
    StringRef value;
    if (p.parseKeyword(&value))
      return failure();
    std::optional<Enum> found = symbolize(value);
    if (!found)
      return p.emitError(loc)
             << "found " << key << " = " << value << ", expected " << expected;
    choice = *found;
    return success();
  }

  AsmParser &p;
  llvm::SmallSet<StringRef, 8> given;
  Type elem, scale;
  int64_t blockRows = 1, blockCols = 0;
  bool tensorScale = false, transposed = false;
  ScaleRounding rounding = ScaleRounding::rceil;
  ScaleOrder order = ScaleOrder::te;
  bool pow2Scales = false;
  APFloat epsilon = APFloat(0.0f);
};

} // namespace

/// A name or an element type: FO1.
ParseResult FormatParser::parseBase() {
  SMLoc loc = p.getCurrentLocation();
  if (OptionalParseResult type = p.parseOptionalType(elem); type.has_value())
    return *type;
  StringRef name;
  if (p.parseKeyword(&name))
    return failure();
  FormatAttr base = FormatAttr::named(p.getContext(), name);
  if (!base)
    return p.emitError(loc, "unknown format '")
           << name << "', expected one of "
           << llvm::join(FormatAttr::names(), ", ") << ", or an element type";
  elem = base.getElem();
  scale = base.getScale();
  blockRows = base.getBlockRows();
  blockCols = base.getBlockCols();
  tensorScale = base.getTensorScale();
  transposed = base.getTransposed();
  rounding = base.getScaleRounding();
  order = base.getOrder();
  pow2Scales = base.getPow2Scales();
  epsilon = base.getEpsilon();
  return success();
}

ParseResult FormatParser::parseBlock() {
  auto parseExtent = [&](int64_t &extent) -> ParseResult {
    if (failed(p.parseOptionalQuestion()))
      return p.parseInteger(extent);
    extent = ShapedType::kDynamic;
    return success();
  };
  return failure(p.parseLSquare() || parseExtent(blockRows) || p.parseComma() ||
                 parseExtent(blockCols) || p.parseRSquare());
}

ParseResult FormatParser::parseBool(StringRef key, bool &value) {
  SMLoc loc = p.getCurrentLocation();
  StringRef word;
  if (p.parseKeyword(&word))
    return failure();
  if (word != "true" && word != "false")
    return p.emitError(loc)
           << "found " << key << " = " << word << ", expected true or false";
  value = word == "true";
  return success();
}

ParseResult FormatParser::parseOption() {
  SMLoc loc = p.getCurrentLocation();
  StringRef key;
  if (p.parseKeyword(&key) || p.parseEqual())
    return failure();
  if (!given.insert(key).second) // FO5
    return p.emitError(loc, "option '") << key << "' is given twice";
  if (key == "scale")
    return p.parseType(scale);
  if (key == "block")
    return parseBlock();
  if (key == "tensor_scale")
    return parseBool(key, tensorScale);
  if (key == "transposed")
    return parseBool(key, transposed);
  if (key == "scale_rounding")
    return parseChoice(key, symbolizeScaleRounding,
                       "rceil, floor, ceil or even", rounding);
  if (key == "order")
    return parseChoice(key, symbolizeScaleOrder,
                       "te, div6_mul, div6_div or encode_first", order);
  if (key == "pow2_scales")
    return parseBool(key, pow2Scales);
  if (key == "epsilon")
    return p.parseFloat(APFloat::IEEEsingle(), epsilon);
  return p.emitError(loc, "unknown option '") // FO4
         << key
         << "', expected scale, block, tensor_scale, transposed, "
            "scale_rounding, order, pow2_scales or epsilon";
}

FormatAttr FormatParser::parse() {
  SMLoc start = p.getCurrentLocation();
  if (p.parseLess() || parseBase())
    return {};
  while (succeeded(p.parseOptionalComma()))
    if (parseOption())
      return {};
  if (p.parseGreater())
    return {};
  if (!scale || !blockCols) { // FO11
    p.emitError(start, "found an element type without ")
        << (scale ? "block" : "scale")
        << ", expected scale = TYPE and block = [ROWS, COLUMNS]";
    return {};
  }
  return FormatAttr::getChecked([&] { return p.emitError(start); },
                                p.getContext(), elem, scale, blockRows,
                                blockCols, tensorScale, transposed, rounding,
                                order, pow2Scales, epsilon);
}

Attribute FormatAttr::parse(AsmParser &p, Type) {
  return FormatParser(p).parse();
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

void LayoutAttr::print(AsmPrinter &p) const {
  p << "<\"" << getLayout().toString() << "\">";
}

Attribute LayoutAttr::parse(AsmParser &p, Type) {
  std::string text;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseString(&text) || p.parseGreater())
    return {};
  auto layout = layout::RepeatedLayout::parse(text);
  if (!layout) {
    p.emitError(loc, layout.message()); // LA1
    return {};
  }
  return get(p.getContext(), *layout);
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elem,
                           function_ref<InFlightDiagnostic()> emitError) const {
  std::vector<int64_t> covered = getLayout().shape(); // LA2 to LA4
  if (covered.size() != shape.size())
    return emitError() << "layout of rank " << covered.size()
                       << " on a tensor of rank " << shape.size();
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (ShapedType::isDynamic(extent))
      return emitError() << "layout on a tensor with dynamic dimension " << d
                         << ", expected a static shape";
    if (covered[d] < extent)
      return emitError() << "layout covers " << covered[d]
                         << " elements of dimension " << d
                         << ", expected at least " << extent;
  }
  return success();
}

} // namespace dither::quant
