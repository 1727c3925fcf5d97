//===- NarrowProducts.cpp - Products of bf16 and powers of two ------------===//
//
// bf16 has the exponents of f32. Times a power of two its values stay what they
// are, two in one instruction, or overflow in both types, or become so small
// that they are zero, with a sign, in every format of 8 bits or less.
//
//===----------------------------------------------------------------------===//

#include "NarrowProducts.h"
#include "Elements.h"
#include "InlineAsm.h"
#include "Magnitudes.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace dither::conversion {

static constexpr char kMultiply[] = "fma.rn.bf16x2 $0, $1, $2, $3;";

namespace {
/// A word of two bf16, and what both are multiplied by.
struct Product {
  Value word, factor;
};
} // namespace

/// Both values of a word times one factor.
static std::optional<Product> productOf(Value low, Value high) {
  quant::DecodeWordsOp words;
  Product product;
  for (auto [half, v] : llvm::enumerate(std::array{low, high})) {
    auto times = v.getDefiningOp<arith::MulFOp>();
    if (!times || !v.hasOneUse())
      return std::nullopt;
    Value x = times.getLhs(), factor = times.getRhs();
    if (isPowerOfTwo(x))
      std::swap(x, factor);
    auto [decode, at] = elementOf<quant::DecodeWordsOp>(x);
    if (!decode || at != int64_t(half) || !x.hasOneUse() ||
        !decode.getElem().isBF16() || decode.getGroup() != 2 ||
        decode.getSource().getType() !=
            VectorType::get({1}, IntegerType::get(v.getContext(), 32)) ||
        !isPowerOfTwo(factor))
      return std::nullopt;
    if (half && (decode != words || factor != product.factor))
      return std::nullopt;
    words = decode;
    product.factor = factor;
  }
  product.word = words.getSource();
  return product;
}

/// The upper half of a power of two, in both halves of a word: of what another
/// lane has, before it comes here, so that it is taken once for all that do.
static Value inBothHalves(OpBuilder &b, Value power,
                          llvm::SmallDenseMap<Value, Value> &known) {
  if (Value word = known.lookup(power))
    return word;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(power);
  Location loc = power.getLoc();
  Type i32 = b.getI32Type();
  if (auto moved = power.getDefiningOp<NVVM::ShflOp>()) {
    Value word = inBothHalves(b, moved.getVal(), known);
    IRMapping map;
    map.map(moved.getVal(), word);
    Operation *same = b.clone(*moved, map);
    same->getResult(0).setType(i32);
    return known[power] = same->getResult(0);
  }
  Value bits = arith::BitcastOp::create(b, loc, i32, power);
  return known[power] = inlineAsm(b, loc, i32, {bits},
                                  "prmt.b32 $0, $1, 0, 0x3232;", "=r,r")
                            .getResult(0);
}

static void narrow(quant::EncodeWordsOp op,
                   llvm::SmallDenseMap<Value, Value> &factors) {
  auto source = op.getSource().getDefiningOp<vector::FromElementsOp>();
  if (!source || !quant::codeFormat(op.getElem()) || !source->hasOneUse() ||
      op.getSource().getType().getRank() != 1)
    return;
  OperandRange values = source.getElements();
  SmallVector<Product> products;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    std::optional<Product> product = productOf(values[i], values[i + 1]);
    if (!product)
      return;
    products.push_back(*product);
  }
  if (products.size() * 2 != values.size() || products.empty())
    return;

  OpBuilder b(source);
  Location loc = op.getLoc();
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  SmallVector<Value> widened;
  // Less zero is the product itself, and every target has a multiply-add.
  Value zeros = arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(int32_t(0x80008000)));
  for (const Product &product : products) {
    Value factor = inBothHalves(b, product.factor, factors);
    Value word = vector::ExtractOp::create(b, loc, product.word, int64_t(0));
    Value scaled =
        inlineAsm(b, loc, i32, {word, factor, zeros}, kMultiply, "=r,r,r,r")
            .getResult(0);
    Value decoded = quant::DecodeWordsOp::create(
        b, loc, VectorType::get({2}, f32),
        vector::FromElementsOp::create(b, loc, VectorType::get({1}, i32),
                                       scaled),
        b.getBF16Type(), 2);
    for (int64_t half : {0, 1})
      widened.push_back(vector::ExtractOp::create(b, loc, decoded, half));
  }
  SmallVector<Value> old(values);
  source.getElementsMutable().assign(widened);
  for (Value v : old)
    v.getDefiningOp()->erase();
}

void narrowProducts(ArrayRef<quant::EncodeWordsOp> encodes) {
  llvm::SmallDenseMap<Value, Value> factors;
  for (quant::EncodeWordsOp op : encodes)
    narrow(op, factors);
  // Nothing else drops a shuffle.
  for (auto [factor, word] : factors)
    if (auto moved = factor.getDefiningOp<NVVM::ShflOp>();
        moved && moved->use_empty())
      moved.erase();
}

/// Whether `x` is half of a product of words.
static bool isNarrowProduct(Value x) {
  quant::DecodeWordsOp decode = elementOf<quant::DecodeWordsOp>(x).first;
  SmallVector<Value> words;
  if (decode)
    words = elementsOf(decode.getSource());
  if (words.size() != 1)
    return false;
  auto product = words[0].getDefiningOp<LLVM::InlineAsmOp>();
  return product && product.getAsmString() == kMultiply;
}

static constexpr char kConstantNaN[] = "quant.constant_nan";

ConstantNaNs::ConstantNaNs(Operation *function) : function(function) {
  // Maxima and choices leave it out.
  auto computes = [](Operation *op) {
    return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
           !isa<arith::SelectOp, arith::CmpFOp, arith::MaxNumFOp,
                arith::MinNumFOp>(op);
  };
  WalkResult found = function->walk([&](arith::ConstantOp constant) {
    llvm::APFloat number(0.0f);
    bool isNaN = matchPattern(constant.getResult(), m_ConstantFloat(&number)) &&
                 number.isNaN();
    return isNaN && llvm::any_of(constant->getUsers(), computes)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (found.wasInterrupted())
    function->setAttr(kConstantNaN, UnitAttr::get(function->getContext()));
}

ConstantNaNs::~ConstantNaNs() { function->removeAttr(kConstantNaN); }

bool hasPlainNaN(Value x) {
  if (isNarrowProduct(x))
    return true;
  auto product = x.getDefiningOp<arith::MulFOp>();
  return product &&
         !product->getParentOfType<FunctionOpInterface>()->hasAttr(
             kConstantNaN) &&
         llvm::none_of(product->getOperands(),
                       [](Value v) { return matchPattern(v, m_Constant()); });
}

} // namespace dither::conversion
