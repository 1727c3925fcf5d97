//===- MaskedAccesses.cpp - Masked stores of CPU code ---------------------===//
//
// LLVM 22 turns the masked store of a truncated vector into a wider scalar
// store where it sees that the mask is one constant lane: docs/llvm-bugs.md.
// Masks that are constant in the IR go, as plain stores are what one would
// have written. Code generation may still find other masks to be constant, so
// it gets no truncation to merge with what is left. Loads and wide elements are
// right as they are, and stay.
//
//===----------------------------------------------------------------------===//

#include "MaskedAccesses.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

#include <numeric>
#include <optional>

using namespace llvm;

namespace dither::target {

namespace {

/// Narrowest vector register.
constexpr unsigned kLeastVectorBits = 128;

/// Lanes [begin, begin + size) of an access.
struct Piece {
  unsigned begin, size;
};

/// The lanes of a constant mask as pieces of a power of two; nothing for other
/// masks.
std::optional<SmallVector<Piece>> constantPieces(Value *mask, unsigned lanes) {
  auto *constant = dyn_cast<Constant>(mask);
  if (!constant)
    return std::nullopt;
  SmallVector<bool> set;
  for (unsigned i = 0; i < lanes; ++i) {
    Constant *lane = constant->getAggregateElement(i);
    // A lane that is undefined may as well be clear.
    if (!isa_and_nonnull<ConstantInt, UndefValue>(lane))
      return std::nullopt;
    set.push_back(lane->isOneValue());
  }
  SmallVector<Piece> pieces;
  for (unsigned i = 0; i < lanes;) {
    unsigned end = i;
    while (end < lanes && set[end])
      ++end;
    while (i < end) {
      pieces.push_back({i, bit_floor(end - i)});
      i += pieces.back().size;
    }
    if (i < lanes)
      ++i;
  }
  return pieces;
}

/// The masked store of a vector, piece by piece.
class PlainStore {
public:
  PlainStore(IntrinsicInst &access, FixedVectorType *type, Value *pointer,
             Align align)
      : b(&access), elem(type->getElementType()), lanes(type->getNumElements()),
        pointer(pointer), align(align),
        bytes(access.getDataLayout().getTypeStoreSize(elem)) {}

  void store(ArrayRef<Piece> pieces, Value *value) {
    for (Piece p : pieces) {
      Value *v = value;
      if (p.size == 1) {
        v = b.CreateExtractElement(value, p.begin);
      } else if (p.size < lanes) {
        SmallVector<int> pick(p.size);
        std::iota(pick.begin(), pick.end(), p.begin);
        v = b.CreateShuffleVector(value, pick);
      }
      b.CreateAlignedStore(v, address(p), alignment(p));
    }
  }

private:
  Type *typeOf(Piece p) const {
    return p.size == 1 ? elem : FixedVectorType::get(elem, p.size);
  }
  Value *address(Piece p) {
    return p.begin
               ? b.CreateConstGEP1_64(b.getInt8Ty(), pointer, p.begin * bytes)
               : pointer;
  }
  Align alignment(Piece p) const {
    return commonAlignment(align, p.begin * bytes);
  }

  IRBuilder<> b;
  Type *elem;
  unsigned lanes;
  Value *pointer;
  Align align;
  uint64_t bytes;
};

/// `vector` as code generation cannot look into it: the result of an
/// instruction that it does not know. There is none in the code.
Value *opaque(IRBuilder<> &b, Value *vector) {
  auto *type = cast<FixedVectorType>(vector->getType());
  unsigned lanes = type->getNumElements();
  unsigned bits = type->getPrimitiveSizeInBits();
  unsigned wide =
      std::max(lanes, kLeastVectorBits / type->getScalarSizeInBits());
  SmallVector<int> identity(wide, PoisonMaskElem);
  std::iota(identity.begin(), identity.begin() + lanes, 0);
  Value *v = vector;
  if (bits < kLeastVectorBits)
    v = b.CreateShuffleVector(v, identity);
  auto *signature = FunctionType::get(v->getType(), {v->getType()}, false);
  v = b.CreateCall(
      InlineAsm::get(signature, "", "=v,0", /*hasSideEffects=*/false), {v});
  if (bits < kLeastVectorBits)
    v = b.CreateShuffleVector(v, ArrayRef(identity).take_front(lanes));
  return v;
}

/// Whether code generation may take a stored vector for a truncation. Only
/// AVX-512 has masked stores that truncate; it is the one with masked stores of
/// bytes.
bool mayTruncate(FixedVectorType *type, const TargetTransformInfo &target) {
  auto *bytes = FixedVectorType::get(Type::getInt8Ty(type->getContext()), 16);
  return type->getElementType()->isIntegerTy() &&
         type->getScalarSizeInBits() < 64 &&
         target.isLegalMaskedStore(bytes, Align(1), 0);
}

void rewriteStore(IntrinsicInst &store, const TargetTransformInfo &target) {
  Value *value = store.getArgOperand(0), *mask = store.getArgOperand(2);
  auto *type = dyn_cast<FixedVectorType>(value->getType());
  // Other stores are right as they are, and LLVM cannot select every shuffle
  // that the pieces of wide elements would take.
  if (!type || !mayTruncate(type, target))
    return;
  Align align = store.getParamAlign(1).valueOrOne();
  if (auto pieces = constantPieces(mask, type->getNumElements())) {
    PlainStore(store, type, store.getArgOperand(1), align)
        .store(*pieces, value);
    store.eraseFromParent();
    return;
  }
  // What the CPU lacks becomes branches and scalar stores before code
  // generation could merge anything.
  if (target.isLegalMaskedStore(type, align, 0)) {
    IRBuilder<> b(&store);
    store.setArgOperand(0, opaque(b, value));
  }
}

} // namespace

PreservedAnalyses MaskedAccessesPass::run(Function &f,
                                          FunctionAnalysisManager &analyses) {
  SmallVector<IntrinsicInst *> stores;
  for (Instruction &i : instructions(f)) {
    auto *call = dyn_cast<IntrinsicInst>(&i);
    if (call && call->getIntrinsicID() == Intrinsic::masked_store)
      stores.push_back(call);
  }
  const auto &target = analyses.getResult<TargetIRAnalysis>(f);
  for (IntrinsicInst *store : stores)
    rewriteStore(*store, target);
  return stores.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

} // namespace dither::target
