//===- EmitNibbles.cpp - Loads and stores of four-bit codes, one by one ---===//
//
// Two codes share a byte. Where a tile may begin or end inside of one, or a
// lane holds no pairs of neighbours, codes are moved one by one: a store must
// keep the other half of a byte, which another program may store meanwhile.
// Such bytes are changed by atomic operations, on the GPU of the words that
// they lie in.
//
//===----------------------------------------------------------------------===//

#include "Emit/MemoryAccess.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

namespace {

constexpr int64_t kBits = 4, kMask = 15;

/// The half of its byte that the element at a column of the tile is (an i64 of
/// 0 or 1): rows are padded to whole bytes.
Value parity(Access &s, Value column) {
  return s.e.make<arith::AndIOp>(s.add(s.a.index.back(), column), s.e.i64(1));
}

Value constantVector(Emitter &e, int64_t count, Type elem,
                     llvm::function_ref<int64_t(int64_t)> value) {
  SmallVector<APInt> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(APInt(elem.getIntOrFloatBitWidth(), value(i)));
  return e.constant(
      DenseIntElementsAttr::get(VectorType::get({count}, elem), values));
}

void update(Emitter &e, LLVM::AtomicBinOp op, Value pointer, Value bits) {
  e.make<LLVM::AtomicRMWOp>(op, pointer, bits, LLVM::AtomicOrdering::monotonic);
}

//===----------------------------------------------------------------------===//
// CPU: a run of neighbouring codes, in vectors of bytes
//===----------------------------------------------------------------------===//

/// Codes of a run of lanes, as slots of bytes: element i of a run that starts
/// in the high half of a byte is slot i + 1.
class NibbleRuns : public SimdAccess {
public:
  NibbleRuns(Emitter &e, const TileAccess &a) : SimdAccess(e, a, /*group=*/1) {}

  /// Codes of a run, one in each i8, zero for elements that do not exist.
  Value load(const Run &r) {
    if (r.units == 1)
      return loadOne(r);
    enter(r);
    Value from = e.make<arith::SelectOp>(
        any, e.make<arith::ShRUIOp>(begin, e.i32(1)), e.i32(0));
    Value to = e.make<arith::SelectOp>(
        any, e.make<arith::ShRUIOp>(add(end, e.i32(1)), e.i32(1)), e.i32(0));
    auto type = VectorType::get({slots / 2}, e.b.getI8Type());
    Value zero = e.constant(cast<TypedAttr>(e.b.getZeroAttr(type)));
    Value bytes = e.make<LLVM::MaskedLoadOp>(
        type, address(r), between(slots / 2, from, to), zero, 1);
    // Each byte for its two slots, then each element's own.
    SmallVector<int64_t> twice, low, high;
    for (int64_t i = 0; i < slots; ++i)
      twice.push_back(i / 2);
    Value all = e.make<vector::ShuffleOp>(bytes, bytes, twice);
    Type i8 = e.b.getI8Type();
    all = e.make<arith::ShRUIOp>(
        all,
        constantVector(e, slots, i8, [](int64_t i) { return i % 2 * kBits; }));
    all = e.make<arith::AndIOp>(
        all, constantVector(e, slots, i8, [](int64_t) { return kMask; }));
    for (int64_t i = 0; i < r.units; ++i) {
      low.push_back(i);
      high.push_back(std::min(i + 1, slots - 1));
    }
    Value codes = e.make<vector::ShuffleOp>(all, all, low);
    codes = e.make<arith::SelectOp>(
        isHigh, e.make<vector::ShuffleOp>(all, all, high), codes);
    Value none = e.constant(cast<TypedAttr>(e.b.getZeroAttr(codes.getType())));
    return e.make<arith::SelectOp>(between(r.units, skip, count), codes, none);
  }

  /// Stores codes, one in each i8.
  void store(const Run &r, Value codes) {
    if (r.units == 1)
      return storeOne(r, codes);
    enter(r);
    Value bytes = slotted(r, codes);
    SmallVector<int64_t> even, odd;
    for (int64_t i = 0; i < slots; i += 2) {
      even.push_back(i);
      odd.push_back(i + 1);
    }
    Type i8 = e.b.getI8Type();
    Value pairs = e.make<vector::ShuffleOp>(bytes, bytes, odd);
    pairs = e.make<arith::ShLIOp>(
        pairs, constantVector(e, slots / 2, i8, [](int64_t) { return kBits; }));
    pairs = e.make<arith::OrIOp>(pairs,
                                 e.make<vector::ShuffleOp>(bytes, bytes, even));
    // Bytes of which both halves are the tile's, or padding.
    Value lastColumn = e.make<arith::SubIOp>(
        add(e.make<arith::ExtSIOp>(e.b.getI64Type(), count),
            e.i64(r.coord.back())),
        e.i64(1));
    Value padded = isLast(lastColumn);
    Value odds = e.make<arith::AndIOp>(end, e.i32(1));
    Value to = e.make<arith::ShRUIOp>(
        add(end, e.make<arith::SelectOp>(padded, odds, e.i32(0))), e.i32(1));
    Value from = e.make<arith::ShRUIOp>(add(begin, e.i32(1)), e.i32(1));
    to = e.make<arith::SelectOp>(any, to, e.i32(0));
    Value pointer = address(r);
    e.make<LLVM::MaskedStoreOp>(pairs, pointer, between(slots / 2, from, to),
                                1);
    // A first element in a high half, and a last one in a low half.
    Value one = e.i32(1);
    Value startsHigh = e.make<arith::CmpIOp>(
        arith::CmpIPredicate::ne, e.make<arith::AndIOp>(begin, one), e.i32(0));
    storeHalf(e.make<arith::AndIOp>(any, startsHigh), pointer, bytes, begin,
              /*high=*/true);
    Value endsLow =
        e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, odds, e.i32(0));
    endsLow = e.make<arith::SelectOp>(
        padded, e.constant(e.b.getIntegerAttr(e.b.getI1Type(), 0)), endsLow);
    storeHalf(e.make<arith::AndIOp>(any, endsLow), pointer, bytes,
              e.make<arith::SubIOp>(end, one), /*high=*/false);
  }

private:
  // Runs of one element, as rows of one column are: no vectors, or the code
  // would be longer by a magnitude.

  /// Whether the one element of a run exists (i1); nothing if it does.
  Value exists(const Run &r) {
    Value inside;
    auto both = [&](arith::CmpIPredicate p, Value v) {
      Value holds = e.make<arith::CmpIOp>(p, v, e.i32(0));
      inside = inside ? e.make<arith::AndIOp>(inside, holds) : holds;
    };
    if (Value n = remaining(r))
      both(arith::CmpIPredicate::ne, n);
    if (Value n = skipped(r))
      both(arith::CmpIPredicate::eq, n);
    return inside;
  }

  /// Where in its byte the element lies, in bits (i8): 0 or 4.
  Value shiftOf(const Run &r) {
    Value half = parity(*this, e.i64(r.coord.back()));
    return e.make<arith::ShLIOp>(
        Value(e.make<arith::TruncIOp>(e.b.getI8Type(), half)), byte(2));
  }

  Value loadOne(const Run &r) {
    auto type = VectorType::get({1}, e.b.getI8Type());
    auto spread = [&](Type elem, Value v) -> Value {
      return e.make<vector::BroadcastOp>(VectorType::get({1}, elem), v);
    };
    Value bytes;
    if (Value inside = exists(r))
      bytes = e.make<LLVM::MaskedLoadOp>(
          type, address(r), spread(e.b.getI1Type(), inside),
          e.constant(cast<TypedAttr>(e.b.getZeroAttr(type))), 1);
    else
      bytes = e.make<LLVM::LoadOp>(type, address(r), 1);
    bytes = e.make<arith::ShRUIOp>(bytes, spread(e.b.getI8Type(), shiftOf(r)));
    return e.make<arith::AndIOp>(
        bytes,
        constantVector(e, 1, e.b.getI8Type(), [](int64_t) { return kMask; }));
  }

  void storeOne(const Run &r, Value codes) {
    OpBuilder::InsertionGuard guard(e.b);
    if (Value inside = exists(r)) {
      auto branch = e.make<scf::IfOp>(TypeRange{}, inside, false);
      e.b.setInsertionPointToStart(branch.thenBlock());
    }
    Value shift = shiftOf(r), at = address(r);
    // The padding after the last code of a row becomes zero.
    Value isLow =
        e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, shift, byte(0));
    Value whole = e.make<arith::AndIOp>(isLow, isLast(e.i64(r.coord.back())));
    Value clear = e.make<arith::SelectOp>(whole, byte(-1), byte(kMask));
    Value keep = e.make<arith::XOrIOp>(
        Value(e.make<arith::ShLIOp>(clear, shift)), byte(-1));
    Value code = e.make<vector::ExtractOp>(codes, ArrayRef<int64_t>{0});
    update(e, LLVM::AtomicBinOp::_and, at, keep);
    update(e, LLVM::AtomicBinOp::_or, at, e.make<arith::ShLIOp>(code, shift));
  }

  Value byte(int64_t v) {
    return e.constant(e.b.getIntegerAttr(e.b.getI8Type(), v));
  }

  /// What a run consists of: elements [skip, count), slots [begin, end).
  void enter(const Run &r) {
    bool isPair = r.units % 2 == 0;
    Value half;
    if (a.divisor.back() % 2 == 0) {
      int64_t known = r.coord.back() & 1;
      isHigh = e.constant(e.b.getIntegerAttr(e.b.getI1Type(), known));
      half = e.i32(known);
      slots = (r.units + known + 1) & ~int64_t(1);
    } else {
      Value odd = parity(*this, e.i64(r.coord.back()));
      isHigh = e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, odd, e.i64(0));
      half = e.make<arith::TruncIOp>(e.b.getI32Type(), odd);
      slots = r.units + (isPair ? 2 : 1);
    }
    skip = skipped(r);
    if (!skip)
      skip = e.i32(0);
    count = remaining(r);
    if (!count)
      count = e.i32(r.units);
    begin = add(half, skip);
    end = add(half, count);
    any = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, skip, count);
  }

  /// Address of the byte of slot 0.
  Value address(const Run &r) { return pointer(offset({}, r.coord)); }

  /// Which of `lanes` are in [from, to).
  Value between(int64_t lanes, Value from, Value to) {
    Type i32 = e.b.getI32Type();
    auto type = VectorType::get({lanes}, i32);
    Value index = constantVector(e, lanes, i32, [](int64_t i) { return i; });
    auto compare = [&](arith::CmpIPredicate p, Value with) -> Value {
      return e.make<arith::CmpIOp>(p, index,
                                   e.make<vector::BroadcastOp>(type, with));
    };
    return e.make<arith::AndIOp>(compare(arith::CmpIPredicate::sge, from),
                                 compare(arith::CmpIPredicate::slt, to));
  }

  /// Codes at their slots, zero in all other slots.
  Value slotted(const Run &r, Value codes) {
    Value zero = e.constant(cast<TypedAttr>(e.b.getZeroAttr(codes.getType())));
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < slots; ++i) {
      low.push_back(std::min(i, r.units));
      high.push_back(i >= 1 && i <= r.units ? i - 1 : r.units);
    }
    Value all = e.make<arith::SelectOp>(
        isHigh, e.make<vector::ShuffleOp>(codes, zero, high),
        e.make<vector::ShuffleOp>(codes, zero, low));
    Value none = e.constant(cast<TypedAttr>(e.b.getZeroAttr(all.getType())));
    return e.make<arith::SelectOp>(between(slots, begin, end), all, none);
  }

  void storeHalf(Value condition, Value pointer, Value bytes, Value slot,
                 bool high) {
    auto branch = e.make<scf::IfOp>(TypeRange{}, condition, false);
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(branch.thenBlock());
    Value index = e.make<arith::IndexCastUIOp>(e.b.getIndexType(), slot);
    Value code = e.make<vector::ExtractOp>(bytes, index);
    if (high)
      code = e.make<arith::ShLIOp>(code, byte(kBits));
    Value at = e.make<LLVM::GEPOp>(
        pointer.getType(), e.b.getI8Type(), pointer,
        ArrayRef<LLVM::GEPArg>{Value(e.make<arith::ShRUIOp>(slot, e.i32(1)))});
    update(e, LLVM::AtomicBinOp::_and, at, byte(high ? kMask : -kMask - 1));
    update(e, LLVM::AtomicBinOp::_or, at, code);
  }

  int64_t slots = 0;
  Value isHigh, skip, count, begin, end, any;
};

FailureOr<Registers> loadSimd(Emitter &e, const TileAccess &a) {
  NibbleRuns s(e, a);
  Type i32 = e.b.getI32Type();
  Value zero = e.splat(i32, 0);
  SmallVector<Value> codes(a.layout.numRegs());
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += s.perLane) {
    SmallVector<Value> parts;
    for (int64_t p = 0; p < s.perLane; ++p) {
      Value part = zero;
      for (const auto &r : s.runs(reg, p)) {
        if (s.dead(r))
          continue;
        Value v =
            e.make<arith::ExtUIOp>(VectorType::get({r.units}, i32), s.load(r));
        part = r.units == kSimdLanes
                   ? v
                   : Value(e.make<vector::InsertStridedSliceOp>(
                         v, part, ArrayRef<int64_t>{r.unit},
                         ArrayRef<int64_t>{1}));
      }
      parts.push_back(part);
    }
    for (int64_t j = 0; j < s.perLane; ++j)
      codes[reg + j] = s.fromMemoryOrder(parts, j);
  }
  return Registers(codes);
}

void storeSimd(Emitter &e, const TileAccess &a, ArrayRef<Value> codes) {
  NibbleRuns s(e, a);
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += s.perLane)
    for (int64_t p = 0; p < s.perLane; ++p) {
      auto runs = s.runs(reg, p);
      llvm::erase_if(runs, [&](auto &r) { return s.dead(r); });
      if (runs.empty())
        continue;
      Value part = s.toMemoryOrder(codes.slice(reg, s.perLane), p);
      part = e.make<arith::TruncIOp>(
          VectorType::get({kSimdLanes}, e.b.getI8Type()), part);
      for (const auto &r : runs)
        s.store(r, e.make<vector::ExtractStridedSliceOp>(
                       part, ArrayRef<int64_t>{r.unit},
                       ArrayRef<int64_t>{r.units}, ArrayRef<int64_t>{1}));
    }
}

//===----------------------------------------------------------------------===//
// GPU: register by register
//===----------------------------------------------------------------------===//

/// `body` where `condition` holds, which nothing does always.
void guarded(Emitter &e, Value condition, llvm::function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(e.b);
  if (condition) {
    auto branch = e.make<scf::IfOp>(TypeRange{}, condition, false);
    e.b.setInsertionPointToStart(branch.thenBlock());
  }
  body();
}

FailureOr<Registers> loadLanes(Emitter &e, const TileAccess &a) {
  LaneAccess s(e, a);
  if (!s.disjoint)
    return failure();
  Type i32 = e.b.getI32Type();
  SmallVector<Value> codes;
  for (int64_t reg = 0; reg < a.layout.numRegs(); ++reg) {
    if (s.dead(reg)) {
      codes.push_back(e.i32(0));
      continue;
    }
    auto emit = [&]() -> Value {
      Value byte = e.make<LLVM::LoadOp>(e.b.getI8Type(), s.address(reg), 1);
      Value shift = e.make<arith::ShLIOp>(
          e.make<arith::TruncIOp>(i32, parity(s, s.column(reg, 0))), e.i32(2));
      Value code = e.make<arith::ShRUIOp>(
          Value(e.make<arith::ExtUIOp>(i32, byte)), shift);
      return e.make<arith::AndIOp>(code, e.i32(kMask));
    };
    Value inside = s.inside(reg);
    if (!inside) {
      codes.push_back(emit());
      continue;
    }
    auto branch = e.make<scf::IfOp>(TypeRange{i32}, inside, true);
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(branch.thenBlock());
    e.make<scf::YieldOp>(emit());
    e.b.setInsertionPointToStart(branch.elseBlock());
    e.make<scf::YieldOp>(e.i32(0));
    codes.push_back(branch.getResult(0));
  }
  return Registers(codes);
}

LogicalResult storeLanes(Emitter &e, const TileAccess &a,
                         ArrayRef<Value> codes) {
  LaneAccess s(e, a);
  if (!s.disjoint)
    return failure();
  guarded(e, s.owner(), [&] {
    for (int64_t reg = 0; reg < a.layout.numRegs(); ++reg)
      if (!s.dead(reg))
        guarded(e, s.inside(reg), [&] { storeNibble(s, reg, codes[reg]); });
  });
  return success();
}

} // namespace

void storeNibble(LaneAccess &s, int64_t reg, Value code) {
  Emitter &e = s.e;
  Type i32 = e.b.getI32Type(), i64 = e.b.getI64Type();
  // The aligned word that holds the byte: memory is allocated in such words.
  Value byte = s.address(reg);
  Value within = e.make<arith::AndIOp>(
      Value(e.make<LLVM::PtrToIntOp>(i64, byte)), e.i64(3));
  Value back = e.make<arith::SubIOp>(e.i64(0), within);
  Value word = e.make<LLVM::GEPOp>(byte.getType(), e.b.getI8Type(), byte,
                                   ArrayRef<LLVM::GEPArg>{back});
  Value half = parity(s, s.column(reg, 0));
  Value shift = e.make<arith::TruncIOp>(
      i32, s.add(e.make<arith::ShLIOp>(within, e.i64(3)),
                 e.make<arith::ShLIOp>(half, e.i64(2))));
  // The padding after the last code of a row becomes zero.
  Value isLow = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, half, e.i64(0));
  Value whole = e.make<arith::AndIOp>(isLow, s.isLast(s.column(reg, 0)));
  Value clear = e.make<arith::SelectOp>(whole, e.i32(255), e.i32(kMask));
  Value keep = e.make<arith::XOrIOp>(Value(e.make<arith::ShLIOp>(clear, shift)),
                                     e.i32(-1));
  update(e, LLVM::AtomicBinOp::_and, word, keep);
  update(e, LLVM::AtomicBinOp::_or, word, e.make<arith::ShLIOp>(code, shift));
}

FailureOr<Registers> loadNibbles(Emitter &e, const TileAccess &a) {
  if (!a.layout.rank())
    return failure();
  FailureOr<Registers> codes = e.simd ? loadSimd(e, a) : loadLanes(e, a);
  if (failed(codes))
    return failure();
  return Registers(e.packCodes(*codes, wordGroup(a.layout, kBits), kBits));
}

LogicalResult storeNibbles(Emitter &e, const TileAccess &a,
                           ArrayRef<Value> tile) {
  if (!a.layout.rank())
    return failure();
  SmallVector<Value> codes =
      e.unpackCodes(tile, wordGroup(a.layout, kBits), kBits);
  if (!e.simd)
    return storeLanes(e, a, codes);
  storeSimd(e, a, codes);
  return success();
}

} // namespace dither::transforms
