//===- CpuPeepholes.cpp - CPU peepholes -----------------------------------===//
//
// Forms of operations that a CPU has for operands of 16 bits: two values to a
// word, without widening them first.
//
//===----------------------------------------------------------------------===//

#include "Distribute/Distribute.h"
#include "dither/Dialect/Quant/CodeTypes.h"

using namespace mlir;

namespace dither::transforms {

/// Products of finite values and factors, two to a word; not if they do not
/// come in pairs.
static Emitted encodeFinite(Distributor &d, quant::ScaleEncodeOp op) {
  Type elem = op.getType().getElementType();
  TileLayout l = d.layout(op);
  if (!op.getFinite() || wordGroup(l, quant::storageBits(elem)) != 2)
    return std::nullopt;
  Value source = op.getSource();
  auto widened = source.getDefiningOp<arith::ExtFOp>();
  bool words = widened && d.tile(widened.getIn()).getElementType().isBF16() &&
               d.layout(widened.getIn()) == l;
  Registers from = d.regs(words ? widened.getIn() : source),
            factors = d.regs(op.getFactor()), codes;
  size_t step = words ? 1 : 2;
  Type i32 = d.b.getI32Type(), f32 = d.b.getF32Type();
  Type result = VectorType::get({1, kSimdLanes}, i32);
  for (size_t i = 0; i < factors.size() / 2; ++i) {
    ArrayRef<Value> x = ArrayRef<Value>(from).slice(i * step, step);
    Value code = d.e.make<quant::ScaleEncodeWordsOp>(
        result, d.e.pack(x, words ? i32 : f32),
        d.e.pack(ArrayRef<Value>(factors).slice(2 * i, 2), f32), elem,
        op.getBounded(), op.getPowers());
    llvm::append_range(codes, d.e.unpack(code));
  }
  d.setRegs(op, codes);
  return success();
}

void addCpuPeepholes(OpTable &table) { table.add(encodeFinite); }

} // namespace dither::transforms
