//===- EmitMemory.cpp - Tile loads and stores -----------------------------===//
//
// A lane (GPU) or a run of neighbouring lanes (CPU) moves as many contiguous
// bytes per access as the layout and the known alignment allow. Accesses that
// may leave the tensor are guarded element by element, or vector by vector
// where the extents divide.
//
//===----------------------------------------------------------------------===//

#include "Emit/MemoryAccess.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

namespace {

int64_t elemBits(Type elem) { return quant::storageBits(elem); }

/// Whether rows of the memref may end in half a byte.
bool mayEndInByte(const MemRefDesc &mem) {
  return elemBits(mem.elem) == 4 && !mem.staticSizes.empty() &&
         (ShapedType::isDynamic(mem.staticSizes.back()) ||
          mem.staticSizes.back() % 2);
}

//===----------------------------------------------------------------------===//
// CPU: runs of neighbouring lanes
//===----------------------------------------------------------------------===//

/// Whole words, or values.
class WordAccess : public SimdAccess {
public:
  WordAccess(Emitter &e, const TileAccess &a)
      : SimdAccess(e, a,
                   elemBits(a.mem.elem) < 32
                       ? wordGroup(a.layout, elemBits(a.mem.elem))
                       : 1) {}

  Type unitType() const {
    if (bits >= 32)
      return a.mem.elem;
    return e.b.getIntegerType(unitBits);
  }
  int64_t memoryBits() const { return std::max<int64_t>(8, bits); }
  /// Mask over the bytes (or elements) of the elements of a run: those from
  /// `skip` (nothing for 0) on and before `rem`.
  Value mask(const Run &r, Value rem) {
    int64_t lanes = r.units * group * bits / memoryBits();
    Value skip = skipped(r);
    if (bits == 4)
      rem = e.make<arith::ShRUIOp>(e.make<arith::AddIOp>(rem, e.i32(1)),
                                   e.i32(1));
    SmallVector<int32_t> iota(lanes);
    std::iota(iota.begin(), iota.end(), 0);
    auto type = VectorType::get({lanes}, e.b.getI32Type());
    Value index = e.constant(cast<TypedAttr>(
        Attribute(DenseElementsAttr::get(type, ArrayRef<int32_t>(iota)))));
    Value inside =
        e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, index,
                              e.make<vector::BroadcastOp>(type, rem));
    if (!skip)
      return inside;
    if (bits == 4)
      skip = e.make<arith::ShRUIOp>(skip, e.i32(1));
    return e.make<arith::AndIOp>(
        inside, e.make<arith::CmpIOp>(arith::CmpIPredicate::sge, index,
                                      e.make<vector::BroadcastOp>(type, skip)));
  }
  /// The high half of the byte that an odd number of elements ends in is
  /// padding, which is zero.
  Value clearHalf(Value bytes, Value rem) {
    auto type = cast<VectorType>(bytes.getType());
    SmallVector<int32_t> iota(type.getNumElements());
    std::iota(iota.begin(), iota.end(), 0);
    auto indexType = type.clone(e.b.getI32Type());
    Value index = e.constant(cast<TypedAttr>(
        Attribute(DenseElementsAttr::get(indexType, ArrayRef<int32_t>(iota)))));
    Value end = e.make<vector::BroadcastOp>(
        indexType, Value(e.make<arith::ShRUIOp>(rem, e.i32(1))));
    Value low = e.constant(cast<TypedAttr>(
        Attribute(DenseElementsAttr::get(type, e.b.getI8IntegerAttr(15)))));
    Value isEnd = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, index, end);
    return e.make<arith::SelectOp>(isEnd, e.make<arith::AndIOp>(bytes, low),
                                   bytes);
  }
  Type memoryType(int64_t count) const {
    Type elem = bits >= 32 ? a.mem.elem : e.b.getIntegerType(memoryBits());
    return VectorType::get({count * bits / memoryBits()}, elem);
  }

  /// A single element needs no mask, which CPUs would branch for: where it does
  /// not exist, the access goes elsewhere.
  bool isSingle(const Run &r) const {
    return r.units * group == 1 && bits >= 8;
  }
  Value exists(const Run &r, Value rem) {
    Value there =
        e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, rem, e.i32(0));
    if (Value skip = skipped(r))
      there = e.make<arith::AndIOp>(
          there,
          e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, skip, e.i32(0)));
    return there;
  }
  Value orElsewhere(Value there, Value ptr) {
    return e.make<arith::SelectOp>(there, ptr, e.elsewhere());
  }
  /// Where a masked access with `rem` elements goes: one of none takes hundreds
  /// of cycles where there is no memory.
  Value orElsewhereIfNone(Value rem, Value ptr) {
    return orElsewhere(
        e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, rem, e.i32(0)), ptr);
  }

  Value loadRun(const Run &r) {
    Value ptr = pointer(offset({}, r.coord));
    int64_t align = std::max<int64_t>(1, memoryBits() / 8);
    auto type = VectorType::get({r.units}, unitType());
    Value rem = remaining(r);
    Value v;
    if (!rem) {
      v = e.make<LLVM::LoadOp>(type, ptr, align);
    } else if (isSingle(r)) {
      Value there = exists(r, rem);
      Value zero = e.constant(cast<TypedAttr>(e.b.getZeroAttr(type)));
      v = e.make<LLVM::LoadOp>(type, orElsewhere(there, ptr), align);
      v = e.make<arith::SelectOp>(there, v, zero);
    } else {
      int64_t count = r.units * group;
      Type mem = memoryType(count);
      Value zero = e.constant(cast<TypedAttr>(e.b.getZeroAttr(mem)));
      v = e.make<LLVM::MaskedLoadOp>(mem, orElsewhereIfNone(rem, ptr),
                                     mask(r, rem), zero, align);
      if (mayEndInByte(a.mem))
        v = clearHalf(v, rem);
      if (mem != type)
        v = e.make<vector::BitCastOp>(type, v);
    }
    if (unitBits < 32)
      v = e.make<arith::ExtUIOp>(VectorType::get({r.units}, e.b.getI32Type()),
                                 v);
    return v;
  }

  /// 64 bytes. What no cache will hold goes past them, if it is a line.
  void storeLine(const Run &r, Value v) {
    Value ptr = pointer(offset({}, r.coord));
    int64_t align = std::max<int64_t>(1, memoryBits() / 8);
    if (!a.mem.large) {
      e.make<LLVM::StoreOp>(v, ptr, align);
      return;
    }
    Value isLine = a.mem.largeLines;
    auto divides = [&](int64_t elements) {
      return elements * bits % (8 * kLineBytes) == 0;
    };
    if (!isLine || !divides(a.divisor.back()) || !divides(r.coord.back()))
      isLine = e.make<arith::AndIOp>(a.mem.large, e.areLines({ptr}));
    scf::IfOp::create(
        e.b, e.loc, isLine,
        [&](OpBuilder &b, Location loc) {
          LLVM::StoreOp::create(b, loc, v, ptr, kLineBytes,
                                /*isVolatile=*/false, /*isNonTemporal=*/true);
          scf::YieldOp::create(b, loc);
        },
        [&](OpBuilder &b, Location loc) {
          LLVM::StoreOp::create(b, loc, v, ptr, align);
          scf::YieldOp::create(b, loc);
        });
  }

  void storeRun(const Run &r, Value v) {
    Value ptr = pointer(offset({}, r.coord));
    int64_t align = std::max<int64_t>(1, memoryBits() / 8);
    if (unitBits < 32)
      v = e.make<arith::TruncIOp>(VectorType::get({r.units}, unitType()), v);
    Value rem = remaining(r);
    if (!rem) {
      e.make<LLVM::StoreOp>(v, ptr, align);
      return;
    }
    if (isSingle(r)) {
      e.make<LLVM::StoreOp>(v, orElsewhere(exists(r, rem), ptr), align);
      return;
    }
    int64_t count = r.units * group;
    Type mem = memoryType(count);
    if (v.getType() != mem)
      v = e.make<vector::BitCastOp>(cast<VectorType>(mem), v);
    if (bits == 4)
      v = clearHalf(v, rem);
    e.make<LLVM::MaskedStoreOp>(v, orElsewhereIfNone(rem, ptr), mask(r, rem),
                                align);
  }
};

FailureOr<Registers> loadSimd(Emitter &e, const TileAccess &a) {
  WordAccess s(e, a);
  if (s.unitBits < 8)
    return failure();
  Type regElem = s.bits < 32 ? Type(e.b.getI32Type()) : a.mem.elem;
  auto regType = VectorType::get({kSimdLanes}, regElem);
  Value zero = e.constant(cast<TypedAttr>(e.b.getZeroAttr(regType)));
  SmallVector<Value> out(a.layout.numRegs() / s.group);
  // One element for all lanes: each register is a load that repeats it.
  bool whole = true;
  for (int64_t d = 0; d < s.rank; ++d)
    whole &= !s.padded(d);
  if (s.copies == kSimdLanes - 1 && s.bits >= 32 && a.inBounds && whole) {
    for (int64_t reg = 0; reg < a.layout.numRegs(); ++reg) {
      Value ptr = s.pointer(s.offset({}, s.place(a.layout.coord(reg))));
      out[reg] = e.fill(e.make<LLVM::LoadOp>(a.mem.elem, ptr, s.bits / 8));
    }
    return Registers(out);
  }
  int64_t regsPerStep = s.perLane * s.group;
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += regsPerStep) {
    SmallVector<Value> parts;
    for (int64_t p = 0; p < s.perLane; ++p) {
      Value part = zero;
      for (const auto &r : s.runs(reg, p)) {
        if (s.dead(r))
          continue;
        Value v = s.loadRun(r);
        if (r.units == kSimdLanes)
          part = v;
        else
          part = e.make<vector::InsertStridedSliceOp>(
              v, part, ArrayRef<int64_t>{r.unit}, ArrayRef<int64_t>{1});
      }
      parts.push_back(part);
    }
    for (int64_t j = 0; j < s.perLane; ++j)
      out[reg / s.group + j] = s.fromMemoryOrder(parts, j);
  }
  return Registers(out);
}

/// Vectors of 16 words as one vector of their low halves (or low bytes), in
/// order: two or four of them make 64 bytes.
Value concatLow(Emitter &e, ArrayRef<Value> words) {
  OpBuilder &b = e.b;
  auto narrow = [&](Value x, Value y, int64_t from) -> Value {
    // Every other piece of `from` / 2 bits of both.
    int64_t lanes = kSimdLanes * 32 / (from / 2);
    auto type = VectorType::get({lanes}, b.getIntegerType(from / 2));
    SmallVector<int64_t> even;
    for (int64_t i = 0; i < lanes; ++i)
      even.push_back(2 * i);
    return e.make<vector::ShuffleOp>(e.make<vector::BitCastOp>(type, x),
                                     e.make<vector::BitCastOp>(type, y), even);
  };
  SmallVector<Value> parts(words);
  for (int64_t from = 32; parts.size() > 1; from /= 2) {
    SmallVector<Value> next;
    for (size_t i = 0; i < parts.size(); i += 2)
      next.push_back(narrow(parts[i], parts[i + 1], from));
    parts = next;
  }
  return parts.front();
}

LogicalResult storeSimd(Emitter &e, const TileAccess &a, Registers regs) {
  WordAccess s(e, a);
  if (s.unitBits < 8)
    return failure();
  int64_t regsPerStep = s.perLane * s.group;
  // Vectors that follow each other in memory wait until they make 64 bytes.
  int64_t together = s.unitBits < 32 ? 32 / s.unitBits : 1;
  SmallVector<std::pair<SimdAccess::Run, Value>> waiting;
  auto flush = [&]() {
    for (auto &[run, v] : waiting)
      s.storeRun(run, v);
    waiting.clear();
  };
  auto store = [&](const SimdAccess::Run &run, Value v) {
    if (run.units != kSimdLanes || s.isGuarded(run)) {
      flush();
      s.storeRun(run, v);
      return;
    }
    if (together == 1) {
      s.storeLine(run, v);
      return;
    }
    if (!waiting.empty()) {
      Coord next = waiting.back().first.coord;
      next.back() += kSimdLanes * s.group;
      if (next != run.coord)
        flush();
    }
    waiting.push_back({run, v});
    if (int64_t(waiting.size()) < together)
      return;
    SmallVector<Value> words;
    for (auto &[r, word] : waiting)
      words.push_back(word);
    SimdAccess::Run first = waiting.front().first;
    waiting.clear();
    s.storeLine(first, concatLow(e, words));
  };
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += regsPerStep)
    for (int64_t p = 0; p < s.perLane; ++p) {
      SmallVector<SimdAccess::Run> runs = s.runs(reg, p);
      llvm::erase_if(runs, [&](auto &r) { return s.dead(r); });
      if (runs.empty())
        continue;
      SmallVector<Value> sources;
      for (int64_t j = 0; j < s.perLane; ++j)
        sources.push_back(regs[reg / s.group + j]);
      Value part = s.toMemoryOrder(sources, p);
      for (const auto &r : runs) {
        Value v = part;
        if (r.units < kSimdLanes)
          v = e.make<vector::ExtractStridedSliceOp>(
              part, ArrayRef<int64_t>{r.unit}, ArrayRef<int64_t>{r.units},
              ArrayRef<int64_t>{1});
        store(r, v);
      }
    }
  flush();
  return success();
}

//===----------------------------------------------------------------------===//
// GPU: contiguous registers of a lane
//===----------------------------------------------------------------------===//

/// FP4 rows of odd length end in half a byte of padding, which is zero.
Value clearHalf(LaneAccess &s, Value piece, int64_t reg) {
  if (s.bits != 4 || s.step != 2 || !s.limits[s.rank - 1])
    return piece;
  Emitter &e = s.e;
  Value whole = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                      s.column(reg, 1), s.limits[s.rank - 1]);
  Value low = e.constant(cast<TypedAttr>(Attribute(e.b.getI8IntegerAttr(15))));
  return e.make<arith::SelectOp>(whole, piece,
                                 e.make<arith::AndIOp>(piece, low));
}

/// Memory type of `count` elements, and the words (or values) they make.
Type pieceType(Emitter &e, Type elem, int64_t count) {
  int64_t bits = elemBits(elem);
  if (bits >= 32)
    return count == 1 ? elem : Type(VectorType::get({count}, elem));
  int64_t total = count * bits;
  if (total > 32)
    return VectorType::get({total / 32}, e.b.getI32Type());
  return e.b.getIntegerType(total);
}

FailureOr<Registers> loadLanes(Emitter &e, const TileAccess &a) {
  LaneAccess s(e, a);
  if (!s.disjoint || s.group * s.bits < 8)
    return failure();
  Type elem = a.mem.elem;
  bool words = s.bits < 32;
  SmallVector<Value> out(a.layout.numRegs() / s.group);
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += s.step) {
    Type type = pieceType(e, elem, s.step);
    Value cond = s.inside(reg);
    auto emit = [&](Value address) -> Value {
      Value piece = e.make<LLVM::LoadOp>(
          type, address, std::max<int64_t>(1, s.step * s.bits / 8));
      return mayEndInByte(a.mem) ? clearHalf(s, piece, reg) : piece;
    };
    Value v;
    if (!cond) {
      v = emit(s.address(reg));
    } else if (s.rowsBegin()) {
      // No branch: loads on either side of one would stay there.
      v = e.make<arith::SelectOp>(
          cond, emit(s.addressOrFirst(reg, cond)),
          Value(e.constant(cast<TypedAttr>(e.b.getZeroAttr(type)))));
    } else {
      auto branch = e.make<scf::IfOp>(TypeRange{type}, cond, true);
      OpBuilder::InsertionGuard guard(e.b);
      e.b.setInsertionPointToStart(branch.thenBlock());
      e.make<scf::YieldOp>(emit(s.address(reg)));
      e.b.setInsertionPointToStart(branch.elseBlock());
      e.make<scf::YieldOp>(
          Value(e.constant(cast<TypedAttr>(e.b.getZeroAttr(type)))));
      v = branch.getResult(0);
    }
    auto vecType = dyn_cast<VectorType>(type);
    if (!words) {
      for (int64_t i = 0; i < s.step; ++i)
        out[reg + i] =
            vecType ? Value(e.make<vector::ExtractOp>(v, ArrayRef<int64_t>{i}))
                    : v;
      continue;
    }
    if (vecType) {
      for (int64_t i = 0; i < vecType.getDimSize(0); ++i)
        out[reg / s.group + i] =
            e.make<vector::ExtractOp>(v, ArrayRef<int64_t>{i});
      continue;
    }
    if (!v.getType().isInteger(32))
      v = e.make<arith::ExtUIOp>(e.b.getI32Type(), v);
    int64_t shift = reg % s.group * s.bits;
    if (shift)
      v = e.make<arith::OrIOp>(out[reg / s.group],
                               e.make<arith::ShLIOp>(v, e.i32(shift)));
    out[reg / s.group] = v;
  }
  return Registers(out);
}

LogicalResult storeLanes(Emitter &e, const TileAccess &a, Registers regs) {
  LaneAccess s(e, a);
  if (!s.disjoint || s.group * s.bits < 8)
    return failure();
  Type elem = a.mem.elem;
  OpBuilder::InsertionGuard guard(e.b);
  if (Value owner = s.owner()) {
    auto branch = e.make<scf::IfOp>(TypeRange{}, owner, false);
    e.b.setInsertionPointToStart(branch.thenBlock());
  }
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += s.step) {
    if (s.dead(reg))
      continue;
    Type type = pieceType(e, elem, s.step);
    Value v;
    auto vecType = dyn_cast<VectorType>(type);
    int64_t first = reg / s.group;
    if (vecType) {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < vecType.getDimSize(0); ++i)
        parts.push_back(regs[first + i]);
      v = e.make<vector::FromElementsOp>(vecType, parts);
    } else {
      v = regs[first];
      if (int64_t shift = reg % s.group * s.bits)
        v = e.make<arith::ShRUIOp>(v, e.i32(shift));
      if (v.getType() != type)
        v = e.make<arith::TruncIOp>(type, v);
    }
    v = clearHalf(s, v, reg);
    OpBuilder::InsertionGuard inner(e.b);
    if (Value cond = s.inside(reg)) {
      auto branch = e.make<scf::IfOp>(TypeRange{}, cond, false);
      e.b.setInsertionPointToStart(branch.thenBlock());
    }
    if (s.bits == 4 && a.shape.back() % 2) {
      // The tile ends in the middle of a byte, whose other half is padding or
      // not the tile's.
      Value whole = e.make<arith::OrIOp>(
          Value(e.make<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                      s.column(reg, 1), s.limits.back())),
          s.isLast(s.column(reg, 0)));
      auto branch = e.make<scf::IfOp>(TypeRange{}, whole, true);
      e.b.setInsertionPointToStart(branch.elseBlock());
      Value code = e.make<arith::ExtUIOp>(e.b.getI32Type(), v);
      storeNibble(s, reg, e.make<arith::AndIOp>(code, e.i32(15)));
      e.b.setInsertionPointToStart(branch.thenBlock());
    }
    e.make<LLVM::StoreOp>(v, s.address(reg),
                          std::max<int64_t>(1, s.step * s.bits / 8));
  }
  return success();
}

} // namespace

//===----------------------------------------------------------------------===//
// Words, and four-bit codes where they do not lie in whole bytes
//===----------------------------------------------------------------------===//

/// How the codes of a tile lie in bytes: as the lanes hold them, or not, or
/// what is only known at run time.
enum class Bytes { Whole, Split, Unknown };

static Bytes bytesOf(const TileAccess &a) {
  if (elemBits(a.mem.elem) != 4)
    return Bytes::Whole;
  if (wordGroup(a.layout, 4) < 2)
    return Bytes::Split;
  return a.divisor.back() % 2 == 0 ? Bytes::Whole : Bytes::Unknown;
}

/// Whether a tile starts at a byte (i1), and the access if it does.
static std::pair<Value, TileAccess> atByte(Emitter &e, const TileAccess &a) {
  Value half = e.make<arith::AndIOp>(a.index.back(), e.i64(1));
  TileAccess whole = a;
  whole.divisor.back() = 2;
  return {e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, half, e.i64(0)),
          whole};
}

FailureOr<Registers> Emitter::load(const TileAccess &a) {
  auto words = [&](const TileAccess &a) {
    return simd ? loadSimd(*this, a) : loadLanes(*this, a);
  };
  Bytes bytes = bytesOf(a);
  if (bytes == Bytes::Whole)
    return words(a);
  if (bytes == Bytes::Split)
    return loadNibbles(*this, a);
  auto [condition, whole] = atByte(*this, a);
  int64_t count = a.layout.numRegs() / wordGroup(a.layout, 4);
  SmallVector<Type> types(count, regType(b.getI32Type()));
  auto branch = make<scf::IfOp>(types, condition, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  FailureOr<Registers> even = words(whole);
  if (failed(even))
    return failure();
  make<scf::YieldOp>(*even);
  b.setInsertionPointToStart(branch.elseBlock());
  FailureOr<Registers> odd = loadNibbles(*this, a);
  if (failed(odd))
    return failure();
  make<scf::YieldOp>(*odd);
  return Registers(branch.getResults());
}

LogicalResult Emitter::store(const TileAccess &a, Registers tile) {
  auto words = [&](const TileAccess &a) {
    return simd ? storeSimd(*this, a, tile) : storeLanes(*this, a, tile);
  };
  Bytes bytes = bytesOf(a);
  // A lane of a GPU knows of the one byte that the tile ends in.
  if (simd && bytes != Bytes::Split && elemBits(a.mem.elem) == 4 &&
      a.shape.back() % 2)
    bytes = Bytes::Split;
  if (bytes == Bytes::Whole)
    return words(a);
  if (bytes == Bytes::Split)
    return storeNibbles(*this, a, tile);
  auto [condition, whole] = atByte(*this, a);
  auto branch = make<scf::IfOp>(TypeRange{}, condition, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (failed(words(whole)))
    return failure();
  b.setInsertionPointToStart(branch.elseBlock());
  return storeNibbles(*this, a, tile);
}

//===----------------------------------------------------------------------===//
// Orders of scales, atomics, zeroing
//===----------------------------------------------------------------------===//

/// The byte of the first of four scales of a row that begin at a multiple of
/// four, in a padded matrix of R rows and C columns, T = C / 4, q = c / 4:
///   128x4   ((r div 128) T + q) 512 + (r mod 32) 16 + (r mod 128 div 32) 4
///   8x4     ((r div 8) T + q) 32 + (r mod 8) 4
///   packed  (q R + r) 4
/// Sources: Semantics.md and SemanticsOfModes.md of the dialect.
static Value quadOffset(Emitter &e, quant::ScaleLayout order, Value row,
                        Value quad, ArrayRef<Value> extents) {
  auto shr = [&](Value v, int64_t k) {
    return e.make<arith::ShRUIOp>(v, e.i64(k)).getResult();
  };
  auto bits = [&](Value v, int64_t mask) {
    return e.make<arith::AndIOp>(v, e.i64(mask)).getResult();
  };
  auto shl = [&](Value v, int64_t k) {
    return e.make<arith::ShLIOp>(v, e.i64(k)).getResult();
  };
  auto add = [&](Value x, Value y) {
    return e.make<arith::AddIOp>(x, y).getResult();
  };
  if (order == quant::ScaleLayout::packed_column_major) {
    Value column = e.make<arith::MulIOp>(quad, extents[0]);
    return shl(add(column, row), 2);
  }
  bool tall = order == quant::ScaleLayout::swizzle_128x4;
  int64_t rowBits = tall ? 7 : 3;
  Value band = e.make<arith::MulIOp>(shr(row, rowBits), shr(extents[1], 2));
  Value offset = shl(add(band, quad), rowBits + 2);
  if (!tall)
    return add(offset, shl(bits(row, 7), 2));
  offset = add(offset, shl(bits(row, 31), 4));
  return add(offset, shl(bits(shr(row, 5), 3), 2));
}

/// How far apart quads of a row are that follow each other, in bytes; 0 where
/// that depends on the number of rows.
static int64_t quadDistance(quant::ScaleLayout order) {
  if (order == quant::ScaleLayout::packed_column_major)
    return 0;
  return order == quant::ScaleLayout::swizzle_128x4 ? 512 : 32;
}

LogicalResult Emitter::storeScales(const TileAccess &a, Registers tile,
                                   quant::ScaleLayout order) {
  int64_t rank = a.layout.rank();
  if (rank != 2 || elemBits(a.mem.elem) != 8)
    return failure();
  int64_t group = wordGroup(a.layout, 8);
  SmallVector<Value> codes = unpackCodes(tile, group, 8);
  Type i8Type = b.getI8Type();
  auto add = [&](Value x, Value y) { return make<arith::AddIOp>(x, y); };
  SmallVector<Value> sizes = a.mem.sizes;
  if (a.mem.run)
    sizes[1] = a.mem.columns;
  auto emit = [&](Value row, Value col, Value bytes, int64_t quads = 0) {
    Value offset = add(
        quadOffset(*this, order, row, make<arith::ShRUIOp>(col, i64(2)), sizes),
        make<arith::AndIOp>(col, i64(3)));
    if (quads) {
      offset = add(offset, i64(quads * quadDistance(order)));
      col = add(col, i64(quads * 4));
    }
    Value ptr = make<LLVM::GEPOp>(a.mem.ptr.getType(), i8Type, a.mem.ptr,
                                  ArrayRef<LLVM::GEPArg>{offset});
    // Unsigned: what is before the memref is outside, too.
    Value cond;
    if (!a.inBounds)
      cond = make<arith::AndIOp>(
          make<arith::CmpIOp>(arith::CmpIPredicate::ult, row, sizes[0]),
          make<arith::CmpIOp>(arith::CmpIPredicate::ult, col, sizes[1]));
    OpBuilder::InsertionGuard guard(b);
    if (cond) {
      auto branch = make<scf::IfOp>(TypeRange{}, cond, false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    // Four scales start at a multiple of four from the pointer.
    bool quad = bytes.getType() == b.getI32Type();
    make<LLVM::StoreOp>(bytes, ptr,
                        quad ? std::gcd(a.mem.align, int64_t(4)) : 1);
  };

  if (simd) {
    int64_t copies = 0;
    for (auto [i, c] : llvm::enumerate(a.layout.lane))
      if (isZero(c))
        copies |= int64_t(1) << i;
    // Four neighbouring scales of a row lie together if the tile starts there.
    bool quads = a.divisor[1] % 4 == 0;
    for (int64_t reg = 0; reg < a.layout.numRegs(); ++reg) {
      Value bytes = make<arith::TruncIOp>(VectorType::get({kSimdLanes}, i8Type),
                                          codes[reg]);
      for (int64_t l = 0; l < kSimdLanes;) {
        Coord c = a.layout.coord(reg, l);
        bool dead = (l & copies) || c[0] >= a.shape[0] || c[1] >= a.shape[1];
        if (dead) {
          ++l;
          continue;
        }
        int64_t n = 1;
        if (quads && c[1] % 4 == 0 && l + 4 <= kSimdLanes) {
          n = 4;
          for (int64_t k = 1; k < 4; ++k) {
            Coord next = a.layout.coord(reg, l + k);
            if (((l + k) & copies) || next[0] != c[0] || next[1] != c[1] + k ||
                next[1] >= a.shape[1])
              n = 1;
          }
        }
        Value part =
            n == 1 ? Value(make<vector::ExtractOp>(bytes, ArrayRef<int64_t>{l}))
                   : Value(make<vector::ExtractStridedSliceOp>(
                         bytes, ArrayRef<int64_t>{l}, ArrayRef<int64_t>{n},
                         ArrayRef<int64_t>{1}));
        emit(add(a.index[0], i64(c[0])), add(a.index[1], i64(c[1])), part);
        l += n;
      }
    }
    return success();
  }

  LaneAccess s(*this, a);
  OpBuilder::InsertionGuard guard(b);
  if (Value owner = s.owner()) {
    auto branch = make<scf::IfOp>(TypeRange{}, owner, false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  bool quads = group == 4 && a.divisor[1] % 4 == 0 && a.shape[1] % 4 == 0;
  for (int64_t reg = 0; reg < a.layout.numRegs(); reg += quads ? 4 : 1) {
    Coord c = a.layout.coord(reg);
    if (c[0] >= a.shape[0] || c[1] >= a.shape[1])
      continue;
    Value row = add(add(a.index[0], s.thread[0]), i64(c[0]));
    // Of whole quads of registers the offset is a constant, so that all of a
    // row have one address.
    int64_t quad = a.mem.run || !quadDistance(order) ? 0 : c[1] / 4;
    Value col =
        s.columnOf(add(add(a.index[1], s.thread[1]), i64(c[1] - quad * 4)));
    if (a.mem.run)
      col = add(col, a.mem.first);
    Value bytes = quads ? tile[reg / 4]
                        : Value(make<arith::TruncIOp>(i8Type, codes[reg]));
    OpBuilder::InsertionGuard inner(b);
    Value live;
    for (int64_t d = 0; d < 2; ++d)
      if (s.padded(d)) {
        Value at = add(s.thread[d], i64(c[d]));
        Value in =
            make<arith::CmpIOp>(arith::CmpIPredicate::slt, at, i64(a.shape[d]));
        live = live ? Value(make<arith::AndIOp>(live, in)) : in;
      }
    if (live) {
      auto branch = make<scf::IfOp>(TypeRange{}, live, false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    emit(row, col, bytes, quad);
  }
  return success();
}

void Emitter::atomic(LLVM::AtomicBinOp kind, const TileAccess &a,
                     Registers regs) {
  auto update = [&](Value ptr, Value v) {
    if (a.mem.elem.isF32())
      v = make<arith::BitcastOp>(b.getI32Type(), v);
    OpBuilder::InsertionGuard guard(b);
    if (simd && kind == LLVM::AtomicBinOp::umax) {
      // A maximum only grows: what is not above the one there needs no
      // exclusive access to its line, which takes ten times as long.
      auto there = make<LLVM::LoadOp>(v.getType(), ptr, /*alignment=*/4);
      there.setOrdering(LLVM::AtomicOrdering::monotonic);
      Value above = make<arith::CmpIOp>(arith::CmpIPredicate::ult, there, v);
      auto branch = make<scf::IfOp>(TypeRange{}, above, false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    make<LLVM::AtomicRMWOp>(kind, ptr, v, LLVM::AtomicOrdering::monotonic);
  };
  if (simd) {
    SimdAccess s(*this, a, /*group=*/1);
    for (int64_t reg = 0; reg < a.layout.numRegs(); ++reg)
      for (int64_t l = 0; l < kSimdLanes; ++l) {
        if (l & s.copies)
          continue;
        SimdAccess::Run run{0, 1, a.layout.coord(reg, l)};
        if (s.dead(run))
          continue;
        OpBuilder::InsertionGuard guard(b);
        if (Value rem = s.remaining(run)) {
          Value in = make<arith::CmpIOp>(arith::CmpIPredicate::ne, rem, i32(0));
          if (Value skip = s.skipped(run))
            in = make<arith::AndIOp>(
                in,
                make<arith::CmpIOp>(arith::CmpIPredicate::eq, skip, i32(0)));
          auto branch = make<scf::IfOp>(TypeRange{}, in, false);
          b.setInsertionPointToStart(branch.thenBlock());
        }
        Value v = make<vector::ExtractOp>(regs[reg], ArrayRef<int64_t>{l});
        update(s.pointer(s.offset({}, run.coord)), v);
      }
    return;
  }
  LaneAccess s(*this, a);
  OpBuilder::InsertionGuard guard(b);
  if (Value owner = s.owner()) {
    auto branch = make<scf::IfOp>(TypeRange{}, owner, false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  for (int64_t reg = 0; reg < a.layout.numRegs(); ++reg) {
    OpBuilder::InsertionGuard inner(b);
    if (Value cond = s.inside(reg)) {
      auto branch = make<scf::IfOp>(TypeRange{}, cond, false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    update(s.address(reg), regs[reg]);
  }
}

Registers Emitter::zeroPast(Registers regs, Type elem, const TileLayout &layout,
                            ArrayRef<Value> bound) {
  int64_t bits = wordBits(elem);
  int64_t group = bits ? wordGroup(layout, bits) : 1;
  if (bits)
    regs = unpackCodes(regs, group, bits);
  Type i32Type = b.getI32Type();
  SmallVector<Value> limits;
  for (Value v : bound) {
    // Clamp into i32: tiles are far smaller than that.
    Value clamped =
        make<arith::MaxSIOp>(make<arith::MinSIOp>(v, i64(1 << 30)), i64(0));
    limits.push_back(fill(make<arith::TruncIOp>(i32Type, clamped)));
  }
  for (int64_t i = 0, n = regs.size(); i < n; ++i) {
    Value inside;
    for (auto [d, limit] : llvm::enumerate(limits)) {
      Value in = make<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                     coordinate(layout, d, i), limit);
      inside = inside ? Value(make<arith::AndIOp>(inside, in)) : in;
    }
    if (inside)
      regs[i] = make<arith::SelectOp>(
          inside, regs[i],
          constant(cast<TypedAttr>(b.getZeroAttr(regs[i].getType()))));
  }
  if (bits)
    regs = packCodes(regs, group, bits);
  return regs;
}

} // namespace dither::transforms
