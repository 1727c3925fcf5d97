#include "dither/Runtime/Device.h"
#include "SimTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

TEST(SimDevice, ComesFromTheRegistry) {
  Device *device = must(getDevice("sim:sm_90a"));
  EXPECT_EQ(device->name(), "sim:sm_90a");
  EXPECT_EQ(device->target(), "sm_90a");
  EXPECT_EQ(must(getDevice("sim:sm_90a")), device);
  EXPECT_EQ(message(getDevice("sim:sm_70")),
            "cannot simulate 'sm_70': expected sm_80, sm_86, sm_89, sm_90a, "
            "sm_100a, sm_103a, sm_120a or sm_121a, the last four with "
            "or without :ptx91");
  EXPECT_TRUE(StringRef(message(getDevice("sim:"))).starts_with("cannot"));
}

TEST(SimDevice, ChecksFromTheEnvironment) {
  EXPECT_FALSE(must(simOptions()).checkInit);
  setenv("DITHER_SIM_CHECKS", "init,races", 1);
  EXPECT_TRUE(must(simOptions()).checkInit);
  EXPECT_TRUE(must(simOptions()).checkRaces);
  EXPECT_FALSE(must(simOptions()).countMemory);
  setenv("DITHER_SIM_CHECKS", "bounds", 1);
  EXPECT_NE(message(simOptions()).find("DITHER_SIM_CHECKS"), std::string::npos);
  unsetenv("DITHER_SIM_CHECKS");
}

TEST(SimDevice, Memory) {
  Sim sim;
  char *memory = sim.allocate<char>(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  char byte = 7;
  must(sim.device->copyIn(memory + 99, &byte, 1));
  byte = 0;
  must(sim.device->copyOut(&byte, memory + 99, 1));
  EXPECT_EQ(byte, 7);
  EXPECT_NE(message(sim.device->copyIn(memory + 100, &byte, 1)), "");
  EXPECT_NE(message(sim.device->copyOut(&byte, memory - 1, 1)), "");
  EXPECT_NE(message(sim.device->copyIn(memory, &byte, 101)), "");
  EXPECT_NE(message(sim.device->release(memory + 1)), "");
  must(sim.device->release(memory));
  EXPECT_NE(message(sim.device->release(memory)), "");
  EXPECT_EQ(must(sim.device->allocate(0)), nullptr);
  must(sim.device->release(nullptr));
  EXPECT_NE(message(sim.device->allocate(size_t(1) << 60)), "no error");
}

/// y[i] = a x[i] + b for i < n, in blocks of 64 threads.
const char *axpb = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 k_x, .param .u64 k_y,
  .param .u64 k_n, .param .f32 k_a, .param .u32 k_b)
.reqntid 64
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<5>; .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  cvt.s64.s32 %rd1, %r4;
  ld.param.u64 %rd2, [k_n];
  setp.ge.s64 %p1, %rd1, %rd2;
  @%p1 bra DONE;
  ld.param.u64 %rd3, [k_x];
  shl.b64 %rd4, %rd1, 2;
  add.s64 %rd5, %rd3, %rd4;
  ld.global.nc.f32 %f1, [%rd5];
  ld.param.f32 %f2, [k_a];
  ld.param.u32 %r5, [k_b];
  cvt.rn.f32.s32 %f3, %r5;
  fma.rn.f32 %f4, %f1, %f2, %f3;
  ld.param.u64 %rd6, [k_y];
  add.s64 %rd7, %rd6, %rd4;
  st.global.f32 [%rd7], %f4;
DONE:
  ret;
}
)";

TEST(SimDevice, RunsAGrid) {
  Sim sim;
  constexpr size_t n = 1000;
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = float(i) * 0.25f;
  float *in = sim.upload(x), *out = sim.allocate<float>(n);
  using P = ParamKind;
  auto kernel = must(
      sim.load(axpb, 64, {P::Pointer, P::Pointer, P::I64, P::F32, P::I32}));
  std::vector<int64_t> slots = {int64_t(in), int64_t(out), int64_t(n),
                                toBits(1.5f), -3};
  must(kernel->launch(slots, {16, 1, 1}, nullptr));
  std::vector<float> y = sim.download(out, n);
  for (size_t i = 0; i < n; ++i)
    ASSERT_EQ(y[i], x[i] * 1.5f - 3.0f) << i;
  SimCounters counters = static_cast<SimKernel &>(*kernel).counters();
  EXPECT_EQ(counters.blocks, 16u);
  EXPECT_EQ(counters.globalLoads, 32u);
  // One warp of the last block is half outside, and 1000 = 31 * 32 + 8.
  EXPECT_EQ(counters.total.divergent, 1u);
  EXPECT_EQ(counters.lines[11].text, "ld.global.nc.f32");
  EXPECT_EQ(counters.lines[11].count.warps, 32u);
  EXPECT_EQ(counters.lines[11].count.lanes, 1000u);
}

TEST(SimDevice, ImagesMustFit) {
  Sim sim;
  using P = ParamKind;
  std::vector<P> params = {P::Pointer, P::Pointer, P::I64, P::F32, P::I32};
  EXPECT_EQ(message(sim.load(axpb, 32, params)),
            "kernel 'k' has blocks of 32 threads, and .reqntid 64, 1, 1");
  EXPECT_EQ(message(sim.load(axpb, 64, {P::Pointer})),
            "kernel 'k' has 5 parameters in its PTX, and 1 in its image");
  params[2] = P::I32;
  EXPECT_EQ(message(sim.load(axpb, 64, params)),
            "kernel 'k' has a parameter 2 of 8 bytes in its PTX, and of 4 in "
            "its image");
  KernelImage image;
  image.name = "other";
  image.target = "sm_90a";
  image.code = axpb;
  EXPECT_EQ(message(sim.device->load(image)), "no kernel 'other' in its PTX");
  image.target = "sm_100a";
  EXPECT_EQ(message(sim.device->load(image)),
            "kernel 'other' is for 'sm_100a': sim:sm_90a runs 'sm_90a'");
  auto kernel = must(
      sim.load(axpb, 64, {P::Pointer, P::Pointer, P::I64, P::F32, P::I32}));
  EXPECT_EQ(message(kernel->launch({0}, Grid(), nullptr)),
            "kernel 'k' takes 5 slots, found 1");
}

TEST(SimDevice, VariablesOfTheModule) {
  Sim sim;
  std::string text = header("sm_90a") + R"(
.global .align 4 .b32 table[4] = {10, 20, 30, 40};
.const .u64 pointer = table;
.visible .entry k(.param .u64 k_0)
{
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.b64 %rd1, [k_0];
  ld.const.u64 %rd2, [pointer];
  ld.global.b32 %r1, [%rd2+8];
  ld.global.b32 %r2, [table+4];
  add.s32 %r3, %r1, %r2;
  st.global.b32 [%rd1], %r3;
  ret;
})";
  uint32_t *out = sim.allocate<uint32_t>(1);
  must(sim.run(text, 32, {out}));
  EXPECT_EQ(sim.download(out, 1)[0], 50u);
  EXPECT_EQ(
      message(sim.load(header("sm_90a") + ".global .b8 big[1099511627776];\n"
                                          ".visible .entry k() { ret; }",
                       32, {})),
      "kernel 'k' for sm_90a: cannot allocate 1099511627776 bytes for "
      "'big'");
}

} // namespace
