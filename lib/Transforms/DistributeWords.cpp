//===- DistributeWords.cpp - Conversions and choices of narrow types -----===//

#include "Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"

using namespace mlir;

namespace dither::transforms {

void Distributor::convertWords(Value operand, Value result, StringRef name,
                               Type elem, const LaneLayout &words,
                               NamedAttrList attrs) {
  int64_t group = wordGroup(words, quant::storageBits(elem));
  attrs.set("group", b.getI64IntegerAttr(group));
  bool encodes = tile(result).getElementType() == elem;
  int64_t in = encodes ? group : 1, out = encodes ? 1 : group;
  Type to = encodes ? b.getI32Type() : Type(b.getF32Type());
  Registers from = regs(operand), converted;
  for (size_t i = 0; i < from.size(); i += in) {
    ArrayRef<Value> part = ArrayRef<Value>(from).slice(i, in);
    Type type = getElementTypeOrSelf(part.front().getType());
    SmallVector<int64_t> shape{out};
    if (simd)
      shape.push_back(kSimdLanes);
    OperationState state(e.loc, name, {e.pack(part, type)},
                         {VectorType::get(shape, to)}, attrs);
    llvm::append_range(converted, e.unpack(b.create(state)->getResult(0)));
  }
  set(result, converted);
}

void Distributor::encodeWords(Value operand, Value result, Attribute mode) {
  Type elem = tile(result).getElementType();
  NamedAttrList attrs;
  attrs.set("elem", TypeAttr::get(elem));
  if (mode)
    attrs.set("mode", mode);
  convertWords(operand, result, quant::EncodeWordsOp::getOperationName(), elem,
               layout(result), attrs);
}

void Distributor::decodeWords(Value operand, Value result, bool inverse) {
  Type elem = tile(operand).getElementType();
  NamedAttrList attrs;
  if (!inverse)
    attrs.set("elem", TypeAttr::get(elem));
  convertWords(operand, result,
               inverse ? quant::E8M0InverseWordsOp::getOperationName()
                       : quant::DecodeWordsOp::getOperationName(),
               elem, layout(operand), attrs);
}

IntegerAttr Distributor::wordOf(TypedAttr value, int64_t group) {
  APInt code = isa<FloatAttr>(value)
                   ? cast<FloatAttr>(value).getValue().bitcastToAPInt()
                   : cast<IntegerAttr>(value).getValue();
  code = code.zext(quant::storageBits(value.getType()));
  return b.getIntegerAttr(
      b.getI32Type(),
      APInt::getSplat(group * code.getBitWidth(), code).zext(32));
}

bool Distributor::converts16(Value wide, Value narrow) {
  Type elem = tile(narrow).getElementType();
  return tile(wide).getElementType().isF32() && (elem.isBF16() || elem.isF16());
}

void Distributor::selectWords(arith::SelectOp op) {
  Value condition = op.getCondition(), result = op.getResult();
  Registers yes = regs(op.getTrueValue()), no = regs(op.getFalseValue());
  int64_t bits = wordBits(tile(result).getElementType());
  int64_t group = wordGroup(layout(result), bits);
  bool each = bool(tile(condition));
  if (each) {
    yes = e.unpackCodes(yes, group, bits);
    no = e.unpackCodes(no, group, bits);
  }
  Registers chosen;
  for (auto [i, pair] : llvm::enumerate(llvm::zip(yes, no))) {
    Value flag = each ? regs(condition)[i] : get(condition);
    chosen.push_back(
        e.make<arith::SelectOp>(flag, std::get<0>(pair), std::get<1>(pair)));
  }
  set(result, each ? Registers(e.packCodes(chosen, group, bits)) : chosen);
}

} // namespace dither::transforms
