#include "Engine.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

/// Warp-wide instructions name the lanes that take part: each lane must be one
/// of them, and all that have not returned must be here.
bool Engine::members(Warp &warp, const Step &step, uint32_t active,
                     uint32_t offset, uint32_t i, uint32_t &mask) {
  mask = lane<uint32_t>(warp, offset, i);
  if (!(mask >> i & 1))
    return fault(warp, step, i,
                 "the thread is not a member of its mask 0x" +
                     Twine::utohexstr(mask));
  if (uint32_t missing = mask & warp.live & ~active)
    return fault(warp, step, i,
                 "waits for lanes 0x" + Twine::utohexstr(missing) +
                     " of its mask 0x" + Twine::utohexstr(mask) +
                     ", which are elsewhere");
  mask &= active;
  return true;
}

bool Engine::shuffle(Warp &warp, const Step &step, uint32_t active) {
  const WarpInfo &info = launch.program.warps[step.imm];
  uint32_t result[32], inRange = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(active >> i & 1))
      continue;
    uint32_t mask;
    if (!members(warp, step, active, info.mask, i, mask))
      return false;
    // As the pseudocode of shfl.sync has it.
    uint32_t b = lane<uint32_t>(warp, step.src[1], i) & 31;
    uint32_t c = lane<uint32_t>(warp, step.src[2], i);
    uint32_t clamp = c & 31, segment = c >> 8 & 31;
    int32_t maxLane = int32_t((i & segment) | (clamp & ~segment));
    int32_t minLane = int32_t(i & segment);
    int32_t from = 0;
    bool valid = false;
    switch (info.mode) {
    case WarpInfo::Up:
      from = int32_t(i) - int32_t(b);
      valid = from >= maxLane;
      break;
    case WarpInfo::Down:
      from = int32_t(i + b);
      valid = from <= maxLane;
      break;
    case WarpInfo::Bfly:
      from = int32_t(i ^ b);
      valid = from <= maxLane;
      break;
    default:
      from = minLane | int32_t(b & ~segment);
      valid = from <= maxLane;
      break;
    }
    if (!valid)
      from = int32_t(i);
    inRange |= uint32_t(valid) << i;
    bool here = from < 32 && (mask >> from & 1);
    if (!here && launch.options.checkInit)
      return fault(warp, step, i,
                   "takes the value of lane " + Twine(from) +
                       ", which is not a member or has returned");
    // Undefined from lanes that are not here; zero, for the same on every run.
    result[i] = here ? lane<uint32_t>(warp, step.src[0], unsigned(from)) : 0;
  }
  for (uint32_t i = 0; i < 32; ++i)
    if (active >> i & 1)
      lane<uint32_t>(warp, step.dst, i) = result[i];
  if (info.predicate != ~0u)
    setPredicate(warp, info.predicate, active, inRange);
  return true;
}

bool Engine::vote(Warp &warp, const Step &step, uint32_t active) {
  const WarpInfo &info = launch.program.warps[step.imm];
  uint32_t bits = predicate(warp, step.src[0]), result = 0;
  bits = info.negated ? ~bits : bits;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(active >> i & 1))
      continue;
    uint32_t mask;
    if (!members(warp, step, active, info.mask, i, mask))
      return false;
    uint32_t set = bits & mask;
    switch (info.mode) {
    case WarpInfo::Ballot:
      lane<uint32_t>(warp, step.dst, i) = set;
      break;
    case WarpInfo::All:
      result |= uint32_t(set == mask) << i;
      break;
    case WarpInfo::Any:
      result |= uint32_t(set != 0) << i;
      break;
    default:
      result |= uint32_t(set == mask || set == 0) << i;
      break;
    }
  }
  if (info.mode != WarpInfo::Ballot)
    setPredicate(warp, step.dst, active, result);
  return true;
}

bool Engine::match(Warp &warp, const Step &step, uint32_t active) {
  const WarpInfo &info = launch.program.warps[step.imm];
  auto value = [&](uint32_t i) {
    return step.flags == 8 ? lane<uint64_t>(warp, step.src[0], i)
                           : lane<uint32_t>(warp, step.src[0], i);
  };
  uint32_t result[32], agree = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(active >> i & 1))
      continue;
    uint32_t mask, equal = 0;
    if (!members(warp, step, active, info.mask, i, mask))
      return false;
    for (uint32_t j = 0; j < 32; ++j)
      equal |= uint32_t(mask >> j & 1 && value(j) == value(i)) << j;
    bool all = equal == mask;
    result[i] = info.mode == WarpInfo::Any ? equal : all ? mask : 0;
    agree |= uint32_t(all) << i;
  }
  for (uint32_t i = 0; i < 32; ++i)
    if (active >> i & 1)
      lane<uint32_t>(warp, step.dst, i) = result[i];
  if (info.predicate != ~0u)
    setPredicate(warp, info.predicate, active, agree);
  return true;
}

/// The smaller or larger of two floats; a number rather than a NaN, unless NaNs
/// are asked for.
static uint32_t reduceFloat(const WarpInfo &info, uint32_t x, uint32_t y) {
  if (info.abs) {
    x &= 0x7FFFFFFF;
    y &= 0x7FFFFFFF;
  }
  auto isNan = [](uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; };
  if (isNan(x) || isNan(y)) {
    if (info.nan || (isNan(x) && isNan(y)))
      return 0x7FFFFFFF;
    return isNan(x) ? y : x;
  }
  // Of the order of the values, -0 below +0.
  auto key = [](uint32_t bits) {
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
  };
  bool firstIsLess = key(x) < key(y);
  return firstIsLess == (info.mode == WarpInfo::Min) ? x : y;
}

bool Engine::redux(Warp &warp, const Step &step, uint32_t active) {
  const WarpInfo &info = launch.program.warps[step.imm];
  uint32_t left = active;
  while (left) {
    uint32_t first = uint32_t(llvm::countr_zero(left)), mask;
    if (!members(warp, step, active, info.mask, first, mask))
      return false;
    uint32_t result = lane<uint32_t>(warp, step.src[0], first);
    if (info.isFloat)
      result = reduceFloat(info, result, result);
    for (uint32_t i = first + 1; i < 32; ++i) {
      if (!(mask >> i & 1))
        continue;
      uint32_t x = lane<uint32_t>(warp, step.src[0], i);
      bool less = info.isSigned ? int32_t(x) < int32_t(result) : x < result;
      switch (info.mode) {
      case WarpInfo::Add:
        result += x;
        break;
      case WarpInfo::And:
        result &= x;
        break;
      case WarpInfo::Or:
        result |= x;
        break;
      case WarpInfo::Xor:
        result ^= x;
        break;
      default:
        if (info.isFloat)
          result = reduceFloat(info, result, x);
        else if (x != result && less == (info.mode == WarpInfo::Min))
          result = x;
        break;
      }
    }
    for (uint32_t i = 0; i < 32; ++i)
      if (mask >> i & 1) {
        uint32_t own;
        if (!members(warp, step, active, info.mask, i, own))
          return false;
        if (own != mask)
          return fault(warp, step, i, "members name other masks");
      }
    for (uint32_t i = 0; i < 32; ++i)
      if (mask >> i & 1)
        lane<uint32_t>(warp, step.dst, i) = result;
    left &= ~mask;
  }
  return true;
}

bool Engine::elect(Warp &warp, const Step &step, uint32_t active) {
  uint32_t elected = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(active >> i & 1))
      continue;
    uint32_t mask;
    if (!members(warp, step, active, step.src[0], i, mask))
      return false;
    uint32_t leader = uint32_t(llvm::countr_zero(mask));
    lane<uint32_t>(warp, step.dst, i) = leader;
    elected |= uint32_t(leader == i) << i;
  }
  setPredicate(warp, step.src[1], active, elected);
  return true;
}

bool Engine::warpSync(Warp &warp, const Step &step, uint32_t active) {
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t mask;
    if (active >> i & 1 && !members(warp, step, active, step.src[0], i, mask))
      return false;
  }
  if (launch.options.checkRaces)
    races->meet(numberOf(warp));
  return true;
}

} // namespace dither::runtime::sim
