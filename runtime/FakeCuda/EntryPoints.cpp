//===- EntryPoints.cpp - The functions of the fake libcuda.so.1 -----------===//
//
// Each takes the lock, counts its call, fails if it was told to, and then
// checks its arguments in the order in which the driver documents its errors.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "State.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace dither::fakecuda;

// The table's own signatures: a definition that differs does not compile.
#define VISIBLE __attribute__((visibility("default")))
#define DITHER_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                         \
  extern "C" VISIBLE CUresult SYMBOL PARAMETERS;
#include "../Cuda/Symbols.def"

namespace {

/// One call: holds the lock. `result` is what it fails with before it starts.
class Call {
public:
  enum Needs { Nothing, Driver, Context };
  Call(std::string name, Needs needs) : state(State::get()), lock(state.mutex) {
    if (name.size() > 3 && name.compare(name.size() - 3, 3, "_v2") == 0)
      name.resize(name.size() - 3);
    auto failure = state.config.failures.find({name, ++state.calls[name]});
    if (failure != state.config.failures.end())
      result = failure->second;
    else if (needs != Nothing && !state.initialized)
      result = CUDA_ERROR_NOT_INITIALIZED;
    else if (needs == Context && !current())
      result = CUDA_ERROR_INVALID_CONTEXT;
  }
  CUcontext current() { return contexts().current(); }
  ThreadContexts &contexts() { return ThreadContexts::get(state); }
  bool isDevice(CUdevice device) const {
    return device >= 0 && device < state.config.devices;
  }

  State &state;
  CUresult result = CUDA_SUCCESS;

private:
  std::lock_guard<std::mutex> lock;
};

} // namespace

#define CALL(NEEDS)                                                            \
  Call call(__func__, Call::NEEDS);                                            \
  State &state = call.state;                                                   \
  (void)state;                                                                 \
  if (call.result != CUDA_SUCCESS)                                             \
  return call.result
#define REQUIRE(CONDITION, CODE)                                               \
  if (!(CONDITION))                                                            \
  return CODE

//===----------------------------------------------------------------------===//
// The driver and its devices
//===----------------------------------------------------------------------===//

CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
#define NAME(CODE)                                                             \
  case CODE:                                                                   \
    *name = #CODE;                                                             \
    return CUDA_SUCCESS;
    NAME(CUDA_SUCCESS)
    NAME(CUDA_ERROR_INVALID_VALUE)
    NAME(CUDA_ERROR_OUT_OF_MEMORY)
    NAME(CUDA_ERROR_NOT_INITIALIZED)
    NAME(CUDA_ERROR_DEINITIALIZED)
    NAME(CUDA_ERROR_NO_DEVICE)
    NAME(CUDA_ERROR_INVALID_DEVICE)
    NAME(CUDA_ERROR_INVALID_CONTEXT)
    NAME(CUDA_ERROR_INVALID_PTX)
    NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    NAME(CUDA_ERROR_INVALID_HANDLE)
    NAME(CUDA_ERROR_NOT_FOUND)
    NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    NAME(CUDA_ERROR_LAUNCH_FAILED)
#undef NAME
  default:
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuInit(unsigned flags) {
  CALL(Nothing);
  REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(state.config.devices > 0, CUDA_ERROR_NO_DEVICE);
  state.initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  CALL(Nothing);
  // PTX 8.4 came with CUDA 12.4, PTX 9.0 with 13.0.
  *version =
      (state.config.version / 10 + 4) * 1000 + state.config.version % 10 * 10;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  CALL(Driver);
  *count = state.config.devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CALL(Driver);
  REQUIRE(call.isDevice(ordinal), CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  CALL(Driver);
  REQUIRE(name && size > 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(call.isDevice(device), CUDA_ERROR_INVALID_DEVICE);
  std::strncpy(name, state.config.name.c_str(), size);
  name[size - 1] = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  CALL(Driver);
  REQUIRE(call.isDevice(device), CUDA_ERROR_INVALID_DEVICE);
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = state.config.major;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = state.config.minor;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CALL(Driver);
  REQUIRE(call.isDevice(device), CUDA_ERROR_INVALID_DEVICE);
  for (auto &known : state.contexts)
    if (known->device == device) {
      ++known->retained;
      *context = known.get();
      return CUDA_SUCCESS;
    }
  state.contexts.push_back(std::make_unique<CUctx_st>(CUctx_st{device, 1}));
  *context = state.contexts.back().get();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CALL(Driver);
  for (auto &known : state.contexts)
    if (known->device == device && known->retained) {
      --known->retained;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  CALL(Driver);
  *context = call.current();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  CALL(Driver);
  for (auto &known : state.contexts)
    if (known.get() == context && known->retained) {
      call.contexts().stack.push_back(context);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  CALL(Context);
  *context = call.current();
  call.contexts().stack.pop_back();
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                            unsigned numOptions, CUjit_option *options,
                            void **values) {
  CALL(Context);
  REQUIRE(image, CUDA_ERROR_INVALID_VALUE);
  char *buffer = nullptr;
  uintptr_t size = 0;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      size = reinterpret_cast<uintptr_t>(values[i]);
  }
  PtxModule ptx;
  std::string log;
  if (!parsePtx(static_cast<const char *>(image), ptx, log)) {
    if (buffer && size) {
      log.resize(std::min<size_t>(log.size(), size - 1));
      std::memcpy(buffer, log.c_str(), log.size() + 1);
    }
    return CUDA_ERROR_INVALID_PTX;
  }
  REQUIRE(ptx.version <= state.config.version,
          CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  auto made = std::make_unique<CUmod_st>();
  made->context = call.current();
  for (auto &[name, params] : ptx.entries)
    made->functions[name] = {made.get(), name, params};
  *module = made.get();
  state.modules[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  CALL(Context);
  return state.modules.erase(module) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  CALL(Context);
  auto known = state.modules.find(module);
  REQUIRE(known != state.modules.end(), CUDA_ERROR_INVALID_HANDLE);
  auto entry = known->second->functions.find(name);
  REQUIRE(entry != known->second->functions.end(), CUDA_ERROR_NOT_FOUND);
  *function = &entry->second;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function) {
  CALL(Context);
  REQUIRE(state.find(function), CUDA_ERROR_INVALID_HANDLE);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = state.config.threads;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: // as many as that leaves of 65536
    *value = std::min(255, 65536 / std::max(1, state.config.threads));
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  CALL(Context);
  CUfunc_st *known = state.find(function);
  REQUIRE(known, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
              value >= 0 && value <= state.config.shared,
          CUDA_ERROR_INVALID_VALUE);
  known->dynamicShared = unsigned(value);
  return CUDA_SUCCESS;
}

static std::string size3(unsigned x, unsigned y, unsigned z) {
  return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **parameters, void **extra) {
  CALL(Context);
  CUfunc_st *known = state.find(function);
  REQUIRE(known, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(known->module->context == call.current(), CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(!stream || stream == &state.stream, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(gridX && gridY && gridZ && gridX <= 0x7fffffff && gridY <= 65535 &&
              gridZ <= 65535,
          CUDA_ERROR_INVALID_VALUE);
  uint64_t threads = uint64_t(blockX) * blockY * blockZ;
  REQUIRE(threads && threads <= 1024 && blockZ <= 64, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(sharedBytes <= known->dynamicShared, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(!extra && (parameters || known->params.empty()),
          CUDA_ERROR_INVALID_VALUE);
  REQUIRE(threads <= uint64_t(state.config.threads),
          CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  std::string line = known->name + " grid=" + size3(gridX, gridY, gridZ) +
                     " block=" + size3(blockX, blockY, blockZ) +
                     " shared=" + std::to_string(sharedBytes) +
                     " stream=" + (stream ? "1" : "0") + " params=";
  for (size_t i = 0; i < known->params.size(); ++i)
    line += (i ? "," : "") + paramText(known->params[i], parameters[i]);
  state.launches += line + "\n";
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  CALL(Context);
  REQUIRE(!stream || stream == &state.stream, CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  CALL(Context);
  REQUIRE(bytes, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(bytes <= state.config.memory - state.allocated,
          CUDA_ERROR_OUT_OF_MEMORY);
  void *memory = nullptr;
  REQUIRE(!posix_memalign(&memory, 256, bytes), CUDA_ERROR_OUT_OF_MEMORY);
  // What was freed may have what a kernel would write, and none runs.
  std::memset(memory, 0xA5, bytes);
  *pointer = reinterpret_cast<uintptr_t>(memory);
  state.allocations[*pointer] = bytes;
  state.allocated += bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  CALL(Context);
  auto known = state.allocations.find(pointer);
  REQUIRE(known != state.allocations.end(), CUDA_ERROR_INVALID_VALUE);
  state.allocated -= known->second;
  state.allocations.erase(known);
  std::free(reinterpret_cast<void *>(pointer));
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr device, const void *host, size_t bytes) {
  CALL(Context);
  REQUIRE(host && state.holds(device, bytes), CUDA_ERROR_INVALID_VALUE);
  std::memcpy(reinterpret_cast<void *>(device), host, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr device, size_t bytes) {
  CALL(Context);
  REQUIRE(host && state.holds(device, bytes), CUDA_ERROR_INVALID_VALUE);
  std::memcpy(host, reinterpret_cast<const void *>(device), bytes);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

extern "C" {

VISIBLE void fakeCudaReset() {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.reset();
}

VISIBLE const char *fakeCudaLaunches() {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.launches.c_str();
}

VISIBLE const char *fakeCudaLeaks() {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.leaks.clear();
  auto add = [&](size_t count, std::string what) {
    if (count)
      state.leaks += (state.leaks.empty() ? "" : ", ") + std::to_string(count) +
                     " " + what + (count == 1 ? "" : "s");
  };
  add(state.allocations.size(), "allocation");
  add(state.modules.size(), "module");
  add(std::count_if(state.contexts.begin(), state.contexts.end(),
                    [](auto &context) { return context->retained; }),
      "context");
  return state.leaks.c_str();
}

VISIBLE unsigned fakeCudaCalls(const char *name) {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  auto known = state.calls.find(name);
  return known == state.calls.end() ? 0 : known->second;
}

VISIBLE void *fakeCudaStream() { return &State::get().stream; }
}
