//===- RoundTrips.cpp - Values rounded to an element type -----------------===//
//
// Codes that are decoded at once are rounded values. Where a target has no
// instruction that encodes them, rounding in f32 is shorter than making codes,
// packing them, taking the words apart and decoding them.
//
//===----------------------------------------------------------------------===//

#include "Distribute/Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using dither::numerics::ElementFormat;

namespace dither::transforms {

/// y as the nearest value of a format that has no NaN, ties to even, and a NaN
/// as the largest (none is there if `finite`): the sum with 2^(23-m) times the
/// power of two of |y| has a last bit of the element's, and no more.
static Value roundTo(Emitter &e, Value y, const ElementFormat &format,
                     bool finite) {
  Type word = e.regType(e.b.getI32Type()), f32 = e.regType(e.b.getF32Type());
  auto bits = [&](Value v) -> Value {
    return e.make<arith::BitcastOp>(word, v);
  };
  auto constant = [&](uint32_t v) {
    return e.splat(e.b.getI32Type(), int32_t(v));
  };
  Value magnitude = e.make<math::AbsFOp>(y), most = e.splatF(format.max);
  Value inside =
      e.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, magnitude, most);
  magnitude = e.make<arith::SelectOp>(inside, magnitude, most);
  Value least = e.splatF(format.minNormal);
  Value normal =
      e.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, magnitude, least);
  Value power = e.make<arith::AndIOp>(
      bits(e.make<arith::SelectOp>(normal, magnitude, least)),
      constant(0x7F800000));
  Value above = e.make<arith::BitcastOp>(
      f32, e.make<arith::AddIOp>(
               power, constant((23 - uint32_t(format.mantissaBits)) << 23)));
  Value rounded =
      e.make<arith::SubFOp>(e.make<arith::AddFOp>(magnitude, above), above);
  Value sign = e.make<arith::AndIOp>(bits(y), constant(0x80000000));
  Value result =
      e.make<arith::BitcastOp>(f32, e.make<arith::OrIOp>(bits(rounded), sign));
  if (finite)
    return result;
  Value nan = e.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, y, y);
  return e.make<arith::SelectOp>(nan, most, result);
}

static Emitted emitRoundTrip(Distributor &d, quant::DecodeOp op) {
  Value codes = op.getSource();
  Type elem = d.tile(codes).getElementType();
  const ElementFormat *format = quant::codeFormat(elem);
  if (!format || format->nanCode != format->maxCode || format->twosComplement ||
      d.layout(op.getResult()) != d.layout(codes))
    return std::nullopt;
  const target::TargetInfo *target = target::saidTarget(op);
  if (!d.simd && (!target || target->cvtFP4x2))
    return std::nullopt;
  Registers products;
  bool finite = false;
  if (auto encode = codes.getDefiningOp<quant::EncodeOp>()) {
    products = d.regs(encode.getSource());
  } else if (auto encode = codes.getDefiningOp<quant::ScaleEncodeOp>()) {
    finite = encode.getFinite();
    for (auto [x, f] :
         llvm::zip(d.regs(encode.getSource()), d.regs(encode.getFactor())))
      products.push_back(d.e.make<arith::MulFOp>(x, f));
  } else {
    return std::nullopt;
  }
  for (Value &v : products)
    v = roundTo(d.e, v, *format, finite);
  d.setRegs(op.getResult(), products);
  return success();
}

void addRoundTrips(OpTable &table) { table.add(emitRoundTrip); }

} // namespace dither::transforms
