// Kernels in CUDA C++, compiled by nvcc for several GPUs and run with all
// checks on, against the same sums on the host and NVIDIA's own conversions.
#include "SimTest.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#if __has_include(<cuda_fp4.h>)
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#endif

#include <cmath>
#include <map>
#include <numeric>

using namespace dither::test;
using namespace llvm;

namespace {

/// Path of nvcc: that in PATH, or the usual one; empty where there is none.
std::string nvcc() {
  if (ErrorOr<std::string> found = sys::findProgramByName("nvcc"))
    return *found;
  const char *usual = "/usr/local/cuda/bin/nvcc";
  return sys::fs::can_execute(usual) ? usual : "";
}

/// What nvcc makes of Inputs/kernels.cu; once for each target.
const std::string &compiled(const std::string &target) {
  static std::map<std::string, std::string> made;
  auto [found, isNew] = made.try_emplace(target);
  if (!isNew)
    return found->second;
  SmallString<128> folder;
  if (sys::fs::createUniqueDirectory("dither-nvcc", folder)) {
    ADD_FAILURE() << "no temporary directory";
    return found->second;
  }
  scope_exit remove([&] { sys::fs::remove_directories(folder, true); });
  std::string ptx = (folder + "/kernels.ptx").str();
  std::string log = (folder + "/log").str();
  std::string program = nvcc(), arch = "-arch=" + target;
  int status = sys::ExecuteAndWait(
      program,
      {program, "-ptx", "-O3", "-std=c++17", arch, "-o", ptx, CUDA_KERNELS},
      std::nullopt, {std::nullopt, StringRef(log), StringRef(log)});
  if (status)
    ADD_FAILURE() << program << " for " << target << ": "
                  << readFile(log.c_str());
  else
    found->second = readFile(ptx.c_str());
  return found->second;
}

SimOptions allChecks() {
  SimOptions options;
  options.checkInit = options.checkRaces = true;
  return options;
}

/// A kernel of the file on a device, in blocks of 256 threads.
struct Cuda : Sim {
  explicit Cuda(const std::string &target) : Sim(target, allChecks()) {}

  /// Arguments are pointers and ints.
  template <class... Args>
  void launch(const std::string &name, Grid grid, uint32_t sharedBytes,
              Args... args) {
    KernelImage image;
    image.name = name;
    image.target = device->target().str();
    image.code = compiled(image.target);
    image.numThreads = 256;
    image.params = {std::is_pointer_v<Args> ? ParamKind::Pointer
                                            : ParamKind::I32...};
    auto made = device->load(image);
    ASSERT_TRUE(bool(made)) << toString(made.takeError());
    kernel.reset(static_cast<SimKernel *>(made->release()));
    kernel->setDynamicShared(sharedBytes);
    std::vector<int64_t> slots;
    auto slot = [](auto arg) {
      if constexpr (std::is_pointer_v<decltype(arg)>)
        return int64_t(reinterpret_cast<uintptr_t>(arg));
      else
        return int64_t(arg);
    };
    (slots.push_back(slot(args)), ...);
    EXPECT_EQ(message(kernel->launch(slots, grid, nullptr)), "") << name;
    EXPECT_TRUE(kernel->approximations().empty())
        << name << ": " << kernel->approximations()[0];
  }

  /// What the kernel has written, all of it.
  template <class T> std::vector<T> result(const T *memory, size_t count) {
    EXPECT_EQ(must(device->firstUnwritten(memory, count * sizeof(T))),
              count * sizeof(T));
    return download(memory, count);
  }
};

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &x : values)
    x = normal(random);
  return values;
}

class Nvcc : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    if (nvcc().empty())
      GTEST_SKIP() << "nvcc was not found in PATH or /usr/local/cuda/bin";
  }
  Cuda gpu{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
    , Nvcc, testing::Values("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"),
    [](const auto &info) { return std::string(info.param); });

TEST_P(Nvcc, VectorAdd) {
  constexpr int n = 1000;
  auto a = randomFloats(n, 1), b = randomFloats(n, 2);
  float *sum = gpu.allocate<float>(n);
  gpu.launch("vector_add", {4, 1, 1}, 0, gpu.upload(a), gpu.upload(b), sum, n);
  auto got = gpu.result(sum, n);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(got[i], a[i] + b[i]) << i;
}

TEST_P(Nvcc, TiledTranspose) {
  constexpr int rows = 77, columns = 130;
  auto in = randomFloats(rows * columns, 3);
  float *out = gpu.allocate<float>(rows * columns);
  gpu.launch("transpose", {5, 3, 1}, 0, gpu.upload(in), out, rows, columns);
  auto got = gpu.result(out, rows * columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      ASSERT_EQ(got[j * rows + i], in[i * columns + j]) << i << ", " << j;
}

TEST_P(Nvcc, WarpSums) {
  constexpr int n = 1024;
  auto in = randomFloats(n, 4);
  auto integers = interesting<int32_t>(n, 5);
  float *out = gpu.allocate<float>(n / 32);
  int32_t *totals = gpu.allocate<int32_t>(n / 32);
  gpu.launch("warp_sums", {4, 1, 1}, 0, gpu.upload(in), gpu.upload(integers),
             out, totals);
  auto got = gpu.result(out, n / 32);
  auto gotTotals = gpu.result(totals, n / 32);
  for (int warp = 0; warp < n / 32; ++warp) {
    std::vector<float> sums(&in[warp * 32], &in[warp * 32] + 32);
    uint32_t total = 0;
    for (int lane = 0; lane < 32; ++lane)
      total += uint32_t(integers[warp * 32 + lane]);
    for (int step = 16; step; step /= 2)
      for (int i = 0; i < step; ++i)
        sums[i] += sums[i + step];
    ASSERT_EQ(got[warp], sums[0]);
    ASSERT_EQ(uint32_t(gotTotals[warp]), total);
  }
}

TEST_P(Nvcc, BlockSums) {
  constexpr int n = 5000, blocks = 3;
  auto in = randomFloats(n, 6);
  float *out = gpu.allocate<float>(blocks);
  gpu.launch("block_sums", {blocks, 1, 1}, 1024, gpu.upload(in), out, n);
  auto got = gpu.result(out, blocks);
  for (int block = 0; block < blocks; ++block) {
    std::vector<float> sums(256, 0.0f);
    for (int i = 0; i < n; ++i)
      if (i / 256 % blocks == block)
        sums[i % 256] += in[i];
    for (int step = 128; step; step /= 2)
      for (int i = 0; i < step; ++i)
        sums[i] += sums[i + step];
    ASSERT_EQ(got[block], sums[0]);
  }
}

TEST_P(Nvcc, AsynchronousCopies) {
  constexpr int n = 9001;
  auto in = randomFloats(n, 8);
  float *out = gpu.allocate<float>(n);
  gpu.launch("neighbour_sums", {2, 1, 1}, 0, gpu.upload(in), out, n);
  auto got = gpu.result(out, n);
  in.resize(10 * 1024, 0.0f);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(got[i], in[i] + in[i / 1024 * 1024 + (i + 1) % 1024]) << i;
}

TEST_P(Nvcc, BulkDoubles) {
  if (StringRef(GetParam()).starts_with("sm_8"))
    GTEST_SKIP() << "bulk copies need sm_90";
  constexpr int rows = 11;
  auto in = randomFloats(rows * 1024, 9);
  float *out = gpu.allocate<float>(rows * 1024);
  gpu.launch("bulk_doubles", {3, 1, 1}, 0, gpu.upload(in), out, rows);
  auto got = gpu.result(out, rows * 1024);
  for (int i = 0; i < rows * 1024; ++i)
    ASSERT_EQ(got[i], 2 * in[i]) << i;
}

TEST_P(Nvcc, Histogram) {
  constexpr int n = 20000;
  std::mt19937 random(7);
  std::vector<uint8_t> in(n);
  std::vector<uint32_t> expected(256, 0);
  for (uint8_t &x : in)
    ++expected[x = uint8_t(random() % 16 * (random() % 16))];
  auto *bins = gpu.upload(std::vector<uint32_t>(256, 0));
  gpu.launch("histogram", {8, 1, 1}, 0, gpu.upload(in), bins, n);
  EXPECT_EQ(gpu.download(bins, 256), expected);
}

#if __has_include(<cuda_fp4.h>)

/// bf16 values of many magnitudes, of which each block of 16 has a few.
std::vector<uint16_t> brains(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    float x = std::ldexp(normal(random), int(i / 16 * 7 % 23) - 11);
    values[i] = uint16_t(toBits(i / 16 % 29 == 7 ? 0 : x) >> 16);
  }
  return values;
}

float widen(uint16_t brain) { return toFloat(uint32_t(brain) << 16); }

TEST_P(Nvcc, QuantizeMxfp8) {
  constexpr int blocks = 300;
  auto in = brains(blocks * 32, 8);
  auto *codes = gpu.allocate<uint8_t>(blocks * 32),
       *scales = gpu.allocate<uint8_t>(blocks);
  gpu.launch("quantize_mxfp8", {2, 1, 1}, 0, gpu.upload(in), codes, scales,
             blocks);
  auto gotCodes = gpu.result(codes, blocks * 32);
  auto gotScales = gpu.result(scales, blocks);
  for (int block = 0; block < blocks; ++block) {
    float amax = 0;
    for (int i = 0; i < 32; ++i)
      amax = std::max(amax, std::fabs(widen(in[block * 32 + i])));
    uint8_t scale =
        __nv_cvt_float_to_e8m0(amax / 448.0f, __NV_SATFINITE, cudaRoundPosInf);
    ASSERT_EQ(gotScales[block], scale);
    float inverse = toFloat(uint32_t(254 - scale) << 23);
    for (int i = block * 32; i < block * 32 + 32; ++i)
      ASSERT_EQ(gotCodes[i], __nv_cvt_float_to_fp8(widen(in[i]) * inverse,
                                                   __NV_SATFINITE, __NV_E4M3))
          << i;
  }
}

TEST_P(Nvcc, QuantizeNvfp4) {
  constexpr int pairs = 8 * 301;
  const float tensorAmax = 3000.0f;
  auto in = brains(pairs * 2, 9);
  auto *codes = gpu.allocate<uint8_t>(pairs),
       *scales = gpu.allocate<uint8_t>(pairs / 8);
  gpu.launch("quantize_nvfp4", {10, 1, 1}, 0, gpu.upload(in),
             gpu.upload(std::vector<float>{tensorAmax}), codes, scales, pairs);
  auto gotCodes = gpu.result(codes, pairs);
  auto gotScales = gpu.result(scales, pairs / 8);
  for (int block = 0; block < pairs / 8; ++block) {
    float amax = 0;
    for (int i = 0; i < 16; ++i)
      amax = std::max(amax, std::fabs(widen(in[block * 16 + i])));
    float encode = 2688.0f / tensorAmax;
    __nv_fp8_e4m3 scale(amax * encode / 6.0f);
    ASSERT_EQ(gotScales[block], scale.__x);
    float value = float(scale), inverse = value ? encode / value : 0.0f;
    for (int i = block * 8; i < block * 8 + 8; ++i)
      ASSERT_EQ(gotCodes[i],
                __nv_cvt_float2_to_fp4x2({widen(in[2 * i]) * inverse,
                                          widen(in[2 * i + 1]) * inverse},
                                         __NV_E2M1, cudaRoundNearest))
          << i;
  }
}

TEST_P(Nvcc, Widen) {
  auto *e4m3 = gpu.allocate<uint16_t>(256), *e5m2 = gpu.allocate<uint16_t>(256),
       *e2m1 = gpu.allocate<uint16_t>(256);
  gpu.launch("widen", {1, 1, 1}, 0, e4m3, e5m2, e2m1);
  auto of8 = gpu.result(e4m3, 256), of5 = gpu.result(e5m2, 256),
       of4 = gpu.result(e2m1, 256);
  for (int i = 0; i < 256; ++i) {
    ASSERT_EQ(of8[i], __nv_cvt_fp8_to_halfraw(uint8_t(i), __NV_E4M3).x) << i;
    ASSERT_EQ(of5[i], __nv_cvt_fp8_to_halfraw(uint8_t(i), __NV_E5M2).x) << i;
    ASSERT_EQ(of4[i], __nv_cvt_fp4_to_halfraw(i & 15, __NV_E2M1).x) << i;
  }
}

#else

TEST(NvccQuantize, NeedsHeaders) {
  GTEST_SKIP() << "cuda_fp4.h was not found when dither was configured";
}

#endif

} // namespace
