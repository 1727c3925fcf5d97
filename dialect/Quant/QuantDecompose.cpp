//===- QuantDecompose.cpp - What the aggregate operations compute ---------===//
//
// The definitions of the scaling modes as operations on tiles, one rounding for
// each. Everything is f32, round to nearest even, uncontracted; division and
// square root are correctly rounded.
//
// Minima against a constant are compare and select, `v < c ? v : c`, which is
// fmin for c that is no NaN: a NaN compares false and gives c. It is also the
// definition of x86's vminps and needs none of the fix-ups of arith.minnumf.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantDecompose.h"
#include "Decompose.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace mlir;

namespace dither::quant {

namespace {

using numerics::FourOverSix;
using numerics::InfScale;
using numerics::ScaleOrder;
using numerics::ScaleRounding;
using numerics::TensorScaleAs;

constexpr float kMaxFloat = std::numeric_limits<float>::max();

/// The blocks of a tile of rank 1 or 2 whose rows of blocks run along `axis`,
/// one dimension of them at a time, the last one first: what a reduction of
/// each is, and what the others see. There is at least one. `?` is a dimension
/// that is one block.
SmallVector<SmallVector<int64_t>> blocksOf(FormatAttr format, int64_t axis,
                                           Value tile) {
  int64_t rank = Arith::shapeOf(tile).getRank();
  SmallVector<int64_t> extents = format.getBlockExtents(axis, rank);
  SmallVector<SmallVector<int64_t>> blocks;
  for (int64_t d = rank - 1; d >= 0; --d)
    if (extents[d] != 1)
      blocks.emplace_back(rank, 1)[d] = extents[d];
  if (blocks.empty())
    blocks.push_back(extents);
  return blocks;
}

/// The amax of each block, which ignores NaN unless the format's scales do not.
Value amaxOfBlocks(Arith &a, Value x, FormatAttr format, int64_t axis) {
  bool nan = format.getRule().nanScales;
  for (ArrayRef<int64_t> block : blocksOf(format, axis, x)) {
    const int64_t *whole = llvm::find_if(block, ShapedType::isDynamic);
    if (whole == block.end()) {
      x = BlockReduceOp::create(a.b, a.loc, ReduceKind::amax, x, block, nan);
      continue;
    }
    int64_t d = whole - block.begin();
    SmallVector<int64_t> shape(Arith::shapeOf(x).getShape());
    shape[d] = 1;
    x = ReduceOp::create(a.b, a.loc, Arith::shapeOf(x).clone(shape),
                         ReduceKind::amax, x, d, IntegerAttr());
  }
  return x;
}

Value repeatOverBlocks(Arith &a, Value perBlock, FormatAttr format,
                       int64_t axis, Value like) {
  SmallVector<SmallVector<int64_t>> blocks = blocksOf(format, axis, like);
  for (ArrayRef<int64_t> block : llvm::reverse(blocks))
    if (llvm::none_of(block, ShapedType::isDynamic))
      perBlock = BlockBroadcastOp::create(a.b, a.loc, perBlock, block);
  return a.repeat(perBlock, like);
}

/// S of Numerics/BlockScale.h, from what stands for the tensor scale.
Value globalEncodeScale(Arith &a, Value amax, FormatAttr format) {
  if (format.getRule().tensorScaleAs == TensorScaleAs::Encode)
    return amax;
  if (format.getRule().tensorScaleAs == TensorScaleAs::Decode)
    return a.div(1.0f, amax);
  Value quotient = a.min(a.div(format.getRange(), amax), kMaxFloat);
  Value one = a.splat(amax, 1.0f);
  Value scale = a.select(a.equal(quotient, 0.0f), one, quotient);
  return a.select(a.equal(amax, 0.0f), one, scale);
}

/// G / R, and 1 where that is 0 or +Inf.
Value rangeOf(Arith &a, Value amax, FormatAttr format) {
  Value scale = a.div(amax, a.splat(amax, format.getRange()));
  Value one = a.splat(amax, 1.0f);
  Value finite = a.select(
      a.equal(scale, std::numeric_limits<float>::infinity()), one, scale);
  return a.select(a.equal(scale, 0.0f), one, finite);
}

/// D of Numerics/BlockScale.h.
Value globalDecodeScale(Arith &a, Value amax, FormatAttr format) {
  const numerics::ScaleRule &rule = format.getRule();
  if (rule.tensorScaleAs == TensorScaleAs::Decode)
    return amax;
  if (rule.order == ScaleOrder::Div6Div &&
      rule.tensorScaleAs == TensorScaleAs::Amax)
    return rangeOf(a, amax, format);
  return a.div(1.0f, globalEncodeScale(a, amax, format));
}

bool isDividing(FormatAttr format) {
  return format.getRule().order == ScaleOrder::Div6Mul ||
         format.getRule().order == ScaleOrder::Div6Div;
}

/// x, or where `condition` holds a NaN that is the same everywhere.
Value nanWhere(Arith &a, Value condition, Value x) {
  Value nan = a.splat(x, std::numeric_limits<float>::quiet_NaN());
  return a.select(condition, nan, x);
}

Value isNaN(Arith &a, Value x) {
  return arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::UNO, x, x);
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// The largest of `amax` whose exponent field, less emax, is the shared
/// exponent: bits below emax + 1 become a zero field, infinity keeps its field
/// of all ones.
Value sharedExponentBits(Arith &a, Value amax, FormatAttr format) {
  Value bits = a.bits(amax);
  OpBuilder &b = a.b;
  const numerics::ElementFormat &elem = format.getElemFormat();
  uint32_t down = uint32_t(elem.maxExponent()) << 23;
  switch (format.getRule().rounding) {
  case ScaleRounding::Floor:
  case ScaleRounding::RCeil:
    break;
  case ScaleRounding::Ceil:
    bits = arith::AddIOp::create(b, a.loc, bits, a.splatBits(amax, 0x7FFFFF));
    break;
  case ScaleRounding::Even: {
    // Half of the last bit that the element keeps, added before the field is
    // taken.
    bits = arith::AddIOp::create(
        b, a.loc, bits, a.splatBits(amax, 1u << (22 - elem.mantissaBits)));
    break;
  }
  }
  Value floorOf = a.splatBits(amax, down);
  Value clamped = arith::MaxSIOp::create(b, a.loc, bits, floorOf);
  Value lowered = arith::SubIOp::create(b, a.loc, clamped, floorOf);
  Value infinity = a.splatBits(amax, 0x7F800000);
  Value infinite = arith::CmpIOp::create(b, a.loc, arith::CmpIPredicate::sge,
                                         a.bits(amax), infinity);
  return a.fromBits(a.select(infinite, infinity, lowered));
}

/// What a format without shared exponents rounds to the scale of a block
/// (Numerics/BlockScale.h).
Value unroundedScale(Arith &a, Value amax, Value tensorAmax,
                     FormatAttr format) {
  const numerics::ScaleRule &rule = format.getRule();
  float largest = format.getElemFormat().max;
  Value global = tensorAmax ? a.widen(tensorAmax) : Value();
  if (rule.order == ScaleOrder::TE && rule.fourOverSix == FourOverSix::None) {
    if (!global)
      return a.mul(amax, 1.0f / largest);
    Value factor = a.mul(globalEncodeScale(a, global, format), 1.0f / largest);
    return a.min(a.mul(amax, factor), kMaxFloat);
  }
  Value part = rule.order == ScaleOrder::MulInv6
                   ? a.mul(amax, 1.0f / largest)
                   : a.div(amax, a.splat(amax, largest));
  if (rule.order != ScaleOrder::Div6Div)
    return global ? a.min(a.mul(part, globalEncodeScale(a, global, format)),
                          kMaxFloat)
                  : part;
  if (global)
    part = a.div(part, globalDecodeScale(a, global, format));
  const numerics::ElementFormat &scale = format.getScaleFormat();
  return a.max(a.min(part, scale.max), scale.minNormal);
}

/// Where the bits of x are those of `bits`, but for the sign.
Value hasMagnitude(Arith &a, Value x, uint32_t bits) {
  return arith::CmpIOp::create(a.b, a.loc, arith::CmpIPredicate::eq,
                               a.magnitudeBits(x), a.splatBits(x, bits));
}

/// Where x is finite and not zero: the bits of its magnitude, less one, are
/// below those of infinity, less one, as unsigned integers.
Value isOrdinary(Arith &a, Value x) {
  OpBuilder &b = a.b;
  Value magnitude = a.magnitudeBits(x);
  Value less = arith::SubIOp::create(b, a.loc, magnitude, a.splatBits(x, 1));
  return arith::CmpIOp::create(b, a.loc, arith::CmpIPredicate::ult, less,
                               a.splatBits(x, 0x7F7FFFFF));
}

/// The encode scale of `order = encode_first` (Numerics/BlockScale.h) of blocks
/// of elements that were of type `source`.
Value encodeScale(Arith &a, Value amax, FormatAttr format, Type source) {
  const numerics::ScaleRule &rule = format.getRule();
  if (float epsilon = rule.epsilon) {
    Value least = a.splat(amax, epsilon);
    Value below = arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::OLT,
                                        amax, least);
    amax = a.select(below, least, amax);
  }
  Value scale = a.div(format.getElemFormat().max, amax);
  Value largest = a.splat(amax, elementFormat(source)->max);
  scale = a.select(hasMagnitude(a, scale, 0x7F800000), largest, scale);
  if (rule.pow2Scales)
    scale = a.fromBits(a.andBits(a.bits(scale), 0xFF800000));
  scale = a.select(isOrdinary(a, amax), scale, a.splat(amax, 1.0f));
  return rule.nanScales ? nanWhere(a, isNaN(a, amax), scale) : scale;
}

/// Scale codes from what is rounded to them.
Value roundScale(Arith &a, Value unrounded, Value amax, FormatAttr format) {
  const numerics::ScaleRule &rule = format.getRule();
  if (rule.leastScale)
    unrounded = a.max(unrounded, rule.leastScale);
  if (format.getScale().isF32())
    unrounded = a.min(unrounded, kMaxFloat); // as encoding saturates
  if (rule.nanScales)
    unrounded = nanWhere(a, isNaN(a, amax), unrounded);
  if (format.getScale().isF32())
    return unrounded;
  return EncodeOp::create(a.b, a.loc,
                          Arith::shapeOf(unrounded).clone(format.getScale()),
                          unrounded, E8M0ModeAttr());
}

/// Scale codes from the amax of each block.
Value scaleCodes(Arith &a, Value amax, Value tensorAmax, FormatAttr format) {
  OpBuilder &b = a.b;
  auto type = Arith::shapeOf(amax).clone(format.getScale());
  if (!isa<Float8E8M0FNUType>(format.getScale())) {
    Value scale = unroundedScale(a, amax, tensorAmax, format);
    return roundScale(a, scale, amax, format);
  }
  if (format.getRule().rounding == ScaleRounding::RCeil) {
    Value scaled = a.mul(amax, 1.0f / format.getElemFormat().max);
    if (format.getRule().infScale == InfScale::FF) {
      float infinity = std::numeric_limits<float>::infinity();
      scaled = nanWhere(a, a.equal(amax, infinity), scaled);
    }
    return EncodeOp::create(b, a.loc, type, scaled,
                            E8M0ModeAttr::get(b.getContext(), E8M0Mode::rceil));
  }
  return EncodeOp::create(b, a.loc, type, sharedExponentBits(a, amax, format),
                          E8M0ModeAttr::get(b.getContext(), E8M0Mode::floor));
}

//===----------------------------------------------------------------------===//
// Codes and values
//===----------------------------------------------------------------------===//

/// What elements of a block are multiplied by before they are rounded.
Value multiplier(Arith &a, Value scale, Value tensorAmax, FormatAttr format) {
  if (isa<Float8E8M0FNUType>(format.getScale()))
    return E8M0InverseOp::create(
        a.b, a.loc, Arith::shapeOf(scale).clone(a.b.getF32Type()), scale);
  if (format.getRule().order == ScaleOrder::EncodeFirst)
    return scale;
  if (!tensorAmax)
    return a.min(a.div(1.0f, a.widen(scale)), kMaxFloat);
  Value decode = globalDecodeScale(a, a.widen(tensorAmax), format);
  if (format.getRule().order == ScaleOrder::Div6Div) {
    Value inverse = a.div(1.0f, decode);
    Value codes = a.widen(scale);
    return a.min(a.div(a.repeat(inverse, codes), codes), kMaxFloat);
  }
  return a.min(a.div(1.0f, a.mul(a.widen(scale), decode)), kMaxFloat);
}

/// What scales of blocks are multiplied by for values; null where that is G,
/// over R.
Value valueScale(Arith &a, Value global, FormatAttr format) {
  if (format.getRule().tensorScaleAs != TensorScaleAs::Amax)
    return globalDecodeScale(a, global, format);
  return isDividing(format) ? rangeOf(a, global, format) : Value();
}

/// What decoded elements are multiplied by, from the scales of their blocks.
Value dequantizeFactor(Arith &a, Value scale, Value tensorAmax,
                       FormatAttr format) {
  if (!tensorAmax)
    return scale;
  Value global = a.widen(tensorAmax);
  if (Value by = valueScale(a, global, format))
    return a.mul(scale, by);
  return a.mul(a.mul(scale, global), 1.0f / format.getRange());
}

//===----------------------------------------------------------------------===//
// Four over six
//===----------------------------------------------------------------------===//

/// The sum of each block, along its rows first, as of fourOverSix in
/// Numerics/BlockScale.h.
Value sumOfBlocks(Arith &a, Value x, FormatAttr format, int64_t axis) {
  int64_t rank = Arith::shapeOf(x).getRank();
  SmallVector<int64_t> extents = format.getBlockExtents(axis, rank);
  auto sum = [&](int64_t d, bool halves) {
    SmallVector<int64_t> block(rank, 1);
    block[d] = extents[d];
    x = BlockReduceOp::create(a.b, a.loc, ReduceKind::sum, x, block,
                              /*amax_bits=*/false, halves);
  };
  sum(axis, /*halves=*/false);
  if (rank == 2 && extents[1 - axis] != 1)
    sum(1 - axis, /*halves=*/true);
  return x;
}

/// The error of each block of `x` under scales.
Value errorOfBlocks(Arith &a, Value x, Value scale, Value tensorAmax,
                    FormatAttr format, int64_t axis) {
  auto over = [&](Value perBlock) {
    return repeatOverBlocks(a, perBlock, format, axis, x);
  };
  Value factor = multiplier(a, scale, tensorAmax, format);
  Value codes =
      EncodeOp::create(a.b, a.loc, Arith::shapeOf(x).clone(format.getElem()),
                       a.mul(x, over(factor)), E8M0ModeAttr());
  Value value = a.mul(a.widen(codes), over(a.widen(scale)));
  if (tensorAmax) {
    Value global = a.widen(tensorAmax);
    if (Value by = valueScale(a, global, format))
      value = a.mul(value, by);
    else
      value = a.div(a.mul(value, global), a.splat(x, format.getRange()));
  }
  Value d = arith::SubFOp::create(a.b, a.loc, value, x);
  Value error = format.getRule().fourOverSix == FourOverSix::MSE
                    ? a.mul(d, d)
                    : Value(math::AbsFOp::create(a.b, a.loc, d));
  return sumOfBlocks(a, error, format, axis);
}

/// Scales of the blocks of `x`, whose largest elements become 6, or 4 where
/// that is nearer.
Value fourOverSixScales(Arith &a, Value x, Value amax, Value tensorAmax,
                        FormatAttr format, int64_t axis) {
  Value of6 = unroundedScale(a, amax, tensorAmax, format);
  Value of4 = a.mul(of6, 1.5f);
  auto error = [&](Value unrounded) {
    Value scale = roundScale(a, unrounded, amax, format);
    return errorOfBlocks(a, x, scale, tensorAmax, format, axis);
  };
  Value errorOf4 = error(of4), errorOf6 = error(of6);
  Value smaller = arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::OLT,
                                        errorOf4, errorOf6);
  return roundScale(a, a.select(smaller, of4, of6), amax, format);
}

struct DecomposeBlockScale
    : DecomposableOpInterface::ExternalModel<DecomposeBlockScale,
                                             BlockScaleOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<BlockScaleOp>(o);
    FormatAttr format = op.getFormat();
    Arith a(b, op.getLoc());
    Value x = a.widen(op.getSource());
    Value amax = amaxOfBlocks(a, x, format, op.getAxis());
    if (format.getRule().order == ScaleOrder::EncodeFirst)
      return SmallVector<Value>{encodeScale(
          a, amax, format, op.getSource().getType().getElementType())};
    if (format.getRule().fourOverSix != FourOverSix::None)
      return SmallVector<Value>{fourOverSixScales(
          a, x, amax, op.getTensorAmax(), format, op.getAxis())};
    return SmallVector<Value>{scaleCodes(a, amax, op.getTensorAmax(), format)};
  }
};

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// What a cast encodes.
template <typename Op> Value scaled(Arith &a, Op op) {
  FormatAttr format = op.getFormat();
  Value x = a.widen(op.getSource());
  Value factor = multiplier(a, op.getScale(), op.getTensorAmax(), format);
  Value product =
      a.mul(x, repeatOverBlocks(a, factor, format, op.getAxis(), x));
  // After the product, where it cannot overflow before it saturates.
  float unit = format.getElemUnit();
  return unit == 1 ? product : a.mul(product, 1 / unit);
}

struct DecomposeScale
    : DecomposableOpInterface::ExternalModel<DecomposeScale, ScaleOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    Arith a(b, o->getLoc());
    return SmallVector<Value>{scaled(a, cast<ScaleOp>(o))};
  }
};

template <typename CastOp>
struct DecomposeCast
    : DecomposableOpInterface::ExternalModel<DecomposeCast<CastOp>, CastOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<CastOp>(o);
    Arith a(b, op.getLoc());
    Value product = scaled(a, op);
    auto type = Arith::shapeOf(product).clone(op.getFormat().getElem());
    return SmallVector<Value>{
        EncodeOp::create(b, op.getLoc(), type, product, E8M0ModeAttr())};
  }
};

struct DecomposeDequantize
    : DecomposableOpInterface::ExternalModel<DecomposeDequantize,
                                             DequantizeOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<DequantizeOp>(o);
    FormatAttr format = op.getFormat();
    Arith a(b, op.getLoc());
    Value factor = a.widen(op.getScale());
    if (float unit = format.getElemUnit(); unit != 1)
      factor = a.mul(factor, unit); // exact, also for 2^-127
    factor = dequantizeFactor(a, factor, op.getTensorAmax(), format);
    Value x = a.widen(op.getSource());
    return SmallVector<Value>{
        a.mul(x, repeatOverBlocks(a, factor, format, op.getAxis(), x))};
  }
};

} // namespace

void registerDecomposeInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, QuantDialect *) {
    context->getOrLoadDialect<arith::ArithDialect>();
    context->getOrLoadDialect<math::MathDialect>();
    BlockScaleOp::attachInterface<DecomposeBlockScale>(*context);
    ScaleOp::attachInterface<DecomposeScale>(*context);
    CastFp4Op::attachInterface<DecomposeCast<CastFp4Op>>(*context);
    CastFp6Op::attachInterface<DecomposeCast<CastFp6Op>>(*context);
    CastInt8Op::attachInterface<DecomposeCast<CastInt8Op>>(*context);
    CastFp8Op::attachInterface<DecomposeCast<CastFp8Op>>(*context);
    DequantizeOp::attachInterface<DecomposeDequantize>(*context);
    attachNormDecompositions(*context);
    attachRandomDecompositions(*context);
  });
}

} // namespace dither::quant
