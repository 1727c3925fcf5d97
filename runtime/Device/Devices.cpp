#include "dither/Runtime/CpuDevice.h"
#include "dither/Runtime/CudaDevice.h"
#include "dither/Runtime/Device.h"
#include "dither/Runtime/SimDevice.h"
#include "dither/Support/EnvVars.h"

#include "llvm/ADT/StringMap.h"

#include <mutex>

using namespace llvm;

namespace dither::runtime {

Kernel::~Kernel() = default;
Device::~Device() = default;

namespace {

/// The devices made so far. Never destroyed, as kernels may be in static
/// objects; what could not be made is tried again when it is next asked for.
struct Registry {
  std::mutex mutex;
  std::unique_ptr<Device> cpu;
  std::shared_ptr<const cuda::Driver> driver;
  std::vector<std::unique_ptr<Device>> gpus;
  StringMap<std::unique_ptr<Device>> simulators; ///< by target

  static Registry &get() {
    static Registry *registry = new Registry;
    return *registry;
  }

  Expected<Device *> getCpu() {
    if (!cpu) {
      Expected<std::unique_ptr<Device>> made = makeCpuDevice();
      if (!made)
        return made.takeError();
      cpu = std::move(*made);
    }
    return cpu.get();
  }

  /// Number of GPUs, or why there are none.
  Expected<unsigned> countGpus() {
    if (!driver) {
      Expected<std::string> path = env::libCuda();
      if (!path)
        return path.takeError();
      auto opened = openCudaDriver(*path);
      if (!opened)
        return createStringError("no GPU: " + toString(opened.takeError()));
      driver = std::move(*opened);
    }
    Expected<unsigned> count = numCudaDevices(*driver);
    if (count && *count == 0)
      return createStringError("no GPU: cuDeviceGetCount found none");
    return count;
  }

  Expected<Device *> getGpu(unsigned ordinal) {
    Expected<unsigned> count = countGpus();
    if (!count)
      return count.takeError();
    if (ordinal >= gpus.size())
      gpus.resize(std::max(*count, 1u));
    if (ordinal >= gpus.size() || !gpus[ordinal]) {
      Expected<std::unique_ptr<Device>> made = makeCudaDevice(driver, ordinal);
      if (!made)
        return made.takeError();
      gpus[ordinal] = std::move(*made);
    }
    return gpus[ordinal].get();
  }

  Expected<Device *> getSimulator(StringRef target) {
#ifdef DITHER_HAS_SIM
    std::unique_ptr<Device> &device = simulators[target];
    if (!device) {
      Expected<SimOptions> options = simOptions();
      if (!options)
        return options.takeError();
      auto made = SimDevice::make(target, *options);
      if (!made)
        return made.takeError();
      device = std::move(*made);
    }
    return device.get();
#else
    return createStringError("no device sim:" + target +
                             ": this build has no simulator");
#endif
  }
};

} // namespace

Expected<Device *> getDevice(StringRef name) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  if (name == "cpu")
    return registry.getCpu();
  if (StringRef target = name; target.consume_front("sim:"))
    return registry.getSimulator(target);
  StringRef ordinal = name;
  unsigned number = 0;
  if (name == "cuda" ||
      (ordinal.consume_front("cuda:") && !ordinal.getAsInteger(10, number)))
    return registry.getGpu(number);
  return createStringError("unknown device '" + name +
                           "': expected cpu, cuda, cuda:N or sim:TARGET");
}

Expected<Device *> defaultDevice() {
  Expected<std::string> name = env::device();
  if (!name)
    return name.takeError();
  if (!name->empty())
    return getDevice(*name);
  if (Expected<Device *> gpu = getDevice("cuda"))
    return *gpu;
  else
    consumeError(gpu.takeError());
  return getDevice("cpu");
}

DeviceList listDevices() {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  DeviceList list;
  if (Expected<Device *> cpu = registry.getCpu())
    list.devices.push_back(*cpu);
  else
    consumeError(cpu.takeError()); // getDevice("cpu") says it
  Expected<unsigned> count = registry.countGpus();
  if (!count) {
    list.whyNoGpu = toString(count.takeError());
    return list;
  }
  bool found = false;
  for (unsigned i = 0; i < *count; ++i) {
    if (Expected<Device *> gpu = registry.getGpu(i)) {
      list.devices.push_back(*gpu);
      found = true;
    } else {
      std::string why = toString(gpu.takeError());
      list.whyNoGpu += (list.whyNoGpu.empty() ? "no GPU: " : "; ") + why;
    }
  }
  if (found)
    list.whyNoGpu.clear();
  return list;
}

} // namespace dither::runtime
