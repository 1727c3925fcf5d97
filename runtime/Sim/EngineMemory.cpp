#include "Engine.h"

#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace llvm;

namespace dither::runtime::sim {

//===----------------------------------------------------------------------===//
// Moving data
//===----------------------------------------------------------------------===//

/// Elements of type S to registers of type W, extended as S's sign says.
template <class W, class S>
static void load(char *to, char *const *from, uint32_t offset, uint32_t lanes) {
  W *d = reinterpret_cast<W *>(to);
  if (lanes == ~0u) {
    for (int i = 0; i < 32; ++i) {
      S value;
      std::memcpy(&value, from[i] + offset, sizeof value);
      d[i] = W(value);
    }
    return;
  }
  for (int i = 0; i < 32; ++i)
    if (lanes >> i & 1) {
      S value;
      std::memcpy(&value, from[i] + offset, sizeof value);
      d[i] = W(value);
    }
}

template <class W, class S>
static void store(const char *from, char *const *to, uint32_t offset,
                  uint32_t lanes) {
  const W *s = reinterpret_cast<const W *>(from);
  for (int i = 0; i < 32; ++i)
    if (lanes >> i & 1) {
      S value = S(s[i]);
      std::memcpy(to[i] + offset, &value, sizeof value);
    }
}

template <class S>
static void loadWidth(unsigned width, char *to, char *const *from,
                      uint32_t offset, uint32_t lanes) {
  switch (width) {
  case 1:
    return load<uint8_t, S>(to, from, offset, lanes);
  case 2:
    return load<uint16_t, S>(to, from, offset, lanes);
  case 4:
    return load<uint32_t, S>(to, from, offset, lanes);
  default:
    return load<uint64_t, S>(to, from, offset, lanes);
  }
}

template <class S>
static void storeWidth(unsigned width, const char *from, char *const *to,
                       uint32_t offset, uint32_t lanes) {
  switch (width) {
  case 1:
    return store<uint8_t, S>(from, to, offset, lanes);
  case 2:
    return store<uint16_t, S>(from, to, offset, lanes);
  case 4:
    return store<uint32_t, S>(from, to, offset, lanes);
  default:
    return store<uint64_t, S>(from, to, offset, lanes);
  }
}

/// One element of the vector of a load or store.
void Engine::move(Warp &warp, const MemoryInfo &info, const Access &access,
                  uint32_t element) {
  if (info.registers[element] == ~0u)
    return;
  char *reg = warp.frame + info.registers[element];
  unsigned width = info.widths[element];
  uint32_t offset = element * info.size;
  if (access.isStore) {
    switch (info.size) {
    case 1:
      return storeWidth<uint8_t>(width, reg, access.pointer, offset,
                                 access.lanes);
    case 2:
      return storeWidth<uint16_t>(width, reg, access.pointer, offset,
                                  access.lanes);
    case 4:
      return storeWidth<uint32_t>(width, reg, access.pointer, offset,
                                  access.lanes);
    default:
      return storeWidth<uint64_t>(width, reg, access.pointer, offset,
                                  access.lanes);
    }
  }
  auto pick = [&](auto isUnsigned, auto isSigned) {
    if (info.isSigned)
      loadWidth<decltype(isSigned)>(width, reg, access.pointer, offset,
                                    access.lanes);
    else
      loadWidth<decltype(isUnsigned)>(width, reg, access.pointer, offset,
                                      access.lanes);
  };
  switch (info.size) {
  case 1:
    return pick(uint8_t(), int8_t());
  case 2:
    return pick(uint16_t(), int16_t());
  case 4:
    return pick(uint32_t(), int32_t());
  default:
    return pick(uint64_t(), int64_t());
  }
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

StringRef Engine::verb(bool isStore, bool isAtomic) {
  return isAtomic ? "updates" : isStore ? "writes" : "reads";
}

/// Finds memory for each lane, and checks bounds and alignment.
bool Engine::resolve(Warp &warp, const Step &step, Access &access) {
  uint64_t low = ~uint64_t(0), high = 0, bits = 0;
  for (int i = 0; i < 32; ++i)
    if (access.lanes >> i & 1) {
      low = std::min(low, access.address[i]);
      high = std::max(high, access.address[i]);
      bits |= access.address[i];
    }
  if (bits & (access.align - 1))
    for (unsigned i = 0; i < 32; ++i)
      if (access.lanes >> i & 1 && access.address[i] & (access.align - 1))
        return fault(
            warp, step, i,
            verb(access.isStore, access.isAtomic) + " " + Twine(access.bytes) +
                " bytes at " +
                describe(access.space, access.address[i], access.bytes) +
                ": the address is not a multiple of " + Twine(access.align));
  switch (access.space) {
  case Space::Shared:
    if (high + access.bytes <= sharedBytes && high < kWindowBytes) {
      for (int i = 0; i < 32; ++i)
        access.pointer[i] = access.owner->shared.data() + access.address[i];
      return true;
    }
    return resolveWindow(warp, step, access, access.owner->shared.data(),
                         sharedBytes);
  case Space::Param:
    return resolveWindow(warp, step, access,
                         const_cast<char *>(launch.params.data()),
                         launch.program.paramBytes);
  case Space::Local:
    return resolveWindow(warp, step, access, local.data(),
                         launch.program.localBytes);
  default:
    break;
  }
  const Allocation *known = lastAllocation;
  if (!known || low < known->begin || high >= known->end ||
      access.bytes > known->end - high) {
    known = launch.map.find(low, access.bytes);
    if (!known || high >= known->end || access.bytes > known->end - high)
      return resolveGlobal(warp, step, access);
    lastAllocation = known;
  }
  for (int i = 0; i < 32; ++i)
    access.pointer[i] = reinterpret_cast<char *>(access.address[i]);
  return true;
}

/// Lanes in more than one allocation, or out of bounds.
bool Engine::resolveGlobal(Warp &warp, const Step &step, Access &access) {
  for (unsigned i = 0; i < 32; ++i) {
    if (!(access.lanes >> i & 1))
      continue;
    uint64_t address = access.address[i];
    if (access.isAtomic ? launch.map.holdsWords(address, access.bytes)
                        : launch.map.find(address, access.bytes) != nullptr) {
      access.pointer[i] = reinterpret_cast<char *>(address);
      continue;
    }
    return fault(warp, step, i,
                 verb(access.isStore, access.isAtomic) + " " +
                     Twine(access.bytes) + " bytes at " +
                     describe(access.space, address, access.bytes));
  }
  return true;
}

/// Spaces of a fixed size; that of a thread's own is at `base`, plus its index
/// times the size.
bool Engine::resolveWindow(Warp &warp, const Step &step, Access &access,
                           char *base, uint64_t limit) {
  for (unsigned i = 0; i < 32; ++i) {
    if (!(access.lanes >> i & 1))
      continue;
    uint64_t address = access.address[i];
    if (address > limit || access.bytes > limit - address)
      return fault(warp, step, i,
                   verb(access.isStore, access.isAtomic) + " " +
                       Twine(access.bytes) + " bytes at " +
                       describe(access.space, address, access.bytes));
    uint64_t own =
        access.space == Space::Local ? (warp.index * 32 + i) * limit : 0;
    access.pointer[i] = base + own + address;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Loads, stores and atomics
//===----------------------------------------------------------------------===//

void Engine::addressesOf(Warp &warp, const MemoryInfo &info,
                         uint64_t (&address)[32]) {
  const char *registers = warp.frame + info.address;
  if (info.addressWidth == 8) {
    const uint64_t *from = reinterpret_cast<const uint64_t *>(registers);
    for (int i = 0; i < 32; ++i)
      address[i] = from[i] + uint64_t(info.offset);
  } else {
    const uint32_t *from = reinterpret_cast<const uint32_t *>(registers);
    for (int i = 0; i < 32; ++i)
      address[i] = uint32_t(from[i] + uint64_t(info.offset));
  }
}

Engine::Access Engine::accessOf(Space space, unsigned lane, uint64_t address,
                                uint32_t bytes, uint32_t align, bool isStore) {
  Access access = {};
  access.space = space;
  access.lanes = 1u << lane;
  access.bytes = bytes;
  access.align = align;
  access.isStore = isStore;
  access.address[lane] = address;
  access.owner = this;
  return access;
}

bool Engine::memoryStep(Warp &warp, const Step &step, uint32_t active) {
  const MemoryInfo &info = launch.program.memories[step.imm];
  Access all;
  all.space = Space(info.space);
  all.lanes = active;
  all.bytes = uint32_t(info.size) * info.count;
  all.isAtomic = step.form == Form::Atomic;
  all.isStore = all.isAtomic || step.form == Form::Store;
  all.owner = this;
  addressesOf(warp, info, all.address);
  if (info.isMatrix) {
    if (!isAligned(warp, step, active))
      return false;
    // Eight lanes for each matrix have the addresses of its rows.
    all.bytes = 16;
    all.lanes = uint32_t((uint64_t(1) << 8 * info.count) - 1);
  }
  all.align = all.bytes;
  if (info.isCluster)
    return clusterAccess(warp, step, all);
  if (all.space != Space::Generic)
    return access(warp, step, all);
  // Lanes by the window their addresses lie in.
  uint32_t inShared = 0, inLocal = 0;
  for (int i = 0; i < 32; ++i) {
    inShared |= uint32_t(all.address[i] - kSharedWindow < kWindowBytes) << i;
    inLocal |= uint32_t(all.address[i] - kLocalWindow < kWindowBytes) << i;
  }
  for (Space space : {Space::Shared, Space::Local, Space::Global}) {
    Access part = all;
    part.space = space;
    part.lanes = active & (space == Space::Shared  ? inShared
                           : space == Space::Local ? inLocal
                                                   : ~(inShared | inLocal));
    if (!part.lanes)
      continue;
    uint64_t window = space == Space::Shared  ? kSharedWindow
                      : space == Space::Local ? kLocalWindow
                                              : 0;
    for (int i = 0; i < 32; ++i)
      part.address[i] -= window;
    if (!(space == Space::Shared ? clusterAccess(warp, step, part)
                                 : access(warp, step, part)))
      return false;
  }
  return true;
}

bool Engine::access(Warp &warp, const Step &step, Access &access) {
  const MemoryInfo &info = launch.program.memories[step.imm];
  if (!resolve(warp, step, access))
    return false;
  if (info.isStrong && !access.isStore && !poll(warp, step))
    return false;
  bool inShared = access.space == Space::Shared;
  if (inShared && (access.owner->numClaims || cluster->numBulkReads) &&
      !checkClaims(warp, step, access))
    return false;
  if (access.isStore)
    ++(inShared ? sharedStores : globalStores);
  else if (access.space != Space::Param && access.space != Space::Local)
    ++(inShared ? sharedLoads : globalLoads);
  if (launch.options.countMemory && access.space != Space::Param)
    countAccess(step, access);
  if (launch.options.checkInit && !checkShadow(warp, step, access))
    return false;
  if (launch.options.checkRaces &&
      (inShared || access.space == Space::Global) &&
      !checkRaces(warp, step, access))
    return false;
  if (access.isAtomic) {
    atomic(warp, info, access);
    return true;
  }
  if (info.isMatrix)
    moveMatrices(warp, info, access);
  else
    for (uint32_t i = 0; i < info.count; ++i)
      move(warp, info, access, i);
  return true;
}

/// A loop of such loads may wait for a block that another thread runs, or for
/// one that will never store.
bool Engine::poll(Warp &warp, const Step &step) {
  constexpr uint64_t most = uint64_t(1) << 20;
  if (++polls % 64)
    return true;
  if (launch.blockOf(clusterIndex, 0) >= faults.stop())
    return false;
  if (!launch.ended.allBefore(clusterIndex)) {
    std::this_thread::yield();
    return true;
  }
  if ((pollsAlone += 64) < most)
    return true;
  return fault(warp, step, unsigned(countr_zero(warp.live)),
               "waits for a store that no block before this one has made");
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Loads must find bytes that were written, stores mark them.
bool Engine::checkShadow(Warp &warp, const Step &step, const Access &access) {
  if (access.space == Space::Param)
    return true;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(access.lanes >> i & 1))
      continue;
    uint8_t *written = nullptr;
    uint64_t address = access.address[i];
    if (access.space == Space::Shared) {
      written = access.owner->sharedWritten.data() + address;
    } else if (access.space == Space::Local) {
      written = localWritten.data() + (access.pointer[i] - local.data());
    } else {
      const Allocation *found = launch.map.find(address, access.bytes);
      if (!found || !found->written)
        continue;
      written = found->written + (address - found->begin);
    }
    if (!access.isStore || access.isAtomic)
      for (uint32_t byte = 0; byte < access.bytes; ++byte)
        if (!written[byte])
          return fault(warp, step, i,
                       "reads " + describe(access.space, address + byte, 1) +
                           ", which was not written");
    if (access.isStore)
      std::memset(written, 1, access.bytes);
  }
  return true;
}

static StringRef hasDone(uint8_t bits) {
  switch (bits) {
  case HasRead:
  case HasObserved:
    return "has read";
  case HasUpdated:
    return "has updated";
  case HasRead | HasUpdated:
  case HasObserved | HasUpdated:
    return "has read and updated";
  default:
    return "has written";
  }
}

/// Leaves of an atomic and, or an atomic or, the bytes that its operand can
/// change: GPUs have none for bytes, and code that shares a word with others
/// uses those on the word. Nothing may be left; else an aligned power of two.
static void trimNeutral(const MemoryInfo &info, const char *operand,
                        uint64_t &address, uint32_t &bytes) {
  if (info.op != AtomicOp::And && info.op != AtomicOp::Or)
    return;
  char neutral = info.op == AtomicOp::And ? char(0xFF) : 0;
  uint32_t first = 0, end = bytes, size = 1;
  while (first < end && operand[first] == neutral)
    ++first;
  while (end > first && operand[end - 1] == neutral)
    --end;
  while (first < end && first / size != (end - 1) / size)
    size *= 2;
  address += first / size * size;
  bytes = first < end ? size : 0;
}

/// The fault of one access of a lane, of either space.
bool Engine::race(Warp &warp, const Step &step, Space space,
                  const RaceDetector::Access &access,
                  const RaceDetector::Conflict &conflict) {
  uint64_t address = conflict.address;
  if (space == Space::Shared)
    address = (address - kSharedWindow) & ((uint64_t(1) << kRankShift) - 1);
  std::string who = races->isEngine(conflict.thread)
                        ? "a bulk copy"
                        : "thread " + clusterThreadText(conflict.thread);
  return fault(warp, step, access.lane,
               verb(access.isStore, access.isAtomic) + " " +
                   describe(space, address, 1) + ", which " + who + " " +
                   hasDone(conflict.was) + " in line " +
                   Twine(launch.program.sources[conflict.source].line) +
                   " with no " +
                   (conflict.needsFence ? "fence.proxy.async" : "barrier") +
                   " in between");
}

/// Stores take place here already, a lane after the other, so that lanes that
/// store the same value are seen to do so.
bool Engine::checkRaces(Warp &warp, const Step &step, const Access &access) {
  const MemoryInfo &info = launch.program.memories[step.imm];
  uint64_t window = 0;
  if (access.space == Space::Shared)
    window = kSharedWindow + (uint64_t(access.owner->rank) << kRankShift);
  // Rows of matrices are of several lanes: any store is one of another value.
  bool isPlain = access.isStore && !access.isAtomic && !info.isMatrix;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(access.lanes >> i & 1))
      continue;
    char value[32];
    RaceDetector::Access lane{numberOf(warp),
                              i,
                              step.source,
                              access.isStore,
                              access.isAtomic || info.isStrong,
                              access.address[i] + window,
                              access.bytes};
    if (isPlain) {
      for (uint32_t e = 0; e < info.count; ++e)
        std::memcpy(value + e * info.size,
                    warp.frame + info.registers[e] + i * info.widths[e],
                    info.size);
      lane.value = value;
      lane.old = access.pointer[i];
    }
    if (access.isAtomic) {
      trimNeutral(info, warp.frame + info.operands[0] + i * info.size,
                  lane.address, lane.bytes);
      if (!lane.bytes)
        continue;
    }
    RaceDetector::Conflict conflict;
    if (races->access(lane, conflict))
      return race(warp, step, access.space, lane, conflict);
    if (isPlain)
      std::memcpy(access.pointer[i], value, access.bytes);
  }
  return true;
}

/// What this block has touched, beside what others have.
void Engine::checkBlocks() {
  uint32_t warpsOfBlock = uint32_t(warps.size());
  auto blockOf = [&](uint64_t index, uint32_t thread) {
    return launch.blockOf(index, thread / 32 / warpsOfBlock);
  };
  auto inBlock = [&](uint32_t thread) {
    return threadText(thread % (32 * warpsOfBlock));
  };
  launch.gridRaces.add(
      clusterIndex, races->touched(), [&](const GridRaces::Conflict &conflict) {
        const Touched &now = conflict.access, &before = conflict.accessed;
        fault(blockOf(conflict.block, now.thread), now.source,
              ", thread " + inBlock(now.thread) + ": " +
                  verb(now.bits & HasWritten, now.bits & HasUpdated) + " " +
                  describe(Space::Global, conflict.address, 1) +
                  ", which thread " + inBlock(before.thread) + " of block " +
                  blockText(blockOf(conflict.before, before.thread)) + " " +
                  hasDone(before.bits) + " in line " +
                  Twine(launch.program.sources[before.source].line) +
                  "; blocks have no order");
      });
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

/// Wavefronts of shared memory (include/dither/Layout/BankModel.h): lanes are
/// served in groups of 128 bytes, a word of each bank at a time.
static unsigned wavefronts(const uint64_t *address, uint32_t lanes,
                           uint32_t bytes) {
  unsigned perGroup = bytes <= 4 ? 32 : 128 / bytes, total = 0;
  unsigned wordsEach = bytes <= 4 ? 1 : bytes / 4;
  for (unsigned first = 0; first < 32; first += perGroup) {
    // The words of each bank, without duplicates.
    uint64_t words[128];
    unsigned count = 0, most = 0;
    uint8_t inBank[32] = {};
    for (unsigned i = first; i < first + perGroup; ++i)
      if (lanes >> i & 1)
        for (unsigned w = 0; w < wordsEach; ++w)
          words[count++] = address[i] / 4 + w;
    std::sort(words, words + count);
    count = unsigned(std::unique(words, words + count) - words);
    for (unsigned w = 0; w < count; ++w)
      most = std::max<unsigned>(most, ++inBank[words[w] % 32]);
    total += most;
  }
  return total;
}

void Engine::countAccess(const Step &step, const Access &access) {
  SimCount &count = memoryCounts[step.source];
  unsigned lanes = unsigned(llvm::popcount(access.lanes));
  count.bytes += uint64_t(lanes) * access.bytes;
  if (access.space == Space::Shared)
    countShared(count, access);
  else if (access.space == Space::Global)
    countGlobal(count, access);
}

void Engine::countShared(SimCount &count, const Access &access) {
  unsigned fronts = wavefronts(access.address, access.lanes, access.bytes);
  unsigned perGroup = access.bytes <= 4 ? 32 : 128 / access.bytes, groups = 0;
  for (unsigned first = 0; first < 32; first += perGroup)
    groups += (access.lanes >> first &
               (perGroup == 32 ? ~0u : (1u << perGroup) - 1)) != 0;
  count.wavefronts += fronts;
  count.conflicts += fronts - groups;
}

void Engine::countGlobal(SimCount &count, const Access &access) {
  std::pair<uint64_t, uint64_t> spans[32];
  unsigned lanes = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (access.lanes >> i & 1)
      spans[lanes++] = {access.address[i], access.address[i] + access.bytes};
  std::sort(spans, spans + lanes);
  const Allocation *known = launch.map.before(spans[0].first);
  SimCounters::Array &array =
      arrays[size_t(known - launch.map.allocations.data())];
  bool isLoad = !access.isStore && !access.isAtomic;
  // Bytes and sectors, each once, however many lanes want it.
  uint64_t bytes = 0, end = 0, sectors = 0, nextSector = 0;
  for (unsigned i = 0; i < lanes; ++i) {
    auto [first, last] = spans[i];
    bytes += last - std::min(last, std::max(first, end));
    end = std::max(end, last);
    for (uint64_t sector = std::max(first / 32, nextSector);
         sector < (last + 31) / 32; ++sector) {
      ++sectors;
      array.fetched += isLoad && fetched.insert(sector).second;
    }
    nextSector = std::max(nextSector, (last + 31) / 32);
  }
  bool full = access.isBulk ||
              (lanes == 32 && (access.bytes >= 16 || bytes == 32 * sectors));
  count.sectors += sectors;
  ++count.requests;
  count.full += full;
  ++array.requests;
  array.full += full;
  (access.isAtomic  ? array.updated
   : access.isStore ? array.stored
                    : array.loaded) += lanes * uint64_t(access.bytes);
}

} // namespace dither::runtime::sim
