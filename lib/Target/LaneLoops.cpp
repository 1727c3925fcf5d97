//===- LaneLoops.cpp - Masked accesses that a CPU lacks -------------------===//
//
// No x86 before AVX-512 has masked loads and stores of bytes and of 16 bits.
// LLVM makes a branch and a scalar access of each lane: two blocks for each
// element of a tile, which take seconds to compile. Here, the lanes go through
// a buffer in the frame, so that an access is a few blocks however many lanes
// it has, and none where those are one or two. Masks are mostly those of a
// tile's edge: nearly all of them are all set or all clear.
//
//===----------------------------------------------------------------------===//

#include "LaneLoops.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Lanes that are not worth a loop: each has an access of its own, to the
/// buffer where it is not set.
constexpr unsigned kFewLanes = 2;
/// As many as a register of the loop has bits.
constexpr unsigned kMostLanes = 64;
/// What the stack has anyway.
constexpr Align kBufferAlign = Align::Constant<16>();

/// A masked load or store.
struct MaskedAccess {
  IntrinsicInst *call;
  bool isLoad;

  Value *pointer() const { return call->getArgOperand(isLoad ? 0 : 1); }
  Value *mask() const { return call->getArgOperand(isLoad ? 1 : 2); }
  /// What is stored, or the result's other lanes.
  Value *vector() const { return call->getArgOperand(isLoad ? 2 : 0); }
  Align align() const {
    return call->getParamAlign(isLoad ? 0 : 1).valueOrOne();
  }
  FixedVectorType *type() const {
    return dyn_cast<FixedVectorType>(vector()->getType());
  }
};

bool isLacking(const MaskedAccess &a, const TargetTransformInfo &target) {
  FixedVectorType *type = a.type();
  if (!type || isa<Constant>(a.mask()) || type->getNumElements() > kMostLanes)
    return false;
  return !(a.isLoad ? target.isLegalMaskedLoad(type, a.align(), 0)
                    : target.isLegalMaskedStore(type, a.align(), 0));
}

/// Rewrites the accesses of a function.
class LaneLoops {
public:
  explicit LaneLoops(Function &f) : f(f), layout(f.getDataLayout()) {}

  void rewrite(const MaskedAccess &a) {
    if (a.type()->getNumElements() <= kFewLanes)
      accessEach(a);
    else
      accessWholeOrLoop(a);
  }

private:
  void accessEach(const MaskedAccess &a);
  void accessWholeOrLoop(const MaskedAccess &a);
  Value *lanesOf(Value *mask);
  AllocaInst *bufferFor(Type *vector);
  void copyLanes(IRBuilder<> &b, Value *lanes, Type *element, Value *from,
                 Value *to, BasicBlock *done);

  Function &f;
  const DataLayout &layout;
  DenseMap<Value *, Value *> lanesOfMask;
  AllocaInst *buffer = nullptr;
};

/// The lanes of a mask as bits of an integer, once for all accesses: where the
/// mask is computed, which is cheaper than to carry it to other blocks.
Value *LaneLoops::lanesOf(Value *mask) {
  Value *&lanes = lanesOfMask[mask];
  if (lanes)
    return lanes;
  IRBuilder<> b(f.getContext());
  if (auto *i = dyn_cast<Instruction>(mask))
    b.SetInsertPoint(*i->getInsertionPointAfterDef());
  else
    b.SetInsertPointPastAllocas(&f);
  unsigned count = cast<FixedVectorType>(mask->getType())->getNumElements();
  lanes = b.CreateBitCast(mask, b.getIntNTy(count));
  lanes = b.CreateZExt(lanes, b.getIntNTy(count > 32 ? 64 : 32));
  return lanes;
}

/// Room for a vector, which all accesses share.
AllocaInst *LaneLoops::bufferFor(Type *vector) {
  uint64_t bytes = layout.getTypeStoreSize(vector);
  if (!buffer) {
    BasicBlock &entry = f.getEntryBlock();
    IRBuilder<> b(&entry, entry.begin());
    buffer = b.CreateAlloca(ArrayType::get(b.getInt8Ty(), bytes));
    buffer->setAlignment(kBufferAlign);
  } else if (layout.getTypeStoreSize(buffer->getAllocatedType()) < bytes) {
    buffer->setAllocatedType(
        ArrayType::get(Type::getInt8Ty(f.getContext()), bytes));
  }
  return buffer;
}

/// Ends the block of `b` with a loop over the lanes that are set, which goes on
/// at `done`. There may be none.
void LaneLoops::copyLanes(IRBuilder<> &b, Value *lanes, Type *element,
                          Value *from, Value *to, BasicBlock *done) {
  BasicBlock *before = b.GetInsertBlock();
  auto *loop = BasicBlock::Create(f.getContext(), "", &f, done);
  Value *none = ConstantInt::get(lanes->getType(), 0);
  b.CreateCondBr(b.CreateICmpEQ(lanes, none), done, loop);
  b.SetInsertPoint(loop);
  PHINode *left = b.CreatePHI(lanes->getType(), 2);
  Value *lane =
      b.CreateZExt(b.CreateBinaryIntrinsic(Intrinsic::cttz, left, b.getTrue()),
                   b.getInt64Ty());
  Value *value =
      b.CreateAlignedLoad(element, b.CreateGEP(element, from, lane), Align());
  b.CreateAlignedStore(value, b.CreateGEP(element, to, lane), Align());
  Value *next = b.CreateAnd(
      left, b.CreateAdd(left, ConstantInt::getSigned(left->getType(), -1)));
  left->addIncoming(lanes, before);
  left->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpEQ(next, none), done, loop);
}

void LaneLoops::accessEach(const MaskedAccess &a) {
  Type *element = a.type()->getElementType();
  Value *vector = a.vector(), *lanes = lanesOf(a.mask());
  AllocaInst *room = bufferFor(a.type());
  IRBuilder<> b(a.call);
  for (unsigned i = 0; i < a.type()->getNumElements(); ++i) {
    Value *isSet = b.CreateTrunc(b.CreateLShr(lanes, i), b.getInt1Ty());
    Value *at = b.CreateSelect(
        isSet, b.CreateConstGEP1_64(element, a.pointer(), i), room);
    Value *lane = b.CreateExtractElement(vector, i);
    if (!a.isLoad) {
      b.CreateAlignedStore(lane, at, Align());
      continue;
    }
    b.CreateAlignedStore(lane, room, Align());
    vector = b.CreateInsertElement(
        vector, b.CreateAlignedLoad(element, at, Align()), i);
  }
  if (a.isLoad)
    a.call->replaceAllUsesWith(vector);
  a.call->eraseFromParent();
}

void LaneLoops::accessWholeOrLoop(const MaskedAccess &a) {
  FixedVectorType *type = a.type();
  Value *pointer = a.pointer(), *vector = a.vector();
  Value *lanes = lanesOf(a.mask());
  AllocaInst *room = bufferFor(type);
  BasicBlock *head = a.call->getParent();
  BasicBlock *join = head->splitBasicBlock(a.call);
  head->getTerminator()->eraseFromParent();
  auto block = [&] { return BasicBlock::Create(f.getContext(), "", &f, join); };
  BasicBlock *whole = block(), *part = block();

  IRBuilder<> b(head);
  Value *all = ConstantInt::get(
      lanes->getType(), maskTrailingOnes<uint64_t>(type->getNumElements()));
  b.CreateCondBr(b.CreateICmpEQ(lanes, all), whole, part);
  b.SetInsertPoint(whole);
  Value *loaded = nullptr;
  if (a.isLoad)
    loaded = b.CreateAlignedLoad(type, pointer, a.align());
  else
    b.CreateAlignedStore(vector, pointer, a.align());
  b.CreateBr(join);

  b.SetInsertPoint(part);
  b.CreateAlignedStore(vector, room, kBufferAlign);
  if (!a.isLoad) {
    copyLanes(b, lanes, type->getElementType(), room, pointer, join);
  } else {
    BasicBlock *done = block();
    copyLanes(b, lanes, type->getElementType(), pointer, room, done);
    b.SetInsertPoint(done);
    Value *copied = b.CreateAlignedLoad(type, room, kBufferAlign);
    b.CreateBr(join);
    b.SetInsertPoint(join, join->begin());
    PHINode *result = b.CreatePHI(type, 2);
    result->addIncoming(loaded, whole);
    result->addIncoming(copied, done);
    a.call->replaceAllUsesWith(result);
  }
  a.call->eraseFromParent();
}

} // namespace

PreservedAnalyses LaneLoopsPass::run(Function &f,
                                     FunctionAnalysisManager &analyses) {
  const auto &target = analyses.getResult<TargetIRAnalysis>(f);
  SmallVector<MaskedAccess> accesses;
  for (Instruction &i : instructions(f))
    if (auto *call = dyn_cast<IntrinsicInst>(&i)) {
      Intrinsic::ID id = call->getIntrinsicID();
      if (id != Intrinsic::masked_load && id != Intrinsic::masked_store)
        continue;
      MaskedAccess a{call, id == Intrinsic::masked_load};
      if (isLacking(a, target))
        accesses.push_back(a);
    }
  LaneLoops loops(f);
  for (const MaskedAccess &a : accesses)
    loops.rewrite(a);
  return accesses.empty() ? PreservedAnalyses::all()
                          : PreservedAnalyses::none();
}

} // namespace dither::target
