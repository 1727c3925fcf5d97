//===- MixedPrecision.cpp - Arithmetic on halves of words -----------------===//
//
// A value of bf16 or f16 takes an instruction to become one of f32, which
// add.f32.bf16 and fma.rn.f32.bf16 do without: they take either half of a
// register. A square is exact in f32, or rounded once, as a product is; less
// zero, and plus it, both are what they were.
//
//===----------------------------------------------------------------------===//

#include "MixedPrecision.h"
#include "Elements.h"
#include "FactorWords.h"
#include "InlineAsm.h"
#include "Magnitudes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dither::conversion {

namespace {

/// Whether a value was decoded from a half of a word.
bool isDecoded(Value v) {
  auto [decode, at] = elementOf<quant::DecodeWordsOp>(v);
  return decode && decode.getGroup() == 2 &&
         decode.getSource().getType().getRank() == 1 &&
         (decode.getElem().isBF16() || decode.getElem().isF16());
}

/// Whether an operation on `v` takes it as a half.
bool takesHalf(Operation *user, Value v) {
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(user) ||
      !v.getType().isF32())
    return false;
  if (!isa<arith::MulFOp>(user))
    return user->getOperand(0) != user->getOperand(1);
  Value other = user->getOperand(user->getOperand(0) == v);
  return other == v ||
         (isPowerOfTwo(other) &&
          elementOf<quant::DecodeWordsOp>(v).first.getElem().isBF16());
}

/// The result of `user` of a half in the place of `v`.
Value mixed(Operation *user, Value v, const FactorHalves &factors) {
  OpBuilder b(user);
  auto [decode, at] = elementOf<quant::DecodeWordsOp>(v);
  Value word =
      vector::ExtractOp::create(b, v.getLoc(), decode.getSource(), at / 2);
  bool brain = decode.getElem().isBF16();
  bool first = user->getOperand(0) == v;
  Value other = user->getOperand(first);
  std::string type = brain ? "f32.bf16" : "f32.f16", x = at % 2 ? "h" : "l";
  std::string text = "{ .reg .b16 l, h, m, n; mov.b32 {l, h}, $1; ";
  SmallVector<Value> operands{word};
  std::string constraints = "=f,r";
  if (isa<arith::MulFOp>(user)) {
    std::string y = x;
    if (other != v) {
      // A power of two has its bits in the upper half.
      std::optional<FactorHalves::Half> half = factors.find(other);
      operands.push_back(half ? half->word
                              : Value(arith::BitcastOp::create(
                                    b, user->getLoc(), b.getI32Type(), other)));
      constraints += ",r";
      text += "mov.b32 {m, n}, $2; ";
      y = half && !half->isUpper ? "m" : "n";
    }
    text += "fma.rn." + type + " $0, " + x + ", " + y + ", 0f80000000; }";
  } else {
    operands.push_back(other);
    constraints += ",f";
    if (isa<arith::AddFOp>(user))
      text += "add.rn." + type + " $0, " + x + ", $2; }";
    else if (first)
      text += "sub.rn." + type + " $0, " + x + ", $2; }";
    else // -1 times the half
      text += std::string("mov.b16 m, ") + (brain ? "0xBF80" : "0xBC00") +
              "; fma.rn." + type + " $0, " + x + ", m, $2; }";
  }
  return inlineAsm(b, user->getLoc(), b.getF32Type(), operands, text,
                   constraints)
      .getResult(0);
}

/// Between which barriers of its block operations are, with those that they are
/// in: what is decoded is decoded again after a barrier.
class Stretches {
public:
  /// That of `op`, which is in a region of the block of `v`.
  unsigned of(Operation *op, Value v) {
    Block *block = v.getParentBlock();
    auto [found, isNew] = starts.try_emplace(block);
    if (isNew)
      for (Operation &other : *block)
        if (isa<NVVM::Barrier0Op>(other))
          found->second.push_back(&other);
    Operation *at = block->findAncestorOpInBlock(*op);
    return llvm::count_if(found->second, [&](Operation *barrier) {
      return barrier->isBeforeInBlock(at);
    });
  }

private:
  llvm::SmallDenseMap<Block *, SmallVector<Operation *, 2>> starts;
};

/// Operations that are to take `v` as a half: all those of a stretch, or none.
SmallVector<Operation *> takersOf(Value v, Stretches &stretches) {
  llvm::SmallMapVector<unsigned, llvm::SmallSetVector<Operation *, 2>, 2> users;
  for (Operation *user : v.getUsers())
    users[stretches.of(user, v)].insert(user);
  SmallVector<Operation *> takers;
  for (auto &[stretch, together] : users)
    if (llvm::all_of(together,
                     [&](Operation *user) { return takesHalf(user, v); }))
      llvm::append_range(takers, together);
  return takers;
}

} // namespace

void mixPrecision(Region &body) {
  SmallVector<Value> values, powers;
  body.walk([&](vector::ExtractOp op) {
    if (isDecoded(op.getResult()))
      values.push_back(op.getResult());
  });
  Stretches stretches;
  for (Value v : values)
    for (Operation *taker : takersOf(v, stretches))
      if (isa<arith::MulFOp>(taker))
        powers.push_back(taker->getOperand(taker->getOperand(0) == v));
  OpBuilder b(body.getContext());
  FactorHalves factors(b, powers);
  // The last first: of a sum of two halves one is decoded, and earlier ones
  // are wanted earlier.
  for (Value v : llvm::reverse(values))
    for (Operation *taker : takersOf(v, stretches)) {
      taker->getResult(0).replaceAllUsesWith(mixed(taker, v, factors));
      taker->erase();
    }
}

} // namespace dither::conversion
