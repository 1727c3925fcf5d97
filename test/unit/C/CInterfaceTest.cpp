#include "Built.h"
#include "dither-c/dither.h"

#include <thread>

using namespace dither::test;

namespace {

using CInterfaceTest = BuiltTest;

TEST_F(CInterfaceTest, RunsAKernel) {
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  EXPECT_STREQ(dither_device_name(device), "cpu");
  EXPECT_EQ(std::string(dither_device_target(device)).substr(0, 4), "host");
  ASSERT_EQ(dither_kernel_load(device, manifest.c_str(), "where", &kernel),
            DITHER_SUCCESS)
      << dither_error_message();
  EXPECT_EQ(dither_kernel_num_slots(kernel), 1u);
  EXPECT_STREQ(dither_kernel_target(kernel), "host");
  void *memory = nullptr;
  ASSERT_EQ(dither_allocate(device, 24 * 8, &memory), DITHER_SUCCESS);
  int64_t slot = reinterpret_cast<intptr_t>(memory), out[24];
  ASSERT_EQ(dither_kernel_launch(kernel, &slot, 1, 2, 3, 4, nullptr),
            DITHER_SUCCESS);
  EXPECT_EQ(dither_synchronize(device, nullptr), DITHER_SUCCESS);
  EXPECT_EQ(dither_copy_out(device, out, memory, sizeof out), DITHER_SUCCESS);
  for (int64_t p = 0; p < 24; ++p)
    EXPECT_EQ(out[p], p % 2 + 1000 * (p / 2 % 3) + 1000000 * (p / 6));
  EXPECT_EQ(dither_release(device, memory), DITHER_SUCCESS);
  dither_kernel_unload(kernel);
}

TEST_F(CInterfaceTest, NullPointersAreErrors) {
  void *pointer = nullptr;
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  EXPECT_EQ(dither_device_open("cpu", nullptr), DITHER_INVALID_ARGUMENT);
  EXPECT_STREQ(dither_error_message(), "argument 'device' is a null pointer");
  EXPECT_EQ(dither_allocate(nullptr, 1, &pointer), DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_release(nullptr, nullptr), DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_copy_in(nullptr, nullptr, nullptr, 0),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_copy_out(nullptr, nullptr, nullptr, 0),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_synchronize(nullptr, nullptr), DITHER_INVALID_ARGUMENT);
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  EXPECT_EQ(dither_allocate(device, 1, nullptr), DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_load(nullptr, "m", "n", &kernel),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_load(device, nullptr, "n", &kernel),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_load(device, "m", nullptr, &kernel),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_load(device, "m", "n", nullptr),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_launch(nullptr, nullptr, 0, 1, 1, 1, nullptr),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_num_slots(nullptr), 0u);
  EXPECT_STREQ(dither_kernel_target(nullptr), "");
  EXPECT_STREQ(dither_device_name(nullptr), "");
  EXPECT_STREQ(dither_device_target(nullptr), "");
}

TEST_F(CInterfaceTest, NullMemoryIsAnError) {
  for (const char *name : {"cpu", "sim:sm_90a"}) {
    dither_device *device = nullptr;
    void *memory = nullptr;
    char here[8] = {};
    dither_status opened = dither_device_open(name, &device);
    // Builds without the simulator have the CPU alone.
    if (opened != DITHER_SUCCESS && std::string(name) != "cpu")
      continue;
    ASSERT_EQ(opened, DITHER_SUCCESS);
    ASSERT_EQ(dither_allocate(device, 8, &memory), DITHER_SUCCESS);
    EXPECT_EQ(dither_copy_in(device, nullptr, here, 8),
              DITHER_INVALID_ARGUMENT);
    EXPECT_STREQ(dither_error_message(),
                 "argument 'destination' is a null pointer");
    EXPECT_EQ(dither_copy_in(device, memory, nullptr, 8),
              DITHER_INVALID_ARGUMENT);
    EXPECT_STREQ(dither_error_message(), "argument 'source' is a null pointer");
    EXPECT_EQ(dither_copy_out(device, nullptr, memory, 8),
              DITHER_INVALID_ARGUMENT);
    EXPECT_EQ(dither_copy_out(device, here, nullptr, 8),
              DITHER_INVALID_ARGUMENT);
    // Nothing is nowhere.
    EXPECT_EQ(dither_copy_in(device, nullptr, nullptr, 0), DITHER_SUCCESS);
    EXPECT_EQ(dither_copy_out(device, nullptr, nullptr, 0), DITHER_SUCCESS);
    EXPECT_EQ(dither_release(device, nullptr), DITHER_SUCCESS);
    EXPECT_EQ(dither_release(device, memory), DITHER_SUCCESS);
  }
}

TEST_F(CInterfaceTest, NullSlotsAreErrorsWhereProgramsRun) {
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  ASSERT_EQ(dither_kernel_load(device, manifest.c_str(), "where", &kernel),
            DITHER_SUCCESS);
  int64_t slot = 0;
  EXPECT_EQ(dither_kernel_launch(kernel, &slot, 1, 2, 3, 4, nullptr),
            DITHER_INVALID_ARGUMENT);
  EXPECT_STREQ(dither_error_message(),
               "slot 0 is a null pointer, expected memory");
  EXPECT_EQ(dither_kernel_launch(kernel, nullptr, 1, 1, 1, 1, nullptr),
            DITHER_INVALID_ARGUMENT);
  EXPECT_EQ(dither_kernel_launch(kernel, &slot, 1, 2, 0, 4, nullptr),
            DITHER_SUCCESS);
  EXPECT_EQ(dither_kernel_launch(kernel, &slot, 2, 0, 0, 0, nullptr),
            DITHER_INVALID_ARGUMENT);
  EXPECT_STREQ(dither_error_message(), "found 2 slots, expected 1");
  dither_kernel_unload(kernel);
}

TEST_F(CInterfaceTest, NumbersThatAreTooLarge) {
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  void *memory = nullptr;
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  if (DITHER_TEST_ALLOCATIONS_FAIL)
    for (size_t bytes : {size_t(-1), size_t(-256), size_t(1) << 62}) {
      EXPECT_EQ(dither_allocate(device, bytes, &memory), DITHER_DEVICE_ERROR);
      EXPECT_EQ(memory, nullptr);
    }
  ASSERT_EQ(dither_kernel_load(device, manifest.c_str(), "where", &kernel),
            DITHER_SUCCESS);
  int64_t slot = reinterpret_cast<intptr_t>(&slot);
  EXPECT_EQ(dither_kernel_launch(kernel, &slot, 1, 1, int64_t(1) << 40,
                                 int64_t(1) << 40, nullptr),
            DITHER_DEVICE_ERROR);
  EXPECT_EQ(dither_kernel_launch(kernel, &slot, 1, -1, 1, 1, nullptr),
            DITHER_INVALID_ARGUMENT);
  dither_kernel_unload(kernel);
}

TEST_F(CInterfaceTest, DevicesThatAreNone) {
  dither_device *device = nullptr;
  for (const char *name :
       {"", "gpu", "cuda:", "cuda:-1", "cuda:99999999999", "cuda:0x1",
        "sim:", "sim:sm_1", "sim:\xff", "CPU", " cpu"}) {
    EXPECT_EQ(dither_device_open(name, &device), DITHER_DEVICE_ERROR) << name;
    EXPECT_STRNE(dither_error_message(), "") << name;
    EXPECT_EQ(device, nullptr);
  }
}

TEST_F(CInterfaceTest, FilesThatAreNone) {
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  write("empty.json", "");
  for (const std::string &path :
       {std::string(), directory, directory + "/none",
        directory + "/empty.json", directory + "/place.o",
        std::string("/dev/zero"), std::string(100000, 'a')}) {
    EXPECT_EQ(dither_kernel_load(device, path.c_str(), "where", &kernel),
              DITHER_BAD_FILE);
    EXPECT_STRNE(dither_error_message(), "");
    EXPECT_EQ(kernel, nullptr);
  }
}

TEST_F(CInterfaceTest, NothingThatRunsThere) {
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  std::string gpu = text("0");
  gpu.replace(gpu.find("\"host\""), 6, "\"sm_80\"");
  gpu.replace(gpu.find("\"object\""), 8, "\"ptx\"");
  write("manifest.json", gpu);
  EXPECT_EQ(dither_kernel_load(device, manifest.c_str(), "where", &kernel),
            DITHER_NOT_FOUND);
  EXPECT_EQ(dither_error_message(),
            manifest + ": nothing of kernel 'where' runs on '" +
                dither_device_target(device) + "'");
}

TEST_F(CInterfaceTest, TakesWhatAsksMostOfTheMachine) {
  dither_device *device = nullptr;
  dither_kernel *kernel = nullptr;
  ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  if (!llvm::StringRef(dither_device_target(device)).starts_with("host:avx512"))
    GTEST_SKIP() << "no machine with both levels below its own";
  std::string both = text(hash(readFile(KERNELS_OBJECT)));
  size_t first = both.find("{\"target\": \"host\""), end = both.find("]}]}");
  std::string image = both.substr(first, end - first), better = image;
  image.replace(image.find("\"host\""), 6, "\"host:base\"");
  better.replace(better.find("\"host\""), 6, "\"host:avx2\"");
  write("manifest.json",
        both.substr(0, first) + image + ", " + better + both.substr(end));
  ASSERT_EQ(dither_kernel_load(device, manifest.c_str(), "where", &kernel),
            DITHER_SUCCESS)
      << dither_error_message();
  EXPECT_STREQ(dither_kernel_target(kernel), "host:avx2");
  dither_kernel_unload(kernel);
}

TEST_F(CInterfaceTest, MessagesBelongToAThread) {
  dither_device *device = nullptr;
  EXPECT_EQ(dither_device_open("tpu", &device), DITHER_DEVICE_ERROR);
  std::string mine = dither_error_message();
  std::thread([] {
    EXPECT_STREQ(dither_error_message(), "");
    dither_device *device = nullptr;
    EXPECT_EQ(dither_device_open("npu", &device), DITHER_DEVICE_ERROR);
  }).join();
  EXPECT_EQ(dither_error_message(), mine);
  EXPECT_NE(mine.find("'tpu'"), std::string::npos);
}

TEST_F(CInterfaceTest, ManyThreadsLoadAndLaunch) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        dither_device *device = nullptr;
        dither_kernel *kernel = nullptr;
        ASSERT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
        ASSERT_EQ(
            dither_kernel_load(device, manifest.c_str(), "where", &kernel),
            DITHER_SUCCESS);
        std::vector<int64_t> out(300, -1);
        int64_t slot = reinterpret_cast<intptr_t>(out.data());
        EXPECT_EQ(dither_kernel_launch(kernel, &slot, 1, 300, 1, 1, nullptr),
                  DITHER_SUCCESS);
        for (int64_t p = 0; p < 300; ++p)
          EXPECT_EQ(out[p], p);
        dither_kernel_unload(kernel);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
