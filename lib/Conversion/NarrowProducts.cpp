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
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dither::conversion {

static constexpr char kMultiply[] = "fma.rn.bf16x2 $0, $1, $2, $3;";

namespace {
/// A word of two bf16, and what each is multiplied by.
struct Product {
  Value word, factors[2];
};

/// Factors of words, each made once.
class Factors {
public:
  /// The upper halves of two powers of two.
  Value word(OpBuilder &b, Value low, Value high);
  /// Erases what nothing else drops: shuffles.
  ~Factors();

private:
  Value inBothHalves(OpBuilder &b, Value power);
  Value fromOneLane(OpBuilder &b, Value low, Value high);

  llvm::SmallDenseMap<std::pair<Value, Value>, Value> known;
  /// Words of a lane's value and its neighbour's, by the value and the bit in
  /// which the numbers of the two lanes differ.
  llvm::SmallDenseMap<std::pair<Value, int64_t>, Value> neighbours;
};

/// A value that comes from a lane of a known number.
struct Fetched {
  NVVM::ShflOp shuffle;
  int64_t lane = 0;
};
} // namespace

static std::optional<Fetched> fetched(Value v) {
  auto shuffle = v.getDefiningOp<NVVM::ShflOp>();
  llvm::APInt lane;
  if (!shuffle || shuffle.getKind() != NVVM::ShflKind::idx ||
      !matchPattern(shuffle.getOffset(), m_ConstantInt(&lane)))
    return std::nullopt;
  return Fetched{shuffle, lane.getSExtValue()};
}

/// Both values of a word times factors.
static std::optional<Product> productOf(Value low, Value high, bool widens) {
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
    if (!decode || at != int64_t(half) || (widens && !x.hasOneUse()) ||
        !decode.getElem().isBF16() || decode.getGroup() != 2 ||
        decode.getSource().getType() !=
            VectorType::get({1}, IntegerType::get(v.getContext(), 32)) ||
        !isPowerOfTwo(factor))
      return std::nullopt;
    if (half && decode != words)
      return std::nullopt;
    words = decode;
    product.factors[half] = factor;
  }
  if (product.factors[0].getParentBlock() !=
      product.factors[1].getParentBlock())
    return std::nullopt;
  product.word = words.getSource();
  return product;
}

/// A copy of a shuffle that takes a word in the place of its number.
static Value moved(OpBuilder &b, NVVM::ShflOp shuffle, Value word) {
  IRMapping map;
  map.map(shuffle.getVal(), word);
  Value result = b.clone(*shuffle, map)->getResult(0);
  result.setType(word.getType());
  return result;
}

static Value halvesOf(OpBuilder &b, Location loc, ArrayRef<Value> numbers,
                      StringRef assembly, StringRef constraints) {
  SmallVector<Value> bits;
  for (Value number : numbers)
    bits.push_back(arith::BitcastOp::create(b, loc, b.getI32Type(), number));
  return inlineAsm(b, loc, b.getI32Type(), bits, assembly, constraints)
      .getResult(0);
}

/// Of what another lane has, before it comes here, so that it is made once for
/// all that take it.
Value Factors::inBothHalves(OpBuilder &b, Value power) {
  b.setInsertionPointAfterValue(power);
  if (auto shuffle = power.getDefiningOp<NVVM::ShflOp>())
    return moved(b, shuffle, word(b, shuffle.getVal(), shuffle.getVal()));
  return halvesOf(b, power.getLoc(), power, "prmt.b32 $0, $1, 0, 0x3232;",
                  "=r,r");
}

static constexpr char kUpperHalves[] = "prmt.b32 $0, $1, $2, 0x7632;";

/// Two numbers that two lanes have, which are neighbours: one of them puts both
/// together, and one shuffle brings them. Null if they are no such two.
Value Factors::fromOneLane(OpBuilder &b, Value low, Value high) {
  std::optional<Fetched> first = fetched(low), second = fetched(high);
  if (!first || !second ||
      first->shuffle.getVal() != second->shuffle.getVal() ||
      first->shuffle.getThreadMask() != second->shuffle.getThreadMask() ||
      first->shuffle.getMaskAndClamp() != second->shuffle.getMaskAndClamp())
    return Value();
  // Bits 8 to 12 are those in which lanes take from their own like.
  llvm::APInt segments;
  int64_t bit = first->lane ^ second->lane;
  if (!matchPattern(first->shuffle.getMaskAndClamp(),
                    m_ConstantInt(&segments)) ||
      !llvm::isPowerOf2_64(bit) || bit >= 32 ||
      (segments.getZExtValue() >> 8 & bit))
    return Value();
  Value number = first->shuffle.getVal();
  Location loc = low.getLoc();
  auto [found, isNew] = neighbours.try_emplace({number, bit});
  if (isNew) {
    b.setInsertionPointAfterValue(number);
    auto i32 = [&](int64_t v) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(v));
    };
    Value other = NVVM::ShflOp::create(
        b, loc, number.getType(), first->shuffle.getThreadMask(), number,
        i32(bit), i32(31), NVVM::ShflKind::bfly, UnitAttr());
    found->second = halvesOf(b, loc, {number, other}, kUpperHalves, "=r,r,r");
  }
  b.setInsertionPointAfterValue(low);
  return moved(b, first->shuffle, found->second);
}

Value Factors::word(OpBuilder &b, Value low, Value high) {
  if (Value word = known.lookup({low, high}))
    return word;
  OpBuilder::InsertionGuard guard(b);
  Value word = low == high ? inBothHalves(b, low) : fromOneLane(b, low, high);
  if (!word) {
    bool lowIsLast = high.getDefiningOp()->isBeforeInBlock(low.getDefiningOp());
    b.setInsertionPointAfterValue(lowIsLast ? low : high);
    word = halvesOf(b, low.getLoc(), {low, high}, kUpperHalves, "=r,r,r");
  }
  return known[{low, high}] = word;
}

Factors::~Factors() {
  llvm::SmallSetVector<Operation *, 16> shuffles;
  for (auto [powers, word] : known)
    for (Value power : {powers.first, powers.second})
      if (auto shuffle = power.getDefiningOp<NVVM::ShflOp>())
        shuffles.insert(shuffle);
  for (Operation *shuffle : shuffles)
    if (shuffle->use_empty())
      shuffle->erase();
}

static void narrow(quant::EncodeWordsOp op, bool widens, Factors &factors) {
  auto source = op.getSource().getDefiningOp<vector::FromElementsOp>();
  if (!source || !quant::codeFormat(op.getElem()) || !source->hasOneUse() ||
      op.getSource().getType().getRank() != 1)
    return;
  OperandRange values = source.getElements();
  SmallVector<Product> products;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    std::optional<Product> product =
        productOf(values[i], values[i + 1], widens);
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
    Value factor = factors.word(b, product.factors[0], product.factors[1]);
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

void narrowProducts(ArrayRef<quant::EncodeWordsOp> encodes, bool widens) {
  Factors factors;
  for (quant::EncodeWordsOp op : encodes)
    narrow(op, widens, factors);
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
