//===- Emitter.cpp - Registers, words, coordinates and lanes --------------===//

#include "Emit/Emitter.h"
#include "Emit/Gpu.h"
#include "Tiling/Scratch.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dither::transforms {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Type Emitter::regType(Type elem) const {
  return simd ? Type(VectorType::get({kSimdLanes}, elem)) : elem;
}

Value Emitter::constant(TypedAttr attr) {
  Value &v = constants[attr];
  if (!v) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    v = make<arith::ConstantOp>(attr);
  }
  return v;
}

Value Emitter::i32(int64_t v) { return constant(b.getI32IntegerAttr(v)); }

Value Emitter::i64(int64_t v) { return constant(b.getI64IntegerAttr(v)); }

Value Emitter::splat(Type elem, int64_t v) {
  TypedAttr attr = b.getIntegerAttr(elem, v);
  if (simd)
    attr = DenseElementsAttr::get(cast<ShapedType>(regType(elem)), attr);
  return constant(attr);
}

Value Emitter::splatF(double v) {
  TypedAttr attr = b.getF32FloatAttr(v);
  if (simd)
    attr = DenseElementsAttr::get(cast<ShapedType>(regType(b.getF32Type())),
                                  Attribute(attr));
  return constant(attr);
}

Value Emitter::fill(Value scalar) {
  if (!simd || isa<VectorType>(scalar.getType()))
    return scalar;
  return make<vector::BroadcastOp>(regType(scalar.getType()), scalar);
}

Value Emitter::elsewhere() {
  if (!nowhere) {
    Value size = i64(8);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(size);
    nowhere = make<LLVM::AllocaOp>(LLVM::LLVMPointerType::get(b.getContext()),
                                   b.getI8Type(), size, /*alignment=*/8);
  }
  return nowhere;
}

Value Emitter::areLines(ArrayRef<Value> places) {
  Type type = b.getI64Type();
  Value bits;
  for (Value place : places) {
    if (isa<LLVM::LLVMPointerType>(place.getType()))
      place = make<LLVM::PtrToIntOp>(type, place);
    bits = bits ? make<arith::OrIOp>(bits, place) : place;
  }
  return make<arith::CmpIOp>(arith::CmpIPredicate::eq,
                             make<arith::AndIOp>(bits, i64(kLineBytes - 1)),
                             i64(0));
}

//===----------------------------------------------------------------------===//
// Registers of operations on words
//===----------------------------------------------------------------------===//

SmallVector<Value> Emitter::unpack(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  SmallVector<Value> regs;
  for (int64_t i = 0; i < type.getDimSize(0); ++i)
    regs.push_back(
        b.createOrFold<vector::ExtractOp>(loc, vector, ArrayRef<int64_t>{i}));
  return regs;
}

Value Emitter::pack(ArrayRef<Value> regs, Type elem) {
  if (!simd)
    return make<vector::FromElementsOp>(
        VectorType::get({int64_t(regs.size())}, elem), regs);
  auto type = VectorType::get({int64_t(regs.size()), kSimdLanes}, elem);
  Value v = make<ub::PoisonOp>(type);
  for (auto [i, reg] : llvm::enumerate(regs))
    v = make<vector::InsertOp>(reg, v, ArrayRef<int64_t>{int64_t(i)});
  return v;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

SmallVector<Value> Emitter::unpackCodes(ArrayRef<Value> words, int64_t group,
                                        int64_t bits) {
  if (group == 1)
    return llvm::to_vector(words);
  SmallVector<Value> codes;
  Type type = b.getI32Type();
  for (Value word : words)
    for (int64_t i = 0; i < group; ++i) {
      Value code = word;
      if (i)
        code = make<arith::ShRUIOp>(code, splat(type, i * bits));
      // The top code of a full word needs no mask.
      if ((i + 1) * bits < 32)
        code = make<arith::AndIOp>(code, splat(type, (int64_t(1) << bits) - 1));
      codes.push_back(code);
    }
  return codes;
}

SmallVector<Value> Emitter::packCodes(ArrayRef<Value> codes, int64_t group,
                                      int64_t bits) {
  if (group == 1)
    return llvm::to_vector(codes);
  SmallVector<Value> words;
  Type type = b.getI32Type();
  for (size_t w = 0; w < codes.size(); w += group) {
    Value word = codes[w];
    for (int64_t i = 1; i < group; ++i)
      word = make<arith::OrIOp>(
          word, make<arith::ShLIOp>(codes[w + i], splat(type, i * bits)));
    words.push_back(word);
  }
  return words;
}

/// Words of GPU code whose elements differ in one bit of the register's number:
/// that bit and the one of the place in a word that stands for `step` bits of a
/// word change places.
static void swapWithPlace(Emitter &e, Registers &words, int64_t regBit,
                          int64_t step) {
  for (int64_t r = 0, n = words.size(); r < n; ++r) {
    if (r >> regBit & 1)
      continue;
    Value &low = words[r], &high = words[r | int64_t(1) << regBit];
    Value a = low, b = high;
    if (step >= 8) {
      unsigned lows = 0, highs = 0, bytes = step / 8;
      for (unsigned i = 0; i < 4; ++i) {
        bool isUpper = i & bytes;
        lows |= (isUpper ? 4 + i - bytes : i) << 4 * i;
        highs |= (isUpper ? 4 + i : i + bytes) << 4 * i;
      }
      low = gpu::permuteBytes(e.b, e.loc, a, b, lows);
      high = gpu::permuteBytes(e.b, e.loc, a, b, highs);
      continue;
    }
    // Two elements to a byte.
    auto choose = [&](Value lower, Value upper) -> Value {
      constexpr int32_t lowers = 0x0F0F0F0F;
      return e.make<arith::OrIOp>(e.make<arith::AndIOp>(lower, e.i32(lowers)),
                                  e.make<arith::AndIOp>(upper, e.i32(~lowers)));
    };
    low = choose(a, e.make<arith::ShLIOp>(b, e.i32(step)));
    high = choose(e.make<arith::ShRUIOp>(a, e.i32(step)), b);
  }
}

Registers Emitter::repackWords(Registers words, WordOrder from, WordOrder to,
                               int64_t bits) {
  SmallVector<Coord> have = llvm::to_vector(from.bits);
  ArrayRef<Coord> want = to.bits;
  int64_t places = llvm::Log2_64(32 / bits);
  auto isInWord = [&](const Coord &bit) {
    return llvm::is_contained(ArrayRef<Coord>(have).take_front(places), bit);
  };
  // Full words, of which all bits of the place come from the word's number.
  bool swaps = !simd && bits >= 4 && from.group * bits == 32 &&
               to.group * bits == 32 &&
               llvm::none_of(want.take_front(places), isInWord);
  if (swaps) {
    for (auto [i, bit] : llvm::enumerate(want.take_front(places))) {
      auto *at = llvm::find(have, bit);
      swapWithPlace(*this, words, at - have.begin() - places, bits << i);
      std::swap(have[i], *at);
    }
    have.erase(have.begin(), have.begin() + places);
    want = want.drop_front(places);
  } else {
    words = unpackCodes(words, from.group, bits);
  }
  Registers out;
  for (int64_t r = 0, n = words.size(); r < n; ++r) {
    int64_t source = 0;
    for (auto [i, bit] : llvm::enumerate(want))
      if (r >> i & 1)
        source |= int64_t(1) << (llvm::find(have, bit) - have.begin());
    out.push_back(words[source]);
  }
  return swaps ? out : Registers(packCodes(out, to.group, bits));
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

Value Emitter::threadCoordinate(const TileLayout &layout, int64_t dim) {
  // Runs of thread bits that step by consecutive powers of two move together.
  SmallVector<int64_t> steps;
  for (const Coord &c : layout.lane)
    steps.push_back(c[dim]);
  for (const Coord &c : layout.warp)
    steps.push_back(c[dim]);
  Value sum;
  for (size_t i = 0; i < steps.size();) {
    if (!steps[i]) {
      ++i;
      continue;
    }
    size_t j = i + 1;
    bool isPower = llvm::isPowerOf2_64(steps[i]);
    while (isPower && j < steps.size() && steps[j] == steps[i] << (j - i))
      ++j;
    Value part = tid;
    if (i)
      part = make<arith::ShRUIOp>(part, i32(i));
    // The warp bits end the index: nothing to mask above them.
    if (j < steps.size())
      part = make<arith::AndIOp>(part, i32((int64_t(1) << (j - i)) - 1));
    if (isPower && steps[i] > 1)
      part = make<arith::ShLIOp>(part, i32(llvm::Log2_64(steps[i])));
    else if (!isPower)
      part = make<arith::MulIOp>(part, i32(steps[i]));
    sum = sum ? make<arith::XOrIOp>(sum, part) : part;
    i = j;
  }
  return sum ? sum : i32(0);
}

Value Emitter::coordinate(const TileLayout &layout, int64_t dim, int64_t reg) {
  if (simd) {
    SmallVector<int32_t> values;
    for (int64_t lane = 0; lane < kSimdLanes; ++lane)
      values.push_back(layout.coord(reg, lane)[dim]);
    auto type = cast<ShapedType>(regType(b.getI32Type()));
    return constant(cast<TypedAttr>(
        Attribute(DenseElementsAttr::get(type, ArrayRef<int32_t>(values)))));
  }
  int64_t local = reg % layout.regsPerRepeat();
  int64_t bits = 0;
  for (size_t i = 0; i < layout.reg.size(); ++i)
    if (local >> i & 1)
      bits ^= layout.reg[i][dim];
  int64_t origin = layout.repeatOrigin(reg / layout.regsPerRepeat())[dim];
  Value thread = threadCoordinate(layout, dim);
  if (bits)
    thread = make<arith::XOrIOp>(thread, i32(bits));
  return origin ? make<arith::AddIOp>(thread, i32(origin)) : thread;
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value Emitter::permute(Value a, Value c, ArrayRef<int64_t> index) {
  bool identity = true;
  for (auto [l, i] : llvm::enumerate(index))
    identity &= int64_t(l) == i;
  if (identity)
    return a;
  return make<vector::ShuffleOp>(a, c, index);
}

/// i32 view of a GPU register for a shuffle, and back.
static Value asWord(Emitter &e, Value v) {
  return v.getType().isInteger(32)
             ? v
             : e.make<arith::BitcastOp>(e.b.getI32Type(), v);
}

/// GPU: what a lane of the warp has in `reg`, which `from` and `kept` name.
static Value shuffled(Emitter &e, Value reg, int64_t from, gpu::Shuffle kind,
                      int64_t kept = 0) {
  Value word = asWord(e, reg);
  Value got = gpu::shuffle(e.b, e.loc, word, e.i32(from), kind, kept);
  return word == reg ? got : e.make<arith::BitcastOp>(reg.getType(), got);
}

Value Emitter::shuffleXor(Value reg, int64_t mask) {
  if (simd) {
    SmallVector<int64_t> index;
    for (int64_t l = 0; l < kSimdLanes; ++l)
      index.push_back(l ^ mask);
    return permute(reg, reg, index);
  }
  return shuffled(*this, reg, mask, gpu::Shuffle::Xor);
}

Value Emitter::shuffleWithin(Value reg, int64_t mask, int64_t lane) {
  if (simd) {
    SmallVector<int64_t> index;
    for (int64_t l = 0; l < kSimdLanes; ++l)
      index.push_back((l & ~mask) | lane);
    return permute(reg, reg, index);
  }
  return shuffled(*this, reg, lane, gpu::Shuffle::Index,
                  (kWarpLanes - 1) & ~mask);
}

Value Emitter::isUpper(int64_t mask) {
  return make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                             make<arith::AndIOp>(tid, i32(mask)), i32(0));
}

/// GPU: what a lane keeps of two registers, and what it gets from the lane that
/// differs in `bit`.
static std::pair<Value, Value> keepAndGet(Emitter &e, Value a, Value c,
                                          int64_t mask) {
  Value upper = e.isUpper(mask);
  Value keep = e.make<arith::SelectOp>(upper, c, a);
  Value send = e.make<arith::SelectOp>(upper, a, c);
  return {keep, e.shuffleXor(send, mask)};
}

std::pair<Value, Value> Emitter::exchangePlaces(Value a, Value c, int64_t bit,
                                                bool rotate) {
  int64_t mask = int64_t(1) << bit;
  if (simd) {
    SmallVector<int64_t> clear, set;
    for (int64_t l = 0; l < kSimdLanes; ++l) {
      int64_t from = l, source = l & mask;
      if (rotate) {
        source = l & mask * 2;
        from = l & mask ? l | mask * 2 : l & ~(mask * 2);
      }
      clear.push_back((source ? kSimdLanes : 0) + (from & ~mask));
      set.push_back((source ? kSimdLanes : 0) + (from | mask));
    }
    return {permute(a, c, clear), permute(a, c, set)};
  }
  auto [keep, get] = keepAndGet(*this, a, c, mask);
  Value upper = isUpper(mask);
  return {make<arith::SelectOp>(upper, get, keep),
          make<arith::SelectOp>(upper, keep, get)};
}

Value Emitter::exchange(Value a, Value c, int64_t bit, bool rotate,
                        function_ref<Value(Value, Value)> combine) {
  auto [one, other] = simd ? exchangePlaces(a, c, bit, rotate)
                           : keepAndGet(*this, a, c, int64_t(1) << bit);
  return combine(one, other);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void Emitter::barrier() { gpu::barrier(b, loc); }

Value Emitter::clusterRank() { return gpu::clusterRank(b, loc); }

/// Where exchanges that lie beside each other begin.
constexpr int64_t kSharedAlign = 16;

Value Emitter::shared(int64_t bytes) {
  if (nextShared + bytes > kHeldExchange)
    nextShared = 0;
  int64_t start = nextShared;
  nextShared = llvm::alignTo(start + bytes, kSharedAlign);
  sharedBytes = std::max(sharedBytes, start + bytes);
  if (!start)
    return sharedBase;
  return make<LLVM::GEPOp>(sharedBase.getType(), b.getI8Type(), sharedBase,
                           ArrayRef<LLVM::GEPArg>{int32_t(start)});
}

} // namespace dither::transforms
