//===- DecomposeRandom.cpp - What rounding by random bits computes --------===//

#include "Decompose.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantDecompose.h"
#include "dither/Numerics/Bits.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using dither::numerics::ElementFormat;

namespace dither::quant {

namespace {

constexpr unsigned kRandomBits = 8;

/// The bits of |x| + least, rounded down, for |x| < least, the smallest normal
/// value: there the steps of normal values are as long as those between the
/// subnormal ones. Rounding to nearest may have gone up by the last bit; the
/// difference shows it, exactly.
Value raised(Arith &a, Value magnitude, float least) {
  Value sum = a.add(magnitude, least);
  Value back = a.add(sum, -least);
  Value wentUp = arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::OGT,
                                       back, magnitude);
  Value bits = a.bits(sum);
  Value lower = arith::SubIOp::create(a.b, a.loc, bits, a.splatBits(bits, 1));
  return a.select(wentUp, lower, bits);
}

/// What `rounded` is a magnitude for: it has the sign of x.
Value withSignOf(Arith &a, Value rounded, Value x) {
  Value sign = a.andBits(a.bits(x), 0x80000000);
  return a.fromBits(arith::OrIOp::create(a.b, a.loc, a.bits(rounded), sign));
}

/// x where it is as large as the largest value, or NaN; else what it is rounded
/// to.
Value unlessTooLarge(Arith &a, Value rounded, Value magnitude,
                     const ElementFormat &elem, Value x) {
  Value inRange =
      arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::OLT, magnitude,
                            a.splat(magnitude, elem.max));
  return a.select(inRange, rounded, x);
}

/// The lesser of both, and NaN for NaN, in one instruction: GPUs have minima
/// that keep it, and those of CPUs are their second operand where one is NaN.
Value atMost(Arith &a, Value x, float limit, bool onGpu) {
  Value y = a.splat(x, limit);
  if (onGpu)
    return arith::MinimumFOp::create(a.b, a.loc, x, y);
  Value over =
      arith::CmpFOp::create(a.b, a.loc, arith::CmpFPredicate::OLT, y, x);
  return a.select(over, y, x);
}

/// Whether all that uses `op` are codes of its type: what is too large for it
/// may then be any number that is.
bool isEncoded(StochasticRoundOp op) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    auto encode = dyn_cast<EncodeOp>(user);
    return encode &&
           encode.getResult().getType().getElementType() == op.getElem();
  });
}

/// Semantics.md, Stochastic rounding: r is added to the 8 bits of the mantissa
/// below those that stay, and what is below them is cut off.
struct DecomposeStochasticRound
    : DecomposableOpInterface::ExternalModel<DecomposeStochasticRound,
                                             StochasticRoundOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<StochasticRoundOp>(o);
    const ElementFormat &elem = *codeFormat(op.getElem());
    Arith a(b, op.getLoc());
    Value x = op.getSource();
    Value magnitudeBits = a.magnitudeBits(x);
    Value magnitude = a.fromBits(magnitudeBits);
    Value isSmall =
        arith::CmpFOp::create(b, a.loc, arith::CmpFPredicate::OLT, magnitude,
                              a.splat(magnitude, elem.minNormal));
    Value bits =
        a.select(isSmall, raised(a, magnitude, elem.minNormal), magnitudeBits);

    unsigned dropped = 23 - elem.mantissaBits;
    Value random = a.andBits(op.getRandom(), (1u << kRandomBits) - 1);
    if (unsigned up = dropped - kRandomBits)
      random = arith::ShLIOp::create(b, a.loc, random, a.splatBits(random, up));
    Value sum = arith::AddIOp::create(b, a.loc, bits, random);
    Value cut = a.fromBits(a.andBits(sum, ~((1u << dropped) - 1)));
    Value rounded = a.select(isSmall, a.add(cut, -elem.minNormal), cut);

    Value result = withSignOf(a, rounded, x);
    return SmallVector<Value>{unlessTooLarge(a, result, magnitude, elem, x)};
  }
};

} // namespace

/// Let p be the power of two of |x|, at least the smallest normal one, and
/// s = p 2^-m the step of the type there. |x| + p 2^(15-m) has a last bit of
/// s / 256: rounded toward zero it is cut to 256ths of a step, and the product
/// that it comes from may as well add r of them. What that gives, and
/// p 2^(23-m), has a last bit of s: rounded toward zero once more, it is a
/// value of the type. Subnormal values are no case of their own: p stays where
/// the steps do.
Value roundTowardZero(StochasticRoundOp op, OpBuilder &b, bool onGpu) {
  const ElementFormat &elem = *codeFormat(op.getElem());
  int m = elem.mantissaBits;
  Arith a(b, op.getLoc());
  Value x = op.getSource();
  auto fmaTowardZero = [&](Value y, Value z, Value w) -> Value {
    return FmaTowardZeroOp::create(b, a.loc, y.getType(), y, z, w);
  };
  Value magnitude = a.fromBits(a.magnitudeBits(x));
  Value limited = atMost(a, magnitude, elem.max, onGpu);
  // Of a NaN p is of no account.
  Value least = onGpu ? arith::MaximumFOp::create(b, a.loc, limited,
                                                  a.splat(x, elem.minNormal))
                            .getResult()
                      : a.max(limited, elem.minNormal);
  Value p = a.fromBits(a.andBits(a.bits(least), 0x7F800000));
  // 2^(15-m) + r 2^(-8-m), which has all bits of r.
  float above = std::ldexp(1.0f, 15 - m), shift = std::ldexp(1.0f, 23 - m);
  Value bits = a.andBits(op.getRandom(), (1u << kRandomBits) - 1);
  Value random = a.fromBits(arith::OrIOp::create(
      b, a.loc, bits, a.splatBits(bits, numerics::bitsOf(above))));
  Value raised = fmaTowardZero(p, random, limited);
  Value cut = fmaTowardZero(p, a.splat(x, shift - above), raised);
  Value rounded = math::FmaOp::create(b, a.loc, p, a.splat(x, -shift), cut);
  Value result = withSignOf(a, rounded, x);
  return isEncoded(op) ? result : unlessTooLarge(a, result, magnitude, elem, x);
}

void attachRandomDecompositions(MLIRContext &context) {
  StochasticRoundOp::attachInterface<DecomposeStochasticRound>(context);
}

} // namespace dither::quant
