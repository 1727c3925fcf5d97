//===- Divisions.cpp - Quotients of places --------------------------------===//

#include "Tiling/Divisions.h"

#include "dither/Dialect/Quant/Offsets.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace dither::transforms {

/// The divisor of a quotient, where it is known.
static std::optional<int64_t> divisorOf(Operation *op) {
  std::optional<int64_t> by = getConstantIntValue(op->getOperand(1));
  if (!by || !isa<arith::ShRSIOp, arith::ShRUIOp>(op))
    return by;
  return *by >= 0 && *by < 31 ? std::optional(int64_t(1) << *by) : std::nullopt;
}

static Value constantOf(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

/// A product's constant factor, and the other one.
static std::pair<std::optional<int64_t>, Value>
factorOf(arith::MulIOp product) {
  if (auto factor = getConstantIntValue(product.getRhs()))
    return {factor, product.getLhs()};
  return {getConstantIntValue(product.getLhs()), product.getRhs()};
}

/// A value over a divisor, where there is no remainder and no term wraps; else
/// null. Null as well where that is what a program is numbered by: few programs
/// store at their number itself (VersionBounds.cpp), and it has no divisor.
static Value over(OpBuilder &b, Location loc, Value value, int64_t divisor) {
  Type type = value.getType();
  if (!quant::isNonNegative(value))
    return {};
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % divisor ? Value()
                               : constantOf(b, loc, type, *constant / divisor);
  if (auto product = value.getDefiningOp<arith::MulIOp>()) {
    auto [factor, other] = factorOf(product);
    if (!factor || *factor % divisor || *factor == divisor)
      return {};
    return arith::MulIOp::create(b, loc, other,
                                 constantOf(b, loc, type, *factor / divisor));
  }
  auto sum = value.getDefiningOp<arith::AddIOp>();
  Value lhs = sum ? over(b, loc, sum.getLhs(), divisor) : Value(),
        rhs = lhs ? over(b, loc, sum.getRhs(), divisor) : Value();
  return rhs ? arith::AddIOp::create(b, loc, lhs, rhs) : Value();
}

/// A quotient in another form; null where it stays as it is.
static Value simplified(OpBuilder &b, Operation *op) {
  Value dividend = op->getOperand(0);
  if (!quant::isNonNegative(dividend))
    return {};
  Location loc = op->getLoc();
  std::optional<int64_t> divisor = divisorOf(op);
  if (divisor && *divisor > 0)
    if (Value whole = over(b, loc, dividend, *divisor))
      return whole;
  if (isa<arith::FloorDivSIOp>(op) && quant::isNonNegative(op->getOperand(1)))
    return arith::DivUIOp::create(b, loc, dividend, op->getOperand(1));
  if (divisor && isa<arith::ShRSIOp, arith::ShRUIOp>(op))
    return arith::DivUIOp::create(
        b, loc, dividend, constantOf(b, loc, dividend.getType(), *divisor));
  return {};
}

void simplifyDivisions(func::FuncOp func) {
  func.walk([](Operation *op) {
    if (!isa<arith::FloorDivSIOp, arith::DivUIOp, arith::ShRSIOp,
             arith::ShRUIOp>(op) ||
        !op->getResult(0).getType().isIntOrIndex())
      return;
    OpBuilder b(op);
    if (Value quotient = simplified(b, op)) {
      op->replaceAllUsesWith(ValueRange(quotient));
      op->erase();
    }
  });
}

} // namespace dither::transforms
