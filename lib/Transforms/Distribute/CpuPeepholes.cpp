//===- CpuPeepholes.cpp - CPU peepholes -----------------------------------===//
//
// Forms of operations that a CPU has for operands of 16 bits: two values to a
// word, without widening them first.
//
//===----------------------------------------------------------------------===//

#include "Distribute/Distribute.h"
#include "Layouts/Movement.h"
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
        op.getBounded(), op.getPowers(), /*in_order=*/false);
    llvm::append_range(codes, d.e.unpack(code));
  }
  d.setRegs(op, codes);
  return success();
}

/// Codes that are wanted in order, and nowhere else, are made there.
static Emitted encodeLater(Distributor &d, quant::ScaleEncodeOp op) {
  bool later = d.simd && !op->use_empty() &&
               llvm::all_of(op->getUsers(), [](Operation *user) {
                 auto convert = dyn_cast<quant::ConvertLayoutOp>(user);
                 return convert && LayoutRules::encodedInOrder(convert);
               });
  return later ? Emitted(success()) : std::nullopt;
}

/// Products of finite values and factors, as 64 bytes of codes in order.
static Emitted encodeInOrder(Distributor &d, quant::ConvertLayoutOp op) {
  quant::ScaleEncodeOp encode =
      d.simd ? LayoutRules::encodedInOrder(op) : quant::ScaleEncodeOp();
  if (!encode)
    return std::nullopt;
  Type elem = op.getType().getElementType();
  TileLayout from = d.layout(op.getSource()), to = d.layout(op.getResult());
  int64_t last = to.rank() - 1, group = wordGroup(to, quant::storageBits(elem));
  Locator source(from);
  Registers values = d.regs(encode.getSource()),
            factors = d.regs(encode.getFactor()), codes;
  Type f32 = d.b.getF32Type(),
       word = VectorType::get({1, kSimdLanes}, d.b.getI32Type());
  for (int64_t reg = 0; reg < to.numRegs(); reg += group) {
    Registers x, f;
    layout::Coord at = to.coord(reg);
    for (int64_t i = 0; i < group; ++i, at[last] += kSimdLanes) {
      int64_t r = source.find(at, /*lane=*/0, /*warp=*/0)->reg;
      x.push_back(values[r]);
      f.push_back(factors[r]);
    }
    Value code = d.e.make<quant::ScaleEncodeWordsOp>(
        word, d.e.pack(x, f32), d.e.pack(f, f32), elem, encode.getBounded(),
        encode.getPowers(), /*in_order=*/true);
    llvm::append_range(codes, d.e.unpack(code));
  }
  d.setRegs(op.getResult(), codes);
  return success();
}

void addCpuPeepholes(OpTable &table) {
  table.add(encodeLater);
  table.add(encodeInOrder);
  table.add(encodeFinite);
}

} // namespace dither::transforms
