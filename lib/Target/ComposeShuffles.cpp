//===- ComposeShuffles.cpp - One shuffle for chains of them ---------------===//

#include "ComposeShuffles.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace dither::target {

namespace {

/// A lane of a vector that is no shuffle; of none where it may hold anything.
struct Lane {
  Value *vector = nullptr;
  int index = PoisonMaskElem;
};

int64_t lengthOf(Value *v) {
  return cast<FixedVectorType>(v->getType())->getNumElements();
}

Lane trace(Value *v, int index) {
  while (auto *shuffle = dyn_cast<ShuffleVectorInst>(v)) {
    index = shuffle->getMaskValue(index);
    if (index == PoisonMaskElem)
      return {};
    int64_t length = lengthOf(shuffle->getOperand(0));
    v = shuffle->getOperand(index >= length);
    index = index >= length ? index - length : index;
  }
  if (isa<PoisonValue>(v))
    return {};
  return {v, index};
}

/// Gives each lane that is left out before the last one that is not the value
/// of the lane before. Those behind it stay: short vectors end in them.
void define(MutableArrayRef<int> mask) {
  while (!mask.empty() && mask.back() == PoisonMaskElem)
    mask = mask.drop_back();
  int last = 0;
  for (int &lane : mask) {
    if (lane == PoisonMaskElem)
      lane = last;
    last = lane;
  }
}

/// The shuffle that takes the place of `old`; null if that is as it should be.
Value *composed(ShuffleVectorInst *old) {
  Value *first = old->getOperand(0), *second = old->getOperand(1);
  SmallVector<int> mask(old->getShuffleMask()), traced;
  Value *source = nullptr;
  bool isOne = true;
  for (int i = 0, n = lengthOf(old); i < n; ++i) {
    Lane lane = trace(old, i);
    if (!source)
      source = lane.vector;
    isOne &= !lane.vector || lane.vector == source;
    traced.push_back(lane.index);
  }
  if (source && isOne) {
    first = source;
    second = PoisonValue::get(source->getType());
    mask = traced;
  }
  if (old->getType()->getPrimitiveSizeInBits() >= 512)
    define(mask);
  if (first == old->getOperand(0) &&
      (second == old->getOperand(1) || isa<PoisonValue>(second)) &&
      ArrayRef<int>(mask) == old->getShuffleMask())
    return nullptr;
  return IRBuilder<>(old).CreateShuffleVector(first, second, mask);
}

} // namespace

PreservedAnalyses ComposeShufflesPass::run(Function &f,
                                           FunctionAnalysisManager &) {
  SmallVector<ShuffleVectorInst *> shuffles;
  for (Instruction &i : instructions(f))
    if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&i))
      if (isa<FixedVectorType>(shuffle->getType()))
        shuffles.push_back(shuffle);
  SmallVector<WeakTrackingVH> dead;
  for (ShuffleVectorInst *shuffle : shuffles)
    if (Value *simple = composed(shuffle)) {
      shuffle->replaceAllUsesWith(simple);
      dead.emplace_back(shuffle);
    }
  if (dead.empty())
    return PreservedAnalyses::all();
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
  return PreservedAnalyses::none();
}

} // namespace dither::target
