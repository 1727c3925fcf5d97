//===- Addresses.cpp - Addresses of lanes ---------------------------------===//
//
// The registers of a lane are at constant distances in elements, and an offset
// in bytes is a multiple of that, or a half of it for codes of 4 bits: LLVM
// leaves p + 2 (x + c) and p + (x + c) / 2 as they are where x + c is used for
// both. An offset in elements does not overflow, and a sum is a multiple of two
// where both parts are.
//
//===----------------------------------------------------------------------===//

#include "Addresses.h"
#include "Functions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace dither::target {

PreservedAnalyses ThreadRangePass::run(Function &f, FunctionAnalysisManager &) {
  unsigned threads = numberOf(f, "nvvm.reqntid");
  if (!threads)
    return PreservedAnalyses::all();
  for (Instruction &i : instructions(f))
    if (match(&i, m_Intrinsic<Intrinsic::nvvm_read_ptx_sreg_tid_x>()))
      cast<CallBase>(i).addRangeRetAttr(
          ConstantRange(APInt::getZero(32), APInt(32, threads)));
  return allButInstructions(/*changed=*/true);
}

namespace {

/// What instructions add to an address, at most (PTX ISA, addresses).
constexpr unsigned kOffsetBits = 24;

/// bytes = shift(elements) + distance.
struct Split {
  Instruction *shift = nullptr;
  Value *elements = nullptr;
  int64_t distance = 0;
};

Split split(Value *bytes) {
  auto *shift = dyn_cast<BinaryOperator>(bytes);
  const APInt *constant, *by;
  if (!shift || !shift->isShift() ||
      !match(shift->getOperand(1), m_APInt(by)) || by->ugt(8))
    return {};
  Value *sum = shift->getOperand(0), *x;
  if (!match(sum, m_AddLike(m_Value(x), m_APInt(constant))))
    return {shift, sum, 0};
  int64_t distance = constant->getSExtValue(), k = by->getZExtValue();
  if (shift->getOpcode() == Instruction::Shl)
    distance <<= k;
  else if (distance % (int64_t(1) << k) == 0)
    distance >>= k;
  else
    return {};
  if (!isInt<kOffsetBits>(distance))
    return {};
  return {shift, x, distance};
}

/// Addresses without distances, by what they are computed of.
using Bases = MapVector<std::tuple<Value *, Value *, unsigned, uint64_t>,
                        SmallVector<Instruction *>>;

bool splitOffset(GetElementPtrInst *address, Bases &bases,
                 const DominatorTree &dominators) {
  if (address->getNumIndices() != 1 ||
      !address->getSourceElementType()->isIntegerTy(8))
    return false;
  Split found = split(address->getOperand(1));
  if (!found.shift)
    return false;
  IRBuilder<> b(address);
  Value *amount = found.shift->getOperand(1);
  auto &made = bases[{address->getPointerOperand(), found.elements,
                      found.shift->getOpcode(),
                      cast<ConstantInt>(amount)->getZExtValue()}];
  auto base = find_if(made, [&](Instruction *other) {
    return dominators.dominates(other, address);
  });
  if (base == made.end() && !found.distance) {
    made.push_back(address);
    return false;
  }
  if (base == made.end()) {
    Value *bytes =
        b.CreateBinOp(Instruction::BinaryOps(found.shift->getOpcode()),
                      found.elements, amount);
    made.push_back(cast<Instruction>(
        b.CreateGEP(b.getInt8Ty(), address->getPointerOperand(), bytes)));
    base = std::prev(made.end());
  }
  Value *moved = *base;
  if (found.distance)
    moved = b.CreateGEP(b.getInt8Ty(), moved, b.getInt64(found.distance));
  address->replaceAllUsesWith(moved);
  address->eraseFromParent();
  RecursivelyDeleteTriviallyDeadInstructions(found.shift);
  return true;
}

/// InstCombine makes "or" of sums without carries. ptxas adds a product in one
/// instruction, and has two for 64 bits of an "or".
bool addUp(PossiblyDisjointInst *either) {
  if (!either->isDisjoint() || !either->getType()->isIntegerTy(64))
    return false;
  IRBuilder<> b(either);
  either->replaceAllUsesWith(b.CreateAdd(either->getOperand(0),
                                         either->getOperand(1), "",
                                         /*HasNUW=*/true, /*HasNSW=*/true));
  either->eraseFromParent();
  return true;
}

} // namespace

PreservedAnalyses SplitOffsetsPass::run(Function &f,
                                        FunctionAnalysisManager &analyses) {
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f)))
    if (auto *either = dyn_cast<PossiblyDisjointInst>(&i))
      changed |= addUp(either);
  const auto &dominators = analyses.getResult<DominatorTreeAnalysis>(f);
  Bases bases;
  for (Instruction &i : make_early_inc_range(instructions(f)))
    if (auto *address = dyn_cast<GetElementPtrInst>(&i))
      changed |= splitOffset(address, bases, dominators);
  return allButInstructions(changed);
}

} // namespace dither::target
