#include "dither/Runtime/CpuDevice.h"
#include "TestSupport.h"
#include "dither/Runtime/ThreadPool.h"

#include "llvm/ADT/StringExtras.h"

#include <cfenv>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

KernelImage image(const char *name, size_t params,
                  const char *object = KERNELS_OBJECT) {
  KernelImage image;
  image.name = name;
  image.target = "host";
  image.code = readFile(object);
  image.params.assign(params, ParamKind::Pointer);
  return image;
}

/// What a device of the least level is called.
std::string least() { return hostTarget(kLeastLevel).str(); }

int64_t slot(const void *pointer) { return reinterpret_cast<int64_t>(pointer); }

/// The arguments of the kernel `record`, and what it must have done.
struct Record {
  Record(int64_t programs, int64_t spin)
      : out(programs), counts(programs), who(programs), spin(spin) {}
  std::vector<int64_t> slots() const {
    return {slot(out.data()), slot(counts.data()), slot(who.data()), spin};
  }
  void expectAllOnce() const {
    for (size_t p = 0; p < out.size(); ++p) {
      ASSERT_EQ(out[p], int64_t(1 + p));
      ASSERT_EQ(counts[p], 1);
    }
  }
  size_t numThreads() const {
    return std::set<int64_t>(who.begin(), who.end()).size();
  }
  std::vector<int64_t> out, counts, who;
  int64_t spin;
};

class CpuDeviceTest : public testing::Test {
protected:
  void SetUp() override { setNumThreads(4); }
  void TearDown() override { setNumThreads(0); }
  std::unique_ptr<Device> device = makeCpuDevice(kLeastLevel);
};

TEST_F(CpuDeviceTest, DescribesItself) {
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_EQ(device->target(), least());
  EXPECT_GT(device->description().size(), 2u);
  EXPECT_EQ(makeCpuDevice(HostLevel::Avx2)->target(), "host:avx2");
  EXPECT_EQ(makeCpuDevice(HostLevel::Avx512)->target(), "host:avx512");
  EXPECT_EQ(makeCpuDevice(HostLevel::Avx512Vbmi)->target(), "host:avx512vbmi");
  EXPECT_EQ(makeCpuDevice(HostLevel::Avx512Fp16)->target(), "host:avx512fp16");
}

TEST_F(CpuDeviceTest, LevelFromTheEnvironment) {
  EXPECT_EQ(must(makeCpuDevice())->target(), hostTarget(detectHostLevel()));
  {
    ScopedEnv set("DITHER_HOST_FEATURES", "base");
    EXPECT_EQ(must(makeCpuDevice())->target(), least());
  }
  ScopedEnv set("DITHER_HOST_FEATURES", "avx1024");
  EXPECT_EQ(message(makeCpuDevice()),
            "DITHER_HOST_FEATURES is 'avx1024': expected auto, avx512fp16, "
            "avx512vbmi, avx512, avx2 or base");
}

TEST_F(CpuDeviceTest, EveryProgramRunsOnce) {
  auto kernel = must(device->load(image("record", 4)));
  for (int64_t programs : {1, 2, 3, 31, 1000, 4097})
    for (int64_t spin : {0, 2000}) {
      Record record(programs, programs > 1000 ? 0 : spin);
      must(kernel->launch(record.slots(), {programs, 1, 1}, nullptr));
      record.expectAllOnce();
    }
}

TEST_F(CpuDeviceTest, SmallWorkStaysOnTheCaller) {
  auto kernel = must(device->load(image("record", 4)));
  // Clocks say what is small: a busy machine may spread a launch, but not most.
  int onCaller = 0;
  for (int round = 0; round < 100; ++round) {
    Record record(8, 0);
    must(kernel->launch(record.slots(), {8, 1, 1}, nullptr));
    record.expectAllOnce();
    onCaller += record.numThreads() == 1 &&
                record.who[0] == slot(__builtin_thread_pointer());
  }
  EXPECT_GT(onCaller, 50);
}

TEST_F(CpuDeviceTest, LargeWorkIsSpread) {
  auto kernel = must(device->load(image("record", 4)));
  // About a millisecond for each program. A busy machine may give the others no
  // time before the caller is done, but not every time.
  size_t most = 0;
  for (int attempt = 0; attempt < 100 && most < 2; ++attempt) {
    Record record(16, 500000);
    must(kernel->launch(record.slots(), {16, 1, 1}, nullptr));
    record.expectAllOnce();
    most = std::max(most, record.numThreads());
  }
  EXPECT_GT(most, 1u);
  // One program can only run on one thread, and one thread runs all.
  Record one(1, 500000);
  must(kernel->launch(one.slots(), {1, 1, 1}, nullptr));
  EXPECT_EQ(one.who[0], slot(__builtin_thread_pointer()));
  setNumThreads(1);
  Record alone(16, 500000);
  must(kernel->launch(alone.slots(), {16, 1, 1}, nullptr));
  EXPECT_EQ(alone.numThreads(), 1u);
}

TEST_F(CpuDeviceTest, GridOrder) {
  auto kernel = must(device->load(image("place", 1)));
  std::vector<int64_t> out(5 * 7 * 3);
  must(kernel->launch({slot(out.data())}, {5, 7, 3}, nullptr));
  size_t p = 0;
  for (int64_t z = 0; z < 3; ++z)
    for (int64_t y = 0; y < 7; ++y)
      for (int64_t x = 0; x < 5; ++x)
        ASSERT_EQ(out[p++], x + 1000 * y + 1000000 * z);
}

TEST_F(CpuDeviceTest, EmptyGridsRunNothing) {
  auto kernel = must(device->load(image("record", 4)));
  Record record(4, 0);
  for (Grid grid : {Grid{0, 1, 1}, Grid{4, 0, 1}, Grid{4, 1, 0}})
    must(kernel->launch(record.slots(), grid, nullptr));
  EXPECT_EQ(std::accumulate(record.counts.begin(), record.counts.end(), 0), 0);
}

TEST_F(CpuDeviceTest, SlotsOfEachKind) {
  KernelImage kinds = image("kinds", 0);
  kinds.params = {ParamKind::Pointer, ParamKind::I64, ParamKind::I32,
                  ParamKind::F32};
  auto kernel = must(device->load(kinds));
  double out[3] = {};
  float f = -0.375f;
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  // High halves of narrow slots mean nothing.
  int64_t slots[4] = {slot(out), -(int64_t(1) << 40),
                      int64_t(0xdeadbeef00000000 | uint32_t(-7)),
                      int64_t(0xffffffff00000000 | bits)};
  must(kernel->launch(slots, {}, nullptr));
  EXPECT_EQ(out[0], -1099511627776.0);
  EXPECT_EQ(out[1], -7.0);
  EXPECT_EQ(out[2], -0.375);
}

TEST_F(CpuDeviceTest, ProgramsHaveMemoryOfTheirOwn) {
  KernelImage lent = image("lent", 0);
  lent.params = {ParamKind::Pointer, ParamKind::I64};
  std::vector<int64_t> wrong(4096, -1);
  for (uint32_t bytes : {64u, 1u << 16, 1u << 12}) {
    lent.sharedBytes = bytes;
    auto kernel = must(device->load(lent));
    int64_t slots[2] = {slot(wrong.data()), bytes / 8};
    must(kernel->launch(slots, {int64_t(wrong.size()), 1, 1}, nullptr));
    EXPECT_EQ(wrong, std::vector<int64_t>(wrong.size(), 0));
  }
}

#if defined(__x86_64__)
/// What a program has done to its floating-point environment changes no result,
/// on no thread, and is as it was afterwards.
TEST_F(CpuDeviceTest, FloatEnvironmentIsStandard) {
  auto kernel = must(device->load(image("multiply", 4)));
  auto bits = [](float f) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return bits;
  };
  // A subnormal product, and one that rounds up only when told to.
  const std::pair<float, float> factors[] = {{0x1p-100f, 0x1.8p-40f},
                                             {1 + 0x1p-23f, 1 + 0x1p-23f}};
  const float expected[] = {0x1.8p-140f, 1 + 0x1p-22f};
  const fenv_t *standard = FE_DFL_ENV;
  for (int64_t spin : {0, 200000})
    for (int i : {0, 1}) {
      std::vector<float> out(16);
      int64_t slots[] = {slot(out.data()), bits(factors[i].first),
                         bits(factors[i].second), spin};
      fesetround(FE_UPWARD);
      unsigned before = __builtin_ia32_stmxcsr() | 0x8040; // FTZ, DAZ
      __builtin_ia32_ldmxcsr(before);
      must(kernel->launch(slots, {16, 1, 1}, nullptr));
      unsigned after = __builtin_ia32_stmxcsr();
      fesetenv(standard);
      EXPECT_EQ(after & ~0x3fu, before & ~0x3fu); // but for raised flags
      for (float value : out)
        EXPECT_EQ(bits(value), bits(expected[i])) << value;
    }
}
#endif

/// Each load has constants and variables of its own, though symbols are equal.
TEST_F(CpuDeviceTest, KernelsAreSeparate) {
  auto first = must(device->load(image("tables", 1)));
  auto second = must(device->load(image("tables", 1)));
  double out[4];
  for (int round = 1; round <= 3; ++round) {
    must(first->launch({slot(out)}, {4, 1, 1}, nullptr));
    EXPECT_EQ(out[3], 3.5 + round);
  }
  must(second->launch({slot(out)}, {4, 1, 1}, nullptr));
  EXPECT_EQ(out[0], 0.5 + 1);
  first.reset();
  must(second->launch({slot(out)}, {4, 1, 1}, nullptr));
  EXPECT_EQ(out[0], 0.5 + 2);
}

TEST_F(CpuDeviceTest, LaunchErrors) {
  auto kernel = must(device->load(image("record", 4)));
  EXPECT_EQ(message(kernel->launch({1, 2}, {}, nullptr)),
            "kernel 'record' takes 4 slots, found 2");
  int64_t slots[4] = {};
  EXPECT_EQ(message(kernel->launch(slots, {4, -1, 1}, nullptr)),
            "grid of kernel 'record' is 4x-1x1: expected sizes of 0 or more, "
            "and a product that fits in 64 bits");
  int64_t big = int64_t(1) << 32;
  EXPECT_NE(message(kernel->launch(slots, {big, big, 1}, nullptr)), "");
}

TEST_F(CpuDeviceTest, LoadErrors) {
  EXPECT_EQ(message(device->load(image("missing", 0))),
            "cannot load kernel 'missing': Symbols not found: [ missing ]");
  std::string undefined =
      message(device->load(image("undefined", 0, UNDEFINED_OBJECT)));
  EXPECT_TRUE(StringRef(undefined).contains("elsewhere")) << undefined;

  KernelImage bad = image("record", 4);
  bad.target = "sm_90a";
  EXPECT_EQ(message(device->load(bad)),
            "kernel 'record' is for 'sm_90a': this device runs '" + least() +
                "'");
  bad.target = "host:avx512";
  EXPECT_EQ(message(makeCpuDevice(HostLevel::Avx2)->load(bad)),
            "kernel 'record' is for 'host:avx512': this device runs "
            "'host:avx2' and below");
  bad.target = "host:avx512vbmi";
  EXPECT_EQ(message(makeCpuDevice(HostLevel::Avx512)->load(bad)),
            "kernel 'record' is for 'host:avx512vbmi': this device runs "
            "'host:avx512' and below");
  bad.target = "host:neon";
  EXPECT_EQ(message(makeCpuDevice(HostLevel::Avx512)->load(bad)),
            "kernel 'record' is for 'host:neon': this device runs "
            "'host:avx512' and below");
  bad.target = "host:base";
  EXPECT_EQ(message(makeCpuDevice(HostLevel::Neon)->load(bad)),
            "kernel 'record' is for 'host:base': this device runs 'host:neon'");
}

/// Objects cut anywhere, or for another machine, are errors and not crashes.
TEST_F(CpuDeviceTest, DamagedObjects) {
  KernelImage good = image("record", 4);
  unsigned failures = 0;
  for (size_t size = 0; size < good.code.size(); size += 97) {
    KernelImage cut = good;
    cut.code.resize(size);
    Expected<std::unique_ptr<Kernel>> kernel = device->load(cut);
    if (kernel)
      continue;
    ++failures;
    EXPECT_EQ(message(std::move(kernel)).find("cannot load kernel 'record': "),
              0u);
  }
  EXPECT_GT(failures, 10u);
  KernelImage other = good;
  // e_machine: AArch64, or x86-64.
  bool arm = kLeastLevel == HostLevel::Neon;
  other.code[18] = char(arm ? 62 : 183);
  StringRef there = arm ? "x86_64" : "aarch64",
            here = arm ? "aarch64" : "x86_64";
  EXPECT_EQ(message(device->load(other)),
            ("cannot load kernel 'record': the object is for " + there +
             ", expected " + here)
                .str());
  // The linker still works after all that.
  EXPECT_TRUE(bool(device->load(good)));
}

TEST_F(CpuDeviceTest, Memory) {
  for (size_t bytes : {1, 255, 4096, 1000003}) {
    void *pointer = must(device->allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 256, 0u);
    std::vector<char> in(bytes), out(bytes);
    std::iota(in.begin(), in.end(), 1);
    must(device->copyIn(pointer, in.data(), bytes));
    must(device->copyOut(out.data(), pointer, bytes));
    EXPECT_EQ(in, out);
    must(device->release(pointer));
  }
  EXPECT_EQ(must(device->allocate(0)), nullptr);
  must(device->release(nullptr));
  must(device->copyIn(nullptr, nullptr, 0));
  must(device->synchronize(nullptr));
  if (DITHER_TEST_ALLOCATIONS_FAIL) {
    EXPECT_EQ(message(device->allocate(SIZE_MAX / 2)),
              "cannot allocate 9223372036854775807 bytes on cpu");
  }
}

/// Eight threads launch, load and drop kernels at once.
TEST_F(CpuDeviceTest, ManyLaunchers) {
  auto shared = must(device->load(image("record", 4)));
  KernelImage own = image("record", 4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 150; ++round) {
        Record record(1 + (round * 7 + t) % 60, round % 10 ? 0 : 5000);
        Grid grid = {int64_t(record.out.size()), 1, 1};
        must(shared->launch(record.slots(), grid, nullptr));
        record.expectAllOnce();
        if (round % 25 == t) {
          auto kernel = must(device->load(own));
          Record again(grid.x, 0);
          must(kernel->launch(again.slots(), grid, nullptr));
          again.expectAllOnce();
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
