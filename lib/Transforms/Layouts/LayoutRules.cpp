//===- LayoutRules.cpp - Which layout a kernel's values take --------------===//

#include "Layouts/ColumnSums.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Numerics/ReductionOrder.h"
#include "dither/Target/ModuleTarget.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::transforms {

/// What global memory moves at once.
constexpr int64_t kSectorBits = 256;

static int64_t bitsOf(Type memref) {
  return quant::storageBits(cast<MemRefType>(memref).getElementType());
}

bool isForCpu(func::FuncOp kernel) { return target::isForCpu(kernel); }

int64_t cpuLanes(func::FuncOp kernel) {
  const target::TargetInfo *info = target::saidTarget(kernel);
  return info && !info->isGpu ? info->maxVectorBytes / 4 : 16;
}

SmallVector<int64_t> configuredExtents(func::FuncOp kernel, StringRef name) {
  if (auto config = kernel->getAttrOfType<DictionaryAttr>("quant.config"))
    if (auto attr = config.getAs<DenseI64ArrayAttr>(name))
      return SmallVector<int64_t>(attr.asArrayRef());
  return {};
}

/// Elements of a lane where codes are decoded: 16 bytes of bfloat16.
constexpr int64_t kDecodedRun = 8;

/// Rows of a tile that a word of its columns has: of what is transposed, or
/// made of that, in fewer than 32 bits. One where nothing is.
static int64_t rowsOfWords(quant::TransposeOp op) {
  int64_t rows = 1;
  auto count = [&](Value v) {
    if (int64_t bits = wordBits(getElementTypeOrSelf(v)))
      rows = std::max(rows, 32 / bits);
  };
  count(op.getResult());
  for (Operation *user : op->getUsers())
    if (user->hasTrait<OpTrait::Elementwise>())
      count(user->getResult(0));
  return rows;
}

/// Elements of the longest block that rows of a transposed tile are combined
/// in; 0 where nothing combines them.
static int64_t combinedRun(quant::TransposeOp op) {
  auto shape = op.getType().getShape();
  int64_t block = 0;
  if (shape[0] == 1 || shape[1] == 1)
    return block;
  for (Operation *user : op->getUsers()) {
    if (auto blocks = dyn_cast<quant::BlockReduceOp>(user))
      if (LayoutRules::blockAxis(blocks) == 1)
        block = std::max(block, blocks.getBlock()[1]);
    if (auto hadamard = dyn_cast<quant::HadamardOp>(user))
      if (hadamard.getAxis() == 1)
        block = std::max<int64_t>(block, hadamard.getSize());
  }
  return block;
}

LayoutRules::LayoutRules(func::FuncOp kernel) {
  simd = isForCpu(kernel);
  if (!simd) {
    numWarps = 4;
    if (auto config = kernel->getAttrOfType<DictionaryAttr>("quant.config"))
      if (auto n = config.getAs<IntegerAttr>("num_warps"))
        numWarps = n.getInt();
  }
  // The narrowest whole-tile access decides: what is loaded wide must also be
  // stored wide after it shrank to a quarter or an eighth.
  int64_t narrowest = 32, narrowestStore = 32, widestStore = 0;
  int64_t loaded = 0; // elements of the largest tile
  SmallVector<quant::TransposeOp> transposes;
  bool finite = false;
  SmallVector<int64_t> fragment = configuredExtents(kernel, "fragment");
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<quant::LoadOp>(op)) {
      int64_t bits = bitsOf(load.getMemref().getType());
      if (isAnchor(load)) {
        narrowest = std::min(narrowest, bits);
        loaded = std::max(loaded, load.getResult().getType().getNumElements());
      }
      // Rows that are held are longer than a fragment.
      auto memory = cast<MemRefType>(load.getMemref().getType());
      if (load.getMemref().getDefiningOp<quant::ScratchOp>() &&
          !fragment.empty() &&
          memory.getNumElements() > llvm::product_of(fragment))
        holds = !simd;
    }
    if (auto transpose = dyn_cast<quant::TransposeOp>(op))
      transposes.push_back(transpose);
    if (auto product = dyn_cast<quant::ScaleEncodeOp>(op))
      finite |= product.getFinite();
    if (auto gather = dyn_cast<quant::GatherOp>(op))
      narrowest = std::min(narrowest, bitsOf(gather.getMemref().getType()));
    if (auto store = dyn_cast<quant::StoreOp>(op)) {
      int64_t bits = bitsOf(store.getMemref().getType());
      if (isa_and_present<quant::EncodeOp, quant::ScaleEncodeOp>(
              store.getTile().getDefiningOp()))
        narrowestStore = std::min(narrowestStore, bits);
      if (store.getTile().getType().getRank() == 2)
        widestStore = std::max(widestStore, bits);
    }
    if (auto reduce = dyn_cast<quant::ReduceOp>(op))
      if (reduce.getKind() == quant::ReduceKind::sum) {
        bool down = !simd && reduce.getAxis() == 0 &&
                    reduce.getSource().getType().getRank() == 2;
        if (down)
          sumRows = std::max(sumRows, reduce.getExtent());
        else {
          sumChains = std::max(sumChains, reduce.getNumChains());
          summed.insert(
              reduce.getSource().getType().getDimSize(reduce.getAxis()));
        }
      }
    if (auto hadamard = dyn_cast<quant::HadamardOp>(op))
      if (hadamard.getType().getRank() == 2 && hadamard.getAxis() == 0)
        columnBlock = std::max<int64_t>(columnBlock, hadamard.getSize());
    if (auto blocks = dyn_cast<quant::BlockReduceOp>(op))
      if (blocks.getBlock().size() == 2 && blockAxis(blocks) == 0)
        columnBlock = std::max(columnBlock, blocks.getBlock().front());
  });
  // Not of scales: lanes go by elements.
  for (quant::TransposeOp op : transposes)
    if (!simd && op.getType().getNumElements() >= loaded && !combinedRun(op))
      turnedRows = std::max(turnedRows, rowsOfWords(op));
  // Elements of 32 bits stay in the order of memory where the codes of several
  // registers become bytes in order; what is turned to columns moves as pairs.
  const target::TargetInfo *target = target::saidTarget(kernel);
  bool ordered = finite && transposes.empty() && narrowest == 32 && target &&
                 target->bytePermutations;
  if (simd)
    vec = std::min(narrowest, narrowestStore) < 32 && !ordered ? 2 : 1;
  else
    vec = narrowestStore <= 8 ? 16 : 128 / narrowest;
  // What codes are decoded to is stored by neighbouring lanes side by side: a
  // store that each lane has half a sector of takes twice as long.
  if (!simd && transposes.empty() && narrowestStore > 8 && narrowest < 16 &&
      widestStore >= 16)
    vec = kDecodedRun;
  if (std::min(narrowest, narrowestStore) < 8)
    leastVec = 2;
}

TileLayout LayoutRules::anchor(ArrayRef<int64_t> shape) const {
  int64_t last = int64_t(shape.size()) - 1;
  Reduced reduced;
  // Parts of a row that is held have its sums elsewhere.
  bool isHeld = holds && last >= 0 && !summed.contains(shape[last]);
  if (sumChains && last >= 0 && !isHeld)
    reduced = {last, sumChains, true};
  else if (columnBlock > 1 && last == 1 && !simd)
    reduced = {0, columnBlock, false};
  else if (sumRows > 1 && last == 1)
    reduced = {0, numerics::sumChains(sumRows), true};
  if (turnedRows == 1 || last != 1 || shape[0] < turnedRows)
    return widest(shape, reduced, vec);
  // A lane has the rows of a word, so that columns change lanes in words.
  int64_t most = shape[0] * shape[1] / (kWarpLanes * numWarps * turnedRows);
  if (most < leastVec)
    return widest(shape, reduced, vec);
  return lowestFirst(widest(shape, reduced, llvm::bit_floor<uint64_t>(most)),
                     0);
}

TileLayout LayoutRules::widest(ArrayRef<int64_t> shape, Reduced reduced,
                               int64_t most) const {
  if (simd)
    return blockedLayout(shape, vec, kSimdLanes, 1, reduced);
  int64_t v = std::min(vec, most);
  // Narrow tiles: shrink the run of a lane until every lane has work. The
  // chains of an ordered sum are all that lanes may share of its axis.
  int64_t elements = 1;
  for (auto [d, extent] : llvm::enumerate(shape))
    elements *= reduced.ordered && reduced.extent && reduced.axis == int64_t(d)
                    ? std::min(extent, reduced.extent)
                    : extent;
  while (v > leastVec && elements < v * kWarpLanes * numWarps)
    v /= 2;
  TileLayout l = blockedLayout(shape, v, kWarpLanes, numWarps, reduced);
  // Sums down the columns begin in registers.
  bool down =
      sumRows > 1 && reduced.extent && reduced.axis + 1 < int64_t(shape.size());
  return down ? lowestFirst(l, reduced.axis) : l;
}

std::optional<TileLayout> LayoutRules::turned(quant::TransposeOp op) const {
  int64_t block = simd ? 0 : combinedRun(op);
  if (!block)
    return std::nullopt;
  // What words of 16-bit elements hold before goes to one lane.
  TileLayout l =
      lowestFirst(widest(op.getType().getShape(), {1, block, false}), 0);
  return transposed(contiguousFirst(transposed(l)));
}

TileLayout LayoutRules::gathered(int64_t parts, int64_t sums) const {
  int64_t v = 4;
  while (v > 1 && sums < v * kWarpLanes * numWarps)
    v /= 2;
  if (parts > kMostParts)
    return lowestFirst(
        blockedLayout({parts, sums}, v, kWarpLanes, numWarps, {0, parts, true}),
        0);
  TileLayout l = blockedLayout({1, sums}, v, kWarpLanes, numWarps, {});
  for (; l.base[0] < parts; l.base[0] *= 2)
    l.reg.push_back({l.base[0], 0});
  return l;
}

TileLayout LayoutRules::reducible(Operation *op) const {
  auto shape = cast<RankedTensorType>(op->getOperand(0).getType()).getShape();
  if (auto reduce = dyn_cast<quant::ReduceOp>(op))
    return widest(shape,
                  {int64_t(reduce.getAxis()), reduce.getNumChains(), true});
  auto blocks = cast<quant::BlockReduceOp>(op);
  std::optional<int64_t> axis = blockAxis(blocks);
  if (!axis)
    return widest(shape, {});
  return widest(shape, {*axis, blocks.getBlock()[*axis], false});
}

TileLayout LayoutRules::transformable(quant::HadamardOp op) const {
  return widest(op.getType().getShape(),
                {int64_t(op.getAxis()), int64_t(op.getSize()), false});
}

std::optional<int64_t> LayoutRules::blockAxis(quant::BlockReduceOp op) {
  std::optional<int64_t> axis;
  for (auto [d, extent] : llvm::enumerate(op.getBlock()))
    if (extent > 1) {
      if (axis)
        return std::nullopt;
      axis = d;
    }
  if (!axis && !op.getBlock().empty())
    axis = op.getBlock().size() - 1;
  return axis;
}

/// Whether elements of `v`, or what is made of each of them, become columns.
static bool isTurned(Value v) {
  SetVector<Value> made;
  made.insert(v);
  for (size_t i = 0; i < made.size(); ++i)
    for (Operation *user : made[i].getUsers()) {
      if (isa<quant::TransposeOp>(user))
        return true;
      if (user->hasTrait<OpTrait::Elementwise>() && user->getNumResults() == 1)
        made.insert(user->getResult(0));
    }
  return false;
}

bool LayoutRules::isAnchor(quant::LoadOp load) const {
  auto type = cast<RankedTensorType>(load.getResult().getType());
  if (type.getRank() != 2 || type.getNumElements() == 1)
    return false;
  // What one loop of a kernel leaves for the next follows its users, if that
  // does not turn rows to columns.
  return !load.getMemref().getDefiningOp<quant::ScratchOp>() ||
         llvm::all_of(type.getShape(),
                      [](int64_t extent) { return extent >= kSimdLanes; }) ||
         (simd && type.getDimSize(0) > 1 && type.getDimSize(1) > 1 &&
          isTurned(load.getResult()));
}

std::optional<TileLayout> LayoutRules::inOrder(const TileLayout &have,
                                               int64_t bits) {
  int64_t rank = have.rank(), last = rank - 1, group = 32 / bits;
  auto step = [&](int64_t by) { return layout::stepAlong(rank, last, by); };
  if (rank == 0)
    return std::nullopt;
  for (auto [i, image] : llvm::enumerate(have.lane))
    if (image != step(int64_t(1) << i))
      return std::nullopt;
  TileLayout codes = have;
  codes.reg.clear();
  codes.lane.clear();
  for (int64_t by = 1; by < group; by *= 2)
    codes.reg.push_back(step(by));
  for (int64_t by = group; by < group * kSimdLanes; by *= 2)
    codes.lane.push_back(step(by));
  // What a word has now were registers.
  int64_t found = 0;
  for (const Coord &image : have.reg)
    if (image[last] >= kSimdLanes && image[last] < group * kSimdLanes)
      ++found;
    else
      codes.reg.push_back(image);
  return found == llvm::Log2_64(group) ? std::optional(codes) : std::nullopt;
}

quant::ScaleEncodeOp LayoutRules::encodedInOrder(quant::ConvertLayoutOp op) {
  auto encode = op.getSource().getDefiningOp<quant::ScaleEncodeOp>();
  if (!encode || !encode.getFinite())
    return {};
  int64_t bits = quant::storageBits(encode.getType().getElementType());
  std::optional<TileLayout> codes =
      inOrder(*layoutOf(op.getSource().getType()), bits);
  return codes && codes == layoutOf(op.getType()) ? encode
                                                  : quant::ScaleEncodeOp();
}

TileLayout LayoutRules::storage(Operation *op, const TileLayout &have) const {
  auto store = dyn_cast<quant::StoreOp>(op);
  auto scatter = dyn_cast<quant::ScatterOp>(op);
  if (!(store || scatter) || have.rank() == 0)
    return have;
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  int64_t bits = quant::storageBits(type.getElementType()),
          last = have.rank() - 1;
  auto scratch = store ? store.getMemref().getDefiningOp<quant::ScratchOp>()
                       : quant::ScratchOp();
  if (type.getShape()[last] == 1 || (scratch && scratch.getPairs()))
    return have;
  int64_t k = have.contiguousBits();
  // Do neighbouring lanes continue where a lane stops? `lanes` are the images
  // of lane bits in the order that they must continue in.
  auto continues = [&](ArrayRef<Coord> lanes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Coord want(have.rank(), 0);
      want[last] = int64_t(1) << (k + i);
      if (want[last] < std::min(have.base[last], type.getShape()[last]) &&
          (i >= lanes.size() || lanes[i] != want))
        return false;
    }
    return true;
  };
  bool whole = (bits << k) >= 8;
  if (simd) {
    auto encode = op->getOperand(0).getDefiningOp<quant::ScaleEncodeOp>();
    if (encode && encode.getFinite() && vec == 1)
      if (std::optional<TileLayout> codes = inOrder(have, bits))
        return *codes;
    bool good = whole && (continues(have.lane, 2) || (bits << k) >= 64);
    return good ? have
                : blockedLayout(type.getShape(), bits < 8 ? 2 : 1, kSimdLanes,
                                /*warps=*/1, {});
  }
  // Lanes that hold copies store nothing, and the lanes of a whole sector may
  // be in any order.
  SmallVector<Coord> lanes;
  for (const Coord &c : have.lane)
    if (llvm::any_of(c, [](int64_t v) { return v != 0; }))
      lanes.push_back(c);
  // Those that hold what registers did (ReduceStep::exchange) step over all
  // others, and part no neighbours.
  auto stepsOver = [&](const Coord &first) {
    auto isNearer = [&](const Coord &c) { return c[last] < first[last]; };
    return llvm::all_of(ArrayRef(lanes).drop_front(), isNearer) &&
           llvm::all_of(have.warp, isNearer);
  };
  while (lanes.size() > 1 && stepsOver(lanes.front()))
    lanes.erase(lanes.begin());
  bool good = whole && (continues(lanes, 1) || (bits << k) >= 128);
  // Columns change lanes as words, and may as well become wide ones.
  if (!good && whole && turnedRows == 1) {
    llvm::sort(lanes);
    good = continues(lanes, llvm::Log2_64_Ceil(kSectorBits / (bits << k)));
  }
  if (good)
    return have;
  int64_t v = std::max<int64_t>(1, 128 / bits), least = bits < 8 ? 2 : 1;
  while (v > least && type.getNumElements() < v * kWarpLanes * numWarps)
    v /= 2;
  return blockedLayout(type.getShape(), v, kWarpLanes, numWarps, {});
}

std::optional<ReducePlan> LayoutRules::plan(Operation *op,
                                            const TileLayout &given) const {
  TileLayout in = given;
  int64_t axis, extent;
  bool full = false, ordered = false, blockSum = false;
  if (auto reduce = dyn_cast<quant::ReduceOp>(op)) {
    axis = reduce.getAxis();
    extent = in.base[axis];
    full = true;
    ordered = reduce.getKind() == quant::ReduceKind::sum;
    int64_t chains = reduce.getNumChains();
    // The chain of a canonical sum is one fragment, no more and no less.
    if (ordered && in.repeats[axis] > 1 && extent != chains)
      return std::nullopt;
    if (ordered && extent > chains)
      return std::nullopt;
  } else {
    auto blocks = cast<quant::BlockReduceOp>(op);
    std::optional<int64_t> along = blockAxis(blocks);
    if (!along)
      return std::nullopt;
    axis = *along;
    extent = blocks.getBlock()[axis];
    // Sums have an order, which is that of places, not of who has them.
    ordered = blockSum = blocks.getKind() == quant::ReduceKind::sum;
    if (blockSum && !placeBits(in, axis, extent))
      return std::nullopt;
  }
  int64_t laneSteps = 0;
  for (const Coord &c : in.lane)
    laneSteps += (c[axis] & (extent - 1)) != 0;
  // On the GPU an exchange saves shuffles only if there are several, because
  // the result has to travel back. What follows from the maxima of blocks is
  // computed once, too, for all lanes that have a part of them.
  bool exchanges = full ? laneSteps >= 3 : blockSum || laneSteps > 0;
  if (!simd && !full && !blockSum && exchanges)
    in = foldedRepeats(in);
  Exchange exchange = simd        ? Exchange::Rotate
                      : exchanges ? Exchange::Shuffle
                                  : Exchange::None;
  auto plan = planReduce(in, axis, extent, full, ordered, exchange);
  return plan ? std::optional(std::move(*plan)) : std::nullopt;
}

void LayoutRules::broadcastGroups(Operation *op,
                                  SmallVectorImpl<int64_t> &shift,
                                  SmallVectorImpl<bool> &full) {
  auto out = cast<RankedTensorType>(op->getResult(0).getType());
  shift.assign(out.getRank(), 0);
  full.assign(out.getRank(), false);
  if (auto block = dyn_cast<quant::BlockBroadcastOp>(op)) {
    for (auto [d, extent] : llvm::enumerate(block.getBlock()))
      shift[d] = llvm::Log2_64(extent);
    return;
  }
  auto in = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  for (int64_t d = 0; d < out.getRank(); ++d)
    full[d] = !in || in.getRank() == 0 || in.getDimSize(d) != out.getDimSize(d);
}

TileLayout LayoutRules::broadcastOperand(Operation *op,
                                         const TileLayout &out) const {
  SmallVector<int64_t> shift;
  SmallVector<bool> full;
  broadcastGroups(op, shift, full);
  TileLayout operand = sliced(out, shift, full);
  auto in = cast<RankedTensorType>(op->getOperand(0).getType());
  if (in.getRank() == out.rank())
    return operand;
  // Rank 0: every lane and warp holds the one element.
  TileLayout scalar;
  scalar.lane.assign(out.lane.size(), {});
  scalar.warp.assign(out.warp.size(), {});
  return scalar;
}

/// Error at the first operation with a tile that is none of those `isFine`.
static LogicalResult checkTiles(func::FuncOp kernel, StringRef message,
                                function_ref<bool(RankedTensorType)> isFine) {
  WalkResult found = kernel.walk([&](Operation *op) {
    for (Value v : op->getResults())
      if (auto tile = dyn_cast<RankedTensorType>(v.getType());
          tile && !isFine(tile)) {
        op->emitOpError(message);
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

LogicalResult checkLayouts(func::FuncOp kernel) {
  return checkTiles(
      kernel, "has a tile without a layout, expected dither-assign-layouts",
      [](RankedTensorType tile) {
        return isa_and_nonnull<quant::LayoutAttr>(tile.getEncoding());
      });
}

LogicalResult checkElements(func::FuncOp kernel) {
  constexpr int64_t most = int64_t(1) << 62;
  return checkTiles(kernel, "has a tile of more than 2^62 elements",
                    [](RankedTensorType tile) {
                      int64_t elements = 1;
                      for (int64_t extent : tile.getShape())
                        if (llvm::MulOverflow(elements, extent, elements) ||
                            elements > most)
                          return false;
                      return true;
                    });
}

} // namespace dither::transforms
