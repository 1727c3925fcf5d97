//===- SignificandTables.cpp - Products of bf16 by table ------------------===//
//
// A bf16 is an exponent and one of 128 significands. Times a factor F = 2^f g,
// 1 <= g < 2, and rounded to a format of 8 bits it has the code of the
// significand times g, with the exponents added: those of the 128 lie in two
// registers, made once for each factor by the rules of all other values, and an
// instruction looks up 64 of them. That is so where the result is a normal
// number; what rounds past the largest one is that, and zeros are zeros. A
// register with any other value goes the way of now.
//
//===----------------------------------------------------------------------===//

#include "SignificandTables.h"
#include "Avx512.h"
#include "Elements.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/Formats.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using dither::numerics::ElementFormat;

namespace dither::conversion {

namespace {

constexpr int64_t kLanes = 16;
constexpr int32_t kSignificands = 128, kExponentBias = 127;
/// Magnitudes of bf16: of the largest number, and one that none has.
constexpr uint32_t kLargest = 0x7F7F, kNone = 0x8000;
/// Loops that share a factor, at least: tables pay where rows do.
constexpr int kLoops = 2;

/// Whether all lanes of `v` have one value.
bool isUniform(Value v, int depth = 0) {
  Operation *op = v.getDefiningOp();
  if (!op || depth > 12)
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (auto shuffle = dyn_cast<vector::ShuffleOp>(op))
    return llvm::all_equal(shuffle.getMask());
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return !isa<VectorType>(broadcast.getSourceType());
  return op->hasTrait<OpTrait::Elementwise>() &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isUniform(operand, depth + 1);
         });
}

/// Codes of a register of pairs of bf16 times a factor.
struct Product {
  quant::EncodeWordsOp encode;
  Value word, factor;
};

/// The half of a word that `mul` takes, and its factor.
std::pair<quant::DecodeWordsOp, int64_t> halfOf(arith::MulFOp mul,
                                                Value &factor) {
  for (unsigned i : {0u, 1u}) {
    auto [decode, at] = elementOf<quant::DecodeWordsOp>(mul->getOperand(i));
    if (!decode || !decode.getElem().isBF16() || decode.getGroup() != 2)
      continue;
    factor = mul->getOperand(1 - i);
    return {decode, at};
  }
  return {};
}

std::optional<Product> productOf(quant::EncodeWordsOp encode) {
  auto type = cast<VectorType>(encode.getResult().getType());
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(encode.getElem()) ||
      encode.getGroup() != 2 ||
      type != VectorType::get({1, kLanes}, type.getElementType()))
    return std::nullopt;
  Product product{encode, {}, {}};
  quant::DecodeWordsOp from;
  for (int64_t i : {0, 1}) {
    Value v = registerOf(encode->getOperand(0), i), factor;
    auto mul = v ? v.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
    if (!mul)
      return std::nullopt;
    auto [decode, at] = halfOf(mul, factor);
    if (!decode || at % 2 != i ||
        (i && (decode != from || factor != product.factor)))
      return std::nullopt;
    from = decode;
    product.factor = factor;
    product.word = registerOf(decode.getSource(), at / 2);
    if (!product.word)
      return std::nullopt;
  }
  // The factor is there before the loops that the product is in.
  int loops = 0;
  Block *at = encode->getBlock();
  while (at && at != product.factor.getParentBlock()) {
    auto loop = dyn_cast_if_present<scf::ForOp>(at->getParentOp());
    if (!loop)
      return std::nullopt;
    at = loop->getBlock();
    ++loops;
  }
  if (!at || loops < kLoops || !product.factor.getDefiningOp() ||
      !isUniform(product.factor))
    return std::nullopt;
  return product;
}

/// What is known of a factor, in front of the loops.
struct Table {
  /// Codes of the significands times g, less that of 1 and the upper bits of
  /// the significand, which are its place among the codes: bytes.
  Value low, high;
  /// In all lanes: the code of 2^-f, less the exponent's; the least magnitude
  /// with a normal result, and how far the largest is; and the magnitude of
  /// zeros, or one that none has where the factor allows no table.
  Value base, least, span, zero;
};

class Tables {
public:
  Tables(const ElementFormat &f, Type elem, ConstantPool &pool)
      : f(f), elem(elem), pool(pool) {}

  Table make(Value factor);
  Value magnitudes(OpBuilder &b, Location loc, Value word) {
    return words(b, loc).andi(word, 0x7FFF7FFF);
  }
  /// The codes of a word with these magnitudes, two to a word.
  Value look(OpBuilder &b, Location loc, const Table &table, Value word,
             Value size);
  /// Whether there are values that a table does not know.
  Value hasOthers(OpBuilder &b, Location loc, const Table &table, Value size);

private:
  WordBuilder words(OpBuilder &b, Location loc) {
    Instructions has;
    has.avx2 = has.avx512 = true;
    return WordBuilder(b, loc, VectorType::get({1, kLanes}, b.getI32Type()),
                       pool, has);
  }
  static Value asBytes(WordBuilder &w, Value v) {
    return w.make<vector::BitCastOp>(
        VectorType::get({4 * kLanes}, w.b.getI8Type()), v);
  }

  /// The low half of each word in both halves.
  static Value twice(WordBuilder &w, Value v) { return w.ori(v, w.shl(v, 16)); }
  Value lookUp(WordBuilder &w, ArrayRef<float> values, Value significand,
               int32_t first);

  const ElementFormat &f;
  Type elem;
  ConstantPool &pool;
};

/// Codes of 64 significands, from `first` on, times that of the factor.
Value Tables::lookUp(WordBuilder &w, ArrayRef<float> values, Value significand,
                     int32_t first) {
  auto registers = VectorType::get({4, kLanes}, w.b.getF32Type());
  SmallVector<Value> products;
  for (int64_t i = 0; i < 4; ++i) {
    SmallVector<float> own;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      own.push_back(values[first + 4 * lane + i]);
    Value constant = pool.get(
        w.loc, DenseElementsAttr::get(
                   VectorType::get({kLanes}, w.b.getF32Type()), ArrayRef(own)));
    products.push_back(w.make<arith::MulFOp>(constant, significand));
  }
  Value all = w.pack(products, registers);
  Value codes = quant::EncodeWordsOp::create(
      w.b, w.loc, VectorType::get({1, kLanes}, w.b.getI32Type()), all,
      TypeAttr::get(elem), w.b.getI64IntegerAttr(4), quant::E8M0ModeAttr());
  Value code =
      w.b.createOrFold<vector::ExtractOp>(w.loc, codes, ArrayRef<int64_t>{0});
  // Less what the exponent and the significand itself bring.
  SmallVector<int8_t> less;
  for (int32_t i = first; i < first + 4 * kLanes; ++i)
    less.push_back(int8_t((uint32_t(f.bias) << f.mantissaBits) +
                          (uint32_t(i) >> (7 - f.mantissaBits))));
  Value known = pool.get(
      w.loc,
      DenseElementsAttr::get(VectorType::get({4 * kLanes}, w.b.getI8Type()),
                             ArrayRef(less)));
  return w.asWords(w.make<arith::SubIOp>(asBytes(w, code), known));
}

Table Tables::make(Value factor) {
  OpBuilder b(factor.getContext());
  b.setInsertionPointAfterValue(factor);
  WordBuilder w = words(b, factor.getLoc());
  Value bits = w.asInt(factor);
  Value significand =
      w.asFloat(w.ori(w.andi(bits, 0x007FFFFF), w.i32(0x3F800000)));
  SmallVector<float> values;
  for (int32_t i = 0; i < kSignificands; ++i)
    values.push_back(1.0f + float(i) / kSignificands);
  Table table;
  table.low = lookUp(w, values, significand, 0);
  table.high = lookUp(w, values, significand, 4 * kLanes);
  // The exponent of a factor that is positive and not too large. That of a
  // product is at least 1 where that of the bf16 is at least 2 bias' + 1 - it.
  uint32_t sum = uint32_t(2 * kExponentBias - f.bias);
  Value exponent = w.shr(bits, 23);
  Value fits = w.cmpi(arith::CmpIPredicate::ult,
                      w.make<arith::SubIOp>(exponent, w.i32(1)), sum);
  Value rest = w.make<arith::SubIOp>(w.i32(sum), exponent);
  table.base = twice(w, w.andi(w.shl(rest, f.mantissaBits), 0xFFFF));
  Value least = w.shl(w.addi(rest, w.i32(1)), 7);
  least = w.select(fits, least, w.i32(kNone));
  Value span =
      w.select(fits, w.make<arith::SubIOp>(w.i32(kLargest), least), w.i32(0));
  table.least = twice(w, least);
  table.span = twice(w, span);
  table.zero = twice(w, w.select(fits, w.i32(0), w.i32(kNone)));
  return table;
}

Value Tables::look(OpBuilder &b, Location loc, const Table &table, Value word,
                   Value size) {
  WordBuilder w = words(b, loc);
  auto both = [&](uint32_t v) { return w.asHalves(w.i32(v << 16 | v)); };
  // Of each half the low byte, whose upper bit does not count.
  Value found = w.asHalves(
      w.andi(lookUpBytes(w, table.low, size, table.high), 0x00FF00FF));
  Value halves = w.asHalves(size);
  Value place = subtractSaturated(
      w, w.asWords(w.make<arith::ShRUIOp>(halves, both(7 - f.mantissaBits))),
      table.base);
  Value code = w.make<arith::MinUIOp>(
      w.make<arith::AddIOp>(w.asHalves(place), found), both(f.maxCode));
  Value isZero =
      w.make<arith::CmpIOp>(arith::CmpIPredicate::eq, halves, both(0));
  code = w.make<arith::SelectOp>(isZero, both(0), code);
  // Signs in the same place, then both codes to the low half.
  Value pair = orMasked(w, w.asWords(code), w.shr(word, 8), 0x00800080);
  return w.andi(w.ori(pair, w.shr(pair, 8)), 0xFFFF);
}

Value Tables::hasOthers(OpBuilder &b, Location loc, const Table &table,
                        Value size) {
  WordBuilder w = words(b, loc);
  Value halves = w.asHalves(size);
  Value past = w.make<arith::CmpIOp>(
      arith::CmpIPredicate::ugt,
      w.make<arith::SubIOp>(halves, w.asHalves(table.least)),
      w.asHalves(table.span));
  Value some = w.make<arith::CmpIOp>(arith::CmpIPredicate::ne, halves,
                                     w.asHalves(table.zero));
  Value mask = w.make<vector::BitCastOp>(VectorType::get({1}, b.getI32Type()),
                                         w.make<arith::AndIOp>(past, some));
  Value bits = vector::ExtractOp::create(b, loc, mask, ArrayRef<int64_t>{0});
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bits, none);
}

/// The product and its codes again, where `b` stands.
void asBefore(OpBuilder &b, const Product &product, ConstantPool &pool) {
  Operation *encode = product.encode;
  Location loc = encode->getLoc();
  auto words = cast<VectorType>(encode->getResult(0).getType());
  auto values = cast<VectorType>(encode->getOperand(0).getType());
  WordBuilder w(b, loc, words, pool);
  Value decoded = quant::DecodeWordsOp::create(
      b, loc, values, w.pack(product.word, words),
      TypeAttr::get(b.getBF16Type()), b.getI64IntegerAttr(2));
  SmallVector<Value> products;
  for (Value half : w.registers(decoded))
    products.push_back(w.make<arith::MulFOp>(half, product.factor));
  IRMapping map;
  map.map(encode->getOperand(0), w.pack(products, values));
  Operation *again = b.clone(*encode, map);
  scf::YieldOp::create(b, loc, again->getResult(0));
}

} // namespace

void tabulateProducts(Region &body, ConstantPool &pool) {
  SmallVector<Product> products;
  llvm::SmallDenseMap<Block *, int> inBlock;
  body.walk([&](quant::EncodeWordsOp encode) {
    if (std::optional<Product> product = productOf(encode)) {
      products.push_back(*product);
      ++inBlock[encode->getBlock()];
    }
  });
  llvm::SmallDenseMap<std::pair<Value, Type>, Table> tables;
  for (Product &product : products) {
    quant::EncodeWordsOp encode = product.encode;
    // The rest of a row is short.
    if (inBlock[encode->getBlock()] < 2)
      continue;
    Type elem = encode.getElem();
    Tables of(*quant::codeFormat(elem), elem, pool);
    auto [found, isNew] = tables.try_emplace({product.factor, elem});
    if (isNew)
      found->second = of.make(product.factor);
    Table table = found->second;
    OpBuilder b(encode);
    Location loc = encode.getLoc();
    Value size = of.magnitudes(b, loc, product.word);
    Value others = of.hasOthers(b, loc, table, size);
    Type type = encode.getResult().getType();
    auto branch =
        scf::IfOp::create(b, loc, type, others, /*withElseRegion=*/true);
    encode.getResult().replaceAllUsesWith(branch.getResult(0));
    b.setInsertionPointToStart(branch.elseBlock());
    Value codes = of.look(b, loc, table, product.word, size);
    WordBuilder w(b, loc, cast<VectorType>(type), pool);
    scf::YieldOp::create(b, loc, w.pack(codes, cast<VectorType>(type)));
    b.setInsertionPointToStart(branch.thenBlock());
    asBefore(b, product, pool);
    encode.erase();
  }
}

} // namespace dither::conversion
