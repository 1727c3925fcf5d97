#include "State.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace dither::fakecuda {

static std::string variable(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

Config Config::fromEnvironment() {
  Config config;
  config.devices = std::atoi(variable("FAKE_CUDA_DEVICES", "1").c_str());
  config.name = variable("FAKE_CUDA_NAME", "Fake GPU");
  std::sscanf(variable("FAKE_CUDA_CAPABILITY", "9.0").c_str(), "%d.%d",
              &config.major, &config.minor);
  int major = 9, minor = 0;
  std::sscanf(variable("FAKE_CUDA_VERSION", "9.0").c_str(), "%d.%d", &major,
              &minor);
  config.version = 10 * major + minor;
  config.memory = std::strtoull(
      variable("FAKE_CUDA_MEMORY", "1073741824").c_str(), nullptr, 10);
  config.shared = std::atoi(variable("FAKE_CUDA_SHARED", "232448").c_str());
  config.threads = std::atoi(variable("FAKE_CUDA_THREADS", "1024").c_str());
  std::istringstream failures(variable("FAKE_CUDA_FAIL", ""));
  for (std::string entry; std::getline(failures, entry, ',');) {
    char name[64];
    unsigned call = 0;
    int code = 0;
    if (std::sscanf(entry.c_str(), "%63[^#]#%u=%d", name, &call, &code) != 3) {
      std::fprintf(stderr, "FAKE_CUDA_FAIL: cannot read '%s'\n", entry.c_str());
      std::abort();
    }
    config.failures[{name, call}] = code;
  }
  return config;
}

State &State::get() {
  static State *state = new State;
  return *state;
}

void State::reset() {
  config = Config::fromEnvironment();
  initialized = false;
  calls.clear();
  contexts.clear();
  modules.clear();
  for (auto &allocation : allocations)
    std::free(reinterpret_cast<void *>(allocation.first));
  allocations.clear();
  allocated = 0;
  launches.clear();
  ++generation;
}

CUfunc_st *State::find(CUfunction function) {
  for (auto &module : modules)
    for (auto &entry : module.second->functions)
      if (&entry.second == function)
        return &entry.second;
  return nullptr;
}

bool State::holds(CUdeviceptr pointer, size_t bytes) const {
  auto after = allocations.upper_bound(pointer);
  if (after == allocations.begin())
    return false;
  auto [begin, size] = *--after;
  return pointer - begin <= size && bytes <= size - (pointer - begin);
}

ThreadContexts &ThreadContexts::get(const State &state) {
  static thread_local ThreadContexts contexts;
  if (contexts.generation != state.generation) {
    contexts.stack.clear();
    contexts.generation = state.generation;
  }
  return contexts;
}

} // namespace dither::fakecuda
