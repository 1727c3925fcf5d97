//===- Divisions.cpp - Quotients of places --------------------------------===//

#include "Tiling/Divisions.h"

#include "Analysis/IndexSign.h"
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

/// Whether a value is so many times another one, of terms that do not wrap. Not
/// where that is what a program is numbered by: few programs store at their
/// number itself (VersionBounds.cpp), and it has no divisor.
static bool divides(int64_t divisor, Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % divisor == 0;
  if (auto product = value.getDefiningOp<arith::MulIOp>()) {
    std::optional<int64_t> factor = factorOf(product).first;
    return factor && *factor % divisor == 0 && *factor != divisor &&
           isNonNegative(value);
  }
  if (auto sum = value.getDefiningOp<arith::AddIOp>())
    return isNonNegative(value) && isNonNegative(sum.getLhs()) &&
           isNonNegative(sum.getRhs()) && divides(divisor, sum.getLhs()) &&
           divides(divisor, sum.getRhs());
  return false;
}

/// That other one.
static Value over(OpBuilder &b, Location loc, Value value, int64_t divisor) {
  Type type = value.getType();
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constantOf(b, loc, type, *constant / divisor);
  if (auto product = value.getDefiningOp<arith::MulIOp>()) {
    auto [factor, other] = factorOf(product);
    return arith::MulIOp::create(b, loc, other,
                                 constantOf(b, loc, type, *factor / divisor));
  }
  auto sum = value.getDefiningOp<arith::AddIOp>();
  Value lhs = over(b, loc, sum.getLhs(), divisor),
        rhs = over(b, loc, sum.getRhs(), divisor);
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

/// A quotient in another form; null where it stays as it is.
static Value simplified(OpBuilder &b, Operation *op) {
  Value dividend = op->getOperand(0);
  if (!isNonNegative(dividend))
    return {};
  Location loc = op->getLoc();
  std::optional<int64_t> divisor = divisorOf(op);
  if (divisor && *divisor > 0 && divides(*divisor, dividend))
    return over(b, loc, dividend, *divisor);
  if (isa<arith::FloorDivSIOp>(op) && isNonNegative(op->getOperand(1)))
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
