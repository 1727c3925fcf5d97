//===- SelectConfig.cpp - Fragment, warps and tile of a kernel ------------===//
//
// The choices depend on the IR and on `quant.target` only: the same program
// compiles to the same code on every machine.
//
// CPU: a fragment is what one iteration keeps in vector registers: 16 of them
// where there are no blocks. With blocks along rows it holds as many blocks as
// a register has lanes, one for each lane of the scale computation; with blocks
// along columns it is one block tall.
// GPU: a lane holds up to 64 elements of a tile, about 32 where there is a
// choice of warps and the runs of the lanes stay long, or more than 16 bits of
// each wait for the sum of their row; larger tiles are cut into fragments of 32
// elements a lane. Of a row for which a lane would hold more than 32 shared
// memory holds what waits, if there is room for the rows of four blocks, or of
// two where registers would hold much.
//
//===----------------------------------------------------------------------===//

#include "Analysis/DimClasses.h"
#include "Layouts/LayoutRules.h"
#include "Tiling/HeldTiles.h"
#include "Tiling/Scratch.h"
#include "Tiling/TilingEngine.h"
#include "Tiling/WaitingTiles.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/ReductionOrder.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERSELECTCONFIG
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

constexpr int64_t kDynamicExtent = int64_t(1) << 30;

/// Extents and blocks of what a function computes. Dynamic extents are taken as
/// kDynamicExtent.
struct Shape {
  int64_t rows = 1, cols = 1, rowBlock = 1, colBlock = 1;
  /// Extents of tiles that loops and branches carry, which must not be split.
  SmallVector<std::pair<int64_t, int64_t>> carried;
  /// Rows are reduced, columns are, and differences from a mean are made.
  bool reducesCols = false, reducesRows = false, centers = false;
  /// Lanes that can share a row: with sums along rows, as many as the canonical
  /// order has chains for at a run of columns each (architecture.md, Order of
  /// sums).
  int64_t lanesPerRow = kDynamicExtent;
  /// Elements change place between rows and columns, not only scales.
  bool transposesRows = false;
  /// Runs of rows are transformed together.
  bool transformsRows = false;
  bool encodes = false, encodesFp4 = false;
  /// Functions of elements are computed, such as an exponential.
  bool hasFunctions = false;
  /// Tiles are computed, or stored: not only maxima of what is loaded.
  bool makes = false;
  /// All that is made of what is loaded are scales that are powers of two, and
  /// codes.
  bool makesOnlyMxCodes = true;
  /// Elements of the largest tile of 32 bits that is transposed, in whole
  /// powers of two.
  int64_t transposed = 0;
  /// A tile is transposed, if only from a row to a column; with its elements,
  /// and not only with what blocks along its rows have.
  bool transposes = false, transposesCols = false;
  /// Bits that lanes keep of each element while rows are reduced, and those
  /// that shared memory would hold of it.
  int64_t waiting = 0, held = 0;
  /// That is made of what is loaded, and not copied.
  bool makesHeld = false;
  /// Tiles that are loaded, and tensors that a function is of, less numbers of
  /// rows or columns (the parameters of a norm); their bits for each element.
  int64_t reads = 0, read = 0;
  /// Tiles of a program, one after the other, and sums over them.
  int64_t tiles = 1, totals = 0;
  /// Elements that are loaded of one tensor, such as the parts of a tile.
  int64_t loaded = 0;
};

struct Config {
  int64_t rows, cols, warps, tileRows, tileCols;
  bool isWholeTile = false;
  /// Fragment of the programs whose tile may reach past a tensor.
  std::optional<std::pair<int64_t, int64_t>> edge = std::nullopt;
};

constexpr int64_t kWarpLanes = 32;
/// Vector registers of a CPU fragment without blocks, and the most one should
/// take.
constexpr int64_t kHostRegisters = 16, kHostMostRegisters = 32;
/// Rows of the fragments of a CPU kernel that loops carry: registers hold fewer
/// than kHostRows.
constexpr int64_t kHostCarriedRows = 8;
/// Columns of a CPU tile where a row has no static length.
constexpr int64_t kHostColumns = 4096;
constexpr int64_t kLaneWant = 32, kLaneMost = 64;
/// Warps of a program that registers have room for.
constexpr int64_t kMostWarps = 8;
/// Bits of each element that wait while rows are reduced, where a lane holds
/// more elements than kLaneWant; and where codes are made of them.
constexpr int64_t kFewWaiting = 16, kFewWaitingCodes = 32;
/// Bits that are read for each element of what a lane has kLaneMost of.
constexpr int64_t kFewRead = 16;
/// Elements of 32 bits that shared memory (48 KiB) holds while they are
/// transposed, in a power of two.
constexpr int64_t kGpuTransposed = 8192;
/// Elements of a lane in a tile that may reach past a tensor, and of those of a
/// CPU's fragment one in so many: such programs are few, and their code is to
/// be short.
constexpr int64_t kLaneEdge = 8, kHostEdgeShare = 4;
/// Columns of such a fragment that a row is whole ones of, at least.
constexpr int64_t kLeastEdge = 128;
/// Warps of a program whose rows registers do not hold, at most, and those that
/// a multiprocessor is to have: fewer in each program where there are more.
constexpr int64_t kLongRowWarps = 16, kHeldWarps = 24;
/// Blocks of a multiprocessor that are enough to wait for memory in turns, and
/// that are better than many registers.
constexpr int64_t kHeldBlocks = 4, kFewHeldBlocks = 2;
/// Columns in a run of a lane where FP8 or FP4 codes are stored: 128 bits
/// or 64.
constexpr int64_t kLaneRun = 16;
/// Elements of a lane in each of several parts that are loaded of a tensor, at
/// least: 128 bits of 16-bit types.
constexpr int64_t kLanePart = 8;

/// Elements of the longest row that `op` adds up; 0 if it adds none.
int64_t summedColumns(Operation *op) {
  if (auto reduce = dyn_cast<quant::ReduceOp>(op))
    return reduce.getKind() == quant::ReduceKind::sum && reduce.getAxis() == 1
               ? reduce.getExtent()
               : 0;
  if (auto norm = dyn_cast<quant::NormOpInterface>(op))
    return norm.getCount().value_or(
        cast<ShapedType>(norm->getResult(0).getType()).getDimSize(1));
  return 0;
}

/// Whether `op` computes or stores elements of tiles. Magnitudes are part of a
/// maximum.
bool makesTiles(Operation *op) {
  if (isa<quant::StoreOp, quant::ScatterOp, quant::HadamardOp,
          quant::NormOpInterface>(op))
    return true;
  return op->hasTrait<OpTrait::Elementwise>() &&
         isa<RankedTensorType>(op->getResult(0).getType()) &&
         !isa<arith::ExtFOp, math::AbsFOp>(op);
}

/// Whether `op` makes no tile, but loads one, widens it, or makes scales that
/// are powers of two, or codes with such.
bool isOfMxCodes(Operation *op) {
  auto arePowers = [](Type type) {
    return isa<Float8E8M0FNUType>(getElementTypeOrSelf(type));
  };
  if (isa<quant::ScaledOpInterface>(op) && !isa<quant::DequantizeOp>(op))
    return llvm::any_of(op->getOperandTypes(), arePowers);
  return isa<quant::LoadOp, arith::ExtFOp>(op) ||
         llvm::all_of(op->getResultTypes(), [&](Type type) {
           return !isa<RankedTensorType>(type) || arePowers(type);
         });
}

/// Whether two values are computed alike.
LogicalResult areAlike(Value a, Value b) {
  if (a == b)
    return success();
  Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
  return success(one && other &&
                 OperationEquivalence::isEquivalentTo(
                     one, other, areAlike, /*markEquivalent=*/nullptr,
                     OperationEquivalence::IgnoreLocations));
}

/// Elements that are loaded of one tensor, at most; where they are loaded again
/// they are the same.
int64_t loadedElements(func::FuncOp func) {
  llvm::MapVector<Value, SmallVector<quant::LoadOp>> loads;
  func.walk([&](quant::LoadOp op) {
    Value tensor = op.getMemref();
    while (auto view = tensor.getDefiningOp<quant::ViewOp>())
      tensor = view.getViewSource();
    bool isAgain = llvm::any_of(loads[tensor], [&](quant::LoadOp other) {
      return succeeded(areAlike(op.getResult(), other.getResult()));
    });
    if (!isAgain && op.getType().hasStaticShape())
      loads[tensor].push_back(op);
  });
  int64_t most = 0;
  for (auto &[tensor, ops] : loads) {
    int64_t sum = 0;
    for (quant::LoadOp op : ops)
      sum += op.getType().getNumElements();
    most = std::max(most, sum);
  }
  return most;
}

Shape shapeOf(func::FuncOp func) {
  SmallVector<Value> roots, carried;
  Shape shape;
  int64_t summed = 0;
  // Results of a whole-tensor program are stored.
  shape.makes = func.getNumResults();
  func.walk([&](Operation *op) {
    if (op->getNumRegions())
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType()))
          carried.push_back(result);
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        roots.push_back(operand);
    if (auto reduce = dyn_cast<quant::ReduceOp>(op)) {
      shape.reducesCols |= reduce.getAxis() == 1;
      shape.reducesRows |= reduce.getAxis() == 0;
    }
    shape.centers |= isa<quant::LayerNormOp>(op);
    if (auto hadamard = dyn_cast<quant::HadamardOp>(op))
      shape.transformsRows |= hadamard.getAxis() == 0;
    if (auto scale = dyn_cast<quant::BlockScaleOp>(op))
      shape.reducesCols |= ShapedType::isDynamic(
          scale.getFormat()
              .getBlockExtents(scale.getAxis(), scale.getType().getRank())
              .back());
    shape.reducesCols |= isa<quant::NormOpInterface>(op);
    summed = std::max(summed, summedColumns(op));
    shape.encodes |=
        isa<quant::EncodeOp, quant::ScaleEncodeOp, quant::ScaledOpInterface>(
            op) &&
        !isa<quant::DequantizeOp>(op);
    shape.encodesFp4 |= isa<quant::CastFp4Op>(op);
    shape.hasFunctions |= isa<quant::ElementaryOpInterface>(op);
    shape.makes |= makesTiles(op);
    shape.makesOnlyMxCodes &= isOfMxCodes(op);
    if (auto tile = dyn_cast<quant::TileIdOp>(op))
      shape.tiles = tile.getCount();
    if (auto store = dyn_cast<quant::StoreOp>(op); store && store.getTotal())
      shape.totals = std::max<int64_t>(shape.totals, *store.getTotal() + 1);
  });
  if (summed && shape.encodes)
    shape.lanesPerRow = numerics::sumChains(summed) / kLaneRun;
  llvm::append_range(roots, carried);
  DimClasses classes(roots);
  for (Value v : carried) {
    auto &[rows, cols] = shape.carried.emplace_back(1, 1);
    for (auto [d, extent] :
         llvm::enumerate(cast<RankedTensorType>(v.getType()).getShape())) {
      DimClasses::Member m = classes.member(v, d);
      int64_t &most = classes[m.cls].isColumn ? cols : rows;
      most = std::max(most, powerOfTwoCeil(extent * m.unit));
    }
  }
  llvm::sort(shape.carried, [](auto a, auto b) {
    return a.first * a.second < b.first * b.second;
  });
  auto moves = [&](RankedTensorType type) {
    if (type.getElementTypeBitWidth() == 32)
      shape.transposed =
          std::max(shape.transposed, powerOfTwoCeil(type.getDimSize(0)) *
                                         powerOfTwoCeil(type.getDimSize(1)));
  };
  // Lanes that share a narrow row exchange what they reduce across rows.
  func.walk([&](quant::ReduceOp op) {
    auto type = op.getSource().getType();
    if (type.hasStaticShape() && type.getRank() == 2 && op.getAxis() == 0 &&
        type.getDimSize(1) < kWarpLanes)
      moves(type);
  });
  func.walk([&](quant::TransposeOp op) {
    DimClasses::Member m = classes.member(op.getSource(), 0);
    shape.transposesRows |= m.cls >= 0 && m.unit < classes[m.cls].granule;
    shape.transposes = true;
    for (int64_t d = 0; d < 2; ++d) {
      DimClasses::Member m = classes.member(op.getSource(), d);
      if (m.cls >= 0 && classes[m.cls].isColumn)
        shape.transposesCols |= m.unit == 1;
    }
    auto type = op.getSource().getType();
    if (type.hasStaticShape() && type.getDimSize(0) > 1 &&
        type.getDimSize(1) > 1)
      moves(type);
  });
  for (size_t i = 0; i < classes.size(); ++i) {
    const DimClasses::Class &info = classes[i];
    int64_t extent =
        ShapedType::isDynamic(info.extent) ? kDynamicExtent : info.extent;
    int64_t &most = info.isColumn ? shape.cols : shape.rows;
    int64_t &block = info.isColumn ? shape.colBlock : shape.rowBlock;
    most = std::max(most, extent);
    block = std::lcm(block, info.granule);
  }
  shape.waiting = waitingBits(func);
  auto bitsOf = [&](Value v) {
    auto type = cast<RankedTensorType>(v.getType());
    bool isWide = type.getRank() == 2 && type.getDimSize(1) == shape.cols;
    return isWide ? quant::storageBits(type.getElementType()) : 0;
  };
  auto read = [&](Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (!type || type.getRank() != 2 || type.getDimSize(1) == 1)
      return;
    shape.read += bitsOf(v);
    ++shape.reads;
  };
  llvm::for_each(func.getArguments(), read);
  llvm::SetVector<Value> held;
  func.walk([&](quant::LoadOp op) {
    read(op.getResult());
    held.insert(heldTileOf(op));
  });
  shape.loaded = loadedElements(func);
  for (Value v : held) {
    shape.held += bitsOf(v);
    shape.makesHeld |= bitsOf(v) && !v.getDefiningOp<quant::LoadOp>();
  }
  return shape;
}

/// Rows and columns of a fragment of about `budget` elements in whole blocks,
/// no larger than the tile and no smaller than the carried tiles that take up
/// to `mostCarried` elements, the small ones first.
std::pair<int64_t, int64_t> fitFragment(const Shape &s, int64_t cols,
                                        int64_t budget, int64_t mostCarried,
                                        bool isHost, bool wholeBlocks = true) {
  int64_t minRows = wholeBlocks ? s.rowBlock : 1, minCols = s.colBlock;
  // A CPU carries in memory what would make the fragment larger.
  int64_t leastRows = isHost ? minRows : 1, leastCols = isHost ? minCols : 1;
  int64_t tall = 1, wide = 1;
  for (auto [rows, cols] : s.carried)
    if (std::max({tall, rows, leastRows}) * std::max({wide, cols, leastCols}) <=
            mostCarried &&
        (!isHost || rows <= kHostCarriedRows)) {
      tall = std::max(tall, rows);
      wide = std::max(wide, cols);
    }
  minRows = std::max(minRows, tall);
  minCols = std::max(minCols, wide);
  if (tall > 1)
    cols = std::min(cols, powerOfTwoFloor(std::max<int64_t>(1, budget / tall)));
  cols = std::max(minCols, std::min(cols, powerOfTwoCeil(s.cols)));
  int64_t rows = powerOfTwoFloor(std::max<int64_t>(1, budget / cols));
  rows = std::max(minRows, std::min(rows, powerOfTwoCeil(s.rows)));
  return {rows, cols};
}

/// `lanes`: elements of 32 bits in a vector register.
Config chooseHost(const Shape &s, int64_t lanes, bool isTile) {
  int64_t fragment = kHostRegisters * lanes, most = kHostMostRegisters * lanes;
  // Few columns of what is transposed: what is a row on one side is a column on
  // the other, an access for each of its elements.
  int64_t wide = isTile && s.transposes ? kHostRows : fragment;
  int64_t cols, budget = fragment;
  bool wholeBlocks = true;
  if (s.rowBlock > 1 && !s.transposesRows && !s.reducesCols &&
      !s.transformsRows) {
    // Row by row, twice: for the amax of the columns and for the codes.
    auto [rows, width] = fitFragment(s, wide, wide, wide, /*isHost=*/true,
                                     /*wholeBlocks=*/false);
    return {rows, width, 1, s.rowBlock,
            s.cols == kDynamicExtent ? kHostColumns : 0};
  }
  if (s.rowBlock > 1) {
    cols = 2 * lanes;
    budget = std::min(most, s.rowBlock * cols);
    // Blocks in both directions may be more than registers can hold. Those that
    // are transformed are nothing in parts.
    wholeBlocks =
        s.transformsRows || s.rowBlock * std::max(s.colBlock, cols) <= 2 * most;
  } else if (s.colBlock > 1) {
    cols = std::min(most, lanes * s.colBlock);
    if (isTile && s.transposesCols)
      cols = kHostRows;
    budget = cols;
  } else {
    cols = wide;
  }
  auto [rows, width] =
      fitFragment(s, cols, budget, budget, /*isHost=*/true, wholeBlocks);
  // Whole rows to a program: one row of fragments, or some for short rows.
  int64_t tileRows = std::max(rows, s.rowBlock);
  int64_t tileCols = s.cols == kDynamicExtent ? kHostColumns : 0;
  return {rows, width, 1, tileRows, tileCols};
}

/// Elements of a lane. Where a warp holds blocks across 32 rows, rows of FP4
/// codes fill sectors of 32 bytes with twice the columns. Where codes are
/// transposed beside those of rows, there are registers for one tile of 16-bit
/// words, and for nothing else, nor where functions of elements or of several
/// tiles are computed, which take registers too. Programs of several tiles have
/// what they sum over them in registers, beside each. Where only maxima of what
/// is loaded are stored, registers hold nothing else, and little else where
/// codes of MX formats are made of halves of words.
int64_t laneWant(const Shape &s, const target::TargetInfo *info) {
  if (s.tiles > 1)
    return kLaneWant / powerOfTwoCeil(std::max<int64_t>(1, s.totals));
  if (!s.makes && s.rowBlock == 1 && s.read <= kFewRead)
    return kLaneMost;
  bool isOfFew = s.reads == 1 && s.read <= kFewRead;
  if (s.makesOnlyMxCodes && s.rowBlock == 1 && isOfFew && info &&
      info->mixedPrecision)
    return kLaneMost;
  bool hasFew = isOfFew && s.colBlock >= kLaneRun && !s.reducesRows;
  bool isLight = s.transposesRows ? hasFew : s.reads == 1 && !s.hasFunctions;
  bool acrossRows = s.rowBlock > 1 && !s.reducesCols && isLight;
  return acrossRows && s.encodesFp4 ? kLaneMost : kLaneWant;
}

/// Blocks of a multiprocessor whose shared memory has room for a row of each
/// while its sum is made; 0 where nothing waits.
int64_t blocksWithRows(const Shape &s, int64_t cols, int64_t sharedBytes) {
  bool waits = s.reducesCols && s.rowBlock == 1 && s.tiles == 1 && s.waiting;
  int64_t bytes = cols * s.held / 8;
  return waits && bytes ? sharedBytes / (bytes + kHeldExchange) : 0;
}

/// Whether a lane may have kLaneMost elements while rows are reduced. Where
/// instructions are what codes wait for, to have fewer of them is worth the
/// registers of what waits in a LayerNorm (docs/measured.md): on GPUs with fast
/// memory, and where there is no instruction for FP4.
bool hasFewWaiting(const Shape &s, const target::TargetInfo *info) {
  return s.waiting <= kFewWaiting ||
         (s.encodes && s.centers && s.waiting <= kFewWaitingCodes &&
          s.read <= kFewRead && info && (info->fastMemory || !info->cvtFP4x2));
}

/// Blocks whose rows shared memory must have room for. Fewer do where registers
/// would hold much more than the words of 16 bits that it holds: differences
/// from a mean, exponentials, or what codes are made of beside a sum.
int64_t leastHeldBlocks(const Shape &s) {
  bool isMuch = s.waiting > kFewWaiting || (s.makesHeld && s.encodes);
  return s.held <= kFewWaiting && isMuch ? kFewHeldBlocks : kHeldBlocks;
}

/// Whether a lane keeps kLaneMost elements of a row although shared memory has
/// room for it. What is made before it is held takes rounds that wait for
/// memory, where a copy is asked for at once; on the newest GPUs codes leave
/// registers for words of 16 bits, and what is no code for any.
bool staysInRegisters(const Shape &s, const target::TargetInfo *info) {
  return s.makesHeld && info && info->cvtFP4x2 &&
         (s.waiting <= kFewWaiting || !s.encodes);
}

Config chooseGpu(const Shape &s, std::optional<int64_t> warps, bool isTile,
                 const target::TargetInfo *info) {
  int64_t sharedBytes = info ? info->sharedBytes : 0;
  Config c{};
  int64_t rows = s.rows, cols = s.cols;
  if (!isTile) {
    // Whole rows where a row is reduced, else 4096 elements.
    int64_t most = kWarpLanes * kMostWarps * kLaneMost;
    c.tileCols = 0;
    cols = powerOfTwoCeil(s.cols);
    if (!s.reducesCols && cols > 1024)
      c.tileCols = cols = std::max<int64_t>(1024, s.colBlock);
    rows = std::max(s.rowBlock, powerOfTwoFloor(std::max<int64_t>(
                                    1, std::min<int64_t>(4096, most) / cols)));
    c.tileRows = rows;
  } else {
    c.tileRows = rows;
    c.tileCols = cols;
  }
  int64_t elements = rows * cols;
  int64_t n = 1;
  if (warps)
    n = *warps;
  else
    // A norm that is stored both ways holds its rows twice: fewer threads, so
    // that each has the registers. A transposed one has squares to share.
    while (n < (s.rowBlock > 1 && s.reducesCols && !s.transposesRows
                    ? kMostWarps / 2
                    : kMostWarps) &&
           n * kWarpLanes * laneWant(s, info) < elements) {
      // More lanes than that would have shorter runs.
      bool fits =
          elements <= n * kWarpLanes * kLaneMost && hasFewWaiting(s, info);
      if (fits && n * kWarpLanes >= rows * s.lanesPerRow)
        break;
      n *= 2;
    }
  // Of parts of a tile that are put together a lane has some of each.
  while (!warps && n < kMostWarps && n * kWarpLanes * kLaneMost < s.loaded &&
         2 * n * kWarpLanes * kLanePart <= elements)
    n *= 2;
  c.warps = n;
  // What is transposed goes through shared memory.
  bool shares = isTile && s.transposed > kGpuTransposed;
  int64_t blocks = warps ? 0 : blocksWithRows(s, cols, sharedBytes);
  bool isHeld = rows == 1 && s.carried.empty() &&
                elements > kMostWarps * kWarpLanes * kLaneWant &&
                blocks >= leastHeldBlocks(s) &&
                (elements > kMostWarps * kWarpLanes * kLaneMost ||
                 !staysInRegisters(s, info));
  if (elements <= n * kWarpLanes * kLaneMost && !shares && !isHeld) {
    c.rows = rows;
    c.cols = cols;
    c.isWholeTile = true;
    return c;
  }
  int64_t budget = n * kWarpLanes * laneWant(s, info);
  if (s.rowBlock > 1 && s.reducesCols)
    budget /= 2;
  // Shared memory holds the rows, if anything does, and of one block alone:
  // many threads, and few registers for each.
  if (isHeld || (!warps && s.reducesCols && s.rowBlock == 1 &&
                 cols > n * kWarpLanes * kLaneMost)) {
    c.warps = std::clamp(
        int64_t(powerOfTwoFloor(kHeldWarps / std::max<int64_t>(blocks, 1))),
        kMostWarps / 2, kLongRowWarps);
    budget = c.warps * kWarpLanes * (isHeld ? kLaneWant : kLaneRun);
  }
  if (shares)
    budget = std::min(budget, kGpuTransposed);
  // Columns that are stored as rows, beside rows: squares.
  bool squares = s.rowBlock > 1 ? s.transposesRows : s.transposesCols;
  int64_t wide =
      squares ? int64_t(1) << (llvm::Log2_64(budget) / 2) : budget / s.rowBlock;
  std::tie(c.rows, c.cols) = fitFragment(s, std::max(s.colBlock, wide), budget,
                                         n * kWarpLanes * kLaneMost,
                                         /*isHost=*/false);
  return c;
}

/// The fragment at the edges of tensors, where it is smaller than others. What
/// a GPU has no registers for is loops already, and shorter ones need more:
/// what they share waits in registers.
std::optional<std::pair<int64_t, int64_t>>
chooseEdge(const Shape &s, const Config &c, bool isHost) {
  int64_t budget = isHost ? c.rows * c.cols / kHostEdgeShare
                          : c.warps * kWarpLanes * kLaneEdge;
  // The tiles of a program are summed by the same lanes, at the edge, too.
  if (!s.carried.empty() || (!isHost && !c.isWholeTile) || s.tiles > 1 ||
      c.rows * c.cols <= budget)
    return std::nullopt;
  bool wholeBlocks = c.rows >= s.rowBlock;
  int64_t cols = std::max(s.colBlock, budget / (wholeBlocks ? s.rowBlock : 1));
  // Whole fragments to a row, if they need not be narrow.
  int64_t whole = cols;
  while (s.cols % whole != 0 && whole % 2 == 0 && whole / 2 % s.colBlock == 0)
    whole /= 2;
  if (whole >= kLeastEdge)
    cols = whole;
  auto edge = fitFragment(s, cols, budget, budget, isHost, wholeBlocks);
  if (edge.first * edge.second >= c.rows * c.cols)
    return std::nullopt;
  return edge;
}

struct DitherSelectConfig : impl::DitherSelectConfigBase<DitherSelectConfig> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    bool isKernel = func->hasAttr("quant.kernel");
    bool isWhole = llvm::any_of(
        func.getResultTypes(), [](Type t) { return isa<RankedTensorType>(t); });
    if (func.isExternal() || (!isKernel && !isWhole) ||
        func->hasAttr("quant.config"))
      return;
    bool forCpu = isForCpu(func);
    std::optional<int64_t> warps;
    if (auto attr = func->getAttrOfType<IntegerAttr>("quant.num_warps"))
      warps = attr.getInt();

    const target::TargetInfo *info = target::saidTarget(func);
    Shape shape = shapeOf(func);
    Config c = forCpu ? chooseHost(shape, cpuLanes(func), isKernel)
                      : chooseGpu(shape, warps, isKernel, info);
    if (isKernel) {
      c.tileRows = shape.rows;
      c.tileCols = shape.cols;
      if (forCpu)
        c.rows = std::min(c.rows, std::max(shape.rowBlock, kHostRows));
    }
    if (shape.tiles > 1 && !c.isWholeTile) {
      func.emitOpError("has programs of ")
          << shape.tiles << " tiles of " << c.tileRows << "x" << c.tileCols
          << ", expected tiles that the registers of a GPU hold";
      return signalPassFailure();
    }
    c.edge = chooseEdge(shape, c, forCpu);
    Builder b(&getContext());
    NamedAttrList config;
    auto add = [&](StringRef name, int64_t rows, int64_t cols) {
      config.append(name, b.getDenseI64ArrayAttr({rows, cols}));
    };
    add("fragment", c.rows, c.cols);
    if (c.edge)
      add("edge", c.edge->first, c.edge->second);
    add("tile", c.tileRows, c.tileCols);
    config.append("num_warps", b.getI64IntegerAttr(c.warps));
    if (shape.tiles > 1)
      config.append("tiles", b.getI64IntegerAttr(shape.tiles));
    func->setAttr("quant.config", config.getDictionary(&getContext()));
    if (remarks)
      func.emitRemark("fragments of ")
          << c.rows << "x" << c.cols << " in tiles of " << c.tileRows << "x"
          << c.tileCols << ", " << c.warps << " warps, for "
          << target::TargetAttrs(func).name << " (blocks of " << shape.rowBlock
          << "x" << shape.colBlock << ")";
  }
};

} // namespace

} // namespace dither::transforms
