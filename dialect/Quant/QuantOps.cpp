//===- QuantOps.cpp - Programs and memory ---------------------------------===//
//
// The definitions of all operations, and the verifiers of those that touch
// memory. The others: QuantTileOps.cpp, QuantScaleOps.cpp, QuantWordOps.cpp.
// Labels such as ME1 name the constraints of Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include <algorithm>
#include <limits>

using namespace mlir;
using namespace dither::quant;

#define GET_OP_CLASSES
#include "dither/Dialect/Quant/QuantOps.cpp.inc"

namespace dither::quant {

Value viewed(Value memref) {
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (!seen.insert(view).second)
      break;
    memref = view.getViewSource();
  }
  return memref;
}

/// Scratch memory of pairs is read and written 32 columns at a time: ME8.
static LogicalResult checkPairs(Where where, RankedTensorType tile,
                                Value memref, ValueRange indices) {
  constexpr int64_t columns = 32;
  auto scratch = viewed(memref).getDefiningOp<ScratchOp>();
  if (!scratch || !scratch.getPairs() || indices.empty())
    return success();
  APInt first;
  bool known = matchPattern(indices.back(), m_ConstantInt(&first));
  int64_t extent = tile.getShape().back();
  if (extent % columns == 0 && (!known || first.srem(columns) == 0))
    return success();
  return where.fail(
      "accesses " + Twine(extent) + " columns" +
      (known ? " from " + std::to_string(first.getSExtValue()) : "") +
      " of scratch memory in pairs, expected multiples of " + Twine(columns));
}

/// A tile at `indices` of a memref: ME1 to ME8.
static LogicalResult checkMemory(Operation *op, RankedTensorType tile,
                                 Value buffer, ValueRange indices) {
  Where where(op);
  auto memref = cast<MemRefType>(buffer.getType());
  if (tile.getRank() > 2)
    return where.fail("tile has rank " + Twine(tile.getRank()) +
                      ", expected at most 2");
  if (tile.getRank() != memref.getRank())
    return where.fail("tile has rank " + Twine(tile.getRank()) + ", expected " +
                      Twine(memref.getRank()) + ", the rank of the memref");
  if (int64_t(indices.size()) != memref.getRank())
    return where.fail("found " + Twine(indices.size()) + " indices, expected " +
                      Twine(memref.getRank()) + ", the rank of the memref");
  if (tile.getElementType() != memref.getElementType())
    return where.fail("tile has element type " + str(tile.getElementType()) +
                      ", expected " + str(memref.getElementType()) +
                      ", that of the memref");
  if (!isMemoryElement(tile.getElementType())) // ME9
    return where.fail("tile has element type " + str(tile.getElementType()) +
                      ", expected 4, 8, 16 or 32 bits, or i64");
  if (!tile.hasStaticShape())
    return where.fail("tile has shape " + str(tile.getShape()) +
                      ", expected a static shape");
  if (llvm::is_contained(tile.getShape(), 0))
    return where.fail("tile has shape " + str(tile.getShape()) +
                      ", expected no empty dimension");
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return where.fail("memref has layout " +
                      str(Attribute(memref.getLayout())) +
                      ", expected strides");
  if (!strides.empty() && strides.back() != 1)
    return where.fail("memref has stride " +
                      (ShapedType::isDynamic(strides.back())
                           ? "?"
                           : std::to_string(strides.back())) +
                      " along its last dimension, expected 1");
  return checkPairs(where, tile, buffer, indices);
}

LogicalResult ScratchOp::verify() {
  Where where(*this);
  auto type = cast<MemRefType>(getResult().getType());
  Type elem = type.getElementType();
  if (!type.hasStaticShape()) // SC1
    return where.fail("memory has shape " + str(type.getShape()) +
                      ", expected a static shape");
  if (!type.getLayout().isIdentity() || type.getMemorySpace()) // SC2
    return where.fail("memory is of type " + str(Type(type)) +
                      ", expected no layout and no memory space");
  if (!isMemoryElement(elem)) // SC3
    return where.fail("memory has elements of type " + str(elem) +
                      ", expected 4, 8, 16 or 32 bits, or i64");
  int64_t bits = storageBits(elem),
          columns = type.getRank() ? type.getShape().back() : 0;
  if (bits == 4 && columns % 2) // SC4
    return where.fail("memory has rows of " + Twine(columns) +
                      " four-bit elements, expected whole bytes");
  if (getPairs() && (bits != 32 || type.getRank() == 0)) // SC5
    return where.fail("pairs in memory of type " + str(Type(type)) +
                      ", expected columns of 32 bits");
  if (!scratchBytes(type.getShape(), elem)) // SC6
    return where.fail("memory has shape " + str(type.getShape()) +
                      ", expected 1 to " + Twine(kMostScratchBytes) + " bytes");
  return success();
}

static FailureOr<Types> resultTypes(ViewOp::Adaptor op, Where where) {
  auto memref = dyn_cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || failed(memref.getStridesAndOffset(strides, offset))) // VI1
    return where.fail("memref is of type " + str(op.getMemref().getType()) +
                      ", expected a ranked one with strides");
  if (!op.getDimsAttr())
    return where.fail("has no attribute 'dims'");
  ArrayRef<int64_t> dims = op.getDims();
  int64_t rank = memref.getRank();
  bool ascending = !dims.empty() && dims.size() <= 2 && dims.front() >= 0 &&
                   dims.back() == rank - 1 &&
                   (dims.size() == 1 || dims.front() < dims.back());
  if (!ascending) // VI2
    return where.fail("dims are " + str(dims) +
                      ", expected one or two dimensions in their order, the "
                      "last one " +
                      Twine(rank - 1));
  if (int64_t(op.getIndices().size() + dims.size()) != rank) // VI3
    return where.fail(
        "found " + Twine(op.getIndices().size()) + " indices, expected " +
        Twine(rank - int64_t(dims.size())) + ", one for each other dimension");
  SmallVector<int64_t> shape, steps;
  for (int64_t d : dims) {
    shape.push_back(memref.getDimSize(d));
    steps.push_back(strides[d]);
  }
  if (int64_t(dims.size()) < rank)
    shape.front() = ShapedType::kDynamic;
  return Types{
      MemRefType::get(shape, memref.getElementType(),
                      StridedLayoutAttr::get(memref.getContext(), 0, steps),
                      memref.getMemorySpace())};
}
DITHER_INFER(ViewOp, 1)

LogicalResult ViewOp::verify() {
  FailureOr<Types> expected = resultTypes(Adaptor(*this), Where(*this));
  if (failed(expected))
    return failure();
  if (getResult().getType() != expected->front()) // VI4
    return Where(*this).fail("result is of type " + str(getResult().getType()) +
                             ", expected " + str(expected->front()));
  return success();
}

static FailureOr<Types> resultTypes(SliceOp::Adaptor op, Where where) {
  auto memref = dyn_cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || failed(memref.getStridesAndOffset(strides, offset))) // PT1
    return where.fail("memref is of type " + str(op.getMemref().getType()) +
                      ", expected a ranked one with strides");
  if (!op.getDimAttr())
    return where.fail("has no attribute 'dim'");
  int64_t dim = op.getDim(), rank = memref.getRank();
  if (dim < 0 || dim >= rank) // PT2
    return where.fail("dim is " + Twine(dim) + ", expected one of the " +
                      Twine(rank) + " dimensions of the memref");
  if (dim == rank - 1 && storageBits(memref.getElementType()) == 4) // PT3
    return where.fail("dim is " + Twine(dim) +
                      ", along which four-bit elements share bytes, expected "
                      "another one");
  SmallVector<int64_t> shape(memref.getShape());
  shape[dim] = ShapedType::kDynamic;
  return Types{
      MemRefType::get(shape, memref.getElementType(),
                      StridedLayoutAttr::get(memref.getContext(), 0, strides),
                      memref.getMemorySpace())};
}
DITHER_INFER(SliceOp, 3)

LogicalResult SliceOp::verify() {
  FailureOr<Types> expected = resultTypes(Adaptor(*this), Where(*this));
  if (failed(expected))
    return failure();
  if (getResult().getType() != expected->front()) // PT4
    return Where(*this).fail("result is of type " + str(getResult().getType()) +
                             ", expected " + str(expected->front()));
  return success();
}

static FailureOr<Types> resultTypes(ClusterPartOp::Adaptor op, Where where) {
  auto memref = dyn_cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || memref.getRank() == 0 ||
      failed(memref.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1) // CP1
    return where.fail("memref is of type " + str(op.getMemref().getType()) +
                      ", expected columns of stride 1");
  if (!op.getRunAttr() || !op.getBlocksAttr())
    return where.fail("has no attributes 'run' and 'blocks'");
  int64_t run = op.getRun(), blocks = op.getBlocks();
  constexpr int64_t kMostRun = int64_t(1) << 30;
  if (run < 2 || run > kMostRun || !llvm::isPowerOf2_64(run)) // CP2
    return where.fail("run is " + Twine(run) +
                      ", expected a power of two from 2 to " + Twine(kMostRun));
  if (failed(checkCluster(where, blocks))) // CP3
    return failure();
  SmallVector<int64_t> shape(memref.getShape());
  int64_t &columns = shape.back();
  if (!ShapedType::isDynamic(columns))
    columns =
        columns % (run * blocks) ? ShapedType::kDynamic : columns / blocks;
  return Types{
      MemRefType::get(shape, memref.getElementType(),
                      StridedLayoutAttr::get(memref.getContext(), 0, strides),
                      memref.getMemorySpace())};
}
DITHER_INFER(ClusterPartOp, 1)

LogicalResult ClusterPartOp::verify() {
  FailureOr<Types> expected = resultTypes(Adaptor(*this), Where(*this));
  if (failed(expected))
    return failure();
  if (getResult().getType() != expected->front()) // CP4
    return Where(*this).fail("result is of type " + str(getResult().getType()) +
                             ", expected " + str(expected->front()));
  return success();
}

LogicalResult MatrixOp::verify() {
  Where where(*this);
  auto memref = dyn_cast<MemRefType>(getMemref().getType());
  auto result = dyn_cast<MemRefType>(getResult().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || memref.getRank() != 1 ||
      failed(memref.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1) // MX1
    return where.fail("memref is of type " + str(getMemref().getType()) +
                      ", expected rank 1 and stride 1");
  int64_t columns = result && result.getRank() == 2 ? result.getDimSize(1)
                                                    : ShapedType::kDynamic;
  bool isStatic = !ShapedType::isDynamic(columns);
  // Rows of four-bit elements are whole bytes.
  int64_t step = isStatic && storageBits(memref.getElementType()) == 4
                     ? columns + columns % 2
                     : columns;
  auto expected =
      MemRefType::get({ShapedType::kDynamic, columns}, memref.getElementType(),
                      StridedLayoutAttr::get(getContext(), 0, {step, 1}),
                      memref.getMemorySpace());
  if (getResult().getType() != expected) // MX2
    return where.fail("result is of type " + str(getResult().getType()) +
                      ", expected " + str(Type(expected)));
  if (isStatic == bool(getCols())) // MX3
    return where.fail(Twine(isStatic ? "has" : "has no") + " cols, expected " +
                      (isStatic ? "none" : "them") + ": the result has " +
                      (isStatic ? Twine(columns) : Twine("?")) + " columns");
  return success();
}

LogicalResult LoadOp::verify() {
  return checkMemory(*this, getResult().getType(), getMemref(), getIndices());
}

LogicalResult PrefetchOp::verify() {
  Where where(*this);
  auto memref = cast<MemRefType>(getMemref().getType());
  int64_t rank = memref.getRank();
  if (rank != 1 && rank != 2) // PF1
    return where.fail("memref has rank " + Twine(rank) + ", expected 1 or 2");
  if (int64_t(getIndices().size()) != rank) // PF2
    return where.fail("has " + Twine(getIndices().size()) +
                      " indices, expected " + Twine(rank) +
                      ", the rank of the memref");
  if (int64_t(getShape().size()) != rank ||
      llvm::any_of(getShape(), [](int64_t n) { return n < 1; })) // PF3
    return where.fail("shape is " + str(getShape()) + ", expected " +
                      Twine(rank) + " extents of 1 or more");
  // Each line of the rows is asked for by itself.
  constexpr int64_t kMostPrefetched = int64_t(1) << 20;
  int64_t elements = 1;
  for (int64_t extent : getShape())
    if (llvm::MulOverflow(elements, extent, elements) ||
        elements > kMostPrefetched) // PF4
      return where.fail("shape is " + str(getShape()) + ", expected at most " +
                        Twine(kMostPrefetched) + " elements");
  return success();
}

void StoreOp::build(OpBuilder &b, OperationState &state, Value tile,
                    Value memref, ValueRange indices) {
  build(b, state, tile, memref, indices, ValueRange(), ScaleLayout::linear,
        /*in_bounds=*/false, /*stream=*/false, /*async=*/false, /*once=*/false,
        /*total=*/IntegerAttr());
}

int64_t paddedRows(ScaleLayout order) {
  switch (order) {
  case ScaleLayout::linear:
    return 1;
  case ScaleLayout::swizzle_128x4:
    return 128;
  case ScaleLayout::swizzle_8x4:
    return 8;
  case ScaleLayout::packed_column_major:
    return 4;
  }
  llvm_unreachable("an order of scales");
}

bool isSliced(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<SliceOp, MatrixOp>(view))
      return true;
    memref = view.getViewSource();
  }
  return false;
}

SmallVector<int64_t> knownInside(Value memref, ValueRange indices,
                                 ArrayRef<int64_t> shape) {
  auto type = cast<MemRefType>(memref.getType());
  size_t lead = indices.size() - shape.size();
  SmallVector<int64_t> inside(shape);
  for (auto [d, size] : llvm::enumerate(inside)) {
    std::optional<int64_t> at = getConstantIntValue(indices[lead + d]);
    if (at && !type.isDynamicDim(lead + d))
      size = std::clamp<int64_t>(type.getDimSize(lead + d) - *at, 0, size);
  }
  return inside;
}

template <typename OpTy> static bool isInside(OpTy op, Value tile) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
  return op.getInBounds() &&
         ArrayRef(knownInside(op.getMemref(), op.getIndices(), shape)) == shape;
}

bool isInside(LoadOp load) { return isInside(load, load.getResult()); }
bool isInside(StoreOp store) { return isInside(store, store.getTile()); }

LogicalResult TileIdOp::verify() {
  int64_t count = getCount();
  if (count < 2 || count > 64 || !llvm::isPowerOf2_64(count)) // TI1
    return Where(*this).fail("found " + Twine(count) +
                             " tiles, expected a power of two from 2 to 64");
  return success();
}

LogicalResult StoreOp::verify() {
  Where where(*this);
  auto memref = cast<MemRefType>(getMemref().getType());
  RankedTensorType tile = getTile().getType();
  if (failed(checkMemory(*this, tile, getMemref(), getIndices())))
    return failure();
  // ST1
  if (!getValid().empty() && int64_t(getValid().size()) != memref.getRank())
    return where.fail("found " + Twine(getValid().size()) +
                      " valid extents, expected " + Twine(memref.getRank()) +
                      ", the rank of the memref");
  if (getAsync() && !viewed(getMemref()).getDefiningOp<ScratchOp>()) // ST9
    return where.fail("async to memory of the kernel's arguments, expected "
                      "scratch memory");
  if (getOnce() && tile.getRank() != 0) // ST7
    return where.fail("once of a tile of rank " + Twine(tile.getRank()) +
                      ", expected rank 0");
  if (getTotal()) { // ST8
    constexpr int64_t kMostTotals = 64;
    if (int64_t(*getTotal()) < 0 || int64_t(*getTotal()) >= kMostTotals)
      return where.fail("found total " + Twine(int64_t(*getTotal())) +
                        ", expected 0 to " + Twine(kMostTotals - 1));
    if (!tile.getElementType().isF32() || getOnce() || !getValid().empty() ||
        getScaleLayout() != ScaleLayout::linear)
      return where.fail("total of a tile of " + str(tile.getElementType()) +
                        ", expected f32, in linear order, without 'once' "
                        "and 'valid'");
  }
  if (getScaleLayout() == ScaleLayout::linear)
    return success();
  // ST2 to ST4, ST6
  std::string order = stringifyScaleLayout(getScaleLayout()).str();
  if (tile.getRank() != 2)
    return where.fail(Twine(order) + " of a tile of rank " +
                      Twine(tile.getRank()) + ", expected rank 2");
  Type elem = tile.getElementType();
  if (getScaleLayout() == ScaleLayout::packed_column_major) {
    if (!isa<Float8E8M0FNUType>(elem))
      return where.fail(Twine(order) + " of a tile of " + str(elem) +
                        ", expected f8E8M0FNU");
  } else if (!isScaleByte(elem)) {
    return where.fail(Twine(order) + " of a tile of " + str(elem) +
                      ", expected f8E4M3FN or f8E8M0FNU");
  }
  const int64_t block[2] = {paddedRows(getScaleLayout()), 4};
  for (int64_t d = 0; d < 2; ++d)
    if (!memref.isDynamicDim(d) && memref.getDimSize(d) % block[d])
      return where.fail(Twine(order) + " into dimension " + Twine(d) +
                        " of extent " + Twine(memref.getDimSize(d)) +
                        " of the memref, expected a multiple of " +
                        Twine(block[d]));
  return success();
}

/// A row of the tile for each element of `rows`: GS1.
static LogicalResult checkRows(Operation *op, RankedTensorType tile,
                               Value memref, Value rows, Value column) {
  if (failed(checkMemory(op, tile, memref, {rows, column})))
    return failure();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(rows.getType()).getShape();
  if (shape != ArrayRef<int64_t>{tile.getDimSize(0), 1})
    return Where(op).fail("rows have shape " + str(shape) + ", expected [" +
                          Twine(tile.getDimSize(0)) +
                          ", 1], one for each row of the tile");
  return success();
}

LogicalResult GatherOp::verify() {
  return checkRows(*this, getResult().getType(), getMemref(), getRows(),
                   getColumn());
}

LogicalResult ScatterOp::verify() {
  return checkRows(*this, getTile().getType(), getMemref(), getRows(),
                   getColumn());
}

LogicalResult AtomicMaxOp::verify() {
  return checkMemory(*this, getTile().getType(), getMemref(), getIndices());
}

LogicalResult AtomicAddOp::verify() {
  return checkMemory(*this, getTile().getType(), getMemref(), getIndices());
}

/// An operation that writes what the memref is a view of, or a view of that.
static Operation *writerOf(Value memref) {
  llvm::SetVector<Value> views;
  views.insert(viewed(memref));
  for (size_t i = 0; i < views.size(); ++i) {
    Value one = views[i];
    for (Operation *user : one.getUsers()) {
      if (hasEffect<MemoryEffects::Write>(user, one))
        return user;
      if (auto view = dyn_cast<ViewLikeOpInterface>(user))
        views.insert(view.getViewDest());
    }
  }
  return nullptr;
}

/// Loads have no order among writes: LN2. The number is an element: LN3, LN4.
LogicalResult LoadScalarOp::verify() {
  Type elem = getMemref().getType().getElementType();
  int64_t rank = getMemref().getType().getRank();
  if (int64_t(getIndices().size()) != rank)
    return Where(*this).fail("found " + Twine(getIndices().size()) +
                             " indices, expected " + Twine(rank) +
                             ", the rank of the memref");
  if (getResult().getType() != elem)
    return Where(*this).fail("result has type " + str(getResult().getType()) +
                             ", expected " + str(elem));
  if (Operation *writer = writerOf(getMemref()))
    return Where(*this).fail("memref is written by " +
                             writer->getName().getStringRef() +
                             ", expected one that is only read");
  return success();
}

/// Within a program nothing orders other accesses of a counter: FA2.
LogicalResult FetchAddOp::verify() {
  for (Operation *user : getMemref().getUsers())
    if (!isa<FetchAddOp>(user))
      return Where(*this).fail("counter is used by " +
                               user->getName().getStringRef() +
                               ", expected quant.fetch_add alone");
  return success();
}

} // namespace dither::quant
