// Kernels with planted faults, each found and told.
#include "SimTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

/// Addresses replaced by <a>.
std::string hideAddress(std::string text) {
  for (size_t at = 0; (at = text.find("0x", at)) != std::string::npos;) {
    size_t end = text.find_first_not_of("0123456789abcdef", at + 2);
    end = std::min(end, text.size());
    if (end - at > 10)
      text.replace(at, end - at, "<a>");
    else
      at = end;
  }
  return text;
}

/// Lines counted from the one after `first`.
std::string linesFrom(int first, std::string text) {
  for (size_t at = 0; (at = text.find("line ", at)) != std::string::npos;) {
    at += 5;
    size_t end = text.find_first_not_of("0123456789", at);
    text.replace(at, end - at,
                 std::to_string(std::stoi(text.substr(at, end - at)) - first));
  }
  return text;
}

/// The error of a kernel with one buffer of 32 words for each of two
/// parameters, with addresses replaced by <a>.
std::string faultOf(const std::string &body, uint32_t threads = 32,
                    SimOptions options = everything(),
                    const std::string &target = "sm_90a") {
  Sim sim(target, options);
  std::vector<uint32_t> data(32, 1);
  uint32_t *in = sim.upload(data), *out = sim.allocate<uint32_t>(32);
  std::string text =
      message(sim.run(kernelOf(body, 2, target), threads, {in, out}));
  text = hideAddress(text);
  // Those of the declarations below.
  return linesFrom(16, text);
}

const std::string declare =
    ".reg .b64 x, y; .reg .b32 v<9>, s, t; .reg .pred p, q; .reg .b16 h; "
    ".shared .align 16 .b8 tile[4224];\n";

const std::string ours = "kernel 'k', line ";

//===----------------------------------------------------------------------===//
// Bounds and alignment, which are always checked
//===----------------------------------------------------------------------===//

TEST(Fault, OnePastTheEnd) {
  EXPECT_EQ(faultOf(declare + "mad.lo.u64 x, %rd_id, 4, p0;\n"
                              "ld.global.b32 v0, [x+4];",
                    32, SimOptions()),
            ours + "3 (ld.global.b32), block (0,0,0), thread (31,0,0): reads 4 "
                   "bytes at <a>, 0 bytes past the end of an allocation of 128 "
                   "bytes");
  EXPECT_EQ(faultOf(declare + "mad.lo.u64 x, %rd_id, 4, p0;\n"
                              "ld.global.b32 v0, [x+-4];",
                    32, SimOptions()),
            ours + "3 (ld.global.b32), block (0,0,0), thread (0,0,0): reads 4 "
                   "bytes at <a>, 4 bytes before an allocation of 128 bytes");
  EXPECT_EQ(faultOf(declare + "mad.lo.u64 x, %rd_id, 16, p1;\n"
                              "st.global.v2.b32 [x+8], {%r_id, %r_id};"),
            ours + "3 (st.global.v2.b32), block (0,0,0), thread (8,0,0): "
                   "writes 8 bytes at <a>, 8 bytes past the end of an "
                   "allocation of 128 bytes");
  // An access that begins inside.
  EXPECT_EQ(faultOf(declare + "add.u64 x, p0, 126;\nld.global.u8 v0, [x];\n"
                              "ld.global.u8 v0, [x+1];\n"
                              "ld.global.u8 v0, [x+2];"),
            ours + "5 (ld.global.u8), block (0,0,0), thread (0,0,0): reads 1 "
                   "bytes at <a>, 0 bytes past the end of an allocation of 128 "
                   "bytes");
}

TEST(Fault, PointersOfOthers) {
  EXPECT_EQ(faultOf(declare + "ld.global.b32 v0, [256];"),
            ours + "2 (ld.global.b32), block (0,0,0), thread (0,0,0): reads 4 "
                   "bytes at 0x100, which is not memory of the device");
  Sim sim, other;
  uint32_t *foreign = other.upload(std::vector<uint32_t>(4, 1));
  uint32_t host = 1;
  for (void *pointer :
       {static_cast<void *>(foreign), static_cast<void *>(&host),
        static_cast<void *>(nullptr)})
    EXPECT_NE(message(sim.run(kernelOf("red.global.add.u32 [p0], 1;", 1), 32,
                              {pointer}))
                  .find("is not memory of the device"),
              std::string::npos);
  uint32_t *gone = sim.upload(std::vector<uint32_t>(4, 1));
  must(sim.device->release(gone));
  EXPECT_NE(
      message(sim.run(kernelOf("red.global.add.u32 [p0], 1;", 1), 32, {gone}))
          .find("updates 4 bytes"),
      std::string::npos);
}

/// There is no atomic operation on a byte: it takes the word that holds it.
TEST(Fault, AtomicsTakeTheRestOfTheLastWord) {
  for (bool atomic : {true, false}) {
    Sim sim;
    uint8_t *bytes = sim.allocate<uint8_t>(5);
    std::string text =
        message(sim.run(kernelOf(atomic ? "red.global.or.b32 [p0+4], 1;\n"
                                          "red.global.or.b32 [p0+8], 1;"
                                        : "st.global.b32 [p0+4], 1;",
                                 1),
                        1, {bytes}));
    EXPECT_NE(text.find(atomic ? "line 16 (red" : "line 15 (st"),
              std::string::npos)
        << text;
  }
}

TEST(Fault, MisalignedVector) {
  EXPECT_EQ(faultOf(declare + "mad.lo.u64 x, %rd_id, 4, p0;\n"
                              "setp.lt.u32 p, %r_id, 2;\n"
                              "@p ld.global.v2.b32 {v0, v1}, [x];",
                    32, SimOptions()),
            ours + "4 (ld.global.v2.b32), block (0,0,0), thread (1,0,0): reads "
                   "8 bytes at <a>, byte 4 of an allocation of 128 bytes: the "
                   "address is not a multiple of 8");
  EXPECT_EQ(faultOf(declare + "shl.b32 s, %r_id, 3;\n"
                              "st.shared.v4.b32 [s], {s, s, s, s};"),
            ours + "3 (st.shared.v4.b32), block (0,0,0), thread (1,0,0): "
                   "writes 16 bytes at 0x8 of the shared space, of 4224 bytes: "
                   "the address is not a multiple of 16");
}

TEST(Fault, SharedAndOtherSpacesEnd) {
  EXPECT_EQ(faultOf(declare + "shl.b32 s, %r_id, 2;\n"
                              "st.shared.b32 [s+4100], s;"),
            ours + "3 (st.shared.b32), block (0,0,0), thread (31,0,0): writes "
                   "4 bytes at 0x1080 of the shared space, of 4224 bytes");
  EXPECT_EQ(faultOf(declare + "ld.shared.b32 v0, [tile+-4];"),
            ours + "2 (ld.shared.b32), block (0,0,0), thread (0,0,0): reads 4 "
                   "bytes at <a> of the shared space, of 4224 "
                   "bytes");
  EXPECT_EQ(faultOf(declare + ".local .align 4 .b8 own[4];\n"
                              "ld.local.b64 x, [own];"),
            ours + "3 (ld.local.b64), block (0,0,0), thread (0,0,0): reads 8 "
                   "bytes at 0x0 of the local space, of 4 bytes");
  EXPECT_EQ(faultOf(declare + "ld.param.b64 x, [k_1+8];"),
            ours + "2 (ld.param.b64), block (0,0,0), thread (0,0,0): reads 8 "
                   "bytes at 0x10 of the param space, of 16 bytes");
}

//===----------------------------------------------------------------------===//
// Barriers and warps
//===----------------------------------------------------------------------===//

TEST(Fault, BarrierInADivergentBranch) {
  EXPECT_EQ(faultOf(declare + "setp.lt.u32 p, %r_id, 8;\n@!p bra OUT;\n"
                              "bar.sync 0;\nOUT:",
                    64, SimOptions()),
            ours + "4 (bar.sync), block (0,0,0), thread (8,0,0): the thread is "
                   "not at the barrier that others of its warp are at (0xff of "
                   "0xffffffff)");
  // One warp of two.
  EXPECT_EQ(faultOf(declare + "setp.lt.u32 p, %r_id, 32;\n@!p bra OUT;\n"
                              "bar.sync 0;\nOUT: bar.sync 1;",
                    64, SimOptions()),
            ours + "4 (bar.sync), block (0,0,0): barrier 0 is never complete: "
                   "32 threads have arrived, 2 warps wait and 0 have returned, "
                   "others at barrier 1 (line 5)");
  EXPECT_EQ(faultOf(declare + "bar.sync 3, 64;", 32, SimOptions()),
            ours + "2 (bar.sync), block (0,0,0): barrier 3 is never complete: "
                   "32 threads have arrived of 64, 1 warps wait and 0 have "
                   "returned");
  EXPECT_EQ(faultOf(declare + "bar.sync 16;", 32, SimOptions()),
            ours + "2 (bar.sync), block (0,0,0): barrier 16, expected 0 to 15");
  EXPECT_EQ(faultOf(declare + "bar.sync 1, 48;", 32, SimOptions()),
            ours + "2 (bar.sync), block (0,0,0): a barrier for 48 threads, "
                   "expected a multiple of 32");
  EXPECT_EQ(
      faultOf(declare + "shr.u32 s, %r_id, 4;\nbar.sync s;", 32, SimOptions()),
      ours + "3 (bar.sync), block (0,0,0), thread (16,0,0): threads of a "
             "warp name other barriers");
}

TEST(Fault, WarpsThatAreNotWhole) {
  std::string half = declare + "setp.lt.u32 p, %r_id, 16;\n@!p bra OUT;\n";
  EXPECT_EQ(faultOf(half + "shfl.sync.bfly.b32 v0, %r_id, 1, 31, -1;\nOUT:", 32,
                    SimOptions()),
            ours + "4 (shfl.sync.bfly.b32), block (0,0,0), thread (0,0,0): "
                   "waits for lanes 0xffff0000 of its mask 0xffffffff, which "
                   "are elsewhere");
  EXPECT_EQ(faultOf(half + "shfl.sync.bfly.b32 v0, %r_id, 1, 31, 0xFF;\nOUT:",
                    32, SimOptions()),
            ours + "4 (shfl.sync.bfly.b32), block (0,0,0), thread (8,0,0): the "
                   "thread is not a member of its mask 0xff");
  EXPECT_EQ(faultOf(half + "bar.warp.sync -1;\nOUT:", 32, SimOptions()),
            ours + "4 (bar.warp.sync), block (0,0,0), thread (0,0,0): waits "
                   "for lanes 0xffff0000 of its mask 0xffffffff, which are "
                   "elsewhere");
  // From a lane that does not take part.
  EXPECT_EQ(
      faultOf(half + "shfl.sync.bfly.b32 v0, %r_id, 16, 31, 0xFFFF;\nOUT:"),
      ours + "4 (shfl.sync.bfly.b32), block (0,0,0), thread (0,0,0): takes the "
             "value of lane 16, which is not a member or has returned");
  EXPECT_EQ(
      faultOf(half + "shfl.sync.bfly.b32 v0, %r_id, 8, 31, 0xFFFF;\nOUT:"), "");
}

TEST(Fault, Traps) {
  EXPECT_EQ(faultOf(declare + "setp.eq.u32 p, %r_id, 9;\n@p trap;"),
            ours + "3 (trap), block (0,0,0), thread (9,0,0): the kernel traps");
}

//===----------------------------------------------------------------------===//
// What was not written
//===----------------------------------------------------------------------===//

TEST(Fault, ReadsOfWhatWasNotWritten) {
  EXPECT_EQ(faultOf(declare + "mad.lo.u64 x, %rd_id, 4, p1;\n"
                              "setp.lt.u32 p, %r_id, 20;\n"
                              "@p st.global.b32 [x], 1;\n"
                              "@p ld.global.b32 v0, [x];\n"
                              "ld.global.b32 v0, [x];"),
            ours + "6 (ld.global.b32), block (0,0,0), thread (20,0,0): reads "
                   "<a>, byte 80 of an allocation of 128 bytes, which was not "
                   "written");
  EXPECT_EQ(faultOf(declare + "shl.b32 s, %r_id, 2;\nst.shared.b16 [s], 1;\n"
                              "bar.sync 0;\nld.shared.b32 v0, [s];"),
            ours + "5 (ld.shared.b32), block (0,0,0), thread (0,0,0): reads "
                   "0x2 of the shared space, of 4224 bytes, which was not "
                   "written");
  EXPECT_EQ(faultOf(declare + "add.u32 v0, v1, 1;"),
            ours + "2 (add.u32), block (0,0,0), thread (0,0,0): reads register "
                   "v1, which was not written");
  EXPECT_EQ(faultOf(declare + "setp.lt.u32 p, %r_id, 5;\n"
                              "@p mov.b32 v1, 1;\n@p add.u32 v0, v1, 1;\n"
                              "st.global.b32 [p1], v0;"),
            ours + "5 (st.global.b32), block (0,0,0), thread (5,0,0): reads "
                   "register v0, which was not written");
  // A pair of which one half is of no use may be packed, and only that.
  std::string pair = declare + ".reg .b64 w, u;\nmov.b32 v0, 1;\n"
                               "mov.b64 w, {v0, v1};\n";
  EXPECT_EQ(faultOf(pair + "mov.b64 {v0, _}, w;\nst.global.b32 [p1], v0;"), "");
  EXPECT_EQ(faultOf(pair + "mov.b64 {v0, v1}, w;\nst.global.b32 [p1], v0;"),
            "");
  EXPECT_EQ(faultOf(pair + "mov.b64 {_, v0}, w;\nst.global.b32 [p1], v0;"),
            ours + "6 (st.global.b32), block (0,0,0), thread (0,0,0): reads "
                   "register v0, which was not written");
  EXPECT_EQ(faultOf(pair + "mov.b64 u, w;\n"),
            ours + "5 (mov.b64), block (0,0,0), thread (0,0,0): reads register "
                   "w, which was not written");
  // Arithmetic on pairs is checked by halves as well.
  auto onPair = [&](const std::string &read) {
    return faultOf(pair + "add.rn.f32x2 u, w, w;\n" + read +
                       "\nst.global.b32 [p1], v0;",
                   32, everything(), "sm_100a");
  };
  EXPECT_EQ(onPair("mov.b64 {v0, _}, u;"), "");
  EXPECT_EQ(onPair("mov.b64 {_, v0}, u;"),
            ours + "7 (st.global.b32), block (0,0,0), thread (0,0,0): reads "
                   "register v0, which was not written");
  EXPECT_EQ(faultOf(declare + "@p mov.b32 v1, 1;"),
            ours + "2 (mov.b32), block (0,0,0), thread (0,0,0): reads register "
                   "p, which was not written");
  // Not what the default looks for.
  EXPECT_EQ(faultOf(declare + "ld.global.b32 v0, [p1];\nadd.u32 v0, v1, 1;", 32,
                    SimOptions()),
            "");
}

TEST(Fault, OutputsThatAreNotWritten) {
  Sim sim("sm_90a", everything());
  uint32_t *out = sim.allocate<uint32_t>(100);
  must(sim.run(kernelOf(".reg .b64 x; .reg .pred p;\n"
                        "setp.ge.u32 p, %r_id, 97;\n@p ret;\n"
                        "mad.lo.u64 x, %rd_id, 4, p0;\n"
                        "st.global.b32 [x], %r_id;",
                        1),
               128, {out}));
  EXPECT_EQ(must(sim.device->firstUnwritten(out, 400)), 97u * 4);
  EXPECT_EQ(must(sim.device->firstUnwritten(out, 388)), 388u);
  EXPECT_EQ(must(sim.device->firstUnwritten(out + 97, 12)), 0u);
  EXPECT_NE(message(sim.device->firstUnwritten(out + 97, 13)), "no error");
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

/// A transpose of 32 x 32 words through shared memory by eight warps.
std::string transpose(bool barrier) {
  return declare + R"(
    mad.lo.u32 s, %r_id, 4, 0;
    mov.b32 v0, 0;
    STORE:
    mad.lo.u32 t, v0, 1024, s;
    st.shared.b32 [t], t;
    add.u32 v0, v0, 1;
    setp.lt.u32 p, v0, 4;
    @p bra STORE;
    )" + (barrier ? "bar.sync 0;" : "") +
         R"(
    shr.u32 v1, %r_id, 5;
    and.b32 v2, %r_id, 31;
    mul.lo.u32 v2, v2, 128;
    mad.lo.u32 v2, v1, 4, v2;
    ld.shared.b32 v3, [v2];)";
}

TEST(Fault, RacyTranspose) {
  EXPECT_EQ(faultOf(transpose(true), 256), "");
  // The first warp runs first: what it reads in row 8 another of its lanes has
  // written.
  SimOptions races;
  races.checkRaces = true;
  EXPECT_EQ(faultOf(transpose(false), 256, races),
            ours + "16 (ld.shared.b32), block (0,0,0), thread (8,0,0): reads "
                   "0x400 of the shared space, of 4224 bytes, which thread "
                   "(0,0,0) has written in line 7 with no barrier in between");
}

TEST(Fault, MissingBarrierOfARing) {
  // Write, barrier, read the neighbour's, and write again without waiting.
  auto body = [](bool second) {
    return declare + R"(
    shl.b32 s, %r_id, 2;
    st.shared.b32 [s], s;
    bar.sync 0;
    xor.b32 t, s, 128;
    ld.shared.b32 v0, [t];
    )" + (second ? "bar.sync 0;" : "") +
           R"(
    st.shared.b32 [s], v0;)";
  };
  EXPECT_EQ(faultOf(body(true), 64), "");
  // The second warp arrives last and goes on at once.
  EXPECT_EQ(faultOf(body(false), 64),
            ours + "7 (ld.shared.b32), block (0,0,0), thread (0,0,0): reads "
                   "0x80 of the shared space, of 4224 bytes, which thread "
                   "(32,0,0) has written in line 9 with no barrier in between");
}

TEST(Fault, LanesOfAWarpNeedBarriersToo) {
  auto body = [](const std::string &sync) {
    return declare + "shl.b32 s, %r_id, 2;\nst.shared.b32 [s], s;\n" + sync +
           "\nxor.b32 t, s, 4;\nld.shared.b32 v0, [t];";
  };
  EXPECT_EQ(faultOf(body("bar.warp.sync -1;")), "");
  EXPECT_EQ(faultOf(body("bar.sync 0;")), "");
  EXPECT_EQ(faultOf(body("")),
            ours + "6 (ld.shared.b32), block (0,0,0), thread (0,0,0): reads "
                   "0x4 of the shared space, of 4224 bytes, which thread "
                   "(1,0,0) has written in line 3 with no barrier in between");
}

TEST(Fault, SameWordRaces) {
  // Different values, in one instruction and in two warps; the same value.
  EXPECT_EQ(faultOf(declare + "st.shared.b32 [tile], %r_id;"),
            ours + "2 (st.shared.b32), block (0,0,0), thread (1,0,0): writes "
                   "0x0 of the shared space, of 4224 bytes, which thread "
                   "(0,0,0) has written in line 2 with no barrier in between");
  EXPECT_EQ(faultOf(declare + "st.shared.b32 [tile], 5;", 64), "");
  EXPECT_EQ(faultOf(declare + "st.shared.b32 [tile], 0;\nbar.sync 0;\n"
                              "red.shared.add.u32 [tile], %r_id;",
                    64),
            "");
  EXPECT_EQ(faultOf(declare + "st.shared.b32 [tile], 0;\nbar.sync 0;\n"
                              "red.shared.add.u32 [tile], 1;\n"
                              "ld.shared.b32 v0, [tile];",
                    64),
            ours + "5 (ld.shared.b32), block (0,0,0), thread (32,0,0): reads "
                   "0x0 of the shared space, of 4224 bytes, which thread "
                   "(63,0,0) has updated in line 4 with no barrier in between");
}

/// Named barriers order only the warps that take part.
TEST(Fault, BarriersOrderThoseWhoWait) {
  auto body = [](const std::string &late) {
    return declare + R"(
    setp.ge.u32 p, %r_id, 64;
    shl.b32 s, %r_id, 2;
    @p bra THIRD;
    st.shared.b32 [s], s;
    bar.sync 1, 64;
    xor.b32 t, s, 128;
    ld.shared.b32 v0, [t];
    bra END;
    THIRD:
    )" + late +
           "\nEND:";
  };
  EXPECT_EQ(faultOf(body(""), 96), "");
  SimOptions races;
  races.checkRaces = true;
  EXPECT_EQ(faultOf(body("ld.shared.b32 v0, [tile];"), 96, races),
            ours + "12 (ld.shared.b32), block (0,0,0), thread (64,0,0): reads "
                   "0x0 of the shared space, of 4224 bytes, which thread "
                   "(0,0,0) has written in line 6 with no barrier in between");
  // Arrivals give, and do not take.
  auto arrive = [](bool swap) {
    std::string a = "bar.arrive 2, 64;", b = "bar.sync 2, 64;";
    return declare +
           "setp.ge.u32 p, %r_id, 32;\n@p bra SECOND;\n"
           "st.shared.b32 [tile], 5;\n" +
           (swap ? b : a) + "\nbra END;\nSECOND:\n" + (swap ? a : b) +
           "\nld.shared.b32 v0, [tile];\nEND:";
  };
  EXPECT_EQ(faultOf(arrive(false), 64, races), "");
  EXPECT_NE(faultOf(arrive(true), 64, races), "");
}

//===----------------------------------------------------------------------===//
// Races in global memory
//===----------------------------------------------------------------------===//

/// The error of a kernel with 4 KB of memory, of `blocks` blocks.
std::string raceOf(const std::string &body, uint32_t threads,
                   int64_t blocks = 1) {
  Sim sim("sm_90a", onlyRaces());
  auto *data = sim.upload(std::vector<uint32_t>(1024, 1));
  std::string text = message(
      sim.run(kernelOf(".reg .b64 x; .reg .b32 v, b; .reg .b16 h; .reg .pred "
                       "p;\nmov.u32 b, %ctaid.x;\n" +
                           body,
                       1),
              threads, {data}, {blocks, 1, 1}));
  size_t at = text.find("block (");
  text = at == std::string::npos ? text : hideAddress(text.substr(at));
  return linesFrom(16, text);
}

/// Each thread writes its word of x and reads that of the next warp.
TEST(Fault, WarpsNeedABarrierForGlobalMemory) {
  auto body = [](const std::string &between) {
    return "mad.lo.u64 x, %rd_id, 4, p0;\nst.global.b32 [x], %r_id;\n" +
           between +
           "\nxor.b32 v, %r_id, 32;\nmad.wide.u32 x, v, 4, p0;\n"
           "ld.global.b32 v, [x];";
  };
  EXPECT_EQ(raceOf(body("bar.sync 0;"), 64), "");
  EXPECT_EQ(raceOf(body(""), 64),
            "block (0,0,0), thread (32,0,0): writes <a>, byte 128 of an "
            "allocation of 4096 bytes, which thread (0,0,0) has read in line 6 "
            "with no barrier in between");
  // A barrier of the lanes of a warp is none between warps.
  EXPECT_NE(raceOf(body("bar.warp.sync -1;"), 64), "");
  // A load, then a store by another warp.
  auto later = [](const std::string &between) {
    return "mad.lo.u64 x, %rd_id, 4, p0;\nld.global.b32 v, [x];\n" + between +
           "\nxor.b32 v, %r_id, 32;\nmad.wide.u32 x, v, 4, p0;\n"
           "st.global.b32 [x], v;";
  };
  EXPECT_EQ(raceOf(later("bar.sync 0;"), 64), "");
  EXPECT_EQ(raceOf(later(""), 64),
            "block (0,0,0), thread (32,0,0): reads <a>, byte 128 of an "
            "allocation of 4096 bytes, which thread (0,0,0) has written in "
            "line 6 with no barrier in between");
}

TEST(Fault, LanesNeedABarrierForGlobalMemory) {
  auto body = [](const std::string &between) {
    return "mad.lo.u64 x, %rd_id, 4, p0;\nst.global.b32 [x], %r_id;\n" +
           between +
           "\nxor.b32 v, %r_id, 1;\nmad.wide.u32 x, v, 4, p0;\n"
           "st.global.b32 [x], 77;";
  };
  EXPECT_EQ(raceOf(body("bar.warp.sync -1;"), 32), "");
  EXPECT_EQ(raceOf(body(""), 32),
            "block (0,0,0), thread (0,0,0): writes <a>, byte 4 of an "
            "allocation of 4096 bytes, which thread (1,0,0) has written in "
            "line 2 with no barrier in between");
}

/// Bytes of a word, by an access of bytes after one of a vector.
TEST(Fault, RacesAreOfBytes) {
  auto bytes = [](const std::string &address) {
    return "add.u64 x, %rd_id, p0;\nst.global.u8 [x], 7;\n"
           "setp.lt.u32 p, %r_id, 32;\n@p bra END;\n" +
           address + "\nEND:";
  };
  // The second warp's own byte, and the last of the first warp's.
  EXPECT_EQ(raceOf(bytes("ld.global.u8 v, [x];"), 64), "");
  EXPECT_EQ(raceOf(bytes("st.global.u8 [x+1], 9;"), 33), "");
  EXPECT_EQ(raceOf(bytes("ld.global.u8 v, [x+-1];"), 33),
            "block (0,0,0), thread (32,0,0): reads <a>, byte 31 of an "
            "allocation of 4096 bytes, which thread (31,0,0) has written in "
            "line 2 with no barrier in between");
  // A vector of the first warp, then one byte of it by the second.
  std::string vector = "setp.ge.u32 p, %r_id, 32;\n@p bra BYTE;\n"
                       "mad.lo.u64 x, %rd_id, 32, p0;\n"
                       "st.global.v4.b32 [x], {%r_id, 9, 9, 9};\nbra END;\n"
                       "BYTE:\nsetp.ne.u32 p, %r_id, 40;\n@p bra END;\n"
                       "st.global.u8 [p0+";
  EXPECT_EQ(raceOf(vector + "63], 1;\nEND:", 64), "");
  EXPECT_EQ(raceOf(vector + "47], 1;\nEND:", 64),
            "block (0,0,0), thread (40,0,0): writes <a>, byte 47 of an "
            "allocation of 4096 bytes, which thread (1,0,0) has written in "
            "line 4 with no barrier in between");
}

/// Stores of the value that is there, atomics, and what a thread does alone.
TEST(Fault, WhatIsNoRaceInABlock) {
  EXPECT_EQ(raceOf("st.global.b32 [p0], 5;", 64), "");
  EXPECT_NE(raceOf("st.global.b32 [p0], %r_id;", 64), "");
  EXPECT_EQ(raceOf("red.global.add.u32 [p0], %r_id;\n"
                   "atom.global.max.u32 v, [p0], %r_id;",
                   64),
            "");
  EXPECT_EQ(raceOf("mad.lo.u64 x, %rd_id, 4, p0;\nld.global.b32 v, [x];\n"
                   "add.u32 v, v, 1;\nst.global.b32 [x], v;\n"
                   "red.global.add.u32 [x], 1;\nld.global.u8 h, [x+3];\n"
                   "st.global.b16 [x+2], h;",
                   64, 4),
            "");
  // All warps read, one writes after a barrier.
  EXPECT_EQ(raceOf("ld.global.b32 v, [p0];\nbar.sync 0;\n"
                   "setp.ne.u32 p, %r_id, 70;\n@p bra END;\n"
                   "st.global.b32 [p0], %r_id;\nEND:",
                   96),
            "");
  // Those of the last warp were after the barrier.
  EXPECT_EQ(raceOf("setp.ge.u32 p, %r_id, 64;\n@p bra LATE;\n"
                   "ld.global.b32 v, [p0];\nLATE: bar.sync 0;\n"
                   "@!p bra WRITE;\nld.global.b32 v, [p0];\nbra END;\n"
                   "WRITE: setp.ne.u32 p, %r_id, 1;\n@p bra END;\n"
                   "st.global.b32 [p0], %r_id;\nEND:",
                   96),
            "block (0,0,0), thread (1,0,0): writes <a>, byte 0 of an "
            "allocation of 4096 bytes, which thread (64,0,0) has read in line "
            "6 with no barrier in between");
}

TEST(Fault, BlocksHaveNoOrder) {
  // The word of the block, and that of the one before it.
  const std::string own = "mad.wide.u32 x, b, 4, p0;\n";
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_EQ(raceOf(own + "st.global.b32 [x], b;", 1, 600), "");
    EXPECT_EQ(
        raceOf(own + "ld.global.b32 v, [x];\nst.global.b32 [x+4], 1;", 1, 600),
        "block (1,0,0), thread (0,0,0): reads <a>, byte 4 of an "
        "allocation of 4096 bytes, which thread (0,0,0) of block (0,0,0) "
        "has written in line 3; blocks have no order");
    // The later block reads what the earlier one writes, and the other way.
    EXPECT_EQ(raceOf(own + "setp.ne.u32 p, b, 7;\n@p ld.global.b32 v, [x];\n"
                           "@!p st.global.b32 [x+8], 1;",
                     1, 600),
              "block (9,0,0), thread (0,0,0): reads <a>, byte 36 of an "
              "allocation of 4096 bytes, which thread (0,0,0) of block (7,0,0) "
              "has written in line 4; blocks have no order");
    EXPECT_EQ(raceOf(own + "setp.ne.u32 p, b, 7;\n@p ld.global.b32 v, [x];\n"
                           "@!p st.global.b32 [x+-8], 1;",
                     1, 600),
              "block (7,0,0), thread (0,0,0): writes <a>, byte 20 of an "
              "allocation of 4096 bytes, which thread (0,0,0) of block (5,0,0) "
              "has read in line 3; blocks have no order");
  }
  // Not even stores of one value.
  EXPECT_NE(raceOf("st.global.b32 [p0], 1;", 1, 2), "");
  EXPECT_EQ(raceOf("ld.global.b32 v, [p0];", 64, 100), "");
  EXPECT_EQ(raceOf("red.global.add.u32 [p0], 1;", 64, 100), "");
  EXPECT_EQ(raceOf("red.global.add.u32 [p0], 1;\nbar.warp.sync -1;\n"
                   "ld.global.b32 v, [p0];",
                   32, 2),
            "block (1,0,0), thread (31,0,0): updates <a>, byte 0 of an "
            "allocation of 4096 bytes, which thread (31,0,0) of block (0,0,0) "
            "has read and updated in line 1; blocks have no order");
  // Bytes of a word that an atomic and, or an atomic or, leaves as they are.
  const std::string shared = "setp.ne.u32 p, b, 0;\n@p bra BYTE;\n"
                             "red.global.and.b32 [p0], 0xFFFF0FFF;\n"
                             "red.global.or.b32 [p0], 0x3000;\nbra END;\n";
  EXPECT_EQ(raceOf(shared + "BYTE: st.global.u8 [p0], 1;\n"
                            "st.global.u8 [p0+2], 1;\nEND:",
                   1, 2),
            "");
  EXPECT_NE(raceOf(shared + "BYTE: st.global.u8 [p0+1], 1;\nEND:", 1, 2), "");
  // Neighbouring bytes, and the halves of one.
  EXPECT_EQ(raceOf("mad.wide.u32 x, b, 1, p0;\nst.global.u8 [x], 1;", 1, 64),
            "");
  EXPECT_NE(raceOf("shr.u32 v, b, 1;\nmad.wide.u32 x, v, 1, p0;\n"
                   "ld.global.u8 h, [x];\nst.global.u8 [x], h;",
                   1, 64),
            "");
  // A vector in one block, a byte of it in another.
  EXPECT_EQ(raceOf("setp.ne.u32 p, b, 0;\n@p bra BYTE;\n"
                   "st.global.v4.b32 [p0], {b, b, b, b};\nbra END;\n"
                   "BYTE: ld.global.u8 v, [p0+13];\nEND:",
                   1, 2),
            "block (1,0,0), thread (0,0,0): reads <a>, byte 13 of an "
            "allocation of 4096 bytes, which thread (0,0,0) of block (0,0,0) "
            "has written in line 3; blocks have no order");
}

TEST(Fault, StrongAccessesOfBlocks) {
  // The first block stores, the others wait for it: every word is its own flag.
  auto waits = [](const std::string &load, const std::string &store) {
    return "setp.ne.u32 p, b, 0;\n@p bra WAIT;\n" + store +
           " [p0], 7;\nbra END;\nWAIT: " + load +
           " v, [p0];\nsetp.ne.u32 p, v, 7;\n@p bra WAIT;\nEND:";
  };
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_EQ(
        raceOf(waits("ld.relaxed.gpu.global.b32", "st.relaxed.gpu.global.b32"),
               1, 600),
        "");
  for (const char *load :
       {"ld.acquire.sys.global.b32", "ld.volatile.global.b32",
        "ld.acquire.gpu.global.b32"})
    EXPECT_EQ(raceOf(waits(load, "st.release.gpu.global.b32"), 1, 9), "");
  // Of one block alone, or no strong access at all.
  EXPECT_EQ(
      raceOf(waits("ld.relaxed.cta.global.b32", "st.relaxed.gpu.global.b32"), 1,
             2),
      "block (1,0,0), thread (0,0,0): reads <a>, byte 0 of an "
      "allocation of 4096 bytes, which thread (0,0,0) of block (0,0,0) "
      "has updated in line 3; blocks have no order");
  EXPECT_NE(raceOf(waits("ld.relaxed.gpu.global.b32", "st.global.b32"), 1, 2),
            "");
  // They go with atomics, and with each other in a block.
  EXPECT_EQ(raceOf("red.global.add.u32 [p0], 1;\n"
                   "ld.relaxed.gpu.global.b32 v, [p0];",
                   64, 100),
            "");
  EXPECT_EQ(raceOf("ld.relaxed.gpu.global.b32 v, [p0];\n"
                   "st.relaxed.gpu.global.b32 [p0], %r_id;",
                   96),
            "");
  EXPECT_NE(raceOf("ld.relaxed.gpu.global.b32 v, [p0];\n"
                   "st.global.b32 [p0], %r_id;",
                   96),
            "");
  EXPECT_NE(raceOf("ld.global.b32 v, [p0];\n"
                   "st.relaxed.gpu.global.b32 [p0], %r_id;",
                   96),
            "");
}

TEST(Fault, WaitsForNoBlock) {
  // Nobody stores 7, or a block that comes later.
  const std::string wait = "WAIT: ld.relaxed.gpu.global.b32 v, [p0];\n"
                           "setp.ne.u32 p, v, 7;\n@p bra WAIT;\n";
  const char *fault = "block (0,0,0), thread (0,0,0): waits for a store that "
                      "no block before this one has made";
  EXPECT_EQ(raceOf(wait, 32, 4), fault);
  EXPECT_EQ(raceOf("setp.eq.u32 p, b, 3;\n@p bra STORE;\n" + wait +
                       "bra END;\nSTORE: st.relaxed.gpu.global.b32 [p0], 7;\n"
                       "END:",
                   32, 4),
            fault);
}

//===----------------------------------------------------------------------===//
// Many blocks
//===----------------------------------------------------------------------===//

TEST(Fault, TheFirstBlockIsTold) {
  Sim sim;
  uint32_t *out = sim.allocate<uint32_t>(64);
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_NE(
        message(sim.run(kernelOf(".reg .b64 x;\nmad.lo.u64 x, %rd_id, 4, p0;\n"
                                 "st.global.b32 [x], 1;",
                                 1),
                        32, {out}, {4000, 1, 1}))
            .find("block (2,0,0), thread (0,0,0)"),
        std::string::npos);
}

} // namespace
