//===- Addresses.cpp - Addresses of lanes ---------------------------------===//
//
// The registers of a lane are at constant distances in elements, and an offset
// in bytes is a multiple of that, or a half of it for codes of 4 bits: LLVM
// leaves p + 2 (x + c) and p + (x + c) / 2 as they are where x + c is used for
// both, and p + (x + c) where another block has computed x + c. An offset in
// elements does not overflow, and a sum is a multiple of two where both parts
// are.
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

/// bytes = shift(elements) + distance; without a shift elements + distance.
struct Split {
  BinaryOperator *shift = nullptr;
  Value *elements = nullptr;
  int64_t distance = 0;
};

std::optional<Split> split(Value *bytes) {
  auto *shift = dyn_cast<BinaryOperator>(bytes);
  const APInt *constant, *by = nullptr;
  if (shift && !(shift->isShift() && match(shift->getOperand(1), m_APInt(by))))
    shift = nullptr;
  if (shift && by->ugt(8))
    return std::nullopt;
  Value *sum = shift ? shift->getOperand(0) : bytes, *x;
  if (!match(sum, m_AddLike(m_Value(x), m_APInt(constant))))
    return Split{shift, sum, 0};
  int64_t distance = constant->getSExtValue();
  int64_t unit = shift ? int64_t(1) << by->getZExtValue() : 1;
  if (!shift || shift->getOpcode() == Instruction::Shl)
    distance *= unit;
  else if (distance % unit == 0)
    distance /= unit;
  else
    return std::nullopt;
  if (!isInt<kOffsetBits>(distance))
    return std::nullopt;
  return Split{shift, x, distance};
}

/// Addresses without distances, by what they are computed of.
using Bases = MapVector<std::tuple<Value *, Value *, unsigned, uint64_t>,
                        SmallVector<Instruction *>>;

bool splitOffset(GetElementPtrInst *address, Bases &bases,
                 const DominatorTree &dominators) {
  if (address->getNumIndices() != 1 ||
      !address->getSourceElementType()->isIntegerTy(8))
    return false;
  Value *bytes = address->getOperand(1);
  std::optional<Split> found = split(bytes);
  if (!found)
    return false;
  IRBuilder<> b(address);
  auto *shift = found->shift;
  auto &made = bases[{
      address->getPointerOperand(), found->elements,
      shift ? shift->getOpcode() : 0,
      shift ? cast<ConstantInt>(shift->getOperand(1))->getZExtValue() : 0}];
  auto base = find_if(made, [&](Instruction *other) {
    return dominators.dominates(other, address);
  });
  if (base == made.end() && !found->distance) {
    made.push_back(address);
    return false;
  }
  if (base == made.end()) {
    Value *near = found->elements;
    if (shift)
      near = b.CreateBinOp(shift->getOpcode(), near, shift->getOperand(1));
    made.push_back(cast<Instruction>(
        b.CreateGEP(b.getInt8Ty(), address->getPointerOperand(), near)));
    base = std::prev(made.end());
  }
  Value *moved = *base;
  if (found->distance)
    moved = b.CreateGEP(b.getInt8Ty(), moved, b.getInt64(found->distance));
  address->replaceAllUsesWith(moved);
  address->eraseFromParent();
  RecursivelyDeleteTriviallyDeadInstructions(bytes);
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
