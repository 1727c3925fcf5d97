//===- QuantAttrs.cpp - Formats and layouts -------------------------------===//

#include "dither/Dialect/Quant/QuantDialect.h"
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

ArrayRef<StringRef> FormatAttr::names() {
  static const StringRef table[] = {"nvfp4", "mxfp4", "mxfp8_e4m3",
                                    "mxfp8_e5m2"};
  return table;
}

FormatAttr FormatAttr::named(MLIRContext *context, StringRef name) {
  Type e2m1 = Float4E2M1FNType::get(context),
       e4m3 = Float8E4M3FNType::get(context),
       e5m2 = Float8E5M2Type::get(context),
       e8m0 = Float8E8M0FNUType::get(context);
  using R = ScaleRounding;
  if (name == "nvfp4")
    return get(context, name, e2m1, e4m3, 16, true, R::rceil, ScaleOrder::te);
  if (name == "mxfp4")
    return get(context, name, e2m1, e8m0, 32, false, R::floor, ScaleOrder::te);
  if (name == "mxfp8_e4m3")
    return get(context, name, e4m3, e8m0, 32, false, R::rceil, ScaleOrder::te);
  if (name == "mxfp8_e5m2")
    return get(context, name, e5m2, e8m0, 32, false, R::rceil, ScaleOrder::te);
  return {};
}

double FormatAttr::getElemMax() const {
  return isa<Float4E2M1FNType>(getElem())   ? 6.0
         : isa<Float8E4M3FNType>(getElem()) ? 448.0
                                            : 57344.0;
}

int64_t FormatAttr::getElemEmax() const {
  return isa<Float4E2M1FNType>(getElem())   ? 2
         : isa<Float8E4M3FNType>(getElem()) ? 8
                                            : 15;
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

Attribute FormatAttr::parse(AsmParser &p, Type) {
  StringRef name;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseLess() || p.parseKeyword(&name))
    return {};
  FormatAttr format = named(p.getContext(), name);
  if (!format) {
    p.emitError(loc, "unknown format '")
        << name << "', expected one of " << llvm::join(names(), ", ");
    return {};
  }
  ScaleRounding rounding = format.getScaleRounding();
  ScaleOrder order = format.getOrder();
  while (succeeded(p.parseOptionalComma())) {
    StringRef key, value;
    loc = p.getCurrentLocation();
    if (p.parseKeyword(&key) || p.parseEqual() || p.parseKeyword(&value))
      return {};
    if (key == "scale_rounding") {
      auto parsed = symbolizeScaleRounding(value);
      if (!parsed)
        return p.emitError(loc, "unknown scale rounding '")
                   << value << "', expected rceil, floor, ceil or even",
               Attribute();
      rounding = *parsed;
    } else if (key == "order") {
      auto parsed = symbolizeScaleOrder(value);
      if (!parsed)
        return p.emitError(loc, "unknown scale order '")
                   << value << "', expected te, div6_mul or div6_div",
               Attribute();
      order = *parsed;
    } else {
      return p.emitError(loc, "unknown option '")
                 << key << "', expected scale_rounding or order",
             Attribute();
    }
  }
  if (p.parseGreater())
    return {};
  return get(p.getContext(), name, format.getElem(), format.getScale(),
             format.getBlock(), format.getTensorScale(), rounding, order);
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
    p.emitError(loc, layout.message());
    return {};
  }
  return get(p.getContext(), *layout);
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elem,
                           function_ref<InFlightDiagnostic()> emitError) const {
  std::vector<int64_t> covered = getLayout().shape();
  if (covered.size() != shape.size())
    return emitError() << "layout of rank " << covered.size()
                       << " on a tensor of rank " << shape.size();
  for (auto [d, extent] : llvm::enumerate(shape))
    if (covered[d] < extent)
      return emitError() << "layout covers " << covered[d]
                         << " elements of dimension " << d
                         << ", expected at least " << extent;
  return success();
}

} // namespace dither::quant
