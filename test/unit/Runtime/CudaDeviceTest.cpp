#include "FakeDriver.h"

#include <cstring>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

class CudaDeviceTest : public FakeDriverTest {};

constexpr int64_t noSlots[4] = {};

TEST(CudaTargets, OfEachCapability) {
  const std::tuple<int, int, const char *> expected[] = {
      {8, 0, "sm_80"},    {8, 6, "sm_86"},    {8, 7, "sm_86"},
      {8, 9, "sm_89"},    {9, 0, "sm_90a"},   {10, 0, "sm_100a"},
      {10, 3, "sm_103a"}, {12, 0, "sm_120a"}, {12, 1, "sm_121a"},
      {7, 5, ""},         {9, 1, ""},         {13, 0, ""}};
  for (auto [major, minor, target] : expected) {
    CudaCapability device = {major, minor, 13000};
    EXPECT_EQ(cudaTarget(device), target) << major << "." << minor;
    EXPECT_EQ(cudaTargetRunsOn(target, device), *target != 0);
    // PTX 9.1 has more for the last four.
    CudaCapability newer = {major, minor, 13010};
    EXPECT_EQ(cudaTarget(newer),
              std::string(target) + (major >= 10 && *target ? ":ptx91" : ""));
    EXPECT_EQ(cudaTargetRunsOn(target, newer), *target != 0);
  }
}

TEST(CudaTargets, NeedADriver) {
  EXPECT_FALSE(cudaTargetRunsOn("sm_100a:ptx91", {10, 0, 13000}));
  EXPECT_TRUE(cudaTargetRunsOn("sm_100a:ptx91", {10, 0, 13020}));
  EXPECT_FALSE(cudaTargetRunsOn("sm_100a:ptx91", {10, 3, 13020}));
  EXPECT_EQ(cudaTarget({10, 0, 0}), "sm_100a"); // which cannot tell
}

TEST(CudaTargets, RunOnLaterDevices) {
  EXPECT_TRUE(cudaTargetRunsOn("sm_80", {9, 0, 0}));
  EXPECT_TRUE(cudaTargetRunsOn("sm_90", {12, 1, 0}));
  EXPECT_FALSE(cudaTargetRunsOn("sm_89", {8, 7, 0}));
  EXPECT_TRUE(cudaTargetRunsOn("sm_90a", {9, 0, 0}));
  EXPECT_FALSE(cudaTargetRunsOn("sm_90a", {10, 0, 0}));
  EXPECT_TRUE(cudaTargetRunsOn("sm_100f", {10, 3, 0}));
  EXPECT_FALSE(cudaTargetRunsOn("sm_100f", {12, 0, 0}));
  EXPECT_FALSE(cudaTargetRunsOn("sm_103f", {10, 0, 0}));
  for (const char *bad : {"", "sm_", "host", "host:avx512", "sm_9x", "sm_-1"})
    EXPECT_FALSE(cudaTargetRunsOn(bad, {9, 0, 0})) << bad;
}

TEST_F(CudaDeviceTest, DescribesItself) {
  configure("FAKE_CUDA_NAME", "NVIDIA H200");
  configure("FAKE_CUDA_DEVICES", "2");
  auto gpu = device(1);
  EXPECT_EQ(gpu->name(), "cuda:1");
  EXPECT_EQ(gpu->description(), "NVIDIA H200");
  EXPECT_EQ(gpu->target(), "sm_90a");
  // Looking costs no context.
  EXPECT_EQ(leaks(), "");
}

TEST_F(CudaDeviceTest, NewerAndOlderDevicesAreNamed) {
  configure("FAKE_CUDA_NAME", "NVIDIA Rubin");
  configure("FAKE_CUDA_CAPABILITY", "10.7");
  EXPECT_EQ(message(makeCudaDevice(driver(), 0)),
            "cuda:0 (NVIDIA Rubin) has compute capability 10.7: expected one "
            "of 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 12.0, 12.1");
}

TEST_F(CudaDeviceTest, AbsenceHasAReason) {
  EXPECT_EQ(message(openCudaDriver("libcuda-that-is-not-there.so.1")),
            "libcuda-that-is-not-there.so.1 was not found");
  EXPECT_EQ(message(openCudaDriver("/nowhere/libcuda.so.1")),
            "/nowhere/libcuda.so.1 was not found");
  std::string text = message(openCudaDriver("/proc/self/status"));
  EXPECT_EQ(text.find("/proc/self/status cannot be loaded: "), 0u) << text;
  // A library that is none of CUDA's.
  EXPECT_EQ(message(openCudaDriver("libdl.so.2")),
            "libdl.so.2 has no cuGetErrorName: expected a newer driver");
  configure("FAKE_CUDA_DEVICES", "0");
  EXPECT_EQ(message(openCudaDriver(FAKE_CUDA)),
            "cuInit failed: CUDA_ERROR_NO_DEVICE (100)");
}

TEST_F(CudaDeviceTest, NoSuchOrdinal) {
  EXPECT_EQ(message(makeCudaDevice(driver(), 3)),
            "no device cuda:3: found 1 GPU");
  configure("FAKE_CUDA_DEVICES", "2");
  EXPECT_EQ(message(makeCudaDevice(driver(), 2)),
            "no device cuda:2: found 2 GPUs");
}

TEST_F(CudaDeviceTest, LaunchesWithParameters) {
  auto gpu = device();
  auto kernel = must(gpu->load(ptxImage()));
  float f = 0.375f;
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  // High halves of narrow slots mean nothing.
  int64_t slots[4] = {0x7f0000001000, -(int64_t(1) << 40),
                      int64_t(0xdeadbeef00000000 | uint32_t(-7)),
                      int64_t(0xffffffff00000000 | bits)};
  must(kernel->launch(slots, {4, 2, 1}, nullptr));
  must(kernel->launch(slots, {1, 1, 3}, stream()));
  must(gpu->synchronize(stream()));
  const std::string params = "params=0x7f0000001000,-1099511627776,-7,0.375\n";
  EXPECT_EQ(launches(),
            "scale grid=4x2x1 block=128x1x1 shared=0 stream=0 " + params +
                "scale grid=1x1x3 block=128x1x1 shared=0 stream=1 " + params);
}

/// Programs that are clusters have more blocks, along x.
TEST_F(CudaDeviceTest, LaunchesClusters) {
  auto gpu = device();
  KernelImage image = ptxImage();
  image.clusterSize = 4;
  auto kernel = must(gpu->load(image));
  int64_t slots[4] = {0, 0, 0, 0};
  must(kernel->launch(slots, {3, 2, 1}, nullptr));
  must(gpu->synchronize(nullptr));
  EXPECT_NE(launches().find("scale grid=12x2x1 block=128x1x1"),
            std::string::npos)
      << launches();
}

TEST_F(CudaDeviceTest, EmptyGridsLaunchNothing) {
  auto gpu = device();
  auto kernel = must(gpu->load(ptxImage()));
  for (Grid grid : {Grid{0, 1, 1}, Grid{4, 0, 1}, Grid{4, 1, 0}})
    must(kernel->launch(noSlots, grid, nullptr));
  EXPECT_EQ(calls("cuLaunchKernel"), 0u);
}

TEST_F(CudaDeviceTest, LaunchErrors) {
  auto gpu = device();
  auto kernel = must(gpu->load(ptxImage()));
  EXPECT_EQ(message(kernel->launch({1}, {}, nullptr)),
            "kernel 'scale' takes 4 slots, found 1");
  EXPECT_EQ(message(kernel->launch(noSlots, {1, 65536, 1}, nullptr)),
            "grid of kernel 'scale' is 1x65536x1: a CUDA grid is at most "
            "2147483647x65535x65535");
  int notAStream;
  EXPECT_EQ(message(kernel->launch(noSlots, {4, 1, 1}, &notAStream)),
            "cuLaunchKernel failed: CUDA_ERROR_INVALID_HANDLE (400): kernel "
            "'scale', grid 4x1x1, block 128, shared 512 bytes");
  EXPECT_EQ(launches(), "");
}

/// Every call that may fail, the first time it is made in a use of the device.
TEST_F(CudaDeviceTest, EveryFailureIsDescribed) {
  auto use = []() -> Error {
    Expected<std::shared_ptr<const cuda::Driver>> driver =
        openCudaDriver(FAKE_CUDA);
    if (!driver)
      return driver.takeError();
    auto gpu = makeCudaDevice(*driver, 0);
    if (!gpu)
      return gpu.takeError();
    auto kernel = (*gpu)->load(ptxImage());
    if (!kernel)
      return kernel.takeError();
    if (Error error = (*kernel)->launch(noSlots, {4, 1, 1}, nullptr))
      return error;
    auto memory = (*gpu)->allocate(64);
    if (!memory)
      return memory.takeError();
    char bytes[64] = {};
    Error error = (*gpu)->copyIn(*memory, bytes, 64);
    if (!error)
      error = (*gpu)->copyOut(bytes, *memory, 64);
    return joinErrors(std::move(error), (*gpu)->release(*memory));
  };
  EXPECT_EQ(message(use()), "");
  const std::pair<const char *, const char *> failing[] = {
      {"cuInit", ""},
      {"cuDeviceGetCount", ""},
      {"cuDeviceGet", "cuda:0"},
      {"cuDeviceGetName", "cuda:0"},
      {"cuDeviceGetAttribute", "cuda:0"},
      {"cuDevicePrimaryCtxRetain", "on cuda:0"},
      {"cuCtxGetCurrent", "on cuda:0"},
      {"cuCtxPushCurrent", "on cuda:0"},
      {"cuModuleLoadDataEx", "kernel 'scale' for sm_90a"},
      {"cuModuleGetFunction", "kernel 'scale'"},
      {"cuFuncGetAttribute", "kernel 'scale'"},
      {"cuLaunchKernel",
       "kernel 'scale', grid 4x1x1, block 128, shared 512 bytes: a kernel "
       "before this one failed, which compute-sanitizer or a run on sim:TARGET "
       "finds"},
      {"cuMemAlloc", "64 bytes on cuda:0"},
      {"cuMemcpyHtoD", "64 bytes on cuda:0"},
      {"cuStreamSynchronize", "on cuda:0"},
      {"cuMemcpyDtoH", "64 bytes on cuda:0"}};
  for (auto [call, where] : failing) {
    configure("FAKE_CUDA_FAIL", std::string(call) + "#1=719");
    EXPECT_EQ(message(use()), std::string(call) +
                                  " failed: CUDA_ERROR_LAUNCH_FAILED (719)" +
                                  (*where ? ": " : "") + where);
    // What was made before the failure is gone again.
    EXPECT_EQ(leaks(), "") << call;
  }
  configure("FAKE_CUDA_FAIL", "cuLaunchKernel#1=701");
  EXPECT_EQ(message(use()),
            "cuLaunchKernel failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): "
            "kernel 'scale', grid 4x1x1, block 128, shared 512 bytes: ask for "
            "fewer num_warps");
  configure("FAKE_CUDA_FAIL", "cuMemAlloc#1=4242");
  EXPECT_EQ(message(use()),
            "cuMemAlloc failed: unknown error (4242): 64 bytes on cuda:0");
}

TEST_F(CudaDeviceTest, RejectedPtxComesWithItsLog) {
  auto gpu = device();
  KernelImage bad = ptxImage();
  bad.code = "this is no PTX";
  EXPECT_EQ(message(gpu->load(bad)),
            "cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218): kernel "
            "'scale' for sm_90a: ptxas fatal   : Missing .version or .target "
            "directive");
  bad = ptxImage();
  bad.name = "scales";
  EXPECT_EQ(message(gpu->load(bad)),
            "cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND (500): kernel "
            "'scales'");
  EXPECT_EQ(leaks(), "1 context"); // no module is left
}

TEST_F(CudaDeviceTest, OldDriversAreNamed) {
  configure("FAKE_CUDA_VERSION", "8.3");
  auto gpu = device();
  EXPECT_EQ(message(gpu->load(ptxImage())),
            "cuModuleLoadDataEx failed: CUDA_ERROR_UNSUPPORTED_PTX_VERSION "
            "(222): kernel 'scale' for sm_90a, the driver supports CUDA 12.3");
}

TEST_F(CudaDeviceTest, NewDriversTakeMorePtx) {
  configure("FAKE_CUDA_CAPABILITY", "10.0");
  EXPECT_EQ(device()->target(), "sm_100a");
  EXPECT_EQ(message(device()->load(ptxImage("scale", "sm_100a:ptx91"))),
            "kernel 'scale' is for 'sm_100a:ptx91': cuda:0 runs 'sm_100a'");
  configure("FAKE_CUDA_VERSION", "9.1");
  EXPECT_EQ(device()->target(), "sm_100a:ptx91");
  for (const char *target : {"sm_100a", "sm_100a:ptx91"})
    EXPECT_EQ(device()->load(ptxImage("scale", target)) ? "" : target, "");
}

TEST_F(CudaDeviceTest, LoadChecksTargetAndThreads) {
  configure("FAKE_CUDA_THREADS", "256");
  auto gpu = device();
  EXPECT_EQ(message(gpu->load(ptxImage("scale", "sm_100a"))),
            "kernel 'scale' is for 'sm_100a': cuda:0 runs 'sm_90a'");
  EXPECT_TRUE(bool(gpu->load(ptxImage("scale", "sm_80"))));
  KernelImage wide = ptxImage();
  wide.numThreads = 512;
  EXPECT_EQ(message(gpu->load(wide)),
            "kernel 'scale' has blocks of 512 threads: expected 1 to 256, as "
            "it uses 255 registers");
  wide.numThreads = 0;
  EXPECT_NE(message(gpu->load(wide)), "no error");
}

TEST_F(CudaDeviceTest, LaunchesGiveMuchSharedMemory) {
  configure("FAKE_CUDA_SHARED", "101376");
  auto gpu = device();
  KernelImage image = ptxImage();
  image.sharedBytes = 100000;
  must(must(gpu->load(image))->launch(noSlots, {1, 1, 1}, nullptr));
  EXPECT_NE(launches().find("shared=100000 "), std::string::npos);
  image.sharedBytes = kStaticSharedBytes;
  must(must(gpu->load(image))->launch(noSlots, {1, 1, 1}, nullptr));
  EXPECT_NE(launches().find("shared=0 "), std::string::npos);
  image.sharedBytes = 120000;
  EXPECT_EQ(message(gpu->load(image)),
            "cuFuncSetAttribute failed: CUDA_ERROR_INVALID_VALUE (1): kernel "
            "'scale' with 120000 bytes of shared memory");
}

TEST_F(CudaDeviceTest, Memory) {
  configure("FAKE_CUDA_MEMORY", "5000000");
  auto gpu = device();
  for (size_t bytes : {1, 255, 4096, 1000003}) {
    void *pointer = must(gpu->allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 256, 0u);
    std::vector<char> in(bytes), out(bytes);
    std::iota(in.begin(), in.end(), 1);
    must(gpu->copyIn(pointer, in.data(), bytes));
    must(gpu->copyOut(out.data(), pointer, bytes));
    EXPECT_EQ(in, out);
    EXPECT_EQ(message(gpu->copyOut(out.data(), pointer, bytes + 1)),
              "cuMemcpyDtoH failed: CUDA_ERROR_INVALID_VALUE (1): " +
                  std::to_string(bytes + 1) + " bytes on cuda:0");
    EXPECT_EQ(leaks(), "1 allocation, 1 context");
    must(gpu->release(pointer));
    std::string twice = message(gpu->release(pointer));
    EXPECT_EQ(twice.find("cuMemFree failed: CUDA_ERROR_INVALID_VALUE (1): "
                         "pointer 0x"),
              0u)
        << twice;
  }
  EXPECT_EQ(must(gpu->allocate(0)), nullptr);
  must(gpu->release(nullptr));
  must(gpu->copyIn(nullptr, nullptr, 0));
  must(gpu->copyOut(nullptr, nullptr, 0));
  EXPECT_EQ(message(gpu->allocate(5000001)),
            "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2): 5000001 bytes "
            "on cuda:0");
}

/// A caller's own context is current again after each call, and is used where
/// it is the device's.
TEST_F(CudaDeviceTest, LeavesTheCallersContext) {
  configure("FAKE_CUDA_DEVICES", "2");
  auto first = device(0), second = device(1);
  auto kernel = must(second->load(ptxImage()));
  using Result = int;
  auto retain = fakeFunction<Result(void **, int)>("cuDevicePrimaryCtxRetain");
  auto release = fakeFunction<Result(int)>("cuDevicePrimaryCtxRelease_v2");
  auto push = fakeFunction<Result(void *)>("cuCtxPushCurrent_v2");
  auto pop = fakeFunction<Result(void **)>("cuCtxPopCurrent_v2");
  auto current = fakeFunction<Result(void **)>("cuCtxGetCurrent");
  void *mine = nullptr, *now = nullptr;
  ASSERT_EQ(retain(&mine, 0), 0);
  ASSERT_EQ(push(mine), 0);
  unsigned pushes = calls("cuCtxPushCurrent");
  must(kernel->launch(noSlots, {}, nullptr));
  EXPECT_EQ(calls("cuCtxPushCurrent"), pushes + 1);
  ASSERT_EQ(current(&now), 0);
  EXPECT_EQ(now, mine);
  // It stays after a failure too.
  EXPECT_NE(message(second->release(mine)), "");
  ASSERT_EQ(current(&now), 0);
  EXPECT_EQ(now, mine);
  pushes = calls("cuCtxPushCurrent");
  must(first->synchronize(nullptr));
  EXPECT_EQ(calls("cuCtxPushCurrent"), pushes);
  ASSERT_EQ(pop(&now), 0);
  ASSERT_EQ(release(0), 0);
}

/// Kernels keep their context: a device may go first.
TEST_F(CudaDeviceTest, KernelsOutliveTheirDevice) {
  auto gpu = device();
  auto kernel = must(gpu->load(ptxImage()));
  gpu.reset();
  must(kernel->launch(noSlots, {}, nullptr));
  EXPECT_EQ(leaks(), "1 module, 1 context");
  kernel.reset();
  EXPECT_EQ(leaks(), "");
}

TEST_F(CudaDeviceTest, ManyLaunchers) {
  auto gpu = device();
  auto shared = must(gpu->load(ptxImage()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        must(shared->launch(noSlots, {1 + round, 1, 1}, nullptr));
        auto own = must(gpu->load(ptxImage("own")));
        must(own->launch(noSlots, {}, nullptr));
        must(gpu->release(must(gpu->allocate(100))));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(calls("cuLaunchKernel"), 1600u);
  EXPECT_EQ(calls("cuDevicePrimaryCtxRetain"), 1u);
  EXPECT_EQ(leaks(), "1 module, 1 context");
}

/// In a process of its own, as what it leaves cannot be undone.
TEST_F(CudaDeviceTest, ForkedChildrenAreTold) {
  auto gpu = device();
  auto kernel = must(gpu->load(ptxImage()));
  pid_t child = fork();
  if (child == 0) {
    std::string expected =
        "CUDA was initialized before this process was forked and cannot be "
        "used in it: start processes with 'spawn' or fork before the first use";
    bool good = message(kernel->launch(noSlots, {}, nullptr)) == expected &&
                message(gpu->allocate(64)) == expected &&
                message(openCudaDriver(FAKE_CUDA)) == expected;
    kernel.reset(); // must not touch the driver
    good &= calls("cuModuleUnload") == 0;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  must(kernel->launch(noSlots, {}, nullptr));
}

} // namespace
