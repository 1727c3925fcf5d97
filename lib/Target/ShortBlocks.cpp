//===- ShortBlocks.cpp - No block too long to compile ---------------------===//
//
// Tiles and loops are unrolled, so that a kernel may be one block of a hundred
// thousand instructions. LLVM selects and orders instructions block by block,
// and some of that takes the square of a block's length: each instruction is
// chosen among up to a thousand that could come next, and for each fused
// multiply-add the whole block is searched for a negated constant.
//
// A cut must last until then, while code generation merges what only a branch
// parts. An empty `asm` that may jump, but has nowhere to jump to, is kept and
// is no instruction.
//
//===----------------------------------------------------------------------===//

#include "ShortBlocks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Operations on registers of a block: more than those of the operators but
/// for columns in NVFP4, which run as fast in two parts.
constexpr uint64_t kMost = 1500;
/// Of a function that has more than any operator: how soon its code is there
/// matters more than how fast it is.
constexpr uint64_t kMostOfMany = 500, kMany = 8000;

/// About as many operations as code generation makes of `i`: one for each
/// register of its longest vector.
uint64_t operations(const Instruction &i, unsigned registerBits) {
  uint64_t bits = i.getType()->getPrimitiveSizeInBits();
  for (const Use &operand : i.operands())
    bits =
        std::max<uint64_t>(bits, operand->getType()->getPrimitiveSizeInBits());
  return std::max<uint64_t>(1, divideCeil(bits, registerBits));
}

uint64_t operations(const BasicBlock &block, unsigned registerBits) {
  uint64_t total = 0;
  for (const Instruction &i : block)
    total += operations(i, registerBits);
  return total;
}

/// Where to cut a block of `total` operations into parts of one length, which
/// is at most `most`.
void findCuts(BasicBlock &block, uint64_t total, unsigned registerBits,
              uint64_t most, SmallVectorImpl<Instruction *> &cuts) {
  uint64_t each = divideCeil(total, divideCeil(total, most));
  uint64_t count = 0;
  for (Instruction &i : block) {
    uint64_t more = operations(i, registerBits);
    if (count + more > each && !isa<PHINode>(i) && !i.isTerminator()) {
      cuts.push_back(&i);
      count = 0;
    }
    count += more;
  }
}

/// Parts the block before `at`.
void cut(Instruction *at) {
  BasicBlock *block = at->getParent();
  BasicBlock *rest = block->splitBasicBlock(at);
  block->getTerminator()->eraseFromParent();
  IRBuilder<> b(block);
  auto *signature = FunctionType::get(b.getVoidTy(), /*isVarArg=*/false);
  b.CreateCallBr(InlineAsm::get(signature, "", "", /*hasSideEffects=*/true),
                 rest, /*IndirectDests=*/{}, /*Args=*/{});
}

} // namespace

PreservedAnalyses ShortBlocksPass::run(Function &f,
                                       FunctionAnalysisManager &analyses) {
  const auto &target = analyses.getResult<TargetIRAnalysis>(f);
  unsigned registerBits =
      target.getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector)
          .getFixedValue();
  SmallVector<uint64_t> sizes;
  for (const BasicBlock &block : f)
    sizes.push_back(operations(block, registerBits));
  uint64_t most = sum_of(sizes, uint64_t(0)) > kMany ? kMostOfMany : kMost;
  SmallVector<Instruction *> cuts;
  for (auto [block, size] : zip_equal(f, sizes))
    findCuts(block, size, registerBits, most, cuts);
  // From the end, so that each cut moves no more than what follows it.
  for (Instruction *at : llvm::reverse(cuts))
    cut(at);
  return cuts.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

} // namespace dither::target
