//===- IndexSign.cpp - What is known about the sign of offsets ------------===//

#include "Analysis/IndexSign.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

namespace dither::transforms {

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
  if (isa<quant::ProgramIdOp, quant::NumProgramsOp>(def))
    return kMostSteps;
  if (isa<quant::ClusterRankOp>(def))
    return kMostBlocks;
  if (auto tile = dyn_cast<quant::TileIdOp>(def))
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
      cast && isa_and_present<quant::ProgramIdOp>(cast.getIn().getDefiningOp());
  return isProgram ? Most(limit) : std::nullopt;
}

} // namespace

std::optional<int64_t> largest(Value v) { return mostOf(v, 0); }

bool isNonNegative(Value v) { return largest(v).has_value(); }

scf::ForOp countingLoop(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  auto loop =
      argument
          ? dyn_cast_if_present<scf::ForOp>(argument.getOwner()->getParentOp())
          : scf::ForOp();
  return loop && argument == loop.getInductionVar() ? loop : scf::ForOp();
}

} // namespace dither::transforms
