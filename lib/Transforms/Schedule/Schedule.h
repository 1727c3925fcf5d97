//===- Schedule.h - The loops of a program as data --------------*- C++ -*-===//
//
// Which loops go over the rows and columns of tiles, what is done in each of
// them and in which order, and what one leaves for those after it. CPU kernels
// in phases and blocks in fragments are planned in two ways, each of which
// gives a schedule; ScheduleBuilder builds both.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_SCHEDULE_SCHEDULE_H
#define DITHER_LIB_TRANSFORMS_SCHEDULE_SCHEDULE_H

#include "Analysis/DimClasses.h"
#include "Analysis/Sinks.h"
#include <vector>

namespace dither::transforms {

/// What a loop goes along. In a nest of squares these are the dimensions of its
/// sink.
enum class Axis { Rows, Cols };

/// How far a loop goes, in steps of its axis from where the loops around it
/// stand.
struct Bound {
  enum Kind {
    Constant, ///< `value`
    Stored,   ///< rows up to the last one that is stored
    Band,     ///< rows of the band up to that one, in whole blocks
    Inside,   ///< rows that Band found, columns that Measure found
    Redo,     ///< Inside, or 0 where the loop before has found a special value
    Width     ///< columns of the stretch
  };
  Kind kind;
  int64_t value = 0;

  Bound(int64_t value) : kind(Constant), value(value) {}
  Bound(Kind kind) : kind(kind) {}
};

/// One thing that a schedule does. Parts are of the rows and columns where the
/// loops around it stand.
struct Node {
  enum Kind {
    Loop,    ///< `body` for each `step` of [`from`, `to`) along `axis`
    Phase,   ///< `body`; what it keeps is there for what comes after it
    Band,    ///< begins a band of rows, or `step` of them: whether these lie
             ///< inside all tensors
    Stretch, ///< begins a stretch of columns: how many there are
    Measure, ///< how many columns, in steps of `step`, lie inside all tensors
    Whole,   ///< all of `tile`, computed once
    Take,    ///< a part of the tile of `sink`, and where it goes
    Keep,    ///< a part of `tile`, in the memory kept as `index`
    Piece,   ///< the rows of a block of `tile` where the loops stand, of the
             ///< pieces `index`
    Clear,   ///< a part of the total `index`, of which there is nothing yet
    Collect, ///< adds a part of `tile` to the total `index`
    Ask      ///< whether parts of what the phase computes are finite
  };
  Kind kind;
  Axis axis = Axis::Rows;
  Bound from = 0, to = 0;
  int64_t step = 1;
  mlir::Value tile;
  mlir::Operation *sink = nullptr;
  /// Of Keep, Piece, Clear, Collect, and of Phase: which of them.
  unsigned index = 0;
  /// Of Loop: what it computes stays in it; its accesses are inside all
  /// tensors; it finds out whether an Ask in it was answered no.
  bool barrier = false, inside = false, asks = false;
  std::vector<Node> body;

  static Node loop(Axis axis, Bound from, Bound to, int64_t step,
                   std::vector<Node> body);
  static Node phase(unsigned index, std::vector<Node> body);
  static Node band(int64_t rows);
  static Node stretch();
  static Node measure(int64_t step);
  static Node whole(mlir::Value tile);
  static Node take(const Sink &sink);
  static Node keep(unsigned index, mlir::Value tile);
  static Node piece(unsigned index, mlir::Value tile);
  static Node clear(unsigned index);
  static Node collect(unsigned index, mlir::Value tile);
  static Node ask();

  /// A loop that is a barrier, in which what is accessed is inside or not.
  Node &&alone(bool isInside) &&;
};

/// Nodes one after the other, before an operation.
struct Nest {
  mlir::Operation *before;
  mlir::Location loc;
  /// The classes of dimensions that rows and columns are; -1 for none.
  int row = -1, col = -1;
  /// The axes are the dimensions of the only sink instead.
  bool squares = false;
  std::vector<Node> body;

  Nest(mlir::Operation *before, mlir::Location loc)
      : before(before), loc(loc) {}
};

struct Schedule {
  /// Of all tiles.
  const DimClasses *classes;
  std::vector<Nest> nests;
};

/// For people and tests: a line for each node, the body of a loop below it.
void print(llvm::raw_ostream &os, const Schedule &schedule);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_SCHEDULE_SCHEDULE_H
