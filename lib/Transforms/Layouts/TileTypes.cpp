//===- TileTypes.cpp - Types of tiles and the layouts they carry ----------===//

#include "Layouts/TileTypes.h"
#include "dither/Dialect/Quant/CodeTypes.h"

using namespace mlir;

namespace dither::transforms {

quant::LayoutAttr toAttr(MLIRContext *ctx, const TileLayout &l) {
  return quant::LayoutAttr::get(ctx, l.repeated());
}

std::optional<TileLayout> layoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return std::nullopt;
  auto attr = dyn_cast_or_null<quant::LayoutAttr>(tensor.getEncoding());
  if (!attr)
    return std::nullopt;
  return TileLayout(attr.getLayout());
}

RankedTensorType withLayout(RankedTensorType type, const TileLayout &layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               toAttr(type.getContext(), layout));
}

int64_t wordBits(Type elem) {
  if (elem.isInteger(1) || !elem.isIntOrFloat())
    return 0;
  int64_t bits = quant::storageBits(elem);
  return bits < 32 ? bits : 0;
}

int64_t wordGroup(const TileLayout &layout, int64_t bits) {
  return std::min<int64_t>(32 / bits, int64_t(1) << layout.contiguousBits());
}

VectorType distributedType(RankedTensorType type, bool simd) {
  TileLayout layout = *layoutOf(type);
  Type elem = type.getElementType();
  SmallVector<int64_t> shape{layout.numRegs()};
  if (int64_t bits = wordBits(elem)) {
    shape[0] /= wordGroup(layout, bits);
    elem = IntegerType::get(type.getContext(), 32);
  }
  if (elem.isIndex())
    elem = IntegerType::get(type.getContext(), 64);
  if (simd)
    shape.push_back(kSimdLanes);
  return VectorType::get(shape, elem);
}

} // namespace dither::transforms
