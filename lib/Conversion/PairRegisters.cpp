//===- PairRegisters.cpp - Two f32 an instruction, on GPUs that have them -===//
//
// Distributed code has one operation for each register, and those of a tile
// stand together. Two neighbours become one operation on a pair. Pairs are
// pairs of the machine's registers: to put other two together takes moves, so
// what was paired stays with its partner, or is not paired further.
//
//===----------------------------------------------------------------------===//

#include "dither/Conversion/Passes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dither::conversion {
#define GEN_PASS_DEF_DITHERPAIRREGISTERS
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;

namespace {

/// What has an instruction for pairs, or steps that have.
bool isPairable(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp,
             dither::quant::FmaTowardZeroOp,
             dither::quant::ElementaryOpInterface>(op) &&
         op->getResult(0).getType().isF32();
}

/// The operation after `op` if it is of the same kind and does not depend on
/// it.
Operation *partnerOf(Operation *op) {
  Operation *next = op->getNextNode();
  while (next && next->hasTrait<OpTrait::ConstantLike>())
    next = next->getNextNode();
  if (!next || !isPairable(next) || next->getName() != op->getName() ||
      next->getAttrs() != op->getAttrs() ||
      next->getPropertiesAsAttribute() != op->getPropertiesAsAttribute())
    return nullptr;
  return llvm::is_contained(next->getOperands(), op->getResult(0)) ? nullptr
                                                                   : next;
}

/// The pair that `v` is half of, and which half.
std::pair<Value, int64_t> halfOf(Value v) {
  auto extract = v.getDefiningOp<vector::ExtractOp>();
  if (!extract || extract.getStaticPosition().size() != 1)
    return {};
  auto type = dyn_cast<VectorType>(extract.getSource().getType());
  if (!type || type != VectorType::get({2}, v.getType()))
    return {};
  return {extract.getSource(), extract.getStaticPosition()[0]};
}

/// Whether a and b are a pair already, or neither is half of one.
bool canPair(Value a, Value b) {
  auto [first, low] = halfOf(a);
  auto [second, high] = halfOf(b);
  if (!first && !second)
    return true;
  return first == second && low == 0 && high == 1;
}

Value pair(ImplicitLocOpBuilder &b, Value low, Value high) {
  if (Value whole = halfOf(low).first)
    return whole;
  auto type = VectorType::get({2}, low.getType());
  Attribute constant;
  if (low == high && matchPattern(low, m_Constant(&constant)))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, constant));
  return vector::FromElementsOp::create(b, type, ValueRange{low, high});
}

/// Replaces both with one, in the place of the second.
void pairUp(Operation *low, Operation *high) {
  ImplicitLocOpBuilder b(high->getLoc(), high);
  SmallVector<Value> operands;
  for (auto [l, h] : llvm::zip(low->getOperands(), high->getOperands()))
    operands.push_back(pair(b, l, h));
  OperationState state(high->getLoc(), high->getName().getStringRef(), operands,
                       VectorType::get({2}, b.getF32Type()));
  state.addAttributes(high->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = high->getPropertiesAsAttribute();
  Value both = b.create(state)->getResult(0);
  Operation *halves[] = {low, high};
  for (auto [half, op] : llvm::enumerate(halves)) {
    op->getResult(0).replaceAllUsesWith(
        vector::ExtractOp::create(b, both, int64_t(half)));
    op->erase();
  }
}

struct PairRegisters
    : public dither::conversion::impl::DitherPairRegistersBase<PairRegisters> {
  void runOnOperation() override {
    const dither::target::TargetInfo *target =
        dither::target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (!target->f32x2)
      return markAllAnalysesPreserved();
    getOperation().walk([](Block *block) {
      // A partner that nothing uses would leave half of a pair undefined.
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
        if (isOpTriviallyDead(&op))
          op.erase();
      for (Operation *op = block->empty() ? nullptr : &block->front(); op;) {
        Operation *partner = isPairable(op) ? partnerOf(op) : nullptr;
        Operation *next = (partner ? partner : op)->getNextNode();
        if (partner &&
            llvm::all_of(llvm::zip(op->getOperands(), partner->getOperands()),
                         [](auto operands) {
                           auto [a, b] = operands;
                           return canPair(a, b);
                         }))
          pairUp(op, partner);
        else
          next = op->getNextNode();
        op = next;
      }
    });
  }
};

} // namespace
