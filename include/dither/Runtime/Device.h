//===- Device.h - One interface to the CPU, CUDA and the simulator -*- C++ -*-//

#ifndef DITHER_RUNTIME_DEVICE_H
#define DITHER_RUNTIME_DEVICE_H

#include "dither/Runtime/KernelImage.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <memory>

namespace dither::runtime {

/// Number of programs along x, y and z. A grid with a zero is valid: nothing
/// runs.
struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

/// x, y and z.
inline std::array<int64_t, 3> extentsOf(const Grid &grid) {
  return {grid.x, grid.y, grid.z};
}

/// A stream of the device's own kind (CUstream on CUDA, ignored on the CPU).
using Stream = void *;

class SimKernel;
class SimDevice;

/// A kernel loaded on a device. Launching is safe from many threads.
class Kernel {
public:
  explicit Kernel(const KernelImage &image) : tiles(image.tiles) {}
  virtual ~Kernel();
  /// Whether there is no better code for such a launch (WholeTiles).
  bool suits(llvm::ArrayRef<int64_t> slots, const Grid &grid) const {
    return tiles.suit(slots.data(), extentsOf(grid).data());
  }
  /// The kernel as one of a simulated device; null for those of others.
  virtual SimKernel *simulated() { return nullptr; }
  /// Starts the kernel: `slots` has one entry for each parameter of the image.
  /// Returns when the work is queued (CUDA) or done (CPU).
  virtual llvm::Error launch(llvm::ArrayRef<int64_t> slots, const Grid &grid,
                             Stream stream) = 0;
  /// Whether a launch is known to take microseconds, by earlier ones, and to
  /// wait for nothing: the caller may hold a lock over it.
  virtual bool isBrief(const Grid &grid) const { return false; }

protected:
  const WholeTiles tiles;
};

class Device {
public:
  virtual ~Device();
  /// The device as a simulated one; null for others.
  virtual SimDevice *simulated() { return nullptr; }
  /// Whether it runs machine code of this machine's CPU; others take PTX.
  virtual bool isCpu() const { return false; }
  /// "cpu", "cuda:0", "sim:sm_90a".
  virtual llvm::StringRef name() const = 0;
  /// What people call it: "NVIDIA H200", the CPU's model.
  virtual llvm::StringRef description() const = 0;
  /// The target to compile for: "host:avx512", "sm_90a".
  virtual llvm::StringRef target() const = 0;
  /// Loads an image; the image may be dropped afterwards.
  virtual llvm::Expected<std::unique_ptr<Kernel>>
  load(const KernelImage &image) = 0;
  /// Memory of the device, aligned to 256 bytes. Zero bytes give a null
  /// pointer.
  virtual llvm::Expected<void *> allocate(size_t bytes) = 0;
  virtual llvm::Error release(void *pointer) = 0;
  /// Copies between the host and the device, done when they return.
  virtual llvm::Error copyIn(void *device, const void *host, size_t bytes) = 0;
  virtual llvm::Error copyOut(void *host, const void *device, size_t bytes) = 0;
  /// Waits for everything queued on `stream`.
  virtual llvm::Error synchronize(Stream stream) = 0;
};

/// The device of that name ("cpu", "cuda:N", "cuda" for the first, or
/// "sim:TARGET" for the simulator of a GPU), made on first use and kept for the
/// life of the process. Errors say what was found: no libcuda.so.1, no such
/// ordinal or target.
llvm::Expected<Device *> getDevice(llvm::StringRef name);

/// The device that DITHER_DEVICE names, else cuda:0, else cpu. Errors: those of
/// a device that was named; a GPU that cannot be used is passed over otherwise.
llvm::Expected<Device *> defaultDevice();

/// Every device found, the CPU first; `whyNoGpu` says why there is no CUDA
/// device.
struct DeviceList {
  std::vector<Device *> devices;
  std::string whyNoGpu;
};
DeviceList listDevices();

} // namespace dither::runtime

#endif // DITHER_RUNTIME_DEVICE_H
