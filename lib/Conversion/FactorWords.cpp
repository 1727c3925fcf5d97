//===- FactorWords.cpp - Words of two powers of two -----------------------===//
//
// A factor of bf16 has its bits in the upper half of its f32. A shuffle that
// brings one from another lane moves 32 bits, so that two can come together.
//
//===----------------------------------------------------------------------===//

#include "FactorWords.h"
#include "InlineAsm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dither::conversion {

static Value bitsOf(OpBuilder &b, Value number) {
  if (number.getType().isInteger())
    return number;
  return arith::BitcastOp::create(b, number.getLoc(), b.getI32Type(), number);
}

static Value upperHalves(OpBuilder &b, Value low, Value high) {
  return inlineAsm(b, low.getLoc(), b.getI32Type(),
                   {bitsOf(b, low), bitsOf(b, high)},
                   "prmt.b32 $0, $1, $2, 0x7632;", "=r,r,r")
      .getResult(0);
}

/// A half of a word in both halves of another. ptxas sees through moves, and
/// arithmetic on pairs takes either half of a word for both.
static Value twice(OpBuilder &b, Value word, char half) {
  std::string text = "{ .reg .b16 l, h; mov.b32 {l, h}, $1; mov.b32 $0, {";
  text += {half, ',', ' ', half};
  return inlineAsm(b, word.getLoc(), b.getI32Type(), bitsOf(b, word),
                   text + "}; }", "=r,r")
      .getResult(0);
}

/// `operand` where it may not be known yet, if it is a constant.
static Value here(OpBuilder &b, Value operand) {
  if (!matchPattern(operand, m_Constant()))
    return operand;
  return b.clone(*operand.getDefiningOp())->getResult(0);
}

/// A copy of a shuffle that takes a word in the place of its number.
static Value moved(OpBuilder &b, NVVM::ShflOp shuffle, Value word) {
  IRMapping map;
  for (Value operand : shuffle->getOperands())
    map.map(operand, operand == shuffle.getVal() ? word : here(b, operand));
  Value result = b.clone(*shuffle, map)->getResult(0);
  result.setType(word.getType());
  return result;
}

namespace {
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

static bool haveLanesInCommon(NVVM::ShflOp a, NVVM::ShflOp b) {
  return a.getThreadMask() == b.getThreadMask() &&
         a.getMaskAndClamp() == b.getMaskAndClamp();
}

/// Whether a shuffle brings each lane what has another number in a bit from
/// where it was: bits 8 to 12 are those in which lanes take from their like.
static bool crosses(NVVM::ShflOp shuffle, int64_t bit) {
  llvm::APInt segments;
  return matchPattern(shuffle.getMaskAndClamp(), m_ConstantInt(&segments)) &&
         !(segments.getZExtValue() >> 8 & bit);
}

/// Of what a shuffle hands on and what the lane has whose number differs in
/// `bit`: the word, the lane's own in the lower half.
static Value wordOfNeighbours(OpBuilder &b, NVVM::ShflOp shuffle, int64_t bit) {
  OpBuilder::InsertionGuard guard(b);
  Value number = shuffle.getVal();
  Location loc = number.getLoc();
  b.setInsertionPointAfterValue(number);
  auto i32 = [&](int64_t v) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(v));
  };
  Value other = NVVM::ShflOp::create(
      b, loc, number.getType(), here(b, shuffle.getThreadMask()), number,
      i32(bit), i32(31), NVVM::ShflKind::bfly, UnitAttr());
  return upperHalves(b, number, other);
}

void FactorWords::expect(Value factor, Operation *operation) {
  if (!fetched(factor))
    return;
  auto [found, isNew] = expected.try_emplace(factor, operation);
  if (!isNew && operation->getBlock() == found->second->getBlock() &&
      operation->isBeforeInBlock(found->second))
    found->second = operation;
}

/// The last of operations; null if they are not of one block.
static Operation *lastOf(ArrayRef<Operation *> operations) {
  Operation *last = operations.front();
  for (Operation *op : operations) {
    if (!op || !last || op->getBlock() != last->getBlock())
      return nullptr;
    if (last->isBeforeInBlock(op))
      last = op;
  }
  return last;
}

/// Makes the words of a factor and of another one that comes from the same
/// lane, if there is one and both are known before either is taken.
void FactorWords::bringTwo(OpBuilder &b, Value factor) {
  std::optional<Fetched> first = fetched(factor);
  Operation *user = expected.lookup(factor);
  if (!first || !user)
    return;
  Value number = first->shuffle.getVal();
  for (auto [other, otherUser] : expected) {
    Fetched second = *fetched(other);
    Value otherNumber = second.shuffle.getVal();
    if (number == otherNumber || first->lane != second.lane ||
        !haveLanesInCommon(first->shuffle, second.shuffle) ||
        known.contains({other, other}))
      continue;
    Operation *last =
        lastOf({number.getDefiningOp(), otherNumber.getDefiningOp()});
    if (!last || user->getBlock() != last->getBlock() ||
        otherUser->getBlock() != last->getBlock() ||
        !last->isBeforeInBlock(user) || !last->isBeforeInBlock(otherUser))
      continue;
    Value &word = together[{number, otherNumber}];
    if (!word) {
      b.setInsertionPointAfter(last);
      word = upperHalves(b, number, otherNumber);
    }
    b.setInsertionPointAfterValue(word);
    Value both = moved(b, first->shuffle, word);
    known[{factor, factor}] = twice(b, both, 'l');
    known[{other, other}] = twice(b, both, 'h');
    return;
  }
}

/// Two numbers that two lanes have, which are neighbours: one of them puts both
/// together, and one shuffle brings them. Null if they are no such two.
Value FactorWords::ofNeighbours(OpBuilder &b, Value low, Value high) {
  std::optional<Fetched> first = fetched(low), second = fetched(high);
  if (!first || !second ||
      first->shuffle.getVal() != second->shuffle.getVal() ||
      !haveLanesInCommon(first->shuffle, second->shuffle))
    return Value();
  int64_t bit = first->lane ^ second->lane;
  if (!llvm::isPowerOf2_64(bit) || bit >= 32 || !crosses(first->shuffle, bit))
    return Value();
  Value &word = neighbours[{first->shuffle.getVal(), bit}];
  if (!word)
    word = wordOfNeighbours(b, first->shuffle, bit);
  b.setInsertionPointAfterValue(low);
  return moved(b, first->shuffle, word);
}

Value FactorWords::word(OpBuilder &b, Value low, Value high) {
  OpBuilder::InsertionGuard guard(b);
  if (low == high && !known.contains({low, low}))
    bringTwo(b, low);
  Value &word = known[{low, high}];
  if (word)
    return word;
  if (low == high) {
    b.setInsertionPointAfterValue(low);
    return word = twice(b, low, 'h');
  }
  if ((word = ofNeighbours(b, low, high)))
    return word;
  b.setInsertionPointAfter(lastOf({low.getDefiningOp(), high.getDefiningOp()}));
  return word = upperHalves(b, low, high);
}

template <typename Values> static void eraseUnused(const Values &factors) {
  llvm::SmallSetVector<Operation *, 16> shuffles;
  for (Value factor : factors)
    if (auto shuffle = factor.getDefiningOp<NVVM::ShflOp>())
      shuffles.insert(shuffle);
  for (Operation *shuffle : shuffles)
    if (shuffle->use_empty())
      shuffle->erase();
}

FactorWords::~FactorWords() {
  SmallVector<Value> factors;
  for (auto [two, word] : known)
    factors.append({two.first, two.second});
  eraseUnused(factors);
}

/// A shuffle and a permutation of bytes make the word of two neighbours: fewer
/// factors of a lane are brought in as few instructions alone.
constexpr size_t kWorthwhile = 6;

FactorHalves::FactorHalves(OpBuilder &b, ArrayRef<Value> factors) {
  using Source = std::tuple<Value, Value, Value>;
  llvm::MapVector<Source, llvm::SmallMapVector<int64_t, Value, 16>> groups;
  for (Value factor : factors)
    if (std::optional<Fetched> number = fetched(factor))
      groups[{number->shuffle.getVal(), number->shuffle.getThreadMask(),
              number->shuffle.getMaskAndClamp()}]
          .insert({number->lane, factor});
  for (auto &[source, ofLane] : groups) {
    if (ofLane.size() < kWorthwhile)
      continue;
    auto first = ofLane.front().second.template getDefiningOp<NVVM::ShflOp>();
    for (int64_t bit = 1; bit < 32; bit *= 2) {
      if (!crosses(first, bit) || !llvm::all_of(ofLane, [&](auto &of) {
            return ofLane.count(of.first ^ bit);
          }))
        continue;
      OpBuilder::InsertionGuard guard(b);
      Value word = wordOfNeighbours(b, first, bit);
      b.setInsertionPointAfterValue(word);
      for (auto [lane, factor] : ofLane) {
        if (lane & bit)
          continue;
        Value both =
            moved(b, factor.template getDefiningOp<NVVM::ShflOp>(), word);
        halves[factor] = {both, /*isUpper=*/false};
        halves[ofLane.lookup(lane ^ bit)] = {both, /*isUpper=*/true};
      }
      break;
    }
  }
}

std::optional<FactorHalves::Half> FactorHalves::find(Value factor) const {
  auto found = halves.find(factor);
  return found == halves.end() ? std::nullopt : std::optional(found->second);
}

FactorHalves::~FactorHalves() {
  eraseUnused(llvm::map_to_vector(halves, [](auto &of) { return of.first; }));
}

} // namespace dither::conversion
