//===- InlineAsm.cpp - Instructions of PTX --------------------------------===//

#include "InlineAsm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dither::conversion {

Value topBytes(OpBuilder &b, Location loc, ArrayRef<Value> xs) {
  Type i32 = b.getI32Type();
  auto top = [&](Value x) -> Value {
    Value bits = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(24));
    return arith::ShRUIOp::create(b, loc, x, bits);
  };
  auto permute = [&](Value x, Value y, StringRef selector) {
    return inlineAsm(b, loc, i32, {x, y},
                     ("prmt.b32 $0, $1, $2, " + selector + ";").str(), "=r,r,r")
        .getResult(0);
  };
  if (xs.size() == 1)
    return top(xs[0]);
  Value low = permute(xs[0], xs[1], "0x73");
  if (xs.size() == 2)
    return low;
  Value high = xs.size() == 3 ? top(xs[2]) : permute(xs[2], xs[3], "0x73");
  return permute(low, high, "0x5410");
}

} // namespace dither::conversion
