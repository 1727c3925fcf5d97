//===- FakeDriver.h - A CUDA driver for tests ------------------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_RUNTIME_FAKEDRIVER_H
#define DITHER_TEST_UNIT_RUNTIME_FAKEDRIVER_H

#include "TestSupport.h"
#include "dither/Runtime/CudaDevice.h"

#include "../../../runtime/FakeCuda/FakeCuda.h"

#include <dlfcn.h>
#include <memory>
#include <vector>

namespace dither::test {

/// Functions of the fake library, which dlopen has loaded.
template <typename F> F *fakeFunction(const char *name) {
  void *library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  void *function = library ? dlsym(library, name) : nullptr;
  EXPECT_NE(function, nullptr) << FAKE_CUDA << ": " << name;
  return reinterpret_cast<F *>(function);
}

/// A fresh fake driver for each test; leaves nothing behind.
class FakeDriverTest : public testing::Test {
protected:
  void SetUp() override { fakeFunction<FakeCudaReset>("fakeCudaReset")(); }
  void TearDown() override {
    EXPECT_EQ(leaks(), "");
    while (!environment.empty()) // newest first, as each restores what it found
      environment.pop_back();
    fakeFunction<FakeCudaReset>("fakeCudaReset")();
  }

  /// Sets a variable until the test ends; what is known so far is forgotten.
  void configure(const char *name, const std::string &value) {
    environment.push_back(std::make_unique<ScopedEnv>(name, value));
    fakeFunction<FakeCudaReset>("fakeCudaReset")();
  }

  static std::shared_ptr<const runtime::cuda::Driver> driver() {
    return must(runtime::openCudaDriver(FAKE_CUDA));
  }
  static std::unique_ptr<runtime::Device> device(unsigned ordinal = 0) {
    return must(runtime::makeCudaDevice(driver(), ordinal));
  }

  static std::string launches() {
    return fakeFunction<FakeCudaLaunches>("fakeCudaLaunches")();
  }
  static std::string leaks() {
    return fakeFunction<FakeCudaLeaks>("fakeCudaLeaks")();
  }
  static unsigned calls(const char *name) {
    return fakeFunction<FakeCudaCalls>("fakeCudaCalls")(name);
  }
  static void *stream() {
    return fakeFunction<FakeCudaStream>("fakeCudaStream")();
  }

private:
  std::vector<std::unique_ptr<ScopedEnv>> environment;
};

/// PTX of one kernel with a pointer, an i64, an i32 and a float, and its image.
inline runtime::KernelImage ptxImage(const std::string &name = "scale",
                                     const std::string &target = "sm_90a") {
  using runtime::ParamKind;
  runtime::KernelImage image;
  image.name = name;
  image.target = target;
  image.numThreads = 128;
  image.sharedBytes = 512;
  image.params = {ParamKind::Pointer, ParamKind::I64, ParamKind::I32,
                  ParamKind::F32};
  image.code = "// made by hand\n.version 8.4\n.target " + target +
               ", debug\n.address_size 64\n.visible .entry " + name +
               "(\n  .param .u64 .ptr .global .align 16 " + name +
               "_param_0,\n  .param .s64 " + name +
               "_param_1, /* ) */\n  .param .s32 " + name +
               "_param_2,\n  .param .f32 " + name +
               "_param_3\n)\n.maxntid 128\n{\n  ret;\n}\n";
  return image;
}

} // namespace dither::test

#endif // DITHER_TEST_UNIT_RUNTIME_FAKEDRIVER_H
