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

/// A relabelling: the same registers, possibly packed along another dimension
/// and with the repeats in another order.
template <typename Op> static Emitted emitRelabelling(Distributor &d, Op op) {
  Value in = op.getSource(), result = op.getResult();
  TileLayout from = d.layout(in), to = d.layout(result);
  Registers held = d.regs(in);
  int64_t bits = wordBits(d.tile(in).getElementType());
  int64_t gf = bits ? wordGroup(from, bits) : 1,
          gt = bits ? wordGroup(to, bits) : 1;
  bool reorder =
      std::is_same_v<Op, quant::TransposeOp> && from.numRepeats() > 1;
  if (gf != gt || reorder) {
    if (bits)
      held = d.e.unpackCodes(held, gf, bits);
    if (reorder) {
      Registers swapped;
      int64_t n = from.regsPerRepeat();
      for (int64_t c = 0; c < to.repeats[0]; ++c)
        for (int64_t r = 0; r < to.repeats[1]; ++r)
          for (int64_t i = 0; i < n; ++i)
            swapped.push_back(held[(r * to.repeats[0] + c) * n + i]);
      held = swapped;
    }
    if (bits)
      held = d.e.packCodes(held, gt, bits);
  }
  d.setRegs(result, held);
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
  table.add(emitRelabelling<quant::ReshapeOp>);
  table.add(emitRelabelling<quant::TransposeOp>);
  table.add(emitIota);
}

} // namespace dither::transforms
