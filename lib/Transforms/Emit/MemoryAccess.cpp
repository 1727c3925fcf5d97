//===- MemoryAccess.cpp - Where the registers of a tile lie ---------------===//

#include "Emit/MemoryAccess.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

/// A row is short in a tile of which it leaves more than one part in so many.
static constexpr int64_t kShort = 8;

//===----------------------------------------------------------------------===//
// Both targets
//===----------------------------------------------------------------------===//

Access::Access(Emitter &e, const TileAccess &a)
    : e(e), a(a), bits(quant::storageBits(a.mem.elem)), rank(a.layout.rank()) {
  origin = e.i64(0);
  for (int64_t d = 0; d < rank; ++d)
    origin = add(origin, mul(d == rank - 1 ? columnOf(a.index[d]) : a.index[d],
                             a.mem.strides[d], a.mem.staticStrides[d]));
  if (a.mem.run)
    origin = add(origin, a.mem.first);
  if (a.rows)
    readRows();
}

Value Access::add(Value x, Value y) { return e.make<arith::AddIOp>(x, y); }

Value Access::columnOf(Value column) {
  if (!a.mem.run)
    return column;
  // column / run * period + column % run
  Value runs = e.make<arith::ShRUIOp>(column, e.i64(llvm::Log2_64(a.mem.run)));
  return add(column,
             e.make<arith::MulIOp>(runs, e.i64(a.mem.period - a.mem.run)));
}

Value Access::mul(Value x, Value stride, int64_t known) {
  return known == 1 ? x : Value(e.make<arith::MulIOp>(x, stride));
}

Value Access::offset(ArrayRef<Value> dynamic, const Coord &fixed) {
  Value sum = origin;
  int64_t constant = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == 0 && a.rows) {
      sum = add(sum, mul(rows.lookup(fixed[0]), a.mem.strides[0],
                         a.mem.staticStrides[0]));
      continue;
    }
    // Registers and threads have bits of their own of a place in a run.
    bool isColumn = d == rank - 1;
    int64_t known = isColumn ? a.mem.columnOf(fixed[d]) : fixed[d];
    if (!dynamic.empty() && dynamic[d])
      sum = add(sum, mul(isColumn ? columnOf(dynamic[d]) : dynamic[d],
                         a.mem.strides[d], a.mem.staticStrides[d]));
    if (!known)
      continue;
    if (ShapedType::isDynamic(a.mem.staticStrides[d]))
      sum = add(sum, e.make<arith::MulIOp>(a.mem.strides[d], e.i64(known)));
    else
      constant += known * a.mem.staticStrides[d];
  }
  return constant ? add(sum, e.i64(constant)) : sum;
}

void Access::readRows() {
  int64_t lanes = e.simd ? a.rowsLayout->numLanes() : 1;
  for (int64_t reg = 0, n = a.rowsLayout->numRegs(); reg < n; ++reg)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value &row = rows[a.rowsLayout->coord(reg, lane)[0]];
      if (row)
        continue;
      row = (*a.rows)[reg];
      if (e.simd)
        row = e.make<vector::ExtractOp>(row, ArrayRef<int64_t>{lane});
      row = e.make<arith::ExtSIOp>(e.b.getI64Type(), row);
    }
}

Value Access::rowExists(const Coord &fixed) {
  // Unsigned: what is before the memref is outside, too.
  return e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, rows.lookup(fixed[0]),
                               a.mem.sizes[0]);
}

Value Access::pointer(Value elements) {
  Value bytes = elements;
  if (bits == 4)
    bytes = e.make<arith::ShRSIOp>(elements, e.i64(1));
  else if (bits != 8)
    bytes = e.make<arith::MulIOp>(elements, e.i64(bits / 8));
  return e.make<LLVM::GEPOp>(a.mem.ptr.getType(), e.b.getI8Type(), a.mem.ptr,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

int64_t Access::alignment(int64_t step) const {
  int64_t align = a.mem.align;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == rank - 1) {
      int64_t elems = std::gcd(step, a.divisor[d]);
      align = std::gcd(align, std::max<int64_t>(1, elems * bits / 8));
    } else if (a.shape[d] != 1 || a.divisor[d] != 0) {
      int64_t stride = a.mem.staticStrides[d];
      int64_t bytes =
          ShapedType::isDynamic(stride) ? a.mem.strideAlign : stride * bits / 8;
      align = std::gcd(align, std::max<int64_t>(1, bytes));
    }
  }
  return align & -align;
}

Value Access::limit(int64_t d) {
  Value room;
  if (!a.inBounds && !(a.rows && d == 0))
    room = e.make<arith::SubIOp>(a.mem.sizes[d], a.index[d]);
  if (padded(d)) {
    Value extent = e.i64(a.shape[d]);
    room = room ? Value(e.make<arith::MinSIOp>(room, extent)) : extent;
  }
  return room;
}

Value Access::first(int64_t d) {
  if (a.inBounds || !a.mayBeNegative[d])
    return {};
  return e.make<arith::SubIOp>(e.i64(0), a.index[d]);
}

Value Access::isLast(Value column) {
  Value next = add(add(a.index.back(), column), e.i64(1));
  return e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, next,
                               a.mem.sizes.back());
}

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

SimdAccess::SimdAccess(Emitter &e, const TileAccess &a, int64_t group)
    : Access(e, a), contiguous(int64_t(1) << a.layout.contiguousBits()),
      group(group) {
  perLane = a.mem.pairs ? 1 : contiguous / group;
  // More units per lane than lanes would split a lane over vectors.
  perLane = std::min(perLane, kSimdLanes);
  unitBits = group * bits;
  for (auto [i, c] : llvm::enumerate(a.layout.lane))
    if (isZero(c))
      copies |= int64_t(1) << i;
  for (int64_t d = 0; d < rank; ++d) {
    limits.push_back(limit(d));
    firsts.push_back(first(d));
  }
}

Coord SimdAccess::place(Coord c) const {
  if (a.mem.pairs)
    c.back() = (c.back() & ~31) | (c.back() & 1) << 4 | (c.back() >> 1 & 15);
  return c;
}

SmallVector<SimdAccess::Run> SimdAccess::runs(int64_t reg, int64_t part) const {
  SmallVector<Run> out;
  int64_t lanesPerPart = kSimdLanes / perLane;
  int64_t last = rank - 1;
  for (int64_t l = part * lanesPerPart; l < (part + 1) * lanesPerPart; ++l) {
    if (l & copies)
      continue;
    Coord c = place(a.layout.coord(reg, l));
    if (!out.empty() && rank) {
      Run &r = out.back();
      Coord next = r.coord;
      next[last] += r.units * group;
      if (next == c &&
          r.unit + r.units == (l - part * lanesPerPart) * perLane) {
        r.units += perLane;
        continue;
      }
    }
    out.push_back({(l - part * lanesPerPart) * perLane, perLane, c});
  }
  // Powers of two only: a run of 3 becomes 2 + 1.
  SmallVector<Run> pieces;
  for (Run r : out)
    while (r.units) {
      int64_t n = llvm::bit_floor(uint64_t(r.units));
      pieces.push_back({r.unit, n, r.coord});
      r.unit += n;
      r.units -= n;
      if (rank)
        r.coord[last] += n * group;
    }
  return pieces;
}

bool SimdAccess::dead(const Run &r) const {
  for (int64_t d = 0; d < rank; ++d)
    if (r.coord[d] >= a.shape[d])
      return true;
  return false;
}

bool SimdAccess::isGuarded(const Run &r) const {
  if (a.rows)
    return true;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t last = r.coord[d] + (d == rank - 1 ? r.units * group : 1);
    if (limits[d] && !(a.inBounds && last <= a.shape[d]))
      return true;
  }
  return false;
}

Value SimdAccess::remaining(const Run &r) {
  int64_t count = r.units * group, last = rank - 1;
  if (!rank)
    return {};
  Value rem, outside;
  if (a.rows)
    outside = e.make<arith::XOrIOp>(rowExists(r.coord),
                                    e.constant(e.b.getBoolAttr(true)));
  for (int64_t d = 0; d < rank; ++d) {
    if (!limits[d])
      continue;
    if (a.inBounds && d != last && r.coord[d] < a.shape[d])
      continue;
    if (a.inBounds && d == last && r.coord[d] + count <= a.shape[d])
      continue;
    if (d == last) {
      rem = e.make<arith::SubIOp>(limits[d], e.i64(r.coord[d]));
    } else {
      Value past = e.make<arith::CmpIOp>(arith::CmpIPredicate::sge,
                                         e.i64(r.coord[d]), limits[d]);
      outside = outside ? Value(e.make<arith::OrIOp>(outside, past)) : past;
      if (firsts[d])
        outside = e.make<arith::OrIOp>(
            outside, e.make<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                           e.i64(r.coord[d]), firsts[d]));
    }
  }
  if (!rem && !outside)
    return {};
  if (!rem)
    rem = e.i64(count);
  rem = e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(rem, e.i64(count)),
                               e.i64(0));
  if (outside)
    rem = e.make<arith::SelectOp>(outside, e.i64(0), rem);
  return e.make<arith::TruncIOp>(e.b.getI32Type(), rem);
}

Value SimdAccess::skipped(const Run &r) {
  int64_t last = rank - 1;
  if (!rank || !firsts[last])
    return {};
  Value n = e.make<arith::SubIOp>(firsts[last], e.i64(r.coord[last]));
  n = e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(n, e.i64(r.units * group)),
                             e.i64(0));
  return e.make<arith::TruncIOp>(e.b.getI32Type(), n);
}

/// Register `index[l]` of the concatenation of `sources` for every lane.
static Value gather(Emitter &e, ArrayRef<Value> sources,
                    ArrayRef<int64_t> index) {
  Value acc;
  for (size_t s = 0; s < sources.size(); ++s) {
    bool used = false;
    SmallVector<int64_t> pick;
    for (auto [l, i] : llvm::enumerate(index)) {
      bool mine = i / kSimdLanes == int64_t(s);
      used |= mine;
      int64_t lane = i % kSimdLanes;
      pick.push_back(mine ? (acc ? kSimdLanes : 0) + lane : int64_t(l));
    }
    if (!used)
      continue;
    acc = acc ? e.permute(acc, sources[s], pick)
              : e.permute(sources[s], sources[s], pick);
  }
  return acc;
}

Value SimdAccess::toMemoryOrder(ArrayRef<Value> sources, int64_t part) {
  SmallVector<int64_t> index;
  for (int64_t u = 0; u < kSimdLanes; ++u) {
    int64_t unit = part * kSimdLanes + u;
    index.push_back(unit % perLane * kSimdLanes + unit / perLane);
  }
  return gather(e, sources, index);
}

Value SimdAccess::fromMemoryOrder(ArrayRef<Value> parts, int64_t j) {
  SmallVector<int64_t> index;
  // Lanes that hold copies read the lane that was loaded.
  for (int64_t l = 0; l < kSimdLanes; ++l)
    index.push_back((l & ~copies) * perLane + j);
  return gather(e, parts, index);
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

/// Chunks of 16 bytes, four in a group: of what is 128 bytes further on a chunk
/// has another place in its group. Lanes with 32 or 64 bytes each, of which
/// eight take a chunk at once, have them in different banks.
constexpr int64_t kChunkBytes = 16, kChunkBits = 0x30, kChunkShift = 3;

static int64_t swizzled(int64_t byte) {
  return byte ^ (byte >> kChunkShift & kChunkBits);
}

LaneAccess::LaneAccess(Emitter &e, const TileAccess &a) : Access(e, a) {
  int64_t contiguous = int64_t(1) << a.layout.contiguousBits();
  group = bits < 32 ? wordGroup(a.layout, bits) : 1;
  int64_t bytes =
      std::min(std::max<int64_t>(1, contiguous * bits / 8), e.maxVectorBytes);
  bytes = std::min(bytes, alignment(contiguous));
  if (a.mem.swizzled)
    bytes = std::min(bytes, kChunkBytes);
  for (int64_t d = 0; d < rank; ++d) {
    limits.push_back(limit(d));
    firsts.push_back(first(d));
    thread.push_back(e.make<arith::ExtUIOp>(e.b.getI64Type(),
                                            e.threadCoordinate(a.layout, d)));
  }
  // A guarded vector must lie inside or outside as a whole.
  if (rank && limits[rank - 1]) {
    int64_t last = rank - 1;
    int64_t size = a.mem.staticSizes[last];
    int64_t divisor = ShapedType::isDynamic(size) ? 1 : size & -size;
    divisor = std::gcd(divisor, std::gcd(a.divisor[last], int64_t(64)));
    if (a.inBounds)
      divisor = 64;
    if (padded(last))
      divisor = std::gcd(divisor, a.shape[last] & -a.shape[last]);
    bytes = std::min(bytes, std::max<int64_t>(1, divisor * bits / 8));
  }
  step = std::max<int64_t>(1, bytes * 8 / bits);
  disjoint = true;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t regs = 0, threads = 0;
    for (const Coord &c : a.layout.reg)
      regs |= c[d];
    for (const Coord &c : a.layout.lane)
      threads |= c[d];
    for (const Coord &c : a.layout.warp)
      threads |= c[d];
    disjoint &= !(regs & threads);
  }
  for (auto [i, c] : llvm::enumerate(a.layout.lane))
    if (isZero(c))
      copies |= int64_t(1) << i;
  for (auto [i, c] : llvm::enumerate(a.layout.warp))
    if (isZero(c))
      copies |= kWarpLanes << i;
}

Value LaneAccess::swizzledAddress(int64_t reg) {
  auto mixed = [&](Value byte) -> Value {
    Value mix = e.make<arith::AndIOp>(
        e.make<arith::ShRUIOp>(byte, e.i64(kChunkShift)), e.i64(kChunkBits));
    return e.make<arith::XOrIOp>(byte, mix);
  };
  auto bytesOf = [&](Value elements) -> Value {
    return bits == 8 ? elements
                     : Value(e.make<arith::MulIOp>(elements, e.i64(bits / 8)));
  };
  int64_t last = rank - 1;
  Coord fixed = a.layout.coord(reg);
  Value byte;
  if (disjoint && a.divisor[last] * bits / 8 % kSwizzledBytes == 0) {
    // The tile begins with a group of groups, and threads and registers have
    // bits of their own of a place in it: each part changes alone.
    int64_t place = swizzled(fixed[last] * bits / 8);
    byte = mixed(bytesOf(thread[last]));
    if (int64_t chunk = place & kChunkBits)
      byte = e.make<arith::XOrIOp>(byte, e.i64(chunk));
    if (int64_t rest = place & ~kChunkBits)
      byte = add(byte, e.i64(rest));
    fixed[last] = 0;
    SmallVector<Value> rows(thread.begin(), thread.end());
    rows[last] = Value();
    byte = add(byte, bytesOf(offset(rows, fixed)));
  } else {
    byte = mixed(bytesOf(offset(thread, fixed)));
  }
  return e.make<LLVM::GEPOp>(a.mem.ptr.getType(), e.b.getI8Type(), a.mem.ptr,
                             ArrayRef<LLVM::GEPArg>{byte});
}

Value LaneAccess::address(int64_t reg) {
  if (a.mem.swizzled)
    return swizzledAddress(reg);
  return pointer(offset(thread, a.layout.coord(reg)));
}

bool LaneAccess::rowsBegin() const {
  // Of a row that is much shorter than its tile whole warps load nothing.
  int64_t extent = a.layout.base[rank - 1] * a.layout.repeats[rank - 1];
  bool isShort = kShort * (extent - a.shape.back()) > extent;
  return a.inBounds && a.mem.isOnlyRead && !a.rows && !a.mem.swizzled &&
         a.shape.back() > 0 && !isShort &&
         llvm::none_of(ArrayRef(limits).drop_back(),
                       [](Value v) { return bool(v); }) &&
         llvm::none_of(firsts, [](Value v) { return bool(v); });
}

Value LaneAccess::addressOrFirst(int64_t reg, Value inside) {
  SmallVector<Value> dynamic(thread);
  dynamic.back() =
      e.make<arith::SelectOp>(inside, column(reg, 0), Value(e.i64(0)));
  Coord fixed = a.layout.coord(reg);
  fixed.back() = 0;
  return pointer(offset(dynamic, fixed));
}

Value LaneAccess::column(int64_t reg, int64_t next) {
  int64_t at = a.layout.coord(reg)[rank - 1] + next;
  return at ? add(thread[rank - 1], e.i64(at)) : thread[rank - 1];
}

bool LaneAccess::dead(int64_t reg) const {
  Coord c = a.layout.coord(reg);
  for (int64_t d = 0; d < rank; ++d)
    if (c[d] >= a.shape[d])
      return true;
  return false;
}

Value LaneAccess::inside(int64_t reg) {
  Value cond;
  Coord c = a.layout.coord(reg);
  if (a.rows)
    cond = rowExists(c);
  for (int64_t d = 0; d < rank; ++d) {
    if (!limits[d])
      continue;
    Value at = c[d] ? add(thread[d], e.i64(c[d])) : thread[d];
    Value in = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, at, limits[d]);
    cond = cond ? Value(e.make<arith::AndIOp>(cond, in)) : in;
    if (firsts[d])
      cond = e.make<arith::AndIOp>(
          cond,
          e.make<arith::CmpIOp>(arith::CmpIPredicate::sge, at, firsts[d]));
  }
  return cond;
}

Value LaneAccess::owner() {
  // Warp bits above the layout's own hold copies too.
  int64_t all = e.numWarps * kWarpLanes - 1;
  int64_t known = (kWarpLanes << a.layout.warp.size()) - 1;
  int64_t mask = copies | (all & ~known);
  auto isZero = [&](Value v) -> Value {
    return e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, v, e.i32(0));
  };
  Value owner;
  if (mask)
    owner = isZero(e.make<arith::AndIOp>(e.tid, e.i32(mask)));
  // All blocks of a cluster have what is no part of one.
  auto pointer = cast<LLVM::LLVMPointerType>(a.mem.ptr.getType());
  if (e.clusterBlocks > 1 && !a.mem.run && pointer.getAddressSpace() != 3) {
    Value first = isZero(e.clusterRank());
    owner = owner ? Value(e.make<arith::AndIOp>(owner, first)) : first;
  }
  return owner;
}

} // namespace dither::transforms
