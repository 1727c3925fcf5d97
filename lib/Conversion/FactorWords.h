//===- FactorWords.h - Words of two powers of two ---------------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_FACTORWORDS_H
#define DITHER_LIB_CONVERSION_FACTORWORDS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace dither::conversion {

/// Words of two bf16 that others are multiplied by: the upper halves of two
/// powers of two in f32. Each is made once.
class FactorWords {
public:
  /// Says, before words are made, that `operation` takes `factor` in both
  /// halves of one.
  void expect(mlir::Value factor, mlir::Operation *operation);
  /// The word of two factors of one block.
  mlir::Value word(mlir::OpBuilder &b, mlir::Value low, mlir::Value high);
  /// Erases shuffles of which nothing takes the number any more.
  ~FactorWords();

private:
  using Two = std::pair<mlir::Value, mlir::Value>;

  void bringTwo(mlir::OpBuilder &b, mlir::Value factor);
  mlir::Value ofNeighbours(mlir::OpBuilder &b, mlir::Value low,
                           mlir::Value high);

  llvm::SmallDenseMap<Two, mlir::Value> known;
  /// Words of a lane's value and its neighbour's, by the value and the bit in
  /// which the numbers of the two lanes differ.
  llvm::SmallDenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> neighbours;
  /// Words of two values of a lane.
  llvm::SmallDenseMap<Two, mlir::Value> together;
  /// Factors of other lanes, and where each is taken first.
  llvm::SmallMapVector<mlir::Value, mlir::Operation *, 8> expected;
};

/// Factors that one lane computed for others, of which two come in a word.
class FactorHalves {
public:
  struct Half {
    mlir::Value word;
    bool isUpper = false;
  };

  /// Of `factors`, which are powers of two, those that are worth it.
  FactorHalves(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> factors);
  /// Where a factor is; nothing if it comes alone.
  std::optional<Half> find(mlir::Value factor) const;
  /// Erases shuffles of which nothing takes the number any more.
  ~FactorHalves();

private:
  llvm::SmallMapVector<mlir::Value, Half, 16> halves;
};

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_FACTORWORDS_H
