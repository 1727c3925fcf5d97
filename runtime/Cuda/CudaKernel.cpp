#include "CudaKernel.h"
#include "Checks.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace dither::runtime::cuda {

namespace {

/// Programs along x, y and z that a CUDA grid may have.
constexpr int64_t maxGrid[3] = {2147483647, 65535, 65535};

/// The bytes of shared memory that a launch gives.
uint32_t dynamicShared(uint32_t sharedBytes) {
  return sharedBytes > kStaticSharedBytes ? sharedBytes : 0;
}

/// What to do about a launch that failed; empty where the message says it all.
StringRef remedy(CUresult result) {
  switch (result) {
  case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    return ": ask for fewer num_warps";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_FAILED:
    return ": a kernel before this one failed, which compute-sanitizer or a "
           "run on sim:TARGET finds";
  default:
    return "";
  }
}

class CudaKernel : public Kernel {
public:
  CudaKernel(std::shared_ptr<Context> context, const KernelImage &image,
             CUmodule module, CUfunction function)
      : Kernel(image), context(std::move(context)), name(image.name),
        numParams(image.params.size()), numThreads(image.numThreads),
        sharedBytes(image.sharedBytes), clusterSize(image.clusterSize),
        module(module), function(function) {}

  ~CudaKernel() override {
    // Fails only where the context is gone, and the module with it.
    consumeError(context->run([&] {
      return context->driver->check((*context->driver)->moduleUnload(module),
                                    "cuModuleUnload");
    }));
  }

  Error launch(ArrayRef<int64_t> slots, const Grid &programs,
               Stream stream) override {
    if (Error error = checkLaunch(name, numParams, tiles, slots, programs))
      return error;
    Grid grid = blocksOf(programs, clusterSize);
    if (!grid.x || !grid.y || !grid.z)
      return Error::success();
    if (grid.x > maxGrid[0] || grid.y > maxGrid[1] || grid.z > maxGrid[2])
      return createStringError(
          "grid of kernel '" + name + "' is " + gridText(grid) +
          ": a CUDA grid is at most 2147483647x65535x65535");
    // The driver reads as many low bytes of a slot as the parameter has.
    SmallVector<void *, 32> parameters;
    for (const int64_t &slot : slots)
      parameters.push_back(const_cast<int64_t *>(&slot));
    return context->run([&]() -> Error {
      CUresult result =
          (*context->driver)
              ->launchKernel(function, grid.x, grid.y, grid.z, numThreads, 1, 1,
                             dynamicShared(sharedBytes),
                             static_cast<CUstream>(stream), parameters.data(),
                             nullptr);
      if (result == CUDA_SUCCESS)
        return Error::success();
      return context->driver->check(
          result, "cuLaunchKernel",
          "kernel '" + name + "', grid " + gridText(grid) + ", block " +
              Twine(numThreads) + ", shared " + Twine(sharedBytes) + " bytes" +
              remedy(result));
    });
  }

private:
  std::shared_ptr<Context> context;
  std::string name;
  size_t numParams;
  uint32_t numThreads, sharedBytes, clusterSize;
  CUmodule module;
  CUfunction function;
};

} // namespace

/// cuModuleLoadDataEx, with the compiler's log in the error.
static Expected<CUmodule> loadModule(const Driver &driver,
                                     const KernelImage &image) {
  char log[8192] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
  CUmodule module = nullptr;
  CUresult result =
      driver->moduleLoadDataEx(&module, image.code.c_str(), 2, options, values);
  if (result == CUDA_SUCCESS)
    return module;
  std::string where = "kernel '" + image.name + "' for " + image.target;
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    where += ", the driver supports CUDA " + driver.version();
  if (StringRef said = StringRef(log).trim(); !said.empty())
    where += ": " + said.str();
  return driver.check(result, "cuModuleLoadDataEx", where);
}

/// The kernel in `module`, if it can run in blocks of the size it was made for.
static Expected<CUfunction> getFunction(const Driver &driver, CUmodule module,
                                        const KernelImage &image) {
  CUfunction function = nullptr;
  std::string where = "kernel '" + image.name + "'";
  if (Error error = driver.check(
          driver->moduleGetFunction(&function, module, image.name.c_str()),
          "cuModuleGetFunction", where))
    return error;
  int most = 0, registers = 0;
  if (Error error = driver.check(
          driver->funcGetAttribute(
              &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
          "cuFuncGetAttribute", where))
    return error;
  if (Error error =
          driver.check(driver->funcGetAttribute(
                           &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
                       "cuFuncGetAttribute", where))
    return error;
  if (image.numThreads == 0 || image.numThreads > unsigned(most))
    return createStringError(where + " has blocks of " +
                             Twine(image.numThreads) +
                             " threads: expected 1 to " + Twine(most) +
                             ", as it uses " + Twine(registers) + " registers");
  if (uint32_t bytes = dynamicShared(image.sharedBytes))
    if (Error error = driver.check(
            driver->funcSetAttribute(
                function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                int(bytes)),
            "cuFuncSetAttribute",
            where + " with " + Twine(bytes) + " bytes of shared memory"))
      return error;
  return function;
}

Expected<std::unique_ptr<Kernel>>
loadCudaKernel(std::shared_ptr<Context> context, const KernelImage &image) {
  std::unique_ptr<Kernel> kernel;
  const Driver &driver = *context->driver;
  Error error = context->run([&]() -> Error {
    Expected<CUmodule> module = loadModule(driver, image);
    if (!module)
      return module.takeError();
    Expected<CUfunction> function = getFunction(driver, *module, image);
    if (!function) {
      driver->moduleUnload(*module);
      return function.takeError();
    }
    kernel = std::make_unique<CudaKernel>(context, image, *module, *function);
    return Error::success();
  });
  if (error)
    return error;
  return kernel;
}

} // namespace dither::runtime::cuda
