//===- QuantDialect.cpp - Registration ------------------------------------===//

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "dither/Dialect/Quant/QuantDialect.cpp.inc"
#include "dither/Dialect/Quant/QuantInterfaces.cpp.inc"

namespace dither::quant {

void QuantDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dither/Dialect/Quant/QuantOps.cpp.inc"
      >();
}

Operation *QuantDialect::materializeConstant(OpBuilder &builder,
                                             Attribute value, Type type,
                                             Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

} // namespace dither::quant
