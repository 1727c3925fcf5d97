#include "dither/Runtime/CudaDevice.h"
#include "CudaKernel.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace dither::runtime::cuda;

namespace dither::runtime {

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

namespace {
struct KnownTarget {
  CudaCapability least; // and no other capability
  StringLiteral target;
};
} // namespace

/// CUDA 13.1 brought PTX 9.1 (PTX ISA, release notes).
static constexpr int kPtx91 = 13010;

/// Targets for each capability, the newer first. 8.7 runs the code of 8.6,
/// which is the newest before it; code for 8.9 is too new for it.
static constexpr KnownTarget knownTargets[] = {
    {{8, 0, 0}, "sm_80"},    {{8, 6, 0}, "sm_86"},
    {{8, 7, 0}, "sm_86"},    {{8, 9, 0}, "sm_89"},
    {{9, 0, 0}, "sm_90a"},   {{10, 0, kPtx91}, "sm_100a:ptx91"},
    {{10, 0, 0}, "sm_100a"}, {{10, 3, kPtx91}, "sm_103a:ptx91"},
    {{10, 3, 0}, "sm_103a"}, {{12, 0, kPtx91}, "sm_120a:ptx91"},
    {{12, 0, 0}, "sm_120a"}, {{12, 1, kPtx91}, "sm_121a:ptx91"},
    {{12, 1, 0}, "sm_121a"},
};

StringRef cudaTarget(CudaCapability device) {
  for (const KnownTarget &known : knownTargets)
    if (known.least.major == device.major &&
        known.least.minor == device.minor && known.least.cuda <= device.cuda)
      return known.target;
  return "";
}

std::optional<CudaCapability> cudaCapability(StringRef target) {
  for (const KnownTarget &known : knownTargets)
    if (known.target == target)
      return known.least;
  return std::nullopt;
}

bool cudaTargetRunsOn(StringRef target, CudaCapability device) {
  if (target.consume_back(":ptx91") && device.cuda < kPtx91)
    return false;
  if (!target.consume_front("sm_"))
    return false;
  bool exact = target.consume_back("a");
  bool family = !exact && target.consume_back("f");
  int number = 0;
  if (!all_of(target, isDigit) || target.getAsInteger(10, number))
    return false;
  int own = 10 * device.major + device.minor;
  if (exact)
    return number == own;
  return number <= own && (!family || number / 10 == device.major);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

namespace {

CUdeviceptr address(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

class CudaDevice : public Device {
public:
  CudaDevice(std::shared_ptr<Context> context, std::string model,
             CudaCapability capability)
      : context(std::move(context)), model(std::move(model)),
        capability(capability) {}

  StringRef name() const override { return context->name; }
  StringRef description() const override { return model; }
  StringRef target() const override { return cudaTarget(capability); }

  Expected<std::unique_ptr<Kernel>> load(const KernelImage &image) override {
    if (!cudaTargetRunsOn(image.target, capability))
      return createStringError("kernel '" + image.name + "' is for '" +
                               image.target + "': " + context->name +
                               " runs '" + target() + "'");
    return loadCudaKernel(context, image);
  }

  Expected<void *> allocate(size_t bytes) override {
    CUdeviceptr pointer = 0; // of 256 bytes alignment, by CUDA's promise
    if (bytes)
      if (Error error = call("cuMemAlloc", bytes, [&](const Driver &driver) {
            return driver->memAlloc(&pointer, bytes);
          }))
        return error;
    return reinterpret_cast<void *>(pointer);
  }

  Error release(void *pointer) override {
    if (!pointer)
      return Error::success();
    return context->run([&] {
      return check((*context->driver)->memFree(address(pointer)), "cuMemFree",
                   "pointer 0x" + Twine::utohexstr(address(pointer)));
    });
  }

  Error copyIn(void *device, const void *host, size_t bytes) override {
    if (!bytes)
      return Error::success();
    if (Error error = call("cuMemcpyHtoD", bytes, [&](const Driver &driver) {
          return driver->memcpyHtoD(address(device), host, bytes);
        }))
      return error;
    // From pageable memory the call returns once the data is staged.
    return synchronize(nullptr);
  }

  Error copyOut(void *host, const void *device, size_t bytes) override {
    if (!bytes)
      return Error::success();
    return call("cuMemcpyDtoH", bytes, [&](const Driver &driver) {
      return driver->memcpyDtoH(host, address(device), bytes);
    });
  }

  Error synchronize(Stream stream) override {
    return context->run([&] {
      return check(
          (*context->driver)->streamSynchronize(static_cast<CUstream>(stream)),
          "cuStreamSynchronize", "");
    });
  }

private:
  Error check(CUresult result, StringRef call, const Twine &what) {
    if (result == CUDA_SUCCESS)
      return Error::success();
    std::string text = what.str();
    return context->driver->check(
        result, call, text + (text.empty() ? "on " : " on ") + context->name);
  }

  /// A call in the context, about a number of bytes.
  Error call(StringRef name, size_t bytes,
             function_ref<CUresult(const Driver &)> body) {
    return context->run([&] {
      return check(body(*context->driver), name, Twine(bytes) + " bytes");
    });
  }

  std::shared_ptr<Context> context;
  std::string model;
  CudaCapability capability;
};

} // namespace

Expected<std::shared_ptr<const Driver>> openCudaDriver(StringRef path) {
  return Driver::open(path);
}

Expected<unsigned> numCudaDevices(const Driver &driver) {
  int count = 0;
  if (Error error =
          driver.check(driver->deviceGetCount(&count), "cuDeviceGetCount"))
    return error;
  return unsigned(count);
}

Expected<std::unique_ptr<Device>>
makeCudaDevice(std::shared_ptr<const Driver> driver, unsigned ordinal) {
  std::string name = "cuda:" + utostr(ordinal);
  Expected<unsigned> count = numCudaDevices(*driver);
  if (!count)
    return count.takeError();
  if (ordinal >= *count)
    return createStringError("no device " + name + ": found " + Twine(*count) +
                             (*count == 1 ? " GPU" : " GPUs"));
  CUdevice device = 0;
  if (Error error = driver->check((*driver)->deviceGet(&device, ordinal),
                                  "cuDeviceGet", name))
    return error;
  char model[256] = {};
  if (Error error = driver->check(
          (*driver)->deviceGetName(model, sizeof model - 1, device),
          "cuDeviceGetName", name))
    return error;
  CudaCapability capability = {0, 0, driver->versionNumber()};
  int *parts[] = {&capability.major, &capability.minor};
  for (int part : {0, 1})
    if (Error error = driver->check(
            (*driver)->deviceGetAttribute(
                parts[part],
                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR + part, device),
            "cuDeviceGetAttribute", name))
      return error;
  if (cudaTarget(capability).empty()) {
    std::string expected;
    for (const auto &[known, target] : knownTargets)
      if (!known.cuda)
        expected += (expected.empty() ? "" : ", ") + itostr(known.major) + "." +
                    itostr(known.minor);
    return createStringError(name + " (" + model + ") has compute capability " +
                             Twine(capability.major) + "." +
                             Twine(capability.minor) + ": expected one of " +
                             expected);
  }
  return std::make_unique<CudaDevice>(
      std::make_shared<Context>(std::move(driver), device, name), model,
      capability);
}

} // namespace dither::runtime
