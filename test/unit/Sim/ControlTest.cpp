// Divergence, warp-wide instructions and barriers.
#include "SimTest.h"

#include <algorithm>

using namespace dither::test;
using namespace llvm;

namespace {

std::vector<uint32_t> iota(size_t count) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = uint32_t(i);
  return values;
}

//===----------------------------------------------------------------------===//
// Divergence
//===----------------------------------------------------------------------===//

TEST(Control, NestedBranchesMeetAgain) {
  // Lanes of three paths; activemask shows who is together at each point.
  auto got = evaluate<uint64_t>("sm_80", R"(
    .reg .pred p, q; .reg .b32 x, m, n;
    mov.b32 x, 0; mov.b32 m, 0;
    setp.lt.u32 p, a, 10;
    @!p bra ELSE;
      setp.lt.u32 q, a, 4;
      @!q bra INNER_ELSE;
        activemask.b32 m;
        add.u32 x, x, 1;
        bra INNER_END;
      INNER_ELSE:
        activemask.b32 m;
        add.u32 x, x, 2;
      INNER_END:
      activemask.b32 n;
      xor.b32 m, m, n;
      bra END;
    ELSE:
      activemask.b32 m;
      add.u32 x, x, 4;
    END:
    activemask.b32 n;
    popc.b32 n, n;
    shl.b32 n, n, 8;
    or.b32 x, x, n;
    mov.b64 d, {x, m};)",
                                iota(32));
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t x = i < 4 ? 1 : i < 10 ? 2 : 4;
    uint32_t m = i < 4 ? 0x3FF ^ 0xF : i < 10 ? 0x3FF ^ 0x3F0 : 0xFFFFFC00;
    EXPECT_EQ(got[i], (x | 32 << 8) | uint64_t(m) << 32) << i;
  }
}

TEST(Control, LoopsOfDifferentLengths) {
  auto a = iota(256);
  for (uint32_t &x : a)
    x = (x * 37) % 41;
  // Sums of 0 .. a, with a way out in the middle and a continue.
  auto got = evaluate<uint32_t>("sm_80", R"(
    .reg .pred p; .reg .b32 i, t;
    mov.b32 d, 0; mov.b32 i, 0;
    LOOP:
      setp.eq.u32 p, i, 35;
      @p bra OUT;
      and.b32 t, i, 3;
      setp.eq.u32 p, t, 3;
      @p bra NEXT;
      add.u32 d, d, i;
    NEXT:
      add.u32 i, i, 1;
      setp.le.u32 p, i, a;
      @p bra LOOP;
    OUT:
    activemask.b32 t;
    popc.b32 t, t;
    shl.b32 t, t, 16;
    or.b32 d, d, t;)",
                                a);
  for (size_t k = 0; k < a.size(); ++k) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= a[k] && i != 35; ++i)
      sum += (i & 3) == 3 ? 0 : i;
    ASSERT_EQ(got[k], sum | 32 << 16) << a[k];
  }
}

TEST(Control, LanesReturnEarly) {
  Sim sim;
  uint32_t *out = sim.upload(std::vector<uint32_t>(64, 7));
  // Odd lanes return from a branch; the others see them gone, then sum up.
  must(sim.run(kernelOf(R"(
    .reg .pred p; .reg .b32 t, m; .reg .b64 at;
    and.b32 t, %r_id, 1;
    setp.eq.u32 p, t, 1;
    @p bra GONE;
    setp.gt.u32 p, %r_id, 60;
    @p ret;
    activemask.b32 m;
    mad.wide.u32 at, %r_id, 4, p0;
    st.global.b32 [at], m;
    ret;
    GONE: exit;)",
                        1),
               64, {out}));
  auto got = sim.download(out, 64);
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(got[i], i % 2 || i > 60 ? 7u
                      : i < 32        ? 0x55555555u
                                      : 0x15555555u)
        << i;
}

TEST(Control, LanesMeetPastAnExitThatNobodyTakes) {
  // As LLVM has a switch whose default cannot be.
  auto got = evaluate<uint32_t>("sm_80", R"(
    .reg .pred p, q, r;
    mov.b32 d, 0;
    setp.lt.u32 p, a, 8;
    @p bra MEET;
    setp.lt.u32 q, a, 16;
    @q bra SECOND;
    setp.lt.u32 r, a, 32;
    @r bra MEET;
    bra.uni NEVER;
    SECOND: add.u32 d, d, 1;
    MEET: shfl.sync.bfly.b32 d, d, 8, 31, -1;
    bra.uni END;
    NEVER: exit;
    END:)",
                                iota(32));
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(got[i], i < 8 ? 1u : 0u) << i;
}

TEST(Control, BranchTables) {
  auto a = iota(64);
  for (uint32_t &x : a)
    x = x * 7 % 4;
  auto got = evaluate<uint32_t>("sm_80", R"(
    .reg .b32 m; .reg .pred p;
    mov.b32 d, 0;
    TABLE: .branchtargets A, B, C, B;
    brx.idx a, TABLE;
    A: add.u32 d, d, 1;
    B: add.u32 d, d, 10;
    C: add.u32 d, d, 100;
    activemask.b32 m;
    setp.eq.u32 p, m, -1;
    selp.b32 m, 1000, 0, p;
    add.u32 d, d, m;)",
                                a);
  const uint32_t want[] = {1111, 1110, 1100, 1110};
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(got[i], want[a[i]]) << i;
}

/// A trap that nobody takes is not where lanes meet.
TEST(Control, LanesMeetBesideTraps) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(64);
  for (const char *trap : {"trap;", "@p trap;"}) {
    must(sim.run(kernelOf(std::string(".reg .pred p, q; .reg .b32 v;\n"
                                      ".reg .b64 x;\n"
                                      "mov.b32 v, 1; setp.ne.u32 p, v, v;\n"
                                      "setp.lt.u32 q, %r_id, 8;\n"
                                      "@q bra FEW;\n"
                                      "setp.ge.u32 q, %r_id, 0;\n"
                                      "@q bra OUT;\n") +
                              trap +
                              "\nFEW: mov.b32 v, 2;\n"
                              "OUT: bar.sync 0;\n"
                              "mad.wide.u32 x, %r_id, 4, p0;\n"
                              "st.global.b32 [x], v;",
                          1),
                 64, {out}));
    for (uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(sim.download(out, 64)[i], i < 8 ? 2u : 1u) << trap;
  }
}

TEST(Control, UnreachableCodeAndEndlessLoops) {
  Sim sim("sm_90a", [] {
    SimOptions options;
    options.maxSteps = 1 << 20;
    return options;
  }());
  uint32_t *out = sim.allocate<uint32_t>(1);
  EXPECT_EQ(message(sim.run(kernelOf("LOOP: bra LOOP;\nmov.u32 %r_id, 0;", 1),
                            32, {out})),
            "kernel 'k', line 15 (bra), block (0,0,0): the block does not end: "
            "it took more than 1048576 steps");
  // Warps that wait for each other all the time.
  EXPECT_EQ(
      message(sim.run(kernelOf("LOOP: bar.sync 0;\nbra LOOP;", 1), 64, {out})),
      "kernel 'k', line 16 (bra), block (0,0,0): the block does not end: "
      "it took more than 1048576 steps");
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

TEST(Control, Shuffles) {
  auto a = iota(32);
  for (uint32_t &x : a)
    x += 100;
  auto b = iota(32);
  for (uint32_t &x : b)
    x = x * 5 % 37; // also beyond 31: only five bits count
  struct Mode {
    const char *name;
    uint32_t clamp;
  };
  for (const Mode &mode : {Mode{"up", 0},
                           {"down", 31},
                           {"bfly", 31},
                           {"idx", 31},
                           {"up", 0x1800},
                           {"down", 0x181F},
                           {"bfly", 0x1C1F},
                           {"idx", 0x101F},
                           {"idx", 7}}) {
    std::string code = std::string(".reg .pred p;\n.reg .b32 v, w;\n"
                                   "shfl.sync.") +
                       mode.name + ".b32 v|p, a, b, " +
                       std::to_string(mode.clamp) +
                       ", -1;\nselp.b32 w, 1, 0, p;\nmov.b64 d, {v, w};";
    auto got = evaluate<uint64_t>("sm_80", code, a, b);
    for (int lane = 0; lane < 32; ++lane) {
      int bval = int(b[size_t(lane)] & 31), cval = int(mode.clamp & 31);
      int mask = int(mode.clamp >> 8 & 31);
      int maxLane = (lane & mask) | (cval & ~mask), minLane = lane & mask;
      int j = 0;
      bool valid = false;
      switch (mode.name[0]) {
      case 'u':
        j = lane - bval;
        valid = j >= maxLane;
        break;
      case 'd':
        j = lane + bval;
        valid = j <= maxLane;
        break;
      case 'b':
        j = lane ^ bval;
        valid = j <= maxLane;
        break;
      default:
        j = minLane | (bval & ~mask);
        valid = j <= maxLane;
        break;
      }
      if (!valid)
        j = lane;
      ASSERT_EQ(got[size_t(lane)], uint64_t(valid) << 32 | uint32_t(100 + j))
          << code << lane;
    }
  }
}

TEST(Control, VotesAndMatches) {
  std::vector<uint32_t> a(32);
  for (uint32_t i = 0; i < 32; ++i)
    a[i] = i % 3;
  // Only the low sixteen lanes take part.
  auto run = [&](const std::string &code) {
    return evaluate<uint32_t>("sm_90a",
                              ".reg .pred p, q, r;\nmov.b32 d, 7;\n"
                              "setp.eq.u32 p, a, 0;\n.reg .b32 t;\n"
                              "mov.u32 t, %laneid;\nsetp.lt.u32 r, t, 16;\n" +
                                  code,
                              a);
  };
  uint32_t ballot = 0;
  for (uint32_t i = 0; i < 16; ++i)
    ballot |= uint32_t(a[i] == 0) << i;
  auto check = [&](const std::string &code, auto want) {
    auto got = run(code);
    for (uint32_t i = 0; i < 32; ++i)
      ASSERT_EQ(got[i], i < 16 ? want(i) : 7u) << code << i;
  };
  check("@r vote.sync.ballot.b32 d, p, 0xFFFF;",
        [=](uint32_t) { return ballot; });
  check("@r vote.sync.ballot.b32 d, !p, 0xFFFF;",
        [=](uint32_t) { return ballot ^ 0xFFFF; });
  check("@r vote.sync.any.pred q, p, 0xFFFF;\n@r selp.b32 d, 1, 0, q;",
        [](uint32_t) { return 1u; });
  check("@r vote.sync.all.pred q, p, 0xFFFF;\n@r selp.b32 d, 1, 0, q;",
        [](uint32_t) { return 0u; });
  check("@r vote.sync.uni.pred q, r, 0xFFFF;\n@r selp.b32 d, 1, 0, q;",
        [](uint32_t) { return 1u; });
  check("@r match.any.sync.b32 d, a, 0xFFFF;", [&](uint32_t i) {
    uint32_t mask = 0;
    for (uint32_t j = 0; j < 16; ++j)
      mask |= uint32_t(a[j] == a[i]) << j;
    return mask;
  });
  check("@r match.all.sync.b32 d|q, a, 0xFFFF;", [](uint32_t) { return 0u; });
  check("@r match.all.sync.b32 d, 5, 0xFFFF;",
        [](uint32_t) { return 0xFFFFu; });
  check("@r elect.sync d|q, 0xFFFF;\n@r selp.b32 d, d, 99, q;",
        [](uint32_t i) { return i ? 99u : 0u; });
}

TEST(Control, Reductions) {
  auto a = interesting<uint32_t>(64, 1);
  auto check = [&](const std::string &code, auto f) {
    // Two halves of a warp, each with its own mask.
    auto got = evaluate<uint32_t>("sm_100a",
                                  ".reg .b32 m, l;\n.reg .pred p;\n"
                                  "mov.u32 l, %laneid;\nsetp.lt.u32 p, l, 16;\n"
                                  "selp.b32 m, 0xFFFF, 0xFFFF0000, p;\n" +
                                      code,
                                  a);
    for (size_t i = 0; i < 64; ++i) {
      size_t first = i / 16 * 16;
      uint32_t want = a[first];
      for (size_t j = first + 1; j < first + 16; ++j)
        want = f(want, a[j]);
      ASSERT_EQ(got[i], want) << code;
    }
  };
  using U = uint32_t;
  check("redux.sync.add.u32 d, a, m;", [](U x, U y) { return x + y; });
  check("redux.sync.and.b32 d, a, m;", [](U x, U y) { return x & y; });
  check("redux.sync.or.b32 d, a, m;", [](U x, U y) { return x | y; });
  check("redux.sync.xor.b32 d, a, m;", [](U x, U y) { return x ^ y; });
  check("redux.sync.min.u32 d, a, m;", [](U x, U y) { return std::min(x, y); });
  check("redux.sync.max.u32 d, a, m;", [](U x, U y) { return std::max(x, y); });
  check("redux.sync.min.s32 d, a, m;",
        [](U x, U y) { return U(std::min(int32_t(x), int32_t(y))); });
  check("redux.sync.max.s32 d, a, m;",
        [](U x, U y) { return U(std::max(int32_t(x), int32_t(y))); });
  auto floats = interestingFloats(64, 2);
  floats[3] = 0xFFC00001; // a NaN in each warp
  floats[40] = 0x7F800001;
  auto got =
      evaluate<uint32_t>("sm_100a", "redux.sync.max.abs.f32 d, a, -1;", floats);
  auto nan =
      evaluate<uint32_t>("sm_100a", "redux.sync.min.NaN.f32 d, a, -1;", floats);
  for (size_t warp = 0; warp < 2; ++warp) {
    uint32_t largest = 0;
    for (size_t i = 32 * warp; i < 32 * (warp + 1); ++i) {
      uint32_t magnitude = floats[i] & 0x7FFFFFFF;
      if (magnitude <= 0x7F800000)
        largest = std::max(largest, magnitude);
    }
    EXPECT_EQ(got[32 * warp + 5], largest);
    EXPECT_EQ(nan[32 * warp], 0x7FFFFFFFu);
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// Each thread writes, all wait, each reads what another warp wrote.
TEST(Control, BarriersOrderWarps) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(256);
  must(sim.run(kernelOf(R"(
    .shared .align 4 .b8 tile[1024];
    .reg .b32 at, other, v, i; .reg .b64 to; .reg .pred p;
    mov.b32 i, 0;
    mov.b32 v, %r_id;
    shl.b32 at, %r_id, 2;
    xor.b32 other, at, 992;       // thread ^ 248: of another warp
    ROUND:
    st.shared.b32 [at], v;
    bar.sync 0;
    ld.shared.b32 v, [other];
    barrier.cta.sync.aligned 1;
    add.u32 v, v, 1;
    add.u32 i, i, 1;
    setp.lt.u32 p, i, 5;
    @p bra ROUND;
    mad.wide.u32 to, %r_id, 4, p0;
    st.global.b32 [to], v;)",
                        1),
               256, {out}));
  auto got = sim.download(out, 256);
  for (uint32_t i = 0; i < 256; ++i)
    EXPECT_EQ(got[i], (i ^ 248) + 5) << i;
  EXPECT_EQ(sim.kernel->counters().barriers, 2u * 5 * 8);
}

TEST(Control, BarriersOfSomeWarps) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(128);
  // Warps 0 and 1 produce (arrive), 2 and 3 consume (sync); all four are
  // counted.
  must(sim.run(kernelOf(R"(
    .shared .align 4 .b8 tile[256];
    .reg .b32 at, v; .reg .b64 to; .reg .pred p;
    setp.ge.u32 p, %r_id, 64;
    @p bra CONSUME;
    shl.b32 at, %r_id, 2;
    mul.lo.u32 v, %r_id, 3;
    st.shared.b32 [at], v;
    bar.arrive 3, 128;
    bra END;
    CONSUME:
    bar.sync 3, 128;
    sub.u32 at, 127, %r_id;
    shl.b32 at, at, 2;
    ld.shared.b32 v, [at];
    END:
    mad.wide.u32 to, %r_id, 4, p0;
    st.global.b32 [to], v;)",
                        1),
               128, {out}));
  auto got = sim.download(out, 128);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(got[i], i < 64 ? 3 * i : 3 * (127 - i)) << i;
}

TEST(Control, BarriersReduce) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(96);
  must(sim.run(kernelOf(R"(
    .reg .b32 n, v; .reg .b64 to; .reg .pred p, q;
    setp.lt.u32 p, %r_id, 50;
    bar.red.popc.u32 n, 2, p;
    bar.red.and.pred q, 2, 96, p;
    selp.b32 v, 1000, 0, q;
    add.u32 n, n, v;
    bar.red.or.pred q, 2, !p;
    selp.b32 v, 2000, 0, q;
    add.u32 n, n, v;
    mad.wide.u32 to, %r_id, 4, p0;
    st.global.b32 [to], n;)",
                        1),
               96, {out}));
  EXPECT_EQ(sim.download(out, 96), std::vector<uint32_t>(96, 2050));
}

/// Warps that have returned are not waited for.
TEST(Control, BarriersForgetWarpsThatReturn) {
  Sim sim;
  uint32_t *out = sim.upload(std::vector<uint32_t>(96, 0));
  must(sim.run(kernelOf(R"(
    .reg .pred p; .reg .b64 to;
    setp.ge.u32 p, %r_id, 64;
    @!p bar.sync 0;
    @p ret;
    mad.wide.u32 to, %r_id, 4, p0;
    st.global.b32 [to], %r_id;)",
                        1),
               96, {out}));
  auto got = sim.download(out, 96);
  for (uint32_t i = 0; i < 96; ++i)
    EXPECT_EQ(got[i], i < 64 ? i : 0);
}

/// A warp that spins on what another one writes gets out.
TEST(Control, WarpsTakeTurns) {
  Sim sim;
  uint32_t *out = sim.upload(std::vector<uint32_t>(1, 0));
  must(sim.run(kernelOf(R"(
    .reg .pred p; .reg .b32 v;
    setp.ge.u32 p, %r_id, 32;
    @p bra WRITE;
    SPIN:
    ld.volatile.global.b32 v, [p0];
    setp.eq.u32 p, v, 0;
    @p bra SPIN;
    ret;
    WRITE: st.volatile.global.b32 [p0], 1;)",
                        1),
               64, {out}));
  EXPECT_EQ(sim.download(out, 1)[0], 1u);
}

TEST(Control, SpecialRegisters) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(8);
  must(sim.run(kernelOf(R"(
    .reg .pred p, q; .reg .b32 v, w; .reg .b64 c, e;
    setp.ne.u32 p, %r_id, 197;
    @p ret;
    mov.u32 v, %laneid; st.global.b32 [p0], v;
    mov.u32 v, %warpid; st.global.b32 [p0+4], v;
    mov.u32 v, %nctaid.x; st.global.b32 [p0+8], v;
    mov.u32 v, %lanemask_lt; st.global.b32 [p0+12], v;
    mov.u32 v, %lanemask_ge; st.global.b32 [p0+16], v;
    mov.u32 v, %ctaid.x; st.global.b32 [p0+20], v;
    mov.u64 c, %clock64;
    mov.u32 w, WARP_SZ; st.global.b32 [p0+24], w;
    mov.u64 e, %clock64;
    sub.u64 c, e, c;
    cvt.u32.u64 v, c; st.global.b32 [p0+28], v;)",
                        1),
               128, {out}, {3, 1, 1}));
  auto got = sim.download(out, 8);
  got[7] = got[7] > 0;
  EXPECT_EQ(got, (std::vector<uint32_t>{5, 2, 3, 0x1F, 0xFFFFFFE0, 1, 32, 1}));
}

} // namespace
