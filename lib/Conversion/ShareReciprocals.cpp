//===- ShareReciprocals.cpp - Quotients with few divisors, on GPUs --------===//
//
// With r = fl(1/b) and q = fl(a r), fl(q - r (b q - a)) is a/b correctly
// rounded, unless something overflows or underflows: P. Markstein, "Computation
// of elementary functions on the IBM RISC System/6000 processor", IBM J. Res.
// Dev. 34(1), 1990. ElementaryTest.cpp tries all quotients for which it could
// fail. In the range below all is normal, and b q - a exact: its last bit is at
// least 2^-47 a.
//
// Of a zero the quotient is a zero as well, of its sign where b is positive:
// then b q - a is +0, and q - r (+0) is q. That is why it is not a - b q.
//
//===----------------------------------------------------------------------===//

#include "dither/Conversion/Passes.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dither::conversion {
#define GEN_PASS_DEF_DITHERSHARERECIPROCALS
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;

namespace {

/// As few quotients of one divisor as pay for the reciprocal and the checks.
constexpr unsigned kFewest = 4;

/// Of dividends and divisors alike; quotients are within its square.
constexpr float kSmallest = 0x1p-60f, kLargest = 0x1p60f;

class Sharing {
public:
  explicit Sharing(SmallVector<arith::DivFOp> shared)
      : quotients(std::move(shared)),
        b(quotients.back().getLoc(), quotients.back()) {
    for (arith::DivFOp quotient : quotients)
      divisors.insert(quotient.getRhs());
  }

  /// Replaces the quotients, none of which is an operand of another.
  void run() {
    SmallVector<Type> types(quotients.size(), b.getF32Type());
    auto choice = scf::IfOp::create(b, types, inRange(), /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    b.setInsertionPointToStart(choice.thenBlock());
    DenseMap<Value, std::pair<Value, Value>> reciprocals;
    for (Value divisor : divisors) {
      Value r = arith::DivFOp::create(b, number(1.0f), divisor);
      reciprocals[divisor] = {r, arith::NegFOp::create(b, r)};
    }
    // Step by step and not quotient by quotient, for dither-pair-registers.
    SmallVector<Value> near, rests, results;
    for (arith::DivFOp quotient : quotients)
      near.push_back(arith::MulFOp::create(
          b, quotient.getLhs(), reciprocals[quotient.getRhs()].first));
    for (arith::DivFOp quotient : quotients)
      rests.push_back(arith::NegFOp::create(b, quotient.getLhs()));
    for (auto [quotient, q, rest] : llvm::zip(quotients, near, rests))
      rest = math::FmaOp::create(b, quotient.getRhs(), q, rest);
    for (auto [quotient, q, rest] : llvm::zip(quotients, near, rests))
      results.push_back(math::FmaOp::create(
          b, rest, reciprocals[quotient.getRhs()].second, q));
    scf::YieldOp::create(b, results);
    for (auto [quotient, result] : llvm::zip(quotients, choice.getResults()))
      quotient.getResult().replaceAllUsesWith(result);
    b.setInsertionPointToStart(choice.elseBlock());
    auto yield = scf::YieldOp::create(b, ValueRange());
    for (arith::DivFOp quotient : quotients) {
      quotient->moveBefore(yield);
      yield.getResultsMutable().append(quotient.getResult());
    }
  }

private:
  using P = arith::CmpFPredicate;

  /// Whether all divisors, and all dividends but zeros, are far from the ends
  /// of exponents. Most often none is zero, which takes fewer operations.
  Value inRange() {
    Value most, least;
    auto add = [&](Value value) {
      Value a = math::AbsFOp::create(b, value);
      most = most ? Value(arith::MaximumFOp::create(b, most, a)) : a;
      least = least ? Value(arith::MinimumFOp::create(b, least, a)) : a;
    };
    for (Value divisor : divisors)
      add(divisor);
    for (arith::DivFOp quotient : quotients)
      add(quotient.getLhs());
    Value small = arith::CmpFOp::create(b, P::OLE, most, number(kLargest));
    Value large = arith::CmpFOp::create(b, P::OGE, least, number(kSmallest));
    auto choice = scf::IfOp::create(b, TypeRange{b.getI1Type()}, large,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    b.setInsertionPointToStart(choice.thenBlock());
    scf::YieldOp::create(b, small);
    b.setInsertionPointToStart(choice.elseBlock());
    Value both = arith::AndIOp::create(b, small, largeButZeros());
    scf::YieldOp::create(b, both);
    b.setInsertionPointAfter(choice);
    return choice.getResult(0);
  }

  /// Whether divisors are positive and none of them is too small, nor is any
  /// dividend that is no zero. Bits of zeros, less one, are the largest
  /// integer.
  Value largeButZeros() {
    Value positive = divisors.front();
    for (Value divisor : llvm::drop_begin(divisors))
      positive = arith::MinimumFOp::create(b, positive, divisor);
    Value one = integer(1), least;
    for (arith::DivFOp quotient : quotients) {
      Value bits =
          arith::BitcastOp::create(b, b.getI32Type(), quotient.getLhs());
      Value less =
          arith::SubIOp::create(b, arith::ShLIOp::create(b, bits, one), one);
      least = least ? Value(arith::MinUIOp::create(b, least, less)) : less;
    }
    uint32_t bound = 2 * llvm::bit_cast<uint32_t>(kSmallest) - 1;
    Value isPositive =
        arith::CmpFOp::create(b, P::OGE, positive, number(kSmallest));
    Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, least,
                                          integer(bound));
    return arith::AndIOp::create(b, isPositive, isLarge);
  }

  Value number(float v) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(v));
  }

  Value integer(uint32_t v) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(v)));
  }

  SmallVector<arith::DivFOp> quotients;
  llvm::SmallSetVector<Value, 4> divisors;
  ImplicitLocOpBuilder b;
};

struct ShareReciprocals
    : public dither::conversion::impl::DitherShareReciprocalsBase<
          ShareReciprocals> {
  void runOnOperation() override {
    const dither::target::TargetInfo *target =
        dither::target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (!target->isGpu)
      return markAllAnalysesPreserved();
    SmallVector<SmallVector<arith::DivFOp>> runs;
    getOperation().walk([&](Block *block) { collect(*block, runs); });
    for (ArrayRef<arith::DivFOp> run : runs)
      share(run);
  }

  /// Of quotients that stand one after the other: those with one divisor by
  /// themselves, which need the fewest registers; and together those whose
  /// divisors take turns, as columns of a tile do.
  static void share(ArrayRef<arith::DivFOp> run) {
    SmallVector<arith::DivFOp> turns;
    DenseMap<Value, unsigned> counts;
    while (!run.empty()) {
      Value divisor = arith::DivFOp(run.front()).getRhs();
      ArrayRef<arith::DivFOp> same = run.take_while(
          [&](arith::DivFOp quotient) { return quotient.getRhs() == divisor; });
      run = run.drop_front(same.size());
      if (same.size() >= kFewest) {
        Sharing(SmallVector<arith::DivFOp>(same)).run();
        continue;
      }
      turns.append(same.begin(), same.end());
      counts[divisor] += same.size();
    }
    llvm::erase_if(turns, [&](arith::DivFOp quotient) {
      return counts[quotient.getRhs()] < kFewest;
    });
    if (!turns.empty())
      Sharing(std::move(turns)).run();
  }

  /// Quotients one after the other, of which none is an operand of another.
  static void collect(Block &block,
                      SmallVectorImpl<SmallVector<arith::DivFOp>> &runs) {
    bool open = false;
    for (Operation &op : block) {
      auto quotient = dyn_cast<arith::DivFOp>(op);
      if (!quotient || !quotient.getType().isF32() ||
          quotient.getFastmath() != arith::FastMathFlags::none ||
          isProduct(quotient.getRhs())) {
        open = open && op.hasTrait<OpTrait::ConstantLike>();
        continue;
      }
      auto uses = [&](arith::DivFOp &earlier) {
        return quotient.getLhs() == earlier.getResult() ||
               quotient.getRhs() == earlier.getResult();
      };
      if (!open || llvm::any_of(runs.back(), uses))
        runs.emplace_back();
      runs.back().push_back(quotient);
      open = true;
    }
  }

  /// Whether LLVM multiplies by the reciprocal of a divisor, which is exact.
  static bool isProduct(Value divisor) {
    FloatAttr constant;
    return matchPattern(divisor, m_Constant(&constant)) &&
           constant.getValue().getExactInverse(nullptr);
  }
};

} // namespace
