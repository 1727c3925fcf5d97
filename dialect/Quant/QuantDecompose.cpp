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

/// The amax of each block.
Value amaxOfBlocks(Arith &a, Value x, FormatAttr format, int64_t axis) {
  for (ArrayRef<int64_t> block : blocksOf(format, axis, x)) {
    const int64_t *whole = llvm::find_if(block, ShapedType::isDynamic);
    if (whole == block.end()) {
      x = BlockReduceOp::create(a.b, a.loc, ReduceKind::amax, x, block);
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

/// The global encode scale of a format with a tensor scale, from the tensor
/// amax G: min(R / G, FMAX), and 1 where that is 0 (G infinite) or G is 0. R is
/// the range of the format, 448 * 6 for NVFP4.
Value globalEncodeScale(Arith &a, Value amax, FormatAttr format) {
  Value quotient = a.min(a.div(format.getRange(), amax), kMaxFloat);
  Value one = a.splat(amax, 1.0f);
  Value scale = a.select(a.equal(quotient, 0.0f), one, quotient);
  return a.select(a.equal(amax, 0.0f), one, scale);
}

/// The decode scale of `order = div6_div`: G / R, and 1 where that is 0 or
/// +Inf.
Value globalDecodeScale(Arith &a, Value amax, FormatAttr format) {
  Value scale = a.div(amax, a.splat(amax, format.getRange()));
  Value one = a.splat(amax, 1.0f);
  Value finite = a.select(
      a.equal(scale, std::numeric_limits<float>::infinity()), one, scale);
  return a.select(a.equal(scale, 0.0f), one, finite);
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
  switch (format.getScaleRounding()) {
  case ScaleRounding::floor:
  case ScaleRounding::rceil:
    break;
  case ScaleRounding::ceil:
    bits = arith::AddIOp::create(b, a.loc, bits, a.splatBits(amax, 0x7FFFFF));
    break;
  case ScaleRounding::even: {
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
  float largest = format.getElemFormat().max;
  if (!tensorAmax)
    return a.mul(amax, 1.0f / largest);
  Value global = a.widen(tensorAmax);
  if (format.getOrder() == ScaleOrder::te) {
    Value factor = a.mul(globalEncodeScale(a, global, format), 1.0f / largest);
    return a.min(a.mul(amax, factor), kMaxFloat);
  }
  Value part = a.div(amax, a.splat(amax, largest));
  if (format.getOrder() == ScaleOrder::div6_mul)
    return a.min(a.mul(part, globalEncodeScale(a, global, format)), kMaxFloat);
  Value quotient = a.div(part, globalDecodeScale(a, global, format));
  const numerics::ElementFormat &scale = format.getScaleFormat();
  return a.max(a.min(quotient, scale.max), scale.minNormal);
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
  if (float epsilon = format.getEpsilon().convertToFloat()) {
    Value least = a.splat(amax, epsilon);
    Value below = arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::OLT,
                                        amax, least);
    amax = a.select(below, least, amax);
  }
  Value scale = a.div(format.getElemFormat().max, amax);
  Value largest = a.splat(amax, elementFormat(source)->max);
  scale = a.select(hasMagnitude(a, scale, 0x7F800000), largest, scale);
  if (format.getPow2Scales())
    scale = a.fromBits(a.andBits(a.bits(scale), 0xFF800000));
  return a.select(isOrdinary(a, amax), scale, a.splat(amax, 1.0f));
}

/// Scale codes from the amax of each block.
Value scaleCodes(Arith &a, Value amax, Value tensorAmax, FormatAttr format) {
  OpBuilder &b = a.b;
  auto type = Arith::shapeOf(amax).clone(format.getScale());
  if (!isa<Float8E8M0FNUType>(format.getScale())) {
    Value scale = unroundedScale(a, amax, tensorAmax, format);
    if (format.getScale().isF32())
      return a.min(scale, kMaxFloat); // as encoding saturates
    return EncodeOp::create(b, a.loc, type, scale, E8M0ModeAttr());
  }
  if (format.getScaleRounding() == ScaleRounding::rceil) {
    Value scaled = a.mul(amax, 1.0f / format.getElemFormat().max);
    return EncodeOp::create(b, a.loc, type, scaled,
                            E8M0ModeAttr::get(b.getContext(), E8M0Mode::rceil));
  }
  return EncodeOp::create(b, a.loc, type, sharedExponentBits(a, amax, format),
                          E8M0ModeAttr::get(b.getContext(), E8M0Mode::floor));
}

struct DecomposeBlockScale
    : DecomposableOpInterface::ExternalModel<DecomposeBlockScale,
                                             BlockScaleOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<BlockScaleOp>(o);
    Arith a(b, op.getLoc());
    Value x = a.widen(op.getSource());
    Value amax = amaxOfBlocks(a, x, op.getFormat(), op.getAxis());
    return SmallVector<Value>{
        op.getFormat().getOrder() == ScaleOrder::encode_first
            ? encodeScale(a, amax, op.getFormat(),
                          op.getSource().getType().getElementType())
            : scaleCodes(a, amax, op.getTensorAmax(), op.getFormat())};
  }
};

//===----------------------------------------------------------------------===//
// Codes and values
//===----------------------------------------------------------------------===//

/// What elements of a block are multiplied by before they are rounded.
Value multiplier(Arith &a, Value scale, Value tensorAmax, FormatAttr format) {
  if (isa<Float8E8M0FNUType>(format.getScale()))
    return E8M0InverseOp::create(
        a.b, a.loc, Arith::shapeOf(scale).clone(a.b.getF32Type()), scale);
  if (format.getOrder() == ScaleOrder::encode_first)
    return scale;
  if (!tensorAmax)
    return a.min(a.div(1.0f, a.widen(scale)), kMaxFloat);
  Value global = a.widen(tensorAmax);
  if (format.getOrder() == ScaleOrder::div6_div) {
    Value inverse = a.div(1.0f, globalDecodeScale(a, global, format));
    Value codes = a.widen(scale);
    return a.min(a.div(a.repeat(inverse, codes), codes), kMaxFloat);
  }
  Value decode = a.div(1.0f, globalEncodeScale(a, global, format));
  return a.min(a.div(1.0f, a.mul(a.widen(scale), decode)), kMaxFloat);
}

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
    if (format.getTensorScale())
      factor = a.mul(a.mul(factor, a.widen(op.getTensorAmax())),
                     1.0f / format.getRange());
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
