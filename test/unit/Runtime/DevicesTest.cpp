#include "FakeDriver.h"
#include "dither/Runtime/Device.h"

#include <functional>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

/// What `body` prints in a process of its own: devices are kept for the life of
/// a process, so each case needs a fresh one.
#define EXPECT_PRINTS(BODY, TEXT)                                              \
  EXPECT_EXIT(                                                                 \
      {                                                                        \
        BODY;                                                                  \
        std::_Exit(0);                                                         \
      },                                                                       \
      testing::ExitedWithCode(0), TEXT)

void print(const std::string &text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

std::string nameOf(Expected<Device *> device) {
  return device ? (*device)->name().str() : toString(device.takeError());
}

void list() {
  DeviceList list = listDevices();
  for (Device *device : list.devices)
    print(device->name().str());
  print("why: " + list.whyNoGpu);
}

class DevicesTest : public testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(DevicesTest, CpuByName) {
  Device *cpu = must(getDevice("cpu"));
  EXPECT_EQ(cpu->name(), "cpu");
  EXPECT_EQ(must(getDevice("cpu")), cpu);
  EXPECT_EQ(listDevices().devices.front(), cpu);
}

TEST_F(DevicesTest, UnknownNames) {
  for (const char *name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0"})
    EXPECT_EQ(message(getDevice(name)),
              std::string("unknown device '") + name +
                  "': expected cpu, cuda, cuda:N or sim:TARGET");
}

TEST_F(DevicesTest, WithoutADriver) {
  ScopedEnv set("DITHER_LIBCUDA", "/nowhere/libcuda.so.1");
  EXPECT_PRINTS(list(), "^cpu\nwhy: no GPU: /nowhere/libcuda.so.1 was not "
                        "found\n$");
  EXPECT_PRINTS(print(nameOf(getDevice("cuda:0"))),
                "^no GPU: /nowhere/libcuda.so.1 was not found\n$");
  EXPECT_PRINTS(print(nameOf(defaultDevice())), "^cpu\n$");
}

TEST_F(DevicesTest, WithoutAGpu) {
  ScopedEnv set("DITHER_LIBCUDA", FAKE_CUDA), none("FAKE_CUDA_DEVICES", "0");
  EXPECT_PRINTS(list(), "^cpu\nwhy: no GPU: cuInit failed: "
                        "CUDA_ERROR_NO_DEVICE \\(100\\)\n$");
}

TEST_F(DevicesTest, WithGpus) {
  ScopedEnv set("DITHER_LIBCUDA", FAKE_CUDA), two("FAKE_CUDA_DEVICES", "2");
  EXPECT_PRINTS(list(), "^cpu\ncuda:0\ncuda:1\nwhy: \n$");
  EXPECT_PRINTS(
      {
        print(nameOf(defaultDevice()));
        print(nameOf(getDevice("cuda")));
        print(nameOf(getDevice("cuda:1")));
        print(nameOf(getDevice("cuda:2")));
        print(getDevice("cuda:1").get() == getDevice("cuda:1").get() ? "same"
                                                                     : "other");
      },
      "^cuda:0\ncuda:0\ncuda:1\nno device cuda:2: found 2 GPUs\nsame\n$");
}

TEST_F(DevicesTest, WithAGpuThatIsTooNew) {
  ScopedEnv set("DITHER_LIBCUDA", FAKE_CUDA),
      newer("FAKE_CUDA_CAPABILITY", "13.0");
  EXPECT_PRINTS(list(), "^cpu\nwhy: no GPU: cuda:0 \\(Fake GPU\\) has compute "
                        "capability 13.0: expected one of 8.0, .*\n$");
  EXPECT_PRINTS(print(nameOf(defaultDevice())), "^cpu\n$");
}

TEST_F(DevicesTest, DefaultFromTheEnvironment) {
  ScopedEnv set("DITHER_LIBCUDA", FAKE_CUDA);
  {
    ScopedEnv cpu("DITHER_DEVICE", "cpu");
    EXPECT_EQ(nameOf(defaultDevice()), "cpu");
  }
  ScopedEnv wrong("DITHER_DEVICE", "tpu");
  EXPECT_EQ(nameOf(defaultDevice()),
            "unknown device 'tpu': expected cpu, cuda, cuda:N or sim:TARGET");
}

} // namespace
