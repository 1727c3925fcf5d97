//===- QuantFolds.cpp - Folding and canonicalization ----------------------===//

#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/Convert.h"
#include "dither/Numerics/Elementary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/CommonFolders.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;

namespace dither::quant {

/// A splat of `source` in `type`; null if it is no splat or `type` has no
/// constants.
static DenseElementsAttr splatOf(Attribute source, RankedTensorType type) {
  if (!source || !type.hasStaticShape())
    return {};
  if (auto dense = dyn_cast<DenseElementsAttr>(source))
    return dense.isSplat() ? dense.resizeSplat(type) : DenseElementsAttr();
  if (isa<FloatAttr, IntegerAttr>(source))
    return DenseElementsAttr::get(type, source);
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  RankedTensorType type = getResult().getType();
  if (getSource().getType() == type)
    return getSource();
  if (DenseElementsAttr splat = splatOf(adaptor.getSource(), type))
    return splat;
  // A broadcast of a broadcast repeats the first source.
  if (auto inner = getSource().getDefiningOp<BroadcastOp>()) {
    auto source = dyn_cast<RankedTensorType>(inner.getSource().getType());
    if (!source || source.getRank() == 0 ||
        source.getRank() == type.getRank()) {
      getSourceMutable().assign(inner.getSource());
      return getResult();
    }
  }
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (DenseElementsAttr splat =
          splatOf(adaptor.getSource(), getResult().getType()))
    return splat;
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getSource().getDefiningOp<TransposeOp>();
      inner && inner.getSource().getType() == getResult().getType())
    return inner.getSource();
  return splatOf(adaptor.getSource(), getResult().getType());
}

/// transpose(encode(x)) -> encode(transpose(x)): f32 registers change hands
/// for free, packed codes do not. Of products that is one tile, of what they
/// are made of two.
LogicalResult TransposeOp::canonicalize(TransposeOp op,
                                        PatternRewriter &rewriter) {
  auto encode = op.getSource().getDefiningOp<EncodeOp>();
  auto scaled = op.getSource().getDefiningOp<ScaleEncodeOp>();
  if (!(encode || scaled) || op.getType().getEncoding())
    return failure();
  Value wide =
      encode ? Value(encode.getSource())
             : arith::MulFOp::create(rewriter, scaled.getLoc(),
                                     scaled.getSource(), scaled.getFactor())
                   .getResult();
  wide = TransposeOp::create(rewriter, op.getLoc(), wide);
  auto moved = EncodeOp::create(rewriter, op.getLoc(), op.getType(), wide,
                                encode ? encode.getModeAttr() : E8M0ModeAttr());
  rewriter.replaceOp(op, moved.getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// Functions of constants
//===----------------------------------------------------------------------===//

OpFoldResult foldElementary(numerics::Function function, Attribute operand) {
  return constFoldUnaryOp<FloatAttr, FloatAttr::ValueType, void>(
      ArrayRef(operand), [&](const APFloat &x) {
        return APFloat(numerics::evaluate(function, x.convertToFloat()));
      });
}

/// Whether a reshape leaves each element in its row and column, as one that
/// adds or drops an axis of one element in front.
static bool keepsPlaces(ReshapeOp reshape) {
  auto extents = [](Value v) {
    return cast<RankedTensorType>(v.getType())
        .getShape()
        .drop_while([](int64_t extent) { return extent == 1; });
  };
  return extents(reshape.getSource()) == extents(reshape.getResult());
}

/// The source of broadcasts, and of reshapes that keep places.
static Value withoutRepetition(Value v) {
  while (Operation *def = v.getDefiningOp()) {
    auto reshape = dyn_cast<ReshapeOp>(def);
    if (!isa<BroadcastOp>(def) && !(reshape && keepsPlaces(reshape)))
      break;
    v = def->getOperand(0);
  }
  return v;
}

/// Whether no element of `v` is above zero: x less its maximum, or -|y|.
static bool isNonpositive(Value v) {
  if (auto negation = v.getDefiningOp<arith::NegFOp>())
    return negation.getOperand().getDefiningOp<math::AbsFOp>() != nullptr;
  auto difference = v.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return false;
  auto most = withoutRepetition(difference.getRhs()).getDefiningOp<ReduceOp>();
  return most && most.getKind() == ReduceKind::max && !most.getCount() &&
         most.getSource() == difference.getLhs();
}

LogicalResult ExpOp::canonicalize(ExpOp op, PatternRewriter &rewriter) {
  if (op.getNonpositive() || !isNonpositive(op.getOperand()))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.setNonpositive(true); });
  return success();
}

OpFoldResult MulhiOp::fold(FoldAdaptor adaptor) {
  return constFoldBinaryOp<IntegerAttr, IntegerAttr::ValueType, void>(
      adaptor.getOperands(), [&](const APInt &x, const APInt &y) {
        return getIsUnsigned() ? llvm::APIntOps::mulhu(x, y)
                               : llvm::APIntOps::mulhs(x, y);
      });
}

//===----------------------------------------------------------------------===//
// Conversions of splats
//===----------------------------------------------------------------------===//

/// The bits of a splat of elements; nothing if `source` is none.
static std::optional<uint32_t> splatBits(Attribute source) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(source);
  if (!dense || !dense.isSplat() || !elementFormat(dense.getElementType()))
    return std::nullopt;
  APInt bits = isa<FloatType>(dense.getElementType())
                   ? dense.getSplatValue<APFloat>().bitcastToAPInt()
                   : dense.getSplatValue<APInt>();
  return uint32_t(bits.getZExtValue());
}

/// A splat of `type` with these bits.
static OpFoldResult splatFromBits(RankedTensorType type, uint32_t bits) {
  if (!type.hasStaticShape())
    return {};
  Type elem = type.getElementType();
  APInt value(elem.getIntOrFloatBitWidth(), bits);
  if (auto number = dyn_cast<FloatType>(elem))
    return DenseElementsAttr::get(type,
                                  APFloat(number.getFloatSemantics(), value));
  return DenseElementsAttr::get(type, value);
}

/// What codes of a format cannot tell from a value: what is clamped from one
/// side to a constant past their largest, or rounded to the integers that they
/// are; null for anything else.
static Value withoutSteps(Value value, const numerics::ElementFormat &format) {
  if (auto round = value.getDefiningOp<math::RoundEvenOp>())
    return format.twosComplement ? round.getOperand() : Value();
  Operation *clamp = value.getDefiningOp();
  if (!isa_and_present<arith::MinimumFOp, arith::MaximumFOp>(clamp) ||
      !format.hasSign || !format.saturates)
    return {};
  for (unsigned i : {0, 1}) {
    DenseElementsAttr bound;
    if (!matchPattern(clamp->getOperand(i), m_Constant(&bound)))
      continue;
    std::optional<uint32_t> bits = splatBits(bound);
    if (!bits)
      continue;
    float x = llvm::bit_cast<float>(*bits);
    if (isa<arith::MinimumFOp>(clamp) ? x >= format.max : x <= -format.max)
      return clamp->getOperand(1 - i);
  }
  return {};
}

OpFoldResult EncodeOp::fold(FoldAdaptor adaptor) {
  RankedTensorType type = getResult().getType();
  const numerics::ElementFormat *format = elementFormat(type.getElementType());
  if (std::optional<uint32_t> bits = splatBits(adaptor.getSource())) {
    float x = llvm::bit_cast<float>(*bits);
    return splatFromBits(type, format->hasSign ? numerics::encode(*format, x)
                               : getMode() == E8M0Mode::floor
                                   ? numerics::encodeE8M0Floor(x)
                                   : numerics::encodeE8M0Ceil(x));
  }
  // encode(decode(q)) is q: every code is its own nearest value, but for NaN,
  // infinities and -128.
  auto decode = getSource().getDefiningOp<DecodeOp>();
  if (decode && decode.getSource().getType() == type && !format->hasNaN &&
      !format->twosComplement)
    return decode.getSource();
  // Encoding rounds and saturates.
  if (Value before = withoutSteps(getSource(), *format)) {
    getSourceMutable().assign(before);
    return getResult();
  }
  return {};
}

OpFoldResult DecodeOp::fold(FoldAdaptor adaptor) {
  std::optional<uint32_t> bits = splatBits(adaptor.getSource());
  if (!bits)
    return {};
  const numerics::ElementFormat *format =
      elementFormat(getSource().getType().getElementType());
  float value = numerics::decode(*format, *bits);
  // The payload of a NaN is the target's.
  if (std::isnan(value))
    return {};
  return splatFromBits(getResult().getType(), llvm::bit_cast<uint32_t>(value));
}

OpFoldResult E8M0InverseOp::fold(FoldAdaptor adaptor) {
  std::optional<uint32_t> bits = splatBits(adaptor.getSource());
  if (!bits)
    return {};
  return splatFromBits(getResult().getType(),
                       llvm::bit_cast<uint32_t>(numerics::e8m0Inverse(*bits)));
}

/// Blocks of one element.
OpFoldResult BlockBroadcastOp::fold(FoldAdaptor) {
  return getSource().getType() == getType() ? OpFoldResult(getSource())
                                            : OpFoldResult();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  return {};
}

} // namespace dither::quant
