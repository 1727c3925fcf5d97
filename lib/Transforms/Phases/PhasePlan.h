//===- PhasePlan.h - The loops of a CPU kernel ------------------*- C++ -*-===//
//
// A CPU kernel computes a tile in phases: what the rows have in common, values
// that several phases need, the scales of blocks, and last the elements. A
// phase is a loop over parts that suit it: 16 blocks at a time for scales, a
// line of memory for codes. What a phase gives to a later one goes through
// scratch memory, which the first cache holds. So do the maxima and sums of
// columns, which a phase collects row by row; what depends on them follows all
// phases.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_PHASES_PHASEPLAN_H
#define DITHER_LIB_TRANSFORMS_PHASES_PHASEPLAN_H

#include "Analysis/DimClasses.h"
#include "Analysis/Sinks.h"
#include "Schedule/Schedule.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace dither::transforms {

/// These tiles, and those that take part in computing them.
llvm::SetVector<mlir::Value> coneOf(llvm::ArrayRef<mlir::Value> roots);
/// Whether a value costs no more than a load to compute again.
bool isCheap(mlir::Value v);
/// Whether `source` takes part in computing `v`.
bool isMadeFrom(mlir::Value v, mlir::Value source);

class PhasePlan {
public:
  /// Rows of a part that is turned to columns, at most, rows that are turned
  /// at once, and bits of a line.
  static constexpr int64_t kTurnedRows = 32, kTurnedAtOnce = 8, kLineBits = 512;
  /// Columns that scratch memory has past the end of a band: of parts that
  /// reach past it.
  static constexpr int64_t kRoom = 64;
  /// Elements of a square block that are added up at once, at most.
  static constexpr int64_t kMostSummed = 1024;
  /// Rows of blocks along columns whose amax is found at once, and of the least
  /// block that has pieces: of shorter ones there is nothing to gain.
  static constexpr int64_t kPieceRows = 8, kLeastOfPieces = 32;
  /// Bytes of a row that are kept from end to end, at most: the second cache
  /// has room for them.
  static constexpr int64_t kWholeRowBytes = 65536;

  /// In the order in which they run.
  enum Kind {
    Rows,
    RandomBlocks, ///< blocks along rows that are made of no elements
    WholeRows,    ///< values from end to end that more of each row is made of
    RowsAfter,    ///< what is made of those
    Sources,      ///< what is transformed, if it takes more than a load
    Transforms,   ///< of runs of elements
    Values,
    RowBlocks,
    ColBlocks,
    SquareBlocks, ///< of several rows and several columns
    Elements,
    Turned, ///< elements that are kept until lines of Transposed are full
    Transposed
  };

  /// A value that one phase leaves for later ones.
  struct Cut {
    mlir::Value value;
    Kind kind;
    /// Elements of a band of the tile, rank 2.
    llvm::SmallVector<int64_t, 2> shape;
  };
  /// The largest (or smallest) values over all rows, or their sums, collected
  /// in a phase.
  struct Total {
    /// The reduction over rows, which `result` is the value of.
    quant::ReduceOp reduce;
    /// What it is of: elements, or a value for each row.
    mlir::Value source;
    Kind kind;
    /// `source` has columns, which are reduced, too.
    bool alongColumns;
    /// Columns of what is collected: those of the tile, or of a part where
    /// all of them are reduced.
    int64_t columns = 1;

    mlir::Value result() const { return quant::ReduceOp(reduce).getResult(); }
  };
  struct Phase {
    Kind kind;
    /// Rows of square blocks, which are those of a part; 0 for other kinds.
    int64_t height = 0;
    llvm::SmallVector<Sink> sinks;
    llvm::SmallVector<unsigned> cuts, totals;
    /// Rows and columns of a part: of those inside the tensors, and columns of
    /// those that may leave them.
    int64_t rows = 1, cols = 1, slowCols = 1;
    /// Rows of a part that are computed together; 0 for all of them.
    int64_t rowsAtOnce = 0;
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

  /// The loops before the terminator of `kernel`, whose plan this is: bands of
  /// rows, in them stretches of columns, and in those the phases one after the
  /// other. `Node::index` counts phases, cuts and totals.
  Schedule schedule(mlir::func::FuncOp kernel) const;

  /// Steps of the row (column) class that one step of dimension d of `v` takes;
  /// 0 if it does not follow the class.
  int64_t rowUnit(mlir::Value v, unsigned d) const {
    return unit(v, d, rowClass);
  }
  int64_t colUnit(mlir::Value v, unsigned d) const {
    return unit(v, d, colClass);
  }
  /// Whether `v` depends on a total: there is no part of it in a phase.
  bool isLate(mlir::Value v) const { return late.contains(v); }
  /// The phase that computes a value with the dimensions of `v`.
  std::optional<Kind> kindOf(mlir::Value v) const;
  /// Whether `kind` has one value for each row.
  static bool isOfRows(Kind kind) { return kind == Rows || kind == RowsAfter; }
  /// Whether a phase takes rows from end to end, and not in stretches.
  bool takesWholeRows(Kind kind) const {
    return isOfRows(kind) || kind == WholeRows ||
           (kind == RandomBlocks && keepsWholeRows);
  }
  /// Whether `kind` keeps elements, in rows and columns.
  static bool keepsElements(Kind kind) {
    return kind == WholeRows || kind == Sources || kind == Transforms ||
           kind == Values;
  }
  /// What a phase computes: what it keeps, collects and stores, and what that
  /// is made of, up to what phases before it have kept.
  llvm::SetVector<mlir::Value> computedBy(const Phase &phase) const;
  /// Whether `phase` computes `v`, which no phase before it keeps.
  bool isOf(const Phase &phase, mlir::Value v) const {
    return kindOf(v) == phase.kind &&
           (!phase.height || unitsOf(v).first == phase.height);
  }
  /// Index of the cut of `v`, or -1.
  int64_t cutOf(mlir::Value v) const {
    auto it = cutIndex.find(v);
    return it == cutIndex.end() ? -1 : int64_t(it->second);
  }

  /// The last phase that reads what `load` gives, and not what other phases
  /// have kept of it.
  Kind lastReader(mlir::Value load) const { return lastReaders.lookup(load); }
  /// Which quarters of the columns of a part of elements a phase fetches ahead
  /// of what `load` gives: from `begin` on, before `end`.
  struct Quarters {
    int64_t begin = 0, end = 0;
  };
  Quarters fetchedBy(Kind kind, mlir::Value load) const;
  /// Whether elements are computed after the last reader, of what was kept.
  bool storesWhatIsKept(mlir::Value load) const;
  /// The phase of a kind, the first if there are several; null for none.
  const Phase *findPhase(Kind kind) const {
    auto it =
        llvm::find_if(phases, [&](const Phase &p) { return p.kind == kind; });
    return it == phases.end() ? nullptr : it;
  }
  /// Columns of a part of elements, where a phase computes any.
  int64_t elementCols() const { return findPhase(Elements)->cols; }
  /// Bytes that are loaded for each element of the tile.
  int64_t loadedBytes() const;
  /// Whether rows are read as a whole before all else.
  bool readsWholeRows() const {
    return keepsWholeRows || phases.front().kind == Rows;
  }
  /// Whether all of a band is read before its last phase ends a stretch.
  bool readsWholeBands() const { return readsWholeRows() || cols <= bandCols; }

  /// Index of the piece of an amax, or -1.
  int64_t pieceOf(quant::BlockReduceOp amax) const;

  /// The phase whose maxima and factors show whether what they are of is
  /// finite: later phases then need not ask.
  std::optional<Kind> checkKind;
  llvm::SmallVector<quant::BlockReduceOp> checks;
  bool isChecked(mlir::Value v) const;
  /// Whether a phase shows that maxima or factors are finite.
  bool asks(Kind kind) const { return checkKind && isBlocks(kind); }
  /// An encoding of checked values times the factors that follow from the amax
  /// of their own blocks.
  struct Product {
    /// Whether the factors are the powers of two that take each amax to the
    /// largest code.
    bool bounded = false;
    /// The amax, where such products are computed in f16.
    quant::BlockReduceOp amax;
  };
  llvm::DenseMap<mlir::Operation *, Product> products;
  /// The factors of these, one for each block: they must be finite, too.
  llvm::SetVector<mlir::Value> factors;
  /// Those of products in f16, which take them as bf16 and lose nothing by it.
  llvm::SetVector<mlir::Value> halfFactors;
  /// Each amax of products in f16: it must be zero, or such that the factor is
  /// not too large.
  llvm::SetVector<mlir::Value> maxima;

  /// Those of phases, and those that follow them.
  llvm::SmallVector<Sink> sinks, lateSinks;
  llvm::SmallVector<Cut> cuts;
  llvm::SmallVector<Total> totals;
  llvm::SmallVector<Phase> phases;
  /// Maxima of blocks along columns that are found `kPieceRows` rows at a time,
  /// by the phase of blocks along rows, right after those: the first cache
  /// still has these rows, and has lost them when all rows of a block were
  /// read.
  llvm::SmallVector<quant::BlockReduceOp> pieces;
  /// Everything that the sinks are computed from.
  llvm::ArrayRef<mlir::Value> values() const { return classes->values(); }
  /// Extents of the tile, and rows and columns of the bands and stretches that
  /// go through all phases before the next one. Of a band that ends past what
  /// is stored some rows are computed, a multiple of `blockRows`, and of a
  /// stretch columns, a multiple of `blockCols`.
  int64_t rows = 1, cols = 1, bandRows = 1, bandCols = 1, blockRows = 1,
          blockCols = 1;

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
  static bool isBlocks(std::optional<Kind> kind) {
    return kind && *kind >= RowBlocks && *kind <= SquareBlocks;
  }
  bool isTransposed(mlir::Value v) const;
  int64_t lineRows(const Sink &sink) const;
  bool staysInBlocks(mlir::Value v) const;
  bool sumsSquares() const;
  bool repeatsSquares(mlir::Value v) const;
  std::optional<Kind> phaseOf(const Sink &sink) const;
  mlir::Value squareOf(mlir::Value v) const;
  mlir::Value keptTransform(quant::HadamardOp op) const;
  mlir::Value transformSource(quant::HadamardOp op) const;
  mlir::Value longBeforeCodes(const Sink &sink) const;
  void keepLong(mlir::Value v);
  bool servesRows(mlir::Value v) const;
  bool isOfNoElements(mlir::Value v) const;
  /// Columns of a row that go through all phases together, at most.
  int64_t rowStretch() const;
  /// Bytes of values that phases keep for each element of the tile.
  int64_t keptBytes() const;
  std::pair<int64_t, int64_t> partOfBlocks(int64_t colBlock) const;
  int64_t turnedAtOnce(const Phase &phase) const;
  std::vector<Node> uniformValues() const;
  std::vector<Node> steps(const Phase &phase) const;
  Node loops(const Phase &phase) const;
  bool staysInScratch(const Phase &phase) const;
  bool findTotals(llvm::ArrayRef<Sink> all);
  bool findClasses();
  bool isSupported();
  mlir::Value narrowed(mlir::Value v) const;
  bool addCut(mlir::Value v, Kind kind);
  bool findCuts();
  bool orderPhases();
  void findReaders();
  void findChecks(mlir::func::FuncOp kernel);
  void findPieces();
  std::vector<Node> piecesOfRows() const;
  void chooseExtents();

  Declined declined;
  /// Whether there is a phase of WholeRows.
  bool keepsWholeRows = false;
  std::optional<DimClasses> classes;
  int rowClass = -1, colClass = -1;
  /// Rows and columns of the longest runs that are transformed.
  int64_t rowRun = 1, colRun = 1;
  llvm::DenseMap<mlir::Value, unsigned> cutIndex;
  llvm::DenseMap<mlir::Value, Kind> lastReaders;
  /// Loads that scales of blocks along rows are made from.
  llvm::DenseSet<mlir::Value> readForBlocks;
  llvm::DenseSet<mlir::Value> late;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_PHASES_PHASEPLAN_H
