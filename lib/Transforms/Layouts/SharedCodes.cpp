//===- SharedCodes.cpp - Codes of rows and columns, made once -------------===//
//
//   encode(x), encode(transpose(x))
//
// are the same codes in two orders: canonical quant IR has them so, because
// values change registers for free. Once there are codes of x, a lane of a GPU
// turns those in half an instruction an element and less, whatever encoding
// takes.
//
//===----------------------------------------------------------------------===//

#include "Layouts/SharedCodes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dither::transforms {

/// Codes of `x` as `like` encodes, in the block of `like`; null if there are
/// none.
static Operation *codesOf(Value x, quant::EncodeOp like) {
  Type elem = like.getType().getElementType();
  for (Operation *user : x.getUsers())
    if (auto encode = dyn_cast<quant::EncodeOp>(user);
        encode && encode->getBlock() == like->getBlock() &&
        encode.getType().getElementType() == elem &&
        encode.getModeAttr() == like.getModeAttr())
      return encode;
  auto product = x.getDefiningOp<arith::MulFOp>();
  if (!product || like.getModeAttr())
    return nullptr;
  for (Operation *user : product.getLhs().getUsers())
    if (auto encode = dyn_cast<quant::ScaleEncodeOp>(user);
        encode && encode->getBlock() == like->getBlock() &&
        encode.getType().getElementType() == elem &&
        encode.getSource() == product.getLhs() &&
        encode.getFactor() == product.getRhs())
      return encode;
  return nullptr;
}

void shareCodes(func::FuncOp kernel) {
  kernel.walk([](quant::EncodeOp op) {
    auto turned = op.getSource().getDefiningOp<quant::TransposeOp>();
    Operation *codes = turned ? codesOf(turned.getSource(), op) : nullptr;
    if (!codes)
      return;
    if (op->isBeforeInBlock(codes))
      codes->moveBefore(op);
    OpBuilder b(op);
    Value columns = quant::TransposeOp::create(b, op.getLoc(), op.getType(),
                                               codes->getResult(0));
    op.getResult().replaceAllUsesWith(columns);
    op.erase();
    if (turned.use_empty())
      turned.erase();
  });
}

} // namespace dither::transforms
