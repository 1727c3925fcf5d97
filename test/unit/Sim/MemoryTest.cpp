// Loads, stores and atomics of every space, type and width.
#include "SimTest.h"

#include <algorithm>
#include <numeric>

using namespace dither::test;
using namespace llvm;

namespace {

std::vector<uint8_t> bytes(size_t count) {
  std::mt19937 random(1);
  std::vector<uint8_t> values(count);
  for (uint8_t &x : values)
    x = uint8_t(random());
  return values;
}

/// Each lane copies `vector` elements of a type at a time.
TEST(MemoryOps, VectorsOfEveryType) {
  for (const char *type : {"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32",
                           "s32", "f32", "b64", "u64", "s64", "f64"})
    for (unsigned count : {1, 2, 4, 8}) {
      unsigned size = unsigned(atoi(type + 1)) / 8;
      if (size * count > 32 || (count == 8 && size != 4))
        continue;
      std::string reg =
          type[0] == 'f' ? type : "b" + std::to_string(std::max(size * 8, 16u));
      std::string list, body;
      for (unsigned i = 0; i < count; ++i)
        list += (i ? ", v" : "v") + std::to_string(i);
      std::string vector =
          count > 1 ? ".v" + std::to_string(count) : std::string();
      std::string braces = count > 1 ? "{" + list + "}" : list;
      std::string step = std::to_string(size * count);
      body = ".reg ." + reg +
             " v<8>;\n.reg .b64 x, y;\nmad.lo.u64 x, %rd_id, " + step +
             ", p0;\nmad.lo.u64 y, %rd_id, " + step + ", p1;\nld.global" +
             vector + "." + type + " " + braces + ", [x];\nst.global" + vector +
             "." + type + " [y], " + braces + ";\n";
      Sim sim("sm_100a");
      auto data = bytes(64 * size * count);
      uint8_t *in = sim.upload(data), *out = sim.allocate<uint8_t>(data.size());
      must(sim.run(kernelOf(body, 2, "sm_100a"), 64, {in, out}));
      EXPECT_EQ(sim.download(out, data.size()), data) << body;
    }
}

TEST(MemoryOps, NarrowLoadsExtend) {
  Sim sim;
  auto data = bytes(64);
  uint8_t *in = sim.upload(data);
  int64_t *out = sim.allocate<int64_t>(64);
  auto run = [&](const std::string &load) {
    must(sim.run(kernelOf(".reg .b64 x, y, v; .reg .b16 h; .reg .b32 r;\n"
                          "add.u64 x, %rd_id, p0;\n"
                          "mad.lo.u64 y, %rd_id, 8, p1;\n" +
                              load + "\nst.global.b64 [y], v;",
                          2),
                 64, {in, out}));
    return sim.download(out, 64);
  };
  auto u = run("ld.global.u8 v, [x];"), s = run("ld.global.s8 v, [x];");
  auto h = run("ld.global.s8 h, [x];\ncvt.s64.s16 v, h;");
  auto r = run("ld.global.b8 r, [x];\ncvt.s64.s32 v, r;");
  for (size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(u[i], data[i]);
    ASSERT_EQ(s[i], int8_t(data[i]));
    ASSERT_EQ(h[i], int8_t(data[i]));
    ASSERT_EQ(r[i], data[i]);
  }
}

TEST(MemoryOps, SpacesAndGenericAddresses) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(64 * 4);
  must(sim.run(kernelOf(R"(
    .shared .align 4 .b8 tile[256];
    .local .align 8 .b8 own[16];
    .reg .b64 s, l, g, x, to; .reg .b32 v, w, t; .reg .pred p, q;
    mov.b64 s, tile;
    shl.b64 x, %rd_id, 2;
    add.s64 s, s, x;
    st.shared.b32 [s], %r_id;
    mul.lo.u32 v, %r_id, 3;
    st.local.b32 [own+4], v;
    st.local.b32 [own], %r_id;
    cvta.shared.u64 g, s;
    cvta.local.u64 l, own;
    // Lanes by turns in two spaces, by one instruction.
    and.b32 t, %r_id, 1;
    setp.eq.u32 p, t, 0;
    add.u64 l, l, 4;
    selp.b64 x, g, l, p;
    ld.b32 v, [x];
    shl.b64 to, %rd_id, 4;
    add.u64 to, to, p0;
    st.global.b32 [to], v;
    isspacep.shared p, x;
    isspacep.local q, x;
    selp.b32 v, 1, 0, p;
    selp.b32 w, 2, 0, q;
    or.b32 v, v, w;
    isspacep.global p, to;
    selp.b32 w, 4, 0, p;
    or.b32 v, v, w;
    st.b32 [to+4], v;
    cvta.to.shared.u64 x, g;
    ld.shared.b32 v, [x];
    st.global.b32 [to+8], v;
    ld.local.u16 v, [own+2];
    st.global.b32 [to+12], v;)",
                        1),
               64, {out}));
  auto got = sim.download(out, 64 * 4);
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_EQ(got[4 * i], i % 2 ? 3 * i : i);
    ASSERT_EQ(got[4 * i + 1], i % 2 ? 6u : 5u);
    ASSERT_EQ(got[4 * i + 2], i);
    ASSERT_EQ(got[4 * i + 3], 0u);
  }
}

TEST(MemoryOps, DynamicSharedMemory) {
  Sim sim;
  std::string text = header("sm_90a") + R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 k_0) {
  .reg .b64 p; .reg .b32 a, v, n;
  .shared .align 4 .b8 fixed[20];
  ld.param.b64 p, [k_0];
  mov.b32 a, dynamic;
  st.shared.b32 [a+60], 5;
  ld.shared.b32 v, [dynamic+60];
  mov.u32 n, %dynamic_smem_size;
  add.u32 v, v, n;
  add.u32 v, v, a;
  st.global.b32 [p], v;
})";
  uint32_t *out = sim.allocate<uint32_t>(1);
  auto kernel = must(sim.load(text, 32, {ParamKind::Pointer}));
  std::vector<int64_t> slots = {int64_t(out)};
  EXPECT_NE(message(kernel->launch(slots, Grid(), nullptr)), "");
  static_cast<SimKernel &>(*kernel).setDynamicShared(64);
  must(kernel->launch(slots, Grid(), nullptr));
  // Behind the 20 bytes, at the next multiple of 16.
  EXPECT_EQ(sim.download(out, 1)[0], 5u + 64 + 32);
  // The image says how much there is of both.
  KernelImage image{"k", "sm_90a", text, 32, 32 + 96, {ParamKind::Pointer}};
  kernel = must(sim.device->load(image));
  must(kernel->launch(slots, Grid(), nullptr));
  EXPECT_EQ(sim.download(out, 1)[0], 5u + 96 + 32);
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

/// All threads of a few blocks update one place; the results are some order of
/// the partial ones.
TEST(MemoryOps, AtomicsOfManyBlocks) {
  Sim sim;
  constexpr uint32_t n = 64 * 20;
  std::vector<uint32_t> start = {5, ~0u, 0, ~0u, 0, 0, 1000, 0, 0};
  uint32_t *at = sim.upload(start);
  uint32_t *old = sim.allocate<uint32_t>(n);
  must(sim.run(kernelOf(R"(
    .reg .b32 v, o; .reg .b64 to;
    add.u32 v, %r_id, 1;
    atom.global.add.u32 o, [p0], 2;
    mad.wide.u32 to, %r_id, 4, p1;
    st.global.b32 [to], o;
    red.global.min.u32 [p0+4], v;
    red.relaxed.gpu.global.max.u32 [p0+8], v;
    red.global.and.b32 [p0+12], 0xFFFFFFF0;
    red.global.or.b32 [p0+16], v;
    red.global.xor.b32 [p0+20], v;
    red.global.min.s32 [p0+24], -7;
    red.global.inc.u32 [p0+28], 9;
    red.add.f32 [p0+32], 0f3F000000;)",
                        2),
               64, {at, old}, {20, 1, 1}));
  auto got = sim.download(at, start.size());
  uint32_t any = 0, parity = 0;
  for (uint32_t i = 1; i <= n; ++i) {
    any |= i;
    parity ^= i;
  }
  EXPECT_EQ(got,
            (std::vector<uint32_t>{5 + 2 * n, 1, n, ~15u, any, parity,
                                   uint32_t(-7), n % 10, toBits(0.5f * n)}));
  auto olds = sim.download(old, n);
  std::sort(olds.begin(), olds.end());
  for (uint32_t i = 0; i < n; ++i)
    ASSERT_EQ(olds[i], 5 + 2 * i);
}

TEST(MemoryOps, AtomicsOfSharedMemory) {
  Sim sim;
  uint64_t *out = sim.allocate<uint64_t>(8);
  must(sim.run(kernelOf(R"(
    .shared .align 8 .b8 m[64];
    .reg .pred p, q; .reg .b32 v, o; .reg .b64 w, x; .reg .b16 h; .reg .f64 f;
    setp.ne.u32 p, %r_id, 0;
    @p bra GO;
    st.shared.b64 [m], 0;
    st.shared.b64 [m+8], 0;
    st.shared.b64 [m+16], 0;
    st.shared.b64 [m+24], 0;
    st.shared.b64 [m+32], 0;
    GO: bar.sync 0;
    atom.shared.add.u64 w, [m], %rd_id;
    // A sum by compare and swap.
    AGAIN:
    ld.shared.b32 v, [m+8];
    add.u32 o, v, 3;
    .reg .b32 seen;
    atom.shared.cas.b32 seen, [m+8], v, o;
    setp.ne.u32 q, seen, v;
    @q bra AGAIN;
    red.shared.add.f64 [m+16], 0d3FD0000000000000;
    red.shared.add.noftz.f16x2 [m+24], 0x3C003C00;
    red.shared.add.noftz.bf16x2 [m+28], 0x3F803F80;
    cvt.u64.u32 w, %r_id;
    atom.shared.max.s64 x, [m+32], w;
    bar.sync 0;
    @p ret;
    ld.shared.b64 w, [m]; st.global.b64 [p0], w;
    ld.shared.b64 w, [m+8]; st.global.b64 [p0+8], w;
    ld.shared.b64 w, [m+16]; st.global.b64 [p0+16], w;
    ld.shared.b64 w, [m+24]; st.global.b64 [p0+24], w;
    ld.shared.b64 w, [m+32];
    atom.shared.exch.b64 x, [m+32], 77;
    ld.shared.b64 w, [m+32];
    add.u64 w, w, x;
    st.global.b64 [p0+32], w;)",
                        1),
               96, {out}));
  auto got = sim.download(out, 5);
  EXPECT_EQ(got[0], 95u * 96 / 2);
  EXPECT_EQ(got[1], 3u * 96);
  double sum = 24.0;
  uint64_t bits;
  std::memcpy(&bits, &sum, 8);
  EXPECT_EQ(got[2], bits);
  EXPECT_EQ(got[3], 0x42C042C056005600u); // 96 in f16 and bf16
  EXPECT_EQ(got[4], 95u + 77);
}

TEST(MemoryOps, SubnormalSums) {
  Sim sim;
  std::vector<uint32_t> start = {1, 0};
  uint32_t *at = sim.upload(start);
  must(sim.run(kernelOf(R"(
    .shared .align 4 .b8 m[4]; .reg .b32 v; .reg .pred p;
    setp.ne.u32 p, %r_id, 0;
    @p ret;
    st.shared.b32 [m], 1;
    red.shared.add.f32 [m], 0f00000001;
    ld.shared.b32 v, [m];
    st.global.b32 [p0+4], v;
    red.global.add.f32 [p0], 0f00000001;)",
                        1),
               32, {at}));
  // Global memory flushes, shared memory does not.
  EXPECT_EQ(sim.download(at, 2), (std::vector<uint32_t>{0, 2}));
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

SimCount countOf(const std::string &code, uint32_t threads = 32) {
  SimOptions options;
  options.countMemory = true;
  Sim sim("sm_90a", options);
  std::vector<uint32_t> data(1 << 14, 1);
  uint32_t *memory = sim.upload(data);
  must(sim.run(kernelOf(".shared .align 16 .b8 m[16384];\n"
                        ".reg .b64 g, x; .reg .b32 s, t, v<4>;\n"
                        "mov.b32 v0, 0; mov.b32 v1, 0; mov.b32 v2, 0; "
                        "mov.b32 v3, 0;\n" +
                            code,
                        1),
               threads, {memory}));
  // The line before the last one is the access.
  SimCounters counters = sim.kernel->counters();
  for (const SimCounters::Line &line : counters.lines)
    if (line.count.bytes)
      return line.count;
  return SimCount();
}

TEST(MemoryOps, Sectors) {
  auto global = [](const std::string &offset, const std::string &load) {
    return countOf("mad.lo.u64 g, %rd_id, " + offset + ", p0;\n" + load);
  };
  SimCount count = global("4", "ld.global.b32 v0, [g];");
  EXPECT_EQ(count.bytes, 128u);
  EXPECT_EQ(count.sectors, 4u);
  EXPECT_EQ(global("4", "ld.global.b32 v0, [g+4];").sectors, 5u);
  EXPECT_EQ(global("8", "ld.global.b32 v0, [g];").sectors, 8u);
  EXPECT_EQ(global("128", "ld.global.b32 v0, [g];").sectors, 32u);
  EXPECT_EQ(global("0", "ld.global.b32 v0, [g];").sectors, 1u);
  count = global("16", "ld.global.v4.b32 {v0, v1, v2, v3}, [g];");
  EXPECT_EQ(count.bytes, 512u);
  EXPECT_EQ(count.sectors, 16u);
  EXPECT_EQ(global("4", "red.global.add.u32 [g], 1;").sectors, 4u);
}

TEST(MemoryOps, Wavefronts) {
  auto shared = [](const std::string &offset, const std::string &access) {
    return countOf("mul.lo.u32 s, %r_id, " + offset + ";\n" + access);
  };
  SimCount count = shared("4", "st.shared.b32 [s], v0;");
  EXPECT_EQ(count.wavefronts, 1u);
  EXPECT_EQ(count.conflicts, 0u);
  EXPECT_EQ(shared("0", "ld.shared.b32 v0, [s];").wavefronts, 1u);
  count = shared("8", "st.shared.b32 [s], v0;");
  EXPECT_EQ(count.wavefronts, 2u);
  EXPECT_EQ(count.conflicts, 1u);
  EXPECT_EQ(shared("128", "st.shared.b32 [s], v0;").wavefronts, 32u);
  EXPECT_EQ(shared("132", "st.shared.b32 [s], v0;").wavefronts, 1u);
  EXPECT_EQ(shared("1", "st.shared.b8 [s], v0;").wavefronts, 1u);
  count = shared("16", "st.shared.v4.b32 [s], {v0, v1, v2, v3};");
  EXPECT_EQ(count.wavefronts, 4u);
  EXPECT_EQ(count.conflicts, 0u);
  // Eight lanes of a quarter in the same four banks.
  EXPECT_EQ(shared("128", "st.shared.v4.b32 [s], {v0, v1, v2, v3};").wavefronts,
            32u);
  count = shared("8", "st.shared.v2.b32 [s], {v0, v1};");
  EXPECT_EQ(count.wavefronts, 2u);
  EXPECT_EQ(count.conflicts, 0u);
}

} // namespace
