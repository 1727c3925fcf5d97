//===- DecomposeRandom.cpp - What rounding by random bits computes --------===//

#include "Decompose.h"
#include "dither/Dialect/Quant/CodeTypes.h"

using namespace mlir;

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

/// Semantics.md, Stochastic rounding: r is added to the 8 bits of the mantissa
/// below those that stay, and what is below them is cut off.
struct DecomposeStochasticRound
    : DecomposableOpInterface::ExternalModel<DecomposeStochasticRound,
                                             StochasticRoundOp> {
  FailureOr<SmallVector<Value>> decompose(Operation *o, OpBuilder &b) const {
    auto op = cast<StochasticRoundOp>(o);
    const numerics::ElementFormat &elem = *codeFormat(op.getElem());
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

    Value sign = a.andBits(a.bits(x), 0x80000000);
    Value withSign =
        a.fromBits(arith::OrIOp::create(b, a.loc, a.bits(rounded), sign));
    // False for NaN.
    Value inRange =
        arith::CmpFOp::create(b, a.loc, arith::CmpFPredicate::OLT, magnitude,
                              a.splat(magnitude, elem.max));
    return SmallVector<Value>{a.select(inRange, withSign, x)};
  }
};

} // namespace

void attachRandomDecompositions(MLIRContext &context) {
  StochasticRoundOp::attachInterface<DecomposeStochasticRound>(context);
}

} // namespace dither::quant
