//===- QuantTileOps.cpp - Shapes, reductions, conversions -----------------===//
//
// Verification and shape inference. The shape of every result is computed in
// one place, used by both. Labels such as RE1 name the constraints of
// Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Numerics/ReductionOrder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::quant {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  Where where(*this);
  RankedTensorType out = getResult().getType();
  auto in = dyn_cast<RankedTensorType>(getSource().getType());
  Type elem = in ? in.getElementType() : getSource().getType();
  // BC1 to BC3
  if (elem != out.getElementType())
    return where.fail("source has element type " + str(elem) + ", expected " +
                      str(out.getElementType()) + ", that of the result");
  if (!in || in.getRank() == 0)
    return success();
  if (in.getRank() != out.getRank())
    return where.fail("source has rank " + Twine(in.getRank()) +
                      ", expected 0 or " + Twine(out.getRank()) +
                      ", the rank of the result");
  for (int64_t d = 0; d < in.getRank(); ++d)
    if (in.getDimSize(d) != out.getDimSize(d) && in.getDimSize(d) != 1)
      return where.fail(
          "source has shape " + str(in.getShape()) + ", expected dimension " +
          Twine(d) + " to be 1 or that of the result, " + str(out.getShape()));
  return success();
}

LogicalResult ReshapeOp::verify() {
  Where where(*this);
  RankedTensorType in = getSource().getType(), out = getResult().getType();
  auto strip = [](RankedTensorType t) {
    Shape s;
    llvm::copy_if(t.getShape(), std::back_inserter(s),
                  [](int64_t n) { return n != 1; });
    return s;
  };
  // RS1, RS2
  if (in.getElementType() != out.getElementType())
    return where.fail("source has element type " + str(in.getElementType()) +
                      ", expected " + str(out.getElementType()) +
                      ", that of the result");
  if (strip(in) != strip(out))
    return where.fail("source has shape " + str(in.getShape()) +
                      " and the result " + str(out.getShape()) +
                      ", expected them to differ in unit dimensions only");
  return success();
}

static FailureOr<Types> resultTypes(TransposeOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> in =
      tensorType(where, op.getSource(), "source", 2); // TR1
  if (failed(in))
    return failure();
  return Types{RankedTensorType::get({in->getDimSize(1), in->getDimSize(0)},
                                     in->getElementType())};
}
DITHER_INFER(TransposeOp, 1)

LogicalResult TransposeOp::verify() { return checkInferred(*this, {"result"}); }

/// Results have the type of the first operand.
#define DITHER_INFER_ELEMENTWISE(Op, OPERANDS)                                 \
  static FailureOr<Types> resultTypes(Op::Adaptor op, Where) {                 \
    return Types{op.getOperands().front().getType()};                          \
  }                                                                            \
  DITHER_INFER(Op, OPERANDS)
DITHER_INFER_ELEMENTWISE(ExpOp, 1)
DITHER_INFER_ELEMENTWISE(Exp2Op, 1)
DITHER_INFER_ELEMENTWISE(LogOp, 1)
DITHER_INFER_ELEMENTWISE(Log2Op, 1)
DITHER_INFER_ELEMENTWISE(TanhOp, 1)
DITHER_INFER_ELEMENTWISE(SigmoidOp, 1)
DITHER_INFER_ELEMENTWISE(ErfOp, 1)
DITHER_INFER_ELEMENTWISE(SinOp, 1)
DITHER_INFER_ELEMENTWISE(CosOp, 1)
DITHER_INFER_ELEMENTWISE(MulhiOp, 2)
DITHER_INFER_ELEMENTWISE(FmaTowardZeroOp, 3)
#undef DITHER_INFER_ELEMENTWISE

LogicalResult IotaOp::verify() {
  Where where(*this);
  RankedTensorType type = getResult().getType();
  // IO1, IO2
  if (!type.hasStaticShape())
    return where.fail("result has shape " + str(type.getShape()) +
                      ", expected a static shape");
  return checkAxis(where, getDimAttr(), type.getShape(), "dim");
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static FailureOr<Types> resultTypes(ReduceOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, op.getSource(), "source");
  if (failed(in) || failed(checkAxis(where, op.getAxisAttr(), in->getShape())))
    return failure(); // RE1
  Shape shape(in->getShape());
  shape[op.getAxis()] = 1;
  return Types{RankedTensorType::get(shape, in->getElementType())};
}
DITHER_INFER(ReduceOp, 1)

int64_t ReduceOp::getExtent() {
  return getCount().value_or(getSource().getType().getDimSize(getAxis()));
}

int64_t ReduceOp::getNumChains() {
  if (getTree())
    return getExtent();
  return getChains() ? getChains() : numerics::sumChains(getExtent());
}

LogicalResult ReduceOp::verify() {
  if (failed(checkInferred(*this, {"result"})))
    return failure();
  int64_t extent = getSource().getType().getDimSize(getAxis());
  if (failed(checkCount(*this, getCount(), extent, getAxis()))) // RE2, RE3
    return failure();
  Where where(*this);
  if ((getChains() || getTree()) && ShapedType::isDynamic(extent)) // RE12
    return where.fail("chains or a tree of ? elements, expected a number that "
                      "is known");
  if (int64_t chains = getChains()) {
    if (getKind() != ReduceKind::sum || getCount() || getTree()) // RE10
      return where.fail("chains of a reduction of kind " +
                        stringifyReduceKind(getKind()) +
                        ", or with a count or a tree, expected a sum of all "
                        "elements");
    if (!llvm::isPowerOf2_64(chains) || chains > numerics::kMaxSumChains ||
        extent % chains) // RE11
      return where.fail("found " + Twine(chains) + " chains of " +
                        Twine(extent) +
                        " elements, expected a power of two up to " +
                        Twine(numerics::kMaxSumChains) + " that divides them");
  }
  if (!getTree())
    return success();
  if (getKind() != ReduceKind::sum) // RE7
    return where.fail("tree of a reduction of kind " +
                      stringifyReduceKind(getKind()) + ", expected sum");
  if (getCount()) // RE8
    return where.fail("tree with a count, expected all elements");
  if (!llvm::isPowerOf2_64(extent) || extent > numerics::kMaxSumChains) // RE9
    return where.fail("tree of " + Twine(extent) +
                      " elements, expected a power of two up to " +
                      Twine(numerics::kMaxSumChains));
  return success();
}

static FailureOr<Types> resultTypes(ClusterReduceOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> type =
      tensorType(where, op.getSource(), "source");
  if (failed(type))
    return failure();
  if (!type->hasStaticShape()) // CR1
    return where.fail("source has shape " + str(type->getShape()) +
                      ", expected a static shape");
  if (!op.getBlocksAttr())
    return where.fail("has no attribute 'blocks'");
  if (failed(checkCluster(where, op.getBlocks()))) // CR2
    return failure();
  return Types{*type};
}
DITHER_INFER(ClusterReduceOp, 1)

LogicalResult ClusterReduceOp::verify() {
  return checkInferred(*this, {"result"});
}

/// One positive power of two for each dimension: BL1, BL2.
static LogicalResult checkBlock(Where where, DenseI64ArrayAttr block,
                                int64_t rank) {
  if (!block)
    return where.fail("has no attribute 'block'");
  if (block.size() != rank)
    return where.fail("block has " + Twine(block.size()) +
                      " extents, expected " + Twine(rank) +
                      ", the rank of the source");
  for (int64_t extent : block.asArrayRef())
    if (extent <= 0 || !llvm::isPowerOf2_64(extent))
      return where.fail("block extent is " + Twine(extent) +
                        ", expected a positive power of two");
  return success();
}

static FailureOr<Types> resultTypes(BlockReduceOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, op.getSource(), "source");
  if (failed(in) || failed(checkBlock(where, op.getBlockAttr(), in->getRank())))
    return failure();
  Shape shape(in->getShape());
  for (auto [d, extent] : llvm::enumerate(op.getBlock())) {
    if (ShapedType::isDynamic(shape[d]))
      continue;
    if (shape[d] % extent) // BR1
      return where.fail("block of " + Twine(extent) +
                        " does not divide dimension " + Twine(d) +
                        " of extent " + Twine(shape[d]) + " of the source");
    shape[d] /= extent;
  }
  return Types{RankedTensorType::get(shape, in->getElementType())};
}
DITHER_INFER(BlockReduceOp, 1)

LogicalResult BlockReduceOp::verify() {
  if (getKind() == ReduceKind::sum && // BR2
      llvm::count_if(getBlock(), [](int64_t n) { return n != 1; }) > 1)
    return Where(*this).fail("kind is sum of blocks of " + str(getBlock()) +
                             ", expected one extent above 1");
  if (getHalves() && getKind() != ReduceKind::sum) // BR5
    return Where(*this).fail("halves of kind " +
                             stringifyReduceKind(getKind()) + ", expected sum");
  if (getAmaxBits() && getKind() != ReduceKind::amax) // BR4
    return Where(*this).fail("amax_bits of kind " +
                             stringifyReduceKind(getKind()) +
                             ", expected amax");
  return checkInferred(*this, {"result"});
}

static FailureOr<Types> resultTypes(BlockBroadcastOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> in = tensorType(where, op.getSource(), "source");
  if (failed(in) || failed(checkBlock(where, op.getBlockAttr(), in->getRank())))
    return failure();
  Shape shape(in->getShape());
  for (auto [d, extent] : llvm::enumerate(op.getBlock()))
    if (!ShapedType::isDynamic(shape[d]) &&
        llvm::MulOverflow(shape[d], extent, shape[d])) // BB1
      return where.fail("block of " + Twine(extent) + " makes dimension " +
                        Twine(d) + " larger than an index");
  return Types{RankedTensorType::get(shape, in->getElementType())};
}
DITHER_INFER(BlockBroadcastOp, 1)

LogicalResult BlockBroadcastOp::verify() {
  return checkInferred(*this, {"result"});
}

static FailureOr<Types> resultTypes(HadamardOp::Adaptor op, Where where) {
  FailureOr<RankedTensorType> type =
      tensorType(where, op.getSource(), "source");
  if (failed(type))
    return failure();
  if (!op.getAxisAttr() || !op.getSizeAttr())
    return where.fail("has no attribute 'axis' or 'size'");
  int64_t axis = op.getAxis(), size = op.getSize();
  if (axis < 0 || axis >= type->getRank()) // HD1
    return where.fail("axis is " + Twine(axis) + ", expected 0 to " +
                      Twine(type->getRank() - 1));
  if (size < 2 || size > 128 || !llvm::isPowerOf2_64(size)) // HD2
    return where.fail("size is " + Twine(size) +
                      ", expected a power of two from 2 to 128");
  if (!type->isDynamicDim(axis) && type->getDimSize(axis) % size) // HD3
    return where.fail("dimension " + Twine(axis) + " has extent " +
                      Twine(type->getDimSize(axis)) +
                      ", expected a multiple of " + Twine(size));
  return Types{RankedTensorType::get(type->getShape(), type->getElementType())};
}
DITHER_INFER(HadamardOp, 1)

LogicalResult HadamardOp::verify() { return checkInferred(*this, {"result"}); }

//===----------------------------------------------------------------------===//
// Elementwise conversions
//===----------------------------------------------------------------------===//

/// Lanes convert what they hold: EL1.
static LogicalResult checkSameLayout(Operation *op) {
  auto layoutOf = [](Value v) {
    return cast<RankedTensorType>(v.getType()).getEncoding();
  };
  Attribute in = layoutOf(op->getOperand(0)), out = layoutOf(op->getResult(0));
  if (in && out && in != out)
    return Where(op).fail("source has layout " + str(in) + " and the result " +
                          str(out) + ", expected the same");
  return success();
}

LogicalResult EncodeOp::verify() {
  Type elem = getResult().getType().getElementType();
  bool e8m0 = isa<Float8E8M0FNUType>(elem);
  // EN1, EN2
  if (e8m0 && !getMode())
    return Where(*this).fail(
        "has no mode, expected rceil or floor for f8E8M0FNU");
  if (!e8m0 && getMode())
    return Where(*this).fail("has mode " + stringifyE8M0Mode(*getMode()) +
                             " for " + str(elem) +
                             ", expected a mode for f8E8M0FNU only");
  return checkSameLayout(*this);
}

static FailureOr<Types> resultTypes(StochasticRoundOp::Adaptor op,
                                    Where where) {
  FailureOr<RankedTensorType> type =
      tensorType(where, op.getSource(), "source");
  if (failed(type))
    return failure();
  return Types{RankedTensorType::get(type->getShape(), type->getElementType())};
}
DITHER_INFER(StochasticRoundOp, 2)

LogicalResult StochasticRoundOp::verify() {
  if (!codeFormat(getElem())) // SR1
    return Where(*this).fail("elem is " + str(getElem()) + ", expected " +
                             listTypes(isCodeFormat));
  if (failed(checkInferred(*this, {"result"})))
    return failure();
  return checkType(*this, getRandom(), "random", // SR2
                   getSource().getType().getShape(),
                   IntegerType::get(getContext(), 32));
}

LogicalResult ScaleEncodeOp::verify() {
  if (getBounded() && !getFinite()) // SE3
    return Where(*this).fail("is bounded, expected it to be finite, too");
  if (getPowers() && !getBounded()) // SE4
    return Where(*this).fail("has powers, expected it to be bounded, too");
  return checkSameLayout(*this);
}

LogicalResult DecodeOp::verify() { return checkSameLayout(*this); }
LogicalResult E8M0InverseOp::verify() { return checkSameLayout(*this); }

/// CL2, CL3: an order of shared memory comes with the width of both accesses.
LogicalResult ConvertLayoutOp::verify() {
  std::optional<ArrayRef<int64_t>> vec = getSharedVec();
  if (getShared().has_value() != vec.has_value())
    return emitOpError("has ") << (vec ? "shared_vec" : "shared") << " only, "
                               << "expected shared and shared_vec together";
  if (!vec)
    return success();
  if (vec->size() != 2)
    return emitOpError("shared_vec has ")
           << vec->size() << " entries, expected 2 (store and load)";
  for (int64_t n : *vec)
    if (n != 1 && n != 2 && n != 4)
      return emitOpError("shared_vec has a width of ")
             << n << " units, expected 1, 2 or 4";
  return success();
}

} // namespace dither::quant
