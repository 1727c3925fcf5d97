//===- Magnitudes.cpp - Numbers that are known to have no sign ------------===//

#include "Magnitudes.h"
#include "Elements.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dither;

bool conversion::isMagnitude(Value v) {
  auto constant = [](Value operand, bool zero) {
    llvm::APFloat value(0.0f);
    return matchPattern(operand, m_ConstantFloat(&value)) && value.isFinite() &&
           !value.isNegative() && (zero || !value.isZero());
  };
  if (auto most = v.getDefiningOp<arith::MaxNumFOp>())
    return constant(most.getRhs(), true) || constant(most.getLhs(), true);
  if (auto product = v.getDefiningOp<arith::MulFOp>())
    return constant(product.getRhs(), false) && isMagnitude(product.getLhs());
  if (auto shuffle = v.getDefiningOp<NVVM::ShflOp>())
    return isMagnitude(shuffle.getVal());
  if (auto choice = v.getDefiningOp<arith::SelectOp>())
    return isMagnitude(choice.getTrueValue()) &&
           isMagnitude(choice.getFalseValue());
  return false;
}

bool conversion::isPowerOfTwo(Value v) {
  if (auto shuffle = v.getDefiningOp<NVVM::ShflOp>())
    return isPowerOfTwo(shuffle.getVal());
  return bool(elementOf<quant::E8M0InverseWordsOp>(v).first);
}
