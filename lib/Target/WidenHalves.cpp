//===- WidenHalves.cpp - No arithmetic on f16 in CPU code -----------------===//
//
// Kernels compute in f32, and InstCombine makes max(fpext x, fpext y) a maximum
// of halves, which an x86 without FP16 has no instruction for: each element
// became a call of fmaxf. What it narrows is exact in both types, so it is
// widened again.
//
//===----------------------------------------------------------------------===//

#include "WidenHalves.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace dither::target {

namespace {

bool isHalf(Type *type) { return type->getScalarType()->isHalfTy(); }

Value *widen(IRBuilder<> &b, Value *half) {
  Type *wide = half->getType()->getWithNewType(b.getFloatTy());
  return b.CreateFPExt(half, wide);
}

/// Intrinsics of one type whose f32 results are halves where their operands
/// are.
bool isExactIntrinsic(const Instruction &i) {
  auto *call = dyn_cast<IntrinsicInst>(&i);
  if (!call)
    return false;
  switch (call->getIntrinsicID()) {
  case Intrinsic::maxnum:
  case Intrinsic::minnum:
  case Intrinsic::maximum:
  case Intrinsic::minimum:
  case Intrinsic::maximumnum:
  case Intrinsic::minimumnum:
  case Intrinsic::floor:
  case Intrinsic::ceil:
  case Intrinsic::trunc:
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::round:
  case Intrinsic::roundeven:
    return true;
  default:
    return false;
  }
}

/// `i` on f32, or null where it does not compute with halves.
Value *widened(IRBuilder<> &b, Instruction &i) {
  if (i.getNumOperands() == 0 || !isHalf(i.getOperand(0)->getType()))
    return nullptr;
  if (auto *compare = dyn_cast<FCmpInst>(&i))
    return b.CreateFCmp(compare->getPredicate(), widen(b, i.getOperand(0)),
                        widen(b, i.getOperand(1)));
  if (auto *binary = dyn_cast<BinaryOperator>(&i))
    return b.CreateBinOp(binary->getOpcode(), widen(b, i.getOperand(0)),
                         widen(b, i.getOperand(1)));
  if (!isExactIntrinsic(i))
    return nullptr;
  auto &call = cast<IntrinsicInst>(i);
  SmallVector<Value *> operands;
  for (Value *operand : call.args())
    operands.push_back(widen(b, operand));
  return b.CreateIntrinsic(call.getIntrinsicID(), {operands[0]->getType()},
                           operands);
}

} // namespace

PreservedAnalyses WidenHalvesPass::run(Function &f, FunctionAnalysisManager &) {
  SmallVector<Instruction *> narrow;
  for (Instruction &i : instructions(f))
    narrow.push_back(&i);
  bool changed = false;
  for (Instruction *i : narrow) {
    IRBuilder<> b(i);
    Value *wide = widened(b, *i);
    if (!wide)
      continue;
    changed = true;
    // Who widens an exact result takes it as it is.
    if (isExactIntrinsic(*i))
      for (User *user : make_early_inc_range(i->users()))
        if (auto *extension = dyn_cast<FPExtInst>(user);
            extension && extension->getType() == wide->getType())
          extension->replaceAllUsesWith(wide);
    if (!isa<FCmpInst>(i))
      wide = b.CreateFPTrunc(wide, i->getType());
    i->replaceAllUsesWith(wide);
    i->eraseFromParent();
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace dither::target
