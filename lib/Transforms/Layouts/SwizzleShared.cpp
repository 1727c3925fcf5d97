//===- SwizzleShared.cpp - Conflict-free shared memory --------------------===//
//
// A tile that changes its layout across warps is stored to shared memory with
// one layout and loaded with the other. Which word an element takes there is
// free, and decides how many banks a warp meets at once.
//
//===----------------------------------------------------------------------===//

#include "Layouts/LayoutRules.h"
#include "Layouts/Movement.h"
#include "dither/Layout/SharedSwizzle.h"
#include "dither/Transforms/Passes.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERSWIZZLESHARED
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

void plan(quant::ConvertLayoutOp op) {
  auto from = layoutOf(op.getSource().getType()),
       to = layoutOf(op.getResult().getType());
  if (!from || !to || op.getShared())
    return;
  Type elem = cast<RankedTensorType>(op.getType()).getElementType();
  Units units = unitsOf(elem, *from, *to);
  std::optional<Movement> move = planMovement(units.from, units.to);
  if (!move || move->route != Movement::Shared)
    return;
  while (std::optional<Halves> halves = halvesOf(units.from, units.to)) {
    units.from = halves->from;
    units.to = halves->to;
  }
  auto order = layout::chooseSwizzle(units.from.repeated(), units.to.repeated(),
                                     kWordBytes);
  if (!order)
    return;
  unsigned bytes =
      sharedUnitBytes(elem, units, order->store.vecElems, order->load.vecElems);
  if (bytes != kWordBytes)
    order = layout::chooseSwizzle(units.from.repeated(), units.to.repeated(),
                                  bytes, /*maxAccessBytes=*/bytes);
  if (!order)
    return;
  op.setSharedAttr(quant::LayoutAttr::get(op.getContext(), order->shared));
  op.setSharedVecAttr(DenseI64ArrayAttr::get(
      op.getContext(), {order->store.vecElems, order->load.vecElems}));
}

struct DitherSwizzleShared
    : impl::DitherSwizzleSharedBase<DitherSwizzleShared> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr("quant.kernel") || LayoutRules(func).isSimd())
      return;
    func.walk([](quant::ConvertLayoutOp op) { plan(op); });
  }
};

} // namespace

} // namespace dither::transforms
