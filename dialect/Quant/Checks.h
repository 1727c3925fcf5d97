//===- Checks.h - Messages and rules shared by the verifiers ----*- C++ -*-===//
//
// Shape inference runs before the verifier and on whatever a builder was given;
// the verifier runs on whatever was parsed. Both call the same rules, so
// nothing here trusts a rank, an extent or an attribute. Labels such as BS1 are
// those of Semantics.md.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_CHECKS_H
#define DITHER_DIALECT_QUANT_CHECKS_H

#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::quant {

using Shape = llvm::SmallVector<int64_t>;
using Types = llvm::SmallVector<mlir::Type, 2>;

/// Where an error is reported: at an operation, or, while its result types are
/// inferred, at a location (nowhere if there is none).
class Where {
public:
  Where(mlir::Operation *op) : op(op) {}
  Where(mlir::OpState op) : op(op) {}
  Where(std::optional<mlir::Location> loc, llvm::StringRef name)
      : loc(loc), name(name) {}
  /// Emits "'quant.x' op " and the message; always failure.
  mlir::LogicalResult fail(const llvm::Twine &message) const;

private:
  mlir::Operation *op = nullptr;
  std::optional<mlir::Location> loc;
  llvm::StringRef name;
};

/// For messages: a type, an attribute, and a shape as "[4, ?]".
std::string str(mlir::Type type);
std::string str(mlir::Attribute attr);
std::string str(llvm::ArrayRef<int64_t> shape);

/// The tensor type of `value`; fails if it has none or another rank. `what`
/// names the operand.
mlir::FailureOr<mlir::RankedTensorType>
tensorType(Where where, mlir::Value value, llvm::StringRef what,
           std::optional<int64_t> rank = std::nullopt);

/// `axis` (an attribute that may be missing) is a dimension of `shape`.
mlir::LogicalResult checkAxis(Where where, mlir::IntegerAttr axis,
                              llvm::ArrayRef<int64_t> shape,
                              llvm::StringRef name = "axis");

/// `value` has this element type and shape; encodings are not compared.
mlir::LogicalResult checkType(Where where, mlir::Value value,
                              llvm::StringRef what,
                              llvm::ArrayRef<int64_t> shape, mlir::Type elem);

/// The results of `op` are `expected`, but for their encodings. `names` are the
/// names of the results.
mlir::LogicalResult checkResults(mlir::Operation *op,
                                 const mlir::FailureOr<Types> &expected,
                                 llvm::ArrayRef<llvm::StringRef> names);

/// `count` elements (if given) of a dimension of `extent` take part in a
/// reduction, and there is one.
mlir::LogicalResult checkCount(Where where, std::optional<int64_t> count,
                               int64_t extent, int64_t axis);

/// A cluster has 2, 4 or 8 `blocks`: no more on every GPU that has clusters
/// (CUDA programming guide, Thread Block Clusters).
mlir::LogicalResult checkCluster(Where where, int64_t blocks);

/// Whether a scale of this type is a byte, which the 128x4 order is made of.
bool isScaleByte(mlir::Type elem);

/// Body of inferReturnTypes of `Op`: `resultTypes` is looked up by its adaptor.
/// `required` is the number of operands that are not optional.
template <typename Op>
mlir::LogicalResult infer(size_t required, std::optional<mlir::Location> loc,
                          mlir::ValueRange operands, mlir::DictionaryAttr attrs,
                          mlir::OpaqueProperties properties,
                          mlir::RegionRange regions,
                          llvm::SmallVectorImpl<mlir::Type> &types) {
  Where where(loc, Op::getOperationName());
  if (operands.size() < required)
    return where.fail("has " + llvm::Twine(operands.size()) +
                      " operands, expected at least " + llvm::Twine(required));
  typename Op::Adaptor adaptor(operands, attrs, properties, regions);
  mlir::FailureOr<Types> results = resultTypes(adaptor, where);
  if (failed(results))
    return mlir::failure();
  types.append(*results);
  return mlir::success();
}

/// The results of `op` are those that inference gives, but for their encodings.
template <typename Op>
mlir::LogicalResult checkInferred(Op op,
                                  llvm::ArrayRef<llvm::StringRef> names) {
  return checkResults(op, resultTypes(typename Op::Adaptor(op), Where(op)),
                      names);
}

#define DITHER_INFER(OP, REQUIRED)                                             \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *, std::optional<Location> loc, ValueRange operands,         \
      DictionaryAttr attrs, OpaqueProperties properties, RegionRange regions,  \
      SmallVectorImpl<Type> &types) {                                          \
    return infer<OP>(REQUIRED, loc, operands, attrs, properties, regions,      \
                     types);                                                   \
  }

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_CHECKS_H
