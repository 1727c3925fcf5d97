#include "Engine.h"
#include "dither/Numerics/Convert.h"

#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

namespace {

template <class To, class From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// Integer operations, of T's sign.
template <class T> T integer(AtomicOp op, T old, T b, T c) {
  switch (op) {
  case AtomicOp::Add:
    return T(uint64_t(old) + uint64_t(b));
  case AtomicOp::Min:
    return old < b ? old : b;
  case AtomicOp::Max:
    return old > b ? old : b;
  case AtomicOp::And:
    return old & b;
  case AtomicOp::Or:
    return old | b;
  case AtomicOp::Xor:
    return old ^ b;
  case AtomicOp::Exch:
    return b;
  case AtomicOp::Cas:
    return old == b ? c : old;
  case AtomicOp::Inc:
    return old >= b ? T(0) : T(old + 1);
  case AtomicOp::Dec:
    return old == 0 || old > b ? b : T(old - 1);
  }
  return old;
}

uint32_t addHalf(const numerics::ElementFormat &format, uint32_t a,
                 uint32_t b) {
  return numerics::encode(format, numerics::decode(format, a) +
                                      numerics::decode(format, b));
}
uint32_t addHalves(const numerics::ElementFormat &format, uint32_t a,
                   uint32_t b) {
  return addHalf(format, a >> 16, b >> 16) << 16 |
         addHalf(format, a & 0xFFFF, b & 0xFFFF);
}

/// binary32 sums in global memory flush subnormals, those in shared memory do
/// not (ISA, atom).
uint32_t addSingle(uint32_t a, uint32_t b, bool flush) {
  auto flushed = [&](uint32_t x) {
    return flush && !(x & 0x7F800000) ? x & 0x80000000 : x;
  };
  float sum = bitCast<float>(flushed(a)) + bitCast<float>(flushed(b));
  return flushed(sum != sum ? 0x7FFFFFFF : bitCast<uint32_t>(sum));
}

/// The new value of 2-, 4- or 8-byte memory.
uint64_t apply(const MemoryInfo &info, bool isShared, uint64_t old, uint64_t b,
               uint64_t c) {
  switch (info.type) {
  case AtomicType::B16:
    return integer<uint16_t>(info.op, uint16_t(old), uint16_t(b), uint16_t(c));
  case AtomicType::B32:
  case AtomicType::U32:
    return integer<uint32_t>(info.op, uint32_t(old), uint32_t(b), uint32_t(c));
  case AtomicType::S32:
    return uint32_t(
        integer<int32_t>(info.op, int32_t(old), int32_t(b), int32_t(c)));
  case AtomicType::B64:
  case AtomicType::U64:
    return integer<uint64_t>(info.op, old, b, c);
  case AtomicType::S64:
    return uint64_t(
        integer<int64_t>(info.op, int64_t(old), int64_t(b), int64_t(c)));
  case AtomicType::F32:
    return addSingle(uint32_t(old), uint32_t(b), !isShared);
  case AtomicType::F64:
    return bitCast<uint64_t>(bitCast<double>(old) + bitCast<double>(b));
  case AtomicType::F16:
    return addHalf(numerics::kF16, uint32_t(old), uint32_t(b));
  case AtomicType::BF16:
    return addHalf(numerics::kBF16, uint32_t(old), uint32_t(b));
  case AtomicType::F16x2:
    return addHalves(numerics::kF16, uint32_t(old), uint32_t(b));
  case AtomicType::BF16x2:
    return addHalves(numerics::kBF16, uint32_t(old), uint32_t(b));
  }
  return old;
}

/// Other threads may run other blocks.
template <class T>
T update(const MemoryInfo &info, bool isShared, char *pointer, uint64_t b,
         uint64_t c) {
  T *at = reinterpret_cast<T *>(pointer);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      at, &old, T(apply(info, isShared, old, b, c)),
      /*weak=*/true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

} // namespace

/// Lane after lane.
void Engine::atomic(Warp &warp, const MemoryInfo &info, const Access &access) {
  bool isShared = access.space == Space::Shared;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(access.lanes >> i & 1))
      continue;
    uint64_t b = 0, c = 0, old = 0;
    std::memcpy(&b, warp.frame + info.operands[0] + i * info.size, info.size);
    if (info.op == AtomicOp::Cas)
      std::memcpy(&c, warp.frame + info.operands[1] + i * info.size, info.size);
    char *pointer = access.pointer[i];
    switch (info.size) {
    case 2:
      old = update<uint16_t>(info, isShared, pointer, b, c);
      break;
    case 4:
      old = update<uint32_t>(info, isShared, pointer, b, c);
      break;
    default:
      old = update<uint64_t>(info, isShared, pointer, b, c);
      break;
    }
    if (info.registers[0] != ~0u)
      std::memcpy(warp.frame + info.registers[0] + i * info.size, &old,
                  info.size);
  }
}

} // namespace dither::runtime::sim
