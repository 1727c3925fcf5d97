//===- Words.cpp - Narrow types: conversions, choices, constants ----------===//

#include "Distribute/Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"

using namespace mlir;

namespace dither::transforms {

/// An operation on words for every word: vectors of all registers would only be
/// taken apart again.
static void convertWords(Distributor &d, const Registers &from, Value result,
                         StringRef name, Type elem, const TileLayout &words,
                         NamedAttrList attrs) {
  int64_t group = wordGroup(words, quant::storageBits(elem));
  attrs.set("group", d.b.getI64IntegerAttr(group));
  bool encodes = d.tile(result).getElementType() == elem;
  int64_t in = encodes ? group : 1, out = encodes ? 1 : group;
  Type to = encodes ? d.b.getI32Type() : Type(d.b.getF32Type());
  Registers converted;
  for (size_t i = 0; i < from.size(); i += in) {
    ArrayRef<Value> part = ArrayRef<Value>(from).slice(i, in);
    Type type = getElementTypeOrSelf(part.front().getType());
    SmallVector<int64_t> shape{out};
    if (d.simd)
      shape.push_back(kSimdLanes);
    OperationState state(d.e.loc, name, {d.e.pack(part, type)},
                         {VectorType::get(shape, to)}, attrs);
    llvm::append_range(converted, d.e.unpack(d.b.create(state)->getResult(0)));
  }
  d.setRegs(result, converted);
}

static void encodeWords(Distributor &d, const Registers &from, Value result,
                        Attribute mode = {}) {
  Type elem = d.tile(result).getElementType();
  NamedAttrList attrs;
  attrs.set("elem", TypeAttr::get(elem));
  if (mode)
    attrs.set("mode", mode);
  convertWords(d, from, result, quant::EncodeWordsOp::getOperationName(), elem,
               d.layout(result), attrs);
}

static void decodeWords(Distributor &d, Value operand, Value result,
                        bool inverse) {
  Type elem = d.tile(operand).getElementType();
  NamedAttrList attrs;
  if (!inverse)
    attrs.set("elem", TypeAttr::get(elem));
  convertWords(d, d.regs(operand), result,
               inverse ? quant::E8M0InverseWordsOp::getOperationName()
                       : quant::DecodeWordsOp::getOperationName(),
               elem, d.layout(operand), attrs);
}

/// The word of `group` elements that are all `value`.
static IntegerAttr wordOf(OpBuilder &b, TypedAttr value, int64_t group) {
  APInt code = isa<FloatAttr>(value)
                   ? cast<FloatAttr>(value).getValue().bitcastToAPInt()
                   : cast<IntegerAttr>(value).getValue();
  code = code.zext(quant::storageBits(value.getType()));
  return b.getIntegerAttr(
      b.getI32Type(),
      APInt::getSplat(group * code.getBitWidth(), code).zext(32));
}

/// Whether these are a tile of f32 and one of a 16-bit float.
static bool converts16(Value wide, Value narrow) {
  Type elem = Distributor::tile(narrow).getElementType();
  return Distributor::tile(wide).getElementType().isF32() &&
         (elem.isBF16() || elem.isF16());
}

/// A choice between tiles of a narrow type: of words where one condition
/// decides for all elements, else of codes.
static Emitted emitSelect(Distributor &d, arith::SelectOp op) {
  if (!d.tile(op.getResult()) ||
      !wordBits(d.tile(op.getResult()).getElementType()))
    return std::nullopt;
  Value condition = op.getCondition(), result = op.getResult();
  Registers yes = d.regs(op.getTrueValue()), no = d.regs(op.getFalseValue());
  int64_t bits = wordBits(d.tile(result).getElementType());
  int64_t group = wordGroup(d.layout(result), bits);
  bool each = bool(d.tile(condition));
  if (each) {
    yes = d.e.unpackCodes(yes, group, bits);
    no = d.e.unpackCodes(no, group, bits);
  }
  Registers chosen;
  for (auto [i, pair] : llvm::enumerate(llvm::zip(yes, no))) {
    Value flag = each ? d.regs(condition)[i] : d.get(condition);
    chosen.push_back(
        d.e.make<arith::SelectOp>(flag, std::get<0>(pair), std::get<1>(pair)));
  }
  d.setRegs(result,
            each ? Registers(d.e.packCodes(chosen, group, bits)) : chosen);
  return success();
}

static Emitted emitEncode(Distributor &d, quant::EncodeOp op) {
  encodeWords(d, d.regs(op.getSource()), op.getResult(), op.getModeAttr());
  return success();
}

/// What needs no promise: products, and their codes.
static Emitted emitScaleEncode(Distributor &d, quant::ScaleEncodeOp op) {
  Registers products;
  for (auto [x, f] : llvm::zip(d.regs(op.getSource()), d.regs(op.getFactor())))
    products.push_back(d.e.make<arith::MulFOp>(x, f));
  encodeWords(d, products, op.getResult());
  return success();
}

static Emitted emitDecode(Distributor &d, quant::DecodeOp op) {
  decodeWords(d, op.getSource(), op.getResult(), false);
  return success();
}

static Emitted emitE8M0Inverse(Distributor &d, quant::E8M0InverseOp op) {
  decodeWords(d, op.getSource(), op.getResult(), true);
  return success();
}

static Emitted emitExtend(Distributor &d, arith::ExtFOp op) {
  if (!d.tile(op.getOut()) || !converts16(op.getOut(), op.getIn()))
    return std::nullopt;
  decodeWords(d, op.getIn(), op.getOut(), false);
  return success();
}

static Emitted emitTruncate(Distributor &d, arith::TruncFOp op) {
  if (!d.tile(op.getOut()) || !converts16(op.getIn(), op.getOut()))
    return std::nullopt;
  constexpr auto nearest = arith::RoundingMode::to_nearest_even;
  if (op.getRoundingmode().value_or(nearest) != nearest)
    return op.emitOpError("rounds in a way that has no distributed form, "
                          "expected to_nearest_even");
  encodeWords(d, d.regs(op.getIn()), op.getOut());
  return success();
}

static Emitted emitConstant(Distributor &d, arith::ConstantOp op) {
  Value result = op.getResult();
  if (!d.tile(result))
    return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !dense.isSplat())
    return op.emitOpError("expected a splat");
  auto [type, n] = d.registerType(d.tile(result));
  TypedAttr value = dense.getSplatValue<TypedAttr>();
  if (int64_t bits = wordBits(value.getType()))
    value = wordOf(d.b, value, wordGroup(d.layout(result), bits));
  if (auto shaped = dyn_cast<ShapedType>(type))
    value = DenseElementsAttr::get(shaped, Attribute(value));
  d.setRegs(result, Registers(n, d.e.constant(value)));
  return success();
}

void addWordOps(OpTable &table) {
  table.add(emitEncode);
  table.add(emitScaleEncode);
  table.add(emitDecode);
  table.add(emitE8M0Inverse);
  table.add(emitExtend);
  table.add(emitTruncate);
  table.add(emitSelect);
  table.add(emitConstant);
}

} // namespace dither::transforms
