//===- CudaDevice.h - NVIDIA GPUs through the CUDA driver ------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CUDADEVICE_H
#define DITHER_RUNTIME_CUDADEVICE_H

#include "dither/Runtime/Device.h"

#include <optional>

namespace dither::runtime {

namespace cuda {
class Driver;
} // namespace cuda

/// Opens the driver library `path` (a name is looked up as dlopen does) and
/// initializes it. Errors, each a reason why there is no GPU: `libcuda.so.1 was
/// not found`; a function the library lacks; `cuInit failed: ...`.
llvm::Expected<std::shared_ptr<const cuda::Driver>>
openCudaDriver(llvm::StringRef path);

/// Number of devices of the driver; it may be 0.
llvm::Expected<unsigned> numCudaDevices(const cuda::Driver &driver);

/// The device cuda:ORDINAL. Asks for its name and capability only: its primary
/// context, which costs memory, is retained when it is first needed, and
/// released with the device and the last of its kernels. Calls leave the
/// calling thread's current context as it was. Errors: no such ordinal; a
/// capability that no target fits.
llvm::Expected<std::unique_ptr<Device>>
makeCudaDevice(std::shared_ptr<const cuda::Driver> driver, unsigned ordinal);

/// What decides which code runs: a device's compute capability, and the newest
/// CUDA that its driver supports as cuDriverGetVersion has it, 13010 for 13.1.
struct CudaCapability {
  int major, minor, cuda;
};

/// The target to compile for: 8.0 gives sm_80, 9.0 gives sm_90a, 10.0 sm_100a,
/// and sm_100a:ptx91 from CUDA 13.1 on, which takes PTX 9.1. Empty where none
/// of our targets runs.
llvm::StringRef cudaTarget(CudaCapability device);

/// The inverse: a device that `target` is for, with the oldest driver that
/// takes its code. Nothing where it is none of our targets of a GPU.
std::optional<CudaCapability> cudaCapability(llvm::StringRef target);

/// Whether code for `target` runs there: sm_XYa on that capability alone,
/// sm_XYf on the later ones of its generation, sm_XY on later ones; with
/// ":ptx91" from CUDA 13.1 on.
bool cudaTargetRunsOn(llvm::StringRef target, CudaCapability device);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_CUDADEVICE_H
