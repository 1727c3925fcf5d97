#include "dither/Runtime/CpuDevice.h"
#include "Checks.h"
#include "FloatEnvironment.h"
#include "ObjectLinker.h"
#include "dither/Runtime/ThreadPool.h"
#include "dither/Support/EnvVars.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace dither::runtime {

//===----------------------------------------------------------------------===//
// What the machine is
//===----------------------------------------------------------------------===//

HostLevel detectHostLevel() {
  if (kLeastLevel == HostLevel::Neon)
    return HostLevel::Neon;
  StringMap<bool, MallocAllocator> features = sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<StringRef> names) {
    return all_of(names, [&](StringRef name) { return features.lookup(name); });
  };
  if (!has({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}))
    return HostLevel::Base;
  if (!has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    return HostLevel::Avx2;
  if (!has({"avx512vbmi", "avx512vbmi2", "gfni"}))
    return HostLevel::Avx512;
  return has({"avx512fp16"}) ? HostLevel::Avx512Fp16 : HostLevel::Avx512Vbmi;
}

StringRef hostTarget(HostLevel level) {
  switch (level) {
  case HostLevel::Avx512Fp16:
    return "host:avx512fp16";
  case HostLevel::Avx512Vbmi:
    return "host:avx512vbmi";
  case HostLevel::Avx512:
    return "host:avx512";
  case HostLevel::Avx2:
    return "host:avx2";
  case HostLevel::Neon:
    return "host:neon";
  case HostLevel::Base:
    break;
  }
  return "host:base";
}

/// Whether a CPU of level `has` runs code of level `needed`.
static bool runs(HostLevel has, HostLevel needed) {
  if (has == HostLevel::Neon || needed == HostLevel::Neon)
    return has == needed;
  return needed <= has;
}

/// "'host:avx2' and below": what a CPU of the level runs.
static std::string describeLevels(HostLevel level) {
  bool alone = level == HostLevel::Base || level == HostLevel::Neon;
  return "'" + hostTarget(level).str() + (alone ? "'" : "' and below");
}

/// The level that code for `target` needs, or nothing.
static std::optional<HostLevel> parseTarget(StringRef target) {
  for (HostLevel level :
       {HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512,
        HostLevel::Avx512Vbmi, HostLevel::Avx512Fp16, HostLevel::Neon})
    if (target == hostTarget(level))
      return level;
  if (target == "host") // as manifests had the least level before
    return kLeastLevel;
  return std::nullopt;
}

static std::string describeCpu() {
  if (auto info = MemoryBuffer::getFileAsStream("/proc/cpuinfo")) {
    for (StringRef rest = (*info)->getBuffer(); !rest.empty();) {
      auto [line, next] = rest.split('\n');
      auto [key, value] = line.split(':');
      if (key.trim() == "model name" && !value.trim().empty())
        return value.trim().str();
      rest = next;
    }
  }
  return sys::getHostCPUName().str();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

using KernelFunction = void (*)(const int64_t *slots, int64_t gridX,
                                int64_t gridY, int64_t gridZ, int64_t begin,
                                int64_t end);

double nanoseconds() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Memory that programs of this thread may use while they run; null where
/// there is none. Kept for the next launch.
void *threadScratch(size_t bytes) {
  struct Scratch {
    void *data = nullptr;
    size_t bytes = 0;
    ~Scratch() { std::free(data); }
  };
  static thread_local Scratch scratch;
  if (scratch.bytes < bytes) {
    std::free(scratch.data);
    scratch.data = nullptr;
    scratch.bytes = 0;
    if (posix_memalign(&scratch.data, 64, bytes))
      return scratch.data = nullptr;
    scratch.bytes = bytes;
  }
  return scratch.data;
}

class CpuKernel : public Kernel {
public:
  CpuKernel(const KernelImage &image, LinkedCode code)
      : Kernel(image), name(image.name), numParams(image.params.size()),
        scratchBytes(image.sharedBytes), code(code),
        function(reinterpret_cast<KernelFunction>(code.address)) {}
  ~CpuKernel() override { unlinkCode(code); }

  Error launch(ArrayRef<int64_t> slots, const Grid &grid,
               Stream stream) override {
    if (Error error = checkLaunch(name, numParams, tiles, slots, grid))
      return error;
    std::atomic<bool> lacksMemory{false};
    auto body = [&](int64_t begin, int64_t end) {
      FloatEnvironment environment;
      if (!scratchBytes) {
        function(slots.data(), grid.x, grid.y, grid.z, begin, end);
        return;
      }
      void *scratch = threadScratch(scratchBytes);
      if (!scratch) {
        lacksMemory = true;
        return;
      }
      SmallVector<int64_t, 32> own(slots);
      own.push_back(reinterpret_cast<intptr_t>(scratch));
      function(own.data(), grid.x, grid.y, grid.z, begin, end);
    };
    if (Error error = run(grid.x * grid.y * grid.z, body))
      return error;
    if (lacksMemory)
      return createStringError("kernel '" + name + "': cannot allocate " +
                               Twine(scratchBytes) +
                               " bytes for the tiles of a program");
    return Error::success();
  }

  bool isBrief(const Grid &grid) const override {
    double each = programNs.load(std::memory_order_relaxed);
    return each > 0 && each * double(grid.x) * grid.y * grid.z < briefNs;
  }

private:
  /// What a caller may hold a lock for: giving it back and taking it again
  /// costs more where others want it.
  static constexpr double briefNs = 10000;
  /// Waking threads costs about 10 us, so work below this stays on one.
  static constexpr double parallelNs = 30000;
  /// No chunk is meant to be quicker than this.
  static constexpr double chunkNs = 5000;

  /// All programs, on this thread or on several.
  Error run(int64_t total, function_ref<void(int64_t, int64_t)> body) {
    if (total <= 1) {
      if (total == 1)
        runOne(body);
      return Error::success();
    }
    Expected<unsigned> threads = numThreads();
    if (!threads)
      return threads.takeError();
    if (*threads == 1)
      body(0, total);
    else
      spread(total, *threads, body);
    return Error::success();
  }

  /// A single program, timed now and then.
  void runOne(function_ref<void(int64_t, int64_t)> body) {
    if (singles.fetch_add(1, std::memory_order_relaxed) % 16)
      return body(0, 1);
    double start = nanoseconds();
    body(0, 1);
    programNs.store(nanoseconds() - start, std::memory_order_relaxed);
  }

  /// Runs all programs: on this thread while little seems to be left, judged by
  /// earlier launches and by a clock, then on all. What a program costs depends
  /// on the sizes of its arguments, so the earlier launches are only a hint.
  void spread(int64_t total, unsigned threads,
              function_ref<void(int64_t, int64_t)> body) {
    double each = programNs.load(std::memory_order_relaxed);
    double start = nanoseconds();
    int64_t begin = 0;
    for (int64_t batch = 1; begin < total; batch *= 2) {
      int64_t left = total - begin;
      if (each * left > parallelNs)
        break;
      if (each > 0)
        batch = std::max<int64_t>(batch, chunkNs / each);
      int64_t end = begin + std::min(batch, left);
      body(begin, end);
      begin = end;
      each = (nanoseconds() - start) / begin;
    }
    if (begin < total) {
      int64_t left = total - begin;
      int64_t chunk = std::max<int64_t>((left - 1) / (4 * int64_t(threads)) + 1,
                                        chunkNs / std::max(each, 1e-3));
      // What programs take, without the time in which threads wake: work that
      // was once taken for long would stay on all threads for that.
      std::atomic<int64_t> taken{0};
      parallelFor(left, chunk, threads, [&](int64_t from, int64_t to) {
        double start = nanoseconds();
        body(begin + from, begin + to);
        taken.fetch_add(int64_t(nanoseconds() - start),
                        std::memory_order_relaxed);
      });
      each = double(taken.load(std::memory_order_relaxed)) / left;
    }
    programNs.store(each, std::memory_order_relaxed);
  }

  std::string name;
  size_t numParams;
  /// Bytes of memory that programs need besides their stack.
  size_t scratchBytes;
  LinkedCode code;
  KernelFunction function;
  /// Time of one program in the last launch; 0 before the first.
  std::atomic<double> programNs{0};
  /// Launches of one program so far.
  std::atomic<unsigned> singles{0};
};

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

class CpuDevice : public Device {
public:
  explicit CpuDevice(HostLevel level) : level(level), model(describeCpu()) {}

  bool isCpu() const override { return true; }
  StringRef name() const override { return "cpu"; }
  StringRef description() const override { return model; }
  StringRef target() const override { return hostTarget(level); }

  Expected<std::unique_ptr<Kernel>> load(const KernelImage &image) override {
    std::optional<HostLevel> needed = parseTarget(image.target);
    if (!needed || !runs(level, *needed))
      return createStringError("kernel '" + image.name + "' is for '" +
                               image.target + "': this device runs " +
                               describeLevels(level));
    Expected<LinkedCode> code = linkCode(image.code, image.name);
    if (!code)
      return createStringError("cannot load kernel '" + image.name +
                               "': " + toString(code.takeError()));
    return std::make_unique<CpuKernel>(image, *code);
  }

  Expected<void *> allocate(size_t bytes) override {
    void *pointer = nullptr;
    if (bytes && posix_memalign(&pointer, 256, bytes))
      return createStringError("cannot allocate " + std::to_string(bytes) +
                               " bytes on cpu");
    return pointer;
  }

  Error release(void *pointer) override {
    std::free(pointer);
    return Error::success();
  }

  Error copyIn(void *device, const void *host, size_t bytes) override {
    if (bytes)
      std::memmove(device, host, bytes);
    return Error::success();
  }

  Error copyOut(void *host, const void *device, size_t bytes) override {
    return copyIn(host, device, bytes);
  }

  Error synchronize(Stream stream) override { return Error::success(); }

private:
  HostLevel level;
  std::string model;
};

} // namespace

std::unique_ptr<Device> makeCpuDevice(HostLevel level) {
  return std::make_unique<CpuDevice>(level);
}

Expected<std::unique_ptr<Device>> makeCpuDevice() {
  Expected<std::string> asked = env::hostFeatures();
  if (!asked)
    return asked.takeError();
  HostLevel has = detectHostLevel();
  HostLevel level = StringSwitch<HostLevel>(*asked)
                        .Case("avx512fp16", HostLevel::Avx512Fp16)
                        .Case("avx512vbmi", HostLevel::Avx512Vbmi)
                        .Case("avx512", HostLevel::Avx512)
                        .Case("avx2", HostLevel::Avx2)
                        .Case("base", kLeastLevel)
                        .Default(has);
  if (!runs(has, level))
    return createStringError("DITHER_HOST_FEATURES is '" + *asked +
                             "': this machine runs " + describeLevels(has));
  return makeCpuDevice(level);
}

} // namespace dither::runtime
