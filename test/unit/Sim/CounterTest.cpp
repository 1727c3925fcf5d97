//===- CounterTest.cpp - What is counted by array and by source line ------===//

#include "SimTest.h"

using namespace dither::test;

namespace {

SimOptions counting() {
  SimOptions options;
  options.countMemory = true;
  return options;
}

/// The array of `memory` in what the last run counted.
SimCounters::Array arrayOf(const Sim &sim, const void *memory) {
  for (const SimCounters::Array &array : sim.kernel->counters().arrays)
    if (array.begin == reinterpret_cast<uintptr_t>(memory))
      return array;
  return SimCounters::Array();
}

TEST(Counters, SourceLines) {
  Sim sim;
  uint32_t *memory = sim.allocate<uint32_t>(32);
  // LLVM writes `.file` after the code that refers to it.
  std::string code = header("sm_90a") + R"(
.visible .entry k(.param .u64 k_0)
{
  .reg .b32 r; .reg .b64 p;
  mov.u32 r, 0;
  .loc 2 17 5
  ld.param.b64 p, [k_0];
  .loc 1 4 1, function_name $L__info_string0, inlined_at 2 18 9
  add.u32 r, r, 1;
  st.global.b32 [p], r;
  .loc 2 0 9
  ret;
}
.file 1 "/a/helper.py"
.file 2 "kernel.py", 1234, 99
)";
  must(sim.run(code, 32, {memory}));
  std::vector<std::string> found;
  for (const SimCounters::Line &line : sim.kernel->counters().lines)
    found.push_back(line.text + " " + line.file + ":" +
                    std::to_string(line.fileLine));
  EXPECT_EQ(found, (std::vector<std::string>{
                       "mov.u32 :0", "ld.param.b64 kernel.py:17",
                       "add.u32 /a/helper.py:4", "st.global.b32 /a/helper.py:4",
                       "ret kernel.py:0", "ret :0"}));
  EXPECT_EQ(sim.kernel->counters().lines[2].kind, 0u); // integer
}

TEST(Counters, MalformedPositions) {
  Sim sim;
  for (const char *line :
       {".loc x 1 2", ".loc 1 , 2", ".file \"a.py\"", ".file 1 a.py"}) {
    std::string text =
        message(sim.run(kernelOf(std::string(line) + "\n", 0), 32, {}));
    EXPECT_NE(text.find("expected "), std::string::npos) << text;
  }
}

/// Lanes load 16 bytes each, `stride` bytes apart, twice.
std::string loads(const char *stride) {
  return kernelOf(std::string(".reg .b64 g; .reg .b32 v<4>;\n") +
                      "mad.lo.u64 g, %rd_id, " + stride +
                      ", p0;\n"
                      "ld.global.v4.b32 {v0, v1, v2, v3}, [g];\n"
                      "ld.global.v4.b32 {v0, v1, v2, v3}, [g];\n",
                  1);
}

TEST(Counters, BlocksFetchASectorOnce) {
  Sim sim("sm_90a", counting());
  std::vector<uint32_t> data(1 << 12, 1);
  uint32_t *memory = sim.upload(data);
  must(sim.run(loads("16"), 32, {memory}, {4, 1, 1}));
  SimCounters::Array array = arrayOf(sim, memory);
  EXPECT_EQ(array.bytes, 1u << 14);
  EXPECT_EQ(array.loaded, 2u * 4 * 512);
  EXPECT_EQ(array.fetched, 4u * 16);
  EXPECT_EQ(array.requests, 8u);
  EXPECT_EQ(array.full, 8u);
  EXPECT_EQ(sim.kernel->counters().total.sectors, 8u * 16);
  // All blocks read the same lines: each fetches them.
  must(sim.run(loads("0"), 32, {memory}, {4, 1, 1}));
  EXPECT_EQ(arrayOf(sim, memory).fetched, 4u);
  // Two warps of a block share a sector.
  must(sim.run(loads("0"), 64, {memory}));
  EXPECT_EQ(arrayOf(sim, memory).fetched, 1u);
  // Half of each sector: fetched as a whole.
  must(sim.run(loads("32"), 32, {memory}));
  EXPECT_EQ(arrayOf(sim, memory).fetched, 32u);
}

TEST(Counters, StoresAndAtomicsCountBytes) {
  Sim sim("sm_90a", counting());
  std::vector<uint32_t> data(1 << 10, 1);
  uint32_t *memory = sim.upload(data), *sum = sim.upload(data);
  must(sim.run(kernelOf(".reg .b64 g;\nmad.lo.u64 g, %rd_id, 8, p0;\n"
                        "st.global.b32 [g], %r_id;\n"
                        "red.global.add.u32 [p1], 1;\n",
                        2),
               32, {memory, sum}, {2, 1, 1}));
  SimCounters::Array stored = arrayOf(sim, memory), updated = arrayOf(sim, sum);
  EXPECT_EQ(stored.stored, 2u * 128);
  EXPECT_EQ(stored.loaded + stored.updated + stored.fetched, 0u);
  EXPECT_EQ(updated.updated, 2u * 128);
  EXPECT_EQ(updated.loaded + updated.stored + updated.fetched, 0u);
}

TEST(Counters, FullWidth) {
  auto full = [](const std::string &setup, const std::string &access) {
    Sim sim("sm_90a", counting());
    std::vector<uint32_t> data(1 << 12, 1);
    uint32_t *memory = sim.upload(data);
    must(sim.run(kernelOf(".reg .b64 g; .reg .b32 v<4>; .reg .pred p;\n"
                          "mov.b32 v0, 0; mov.b32 v1, 0;\n" +
                              setup + "\n" + access,
                          1),
                 32, {memory}));
    SimCounters::Array array = arrayOf(sim, memory);
    EXPECT_EQ(array.requests, 1u);
    EXPECT_EQ(array.full, sim.kernel->counters().total.full);
    return array.full == 1;
  };
  auto at = [](const char *stride) {
    return std::string("mad.lo.u64 g, %rd_id, ") + stride + ", p0;";
  };
  EXPECT_TRUE(full(at("1"), "ld.global.b8 v0, [g];"));
  EXPECT_TRUE(full(at("4"), "ld.global.b32 v0, [g];"));
  EXPECT_FALSE(full(at("4"), "ld.global.b32 v0, [g+4];"));
  EXPECT_TRUE(full(at("8"), "st.global.v2.b32 [g], {v0, v1};"));
  EXPECT_FALSE(full(at("16"), "st.global.v2.b32 [g], {v0, v1};"));
  EXPECT_TRUE(full(at("32"), "ld.global.v4.b32 {v0, v1, v2, v3}, [g];"));
  EXPECT_FALSE(full(at("0"), "ld.global.b32 v0, [g];"));
  EXPECT_FALSE(full(at("4") + " setp.lt.u32 p, %r_id, 31;",
                    "@p ld.global.b32 v0, [g];"));
}

TEST(Counters, CanBeTurnedOnAndOff) {
  Sim sim;
  std::vector<uint32_t> data(1 << 10, 1);
  uint32_t *memory = sim.upload(data);
  must(sim.run(loads("16"), 32, {memory}));
  EXPECT_EQ(sim.kernel->counters().total.sectors, 0u);
  EXPECT_EQ(sim.kernel->counters().globalLoads, 2u);
  sim.device->setCountMemory(true);
  std::vector<int64_t> slots = {int64_t(memory)};
  must(sim.kernel->launch(slots, {1, 1, 1}, nullptr));
  EXPECT_EQ(sim.kernel->counters().total.sectors, 32u);
  sim.device->setCountMemory(false);
  must(sim.kernel->launch(slots, {1, 1, 1}, nullptr));
  EXPECT_EQ(sim.kernel->counters().total.sectors, 0u);
  EXPECT_EQ(sim.kernel->simulated(), sim.kernel.get());
  EXPECT_EQ(sim.device->simulated(), sim.device.get());
}

} // namespace
