#include "dither/Runtime/SimDevice.h"
#include "../Device/Checks.h"
#include "../Device/FloatEnvironment.h"
#include "Decoder.h"
#include "Engine.h"
#include "dither/Runtime/CudaDevice.h"
#include "dither/Runtime/ThreadPool.h"
#include "dither/Support/EnvVars.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace llvm;
using namespace dither::runtime::sim;

namespace dither::runtime {

SimCount &SimCount::operator+=(const SimCount &other) {
  warps += other.warps;
  lanes += other.lanes;
  divergent += other.divergent;
  bytes += other.bytes;
  sectors += other.sectors;
  requests += other.requests;
  full += other.full;
  wavefronts += other.wavefronts;
  conflicts += other.conflicts;
  return *this;
}

Expected<SimOptions> simOptions() {
  Expected<StringSet<>> checks = env::simChecks();
  if (!checks)
    return checks.takeError();
  SimOptions options;
  options.checkInit = checks->contains("init");
  options.checkRaces = checks->contains("races");
  options.countMemory = checks->contains("counters");
  return options;
}

static_assert(kNumSimClasses == kNumOpClasses);

namespace {

/// What a kernel needs of its device, which it may outlive.
struct State {
  State(std::string name, std::string target, const SimOptions &options)
      : name(std::move(name)), target(std::move(target)), options(options),
        memory(options.checkInit) {}
  std::string name, target;
  const SimOptions options;
  std::atomic<bool> countMemory{options.countMemory};
  Memory memory;
};

/// Memory of a module's variables of the global and const spaces.
class Variables {
public:
  explicit Variables(std::shared_ptr<State> state) : state(std::move(state)) {}
  Variables(Variables &&) = default;
  ~Variables() {
    for (void *pointer : pointers)
      state->memory.release(pointer);
  }

  /// Addresses by index of the variable, 0 for those of other spaces. Errors:
  /// one that is too large.
  Expected<std::vector<uint64_t>> place(const Module &module);

private:
  std::shared_ptr<State> state;
  std::vector<void *> pointers;
};

Expected<std::vector<uint64_t>> Variables::place(const Module &module) {
  std::vector<uint64_t> addresses(module.variables.size(), 0);
  for (auto [i, variable] : enumerate(module.variables)) {
    if (variable.space != Space::Global && variable.space != Space::Const)
      continue;
    constexpr uint64_t most = uint64_t(1) << 32;
    void *memory =
        variable.size > most
            ? nullptr
            : state->memory.allocate(std::max<uint64_t>(1, variable.size));
    if (!memory)
      return createStringError("cannot allocate " + Twine(variable.size) +
                               " bytes for '" + variable.name + "'");
    pointers.push_back(memory);
    addresses[i] = reinterpret_cast<uintptr_t>(memory);
  }
  std::shared_ptr<const MemoryMap> map = state->memory.map();
  for (auto [i, variable] : enumerate(module.variables)) {
    if (!addresses[i] || !variable.size)
      continue;
    char *bytes = reinterpret_cast<char *>(addresses[i]);
    std::memset(bytes, 0, variable.size);
    std::copy(variable.initializer.begin(), variable.initializer.end(), bytes);
    for (const VariableDecl::Relocation &relocation : variable.relocations) {
      uint64_t value =
          addresses[relocation.variable] + uint64_t(relocation.addend);
      std::memcpy(bytes + relocation.offset, &value, sizeof value);
    }
    state->memory.markWritten(*map->find(addresses[i], variable.size),
                              addresses[i], variable.size);
  }
  return addresses;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

class Simulated : public SimKernel {
public:
  Simulated(std::shared_ptr<State> state, Program given, Variables variables,
            const KernelImage &image)
      : SimKernel(image), state(std::move(state)), program(std::move(given)),
        variables(std::move(variables)), numThreads(image.numThreads),
        clusterSize(image.clusterSize) {}

  Error launch(ArrayRef<int64_t> slots, const Grid &grid, Stream) override;

  SimCounters counters() const override {
    std::lock_guard<std::mutex> lock(mutex);
    return last;
  }
  const std::vector<std::string> &approximations() const override {
    return program.approximations;
  }
  void setDynamicShared(uint32_t bytes) override { dynamicShared = bytes; }

private:
  std::shared_ptr<State> state;
  Program program;
  Variables variables;
  uint32_t numThreads, clusterSize;
  std::atomic<uint32_t> dynamicShared{0};
  mutable std::mutex mutex;
  SimCounters last;
};

Error Simulated::launch(ArrayRef<int64_t> slots, const Grid &programs, Stream) {
  if (Error error = checkLaunch(program.name, program.params.size(), tiles,
                                slots, programs))
    return error;
  Grid grid = blocksOf(programs, clusterSize);
  if (grid.x > 2147483647 || grid.y > 65535 || grid.z > 65535)
    return createStringError("grid of kernel '" + program.name + "' is " +
                             gridText(grid) +
                             ": a CUDA grid is at most 2147483647x65535x65535");
  // The driver reads as many low bytes of a slot as the parameter has.
  std::vector<char> params(program.paramBytes);
  for (auto [param, slot] : zip(program.params, slots))
    std::memcpy(params.data() + param.offset, &slot, param.size);
  std::shared_ptr<const MemoryMap> map = state->memory.map();
  SimOptions options = state->options;
  options.countMemory = state->countMemory;
  GridRaces gridRaces;
  EndedBlocks ended;
  Launch launch{program,
                options,
                *map,
                params,
                {uint32_t(grid.x), uint32_t(grid.y), uint32_t(grid.z)},
                {numThreads, 1, 1},
                dynamicShared,
                gridRaces,
                ended};
  Expected<unsigned> threads = runtime::numThreads();
  if (!threads)
    return threads.takeError();
  SimCounters counters;
  for (const Source &source : program.sources)
    counters.lines.push_back({source.line, source.text, unsigned(source.kind),
                              source.file, source.fileLine, SimCount()});
  for (const Allocation &allocation : map->allocations)
    counters.arrays.push_back(
        {allocation.begin, allocation.end - allocation.begin});
  FaultSink faults;
  std::mutex countersMutex;
  for (auto [extent, of] : zip(launch.grid, program.cluster))
    if (extent % of)
      return createStringError(
          "grid of kernel '" + program.name + "' is " + gridText(grid) +
          ", expected whole clusters of " + Twine(program.cluster[0]) + "x" +
          Twine(program.cluster[1]) + "x" + Twine(program.cluster[2]));
  // Clusters where there are any.
  uint32_t together = launch.clusterBlocks();
  int64_t blocks = grid.x * grid.y * grid.z / together;
  // Blocks that ran before those in front of them wait to be compared.
  int64_t most = options.checkRaces ? 16 : 256;
  int64_t chunk = std::max<int64_t>(1, blocks / (8 * int64_t(*threads)));
  parallelFor(blocks, std::min(chunk, most), *threads,
              [&](int64_t begin, int64_t end) {
                FloatEnvironment environment;
                std::vector<std::unique_ptr<Engine>> engines;
                for (uint32_t i = 0; i < together; ++i)
                  engines.push_back(std::make_unique<Engine>(launch, faults));
                if (together == 1)
                  engines.front()->run(uint64_t(begin), uint64_t(end));
                else
                  Engine::runClusters(engines, uint64_t(begin), uint64_t(end));
                std::lock_guard<std::mutex> lock(countersMutex);
                for (const auto &engine : engines)
                  engine->addTo(counters);
              });
  if (faults.stop() != ~uint64_t(0))
    return createStringError(faults.text());
  erase_if(counters.arrays,
           [](const SimCounters::Array &array) { return !array.requests; });
  std::lock_guard<std::mutex> lock(mutex);
  last = std::move(counters);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

class Simulator : public SimDevice {
public:
  explicit Simulator(std::shared_ptr<State> state) : state(std::move(state)) {}

  StringRef name() const override { return state->name; }
  StringRef description() const override { return "PTX simulator"; }
  StringRef target() const override { return state->target; }

  void setCountMemory(bool on) override { state->countMemory = on; }

  Expected<std::unique_ptr<Kernel>> load(const KernelImage &image) override;

  Expected<void *> allocate(size_t bytes) override {
    if (!bytes)
      return nullptr;
    if (void *pointer = state->memory.allocate(bytes))
      return pointer;
    return createStringError("cannot allocate " + Twine(bytes) + " bytes on " +
                             state->name);
  }

  Error release(void *pointer) override {
    if (!pointer || state->memory.release(pointer))
      return Error::success();
    return createStringError(
        "cannot release 0x" +
        Twine::utohexstr(reinterpret_cast<uintptr_t>(pointer)) + " on " +
        state->name + ": it is not the begin of an allocation");
  }

  Error copyIn(void *device, const void *host, size_t bytes) override {
    if (!bytes)
      return Error::success();
    Expected<Allocation> found = find(device, bytes);
    if (!found)
      return found.takeError();
    std::memcpy(device, host, bytes);
    state->memory.markWritten(*found, reinterpret_cast<uintptr_t>(device),
                              bytes);
    return Error::success();
  }

  Error copyOut(void *host, const void *device, size_t bytes) override {
    if (!bytes)
      return Error::success();
    Expected<Allocation> found = find(device, bytes);
    if (!found)
      return found.takeError();
    std::memcpy(host, device, bytes);
    return Error::success();
  }

  Error synchronize(Stream) override { return Error::success(); }

  Expected<size_t> firstUnwritten(const void *pointer, size_t bytes) override {
    Expected<Allocation> found = find(pointer, bytes);
    if (!found)
      return found.takeError();
    if (!found->written)
      return createStringError(state->name +
                               " does not check what was written");
    const uint8_t *written =
        found->written + (reinterpret_cast<uintptr_t>(pointer) - found->begin);
    return size_t(std::find(written, written + bytes, 0) - written);
  }

private:
  Expected<Allocation> find(const void *pointer, size_t bytes) {
    uint64_t address = reinterpret_cast<uintptr_t>(pointer);
    std::shared_ptr<const MemoryMap> map = state->memory.map();
    if (const Allocation *found = map->find(address, bytes))
      return *found;
    return createStringError(Twine(bytes) + " bytes at 0x" +
                             Twine::utohexstr(address) +
                             " are not in an allocation of " + state->name);
  }

  std::shared_ptr<State> state;
};

/// Bytes that the flattened parameter of this kind has.
unsigned sizeOf(ParamKind kind) {
  return kind == ParamKind::Pointer || kind == ParamKind::I64 ? 8 : 4;
}

/// Checks the kernel of a module against what the image says of it.
Error checkImage(const KernelImage &image, const KernelDecl &kernel) {
  auto mismatch = [&](const Twine &text) {
    return createStringError("kernel '" + image.name + "' " + text);
  };
  if (kernel.params.size() != image.params.size())
    return mismatch("has " + Twine(kernel.params.size()) +
                    " parameters in its PTX, and " +
                    Twine(image.params.size()) + " in its image");
  for (auto [i, param, kind] : enumerate(kernel.params, image.params))
    if (param.size != sizeOf(kind))
      return mismatch("has a parameter " + Twine(i) + " of " +
                      Twine(param.size) + " bytes in its PTX, and of " +
                      Twine(sizeOf(kind)) + " in its image");
  if (image.numThreads == 0 || image.numThreads > 1024)
    return mismatch("has blocks of " + Twine(image.numThreads) +
                    " threads: expected 1 to 1024");
  const uint32_t *required = kernel.reqntid;
  if (required[0] &&
      (required[0] != image.numThreads || required[1] != 1 || required[2] != 1))
    return mismatch("has blocks of " + Twine(image.numThreads) +
                    " threads, and .reqntid " + Twine(required[0]) + ", " +
                    Twine(required[1]) + ", " + Twine(required[2]));
  if (kernel.maxntid && image.numThreads > kernel.maxntid)
    return mismatch("has blocks of " + Twine(image.numThreads) +
                    " threads, and .maxntid " + Twine(kernel.maxntid));
  return Error::success();
}

} // namespace

/// Variables of the module get memory of their own.
Expected<std::unique_ptr<Kernel>> Simulator::load(const KernelImage &image) {
  if (!cudaTargetRunsOn(image.target, *cudaCapability(target())))
    return createStringError("kernel '" + image.name + "' is for '" +
                             image.target + "': " + state->name + " runs '" +
                             target() + "'");
  auto fail = [&](Error error) {
    return createStringError("kernel '" + image.name + "' for " + image.target +
                             ": " + toString(std::move(error)));
  };
  Expected<Module> module = parseModule(image.code);
  if (!module)
    return fail(module.takeError());
  const KernelDecl *kernel = nullptr;
  for (const KernelDecl &candidate : module->kernels)
    if (candidate.name == image.name)
      kernel = &candidate;
  if (!kernel)
    return createStringError("no kernel '" + image.name + "' in its PTX");
  if (Error error = checkImage(image, *kernel))
    return error;

  Variables variables(state);
  Expected<std::vector<uint64_t>> addresses = variables.place(*module);
  if (!addresses)
    return fail(addresses.takeError());
  Expected<Program> program =
      decodeKernel(*module, unsigned(kernel - module->kernels.data()),
                   *addresses, laneTable());
  if (!program)
    return fail(program.takeError());
  uint32_t declared = program->sharedBytes;
  auto simulated = std::make_unique<Simulated>(state, std::move(*program),
                                               std::move(variables), image);
  // What is not declared is for `.extern .shared` arrays.
  if (image.sharedBytes > declared)
    simulated->setDynamicShared(image.sharedBytes - declared);
  return simulated;
}

Expected<std::unique_ptr<SimDevice>>
SimDevice::make(StringRef target, const SimOptions &options) {
  if (!cudaCapability(target))
    return createStringError("cannot simulate '" + target +
                             "': expected sm_80, sm_86, sm_89, sm_90a, "
                             "sm_100a, sm_103a, sm_120a or sm_121a, the last "
                             "four with or without :ptx91");
  return std::make_unique<Simulator>(
      std::make_shared<State>(("sim:" + target).str(), target.str(), options));
}

} // namespace dither::runtime
