//===- RoundTowardZero.cpp - Rounding by random bits, shorter -------------===//
//
// SemanticsOfModes.md, Stochastic rounding. Let p be the power of two of |x|,
// at least the smallest normal one, and s = p 2^-m the step of the type there.
// |x| + p 2^(15-m) has a last bit of s / 256: rounded toward zero it is cut to
// 256ths of a step, and the product that it comes from may as well add r of
// them. What that gives, and p 2^(23-m), has a last bit of s: rounded toward
// zero once more, it is a value of the type. Subnormal values are no case of
// their own: p stays where the steps do.
//
//===----------------------------------------------------------------------===//

#include "Prepare/RoundTowardZero.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Numerics/Bits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;

namespace dither::transforms {

namespace {

constexpr uint32_t kSign = 0x80000000, kExponent = 0x7F800000,
                   kRandom = 0x000000FF;

/// Arithmetic on tiles of one shape.
class Tiles {
public:
  Tiles(OpBuilder &builder, Location loc, RankedTensorType type, bool isGpu)
      : b(loc, builder), floats(type), ints(type.clone(b.getI32Type())),
        isGpu(isGpu) {}

  Value number(float v) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(floats, b.getF32FloatAttr(v)));
  }
  Value mask(uint32_t v) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(ints, b.getI32IntegerAttr(int32_t(v))));
  }
  Value asInt(Value x) { return arith::BitcastOp::create(b, ints, x); }
  Value asFloat(Value x) { return arith::BitcastOp::create(b, floats, x); }
  Value andi(Value x, uint32_t v) {
    return arith::AndIOp::create(b, x, mask(v));
  }
  Value ori(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value less(Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
  }
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, c, x, y);
  }
  /// One instruction each: GPUs have minima that keep a NaN, and CPUs such that
  /// are their second operand where one is a NaN.
  Value atMost(Value x, float limit) {
    Value y = number(limit);
    if (isGpu)
      return arith::MinimumFOp::create(b, x, y);
    return select(less(y, x), y, x);
  }
  Value atLeast(Value x, float limit) {
    Value y = number(limit);
    if (isGpu)
      return arith::MaximumFOp::create(b, x, y);
    return select(less(x, y), y, x);
  }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  Value fmaTowardZero(Value x, Value y, Value z) {
    return quant::FmaTowardZeroOp::create(b, floats, x, y, z);
  }

private:
  ImplicitLocOpBuilder b;
  RankedTensorType floats, ints;
  bool isGpu;
};

/// Whether all that uses `op` are codes of its type: what is too large for it
/// may then be any number that is.
bool isEncoded(quant::StochasticRoundOp op) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    auto encode = dyn_cast<quant::EncodeOp>(user);
    return encode &&
           getElementTypeOrSelf(encode.getResult().getType()) == op.getElem();
  });
}

} // namespace

Value roundTowardZero(quant::StochasticRoundOp op, OpBuilder &builder,
                      const target::TargetInfo &target) {
  const numerics::ElementFormat &elem = *quant::codeFormat(op.getElem());
  int m = elem.mantissaBits;
  Value x = op.getSource();
  Tiles t(builder, op.getLoc(), cast<RankedTensorType>(x.getType()),
          target.isGpu);
  Value bits = t.asInt(x);
  Value magnitude = t.asFloat(t.andi(bits, ~kSign));
  Value limited = t.atMost(magnitude, elem.max);
  Value p =
      t.asFloat(t.andi(t.asInt(t.atLeast(limited, elem.minNormal)), kExponent));
  // 2^(15-m) + r 2^(-8-m), which has all bits of r.
  float above = std::ldexp(1.0f, 15 - m), shift = std::ldexp(1.0f, 23 - m);
  Value random = t.asFloat(
      t.ori(t.andi(op.getRandom(), kRandom), t.mask(numerics::bitsOf(above))));
  Value raised = t.fmaTowardZero(p, random, limited);
  Value cut = t.fmaTowardZero(p, t.number(shift - above), raised);
  Value rounded = t.fma(p, t.number(-shift), cut);
  Value result = t.asFloat(t.ori(t.asInt(rounded), t.andi(bits, kSign)));
  if (isEncoded(op))
    return result;
  // What is as large as the largest value stays, and NaN.
  return t.select(t.less(magnitude, t.number(elem.max)), result, x);
}

} // namespace dither::transforms
