//===- Engine.h - Runs the blocks of a launch -------------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_SIM_ENGINE_H
#define DITHER_RUNTIME_SIM_ENGINE_H

#include "GridRaces.h"
#include "Mbarrier.h"
#include "Memory.h"
#include "Program.h"
#include "Races.h"
#include "Types.h"
#include "dither/Runtime/SimDevice.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace dither::runtime::sim {

/// Which blocks (or clusters) of a launch have ended. Safe from many threads.
class EndedBlocks {
public:
  void add(uint64_t block);
  /// Whether all in front of a block have.
  bool allBefore(uint64_t block) const {
    return first.load(std::memory_order_relaxed) >= block;
  }

private:
  std::atomic<uint64_t> first{0}; ///< that has not
  std::mutex mutex;
  std::set<uint64_t> later;
};

/// What all blocks of a launch share.
struct Launch {
  const Program &program;
  const SimOptions &options;
  const MemoryMap &map;
  const std::vector<char> &params;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamicShared;
  GridRaces &gridRaces;
  EndedBlocks &ended;

  uint32_t numThreads() const { return block[0] * block[1] * block[2]; }
  const uint32_t *cluster() const { return program.cluster; }
  uint32_t clusterBlocks() const {
    return cluster()[0] * cluster()[1] * cluster()[2];
  }
  /// The blocks of a cluster have the numbers of its ranks, x fastest.
  uint64_t blockOf(uint64_t cluster, uint32_t rank) const;
};

/// The fault of the first block that has one, whatever the order they run in.
class FaultSink {
public:
  void report(uint64_t block, std::string text);
  /// Blocks at or after this one need not run.
  uint64_t stop() const { return first.load(std::memory_order_relaxed); }
  const std::string &text() const { return message; }

private:
  std::atomic<uint64_t> first{~uint64_t(0)};
  std::mutex mutex;
  std::string message;
};

/// Where a group of lanes is, and where it joins the group below it.
struct StackEntry {
  uint32_t pc, reconvergence, mask;
};

/// A copy of one thread to shared memory that it has not waited for (cp.async).
struct Copy {
  uint32_t lane, step;
  /// Groups that the thread had committed before.
  uint32_t group;
  uint64_t number;   ///< among those of its warp, from 1
  uint32_t bytes;    ///< that are written
  uint32_t taken;    ///< of which so many were read; the rest are zeros
  uint64_t to, from; ///< addresses in the shared and the global space
  char data[16] = {};
};

class Engine;

/// A bulk copy on its way.
struct BulkCopy {
  Engine *issuer;
  uint32_t warp, lane, step; ///< of the issuer
  uint32_t thread;           ///< of the cluster

  /// Groups that the thread had committed before; of those that go to global
  /// memory.
  uint32_t group;

  /// The blocks whose shared memory it is; null for global memory.
  Engine *from, *to;
  uint64_t fromAddress, toAddress;
  uint64_t mbarrier;   ///< its address in `to`
  uint32_t engine = 0; ///< of the race detector
  uint32_t bytes;
  std::vector<char> data;
};

struct Warp {
  enum State : uint8_t { Ready, Waiting, Done };
  /// Stands for that of the cluster among the numbers of barriers.
  static constexpr uint32_t kClusterBarrier = 16;
  char *frame = nullptr;
  uint32_t index = 0;
  uint32_t live = 0; ///< lanes that exist and have not returned
  State state = Ready;
  uint32_t barrier = 0; ///< waited for
  uint32_t barrierStep = 0;
  /// Has arrived at the barrier of the cluster, in its round `clusterRound`,
  /// and not waited since.
  bool inClusterBarrier = false;
  /// Has waited there once: all blocks of the cluster have begun.
  bool knowsCluster = false;
  /// Rounds of that barrier that were over when it last passed.
  uint32_t passedRounds = 0;
  uint32_t clusterRound = 0;
  std::vector<StackEntry> stack;
  /// In the order of their steps.
  std::vector<Copy> copies;
  /// Groups of copies that each lane has committed.
  uint32_t copyGroups[32] = {};
  uint64_t numCopies = 0;
  /// With checkRaces: what it knew at its last fence, which relaxed arrivals
  /// give, and what relaxed waits have found, which its next fence takes.
  RaceDetector::Clocks fenced, found;
  /// Groups of bulk copies, likewise.
  uint32_t bulkGroups[32] = {};
  /// With checkInit: lanes of each part of a register that were written.
  std::vector<uint32_t> written;
};

/// Blocks that run together, by rank, and the barrier that they have in common.
struct Cluster {
  std::vector<Engine *> blocks;
  /// Bulk copies that read shared memory of one of them.
  uint64_t numBulkReads = 0;
  /// Turns of warps that ended with a wait at an mbarrier in vain, since any
  /// ended otherwise or an mbarrier has changed.
  uint64_t idleWaits = 0;
  /// Times that all have arrived.
  uint32_t round = 0;
  /// Clocks of the warps that have arrived in this round, and in the last one.
  RaceDetector::Clocks arrived, passed;
};

/// Runs blocks, one at a time; each thread of a launch has its own, and one for
/// each block of a cluster (EngineCluster.cpp).
class Engine {
public:
  Engine(const Launch &launch, FaultSink &faults);
  Engine(const Engine &) = delete;

  /// Runs the clusters [begin, end), of more blocks than one, in as many
  /// engines. Returns at the first fault.
  static void runClusters(llvm::ArrayRef<std::unique_ptr<Engine>> blocks,
                          uint64_t begin, uint64_t end);

  /// Runs the blocks [begin, end), x fastest. Returns at the first fault.
  void run(uint64_t begin, uint64_t end);

  /// Adds what was counted.
  void addTo(SimCounters &counters) const;

private:
  // Control (Engine.cpp).
  void startBlock(uint64_t index);
  bool runBlock();
  /// Each warp that can run does, for a while. `ran`: there was one; `done`:
  /// all have returned.
  bool runWarps(bool &ran, bool &done);
  template <bool CHECK> bool runWarp(Warp &warp);
  bool runOther(Warp &warp, const Step &step, uint32_t active);
  bool branch(Warp &warp, const Step &step, uint32_t active);
  bool branchTable(Warp &warp, const Step &step, uint32_t active);
  /// Takes lanes out of the warp, and the next group of lanes.
  void leave(Warp &warp, uint32_t lanes);
  /// Whatever group is to run next; false where none is left.
  static bool settle(Warp &warp);
  void runMasked(Warp &warp, const Step &step, uint32_t active);
  void compare(Warp &warp, const Step &step, uint32_t active);
  bool checkGuard(Warp &warp, uint32_t pc, uint32_t mask);
  bool checkRegisters(Warp &warp, uint32_t pc, uint32_t active);

  // Memory (EngineMemory.cpp, EngineMatrix.cpp, EngineAtomic.cpp).
  struct Access {
    Space space;
    uint32_t lanes;
    uint32_t bytes; ///< of each lane
    uint32_t align; ///< what addresses are multiples of
    bool isStore, isAtomic;
    uint64_t address[32]; ///< in the space
    char *pointer[32];
    /// The block whose shared memory it is.
    Engine *owner;
    bool isBulk = false;
  };
  bool memoryStep(Warp &warp, const Step &step, uint32_t active);
  static void addressesOf(Warp &warp, const MemoryInfo &info,
                          uint64_t (&address)[32]);
  /// An access of one lane, to memory of this block or of none.
  Access accessOf(Space space, unsigned lane, uint64_t address, uint32_t bytes,
                  uint32_t align, bool isStore);
  static llvm::StringRef verb(bool isStore, bool isAtomic);
  bool access(Warp &warp, const Step &step, Access &access);
  bool poll(Warp &warp, const Step &step);
  /// As access(), of shared memory of any block of the cluster.
  bool clusterAccess(Warp &warp, const Step &step, Access &access);
  /// The block whose shared memory is at an address of the shared space of the
  /// cluster, which becomes that in the block's own.
  bool findOwner(Warp &warp, const Step &step, unsigned lane, uint64_t &address,
                 Engine *&owner);
  /// Whether all lanes are here that a load or store of matrices takes.
  bool isAligned(Warp &warp, const Step &step, uint32_t active);
  void moveMatrices(Warp &warp, const MemoryInfo &info, const Access &access);
  bool resolve(Warp &warp, const Step &step, Access &access);
  bool resolveGlobal(Warp &warp, const Step &step, Access &access);
  bool resolveWindow(Warp &warp, const Step &step, Access &access, char *base,
                     uint64_t limit);
  bool checkShadow(Warp &warp, const Step &step, const Access &access);
  bool checkRaces(Warp &warp, const Step &step, const Access &access);
  bool race(Warp &warp, const Step &step, Space space,
            const RaceDetector::Access &access,
            const RaceDetector::Conflict &conflict);
  void checkBlocks();
  void countAccess(const Step &step, const Access &access);
  static void countShared(SimCount &count, const Access &access);
  void countGlobal(SimCount &count, const Access &access);
  void move(Warp &warp, const MemoryInfo &info, const Access &access,
            uint32_t element);
  void atomic(Warp &warp, const MemoryInfo &info, const Access &access);

  // Asynchronous copies (EngineCopy.cpp).
  bool copy(Warp &warp, const Step &step, uint32_t active);
  bool copySizes(Warp &warp, const Step &step, uint32_t active,
                 uint32_t (&sizes)[32]);
  bool takeSource(Warp &warp, const Step &step, Access &access, Copy *copies);
  bool startCopies(Warp &warp, const Step &step, const Access &to,
                   const Copy *copies);
  bool waitForCopies(Warp &warp, const Step &step, uint32_t active);
  /// Ends a group of copies, of which each lane has committed `groups`.
  static void commit(uint32_t (&groups)[32], uint32_t active);
  bool finishCopies(Warp &warp,
                    llvm::function_ref<bool(const Copy &)> isWaitedFor,
                    uint32_t engine = kNoEngine);
  /// By an engine of the race detector, or by its thread.
  bool finishCopy(Warp &warp, const Copy &copy, uint32_t engine);
  bool checkCopyRaces(Warp &warp, const Copy &copy, uint32_t engine);
  static constexpr uint32_t kNoEngine = ~0u;
  /// Whether all copies were waited for, when the block has ended.
  bool checkAllWaited();

  /// What words of shared memory are, so that no load or store may touch them.
  struct Claim {
    enum Kind : uint8_t { None, Copy, BulkCopy, Mbarrier };
    uint32_t thread = 0; ///< of the cluster, from 1
    uint32_t step = 0;
    Kind kind = None;
  };
  void claim(uint64_t address, uint64_t bytes, Claim claim);
  bool checkClaims(Warp &warp, const Step &step, const Access &access);

  // mbarriers (EngineMbarrier.cpp).
  struct MbarrierAt {
    Engine *owner;
    uint32_t address; ///< in the owner's shared memory
    Mbarrier *state;
  };
  /// Sets `inVain` where a lane waits for a phase that is not over.
  bool mbarrier(Warp &warp, const Step &step, uint32_t active);
  bool findMbarrier(Warp &warp, const Step &step, unsigned lane,
                    const MemoryInfo &info, uint64_t address, MbarrierAt &at);
  bool mbarrierOf(Warp &warp, const Step &step, unsigned lane, Engine *owner,
                  uint64_t address, MbarrierAt &at);
  bool initMbarrier(Warp &warp, const Step &step, unsigned lane,
                    const MemoryInfo &info, uint64_t address, uint32_t count);
  bool sharedAddress(Warp &warp, const Step &step, unsigned lane,
                     const MemoryInfo &info, uint64_t &address);
  bool invalidate(Warp &warp, const Step &step, unsigned lane,
                  const MbarrierAt &at);
  /// Whether a lane knows that the mbarrier was initialised.
  bool checkBegun(Warp &warp, const Step &step, unsigned lane,
                  const MbarrierAt &at);
  bool checkMbarrierRaces(Warp &warp, const Step &step, unsigned lane,
                          const MbarrierAt &at, MbarrierOp op);
  bool arrive(Warp &warp, const Step &step, unsigned lane, const MbarrierAt &at,
              MbarrierOp op, uint32_t count);
  bool expectBytes(Warp &warp, const Step &step, unsigned lane,
                   const MbarrierAt &at, int64_t bytes);
  bool arriveAfterCopies(Warp &warp, const Step &step, unsigned lane,
                         const MbarrierAt &at, bool increments);
  bool waitAt(Warp &warp, const Step &step, unsigned lane, const MbarrierAt &at,
              bool &done);
  bool waitInVain(Warp &warp, const Step &step, unsigned lane,
                  const MbarrierAt &at);
  /// That of the race detector for what comes to an mbarrier of this block.
  uint32_t engineOf(uint64_t mbarrier) const {
    return races->engine(uint32_t(mbarrier / kMbarrierBytes) + rank);
  }
  /// Ends copies that arrive at an mbarrier of this block.
  bool settleMbarrier(uint32_t address);
  /// Begins the next phase where all has come.
  bool endPhase(uint32_t address);
  bool settleArrival(const CopyArrival &arrival, uint32_t address);
  void fence(Warp &warp, const Step &step, uint32_t active);
  /// After a wait in vain: lanes that parted from those that wait go on.
  static void swapLanes(Warp &warp);

  // Bulk copies (EngineBulk.cpp).
  bool bulkCopy(Warp &warp, const Step &step, uint32_t active);
  bool bulkCopyOf(Warp &warp, const Step &step, unsigned lane);
  bool readBulk(Warp &warp, const Step &step, unsigned lane, BulkCopy &copy);
  bool startBulk(Warp &warp, const Step &step, unsigned lane, BulkCopy copy);
  bool claimBulk(Warp &warp, const Step &step, unsigned lane,
                 const BulkCopy &copy);
  bool waitForBulk(Warp &warp, const Step &step, uint32_t active);
  /// The source may change.
  bool releaseSource(BulkCopy &copy);
  /// The bytes come.
  bool finishBulk(BulkCopy &copy);
  bool endBulk(const BulkCopy &copy);
  /// Its thread learns what a copy has done so far.
  static void learn(const BulkCopy &copy);
  static bool bulkFault(const BulkCopy &copy, const llvm::Twine &text);
  bool checkBulkReads(Warp &warp, const Step &step, const Access &access);
  bool checkBulkRaces(const BulkCopy &copy, bool isStore);
  bool checkBulkWaited();

  // Warps (EngineWarp.cpp).
  bool shuffle(Warp &warp, const Step &step, uint32_t active);
  bool vote(Warp &warp, const Step &step, uint32_t active);
  bool match(Warp &warp, const Step &step, uint32_t active);
  bool redux(Warp &warp, const Step &step, uint32_t active);
  bool elect(Warp &warp, const Step &step, uint32_t active);
  bool warpSync(Warp &warp, const Step &step, uint32_t active);
  /// The members that `lane` names, checked against those that are here.
  bool members(Warp &warp, const Step &step, uint32_t active, uint32_t offset,
               uint32_t lane, uint32_t &mask);

  // Barriers (EngineBarrier.cpp).
  struct Barrier {
    uint32_t threads = 0;  ///< that have arrived
    uint32_t expected = 0; ///< 0 for all
    uint64_t warps = 0;    ///< that have arrived, a bit each
    uint64_t waiting = 0;
    uint32_t step = 0; ///< of the last arrival
    uint32_t count = 0;
    bool all = true, any = false;
  };
  bool barrier(Warp &warp, const Step &step, uint32_t active);
  /// Lets warps go where enough have arrived.
  void settleBarrier(uint32_t id);
  void settleBarriers();
  bool deadlock();

  // Clusters (EngineCluster.cpp).
  static bool runCluster(Cluster &cluster);
  bool clusterBarrier(Warp &warp, const Step &step, uint32_t active);
  /// Begins the next round where all warps that have not returned are there.
  static void settleCluster(Cluster &cluster);
  void passClusterBarrier(Warp &warp);
  static bool clusterDeadlock(const Cluster &cluster);
  uint32_t numberOf(const Warp &warp) const { return firstWarp + warp.index; }

  // Faults (EngineFault.cpp). All return false.
  bool fault(uint64_t block, uint32_t source, const llvm::Twine &text);
  bool fault(const Step &step, const llvm::Twine &text);
  bool fault(Warp &warp, const Step &step, unsigned lane,
             const llvm::Twine &text);
  std::string blockText(uint64_t index) const;
  std::string threadText(uint32_t thread) const;
  /// Of a thread of the cluster, counted from its first block on.
  std::string clusterThreadText(uint32_t thread) const;
  std::string describe(Space space, uint64_t address, uint64_t bytes) const;

  const Step &stepAt(uint32_t pc) const { return launch.program.steps[pc]; }
  uint32_t pcOf(const Step &step) const {
    return uint32_t(&step - launch.program.steps.data());
  }
  uint32_t lineOf(uint32_t pc) const {
    return launch.program.sources[stepAt(pc).source].line;
  }
  template <class T> static T &lane(Warp &warp, uint32_t offset, unsigned i) {
    return reinterpret_cast<T *>(warp.frame + offset)[i];
  }
  static uint32_t predicate(Warp &warp, uint32_t offset) {
    return *reinterpret_cast<const uint32_t *>(warp.frame + offset);
  }
  static void setPredicate(Warp &warp, uint32_t offset, uint32_t active,
                           uint32_t value) {
    uint32_t &bits = *reinterpret_cast<uint32_t *>(warp.frame + offset);
    bits = (bits & ~active) | (value & active);
  }

  const Launch &launch;
  FaultSink &faults;
  uint64_t blockIndex = 0;
  uint32_t blockId[3] = {};
  uint64_t steps = 0;
  const Allocation *lastAllocation = nullptr;

  std::vector<Warp> warps;
  std::vector<char> frames;
  char *frameBase = nullptr;
  std::vector<char> shared, local;
  uint32_t sharedBytes;
  std::vector<uint8_t> sharedWritten, localWritten;
  std::vector<Claim> claims; ///< by word; empty before the first
  uint64_t numClaims = 0;
  llvm::DenseMap<uint32_t, Mbarrier> mbarriers; ///< by address
  /// Bulk copies to shared memory of this block, and those of its threads to
  /// global memory, in the order of their steps.
  std::vector<BulkCopy> incoming, outgoing;
  /// With checkRaces: those to global memory of which the sources may change.
  /// Their bytes are there, and nobody knows it yet.
  std::vector<BulkCopy> stored;
  bool hasEnded = false; ///< all of its warps have
  bool inVain = false;   ///< the turn of a warp ended with a wait in vain
  std::vector<Barrier> barriers;
  RaceDetector ownRaces;
  /// That of the first block of the cluster.
  RaceDetector *races = &ownRaces;

  Cluster ownCluster;
  Cluster *cluster = &ownCluster;
  uint64_t clusterIndex = 0;
  uint32_t rank = 0, firstWarp = 0;

  struct Counted {
    uint64_t warps = 0, lanes = 0;
  };
  std::vector<Counted> counted;           ///< by step
  std::vector<SimCount> memoryCounts;     ///< by PTX instruction
  std::vector<SimCounters::Array> arrays; ///< by allocation
  /// Sectors that this block has loaded from, by number.
  llvm::DenseSet<uint64_t> fetched;
  uint64_t globalLoads = 0, globalStores = 0, sharedLoads = 0, sharedStores = 0;
  uint64_t barrierWaits = 0, blocksRun = 0;
  /// Strong loads of a block, and of these those after all blocks in front of
  /// it had ended.
  uint64_t polls = 0, pollsAlone = 0;
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_ENGINE_H
