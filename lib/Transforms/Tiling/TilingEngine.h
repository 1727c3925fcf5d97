//===- TilingEngine.h - Parts of tile values on demand ----------*- C++ -*-===//
//
// Rebuilds a tile program around loops: each consumer asks for the part of a
// value that it needs, and the producers follow through their TilingInterface.
// A part is built once for each set of loop variables that it depends on, in
// the outermost loop that defines them, so that all consumers share it.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_TILING_TILINGENGINE_H
#define DITHER_LIB_TRANSFORMS_TILING_TILINGENGINE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include <functional>
#include <map>
#include <optional>

namespace dither::transforms {

/// Rows of a tile that a CPU works on at once: each row is an access of its
/// own, however short it is.
constexpr int64_t kHostRows = 32;

/// An index as a sum of values, each divided by an integer, rounded down, and
/// multiplied by one; plus a constant. A sum is divided term by term: all but
/// one of its terms are multiples of the divisor, as where a block begins and
/// how far inside it a part does.
struct LinearIndex {
  /// num * floor(value / div).
  struct Term {
    mlir::Value value;
    int64_t num, div;
  };
  llvm::SmallVector<Term> terms;
  int64_t constant = 0;

  void add(Term term);
  static LinearIndex get(mlir::OpFoldResult v);
  /// Total order on forms, as a sequence to be compared lexicographically.
  void appendKey(std::vector<int64_t> &key) const;
};

class TilingEngine {
public:
  using Offsets = llvm::ArrayRef<mlir::OpFoldResult>;
  using Sizes = llvm::ArrayRef<int64_t>;
  using Values = llvm::SmallVector<mlir::Value>;
  /// Asked before the TilingInterface; nothing to leave the value to it. The
  /// engine's builder stands where the part must be built.
  using Resolver = std::function<std::optional<mlir::FailureOr<mlir::Value>>(
      mlir::Value, Offsets, Sizes)>;
  using Body = llvm::function_ref<mlir::FailureOr<Values>(
      mlir::OpFoldResult iv, mlir::ValueRange carried)>;

  /// New operations go before `anchor`.
  explicit TilingEngine(mlir::Operation *anchor, Resolver resolver = {});

  /// The part of `value` at `offsets` with extents `sizes`. Emits an error at
  /// the producer that cannot be restricted.
  mlir::FailureOr<mlir::Value> materialize(mlir::Value value, Offsets offsets,
                                           Sizes sizes);
  /// The whole of `value`, which has a static shape.
  mlir::FailureOr<mlir::Value> materialize(mlir::Value value);

  /// Clones `sink`, an operation without results, for part of its tile.
  mlir::LogicalResult tileSink(mlir::Operation *sink, Offsets offsets,
                               Sizes sizes);

  /// scf.for from lb to ub by `step`, or only its body where there is exactly
  /// one iteration. Returns what the loop carries out. Nothing that the body
  /// computes moves out of a loop that is a barrier.
  mlir::FailureOr<Values> forLoop(mlir::Location loc, mlir::OpFoldResult lb,
                                  mlir::OpFoldResult ub, int64_t step,
                                  mlir::ValueRange inits, Body body,
                                  bool barrier = false);
  /// scf.if whose else branch passes `otherwise` through.
  mlir::FailureOr<Values>
  ifThen(mlir::Location loc, mlir::Value condition, mlir::ValueRange otherwise,
         llvm::function_ref<mlir::FailureOr<Values>()> body);

  /// Stands where the current scope grows.
  mlir::OpBuilder &builder();
  /// The value of an index, here.
  mlir::OpFoldResult rebuild(mlir::Location loc, const LinearIndex &index);

private:
  struct Scope {
    mlir::Block *block;
    /// Where the scope grows: before this operation, or at the end.
    mlir::Operation *before;
    mlir::Value iv;
    /// The induction variable is in [0, bound); 0 if that is not known.
    int64_t bound = 0;
    /// The induction variable is a multiple of this.
    int64_t step = 1;
    /// Nothing below moves out of this scope.
    bool barrier = false;
    std::map<std::vector<int64_t>, mlir::Value> parts, indices;
  };

  LinearIndex simplify(mlir::OpFoldResult v) const;
  size_t depthOf(const LinearIndex &index) const;
  mlir::FailureOr<mlir::Value> produce(mlir::Value value, Offsets offsets,
                                       Sizes sizes);
  mlir::LogicalResult resolveSlices(mlir::ArrayRef<mlir::Operation *> slices);

  mlir::OpBuilder b;
  Resolver resolver;
  std::vector<Scope> scopes;
};

/// The smallest power of two that is at least `v`, and the largest at most `v`
/// (v >= 1).
int64_t powerOfTwoCeil(int64_t v);
int64_t powerOfTwoFloor(int64_t v);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_TILING_TILINGENGINE_H
