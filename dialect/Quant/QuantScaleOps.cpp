//===- QuantScaleOps.cpp - Block scaling, casts, orders of scales ---------===//
//
// Verification and shape inference. Labels such as BS1 name the constraints of
// Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

namespace dither::quant {

//===----------------------------------------------------------------------===//
// Rules of all operations that have a format
//===----------------------------------------------------------------------===//

/// Shape of the scales of `source` along `axis`: BS1, BS2, BS8.
static FailureOr<Shape> scaleShape(Where where, ArrayRef<int64_t> source,
                                   IntegerAttr axis, FormatAttr format) {
  if (failed(checkAxis(where, axis, source)))
    return failure();
  if (source.size() > 2) // BS9
    return where.fail("source has rank " + Twine(source.size()) +
                      ", expected rank 1 or 2");
  if (source.size() < 2 && format.getBlockRows() != 1) // BS8
    return where.fail("source has rank " + Twine(source.size()) +
                      ", expected rank 2 for format " + format.describe());
  Shape shape(source);
  Shape blocks = format.getBlockExtents(axis.getInt(), source.size());
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (ShapedType::isDynamic(blocks[d])) {
      extent = 1;
      continue;
    }
    if (ShapedType::isDynamic(extent))
      continue;
    if (extent % blocks[d])
      return where.fail("block of " + Twine(blocks[d]) +
                        " does not divide dimension " + Twine(d) +
                        " of extent " + Twine(extent) +
                        ", expected a multiple of " + Twine(blocks[d]));
    extent /= blocks[d];
  }
  return shape;
}

/// Formats with a tensor scale, and only those, take its amax, or that of each
/// row of blocks of `source`: BS3 to BS5.
static LogicalResult checkAmax(Where where, Value amax, FormatAttr format,
                               RankedTensorType source, int64_t axis) {
  if (format.getTensorScale() && !amax)
    return where.fail("format " + format.describe() +
                      " has a tensor scale, expected a tensor_amax operand");
  if (!format.getTensorScale() && amax)
    return where.fail("format " + format.describe() +
                      " has no tensor scale, found a tensor_amax operand");
  if (!amax)
    return success();
  auto type = cast<RankedTensorType>(amax.getType());
  if (type.getRank() == 0)
    return success();
  Shape rows(source.getShape());
  rows[axis] = 1;
  if (source.getRank() != 2 || format.getBlockRows() != 1 ||
      type.getShape() != ArrayRef<int64_t>(rows))
    return where.fail("tensor_amax has type " + str(type) +
                      ", expected rank 0, or for blocks of one row " +
                      str(ArrayRef<int64_t>(rows)));
  return success();
}

/// A tile of codes, or of what becomes them, has a scale for each block.
template <typename Op>
static LogicalResult checkScaled(Op op, RankedTensorType tile) {
  FormatAttr format = op.getFormat();
  Where where(op);
  FailureOr<Shape> scales =
      scaleShape(where, tile.getShape(), op.getAxisAttr(), format);
  if (failed(scales) || failed(checkType(where, op.getScale(), "scale", *scales,
                                         format.getScale())))
    return failure();
  return checkAmax(where, op.getTensorAmax(), format, tile, op.getAxis());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static FailureOr<Types> resultTypes(BlockScaleOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, op.getSource(), "source");
  if (failed(in))
    return failure();
  if (!op.getFormatAttr())
    return where.fail("has no attribute 'format'");
  FailureOr<Shape> shape =
      scaleShape(where, in->getShape(), op.getAxisAttr(), op.getFormat());
  if (failed(shape))
    return failure();
  return Types{RankedTensorType::get(*shape, op.getFormat().getScale())};
}
DITHER_INFER(BlockScaleOp, 1)

LogicalResult BlockScaleOp::verify() {
  if (failed(checkInferred(*this, {"scale"})))
    return failure();
  return checkAmax(*this, getTensorAmax(), getFormat(), getSource().getType(),
                   getAxis());
}

template <typename Adaptor>
static FailureOr<Types> castTypes(Adaptor op, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, op.getSource(), "source");
  if (failed(in))
    return failure();
  if (!op.getFormatAttr())
    return where.fail("has no attribute 'format'");
  return Types{RankedTensorType::get(in->getShape(), op.getFormat().getElem())};
}
static FailureOr<Types> resultTypes(CastFp4Op::Adaptor op, Where where) {
  return castTypes(op, where);
}
static FailureOr<Types> resultTypes(CastFp6Op::Adaptor op, Where where) {
  return castTypes(op, where);
}
static FailureOr<Types> resultTypes(CastFp8Op::Adaptor op, Where where) {
  return castTypes(op, where);
}
static FailureOr<Types> resultTypes(CastInt8Op::Adaptor op, Where where) {
  return castTypes(op, where);
}
DITHER_INFER(CastInt8Op, 2)
DITHER_INFER(CastFp4Op, 2)
DITHER_INFER(CastFp6Op, 2)
DITHER_INFER(CastFp8Op, 2)

/// CA1: the name of the operation says what the codes are.
template <typename Op>
static LogicalResult verifyCast(Op op, unsigned bits, bool integer = false) {
  FormatAttr format = op.getFormat();
  Type elem = format.getElem();
  if (elem.getIntOrFloatBitWidth() != bits || elem.isInteger() != integer)
    return Where(op).fail("format " + format.describe() + " has elements of " +
                          str(elem) + ", expected " +
                          (integer ? "integers" : "floats") + " of " +
                          Twine(bits) + " bits");
  if (failed(checkInferred(op, {"result"})))
    return failure();
  return checkScaled(op, op.getSource().getType());
}
LogicalResult CastFp4Op::verify() { return verifyCast(*this, 4); }
LogicalResult CastFp6Op::verify() { return verifyCast(*this, 6); }
LogicalResult CastInt8Op::verify() { return verifyCast(*this, 8, true); }
LogicalResult CastFp8Op::verify() { return verifyCast(*this, 8); }

/// f32 in the shape of the source.
template <typename Adaptor>
static FailureOr<Types> wideTypes(Adaptor op, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, op.getSource(), "source");
  if (failed(in))
    return failure();
  return Types{RankedTensorType::get(in->getShape(),
                                     Float32Type::get(in->getContext()))};
}

static FailureOr<Types> resultTypes(ScaleOp::Adaptor op, Where where) {
  return wideTypes(op, where);
}
DITHER_INFER(ScaleOp, 2)

LogicalResult ScaleOp::verify() {
  if (failed(checkInferred(*this, {"result"})))
    return failure();
  return checkScaled(*this, getSource().getType());
}

static FailureOr<Types> resultTypes(DequantizeOp::Adaptor op, Where where) {
  return wideTypes(op, where);
}
DITHER_INFER(DequantizeOp, 2)

LogicalResult DequantizeOp::verify() {
  RankedTensorType codes = getSource().getType();
  if (failed(checkType(*this, getSource(), "source", codes.getShape(), // DQ1
                       getFormat().getElem())) ||
      failed(checkInferred(*this, {"result"})))
    return failure();
  return checkScaled(*this, codes);
}

static FailureOr<Types> resultTypes(SwizzleScalesOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> in =
      tensorType(where, op.getSource(), "source", 2); // SW1
  if (failed(in))
    return failure();
  Shape shape(in->getShape());
  const int64_t tile[2] = {128, 4};
  for (int64_t d = 0; d < 2; ++d) {
    if (ShapedType::isDynamic(shape[d]))
      continue;
    if (shape[d] > std::numeric_limits<int64_t>::max() - tile[d]) // SW2
      return where.fail("dimension " + Twine(d) + " of extent " +
                        Twine(shape[d]) + " has no padded extent");
    shape[d] = llvm::alignTo(shape[d], tile[d]);
  }
  return Types{RankedTensorType::get(shape, in->getElementType())};
}
DITHER_INFER(SwizzleScalesOp, 1)

LogicalResult SwizzleScalesOp::verify() {
  Type elem = getSource().getType().getElementType();
  if (!isScaleByte(elem)) // SW3
    return Where(*this).fail("source has element type " + str(elem) +
                             ", expected f8E4M3FN or f8E8M0FNU");
  return checkInferred(*this, {"result"});
}

} // namespace dither::quant
