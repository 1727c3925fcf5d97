//===- EngineBulk.cpp - Copies of many bytes by one thread ----------------===//
//
// A bulk copy takes its bytes when it is issued, and nobody may change them
// until somebody waits for it: at the mbarrier, where they come, or for its
// group. It sees and is seen through a proxy of its own: Races.h.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

bool Engine::bulkCopy(Warp &warp, const Step &step, uint32_t active) {
  for (unsigned i = 0; i < 32; ++i)
    if (active >> i & 1 && !bulkCopyOf(warp, step, i))
      return false;
  return true;
}

bool Engine::bulkCopyOf(Warp &warp, const Step &step, unsigned lane) {
  const MemoryInfo *info = &launch.program.memories[step.imm];
  uint32_t bytes = this->lane<uint32_t>(warp, step.src[0], lane);
  if (bytes % kBulkChunk || bytes > kMostBulkBytes)
    return fault(warp, step, lane,
                 "copies " + Twine(bytes) +
                     " bytes, expected a multiple of 16 up to " +
                     Twine(kMostBulkBytes));
  if (!bytes)
    return true;
  auto addressOf = [&](const MemoryInfo &of) {
    uint64_t address[32];
    addressesOf(warp, of, address);
    return address[lane];
  };
  bool toGlobal = step.flags & kGroup;
  BulkCopy copy;
  copy.issuer = this;
  copy.warp = warp.index;
  copy.lane = lane;
  copy.thread = numberOf(warp) * 32 + lane;
  copy.step = pcOf(step);
  copy.group = warp.bulkGroups[lane];
  copy.from = Space(info[1].space) == Space::Shared ? this : nullptr;
  copy.to = toGlobal ? nullptr : this;
  copy.fromAddress = addressOf(info[1]);
  copy.toAddress = addressOf(info[0]);
  copy.mbarrier = 0;
  copy.bytes = bytes;
  copy.data.resize(bytes);
  if (!readBulk(warp, step, lane, copy))
    return false;
  if (toGlobal)
    return startBulk(warp, step, lane, std::move(copy));

  uint64_t mbarrier = addressOf(info[2]);
  if (!(step.flags & kMulticast)) {
    Engine *owner = this;
    if (info->isCluster &&
        (!findOwner(warp, step, lane, copy.toAddress, copy.to) ||
         !findOwner(warp, step, lane, mbarrier, owner)))
      return false;
    if (owner != copy.to)
      return fault(
          warp, step, lane,
          "copies to shared memory of block " + blockText(copy.to->blockIndex) +
              ", and the mbarrier is in block " + blockText(owner->blockIndex));
    copy.mbarrier = mbarrier;
    return startBulk(warp, step, lane, std::move(copy));
  }
  // To the same place in each of the blocks.
  Engine *unused;
  if (!findOwner(warp, step, lane, copy.toAddress, unused) ||
      !findOwner(warp, step, lane, mbarrier, unused))
    return false;
  uint32_t blocks = this->lane<uint16_t>(warp, step.src[1], lane);
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (!(blocks >> rank & 1))
      continue;
    BulkCopy one = copy;
    one.toAddress |= uint64_t(rank + 1) << kRankShift;
    if (!findOwner(warp, step, lane, one.toAddress, one.to))
      return false;
    one.mbarrier = mbarrier;
    if (!startBulk(warp, step, lane, std::move(one)))
      return false;
  }
  return true;
}

/// A load, whose bytes are kept.
bool Engine::readBulk(Warp &warp, const Step &step, unsigned lane,
                      BulkCopy &copy) {
  Access access =
      accessOf(copy.from ? Space::Shared : Space::Global, lane,
               copy.fromAddress, copy.bytes, kBulkChunk, /*isStore=*/false);
  access.isBulk = true;

  if (!resolve(warp, step, access) ||
      (copy.from && !checkClaims(warp, step, access)) ||
      (launch.options.checkInit && !checkShadow(warp, step, access)))
    return false;
  ++(copy.from ? sharedLoads : globalLoads);
  if (launch.options.countMemory) {
    SimCount &count = memoryCounts[step.source];
    if (copy.from)
      count.wavefronts += (copy.bytes + 127) / 128;
    else
      countAccess(step, access);
  }
  std::memcpy(copy.data.data(), access.pointer[lane], copy.bytes);
  return true;
}

bool Engine::startBulk(Warp &warp, const Step &step, unsigned lane,
                       BulkCopy copy) {
  Access access =
      accessOf(copy.to ? Space::Shared : Space::Global, lane, copy.toAddress,
               copy.bytes, kBulkChunk, /*isStore=*/true);
  access.isBulk = true;
  access.owner = copy.to;

  if (!resolve(warp, step, access) ||
      (copy.to && !checkClaims(warp, step, access)))
    return false;
  ++(copy.to ? sharedStores : globalStores);
  if (launch.options.countMemory) {
    // Bytes of global memory are counted, wherever they go to.
    if (copy.to)
      memoryCounts[step.source].wavefronts += (copy.bytes + 127) / 128;
    else
      countAccess(step, access);
  }
  if (copy.to && !claimBulk(warp, step, lane, copy))
    return false;
  if (launch.options.checkRaces) {
    copy.engine = copy.to ? copy.to->engineOf(copy.mbarrier)
                          : races->engine(RaceDetector::kEngines - 1);
    races->issue(copy.thread, copy.engine);
    if (!checkBulkRaces(copy, /*isStore=*/false) ||
        !checkBulkRaces(copy, /*isStore=*/true))
      return false;
    races->advance(copy.engine);
  }
  cluster->numBulkReads += copy.from != nullptr;
  (copy.to ? copy.to->incoming : outgoing).push_back(std::move(copy));
  return true;
}

/// The bytes are nobody's until they have come to the mbarrier.
bool Engine::claimBulk(Warp &warp, const Step &step, unsigned lane,
                       const BulkCopy &copy) {
  MbarrierAt at;
  if (!mbarrierOf(warp, step, lane, copy.to, copy.mbarrier, at) ||
      (launch.options.checkRaces && !checkBegun(warp, step, lane, at)))
    return false;
  if (launch.options.checkRaces && !at.state->isVisible)
    return fault(warp, step, lane,
                 "copies to the mbarrier at " +
                     describe(Space::Shared, copy.mbarrier, 1) +
                     ", which was initialised in line " +
                     Twine(lineOf(at.state->step)) +
                     " with no fence.proxy.async or fence.mbarrier_init in "
                     "between");
  copy.to->claim(copy.toAddress, copy.bytes,
                 {copy.thread + 1, copy.step, Claim::BulkCopy});
  return true;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

bool Engine::waitForBulk(Warp &warp, const Step &step, uint32_t active) {
  auto isWaitedFor = [&](const BulkCopy &copy) {
    return copy.warp == warp.index && active >> copy.lane & 1 &&
           copy.group + uint64_t(step.imm) < warp.bulkGroups[copy.lane];
  };
  bool readOnly = step.flags & kReadOnly;
  for (BulkCopy &copy : outgoing)
    if (isWaitedFor(copy)) {
      if (!finishBulk(copy))
        return false;
      if (launch.options.checkRaces)
        stored.push_back(std::move(copy));
    }
  erase_if(outgoing, isWaitedFor);
  if (readOnly)
    return true;
  for (BulkCopy &copy : stored)
    if (isWaitedFor(copy) && !endBulk(copy))
      return false;
  erase_if(stored, isWaitedFor);
  return true;
}

/// The source may change.
bool Engine::releaseSource(BulkCopy &copy) {
  cluster->numBulkReads -= copy.from != nullptr;

  if (!launch.options.checkRaces)
    return true;
  if (!checkBulkRaces(copy, /*isStore=*/false))
    return false;
  // What it writes is of a later time.
  if (copy.to)
    races->advance(copy.engine);
  else
    learn(copy);
  return true;
}

/// Its thread has waited for what it stores in global memory.
bool Engine::endBulk(const BulkCopy &copy) {
  if (!checkBulkRaces(copy, /*isStore=*/true))
    return false;
  learn(copy);
  return true;
}

void Engine::learn(const BulkCopy &copy) {
  RaceDetector &races = *copy.issuer->races;
  RaceDetector::Clocks done;
  races.complete(copy.engine, done);
  races.acquire(copy.thread / 32, done);
}

bool Engine::finishBulk(BulkCopy &copy) {
  if (!releaseSource(copy))
    return false;
  if (!copy.to) {
    std::memcpy(reinterpret_cast<char *>(copy.toAddress), copy.data.data(),
                copy.bytes);
    const Allocation *of = launch.map.find(copy.toAddress, copy.bytes);
    if (of->written)
      std::memset(of->written + (copy.toAddress - of->begin), 1, copy.bytes);
    copy.data = {};
    return true;
  }
  if (launch.options.checkRaces && !checkBulkRaces(copy, /*isStore=*/true))
    return false;
  std::memcpy(shared.data() + copy.toAddress, copy.data.data(), copy.bytes);
  claim(copy.toAddress, copy.bytes, Claim());
  if (launch.options.checkInit)
    std::memset(sharedWritten.data() + copy.toAddress, 1, copy.bytes);
  uint32_t at = uint32_t(copy.mbarrier);
  Mbarrier &state = mbarriers[at];
  if (launch.options.checkRaces)
    races->complete(copy.engine, state.arrived);
  const Step &step = copy.issuer->stepAt(copy.step);
  return copy.issuer->expectBytes(copy.issuer->warps[copy.warp], step,
                                  copy.lane, {this, at, &state},
                                  -int64_t(copy.bytes));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool Engine::bulkFault(const BulkCopy &copy, const Twine &text) {
  Engine &issuer = *copy.issuer;
  return issuer.fault(issuer.warps[copy.warp], issuer.stepAt(copy.step),
                      copy.lane, text);
}

/// Nobody writes what a copy has not read yet.
bool Engine::checkBulkReads(Warp &warp, const Step &step,
                            const Access &access) {
  for (Engine *block : cluster->blocks)
    for (const auto *list : {&block->incoming, &block->outgoing})
      for (const BulkCopy &copy : *list) {
        if (copy.from != access.owner)
          continue;
        for (unsigned i = 0; i < 32; ++i)
          if (access.lanes >> i & 1 &&
              access.address[i] < copy.fromAddress + copy.bytes &&
              copy.fromAddress < access.address[i] + access.bytes)
            return fault(
                warp, step, i,
                verb(access.isStore, access.isAtomic) + " " +
                    Twine(access.bytes) + " bytes at " +
                    describe(access.space, access.address[i], access.bytes) +
                    ", which thread " + clusterThreadText(copy.thread) +
                    " is copying from there asynchronously in line " +
                    Twine(lineOf(copy.step)) + " and has not waited for");
      }
  return true;
}

bool Engine::checkBulkRaces(const BulkCopy &copy, bool isStore) {
  const Engine *of = isStore ? copy.to : copy.from;
  Engine &issuer = *copy.issuer;
  const Step &step = stepAt(copy.step);
  RaceDetector::Access access{copy.engine,
                              0,
                              step.source,
                              isStore,
                              /*isAtomic=*/false,
                              0,
                              0};
  access.address = isStore ? copy.toAddress : copy.fromAddress;
  if (of)
    access.address += kSharedWindow + (uint64_t(of->rank) << kRankShift);
  // In powers of two, as accesses of the detector are.
  for (uint32_t left = copy.bytes; left; left -= access.bytes) {
    access.bytes = kBulkChunk;
    while (access.bytes < kRacePage && 2 * access.bytes <= left &&
           access.address % (2 * access.bytes) == 0)
      access.bytes *= 2;
    RaceDetector::Conflict conflict;
    if (races->access(access, conflict)) {
      access.lane = copy.lane;
      return issuer.race(issuer.warps[copy.warp], step,
                         of ? Space::Shared : Space::Global, access, conflict);
    }
    access.address += access.bytes;
  }
  return true;
}

/// When the block has ended: its memory is another's then. What goes to global
/// memory comes there.
bool Engine::checkBulkWaited() {
  auto refuse = [&](const BulkCopy &copy, bool isTarget, const Twine &why) {
    return bulkFault(
        copy, "copies " + Twine(copy.bytes) + " bytes " +
                  (isTarget ? "to " : "from ") +
                  describe(Space::Shared,
                           isTarget ? copy.toAddress : copy.fromAddress, 1) +
                  ", asynchronously, and " + why + " before the block ended");
  };
  for (const BulkCopy &copy : incoming)
    return refuse(copy, true, "nobody has waited for them at the mbarrier");
  for (const BulkCopy &copy : outgoing)
    return refuse(copy, false, "the thread has not waited for them");
  for (const Engine *block : cluster->blocks)
    for (const BulkCopy &copy : block->incoming)
      if (copy.from == this)
        return refuse(copy, false,
                      "nobody has waited for them at the mbarrier");
  for (const BulkCopy &copy : stored)
    if (!endBulk(copy))
      return false;
  stored.clear();
  return true;
}

} // namespace dither::runtime::sim
