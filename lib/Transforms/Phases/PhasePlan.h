//===- PhasePlan.h - The loops of a CPU kernel ------------------*- C++ -*-===//
//
// A CPU kernel computes a tile in phases: what the rows have in common, values
// that several phases need, the scales of blocks, and last the elements. A
// phase is a loop over parts that suit it: 16 blocks at a time for scales, a
// line of memory for codes. What a phase gives to a later one goes through
// scratch memory, which the first cache holds.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_PHASEPLAN_H
#define DITHER_LIB_TRANSFORMS_PHASES_PHASEPLAN_H

#include "Analysis/DimClasses.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace dither::transforms {

class PhasePlan {
public:
  /// In the order in which they run.
  enum Kind { Rows, Values, RowBlocks, ColBlocks, Elements, Transposed };

  /// A value that one phase leaves for later ones.
  struct Cut {
    mlir::Value value;
    Kind kind;
    /// Elements of a band of the tile, rank 2.
    llvm::SmallVector<int64_t, 2> shape;
  };
  struct Phase {
    Kind kind;
    llvm::SmallVector<mlir::Operation *> sinks;
    llvm::SmallVector<unsigned> cuts;
    /// Rows and columns of a part: of those inside the tensors, and columns of
    /// those that may leave them.
    int64_t rows = 1, cols = 1, slowCols = 1;
  };

  /// Why a kernel has no plan, and what in it is the reason.
  struct Declined {
    mlir::Operation *op = nullptr;
    llvm::StringRef why;
  };
  /// The plan of a kernel that is one nest of loops over rows and columns;
  /// nothing for others, and then `declined`.
  static std::optional<PhasePlan> make(mlir::func::FuncOp kernel,
                                       Declined &declined);

  /// Steps of the row (column) class that one step of dimension d of `v` takes;
  /// 0 if it does not follow the class.
  int64_t rowUnit(mlir::Value v, unsigned d) const {
    return unit(v, d, rowClass);
  }
  int64_t colUnit(mlir::Value v, unsigned d) const {
    return unit(v, d, colClass);
  }
  /// Index of the cut of `v`, or -1.
  int64_t cutOf(mlir::Value v) const {
    auto it = cutIndex.find(v);
    return it == cutIndex.end() ? -1 : int64_t(it->second);
  }

  /// Among the phases that read the tensors themselves, the place of the one of
  /// this kind, and how many there are: what follows the values in scratch
  /// memory reads those.
  std::pair<int64_t, int64_t> reader(Kind kind) const;

  /// The phase whose maxima and factors show whether what they are of is
  /// finite: later phases then need not ask.
  std::optional<Kind> checkKind;
  llvm::SmallVector<quant::BlockReduceOp> checks;
  bool isChecked(mlir::Value v) const {
    return llvm::any_of(
        checks, [&](quant::BlockReduceOp op) { return op.getSource() == v; });
  }
  /// Whether a phase shows that maxima or factors are finite.
  bool asks(Kind kind) const {
    return checkKind && (kind == RowBlocks || kind == ColBlocks);
  }
  /// Encodings of checked values times the factors that follow from the amax of
  /// their own blocks, and whether these keep the products in range.
  llvm::DenseMap<mlir::Operation *, bool> products;

  llvm::SmallVector<mlir::Operation *> sinks;
  llvm::SmallVector<Cut> cuts;
  llvm::SmallVector<Phase> phases;
  /// Everything that the sinks are computed from.
  llvm::ArrayRef<mlir::Value> values() const { return classes->values(); }
  /// Extents of the tile, and rows and columns of the bands and stretches that
  /// go through all phases before the next one.
  int64_t rows = 1, cols = 1, bandRows = 1, bandCols = 1;

private:
  /// Says why there is no plan; false.
  bool decline(mlir::Operation *op, llvm::StringRef why) {
    declined = {op, why};
    return false;
  }
  int64_t unit(mlir::Value v, unsigned d, int cls) const {
    DimClasses::Member m = classes->member(v, d);
    return m.cls == cls && cls >= 0 ? m.unit : 0;
  }
  /// Row and column units of a value, 0 where it has no such dimension.
  std::pair<int64_t, int64_t> unitsOf(mlir::Value v) const;
  bool isTransposed(mlir::Value v) const;
  int64_t rowStretch() const;
  bool findClasses();
  bool isSupported();
  std::optional<Kind> kindOf(mlir::Value v) const;
  bool addCut(mlir::Value v, Kind kind);
  bool findCuts();
  bool orderPhases();
  void findChecks();
  void chooseExtents();
  bool endsAtMemref() const;

  Declined declined;
  std::optional<DimClasses> classes;
  int rowClass = -1, colClass = -1;
  llvm::DenseMap<mlir::Value, unsigned> cutIndex;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_PHASEPLAN_H
