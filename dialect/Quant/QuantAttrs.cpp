//===- QuantAttrs.cpp - Formats and layouts -------------------------------===//

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Numerics/Formats.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

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
                  unsigned(ScaleOrder::div6_div) ==
                      unsigned(numerics::ScaleOrder::Div6Div),
              "the dialect's choices are those of the numerics library");

/// The descriptor of this name; null if there is none.
static const numerics::BlockFormat *findFormat(StringRef name) {
  return numerics::findBlockFormat({name.data(), name.size()});
}

static Type toType(MLIRContext *context, const numerics::FloatFormat *format) {
  if (format == &numerics::kE2M1)
    return Float4E2M1FNType::get(context);
  if (format == &numerics::kE4M3)
    return Float8E4M3FNType::get(context);
  if (format == &numerics::kE5M2)
    return Float8E5M2Type::get(context);
  return Float8E8M0FNUType::get(context);
}

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
  const numerics::BlockFormat *f = findFormat(name);
  if (!f)
    return {};
  return get(context, name, toType(context, f->elem), toType(context, f->scale),
             f->block, f->tensorScale, ScaleRounding(f->rounding),
             ScaleOrder(f->order));
}

/// FO1 to FO3.
LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, Type elem, Type scale,
                                 int64_t block, bool tensorScale,
                                 ScaleRounding rounding, ScaleOrder order) {
  const numerics::BlockFormat *f = findFormat(name);
  if (!f)
    return emitError() << "unknown format '" << name << "', expected one of "
                       << llvm::join(names(), ", ");
  MLIRContext *context = elem.getContext();
  if (elem != toType(context, f->elem) || scale != toType(context, f->scale) ||
      block != int64_t(f->block) || tensorScale != f->tensorScale)
    return emitError() << "format '" << name
                       << "' with other types or another block than its own";
  if (rounding != ScaleRounding(f->rounding) && f->scale != &numerics::kE8M0)
    return emitError() << "found scale_rounding = "
                       << stringifyScaleRounding(rounding) << " for '" << name
                       << "', which has scales of " << scale
                       << ", expected it for f8E8M0FNU scales only";
  if (order != ScaleOrder(f->order) && !tensorScale)
    return emitError() << "found order = " << stringifyScaleOrder(order)
                       << " for '" << name
                       << "', which has no tensor scale, expected it for "
                          "formats with one only";
  return success();
}

double FormatAttr::getElemMax() const {
  return findFormat(getName())->elem->max;
}

int64_t FormatAttr::getElemEmax() const {
  return findFormat(getName())->elem->maxExponent();
}

SmallVector<int64_t> FormatAttr::getBlockExtents(int64_t axis,
                                                 int64_t rank) const {
  SmallVector<int64_t> extents(rank, 1);
  extents[axis] = getBlock();
  return extents;
}

void FormatAttr::print(AsmPrinter &p) const {
  FormatAttr standard = named(getContext(), getName());
  p << "<" << getName();
  if (getScaleRounding() != standard.getScaleRounding())
    p << ", scale_rounding = " << stringifyScaleRounding(getScaleRounding());
  if (getOrder() != standard.getOrder())
    p << ", order = " << stringifyScaleOrder(getOrder());
  p << ">";
}

/// A keyword of an enum, for the option `key`: FO6.
template <typename Enum>
static ParseResult parseChoice(AsmParser &p, StringRef key,
                               std::optional<Enum> (*symbolize)(StringRef),
                               StringRef expected,
                               std::optional<Enum> &choice) {
  SMLoc loc = p.getCurrentLocation();
  StringRef value;
  if (p.parseKeyword(&value))
    return failure();
  choice = symbolize(value);
  if (!choice)
    return p.emitError(loc)
           << "found " << key << " = " << value << ", expected " << expected;
  return success();
}

Attribute FormatAttr::parse(AsmParser &p, Type) {
  StringRef name, key;
  SMLoc start = p.getCurrentLocation();
  if (p.parseLess() || p.parseKeyword(&name))
    return {};
  FormatAttr format = named(p.getContext(), name);
  if (!format) {
    p.emitError(start, "unknown format '")
        << name << "', expected one of " << llvm::join(names(), ", ");
    return {};
  }
  std::optional<ScaleRounding> rounding;
  std::optional<ScaleOrder> order;
  while (succeeded(p.parseOptionalComma())) {
    SMLoc loc = p.getCurrentLocation();
    if (p.parseKeyword(&key) || p.parseEqual())
      return {};
    bool isRounding = key == "scale_rounding", isOrder = key == "order";
    if (!isRounding && !isOrder) // FO4
      return p.emitError(loc, "unknown option '")
                 << key << "', expected scale_rounding or order",
             Attribute();
    if (isRounding ? rounding.has_value() : order.has_value()) // FO5
      return p.emitError(loc, "option '") << key << "' is given twice",
             Attribute();
    if (isRounding ? parseChoice(p, key, symbolizeScaleRounding,
                                 "rceil, floor, ceil or even", rounding)
                   : parseChoice(p, key, symbolizeScaleOrder,
                                 "te, div6_mul or div6_div", order))
      return {};
  }
  if (p.parseGreater())
    return {};
  return getChecked([&] { return p.emitError(start); }, p.getContext(), name,
                    format.getElem(), format.getScale(), format.getBlock(),
                    format.getTensorScale(),
                    rounding.value_or(format.getScaleRounding()),
                    order.value_or(format.getOrder()));
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
