//===- QuantAttrs.cpp - Formats and layouts -------------------------------===//

#include "Checks.h"
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
                  unsigned(ScaleOrder::mul_inv6) ==
                      unsigned(numerics::ScaleOrder::MulInv6) &&
                  unsigned(TensorScaleAs::decode) ==
                      unsigned(numerics::TensorScaleAs::Decode) &&
                  unsigned(InfScale::FF) == unsigned(numerics::InfScale::FF) &&
                  unsigned(FourOverSix::mse) ==
                      unsigned(numerics::FourOverSix::MSE),
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
             extent(f->blockCols), f->tensorScale, f->transposed, f->rule);
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

/// An f32 as the parser of options takes it.
static std::string text(float value) {
  SmallString<16> digits;
  APFloat(value).toString(digits, /*FormatPrecision=*/0, /*FormatMaxPadding=*/0,
                          /*TruncateZero=*/false);
  return digits.str().str();
}

/// The options of a rule as they are written, in the order that they are
/// printed in.
static SmallVector<std::pair<StringRef, std::string>>
optionsOf(const numerics::ScaleRule &rule) {
  auto flag = [](bool value) -> std::string {
    return value ? "true" : "false";
  };
  return {
      {"scale_rounding",
       stringifyScaleRounding(ScaleRounding(rule.rounding)).str()},
      {"order", stringifyScaleOrder(ScaleOrder(rule.order)).str()},
      {"pow2_scales", flag(rule.pow2Scales)},
      {"epsilon", text(rule.epsilon)},
      {"tensor_scale_as",
       stringifyTensorScaleAs(TensorScaleAs(rule.tensorScaleAs)).str()},
      {"largest_scale", text(rule.largestScale)},
      {"least_scale", text(rule.leastScale)},
      {"inf_scale", stringifyInfScale(InfScale(rule.infScale)).str()},
      {"nan_scales", flag(rule.nanScales)},
      {"four_over_six",
       stringifyFourOverSix(FourOverSix(rule.fourOverSix)).str()},
  };
}

/// Options that differ from those of `base`.
static SmallVector<std::pair<StringRef, std::string>>
changes(const numerics::ScaleRule &rule, const numerics::ScaleRule &base) {
  SmallVector<std::pair<StringRef, std::string>> changed;
  for (auto [option, standard] :
       llvm::zip_equal(optionsOf(rule), optionsOf(base)))
    if (option != standard)
      changed.push_back(option);
  return changed;
}

/// FO2, FO3, FO12 to FO20: what options are for.
static LogicalResult checkRule(function_ref<InFlightDiagnostic()> emitError,
                               const numerics::ScaleRule &rule, Type elem,
                               Type scale, bool wholeRow, bool tensorScale) {
  auto written = [&](StringRef key) {
    for (auto &[name, value] : optionsOf(rule))
      if (name == key)
        return (key + " = " + value).str();
    llvm_unreachable("an option of the list");
  };
  auto refuse = [&](StringRef key, const Twine &found,
                    const Twine &expected) -> LogicalResult {
    return emitError() << "found " << written(key) << found << ", expected "
                       << expected;
  };
  using numerics::ScaleOrder;
  bool isE8M0 = isa<Float8E8M0FNUType>(scale);
  std::string ofScale = " with scales of " + str(scale);
  auto with = [&](StringRef key) { return " with " + written(key); };
  bool encodeFirst = rule.order == ScaleOrder::EncodeFirst;
  bool rceil = rule.rounding == numerics::ScaleRounding::RCeil;
  if (!rceil && !isE8M0)
    return refuse("scale_rounding", ofScale, "it for f8E8M0FNU scales only");
  if (encodeFirst && !scale.isF32())
    return refuse("order", ofScale, "it for f32 scales only");
  if (rule.order != ScaleOrder::TE && isE8M0)
    return refuse("order", ofScale, "it for f8E4M3FN and f32 scales only");
  for (auto [key, said] : {std::pair("pow2_scales", rule.pow2Scales),
                           std::pair("epsilon", rule.epsilon != 0)})
    if (said && !encodeFirst)
      return refuse(key, with("order"), "it with order = encode_first only");
  for (auto [key, value] : {std::pair("epsilon", rule.epsilon),
                            std::pair("least_scale", rule.leastScale),
                            std::pair("largest_scale", rule.largestScale)})
    if (!std::isfinite(value) || std::signbit(value))
      return refuse(key, "", "a finite number that is not negative");
  for (auto [key, said] :
       {std::pair("tensor_scale_as",
                  rule.tensorScaleAs != numerics::TensorScaleAs::Amax),
        std::pair("largest_scale", rule.largestScale != 448)})
    if (said && !tensorScale)
      return refuse(key, " without a tensor scale",
                    "it for formats with one only");
  if (tensorScale && !(rule.largestScale >= 1 && rule.largestScale <= 448))
    return refuse("largest_scale", "", "1 to 448");
  if (rule.leastScale && (isE8M0 || encodeFirst))
    return refuse("least_scale", encodeFirst ? with("order") : ofScale,
                  encodeFirst ? "epsilon" : "f8E4M3FN or f32 scales");
  if (rule.leastScale > 448 && !scale.isF32())
    return refuse("least_scale", "", "at most 448, the largest scale");
  if (rule.infScale != numerics::InfScale::FE && !(isE8M0 && rceil))
    return refuse("inf_scale", isE8M0 ? with("scale_rounding") : ofScale,
                  isE8M0 ? "it with scale_rounding = rceil only"
                         : "it for f8E8M0FNU scales only");
  if (rule.nanScales && wholeRow)
    return refuse("nan_scales", " with blocks of whole rows",
                  "it for shorter blocks only");
  if (rule.fourOverSix != numerics::FourOverSix::None &&
      (!isa<Float4E2M1FNType>(elem) || !isa<Float8E4M3FNType>(scale) ||
       wholeRow))
    return refuse("four_over_six", "",
                  "it for f4E2M1FN elements in short blocks with f8E4M3FN "
                  "scales only");
  return success();
}

/// FO7 to FO10.
LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Type elem, Type scale, int64_t blockRows,
                                 int64_t blockCols, bool tensorScale,
                                 bool transposed, numerics::ScaleRule rule) {
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
  return checkRule(emitError, rule, elem, scale, wholeRow, tensorScale);
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
  numerics::ScaleRule unsaid;
  if (StringRef name = getName(); !name.empty()) {
    os << name;
    unsaid = named(getContext(), name).getRule();
  } else {
    os << getElem() << ", scale = " << getScale()
       << ", block = " << blockText(getBlockRows(), getBlockCols());
    if (getTensorScale())
      os << ", tensor_scale = true";
    if (getTransposed())
      os << ", transposed = true";
  }
  for (auto &[key, value] : changes(getRule(), unsaid))
    os << ", " << key << " = " << value;
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
  ParseResult parseFloat(float &value);
  /// A keyword of an enum: FO6.
  template <typename Enum, typename Choice>
  ParseResult parseChoice(StringRef key,
                          std::optional<Enum> (*symbolize)(StringRef),
                          StringRef expected, Choice &choice) {
    SMLoc loc = p.getCurrentLocation();
    StringRef value;
    if (p.parseKeyword(&value))
      return failure();
    std::optional<Enum> found = symbolize(value);
    if (!found)
      return p.emitError(loc)
             << "found " << key << " = " << value << ", expected " << expected;
    choice = Choice(*found);
    return success();
  }

  AsmParser &p;
  llvm::SmallSet<StringRef, 8> given;
  Type elem, scale;
  int64_t blockRows = 1, blockCols = 0;
  bool tensorScale = false, transposed = false;
  numerics::ScaleRule rule;
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
  rule = base.getRule();
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

ParseResult FormatParser::parseFloat(float &value) {
  APFloat parsed(0.0f);
  if (p.parseFloat(APFloat::IEEEsingle(), parsed))
    return failure();
  value = parsed.convertToFloat();
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
                       "rceil, floor, ceil or even", rule.rounding);
  if (key == "order")
    return parseChoice(key, symbolizeScaleOrder,
                       "te, div6_mul, div6_div, encode_first or mul_inv6",
                       rule.order);
  if (key == "pow2_scales")
    return parseBool(key, rule.pow2Scales);
  if (key == "epsilon")
    return parseFloat(rule.epsilon);
  if (key == "tensor_scale_as")
    return parseChoice(key, symbolizeTensorScaleAs, "amax, encode or decode",
                       rule.tensorScaleAs);
  if (key == "largest_scale")
    return parseFloat(rule.largestScale);
  if (key == "least_scale")
    return parseFloat(rule.leastScale);
  if (key == "inf_scale")
    return parseChoice(key, symbolizeInfScale, "FE or FF", rule.infScale);
  if (key == "nan_scales")
    return parseBool(key, rule.nanScales);
  if (key == "four_over_six")
    return parseChoice(key, symbolizeFourOverSix, "none, mae or mse",
                       rule.fourOverSix);
  return p.emitError(loc, "unknown option '") // FO4
         << key << "', expected scale, block, tensor_scale, transposed, "
         << llvm::join(llvm::make_first_range(optionsOf(rule)), ", ");
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
                                blockCols, tensorScale, transposed, rule);
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
