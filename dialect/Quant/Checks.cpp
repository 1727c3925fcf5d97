//===- Checks.cpp - Messages and rules shared by the verifiers ------------===//

#include "Checks.h"

using namespace mlir;

namespace dither::quant {

LogicalResult Where::fail(const Twine &message) const {
  if (op)
    return op->emitOpError(message);
  return emitOptionalError(loc, "'" + name + "' op " + message);
}

template <typename T> static std::string printed(T t) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << t;
  return text;
}
std::string str(Type type) { return "'" + printed(type) + "'"; }
std::string str(Attribute attr) { return printed(attr); }

std::string str(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [d, extent] : llvm::enumerate(shape)) {
    text += d ? ", " : "";
    text += ShapedType::isDynamic(extent) ? "?" : std::to_string(extent);
  }
  return text + "]";
}

FailureOr<RankedTensorType> tensorType(Where where, Value value, StringRef what,
                                       std::optional<int64_t> rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return where.fail(what + " is " + str(value.getType()) +
                      ", expected a ranked tensor");
  if (rank && type.getRank() != *rank)
    return where.fail(what + " has rank " + Twine(type.getRank()) +
                      ", expected " + Twine(*rank));
  return type;
}

LogicalResult checkCluster(Where where, int64_t blocks) {
  if (blocks == 2 || blocks == 4 || blocks == 8)
    return success();
  return where.fail("found a cluster of " + Twine(blocks) +
                    " blocks, expected 2, 4 or 8");
}

LogicalResult checkAxis(Where where, IntegerAttr axis, ArrayRef<int64_t> shape,
                        StringRef name) {
  if (!axis)
    return where.fail("has no attribute '" + name + "'");
  int64_t rank = shape.size();
  if (rank == 0)
    return where.fail(name + " " + Twine(axis.getInt()) +
                      " of a tensor of rank 0, expected rank 1 or more");
  if (axis.getInt() < 0 || axis.getInt() >= rank)
    return where.fail(name + " " + Twine(axis.getInt()) +
                      " is out of range, expected 0 to " + Twine(rank - 1) +
                      " for a tensor of rank " + Twine(rank));
  return success();
}

LogicalResult checkType(Where where, Value value, StringRef what,
                        ArrayRef<int64_t> shape, Type elem) {
  FailureOr<RankedTensorType> type = tensorType(where, value, what);
  if (failed(type))
    return failure();
  if (type->getElementType() != elem)
    return where.fail(what + " has element type " +
                      str(type->getElementType()) + ", expected " + str(elem));
  if (type->getShape() != shape)
    return where.fail(what + " has shape " + str(type->getShape()) +
                      ", expected " + str(shape));
  return success();
}

LogicalResult checkResults(Operation *op, const FailureOr<Types> &expected,
                           ArrayRef<StringRef> names) {
  if (failed(expected))
    return failure();
  for (auto [result, type, name] :
       llvm::zip(op->getResults(), *expected, names)) {
    auto tensor = cast<RankedTensorType>(type);
    if (failed(checkType(op, result, name, tensor.getShape(),
                         tensor.getElementType())))
      return failure();
  }
  return success();
}

LogicalResult checkCount(Where where, std::optional<int64_t> count,
                         int64_t extent, int64_t axis) {
  if (extent == 0)
    return where.fail("dimension " + Twine(axis) +
                      " is empty, expected an element to reduce");
  if (!count)
    return success();
  if (ShapedType::isDynamic(extent) && *count < 1)
    return where.fail("count is " + Twine(*count) + ", expected at least 1");
  if (*count < 1 || (!ShapedType::isDynamic(extent) && *count > extent))
    return where.fail("count is " + Twine(*count) + ", expected 1 to " +
                      Twine(extent) + ", the extent of dimension " +
                      Twine(axis));
  return success();
}

bool isScaleByte(Type elem) {
  return isa<Float8E4M3FNType, Float8E8M0FNUType>(elem);
}

bool sameButForLayout(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = dyn_cast<RankedTensorType>(x), t = dyn_cast<RankedTensorType>(y);
    if (s && t ? s.getShape() != t.getShape() ||
                     s.getElementType() != t.getElementType()
               : x != y)
      return false;
  }
  return true;
}

} // namespace dither::quant
