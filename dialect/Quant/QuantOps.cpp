//===- QuantOps.cpp - Verification and shape inference --------------------===//
//
// The shape of every result is computed in one place, used by inference (the
// Python builder) and by the verifiers. Labels such as block_scale_c1 name the
// constraints of Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dither::quant;

#define GET_OP_CLASSES
#include "dither/Dialect/Quant/QuantOps.cpp.inc"

namespace dither::quant {

namespace {
using Shape = SmallVector<int64_t>;

RankedTensorType tensorOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

LogicalResult fail(std::optional<Location> loc, const Twine &message) {
  return emitOptionalError(loc, message);
}

/// Shape of the scales of `source` along `axis`: block_scale_c1, c2.
FailureOr<Shape> scaleShape(std::optional<Location> loc,
                            ArrayRef<int64_t> source, int64_t axis,
                            FormatAttr format) {
  Shape shape(source);
  int64_t rank = source.size();
  if (axis < 0 || axis >= rank)
    return fail(loc, "axis " + Twine(axis) +
                         " is out of range, expected 0 to " + Twine(rank - 1) +
                         " for a tensor of rank " + Twine(rank));
  if (ShapedType::isDynamic(shape[axis]))
    return shape;
  int64_t block = format.getBlock();
  if (shape[axis] % block)
    return fail(loc, "block of " + Twine(block) +
                         " does not divide dimension " + Twine(axis) +
                         " of extent " + Twine(shape[axis]) +
                         ", expected a multiple of " + Twine(block));
  shape[axis] /= block;
  return shape;
}

LogicalResult checkType(Operation *op, Value v, StringRef what,
                        ArrayRef<int64_t> shape, Type elem) {
  auto type = tensorOf(v);
  if (type.getElementType() != elem)
    return op->emitOpError(what)
           << " has element type " << type.getElementType() << ", expected "
           << elem;
  if (type.getShape() == shape)
    return success();
  InFlightDiagnostic diag = op->emitOpError(what) << " has shape [";
  llvm::interleaveComma(type.getShape(), diag);
  diag << "], expected [";
  llvm::interleaveComma(shape, diag);
  return diag << "]";
}

LogicalResult checkAmax(Operation *op, Value amax, FormatAttr format) {
  if (format.getTensorScale() && !amax)
    return op->emitOpError("format ")
           << format.getName()
           << " has a tensor scale, expected a tensor_amax operand";
  if (!format.getTensorScale() && amax)
    return op->emitOpError("format ")
           << format.getName()
           << " has no tensor scale, found a tensor_amax operand";
  if (amax && tensorOf(amax).getRank() != 0)
    return op->emitOpError("tensor_amax has rank ")
           << tensorOf(amax).getRank() << ", expected a rank-0 tensor";
  return success();
}

LogicalResult inferTensor(SmallVectorImpl<Type> &types, ArrayRef<int64_t> shape,
                          Type elem) {
  types.push_back(RankedTensorType::get(shape, elem));
  return success();
}

LogicalResult checkMemory(Operation *op, RankedTensorType tile,
                          MemRefType memref, size_t indices) {
  if (tile.getRank() > 2)
    return op->emitOpError("tile has rank ")
           << tile.getRank() << ", expected at most 2";
  if (tile.getRank() != memref.getRank())
    return op->emitOpError("tile has rank ")
           << tile.getRank() << " but the memref has rank " << memref.getRank();
  if (int64_t(indices) != memref.getRank())
    return op->emitOpError("found ")
           << indices << " indices, expected " << memref.getRank();
  if (tile.getElementType() != memref.getElementType())
    return op->emitOpError("tile has element type ")
           << tile.getElementType() << " but the memref has "
           << memref.getElementType();
  if (!tile.hasStaticShape())
    return op->emitOpError(
        "tile has a dynamic dimension, expected a static shape");
  return success();
}

LogicalResult checkBlock(Operation *op, ArrayRef<int64_t> block, int64_t rank) {
  if (int64_t(block.size()) != rank)
    return op->emitOpError("block has ")
           << block.size() << " extents, expected " << rank;
  for (int64_t extent : block)
    if (extent <= 0 || !llvm::isPowerOf2_64(extent))
      return op->emitOpError("block extent ")
             << extent << " is not a positive power of two";
  return success();
}
} // namespace

//===----------------------------------------------------------------------===//
// Programs and memory
//===----------------------------------------------------------------------===//

LogicalResult LoadOp::verify() {
  return checkMemory(*this, tensorOf(getResult()),
                     cast<MemRefType>(getMemref().getType()),
                     getIndices().size());
}

void StoreOp::build(OpBuilder &b, OperationState &state, Value tile,
                    Value memref, ValueRange indices) {
  build(b, state, tile, memref, indices, ValueRange());
}

LogicalResult StoreOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  auto tile = tensorOf(getTile());
  if (failed(checkMemory(*this, tile, memref, getIndices().size())))
    return failure();
  if (!getValid().empty() && int64_t(getValid().size()) != memref.getRank())
    return emitOpError("found ")
           << getValid().size() << " valid extents, expected "
           << memref.getRank();
  if (getScaleLayout() == ScaleLayout::swizzle_128x4) {
    if (tile.getRank() != 2)
      return emitOpError("swizzle_128x4 of a tile of rank ")
             << tile.getRank() << ", expected rank 2";
    if (tile.getElementTypeBitWidth() != 8)
      return emitOpError("swizzle_128x4 of ")
             << tile.getElementType() << ", expected a one-byte scale";
  }
  return success();
}

LogicalResult AtomicMaxOp::verify() {
  return checkMemory(*this, tensorOf(getTile()),
                     cast<MemRefType>(getMemref().getType()),
                     getIndices().size());
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  auto out = tensorOf(getResult());
  auto in = dyn_cast<RankedTensorType>(getSource().getType());
  Type elem = in ? in.getElementType() : getSource().getType();
  if (elem != out.getElementType())
    return emitOpError("source has element type ")
           << elem << ", expected " << out.getElementType();
  if (!in || in.getRank() == 0)
    return success();
  if (in.getRank() != out.getRank())
    return emitOpError("source has rank ")
           << in.getRank() << ", expected 0 or " << out.getRank();
  for (int64_t d = 0; d < in.getRank(); ++d)
    if (in.getDimSize(d) != out.getDimSize(d) && in.getDimSize(d) != 1)
      return emitOpError("dimension ")
             << d << " of the source is " << in.getDimSize(d)
             << ", expected 1 or " << out.getDimSize(d);
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto in = tensorOf(getSource()), out = tensorOf(getResult());
  auto strip = [](RankedTensorType t) {
    Shape s;
    llvm::copy_if(t.getShape(), std::back_inserter(s),
                  [](int64_t n) { return n != 1; });
    return s;
  };
  if (in.getElementType() != out.getElementType())
    return emitOpError("changes the element type from ")
           << in.getElementType() << " to " << out.getElementType();
  if (strip(in) != strip(out))
    return emitOpError("from ")
           << in << " to " << out
           << ", expected to insert or drop unit dimensions only";
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  auto in = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!in || in.getRank() != 2)
    return fail(loc, "transpose of a value that is no tile of rank 2");
  return inferTensor(types, {in.getDimSize(1), in.getDimSize(0)},
                     in.getElementType());
}

/// Inferred types never carry a layout; given ones may.
static bool compatible(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = dyn_cast<RankedTensorType>(x), t = dyn_cast<RankedTensorType>(y);
    if (!s || !t) {
      if (x != y)
        return false;
      continue;
    }
    if (s.getShape() != t.getShape() ||
        s.getElementType() != t.getElementType())
      return false;
  }
  return true;
}
#define COMPATIBLE(OP)                                                         \
  bool OP::isCompatibleReturnTypes(TypeRange a, TypeRange b) {                 \
    return compatible(a, b);                                                   \
  }
COMPATIBLE(TransposeOp)
COMPATIBLE(ReduceOp)
COMPATIBLE(BlockReduceOp)
COMPATIBLE(BlockBroadcastOp)
COMPATIBLE(BlockScaleOp)
COMPATIBLE(CastFp4Op)
COMPATIBLE(CastFp8Op)
COMPATIBLE(DequantizeOp)
COMPATIBLE(RmsNormOp)
COMPATIBLE(SwizzleScalesOp)
#undef COMPATIBLE

LogicalResult TransposeOp::verify() { return success(); }

LogicalResult IotaOp::verify() {
  int64_t rank = tensorOf(getResult()).getRank(), dim = getDim();
  if (dim < 0 || dim >= rank)
    return emitOpError("dim ") << dim << " is out of range for rank " << rank;
  return success();
}

LogicalResult
ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                           ValueRange operands, DictionaryAttr attrs,
                           OpaqueProperties properties, RegionRange regions,
                           SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attrs, properties, regions);
  auto in = cast<RankedTensorType>(operands[0].getType());
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= in.getRank())
    return fail(loc, "axis " + Twine(axis) + " is out of range for rank " +
                         Twine(in.getRank()));
  Shape shape(in.getShape());
  shape[axis] = 1;
  return inferTensor(types, shape, in.getElementType());
}

/// `count` elements of a dimension of `extent` take part.
static LogicalResult checkCount(Operation *op, std::optional<int64_t> count,
                                int64_t extent) {
  if (count &&
      (*count < 1 || (!ShapedType::isDynamic(extent) && *count > extent)))
    return op->emitOpError("count is ")
           << *count << ", expected 1 to " << extent
           << ", the extent of the reduced dimension";
  return success();
}

int64_t ReduceOp::getExtent() {
  return getCount().value_or(tensorOf(getSource()).getDimSize(getAxis()));
}

LogicalResult ReduceOp::verify() {
  return checkCount(*this, getCount(),
                    tensorOf(getSource()).getDimSize(getAxis()));
}

LogicalResult BlockReduceOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> loc, ValueRange operands,
    DictionaryAttr attrs, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attrs, properties, regions);
  auto in = cast<RankedTensorType>(operands[0].getType());
  Shape shape(in.getShape());
  ArrayRef<int64_t> block = adaptor.getBlock();
  if (block.size() != shape.size())
    return fail(loc, "block has " + Twine(block.size()) +
                         " extents, expected " + Twine(shape.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (block[d] <= 0 ||
        (!ShapedType::isDynamic(shape[d]) && shape[d] % block[d]))
      return fail(loc, "block of " + Twine(block[d]) +
                           " does not divide dimension " + Twine(d) +
                           " of extent " + Twine(shape[d]));
    if (!ShapedType::isDynamic(shape[d]))
      shape[d] /= block[d];
  }
  return inferTensor(types, shape, in.getElementType());
}
LogicalResult BlockReduceOp::verify() {
  if (getKind() == ReduceKind::sum)
    return emitOpError(
        "kind sum, expected max, min or amax: block sums have no "
        "canonical order");
  return checkBlock(*this, getBlock(), tensorOf(getSource()).getRank());
}

LogicalResult BlockBroadcastOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> loc, ValueRange operands,
    DictionaryAttr attrs, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attrs, properties, regions);
  auto in = cast<RankedTensorType>(operands[0].getType());
  Shape shape(in.getShape());
  ArrayRef<int64_t> block = adaptor.getBlock();
  if (block.size() != shape.size())
    return fail(loc, "block has " + Twine(block.size()) +
                         " extents, expected " + Twine(shape.size()));
  for (size_t d = 0; d < shape.size(); ++d)
    if (!ShapedType::isDynamic(shape[d]))
      shape[d] *= block[d];
  return inferTensor(types, shape, in.getElementType());
}
LogicalResult BlockBroadcastOp::verify() {
  return checkBlock(*this, getBlock(), tensorOf(getSource()).getRank());
}

LogicalResult EncodeOp::verify() {
  bool e8m0 = isa<Float8E8M0FNUType>(tensorOf(getResult()).getElementType());
  if (e8m0 && !getMode())
    return emitOpError("to f8E8M0FNU without a mode, expected rceil or floor");
  if (!e8m0 && getMode())
    return emitOpError("mode is for f8E8M0FNU only, found ")
           << tensorOf(getResult()).getElementType();
  return success();
}

//===----------------------------------------------------------------------===//
// Scales, casts, norms
//===----------------------------------------------------------------------===//

LogicalResult
BlockScaleOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                               ValueRange operands, DictionaryAttr attrs,
                               OpaqueProperties properties, RegionRange regions,
                               SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attrs, properties, regions);
  auto in = cast<RankedTensorType>(operands[0].getType());
  FailureOr<Shape> shape =
      scaleShape(loc, in.getShape(), adaptor.getAxis(), adaptor.getFormat());
  if (failed(shape))
    return failure();
  return inferTensor(types, *shape, adaptor.getFormat().getScale());
}

LogicalResult BlockScaleOp::verify() {
  return checkAmax(*this, getTensorAmax(), getFormat());
}

template <typename Op>
static LogicalResult verifyScaled(Op op, Value wide, Value narrow,
                                  Value scale) {
  FormatAttr format = op.getFormat();
  FailureOr<Shape> shape =
      scaleShape(op.getLoc(), tensorOf(wide).getShape(), op.getAxis(), format);
  if (failed(shape) ||
      failed(checkType(op, scale, "scale", *shape, format.getScale())) ||
      failed(checkType(op, narrow, "codes", tensorOf(wide).getShape(),
                       format.getElem())))
    return failure();
  return checkAmax(op, op.getTensorAmax(), format);
}

template <typename Adaptor>
static LogicalResult inferCast(Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto in = cast<RankedTensorType>(adaptor.getSource().getType());
  return inferTensor(types, in.getShape(), adaptor.getFormat().getElem());
}

LogicalResult
CastFp4Op::inferReturnTypes(MLIRContext *, std::optional<Location>,
                            ValueRange operands, DictionaryAttr attrs,
                            OpaqueProperties properties, RegionRange regions,
                            SmallVectorImpl<Type> &types) {
  return inferCast(Adaptor(operands, attrs, properties, regions), types);
}
LogicalResult CastFp4Op::verify() {
  if (!isa<Float4E2M1FNType>(getFormat().getElem()))
    return emitOpError("format ")
           << getFormat().getName() << " has elements of type "
           << getFormat().getElem() << ", expected f4E2M1FN";
  return verifyScaled(*this, getSource(), getResult(), getScale());
}

LogicalResult
CastFp8Op::inferReturnTypes(MLIRContext *, std::optional<Location>,
                            ValueRange operands, DictionaryAttr attrs,
                            OpaqueProperties properties, RegionRange regions,
                            SmallVectorImpl<Type> &types) {
  return inferCast(Adaptor(operands, attrs, properties, regions), types);
}
LogicalResult CastFp8Op::verify() {
  if (getFormat().getElem().getIntOrFloatBitWidth() != 8)
    return emitOpError("format ")
           << getFormat().getName() << " has elements of type "
           << getFormat().getElem() << ", expected an 8-bit type";
  return verifyScaled(*this, getSource(), getResult(), getScale());
}

LogicalResult DequantizeOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location>,
                                             ValueRange operands,
                                             DictionaryAttr, OpaqueProperties,
                                             RegionRange,
                                             SmallVectorImpl<Type> &types) {
  auto in = cast<RankedTensorType>(operands[0].getType());
  return inferTensor(types, in.getShape(), Float32Type::get(context));
}
LogicalResult DequantizeOp::verify() {
  return verifyScaled(*this, getResult(), getSource(), getScale());
}

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> loc,
                                          ValueRange operands, DictionaryAttr,
                                          OpaqueProperties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  auto in = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!in || in.getRank() != 2)
    return fail(loc, "rms_norm of a value that is no tile of rank 2");
  Type f32 = Float32Type::get(context);
  types.push_back(RankedTensorType::get(in.getShape(), f32));
  types.push_back(RankedTensorType::get({in.getDimSize(0), 1}, f32));
  return success();
}
LogicalResult RmsNormOp::verify() {
  auto x = tensorOf(getSource()), gamma = tensorOf(getGamma());
  if (gamma.getRank() != 1 || gamma.getDimSize(0) != x.getDimSize(1)) {
    InFlightDiagnostic diag = emitOpError("gamma has shape [");
    llvm::interleaveComma(gamma.getShape(), diag);
    return diag << "], expected [" << x.getDimSize(1) << "]";
  }
  return checkCount(*this, getCount(), x.getDimSize(1));
}

LogicalResult SwizzleScalesOp::inferReturnTypes(MLIRContext *,
                                                std::optional<Location> loc,
                                                ValueRange operands,
                                                DictionaryAttr,
                                                OpaqueProperties, RegionRange,
                                                SmallVectorImpl<Type> &types) {
  auto in = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!in || in.getRank() != 2)
    return fail(loc, "swizzle_scales of a value that is no tensor of rank 2");
  Shape shape(in.getShape());
  int64_t tile[2] = {128, 4};
  for (int d = 0; d < 2; ++d)
    if (!ShapedType::isDynamic(shape[d]))
      shape[d] = llvm::alignTo(shape[d], tile[d]);
  return inferTensor(types, shape, in.getElementType());
}
LogicalResult SwizzleScalesOp::verify() {
  if (tensorOf(getSource()).getElementTypeBitWidth() != 8)
    return emitOpError("source has element type ")
           << tensorOf(getSource()).getElementType()
           << ", expected a one-byte scale";
  return success();
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

static LogicalResult checkWords(Operation *op, VectorType regs,
                                VectorType words, int64_t bits, int64_t group) {
  if (group <= 0 || bits * group > 32 || !llvm::isPowerOf2_64(group))
    return op->emitOpError("group ")
           << group << " of " << bits << "-bit codes does not fit a word";
  if (regs.getRank() != words.getRank() ||
      regs.getShape().drop_front() != words.getShape().drop_front() ||
      regs.getDimSize(0) != words.getDimSize(0) * group)
    return op->emitOpError("registers ")
           << regs << " and words " << words << " do not match group " << group;
  return success();
}

LogicalResult EncodeWordsOp::verify() {
  if (!getElem().isIntOrFloat())
    return emitOpError("elem is ") << getElem() << ", expected a narrow type";
  return checkWords(*this, cast<VectorType>(getSource().getType()),
                    cast<VectorType>(getResult().getType()),
                    getElem().getIntOrFloatBitWidth(), getGroup());
}
LogicalResult DecodeWordsOp::verify() {
  if (!getElem().isIntOrFloat())
    return emitOpError("elem is ") << getElem() << ", expected a narrow type";
  return checkWords(*this, cast<VectorType>(getResult().getType()),
                    cast<VectorType>(getSource().getType()),
                    getElem().getIntOrFloatBitWidth(), getGroup());
}
LogicalResult E8M0InverseWordsOp::verify() {
  return checkWords(*this, cast<VectorType>(getResult().getType()),
                    cast<VectorType>(getSource().getType()), 8, getGroup());
}

} // namespace dither::quant
