//===- Halves.h - Pairs of 16-bit floats, unpacked again --------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_HALVES_H
#define DITHER_LIB_TARGET_HALVES_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"

namespace dither::target {

/// What is unpacked from words of two bf16: the f32 of a half has the bits of
/// the half above zeros. Neither LLVM nor ptxas does work twice that was done
/// before, unless they do not see that it is the same. So a half that is taken
/// again is taken by another instruction: by a permutation of bytes where a
/// shift or a mask was the first, then by a shift of two registers or a choice
/// of bits.
class Halves {
public:
  /// The word that `v` is made of, where it is made of one alone and can be
  /// made again; null otherwise.
  llvm::Value *wordOf(llvm::Value *v, unsigned depth = 0) const;
  /// `v` made of its word again. `made` has what was made at this place before.
  llvm::Value *again(llvm::Value *v, llvm::IRBuilder<> &b,
                     llvm::DenseMap<llvm::Value *, llvm::Value *> &made);

private:
  struct Half {
    llvm::Value *word = nullptr;
    bool isUpper = false;
    /// How often the word was unpacked before.
    unsigned time = 0;
  };
  Half halfOf(llvm::Instruction &i) const;

  llvm::DenseMap<llvm::Value *, Half> taken;
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_HALVES_H
