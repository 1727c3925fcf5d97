//===- PhaseExtents.cpp - How much of a tile a phase takes at once --------===//

#include "Phases/PhasePlan.h"
#include "Tiling/TilingEngine.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include <limits>
#include <numeric>

using namespace mlir;

namespace dither::transforms {

static constexpr int64_t kLanes = 16;
/// Elements that the amax of 16 blocks takes at once, at most.
static constexpr int64_t kMostOfBlocks = 512;
/// Columns that go through all phases together: at least, and with one row at
/// most.
static constexpr int64_t kLeastStretch = 512, kRowStretch = 4096;
/// Bytes that are loaded of each row of a stretch of tall bands, where blocks
/// are along columns and only scales are kept: when such a band is read again,
/// the first cache has nothing of it.
static constexpr int64_t kTallRowBytes = 2048, kTallRows = 64;
/// What the columns of a row may take of the first cache: x, the next x as it
/// is fetched, and what lies in scratch.
static constexpr int64_t kStretchBytes = 32768;
/// Bytes that are loaded of a row, at most, where each phase loads them: long
/// ones leave memory idle while the first phase, which fetches nothing, runs.
static constexpr int64_t kLoadedTwice = 4096;
/// What a band may keep of rows that are transformed together.
static constexpr int64_t kBandBytes = 65536;
/// Columns of a part whose accesses have masks, if nothing asks for more.
static constexpr int64_t kSlowCols = 32;
/// How much longer such a part takes, for each element.
static constexpr double kMaskedTimes = 3;
/// Columns of such a part that is turned: each has a mask of its own, and as
/// much code as a column without. Of scales there is one row.
static constexpr int64_t kSlowTurnedCols = 8, kSlowTurnedScales = 16;

/// Bits of a column that are turned at once where elements only move: stores
/// of fewer take most of the time.
static constexpr int64_t kMovedBits = 128;

int64_t PhasePlan::loadedBytes() const {
  int64_t bits = 0;
  for (Value v : classes->values()) {
    auto [row, col] = unitsOf(v);
    if (v.getDefiningOp<quant::LoadOp>() && col && (row || rows == 1))
      bits += quant::storageBits(getElementTypeOrSelf(v.getType()));
  }
  return llvm::divideCeil(bits, 8);
}

int64_t PhasePlan::keptBytes() const {
  int64_t bytes = 0;
  for (const Cut &cut : cuts)
    if (keepsElements(cut.kind))
      bytes +=
          quant::storageBits(getElementTypeOrSelf(cut.value.getType())) / 8;
  return bytes;
}

int64_t PhasePlan::rowStretch() const {
  int64_t loaded = loadedBytes(), kept = keptBytes();
  if (loaded == 0)
    return kRowStretch;
  int64_t fits =
      kept ? kStretchBytes / (2 * loaded + kept) : kLoadedTwice / loaded;
  return std::min(kRowStretch, powerOfTwoFloor(std::max<int64_t>(fits, 1)));
}

/// Rows and columns whose scales are found at once, 16 if there are as many.
/// Rows that are short share a part. Where wide parts leave many columns to
/// parts with masks, narrow ones of more rows leave fewer.
std::pair<int64_t, int64_t> PhasePlan::partOfBlocks(int64_t colBlock) const {
  int64_t most = std::min(kMostOfBlocks, kLanes * colBlock);
  int64_t widest = std::min(most, powerOfTwoFloor(cols));
  std::pair<int64_t, int64_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t wide = widest; wide >= std::max(colBlock, widest / 8);
       wide /= 2) {
    int64_t width = wide / colBlock * colBlock, height = 1;
    while (colBlock > 1 && height * 2 * width <= most &&
           rows % (height * 2) == 0)
      height *= 2;
    // Half of the time of a part is spent on blocks that it could have had.
    double each = 0.5 + 0.5 * double(most) / double(height * width);
    int64_t rest = cols % width;
    double time = each * double(cols - rest) + kMaskedTimes * double(rest);
    if (time < least) {
      least = time;
      best = {height, width};
    }
  }
  return best.second ? best : std::pair(int64_t(1), colBlock);
}

/// Whether square blocks have sums: all of their elements are computed at once.
bool PhasePlan::sumsSquares() const {
  return llvm::any_of(classes->values(), [&](Value v) {
    auto reduce = v.getDefiningOp<quant::BlockReduceOp>();
    return reduce && reduce.getKind() == quant::ReduceKind::sum &&
           kindOf(v) == SquareBlocks;
  });
}

/// Rows of a part that are turned to columns at once; a loop goes over those of
/// the part. Code grows with them, and an element takes as long.
int64_t PhasePlan::turnedAtOnce(const Phase &phase) const {
  int64_t atOnce = kTurnedAtOnce;
  for (Value v : computedBy(phase))
    if (auto transpose = v.getDefiningOp<quant::TransposeOp>();
        transpose && transpose.getSource().getDefiningOp<quant::LoadOp>())
      atOnce = std::max(
          atOnce,
          kMovedBits / quant::storageBits(getElementTypeOrSelf(v.getType())));
  return std::gcd(phase.rows, atOnce);
}

void PhasePlan::chooseExtents() {
  int64_t rowBlock = 1, colBlock = 1, narrowest = 32;
  for (Value v : classes->values()) {
    auto [row, col] = unitsOf(v);
    rowBlock = std::lcm(rowBlock, std::max<int64_t>(1, row));
    colBlock = std::lcm(colBlock, std::max<int64_t>(1, col));
  }
  for (const Sink &sink : sinks)
    if (kindOf(sink.tile) == Elements)
      narrowest =
          std::min(narrowest, quant::storageBits(sink.type().getElementType()));
  int64_t wide = powerOfTwoFloor(cols);
  auto whole = [&](int64_t want) {
    return std::max(colBlock, std::min(want, wide) / colBlock * colBlock);
  };
  auto [height, blocks] = partOfBlocks(colBlock);
  // Rows that are stored as columns go together, those of a block or some.
  bool transposes = llvm::any_of(
      sinks, [&](const Sink &sink) { return kindOf(sink.tile) == Transposed; });
  int64_t turned = transposes && rowBlock < kTurnedRows
                       ? std::lcm(rowBlock, std::gcd(rows, kTurnedRows))
                       : std::min(rowBlock, kTurnedRows);
  blockRows = std::lcm(std::lcm(std::lcm(rowBlock, height), turned), rowRun);
  bandRows = blockRows;
  for (const Sink &sink : sinks)
    bandRows = std::lcm(bandRows, std::max<int64_t>(1, lineRows(sink)));
  int64_t stretch = kLeastStretch;
  if (turned == 1 && rowRun == 1) {
    stretch = std::max(stretch, rowStretch() / height);
    // A short rest is no stretch of its own.
    if (cols < 2 * stretch)
      stretch = cols;
  } else if (rowRun == 1 && !transposes && keptBytes() == 0 &&
             bandRows >= kTallRows) {
    stretch =
        std::max(stretch, powerOfTwoFloor(kTallRowBytes /
                                          std::max<int64_t>(1, loadedBytes())));
  }
  bandCols = std::min(cols, stretch);
  if (rowRun > 1) {
    int64_t kept =
        llvm::count_if(cuts, [](const Cut &cut) { return cut.kind <= Values; });
    int64_t fits = powerOfTwoFloor(std::max<int64_t>(
        1, kBandBytes / (bandRows * kept * int64_t(sizeof(float)))));
    bandCols =
        std::min(bandCols, std::max({fits, colBlock, colRun, int64_t(64)}));
  }
  // No block, run or part with masks crosses the end of a stretch.
  blockCols = std::lcm(std::lcm(colBlock, colRun), kSlowCols);
  bandCols =
      std::min(cols, std::max(bandCols / blockCols * blockCols, blockCols));
  // Parts may reach past the end of the tile where nothing collects what they
  // have there.
  bool open = totals.empty() && llvm::all_of(sinks, [&](const Sink &sink) {
                return endsAtMemref(sink, [&](unsigned d) {
                  return colUnit(sink.tile, d) != 0;
                });
              });
  auto slow = [&](int64_t least, int64_t want) {
    int64_t step = std::lcm(least, want);
    return open || cols % step == 0 ? step : std::gcd(cols, step);
  };
  for (Phase &p : phases) {
    switch (p.kind) {
    case Rows:
    case RowsAfter:
      p.cols = p.slowCols = cols;
      break;
    case RandomBlocks:
      // As many words as are on their way at once, whatever a block has; rows
      // that are short share a part here, too.
      p.rows = height;
      p.cols = blocks;
      while (height == 1 && p.cols * 2 <= whole(kMostOfBlocks) &&
             cols % (p.cols * 2) * 8 <= cols)
        p.cols *= 2;
      p.slowCols = slow(colBlock, kSlowCols);
      break;
    case RowBlocks:
    case SquareBlocks:
      p.rows = p.kind == RowBlocks ? height : p.height;
      p.cols = p.kind == SquareBlocks && sumsSquares()
                   ? std::lcm(colBlock, kSlowCols)
                   : blocks;
      p.slowCols = slow(colBlock, kSlowCols);
      break;
    case ColBlocks:
      p.rows = rowBlock;
      p.cols = std::min<int64_t>(32, wide);
      p.slowCols = slow(1, llvm::any_of(p.sinks,
                                        [&](const Sink &sink) {
                                          return isTransposed(sink.tile);
                                        })
                               ? kSlowTurnedScales
                               : kSlowCols);
      break;
    case Turned:
    case Transposed:
      p.rows = turned;
      p.cols = colBlock > 32 ? 32 : whole(32);
      if (p.kind == Transposed &&
          llvm::all_of(p.sinks, [&](const Sink &s) { return lineRows(s); })) {
        // What is kept in scratch memory, a line at a time.
        for (const Sink &sink : p.sinks)
          p.rows = std::lcm(p.rows, lineRows(sink));
        p.cols = 1;
      } else {
        p.rowsAtOnce = turnedAtOnce(p);
      }
      p.slowCols = slow(1, kSlowTurnedCols);
      break;
    case Transforms:
      p.rows = rowRun;
      p.cols = std::max(
          colRun, std::min<int64_t>(rowRun > kTurnedRows ? 16 : 32, wide));
      p.slowCols = slow(colRun, kSlowCols);
      break;
    case WholeRows:
    case Sources:
    case Values:
    case Elements:
      p.cols = std::min<int64_t>(wide, narrowest == 4 ? 128 : 64);
      // Whole runs are transformed.
      p.slowCols = slow(p.kind == Sources ? colRun : 1, kSlowCols);
      break;
    }
    // A part that is wider than a stretch would never be inside of one.
    if (!isOfRows(p.kind))
      p.cols = std::min(p.cols, bandCols);
    p.slowCols = std::min(p.slowCols, p.cols);
    for (unsigned i : p.totals)
      if (!isOfRows(p.kind))
        totals[i].columns = totals[i].alongColumns ? p.cols : cols;
  }
  for (Cut &cut : cuts) {
    auto type = cast<RankedTensorType>(cut.value.getType());
    for (unsigned d = 0; d < 2; ++d) {
      int64_t row = rowUnit(cut.value, d), col = colUnit(cut.value, d);
      cut.shape.push_back(
          row   ? std::max<int64_t>(1, bandRows / row)
          : col ? llvm::divideCeil(
                      (takesWholeRows(cut.kind) ? cols : bandCols) + kRoom, col)
                : type.getDimSize(d));
    }
  }
}

} // namespace dither::transforms
