//===- ShareReciprocals.cpp - Quotients with one divisor, on GPUs ---------===//
//
// With r = fl(1/b) and q = fl(a r), fl(q + r (a - b q)) is a/b correctly
// rounded, unless something overflows or underflows: P. Markstein, "Computation
// of elementary functions on the IBM RISC System/6000 processor", IBM J. Res.
// Dev. 34(1), 1990. ElementaryTest.cpp tries all quotients for which it could
// fail. In the range below all is normal, and a - b q exact: its last bit is at
// least 2^-47 a.
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

/// As few quotients as pay for the reciprocal and the checks.
constexpr size_t kFewest = 4;

/// Of dividends and divisors alike; quotients are within its square.
constexpr float kSmallest = 0x1p-60f, kLargest = 0x1p60f;

class Sharing {
public:
  explicit Sharing(MutableArrayRef<arith::DivFOp> quotients)
      : quotients(quotients), b(quotients.back().getLoc(), quotients.back()) {}

  /// Replaces the quotients, which stand one after the other.
  void run() {
    Value divisor = quotients.front().getRhs();
    SmallVector<Type> types(quotients.size(), b.getF32Type());
    auto choice = scf::IfOp::create(b, types, inRange(divisor),
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    b.setInsertionPointToStart(choice.thenBlock());
    Value r = arith::DivFOp::create(b, number(1.0f), divisor);
    Value minus = arith::NegFOp::create(b, divisor);
    // Step by step and not quotient by quotient, for dither-pair-registers.
    SmallVector<Value> near, rests, results;
    for (arith::DivFOp quotient : quotients)
      near.push_back(arith::MulFOp::create(b, quotient.getLhs(), r));
    for (auto [quotient, q] : llvm::zip(quotients, near))
      rests.push_back(math::FmaOp::create(b, minus, q, quotient.getLhs()));
    for (auto [rest, q] : llvm::zip(rests, near))
      results.push_back(math::FmaOp::create(b, rest, r, q));
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
  /// Whether the divisor and all dividends are far from the ends of exponents.
  Value inRange(Value divisor) {
    Value most = math::AbsFOp::create(b, divisor), least = most;
    for (arith::DivFOp quotient : quotients) {
      Value a = math::AbsFOp::create(b, quotient.getLhs());
      most = arith::MaximumFOp::create(b, most, a);
      least = arith::MinimumFOp::create(b, least, a);
    }
    using P = arith::CmpFPredicate;
    return arith::AndIOp::create(
        b, arith::CmpFOp::create(b, P::OGE, least, number(kSmallest)),
        arith::CmpFOp::create(b, P::OLE, most, number(kLargest)));
  }

  Value number(float v) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(v));
  }

  MutableArrayRef<arith::DivFOp> quotients;
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
    for (MutableArrayRef<arith::DivFOp> run : runs)
      if (run.size() >= kFewest)
        Sharing(run).run();
  }

  /// Quotients one after the other with the same divisor, of which none is a
  /// dividend of another.
  static void collect(Block &block,
                      SmallVectorImpl<SmallVector<arith::DivFOp>> &runs) {
    bool open = false;
    for (Operation &op : block) {
      auto quotient = dyn_cast<arith::DivFOp>(op);
      if (!quotient || !quotient.getType().isF32() ||
          quotient.getFastmath() != arith::FastMathFlags::none ||
          matchPattern(quotient.getRhs(), m_Constant())) {
        open = open && op.hasTrait<OpTrait::ConstantLike>();
        continue;
      }
      auto uses = [&](arith::DivFOp &earlier) {
        return quotient.getLhs() == earlier.getResult() ||
               quotient.getRhs() == earlier.getResult();
      };
      if (!open || runs.back().back().getRhs() != quotient.getRhs() ||
          llvm::any_of(runs.back(), uses))
        runs.emplace_back();
      runs.back().push_back(quotient);
      open = true;
    }
  }
};

} // namespace
