//===- Shape.cpp - Broadcasts, movement and ramps of tiles ----------------===//

#include "Distribute/Distribute.h"

using namespace mlir;

namespace dither::transforms {

template <typename Op> static Emitted emitBroadcast(Distributor &d, Op op) {
  Value in = op.getSource(), result = op.getResult();
  TileLayout out = d.layout(result);
  int64_t bits = wordBits(d.tile(result).getElementType());
  if (!d.tile(in)) {
    d.setRegs(result, Registers(out.numRegs(), d.e.fill(d.get(in))));
    return success();
  }
  SmallVector<int64_t> shift;
  SmallVector<bool> full;
  LayoutRules::broadcastGroups(op, shift, full);
  Registers from = d.regs(in), spread;
  if (bits)
    from = d.e.unpackCodes(from, wordGroup(d.layout(in), bits), bits);
  for (int64_t r = 0; r < out.numRegs(); ++r) {
    int64_t source =
        d.tile(in).getRank() ? sliceRegister(out, shift, full, r) : 0;
    if (source >= int64_t(from.size()))
      return op.emitOpError("operand layout does not match the result");
    spread.push_back(from[source]);
  }
  if (bits)
    spread = d.e.packCodes(spread, wordGroup(out, bits), bits);
  d.setRegs(result, spread);
  return success();
}

static Emitted emitConvertLayout(Distributor &d, quant::ConvertLayoutOp op) {
  Value in = op.getSource(), result = op.getResult();
  std::optional<SharedOrder> order;
  if (auto attr = op.getSharedAttr()) {
    ArrayRef<int64_t> vec = *op.getSharedVec();
    order = {attr.getLayout(), unsigned(vec[0]), unsigned(vec[1])};
  }
  FailureOr<Registers> moved =
      d.e.convert(d.regs(in), d.tile(in).getElementType(), d.layout(in),
                  d.layout(result), order ? &*order : nullptr);
  if (failed(moved))
    return op.emitOpError("no way from ")
           << in.getType() << " to " << result.getType();
  d.setRegs(result, *moved);
  return success();
}

/// A relabelling: the same registers, possibly packed along another dimension.
static Emitted emitReshape(Distributor &d, quant::ReshapeOp op) {
  Value in = op.getSource(), result = op.getResult();
  Registers held = d.regs(in);
  if (int64_t bits = wordBits(d.tile(in).getElementType())) {
    int64_t from = wordGroup(d.layout(in), bits),
            to = wordGroup(d.layout(result), bits);
    if (from != to)
      held = d.e.packCodes(d.e.unpackCodes(held, from, bits), to, bits);
  }
  d.setRegs(result, held);
  return success();
}

/// The same elements of each lane, with repeats in another order, and words
/// along the other dimension.
static Emitted emitTranspose(Distributor &d, quant::TransposeOp op) {
  Value in = op.getSource(), result = op.getResult();
  TileLayout from = d.layout(in), to = d.layout(result);
  TileLayout back = transposed(to);
  Registers held = d.regs(in), turned;
  int64_t bits = wordBits(d.tile(in).getElementType());
  int64_t n = held.size() / from.numRepeats();
  for (int64_t c = 0; c < to.repeats[0]; ++c)
    for (int64_t r = 0; r < to.repeats[1]; ++r) {
      Registers repeat(
          ArrayRef<Value>(held).slice((r * to.repeats[0] + c) * n, n));
      if (bits)
        repeat = d.e.repackWords(repeat, {from.reg, wordGroup(from, bits)},
                                 {back.reg, wordGroup(to, bits)}, bits);
      turned.append(repeat);
    }
  d.setRegs(result, turned);
  return success();
}

static Emitted emitIota(Distributor &d, quant::IotaOp op) {
  TileLayout l = d.layout(op.getResult());
  Registers ramp;
  for (int64_t r = 0; r < l.numRegs(); ++r)
    ramp.push_back(d.e.coordinate(l, op.getDim(), r));
  d.setRegs(op.getResult(), ramp);
  return success();
}

void addShapeOps(OpTable &table) {
  table.add(emitBroadcast<quant::BroadcastOp>);
  table.add(emitBroadcast<quant::BlockBroadcastOp>);
  table.add(emitConvertLayout);
  table.add(emitReshape);
  table.add(emitTranspose);
  table.add(emitIota);
}

} // namespace dither::transforms
