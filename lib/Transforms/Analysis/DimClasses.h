//===- DimClasses.h - Which dimensions of values go together ----*- C++ -*-===//
//
// Dimensions of tile values that follow each other from producer to consumer
// form a class: splitting one of them splits them all. A kernel that works on
// rows and columns has two classes, however its values are transposed, blocked
// or broadcast.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_ANALYSIS_DIMCLASSES_H
#define DITHER_LIB_TRANSFORMS_ANALYSIS_DIMCLASSES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace dither::transforms {

class DimClasses {
public:
  struct Member {
    int cls;
    /// Steps of the class that one step of this dimension takes: 1 for the
    /// elements of a tile, the length of a block for its scales.
    int64_t unit;
  };
  struct Class {
    /// Extent in steps; kDynamic if it is not static.
    int64_t extent = 1;
    /// Parts must start and end at multiples of this.
    int64_t granule = 1;
    /// Not even parts of a block are smaller than this: two where a byte holds
    /// two neighbours.
    int64_t atom = 1;
    /// The class runs along the columns of the largest tiles.
    bool isColumn = true;
    /// Two dimensions of one value belong to the class, or blocks of different
    /// lengths do not divide each other: it must not be split.
    bool rigid = false;
    /// It is rigid for the first reason.
    bool isSquare = false;
    /// Each part of its values is made where it is used, out of nothing:
    /// constants are split in any way.
    bool isRebuilt = true;
  };

  /// Classes of `roots` and of everything they are computed from.
  explicit DimClasses(llvm::ArrayRef<mlir::Value> roots);

  Member member(mlir::Value v, unsigned dim) const;
  const Class &operator[](int cls) const { return classes[cls]; }
  size_t size() const { return classes.size(); }
  llvm::ArrayRef<mlir::Value> values() const { return cone.getArrayRef(); }

private:
  llvm::SetVector<mlir::Value> cone;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, Member> members;
  llvm::SmallVector<Class> classes;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_ANALYSIS_DIMCLASSES_H
