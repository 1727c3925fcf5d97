// Asynchronous copies from global to shared memory: what they copy, and the
// waits that kernels leave out.
#include "CopyTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

/// A line, after which those of a body are counted from 1. x is p0 + 16 * id,
/// s is 16 * id, and s4 and x4 are likewise for words.
const std::string declare =
    ".reg .b64 x, y, x4, w; .reg .b32 v<9>, s, s4, t, n; .reg .pred p, q; "
    ".shared .align 16 .b8 tile[16384]; "
    "shl.b32 s, %r_id, 4; shl.b32 s4, %r_id, 2; mov.b32 n, 0; "
    "mad.wide.u32 x, %r_id, 16, p0; mad.wide.u32 x4, %r_id, 4, p0; "
    "mad.wide.u32 y, %r_id, 16, p1; setp.lt.u32 p, %r_id, 8;\n";
/// y = the 16 bytes at s.
const std::string out = "ld.shared.v4.b32 {v0, v1, v2, v3}, [s];\n"
                        "st.global.v4.b32 [y], {v0, v1, v2, v3};\n";
const std::string copy16 = "cp.async.cg.shared.global [s], [x], 16;\n";

std::vector<uint8_t> resultOf(const std::string &body, uint32_t threads = 64,
                              const SimOptions &options = everything()) {
  return copiedBy(kernelOf(declare + body, 2, "sm_80"), "sm_80", threads,
                  options);
}

std::string faultOf(const std::string &body, uint32_t threads = 32,
                    const SimOptions &options = SimOptions()) {
  return faultOfCopy(kernelOf(declare + body, 2, "sm_80"), "sm_80", threads,
                     options);
}

const std::string sharedSpace = " of the shared space, of 16384 bytes";

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

TEST(AsyncCopy, Sizes) {
  EXPECT_EQ(resultOf(copy16 + "cp.async.wait_all;\n" + out),
            firstBytes(64 * 16));
  for (unsigned size : {4, 8, 16}) {
    std::string body;
    for (unsigned i = 0; i < 16; i += size) {
      std::string at = "+" + std::to_string(i) + "], ";
      body += "cp.async.ca.shared::cta.global.L2::128B [s" + at + "[x" + at +
              std::to_string(size) + ";\n";
    }
    EXPECT_EQ(resultOf(body + "cp.async.wait_all;\n" + out),
              firstBytes(64 * 16));
  }
}

/// Those of another warp, after its wait and a barrier.
TEST(AsyncCopy, OthersReadAfterABarrier) {
  std::vector<uint8_t> want = firstBytes(64 * 16);
  std::rotate(want.begin(), want.begin() + 32 * 16, want.end());
  EXPECT_EQ(resultOf(copy16 +
                     "cp.async.wait_all;\nbar.sync 0;\n"
                     "xor.b32 s, s, 512;\n" +
                     out),
            want);
}

TEST(AsyncCopy, TheRestIsZeros) {
  // As many bytes as the thread's number says, of 17.
  std::vector<uint8_t> want = firstBytes(64 * 16);
  for (unsigned i = 0; i < want.size(); ++i)
    if (i % 16 >= i / 16 % 17)
      want[i] = 0;
  EXPECT_EQ(resultOf("st.shared.v4.b32 [s], {s, s, s, s};\n"
                     "rem.u32 t, %r_id, 17;\n"
                     "cp.async.cg.shared.global [s], [x], 16, t;\n"
                     "cp.async.wait_all;\n" +
                     out),
            want);
  want = firstBytes(64 * 16);
  for (unsigned i = 0; i < want.size(); ++i)
    if (i % 4 == 3)
      want[i] = 0;
  std::string body;
  for (const char *at : {"+0], ", "+4], ", "+8], ", "+12], "})
    body += std::string("cp.async.ca.shared.global.L2::cache_hint [s") + at +
            "[x" + at + "4, 3, 17;\n";
  EXPECT_EQ(resultOf(body + "cp.async.wait_all;\n" + out), want);
}

/// Of an address that is nobody's, too.
TEST(AsyncCopy, NothingIsReadOfNoBytes) {
  std::vector<uint8_t> want = firstBytes(64 * 16);
  std::fill(want.begin(), want.begin() + 8 * 16, 0);
  std::string wild = "@p mov.b64 x, 1;\n", wait = "cp.async.wait_all;\n";
  EXPECT_EQ(resultOf(wild +
                     "selp.b32 t, 0, 16, p;\n"
                     "cp.async.cg.shared.global [s], [x], 16, t;\n" +
                     wait + out),
            want);
  EXPECT_EQ(resultOf(wild + "cp.async.cg.shared.global [s], [x], 16, p;\n" +
                     wait + out),
            want);
  EXPECT_EQ(resultOf(wild +
                     "not.pred q, p;\n"
                     "cp.async.cg.shared.global.L2::cache_hint [s], "
                     "[x], 16, !q, y;\n" +
                     wait + out),
            want);
}

TEST(AsyncCopy, PredicatedLanes) {
  // Those that do not copy keep what they have.
  std::vector<uint8_t> want = firstBytes(64 * 16);
  for (unsigned i = 8 * 16; i < want.size(); ++i)
    want[i] = i % 4 < 2 ? uint8_t(i / 16 * 16 >> 8 * (i % 4)) : 0;
  EXPECT_EQ(resultOf("st.shared.v4.b32 [s], {s, s, s, s};\n"
                     "@p " +
                     copy16 +
                     "@p cp.async.commit_group;\n"
                     "@p cp.async.wait_group 0;\n" +
                     out),
            want);
}

/// Four stages, two of which are on their way.
TEST(AsyncCopy, Pipeline) {
  // s is that of the stage to be copied, of 1024 bytes; t is that of the stage
  // to be read.
  std::string fetch = "@!q " + copy16 +
                      "cp.async.commit_group;\n"
                      "add.u64 x, x, 1024; add.u32 s, s, 1024; "
                      "and.b32 s, s, 4095;\n";
  auto body = [&](const char *groups) {
    return "mov.b32 t, s; setp.ne.u32 q, n, n;\n" + fetch + fetch +
           "LOOP: setp.ge.u32 q, n, 14;\n" + fetch + "cp.async.wait_group " +
           groups +
           ";\nbar.sync 0;\n"
           "xor.b32 v4, t, 512;\n"
           "ld.shared.v4.b32 {v0, v1, v2, v3}, [v4];\n"
           "st.global.v4.b32 [y], {v0, v1, v2, v3};\n"
           "add.u64 y, y, 1024; add.u32 t, t, 1024; and.b32 t, t, 4095;\n"
           "add.u32 n, n, 1; setp.lt.u32 q, n, 16;\n@q bra LOOP;";
  };
  Sim sim("sm_80", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(sim.run(kernelOf(declare + body("2"), 2, "sm_80"), 64, {in, to}));
  std::vector<uint8_t> want = someBytes();
  for (size_t i = 0; i < want.size(); i += 1024)
    std::rotate(want.begin() + i, want.begin() + i + 512,
                want.begin() + i + 1024);
  EXPECT_EQ(sim.download(to, kBytes), want);
  // One wait too few.
  EXPECT_NE(faultOf(body("3"), 64).find("has not waited for"),
            std::string::npos);
}

/// The source may change once the copy has its bytes; nobody should do so.
TEST(AsyncCopy, BytesComeAtTheWait) {
  EXPECT_EQ(resultOf(copy16 +
                         "st.global.v4.b32 [x], {s, s, s, s};\n"
                         "cp.async.wait_all;\n" +
                         out,
                     64, SimOptions()),
            firstBytes(64 * 16));
}

//===----------------------------------------------------------------------===//
// Bounds and alignment
//===----------------------------------------------------------------------===//

TEST(AsyncCopy, Addresses) {
  std::string at = "line 1 (cp.async.cg.shared.global), block (0,0,0), thread ";
  EXPECT_EQ(faultOf("cp.async.cg.shared.global [s4], [x], 16;"),
            at + "(1,0,0): writes 16 bytes at 0x4" + sharedSpace +
                ": the address is not a multiple of 16");
  EXPECT_EQ(faultOf("cp.async.cg.shared.global [s], [x4], 16;"),
            at + "(1,0,0): reads 16 bytes at <a>, byte 4 of an allocation of "
                 "16384 bytes: the address is not a multiple of 16");
  EXPECT_EQ(faultOf("cp.async.cg.shared.global [s], [x4], 16, 3;"),
            at + "(1,0,0): reads 3 bytes at <a>, byte 4 of an allocation of "
                 "16384 bytes: the address is not a multiple of 16");
  EXPECT_EQ(faultOf("cp.async.cg.shared.global [s+15888], [x], 16;"),
            at + "(31,0,0): writes 16 bytes at 0x4000" + sharedSpace);
  EXPECT_EQ(faultOf("cp.async.cg.shared.global [s], [x+15888], 16;"),
            at + "(31,0,0): reads 16 bytes at <a>, 0 bytes past the end of an "
                 "allocation of 16384 bytes");
  // The bytes that are read alone count.
  std::string last = "add.u64 x, p0, 16380;\nmov.b32 s, 0;\n@p "
                     "setp.eq.u32 p, %r_id, 0;\n"
                     "@p cp.async.ca.shared.global [s], [x], ";
  EXPECT_EQ(faultOf(last + "4, 4;\ncp.async.wait_all;"), "");
  EXPECT_EQ(faultOf("add.u64 x, p0, 16384;\n@p cp.async.ca.shared.global "
                    "[s], [x], 8, 0;\ncp.async.wait_all;"),
            "");
  EXPECT_EQ(faultOf("mov.b32 t, 17;\n"
                    "cp.async.cg.shared.global [s], [x], 16, t;"),
            "line 2 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads 17 bytes for a copy of 16");
}

//===----------------------------------------------------------------------===//
// Waits that are missing
//===----------------------------------------------------------------------===//

TEST(AsyncCopy, NobodyTouchesWhatIsCopied) {
  std::string tail = sharedSpace +
                     ", which thread (0,0,0) is copying there asynchronously "
                     "in line 1 and has not waited for";
  auto fault = [](const std::string &opcode, const std::string &rest) {
    return "line 2 (" + opcode + "), block (0,0,0), thread (0,0,0): " + rest;
  };
  EXPECT_EQ(faultOf(copy16 + "ld.shared.b32 v0, [s];"),
            fault("ld.shared.b32", "reads 4 bytes at 0x0" + tail));
  EXPECT_EQ(faultOf(copy16 + "ld.shared.u8 v0, [s+15];"),
            fault("ld.shared.u8", "reads 1 bytes at 0xf" + tail));
  EXPECT_EQ(faultOf(copy16 + "st.shared.b32 [s+8], s;"),
            fault("st.shared.b32", "writes 4 bytes at 0x8" + tail));
  EXPECT_EQ(faultOf(copy16 + "red.shared.add.u32 [s+4], 1;"),
            fault("red.shared.add.u32", "updates 4 bytes at 0x4" + tail));
  EXPECT_EQ(faultOf(copy16 + copy16), fault("cp.async.cg.shared.global",
                                            "writes 16 bytes at 0x0" + tail));
  EXPECT_EQ(faultOf(copy16 + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {v0}, "
                             "[s];"),
            fault("ldmatrix.sync.aligned.m8n8.x1.shared.b16",
                  "reads 16 bytes at 0x0" + tail));
  // By generic addresses.
  EXPECT_EQ(faultOf("cp.async.ca.shared.global [s4], [x4], 4; "
                    "mov.b64 w, tile; cvta.shared.u64 w, w;\n"
                    "ld.b32 v0, [w+4];"),
            fault("ld.b32", "reads 4 bytes at 0x4" + sharedSpace +
                                ", which thread (1,0,0) is copying there "
                                "asynchronously in line 1 and has not waited "
                                "for"));
  // Beside it is nothing.
  EXPECT_EQ(faultOf("@p " + copy16 +
                    "ld.shared.b32 v0, [tile+128];\n"
                    "cp.async.wait_all;"),
            "");
  // Two lanes of one instruction.
  EXPECT_EQ(faultOf("cp.async.ca.shared.global [tile], [x], 4;"),
            "line 1 (cp.async.ca.shared.global), block (0,0,0), thread "
            "(1,0,0): writes 4 bytes at 0x0" +
                tail);
}

/// A barrier, or the wait of another thread, is no wait.
TEST(AsyncCopy, OthersHaveToWaitForTheWait) {
  // The second warp arrives last and goes on at once.
  EXPECT_EQ(faultOf(copy16 + "bar.sync 0;\nxor.b32 s, s, 512;\n" + out, 64),
            "line 4 (ld.shared.v4.b32), block (0,0,0), thread (32,0,0): reads "
            "16 bytes at 0x0" +
                sharedSpace +
                ", which thread (0,0,0) is copying there asynchronously in "
                "line 1 and has not waited for");
  EXPECT_EQ(faultOf(copy16 + "@p cp.async.wait_all;\nbar.sync 0;\n" + out),
            "line 4 (ld.shared.v4.b32), block (0,0,0), thread (8,0,0): reads "
            "16 bytes at 0x80" +
                sharedSpace +
                ", which thread (8,0,0) is copying there asynchronously in "
                "line 1 and has not waited for");
}

TEST(AsyncCopy, GroupsAreWaitedForInOrder) {
  auto body = [](const std::string &wait, const std::string &offset) {
    return "cp.async.ca.shared.global [s4], [x4], 4;\n"
           "cp.async.commit_group;\n"
           "cp.async.ca.shared.global [s4+128], [x4], 4;\n"
           "cp.async.ca.shared.global [s4+256], [x4], 4;\n"
           "cp.async.commit_group;\n"
           "cp.async.ca.shared.global [s4+384], [x4], 4;\n" +
           wait + "\nld.shared.b32 v0, [s4+" + offset +
           "];\ncp.async.wait_all;";
  };
  auto lineOf = [&](const std::string &wait, const std::string &offset) {
    std::string text = faultOf(body(wait, offset));
    size_t at = text.find("asynchronously in line ");
    return at == std::string::npos ? text : text.substr(at + 23, 1);
  };
  const std::string good = "";
  auto check = [&](const std::string &wait, std::vector<std::string> want) {
    std::vector<std::string> found;
    for (const char *offset : {"0", "128", "256", "384"})
      found.push_back(lineOf(wait, offset));
    EXPECT_EQ(found, want) << wait;
  };
  check("", {"1", "3", "4", "6"});
  check("cp.async.wait_group 2;", {"1", "3", "4", "6"});
  check("cp.async.wait_group 1;", {good, "3", "4", "6"});
  // What was not committed is of no group.
  check("cp.async.wait_group 0;", {good, good, good, "6"});
  check("cp.async.wait_all;", {good, good, good, good});
  check("cp.async.commit_group; cp.async.wait_group 1;",
        {good, good, good, "6"});
  check("cp.async.commit_group; cp.async.wait_group 0;",
        {good, good, good, good});
  // Groups of nothing count.
  check("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;",
        {good, good, good, good});
  check("cp.async.wait_group 4294967297;", {"1", "3", "4", "6"});
}

TEST(AsyncCopy, BlocksEndWithNothingOnItsWay) {
  std::string text = "line 1 (cp.async.cg.shared.global), block (0,0,0), "
                     "thread (0,0,0): copies 16 bytes to 0x0" +
                     sharedSpace +
                     ", asynchronously, and the thread has not waited for them "
                     "before the block ended";
  EXPECT_EQ(faultOf(copy16), text);
  EXPECT_EQ(faultOf(copy16 + "cp.async.commit_group;"), text);
  EXPECT_EQ(faultOf(copy16 + "cp.async.wait_group 0;"), text);
  EXPECT_EQ(faultOf("cp.async.commit_group;"), "");
  // The first of the blocks.
  Sim sim("sm_80");
  uint8_t *in = sim.upload(someBytes());
  EXPECT_NE(
      message(sim.run(kernelOf(declare + "setp.lt.u32 p, %r_block, 2;\n"
                                         "mov.u32 s, %tid.x; shl.b32 s, s, 4;"
                                         "\ncp.async.cg.shared.global [s], "
                                         "[p0], 16;\n"
                                         "@p cp.async.wait_all;",
                               2, "sm_80"),
                      32, {in, in}, {5, 1, 1}))
          .find("block (2,0,0), thread (0,0,0): copies 16 bytes to 0x0 of"),
      std::string::npos);
}

/// Blocks start with no groups, and what one has copied is not the next one's.
TEST(AsyncCopy, ManyBlocks) {
  Sim sim("sm_80", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(sim.run(
      kernelOf(declare + "mov.u32 s, %tid.x; shl.b32 s, s, 4;\n" + copy16 +
                   "cp.async.commit_group;\ncp.async.wait_group 0;\n" + out,
               2, "sm_80"),
      64, {in, to}, {16, 1, 1}));
  EXPECT_EQ(sim.download(to, kBytes), someBytes());
}

//===----------------------------------------------------------------------===//
// With more checks
//===----------------------------------------------------------------------===//

TEST(AsyncCopy, Races) {
  std::string wait = "cp.async.wait_all;\n", meet = "bar.sync 0;\n",
              cross = "xor.b32 t, s, 16;\nld.shared.b32 v0, [t];\n";
  auto fault = [](const std::string &body, uint32_t threads = 32) {
    return faultOf(body, threads, onlyRaces());
  };
  EXPECT_EQ(fault(copy16 + wait + meet + cross), "");
  EXPECT_EQ(fault(copy16 + wait + "bar.warp.sync -1;\n" + cross), "");
  EXPECT_EQ(fault(copy16 + wait + "ld.shared.b32 v0, [s];"), "");
  std::string race = "line 5 (ld.shared.b32), block (0,0,0), thread (0,0,0): "
                     "reads 0x10" +
                     sharedSpace +
                     ", which thread (1,0,0) has written in line 1 with no "
                     "barrier in between";
  EXPECT_EQ(fault(copy16 + wait + "\n" + cross), race);
  // One that is too early is none.
  EXPECT_EQ(fault(copy16 + meet + wait + cross), race);
  // Over what others read.
  std::string read = "st.shared.v4.b32 [s], {s, s, s, s};\n" + meet + cross;
  EXPECT_EQ(fault(read + meet + copy16 + wait), "");
  EXPECT_EQ(fault(read + copy16 + meet + wait),
            "line 5 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): writes 0x0" +
                sharedSpace +
                ", which thread (1,0,0) has read in line 4 with no barrier in "
                "between");
  // The source is read until the wait.
  std::string change = "xor.b32 t, %r_id, 1; mad.wide.u32 w, t, 16, p0;\n"
                       "st.global.b32 [w], t;\n";
  EXPECT_EQ(fault(copy16 + wait + meet + change), "");
  EXPECT_EQ(fault(copy16 + meet + change + wait),
            "line 1 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads <a>, byte 0 of an allocation of 16384 bytes, which "
            "thread (1,0,0) has written in line 4 with no barrier in between");
  EXPECT_EQ(fault(change + "\n" + copy16 + wait),
            "line 4 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads <a>, byte 0 of an allocation of 16384 bytes, which "
            "thread (1,0,0) has written in line 2 with no barrier in between");
}

TEST(AsyncCopy, WhatWasNotWritten) {
  auto fault = [](const std::string &body) {
    return faultOf(body, 32, everything());
  };
  // p1 was not written.
  EXPECT_EQ(fault("cp.async.cg.shared.global [s], [y], 16;"),
            "line 1 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads <a>, byte 0 of an allocation of 16384 bytes, which "
            "was not written");
  std::string half = "st.global.b64 [y], x;\ncp.async.cg.shared.global [s], "
                     "[y], 16, ";
  EXPECT_EQ(fault(half + "8;\ncp.async.wait_all;\n" + out), "");
  EXPECT_EQ(fault(half + "9;"),
            "line 2 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads <a>, byte 8 of an allocation of 16384 bytes, which "
            "was not written");
  EXPECT_EQ(fault("cp.async.ca.shared.global [s], [x], 8;\n"
                  "cp.async.wait_all;\n" +
                  out),
            "line 3 (ld.shared.v4.b32), block (0,0,0), thread (0,0,0): reads "
            "0x8" +
                sharedSpace + ", which was not written");
  EXPECT_EQ(fault("cp.async.cg.shared.global [s], [x], 16, v0;"),
            "line 1 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads register v0, which was not written");
  EXPECT_EQ(fault("cp.async.cg.shared.global [s], [x], 16, q;"),
            "line 1 (cp.async.cg.shared.global), block (0,0,0), thread "
            "(0,0,0): reads register q, which was not written");
}

/// Of a load of global memory and a store to shared memory.
TEST(AsyncCopy, Counters) {
  auto count = [](const std::string &instruction) {
    Sim sim("sm_80", everything());
    uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
    must(sim.run(
        kernelOf(declare + instruction + "\ncp.async.wait_all;", 2, "sm_80"),
        32, {in, to}));
    SimCounters counters = sim.kernel->counters();
    EXPECT_EQ(counters.sharedStores, 1u);
    EXPECT_EQ(counters.sharedLoads, 0u);
    for (const SimCounters::Line &line : counters.lines)
      if (StringRef(line.text).contains("global"))
        return std::pair(line.count, counters);
    return std::pair(SimCount(), counters);
  };
  auto [wide, counters] = count(copy16);
  EXPECT_EQ(wide.bytes, 512u);
  EXPECT_EQ(wide.sectors, 16u);
  EXPECT_EQ(wide.requests, 1u);
  EXPECT_EQ(wide.full, 1u);
  EXPECT_EQ(wide.wavefronts, 4u);
  EXPECT_EQ(wide.conflicts, 0u);
  EXPECT_EQ(counters.globalLoads, 1u);
  ASSERT_EQ(counters.arrays.size(), 1u);
  EXPECT_EQ(counters.arrays[0].loaded, 512u);
  EXPECT_EQ(counters.arrays[0].fetched, 16u);
  EXPECT_EQ(counters.arrays[0].requests, 1u);
  // A column of a tile of 16 words is in two banks.
  SimCount narrow = count("cp.async.ca.shared.global [s], [x4], 4;").first;
  EXPECT_EQ(narrow.bytes, 128u);
  EXPECT_EQ(narrow.sectors, 4u);
  EXPECT_EQ(narrow.wavefronts, 4u);
  EXPECT_EQ(narrow.conflicts, 3u);
  // Nothing is read.
  SimCount none = count("cp.async.cg.shared.global [s], [x], 16, 0;").first;
  EXPECT_EQ(none.bytes + none.sectors + none.requests, 0u);
  EXPECT_EQ(none.wavefronts, 4u);
}

/// Another block of the cluster reads what is on its way.
TEST(AsyncCopy, Clusters) {
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  auto body = [&](const std::string &before, const std::string &after) {
    return clusterOf("2",
                     declare + "mov.u32 t, %tid.x; shl.b32 s, t, 4;\n" +
                         copy16 + before + meetAll +
                         "mov.u32 t, %cluster_ctarank; xor.b32 t, t, 1; "
                         "mapa.shared::cluster.u32 s, s, t;\n"
                         "ld.shared::cluster.v4.b32 {v0, v1, v2, v3}, [s];\n"
                         "st.global.v4.b32 [y], {v0, v1, v2, v3};\n" +
                         meetAll + after,
                     2);
  };
  must(sim.run(body("cp.async.wait_all;\n", ""), 32, {in, to}, {2, 1, 1}));
  std::vector<uint8_t> want = firstBytes(1024);
  std::rotate(want.begin(), want.begin() + 512, want.end());
  EXPECT_EQ(sim.download(to, 1024), want);
  std::string text = message(
      sim.run(body("", "cp.async.wait_all;\n"), 32, {in, to}, {2, 1, 1}));
  EXPECT_NE(text.find("block (1,0,0), thread (0,0,0): reads 16 bytes at 0x0" +
                      sharedSpace +
                      ", which thread (0,0,0) of block (0,0,0) is copying "
                      "there asynchronously in line "),
            std::string::npos)
      << text;
}

} // namespace
