//===- Offsets.cpp - What is known about offsets --------------------------===//

#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace mlir;

namespace dither::quant {

namespace {

constexpr int kMaxDepth = 8;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
/// No loop runs as often in a lifetime, and no launch has as many programs.
constexpr int64_t kMostSteps = int64_t(1) << 48;

/// Blocks of the largest cluster.
constexpr int64_t kMostBlocks = 8;

using Most = std::optional<int64_t>;

Most mostOf(Value v, int depth);

/// As mostOf, of a number that has all of its bits.
Most mostOfWide(Value v, int depth) {
  if (std::optional<int64_t> c = getConstantIntValue(v))
    return *c >= 0 ? Most(*c) : std::nullopt;
  if (depth > kMaxDepth)
    return std::nullopt;
  if (isa<BlockArgument>(v)) {
    // A loop counts up: its steps are positive.
    scf::ForOp loop = countingLoop(v);
    if (!loop)
      return std::nullopt;
    Most first = mostOf(loop.getLowerBound(), depth + 1);
    if (!first)
      return std::nullopt;
    Most last = mostOf(loop.getUpperBound(), depth + 1);
    Most step = getConstantIntValue(loop.getStep());
    int64_t way, most;
    if (!step || llvm::MulOverflow(*step, kMostSteps, way) ||
        llvm::AddOverflow(*first, way, most))
      most = kMost;
    return std::min(most, last.value_or(kMost));
  }
  Operation *def = v.getDefiningOp();
  auto of = [&](unsigned i) { return mostOf(def->getOperand(i), depth + 1); };
  if (isa<ProgramIdOp, NumProgramsOp>(def))
    return kMostSteps;
  if (isa<ClusterRankOp>(def))
    return kMostBlocks;
  if (auto tile = dyn_cast<TileIdOp>(def))
    return tile.getCount();
  if (isa<memref::DimOp>(def))
    return kMostExtent;
  if (isa<arith::IndexCastOp>(def))
    return of(0);
  if (isa<arith::MaxSIOp>(def)) {
    Most a = of(0), b = of(1);
    if (a && b)
      return std::max(*a, *b);
    return a || b ? Most(kMost) : std::nullopt;
  }
  unsigned first = isa<arith::SelectOp>(def) ? 1 : 0;
  if (def->getNumOperands() != first + 2)
    return std::nullopt;
  Most a = of(first), b = of(first + 1);
  if (!a || !b)
    return std::nullopt;
  int64_t both;
  if (isa<arith::SelectOp>(def))
    return std::max(*a, *b);
  if (isa<arith::AddIOp>(def))
    return llvm::AddOverflow(*a, *b, both) ? std::nullopt : Most(both);
  if (isa<arith::MulIOp>(def))
    return llvm::MulOverflow(*a, *b, both) ? std::nullopt : Most(both);
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp>(def)) {
    int64_t divisor =
        getConstantIntValue(def->getOperand(1)).value_or(int64_t(1));
    return divisor > 1 ? *a / divisor + 1 : *a;
  }
  if (isa<arith::RemUIOp, arith::RemSIOp>(def))
    return *a;
  if (isa<arith::MinSIOp>(def))
    return std::min(*a, *b);
  return std::nullopt;
}

/// The largest value that `v` can have; nothing if it may be negative, which
/// products and sums are that wrap.
Most mostOf(Value v, int depth) {
  Most most = mostOfWide(v, depth);
  auto type = dyn_cast<IntegerType>(v.getType());
  if (!most || !type || type.getWidth() >= 64)
    return most;
  int64_t limit = llvm::maxIntN(type.getWidth());
  if (*most <= limit)
    return most;
  // Programs have numbers of 31 bits, on GPUs by the hardware.
  auto cast = v.getDefiningOp<arith::IndexCastOp>();
  bool isProgram =
      cast && isa_and_present<ProgramIdOp>(cast.getIn().getDefiningOp());
  return isProgram ? Most(limit) : std::nullopt;
}

int64_t divisorOf(Value v, int depth) {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant))) {
    int64_t c = std::abs(constant.getSExtValue());
    return c == 0 ? 0 : c;
  }
  if (depth > kMaxDepth)
    return 1;
  if (isa<BlockArgument>(v)) {
    if (scf::ForOp loop = countingLoop(v))
      return std::gcd(divisorOf(loop.getLowerBound(), depth + 1),
                      divisorOf(loop.getStep(), depth + 1));
    return 1;
  }
  Operation *op = v.getDefiningOp();
  auto of = [&](unsigned i) { return divisorOf(op->getOperand(i), depth + 1); };
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return std::gcd(of(0), of(1));
  if (isa<arith::MulIOp>(op)) {
    int64_t a = of(0), c = of(1);
    return a && c && a > kMaxDivisor / c ? std::max(a, c) : a * c;
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return of(0);
  if (isa<arith::DivUIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
      constant.isStrictlyPositive()) {
    int64_t by = constant.getSExtValue(), whole = of(0);
    return whole % by == 0 ? whole / by : 1;
  }
  return 1;
}

bool isPositive(Value v, int depth) {
  if (std::optional<int64_t> c = getConstantIntValue(v))
    return *c > 0;
  Operation *def = v.getDefiningOp();
  if (!def || depth > kMaxDepth)
    return false;
  auto of = [&](unsigned i) {
    return isPositive(def->getOperand(i), depth + 1);
  };
  if (isa<NumProgramsOp>(def))
    return true;
  if (isa<arith::IndexCastOp>(def))
    return of(0) && isNonNegative(v);
  if (isa<arith::MulIOp>(def))
    return of(0) && of(1) && isNonNegative(v);
  if (isa<arith::AddIOp>(def))
    return (of(0) || of(1)) && isNonNegative(v);
  if (isa<arith::MinSIOp>(def))
    return of(0) && of(1);
  return isa<arith::MaxSIOp>(def) && (of(0) || of(1));
}

} // namespace

std::optional<int64_t> largest(Value v) { return mostOf(v, 0); }

bool isNonNegative(Value v) { return largest(v).has_value(); }

bool isPositive(Value v) { return isPositive(v, 0); }

int64_t divisorOf(Value v) { return divisorOf(v, 0); }

bool countsUp(Value start, Value stop, Value step) {
  Most first = largest(start), last = largest(stop), by = largest(step);
  int64_t way, end;
  if (!by || !isPositive(step))
    return false;
  return (last && !llvm::AddOverflow(*last, *by, end)) ||
         (first && !llvm::MulOverflow(*by, kMostSteps, way) &&
          !llvm::AddOverflow(*first, way, end));
}

scf::ForOp countingLoop(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  auto loop =
      argument
          ? dyn_cast_if_present<scf::ForOp>(argument.getOwner()->getParentOp())
          : scf::ForOp();
  return loop && argument == loop.getInductionVar() ? loop : scf::ForOp();
}

} // namespace dither::quant
