//===- DistributeShape.cpp - Broadcasts and movement of tiles ------------===//

#include "Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"

using namespace mlir;

namespace dither::transforms {

LogicalResult Distributor::emitBroadcast(Operation *op) {
  Value in = op->getOperand(0), result = op->getResult(0);
  LaneLayout out = layout(result);
  Type elem = tile(result).getElementType();
  if (wordBits(elem))
    return op->emitOpError("broadcast of ")
           << elem << " tiles, expected 32 bits";
  if (!tile(in)) {
    set(result, Registers(out.numRegs(), e.fill(get(in))));
    return success();
  }
  SmallVector<int64_t> shift;
  SmallVector<bool> full;
  LayoutRules::broadcastGroups(op, shift, full);
  const Registers &from = regs(in);
  Registers spread;
  for (int64_t r = 0; r < out.numRegs(); ++r) {
    int64_t source =
        tile(in).getRank() ? sliceRegister(out, shift, full, r) : 0;
    if (source >= int64_t(from.size()))
      return op->emitOpError("operand layout does not match the result");
    spread.push_back(from[source]);
  }
  set(result, spread);
  return success();
}

LogicalResult Distributor::emitMovement(Operation *op) {
  Value in = op->getOperand(0), result = op->getResult(0);
  LaneLayout from = layout(in), to = layout(result);
  auto type = tile(in);
  Type elem = type.getElementType();
  Registers held = regs(in);
  if (auto convert = dyn_cast<quant::ConvertLayoutOp>(op)) {
    std::optional<SharedOrder> order;
    if (auto attr = convert.getSharedAttr()) {
      ArrayRef<int64_t> vec = *convert.getSharedVec();
      order = {attr.getLayout(), unsigned(vec[0]), unsigned(vec[1])};
    }
    FailureOr<Registers> moved =
        e.convert(held, elem, from, to, order ? &*order : nullptr);
    if (failed(moved))
      return op->emitOpError("no way from ")
             << in.getType() << " to " << result.getType();
    set(result, *moved);
    return success();
  }
  // A relabelling: the same registers, possibly packed along another
  // dimension and with the repeats in another order.
  int64_t bits = wordBits(elem);
  int64_t gf = bits ? wordGroup(from, bits) : 1,
          gt = bits ? wordGroup(to, bits) : 1;
  bool reorder = isa<quant::TransposeOp>(op) && from.numRepeats() > 1;
  if (gf != gt || reorder) {
    if (bits)
      held = e.unpackCodes(held, gf, bits);
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
      held = e.packCodes(held, gt, bits);
  }
  set(result, held);
  return success();
}

} // namespace dither::transforms
