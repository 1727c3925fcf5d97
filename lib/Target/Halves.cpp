//===- Halves.cpp - Pairs of 16-bit floats, unpacked again ----------------===//

#include "Halves.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

#include <iterator>

using namespace llvm;

namespace dither::target {

/// Each way after the first, for lower and upper halves.
static const char *const kWays[][2] = {
    {"prmt.b32 $0, $1, 0, 0x1044;", "prmt.b32 $0, $1, 0, 0x3244;"},
    {"shf.l.wrap.b32 $0, 0, $1, 16;", "lop3.b32 $0, $1, -65536, 0, 0xC0;"}};

/// Operations between a half and what is made of it, at most: as a number, and
/// in a pair.
static constexpr unsigned kDepth = 6;

Halves::Half Halves::halfOf(Instruction &i) const {
  if (auto it = taken.find(&i); it != taken.end())
    return it->second;
  bool isUpper = i.getOpcode() == Instruction::And;
  if (!i.getType()->isIntegerTy(32) ||
      (!isUpper && i.getOpcode() != Instruction::Shl) ||
      isa<Constant>(i.getOperand(0)))
    return {};
  auto *by = dyn_cast<ConstantInt>(i.getOperand(1));
  if (!by || by->getSExtValue() != (isUpper ? -65536 : 16))
    return {};
  return {i.getOperand(0), isUpper, 0};
}

Value *Halves::wordOf(Value *v, unsigned depth) const {
  auto *i = dyn_cast<Instruction>(v);
  if (!i || depth > kDepth)
    return nullptr;
  if (Half half = halfOf(*i); half.word)
    return half.time < std::size(kWays) ? half.word : nullptr;
  if (!isa<BitCastInst, InsertElementInst, ExtractElementInst>(i))
    return nullptr;
  Value *word = nullptr;
  for (Value *operand : i->operands()) {
    if (isa<Constant>(operand))
      continue;
    Value *found = wordOf(operand, depth + 1);
    if (!found || (word && found != word))
      return nullptr;
    word = found;
  }
  return word;
}

Value *Halves::again(Value *v, IRBuilder<> &b,
                     DenseMap<Value *, Value *> &made) {
  if (isa<Constant>(v))
    return v;
  if (Value *known = made.lookup(v))
    return known;
  auto *i = cast<Instruction>(v);
  Value *result;
  if (Half half = halfOf(*i); half.word) {
    auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()},
                                   /*isVarArg=*/false);
    auto *way = InlineAsm::get(type, kWays[half.time][half.isUpper], "=r,r",
                               /*hasSideEffects=*/false);
    result = b.CreateCall(way, {half.word});
    taken[result] = {half.word, half.isUpper, half.time + 1};
  } else {
    Instruction *copy = i->clone();
    for (Use &operand : copy->operands())
      operand.set(again(operand, b, made));
    result = b.Insert(copy);
  }
  made[v] = result;
  return result;
}

} // namespace dither::target
