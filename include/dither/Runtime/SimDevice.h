//===- SimDevice.h - A GPU simulated on this machine -----------*- C++ -*-===//
//
// Runs the PTX that a driver would be given, instruction by instruction, with
// the results that the PTX ISA defines. What the ISA leaves to the hardware
// (approximate functions) is computed within the documented bounds, and listed.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIMDEVICE_H
#define DITHER_RUNTIME_SIMDEVICE_H

#include "dither/Runtime/Device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dither::runtime {

/// What is checked besides bounds, alignment, barriers and the rules of
/// warp-wide instructions, which always are.
struct SimOptions {
  /// Reads of registers, shared memory or device memory that nothing has
  /// written. What copyIn gives is written.
  bool checkInit = false;
  /// Accesses of shared and global memory that nothing orders.
  bool checkRaces = false;
  /// Sectors, wavefronts and bank conflicts are counted.
  bool countMemory = false;
  /// Warp-wide steps that a block may take before it counts as hung.
  uint64_t maxSteps = uint64_t(1) << 33;
};

/// The options that DITHER_SIM_CHECKS says. Errors: a malformed variable.
llvm::Expected<SimOptions> simOptions();

/// What one PTX instruction, or all of a kernel, has done. An instruction
/// counts once for each warp that has a lane in it.
struct SimCount {
  uint64_t warps = 0; ///< instructions executed by warps
  uint64_t lanes = 0; ///< of which by how many lanes
  /// Branches whose lanes parted.
  uint64_t divergent = 0;
  // Of loads, stores and atomics, with countMemory: bytes that lanes asked for,
  // and for global memory the 32-byte sectors in which they lie; for shared
  // memory the wavefronts, and how many of them are due to bank conflicts.
  uint64_t bytes = 0;
  uint64_t sectors = 0;
  /// Requests of global memory, and the full-width ones: all 32 lanes move 16
  /// bytes or more each, or all of every sector.
  uint64_t requests = 0;
  uint64_t full = 0;
  uint64_t wavefronts = 0;
  uint64_t conflicts = 0;

  SimCount &operator+=(const SimCount &other);
};

/// Kinds of instructions, in the order of SimCounters::classes.
inline constexpr const char *kSimClassNames[] = {
    "integer",   "float",  "half",   "convert", "special", "move",
    "predicate", "memory", "atomic", "warp",    "control", "barrier"};
inline constexpr unsigned kNumSimClasses = std::size(kSimClassNames);

struct SimCounters {
  struct Line {
    uint32_t line = 0; ///< in the PTX, from 1
    std::string text;  ///< opcode with its modifiers
    unsigned kind = 0; ///< index of kSimClassNames
    std::string file;  ///< that `.loc` names; empty where there is none
    uint32_t fileLine = 0;
    SimCount count;
  };
  /// What was asked of one allocation, with countMemory.
  struct Array {
    uint64_t begin = 0; ///< its address
    uint64_t bytes = 0; ///< its size
    // Bytes that lanes loaded, stored and updated atomically.
    uint64_t loaded = 0, stored = 0, updated = 0;
    /// 32-byte sectors that blocks loaded from; each counts once in a block,
    /// which finds it in a cache from then on.
    uint64_t fetched = 0;
    uint64_t requests = 0, full = 0; ///< as in SimCount
  };
  SimCount total;
  /// Warp-wide instructions of each class.
  uint64_t classes[kNumSimClasses] = {};
  /// Requests of warps.
  uint64_t globalLoads = 0, globalStores = 0, sharedLoads = 0, sharedStores = 0;
  uint64_t barriers = 0; ///< waits of warps at barriers
  uint64_t blocks = 0;
  std::vector<Line> lines;   ///< in the order of the PTX
  std::vector<Array> arrays; ///< those that were accessed, by address
};

/// A kernel of a simulated device.
class SimKernel : public Kernel {
public:
  using Kernel::Kernel;
  SimKernel *simulated() override { return this; }
  /// Of the last launch that ended without an error.
  virtual SimCounters counters() const = 0;
  /// "line 12: ex2.approx.f32", for each instruction whose result only lies
  /// within a bound of the hardware's.
  virtual const std::vector<std::string> &approximations() const = 0;
  /// Bytes of dynamic shared memory that launches give; at first what
  /// KernelImage::sharedBytes has beyond those that the PTX declares.
  virtual void setDynamicShared(uint32_t bytes) = 0;
};

/// A device `sim:sm_XY` that runs PTX for that target. Launches are
/// synchronous; blocks run on numThreads() threads. Faults (the first by block,
/// then by time) are errors that name the kernel, the PTX line and instruction,
/// the block, the thread and the address. Errors: a target that is not one of
/// ours.
class SimDevice : public Device {
public:
  SimDevice *simulated() override { return this; }
  static llvm::Expected<std::unique_ptr<SimDevice>>
  make(llvm::StringRef target, const SimOptions &options);

  /// Sets SimOptions::countMemory for the launches that begin from now on.
  virtual void setCountMemory(bool on) = 0;

  /// The offset of the first byte of [pointer, pointer + bytes) that nothing
  /// has written; `bytes` where there is none. Needs checkInit. Errors: memory
  /// that is not the device's.
  virtual llvm::Expected<size_t> firstUnwritten(const void *pointer,
                                                size_t bytes) = 0;
};

} // namespace dither::runtime

#endif // DITHER_RUNTIME_SIMDEVICE_H
