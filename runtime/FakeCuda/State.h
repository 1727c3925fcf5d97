//===- State.h - Everything the fake driver knows --------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_FAKECUDA_STATE_H
#define DITHER_RUNTIME_FAKECUDA_STATE_H

#include "../Cuda/CudaApi.h"
#include "PtxModule.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dither::runtime::cuda {
struct CUctx_st {
  int device;
  unsigned retained;
};
struct CUfunc_st {
  CUmodule module;
  std::string name;
  std::vector<std::string> params;
  /// The most dynamic shared memory that launches may give.
  unsigned dynamicShared = 48 * 1024;
};
struct CUmod_st {
  CUcontext context;
  std::map<std::string, CUfunc_st> functions;
};
struct CUstream_st {};
} // namespace dither::runtime::cuda

namespace dither::fakecuda {

using namespace dither::runtime::cuda;

struct Config {
  int devices = 1, major = 9, minor = 0, version = 90, threads = 1024;
  /// Bytes of shared memory that a kernel may ask for.
  int shared = 227 * 1024;
  uint64_t memory = uint64_t(1) << 30;
  std::string name = "Fake GPU";
  /// Function, which of its calls, and with what it fails.
  std::map<std::pair<std::string, unsigned>, CUresult> failures;

  static Config fromEnvironment();
};

struct State {
  std::mutex mutex;
  Config config = Config::fromEnvironment();
  bool initialized = false;
  std::map<std::string, unsigned> calls;
  std::vector<std::unique_ptr<CUctx_st>> contexts;
  std::map<CUmodule, std::unique_ptr<CUmod_st>> modules;
  std::map<CUdeviceptr, size_t> allocations;
  uint64_t allocated = 0;
  std::string launches, leaks;
  /// Grows at each reset, so that contexts on threads' stacks become stale.
  uint64_t generation = 0;
  CUstream_st stream;

  static State &get();
  void reset();

  /// The function behind a handle, or null.
  CUfunc_st *find(CUfunction function);
  /// Whether `bytes` from `pointer` on lie in one allocation.
  bool holds(CUdeviceptr pointer, size_t bytes) const;
};

/// The contexts that a thread has pushed.
struct ThreadContexts {
  std::vector<CUcontext> stack;
  uint64_t generation = 0;

  static ThreadContexts &get(const State &state);
  CUcontext current() const { return stack.empty() ? nullptr : stack.back(); }
};

} // namespace dither::fakecuda

#endif // DITHER_RUNTIME_FAKECUDA_STATE_H
