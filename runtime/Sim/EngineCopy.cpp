//===- EngineCopy.cpp - Asynchronous copies -------------------------------===//
//
// A copy takes its bytes from global memory when it is issued, and they come to
// shared memory when its thread waits for them: as late as they may, so that a
// kernel whose waits are too few cannot work by luck. In between, nobody may
// touch what is copied to.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

static constexpr uint32_t kWord = 4; ///< the smallest copy

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

bool Engine::copy(Warp &warp, const Step &step, uint32_t active) {
  const MemoryInfo *info = &launch.program.memories[step.imm];
  uint32_t sizes[32];
  if (!copySizes(warp, step, active, sizes))
    return false;
  Access to, from;
  to.space = Space::Shared;
  to.lanes = active;
  to.bytes = to.align = info->size;
  to.isStore = true;
  to.isAtomic = false;
  to.owner = this;
  from = to;
  from.space = Space::Global;
  from.isStore = false;
  addressesOf(warp, info[0], to.address);
  addressesOf(warp, info[1], from.address);
  if (!resolve(warp, step, to))
    return false;
  Copy copies[32];
  ++warp.numCopies;
  for (uint32_t i = 0; i < 32; ++i) {
    copies[i].lane = i;
    copies[i].step = pcOf(step);
    copies[i].group = warp.copyGroups[i];
    copies[i].number = warp.numCopies;
    copies[i].bytes = to.bytes;
    copies[i].taken = sizes[i];
    copies[i].to = to.address[i];
    copies[i].from = from.address[i];
  }
  // Lanes that read as many bytes are one access; those that read none may
  // have any address.
  for (uint32_t left = active; left;) {
    from.bytes = sizes[llvm::countr_zero(left)];
    from.lanes = 0;
    for (uint32_t i = 0; i < 32; ++i)
      from.lanes |= uint32_t(left >> i & 1 && sizes[i] == from.bytes) << i;
    left &= ~from.lanes;
    if (from.bytes && !takeSource(warp, step, from, copies))
      return false;
  }
  return startCopies(warp, step, to, copies);
}

/// The bytes that each lane reads.
bool Engine::copySizes(Warp &warp, const Step &step, uint32_t active,
                       uint32_t (&sizes)[32]) {
  uint32_t size = launch.program.memories[step.imm].size;
  if (step.flags & kIgnores) {
    uint32_t ignored = predicate(warp, step.src[0]);
    ignored = step.flags & kNegated ? ~ignored : ignored;
    for (uint32_t i = 0; i < 32; ++i)
      sizes[i] = ignored >> i & 1 ? 0 : size;
    return true;
  }
  for (uint32_t i = 0; i < 32; ++i) {
    sizes[i] = lane<uint32_t>(warp, step.src[0], i);
    if (active >> i & 1 && sizes[i] > size)
      return fault(warp, step, i,
                   "reads " + Twine(sizes[i]) + " bytes for a copy of " +
                       Twine(size));
  }
  return true;
}

/// A load, whose bytes are kept.
bool Engine::takeSource(Warp &warp, const Step &step, Access &access,
                        Copy *copies) {
  if (!resolve(warp, step, access))
    return false;
  ++globalLoads;
  if (launch.options.countMemory)
    countAccess(step, access);
  if (launch.options.checkInit && !checkShadow(warp, step, access))
    return false;
  for (uint32_t i = 0; i < 32; ++i)
    if (access.lanes >> i & 1)
      std::memcpy(copies[i].data, access.pointer[i], access.bytes);
  return true;
}

bool Engine::startCopies(Warp &warp, const Step &step, const Access &to,
                         const Copy *copies) {
  ++sharedStores;
  // Bytes are counted where they are read.
  if (launch.options.countMemory)
    countShared(memoryCounts[step.source], to);
  Access one = to;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(to.lanes >> i & 1))
      continue;
    // Of another lane of this instruction as well.
    one.lanes = 1u << i;
    if (!checkClaims(warp, step, one) ||
        (launch.options.checkRaces &&
         !checkCopyRaces(warp, copies[i], kNoEngine)))
      return false;
    claim(copies[i].to, to.bytes,
          {numberOf(warp) * 32 + i + 1, copies[i].step, Claim::Copy});
    warp.copies.push_back(copies[i]);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

void Engine::commit(uint32_t (&groups)[32], uint32_t active) {
  for (uint32_t i = 0; i < 32; ++i)
    groups[i] += active >> i & 1;
}

bool Engine::waitForCopies(Warp &warp, const Step &step, uint32_t active) {
  return finishCopies(warp, [&](const Copy &copy) {
    return active >> copy.lane & 1 &&
           copy.group + uint64_t(step.imm) < warp.copyGroups[copy.lane];
  });
}

bool Engine::finishCopies(Warp &warp,
                          function_ref<bool(const Copy &)> isWaitedFor,
                          uint32_t engine) {
  for (const Copy &copy : warp.copies)
    if (isWaitedFor(copy) && !finishCopy(warp, copy, engine))
      return false;
  erase_if(warp.copies, isWaitedFor);
  return true;
}

bool Engine::finishCopy(Warp &warp, const Copy &copy, uint32_t engine) {
  std::memcpy(shared.data() + copy.to, copy.data, copy.bytes);
  claim(copy.to, copy.bytes, Claim());
  if (launch.options.checkInit)
    std::memset(sharedWritten.data() + copy.to, 1, copy.bytes);
  return !launch.options.checkRaces || checkCopyRaces(warp, copy, engine);
}

bool Engine::checkAllWaited() {
  for (Warp &warp : warps)
    if (!warp.copies.empty()) {
      const Copy &copy = warp.copies.front();
      return fault(warp, stepAt(copy.step), copy.lane,
                   "copies " + Twine(copy.bytes) + " bytes to " +
                       describe(Space::Shared, copy.to, copy.bytes) +
                       ", asynchronously, and the thread has not waited for "
                       "them before the block ended");
    }
  return checkBulkWaited();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void Engine::claim(uint64_t address, uint64_t bytes, Claim claim) {
  if (claims.empty())
    claims.resize(sharedBytes / kWord + 1);
  std::fill_n(&claims[address / kWord], bytes / kWord, claim);
  numClaims += claim.kind == Claim::None ? -1 : 1;
}

bool Engine::checkClaims(Warp &warp, const Step &step, const Access &access) {
  if (access.isStore && cluster->numBulkReads &&
      !checkBulkReads(warp, step, access))
    return false;
  if (!access.owner->numClaims)
    return true;
  const std::vector<Claim> &words = access.owner->claims;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(access.lanes >> i & 1))
      continue;
    uint64_t address = access.address[i];
    for (uint64_t word = address / kWord;
         word <= (address + access.bytes - 1) / kWord; ++word) {
      const Claim &claim = words[word];
      if (claim.kind == Claim::None)
        continue;
      std::string what = verb(access.isStore, access.isAtomic).str() + " " +
                         utostr(access.bytes) + " bytes at " +
                         describe(access.space, address, access.bytes);
      std::string line = utostr(lineOf(claim.step));
      std::string thread = clusterThreadText(claim.thread - 1);
      if (claim.kind == Claim::Mbarrier)
        return fault(warp, step, i,
                     what + ", where thread " + thread +
                         " has initialised an mbarrier in line " + line);
      return fault(warp, step, i,
                   what + ", which thread " + thread +
                       " is copying there asynchronously in line " + line +
                       (claim.kind == Claim::Copy
                            ? " and has not waited for"
                            : ", and nobody has waited for at the mbarrier"));
    }
  }
  return true;
}

/// A copy reads and writes at any time from its step to its wait, so it is
/// checked at both. What others did before has an order to the first, and what
/// they do later one to the second.
bool Engine::checkCopyRaces(Warp &warp, const Copy &copy, uint32_t engine) {
  const Step &step = stepAt(copy.step);
  bool byThread = engine == kNoEngine;
  RaceDetector::Access access{byThread ? numberOf(warp) : engine,
                              byThread ? copy.lane : 0,
                              step.source,
                              /*isStore=*/false,
                              /*isAtomic=*/false,
                              copy.from,
                              0};
  access.needsFence = false;
  RaceDetector::Conflict conflict;
  auto conflicts = [&](Space space) {
    if (!races->access(access, conflict))
      return false;
    access.lane = copy.lane;
    race(warp, step, space, access, conflict);
    return true;
  };
  // In powers of two, as accesses of the detector are.
  for (uint32_t left = copy.taken; left; left -= access.bytes) {
    access.address += access.bytes;
    access.bytes = llvm::bit_floor(left);
    if (conflicts(Space::Global))
      return false;
  }
  access.isStore = true;
  access.address = kSharedWindow + (uint64_t(rank) << kRankShift) + copy.to;
  access.bytes = copy.bytes;
  return !conflicts(Space::Shared);
}

} // namespace dither::runtime::sim
