//===- NarrowProducts.cpp - Products of bf16 and powers of two ------------===//
//
// bf16 has the exponents of f32. Times a power of two its values stay what they
// are, two in one instruction, or overflow in both types, or become so small
// that they are zero, with a sign, in every format of 8 bits or less.
//
//===----------------------------------------------------------------------===//

#include "NarrowProducts.h"
#include "Elements.h"
#include "FactorWords.h"
#include "InlineAsm.h"
#include "Magnitudes.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace dither::conversion {

static constexpr char kMultiply[] = "fma.rn.bf16x2 $0, $1, $2, $3;";

namespace {
/// A word of two bf16, its halves in f32, and what each is multiplied by.
struct Product {
  Value word, halves[2], factors[2];
};

/// An encode of products, and the vector of them.
struct Candidate {
  quant::EncodeWordsOp encode;
  vector::FromElementsOp source;
  SmallVector<Product> products;
};
} // namespace

/// Both values of a word times factors.
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
    if (!decode || at != int64_t(half) || !decode.getElem().isBF16() ||
        decode.getGroup() != 2 ||
        decode.getSource().getType() !=
            VectorType::get({1}, IntegerType::get(v.getContext(), 32)) ||
        !isPowerOfTwo(factor))
      return std::nullopt;
    if (half && decode != words)
      return std::nullopt;
    words = decode;
    product.halves[half] = x;
    product.factors[half] = factor;
  }
  if (product.factors[0].getParentBlock() !=
      product.factors[1].getParentBlock())
    return std::nullopt;
  product.word = words.getSource();
  return product;
}

static std::optional<Candidate> candidate(quant::EncodeWordsOp op) {
  Candidate found{
      op, op.getSource().getDefiningOp<vector::FromElementsOp>(), {}};
  if (!found.source || !quant::codeFormat(op.getElem()) ||
      !found.source->hasOneUse() || op.getSource().getType().getRank() != 1)
    return std::nullopt;
  OperandRange values = found.source.getElements();
  if (values.size() % 2)
    return std::nullopt;
  for (size_t i = 0; i < values.size(); i += 2) {
    std::optional<Product> product = productOf(values[i], values[i + 1]);
    if (!product)
      return std::nullopt;
    found.products.push_back(*product);
  }
  return found;
}

/// How often a word is multiplied, at most, where products are widened. Its
/// halves are widened once for all products of f32; of two products that is no
/// fewer instructions than to widen both, and factors come two in a word.
constexpr unsigned kMostProducts = 2;

/// Leaves those of whose words all halves are taken by products alone.
static void keepWorthwhile(SmallVectorImpl<Candidate> &candidates) {
  llvm::SmallDenseMap<Value, unsigned, 32> products;
  for (const Candidate &candidate : candidates)
    for (const Product &product : candidate.products)
      for (Value half : product.halves)
        ++products[half];
  llvm::erase_if(candidates, [&](const Candidate &candidate) {
    return llvm::any_of(candidate.products, [&](const Product &product) {
      return llvm::any_of(product.halves, [&](Value half) {
        unsigned count = products.lookup(half);
        return count > kMostProducts || count != half.getNumUses();
      });
    });
  });
}

static void narrow(Candidate &candidate, FactorWords &factors) {
  vector::FromElementsOp source = candidate.source;
  OpBuilder b(source);
  Location loc = candidate.encode.getLoc();
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  SmallVector<Value> widened;
  // Less zero is the product itself, and every target has a multiply-add.
  Value zeros = arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(int32_t(0x80008000)));
  for (const Product &product : candidate.products) {
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
  SmallVector<Value> old(source.getElements());
  source.getElementsMutable().assign(widened);
  for (Value v : old)
    v.getDefiningOp()->erase();
}

void narrowProducts(ArrayRef<quant::EncodeWordsOp> encodes, bool widens) {
  SmallVector<Candidate> candidates;
  for (quant::EncodeWordsOp op : encodes)
    if (std::optional<Candidate> found = candidate(op))
      candidates.push_back(std::move(*found));
  if (widens)
    keepWorthwhile(candidates);
  FactorWords factors;
  for (const Candidate &candidate : candidates)
    for (const Product &product : candidate.products)
      if (product.factors[0] == product.factors[1])
        factors.expect(product.factors[0], candidate.source);
  for (Candidate &candidate : candidates)
    narrow(candidate, factors);
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
