//===- PhaseChecks.cpp - What phases know of products ---------------------===//
//
// A product with the factor of its block is in range of its code where neither
// is special: a phase that computes the factors finds out, and those after it
// need not ask.
//
//===----------------------------------------------------------------------===//

#include "Phases/Blocks.h"
#include "Phases/PhasePlan.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dither::transforms {

/// Whether `factor` is computed from the amax of blocks of `x`, constants and
/// single values alone; what chooses between such factors may be anything.
static bool followsFromAmax(Value factor, Value x) {
  llvm::SetVector<Value> seen;
  seen.insert(factor);
  bool found = false;
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *def = seen[i].getDefiningOp();
    if (auto reduce = dyn_cast_if_present<quant::BlockReduceOp>(def)) {
      if (reduce.getKind() != quant::ReduceKind::amax ||
          ReducedBlocks(reduce).source != x)
        return false;
      found = true;
      continue;
    }
    if (!def ||
        (isa<quant::LoadOp>(def) &&
         cast<RankedTensorType>(seen[i].getType()).getNumElements() != 1))
      return false;
    ValueRange operands = def->getOperands();
    for (Value operand :
         isa<arith::SelectOp>(def) ? operands.drop_front() : operands)
      if (isa<RankedTensorType>(operand.getType()))
        seen.insert(operand);
  }
  return found;
}

/// Nothing unless `encode` is of x * f, f from the amax of the blocks of x;
/// with an amax where x is bf16 and f the power of two that takes it to the
/// largest code, if the target `hasHalf`, arithmetic on f16.
static std::optional<PhasePlan::Product> productOf(quant::EncodeOp encode,
                                                   bool hasHalf) {
  const numerics::ElementFormat *format =
      quant::codeFormat(encode.getResult().getType().getElementType());
  auto product = encode.getSource().getDefiningOp<arith::MulFOp>();
  auto spread = product
                    ? product.getRhs().getDefiningOp<quant::BlockBroadcastOp>()
                    : quant::BlockBroadcastOp();
  if (!format || format->twosComplement || !spread ||
      !followsFromAmax(spreadBy(spread), product.getLhs()))
    return std::nullopt;
  auto inverse = spreadBy(spread).getDefiningOp<quant::E8M0InverseOp>();
  auto scale = inverse ? inverse.getSource().getDefiningOp<quant::EncodeOp>()
                       : quant::EncodeOp();
  PhasePlan::Product found;
  if (!scale || scale.getMode() != quant::E8M0Mode::rceil)
    return found;
  auto scaled = scale.getSource().getDefiningOp<arith::MulFOp>();
  auto amax = scaled ? scaled.getLhs().getDefiningOp<quant::BlockReduceOp>()
                     : quant::BlockReduceOp();
  SplatElementsAttr by;
  found.bounded =
      amax && matchPattern(scaled.getRhs(), m_Constant(&by)) &&
      by.getSplatValue<APFloat>().convertToFloat() == 1.0f / format->max;
  auto widened = product.getLhs().getDefiningOp<arith::ExtFOp>();
  if (hasHalf && found.bounded && numerics::hasHalfRounding(*format) &&
      widened && getElementTypeOrSelf(widened.getIn()).isBF16())
    found.amax = amax;
  return found;
}

void PhasePlan::findChecks(func::FuncOp kernel) {
  const target::TargetInfo *target = target::saidTarget(kernel);
  bool hasHalf = target && target->avx512Half;
  for (Value v : classes->values()) {
    quant::BlockReduceOp reduce = asAmax(v);
    if (!reduce || isStep(v))
      continue;
    std::optional<Kind> kind = kindOf(v);
    if (!isBlocks(kind))
      continue;
    if (checkKind && *kind < *checkKind)
      checks.clear();
    if (!checkKind || *kind < *checkKind)
      checkKind = kind;
    if (*kind == *checkKind)
      checks.push_back(reduce);
  }
  for (Value v : classes->values())
    if (auto encode = v.getDefiningOp<quant::EncodeOp>())
      if (std::optional<Product> found = productOf(encode, hasHalf))
        if (auto product = encode.getSource().getDefiningOp<arith::MulFOp>();
            isChecked(product.getLhs())) {
          products[encode] = *found;
          Value factor = spreadBy(
              product.getRhs().getDefiningOp<quant::BlockBroadcastOp>());
          factors.insert(factor);
          if (found->amax) {
            maxima.insert(found->amax);
            halfFactors.insert(factor);
          }
        }
  if (products.empty()) {
    checks.clear();
    checkKind.reset();
  }
}

bool PhasePlan::isChecked(Value v) const {
  return llvm::any_of(checks, [&](quant::BlockReduceOp op) {
    return ReducedBlocks(op).source == v;
  });
}

} // namespace dither::transforms
