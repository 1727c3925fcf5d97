#include "dither/Runtime/CpuDevice.h"
#include "dither/Runtime/Device.h"

#include <mutex>

using namespace llvm;

namespace dither::runtime {

Kernel::~Kernel() = default;
Device::~Device() = default;

/// The CPU, or why there is none. Never destroyed, as its kernels may be.
static Expected<Device *> getCpu() {
  static std::mutex mutex;
  static Device *device = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (!device) {
    Expected<std::unique_ptr<Device>> made = makeCpuDevice();
    if (!made)
      return made.takeError();
    device = made->release();
  }
  return device;
}

Expected<Device *> getDevice(StringRef name) {
  if (name == "cpu")
    return getCpu();
  return createStringError("unknown device '" + name + "': expected cpu");
}

DeviceList listDevices() {
  DeviceList list;
  if (Expected<Device *> cpu = getCpu())
    list.devices.push_back(*cpu);
  else
    consumeError(cpu.takeError());
  return list;
}

} // namespace dither::runtime
