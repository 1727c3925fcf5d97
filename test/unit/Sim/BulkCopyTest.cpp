// Bulk copies, to shared memory with an mbarrier and to global memory in
// groups: what they copy, and the waits and fences that kernels leave out.
#include "CopyTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

/// A line, after which those of a body are counted from 1. s and y are 16 bytes
/// of thread i, of shared memory and of p1; p is true of thread 0 of the block.
const std::string declare =
    ".reg .b64 x, y, z; .reg .b32 v<9>, s, t, n, b; .reg .pred p, d; "
    ".shared .align 128 .b8 tile[8192]; .shared .align 16 .b64 bar; "
    "mov.u32 t, %tid.x; shl.b32 s, t, 4; mov.b32 n, 0; mov.b32 b, 1024; "
    "mad.wide.u32 y, %r_id, 16, p1; setp.eq.u32 p, t, 0;\n";
const std::string init = "@p mbarrier.init.shared.b64 [bar], 1;\n"
                         "@p fence.mbarrier_init.release.cluster;\n"
                         "bar.sync 0;\n";
const std::string bulk =
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
const std::string expect =
    "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;\n";
const std::string copy = "@p " + bulk + " [tile], [p0], 1024, [bar];\n";
const std::string wait = "L:\nmbarrier.try_wait.parity.shared.b64 d, [bar], "
                         "0;\n@!d bra L;\n";
/// y = the 16 bytes at s.
const std::string out = "ld.shared.v4.b32 {v0, v1, v2, v3}, [s];\n"
                        "st.global.v4.b32 [y], {v0, v1, v2, v3};\n";

const std::string fill = "ld.global.v4.b32 {v0, v1, v2, v3}, [x];\n"
                         "st.shared.v4.b32 [s], {v0, v1, v2, v3};\n";
const std::string source = "mad.wide.u32 x, %r_id, 16, p0;\n";
const std::string fence = "fence.proxy.async.shared::cta;\n";
const std::string meet = "bar.sync 0;\n";
const std::string store =
    "@p cp.async.bulk.global.shared::cta.bulk_group [p1], [tile], 1024;\n";
const std::string commit = "cp.async.bulk.commit_group;\n";
const std::string waitRead = "cp.async.bulk.wait_group.read 0;\n";
const std::string waitAll = "cp.async.bulk.wait_group 0;\n";

std::vector<uint8_t> resultOf(const std::string &body, uint32_t threads = 64,
                              const SimOptions &options = everything()) {
  return copiedBy(kernelOf(declare + body, 2), "sm_90a", threads, options);
}

std::string faultOf(const std::string &body, uint32_t threads = 64,
                    const SimOptions &options = SimOptions()) {
  return faultOfCopy(kernelOf(declare + body, 2), "sm_90a", threads, options);
}

std::string racesOf(const std::string &body) {
  return faultOf(body, 64, onlyRaces());
}

const std::string space = " of the shared space, of 8200 bytes";
const std::string array = "byte 0 of an allocation of 16384 bytes";

//===----------------------------------------------------------------------===//
// To shared memory
//===----------------------------------------------------------------------===//

TEST(BulkCopy, ToSharedMemory) {
  std::vector<uint8_t> want = firstBytes(1024);
  EXPECT_EQ(resultOf(init + expect + copy + wait + out), want);
  // The bytes may be expected later, and come in parts.
  std::string parts;
  for (const char *at : {"0", "512"})
    parts += "@p " + bulk + ".L2::cache_hint [tile+" + at + "], [p0+" + at +
             "], 512, [bar], z;\n";
  EXPECT_EQ(resultOf(init + "mov.b64 z, 0;\n" + parts + expect + wait + out),
            want);
  // A size that is known late; to a block's own memory by name.
  EXPECT_EQ(resultOf(init + expect +
                     "@p cp.async.bulk.shared::cta.global.mbarrier::"
                     "complete_tx::bytes [tile], [p0], b, [bar];\n" +
                     wait + out),
            want);
  // Copies of nothing.
  EXPECT_EQ(resultOf(init + expect + copy + "@p " + bulk +
                     " [tile], [p0], 0, [bar];\n" + wait + out),
            want);
  // By the state of the arrival.
  EXPECT_EQ(resultOf(init +
                         "mbarrier.arrive.expect_tx.shared.b64 z, [bar], b;\n" +
                         bulk +
                         " [s], [p0], b, [bar];\n"
                         "W:\nmbarrier.test_wait.shared.b64 d, [bar], z;\n"
                         "@!d bra W;\n" +
                         out,
                     1),
            firstBytes(16));
}

/// A ring of two stages of 1024 bytes: a thread copies ahead of the others.
TEST(BulkCopy, Pipeline) {
  auto body = [&](const std::string &waitEmpty) {
    return ".shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];\n"
           ".reg .b32 f, e, k, r, c, i, a; .reg .pred q, more;\n"
           "@p mbarrier.init.shared.b64 [full], 1;\n"
           "@p mbarrier.init.shared.b64 [full+8], 1;\n"
           "@p mbarrier.init.shared.b64 [empty], 64;\n"
           "@p mbarrier.init.shared.b64 [empty+8], 64;\n"
           "@p fence.proxy.async;\nbar.sync 0;\n"
           "setp.ge.u32 q, t, 64; setp.eq.u32 p, t, 64; sub.u32 s, s, 0;\n"
           "ROUND:\nand.b32 k, n, 1; shl.b32 c, k, 3; mov.u32 f, full; "
           "add.u32 f, f, c; mov.u32 e, empty; add.u32 e, e, c; "
           "shl.b32 i, k, 10; shr.u32 r, n, 1; and.b32 r, r, 1;\n"
           "@!q bra CONSUME;\n@!p bra NEXT;\nxor.b32 c, r, 1;\n" +
           waitEmpty +
           "mul.wide.u32 x, n, 1024; add.u64 x, x, p0;\n"
           "mbarrier.arrive.expect_tx.shared.b64 _, [f], 1024;\n" +
           bulk +
           " [i], [x], 1024, [f];\nbra NEXT;\n"
           "CONSUME:\n"
           "F:\nmbarrier.try_wait.parity.shared.b64 d, [f], r;\n@!d bra F;\n"
           "add.u32 a, i, s;\n"
           "ld.shared.v4.b32 {v0, v1, v2, v3}, [a];\n"
           "mbarrier.arrive.shared.b64 _, [e];\n"
           "st.global.v4.b32 [y], {v0, v1, v2, v3};\nadd.u64 y, y, 1024;\n"
           "NEXT:\nadd.u32 n, n, 1;\nsetp.lt.u32 more, n, 16;\n"
           "@more bra ROUND;\n";
  };
  std::string waits =
      "E:\nmbarrier.try_wait.parity.shared.b64 d, [e], c;\n@!d bra E;\n";
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(sim.run(kernelOf(declare + body(waits), 2), 96, {in, to}));
  EXPECT_EQ(sim.download(to, kBytes), someBytes());
  // A producer that does not wait for the consumers.
  EXPECT_NE(faultOf(body(""), 96, onlyRaces()), "");
}

/// To all blocks of a cluster, from one of them.
TEST(BulkCopy, Multicast) {
  auto body = [&](const std::string &blocks, const std::string &before) {
    return declare +
           ".reg .b32 r; .reg .pred q; .reg .b16 h;\n"
           "mov.u32 r, %cluster_ctarank; setp.eq.and.u32 q, r, 0, p;\n"
           "@p mbarrier.init.shared.b64 [bar], 1;\n"
           "@p fence.mbarrier_init.release.cluster;\n" +
           before + expect + "mov.b16 h, " + blocks + ";\n@q " + bulk +
           ".multicast::cluster [tile], [p0], 1024, [bar], h;\n" + wait + out +
           meetAll;
  };
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(
      sim.run(clusterOf("4", body("15", meetAll), 2), 64, {in, to}, {4, 1, 1}));
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(sim.download(to + 1024 * i, 1024), firstBytes(1024));
  auto run = [&](const std::string &blocks, const std::string &before) {
    return message(sim.run(clusterOf("4", body(blocks, before), 2), 64,
                           {in, to}, {4, 1, 1}));
  };
  EXPECT_NE(run("31", meetAll)
                .find("shared memory of the block of rank 4 of a "
                      "cluster of 4"),
            std::string::npos);
  EXPECT_NE(run("15", meet).find("which may not have begun"),
            std::string::npos);
  // One block is left out.
  std::string text = run("11", meetAll);
  EXPECT_NE(text.find("0 arrivals are missing, and 1024 bytes"),
            std::string::npos)
      << text;
}

/// From the block's memory to that of the next one, at whose mbarrier it
/// arrives.
TEST(BulkCopy, ToAnotherBlock) {
  auto body = [&](const std::string &other, const std::string &after) {
    return declare +
           ".reg .b32 r, a, m;\nmov.u32 r, %cluster_ctarank; xor.b32 r, r, "
           "1;\n@p mbarrier.init.shared.b64 [bar], 1;\n"
           "@p fence.mbarrier_init.release.cluster;\n" +
           source + fill + fence + meetAll + expect +
           "mov.u32 a, tile; add.u32 a, a, 4096; mapa.shared::cluster.u32 a, "
           "a, r; mov.u32 m, bar; mapa.shared::cluster.u32 m, m, " +
           other +
           ";\n@p cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
           "complete_tx::bytes [a], [tile], 1024, [m];\n" +
           after + wait +
           "ld.shared.v4.b32 {v0, v1, v2, v3}, [s+4096];\n"
           "st.global.v4.b32 [y], {v0, v1, v2, v3};\n" +
           meetAll;
  };
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  auto run = [&](const std::string &other, const std::string &after) {
    return message(sim.run(clusterOf("2", body(other, after), 2), 64, {in, to},
                           {2, 1, 1}));
  };
  EXPECT_EQ(run("r", ""), "");
  std::vector<uint8_t> want = firstBytes(2048);
  std::rotate(want.begin(), want.begin() + 1024, want.end());
  EXPECT_EQ(sim.download(to, 2048), want);
  std::string text = run("0", "");
  EXPECT_NE(text.find("copies to shared memory of block (1,0,0), and the "
                      "mbarrier is in block (0,0,0)"),
            std::string::npos)
      << text;
  // What the other block copies is not to be changed.
  text = run("r", "st.shared.u32 [s], t;\n");
  EXPECT_NE(text.find("is copying from there asynchronously in line "),
            std::string::npos)
      << text;
}

//===----------------------------------------------------------------------===//
// To global memory
//===----------------------------------------------------------------------===//

TEST(BulkCopy, ToGlobalMemory) {
  std::vector<uint8_t> want = firstBytes(1024);
  for (const std::string &end : {waitAll, waitRead})
    EXPECT_EQ(resultOf(source + fill + fence + meet + store + commit + end),
              want);
  // The fence of the thread that copies is one for all that it knows of.
  EXPECT_EQ(resultOf(source + fill + meet + fence + store + commit + waitAll),
            want);
  // Memory is used again when it was read.
  EXPECT_EQ(resultOf(source + fill + fence + meet + store + commit + waitRead +
                     meet + "st.shared.u32 [s], t;\n"),
            want);
  // What came by a bulk copy needs no fence.
  EXPECT_EQ(resultOf(init + expect + copy + wait + store + commit + waitRead),
            want);
  // The block reads it again.
  EXPECT_EQ(resultOf(source + fill + fence + meet + store + commit + waitAll +
                     meet +
                     "ld.global.b32 v0, [y];\nadd.u32 v0, v0, 1;\n"
                     "st.global.b32 [y], v0;\nld.global.b32 v1, [y];\n"
                     "sub.u32 v1, v1, 1;\nst.global.b32 [y], v1;\n"),
            want);
}

TEST(BulkCopy, Groups) {
  // Four groups of 256 bytes; memory is changed after the wait for some.
  auto body = [&](const std::string &groups, unsigned change) {
    std::string text = source + fill + fence + meet;
    for (unsigned at = 0; at < 1024; at += 256) {
      std::string offset = std::to_string(at);
      text += "@p cp.async.bulk.global.shared::cta.bulk_group [p1+" + offset +
              "], [tile+" + offset + "], 256;\n@p " + commit;
    }
    return text + "@p cp.async.bulk.wait_group.read " + groups + ";\n@p " +
           "st.shared.b32 [tile+" + std::to_string(change) + "], t;\n@p " +
           waitRead;
  };
  for (unsigned left = 0; left < 5; ++left)
    for (unsigned part = 0; part < 4; ++part) {
      std::string found = faultOf(body(std::to_string(left), 256 * part));
      EXPECT_EQ(found.empty(), part + left < 4) << left << " " << part;
      EXPECT_EQ(found.find("is copying from there asynchronously in line " +
                           std::to_string(6 + 2 * part)) == std::string::npos,
                part + left < 4)
          << found;
    }
}

/// What a block has not waited for comes before the next kernel.
TEST(BulkCopy, ManyBlocks) {
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(sim.run(
      kernelOf(declare +
                   "mad.wide.u32 x, %r_block, 1024, p0; "
                   "mad.wide.u32 z, %r_block, 1024, p1;\n" +
                   init + expect + "@p " + bulk +
                   " [tile], [x], 1024, [bar];\n" + wait +
                   "@p cp.async.bulk.global.shared::cta.bulk_group [z], "
                   "[tile], 1024;\n" +
                   commit + waitRead,
               2),
      64, {in, to}, {16, 1, 1}));
  EXPECT_EQ(sim.download(to, kBytes), someBytes());
}

TEST(BulkCopy, PrefetchesDoNothing) {
  EXPECT_EQ(resultOf("cp.async.bulk.prefetch.L2.global [p0], 1024;\n" + init +
                     expect + copy + wait + out),
            firstBytes(1024));
}

//===----------------------------------------------------------------------===//
// Addresses and sizes
//===----------------------------------------------------------------------===//

TEST(BulkCopy, Addresses) {
  auto of = [&](const std::string &operands) {
    return faultOf(init + expect + "@p " + bulk + " " + operands);
  };
  EXPECT_EQ(of("[tile+8], [p0], 16, [bar];"),
            fault(5, bulk,
                  "writes 16 bytes at 0x8" + space +
                      ": the address is not a multiple of 16"));
  EXPECT_EQ(of("[tile], [p0+4], 32, [bar];"),
            fault(5, bulk,
                  "reads 32 bytes at <a>, byte 4 of an allocation of 16384 "
                  "bytes: the address is not a multiple of 16"));
  EXPECT_EQ(of("[tile+8176], [p0], 32, [bar];"),
            fault(5, bulk, "writes 32 bytes at 0x1ff0" + space));
  EXPECT_EQ(of("[tile], [p0+16368], 32, [bar];"),
            fault(5, bulk,
                  "reads 32 bytes at <a>, byte 16368 of an allocation of 16384 "
                  "bytes"));
  EXPECT_EQ(of("[tile], [p0], n, [bar];\n" + wait).substr(0, 6), "line 7");
  EXPECT_EQ(faultOf("mov.b32 b, 24;\n" + init + "@p " + bulk +
                    " [tile], [p0], b, [bar];"),
            fault(5, bulk,
                  "copies 24 bytes, expected a multiple of 16 up to 1048560"));
  EXPECT_EQ(of("[tile], [p0], 16, [bar-8];"),
            fault(5, bulk,
                  "copies to an mbarrier at 0x1ff8" + space +
                      ", where none was initialised"));
  EXPECT_EQ(faultOf(store + commit + waitAll + "L:\n"), "");
}

//===----------------------------------------------------------------------===//
// Waits that are missing, and phases that are wrong
//===----------------------------------------------------------------------===//

TEST(BulkCopy, NobodyTouchesWhatIsCopied) {
  std::string tail = space + ", which thread (0,0,0) is copying there "
                             "asynchronously in line 5, and nobody has waited "
                             "for at the mbarrier";
  std::string begin = init + expect + copy;
  EXPECT_EQ(faultOf(begin + "ld.shared.b32 v0, [tile+1020];"),
            fault(6, "ld.shared.b32", "reads 4 bytes at 0x3fc" + tail));
  EXPECT_EQ(faultOf(begin + "st.shared.b32 [tile], t;"),
            fault(6, "st.shared.b32", "writes 4 bytes at 0x0" + tail));
  EXPECT_EQ(faultOf(begin + copy),
            fault(6, bulk, "writes 1024 bytes at 0x0" + tail));
  EXPECT_EQ(faultOf(begin + store),
            fault(6, "cp.async.bulk.global.shared::cta.bulk_group",
                  "reads 1024 bytes at 0x0" + tail));
  EXPECT_EQ(
      faultOf(begin + "@p cp.async.cg.shared.global [tile+16], [p0], "
                      "16;\n"),
      fault(6, "cp.async.cg.shared.global", "writes 16 bytes at 0x10" + tail));
  // Beside it is nothing.
  EXPECT_EQ(faultOf(begin + "st.shared.b32 [tile+1024], t;\n" + wait), "");
  // A barrier is no wait.
  EXPECT_NE(faultOf(begin + meet + out).find("is copying there"),
            std::string::npos);
  // Nor is one for the phase before, whose parity is 1.
  std::string wrong = "L:\nmbarrier.try_wait.parity.shared.b64 d, [bar], 1;\n"
                      "@!d bra L;\n";
  EXPECT_EQ(faultOf(begin + wrong + "ld.shared.b32 v0, [tile];"),
            fault(9, "ld.shared.b32", "reads 4 bytes at 0x0" + tail));
}

TEST(BulkCopy, NobodyChangesWhatIsRead) {
  std::string begin = source + fill + fence + meet + store;
  std::string tail = space + ", which thread (0,0,0) is copying from there "
                             "asynchronously in line 6 and has not waited for";
  EXPECT_EQ(faultOf(begin + "@p st.shared.b32 [tile+1020], t;"),
            fault(7, "st.shared.b32", "writes 4 bytes at 0x3fc" + tail));
  EXPECT_EQ(faultOf(begin + "@p red.shared.add.u32 [tile], 1;"),
            fault(7, "red.shared.add.u32", "updates 4 bytes at 0x0" + tail));
  // A wait for groups is none for what was not committed.
  EXPECT_EQ(faultOf(begin + waitAll + "@p st.shared.b32 [tile], t;"),
            fault(8, "st.shared.b32", "writes 4 bytes at 0x0" + tail));
  EXPECT_EQ(faultOf(begin + commit + "@p st.shared.b32 [tile], t;"),
            fault(8, "st.shared.b32", "writes 4 bytes at 0x0" + tail));
  EXPECT_EQ(faultOf(begin + commit + waitRead + "@p st.shared.b32 [tile], t;"),
            "");
  // Reading goes with reading.
  EXPECT_EQ(faultOf(begin + "ld.shared.b32 v0, [tile];\n" + store + commit +
                    waitRead),
            "");
}

TEST(BulkCopy, BlocksEndWithNothingOnItsWay) {
  EXPECT_EQ(faultOf(init + expect + copy),
            fault(5, bulk,
                  "copies 1024 bytes to 0x0" + space +
                      ", asynchronously, and nobody has waited for them at the "
                      "mbarrier before the block ended"));
  std::string text =
      fault(6, "cp.async.bulk.global.shared::cta.bulk_group",
            "copies 1024 bytes from 0x0" + space +
                ", asynchronously, and the thread has not waited for them "
                "before the block ended");
  std::string begin = source + fill + fence + meet + store;
  EXPECT_EQ(faultOf(begin), text);
  EXPECT_EQ(faultOf(begin + commit), text);
  EXPECT_EQ(faultOf(begin + waitAll), text);
}

TEST(BulkCopy, BytesThatNobodyExpects) {
  // The phase is over while the copy is on its way.
  std::string arrive = "@p mbarrier.arrive.shared.b64 _, [bar];\n";
  EXPECT_EQ(faultOf(init + copy + arrive + wait + out),
            fault(4, bulk,
                  "copies 1024 bytes to 0x0" + space +
                      ", which the mbarrier at 0x2000" + space +
                      " does not expect: its phase is over before they come"));
  // Too few, too many, and one wait for two copies.
  std::string few = "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;\n";
  EXPECT_NE(faultOf(init + few + copy + wait)
                .find("512 bytes have come that nobody expects"),
            std::string::npos);
  std::string many =
      "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;\n";
  EXPECT_NE(faultOf(init + many + copy + wait)
                .find("which is never complete: 0 arrivals are missing, and "
                      "1024 bytes"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Races and fences
//===----------------------------------------------------------------------===//

TEST(BulkCopy, Races) {
  std::string begin = init + expect + copy;
  EXPECT_EQ(racesOf(begin + wait + out), "");
  // One thread waits, and a barrier is for the others.
  std::string alone = "@!p bra END;\n" + wait + "END:\n";
  EXPECT_EQ(racesOf(begin + alone + meet + out), "");
  // Without it they know nothing, whether they come first or last.
  EXPECT_EQ(racesOf(begin + alone + "\n" + out),
            fault(5, bulk,
                  "writes 0x200" + space +
                      ", which thread (32,0,0) has read in line 12 with no "
                      "barrier in between"));
  EXPECT_NE(racesOf(begin + meet + alone + "\n" + out), "");
  // Over what others read before.
  std::string read = "st.shared.v4.b32 [s], {t, t, t, t};\n" + meet + fence +
                     "xor.b32 v4, s, 512;\nld.shared.b32 v0, [v4];\n";
  EXPECT_EQ(racesOf(read + init + expect + copy + wait), "");
  EXPECT_EQ(racesOf(init + read + expect + copy + wait),
            fault(8, "ld.shared.b32",
                  "reads 0x0" + space +
                      ", which a bulk copy has written in line 10 with no "
                      "barrier in between",
                  "32"));
  // The source is read until the bytes have come.
  std::string change = "xor.b32 v4, s, 512;\ncvt.u64.u32 x, v4;\n"
                       "add.u64 x, x, p0;\nst.global.u32 [x], t;\n";
  EXPECT_EQ(racesOf(begin + wait + change), "");
  EXPECT_EQ(racesOf(begin + change + wait),
            fault(5, bulk,
                  "reads <a>, " + array +
                      ", which thread (32,0,0) has written in line 9 with no "
                      "barrier in between"));
  // What is stored to global memory comes at the wait, which others have to
  // know of.
  std::string end = source + fill + fence + meet + store + commit;
  std::string look = "ld.global.b32 v0, [y];\n";
  EXPECT_EQ(racesOf(end + waitAll + meet + look), "");
  EXPECT_NE(racesOf(end + waitRead + meet + look), "");
  EXPECT_NE(racesOf(end + meet + look + waitAll), "");
  EXPECT_EQ(racesOf(end + waitAll + look),
            fault(6, "cp.async.bulk.global.shared::cta.bulk_group",
                  "writes <a>, byte 512 of an allocation of 16384 bytes, which "
                  "thread (32,0,0) has read in line 9 with no barrier in "
                  "between"));
}

TEST(BulkCopy, Fences) {
  std::string noFence = " has written in line 3 with no fence.proxy.async in "
                        "between";
  std::string opcode = "cp.async.bulk.global.shared::cta.bulk_group";
  std::string end = store + commit + waitRead;
  EXPECT_EQ(racesOf(source + fill + meet + end),
            fault(5, opcode,
                  "reads 0x0" + space + ", which thread (0,0,0)" + noFence));
  // One warp's is not the other's.
  EXPECT_EQ(racesOf(source + fill + "@p " + fence + meet + end),
            fault(6, opcode,
                  "reads 0x200" + space + ", which thread (32,0,0)" + noFence));
  // One that is too early, and one that nobody knows to be before.
  EXPECT_NE(racesOf(fence + source + fill + meet + end), "");
  EXPECT_NE(racesOf(source + fill + meet + "setp.eq.u32 d, t, 32;\n@d " +
                    fence + end),
            "");
  // Over what a thread has stored, too.
  std::string over = init + "st.shared.v4.b32 [s], {t, t, t, t};\n";
  EXPECT_EQ(racesOf(over + meet + expect + copy + wait),
            fault(7, bulk,
                  "writes 0x0" + space +
                      ", which thread (0,0,0) has written in line 4 with no "
                      "fence.proxy.async in between"));
  EXPECT_EQ(racesOf(over + fence + meet + expect + copy + wait), "");
  // Global memory that the kernel has written itself.
  std::string make = "st.global.v4.b32 [y], {t, t, t, t};\n";
  std::string take = "@p " + bulk + " [tile], [p1], 1024, [bar];\n";
  EXPECT_EQ(racesOf(init + make + "fence.proxy.async.global;\n" + meet +
                    expect + take + wait),
            "");
  EXPECT_EQ(racesOf(init + make + meet + expect + take + wait),
            fault(7, bulk,
                  "reads <a>, " + array +
                      ", which thread (0,0,0) has written in line 4 with no "
                      "fence.proxy.async in between"));
  // An mbarrier that copies do not see.
  std::string blind = "@p mbarrier.init.shared.b64 [bar], 1;\n" + meet;
  EXPECT_EQ(racesOf(blind + expect + copy + wait),
            fault(4, bulk,
                  "copies to the mbarrier at 0x2000" + space +
                      ", which was initialised in line 1 with no "
                      "fence.proxy.async or fence.mbarrier_init in between"));
  EXPECT_EQ(racesOf(blind + fence + expect + copy + wait), "");
}

/// Who copies to an mbarrier knows that it is one, and whose fence it is.
TEST(BulkCopy, MbarriersThatHaveBegun) {
  std::string made = "@p mbarrier.init.shared.b64 [bar], 1;\n"
                     "@p fence.mbarrier_init.release.cluster;\n";
  std::string other = "setp.eq.u32 p, t, 32;\n";
  EXPECT_EQ(racesOf(made + meet + other + expect + copy + wait), "");
  EXPECT_NE(racesOf(made + other + copy + "bar.sync 0;\n" + expect + wait), "");
  // A fence of a thread that does not know of it.
  std::string blind = "@p mbarrier.init.shared.b64 [bar], 1;\n"
                      "setp.eq.u32 d, t, 32;\n@d fence.proxy.async;\n" +
                      meet;
  EXPECT_NE(racesOf(blind + expect + copy + wait), "");
}

/// What others have read before a copy reads it they have read.
TEST(BulkCopy, LoadsBeforeThoseOfCopies) {
  auto body = [&](const std::string &from) {
    return init + expect +
           "setp.ge.u32 d, t, 64;\n@d bra LAST;\n"
           "setp.ge.u32 d, t, 32;\n@d ld.global.u32 v0, [p0];\n"
           "bar.sync 1, 64;\n@p " +
           bulk + " [tile], " + from + ", 1024, [bar];\nbra END;\nLAST:\n" +
           wait + "setp.eq.u32 d, t, 64;\n@d st.global.u32 [p0], t;\nEND:\n";
  };
  EXPECT_NE(faultOf(body("[p0]"), 96, onlyRaces()), "");
  EXPECT_NE(faultOf(body("[p0+1024]"), 96, onlyRaces()), "");
}

/// The mbarrier is gone, or the memory that is read.
TEST(BulkCopy, NothingEndsBefore) {
  EXPECT_EQ(
      faultOf(init + expect + copy + "@p mbarrier.inval.shared.b64 [bar];"),
      fault(6, "mbarrier.inval.shared.b64",
            "invalidates the mbarrier at 0x2000" + space +
                ", at which copies arrive that are on their way"));
  auto body = [&](const std::string &end) {
    return declare +
           ".reg .b32 r, a, m; .reg .pred q; mov.u32 r, "
           "%cluster_ctarank; setp.eq.u32 q, r, 0;\n"
           "@p mbarrier.init.shared.b64 [bar], 1;\n"
           "@p fence.mbarrier_init.release.cluster;\n" +
           source + fill + fence + meetAll +
           "mov.u32 a, tile; add.u32 a, a, 4096; mapa.shared::cluster.u32 a, "
           "a, 1; mov.u32 m, bar; mapa.shared::cluster.u32 m, m, 1;\n"
           "@!q bra TAKE;\n"
           "@p cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
           "complete_tx::bytes [a], [tile], 1024, [m];\nbra END;\nTAKE:\n" +
           expect + wait + "END:\n" + end;
  };
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  auto run = [&](const std::string &end) {
    return message(
        sim.run(clusterOf("2", body(end), 2), 64, {in, to}, {2, 1, 1}));
  };
  EXPECT_EQ(run(meetAll), "");
  std::string text = run("");
  EXPECT_NE(text.find("copies 1024 bytes from 0x0" + space +
                      ", asynchronously, and nobody has waited for them at the "
                      "mbarrier before the block ended"),
            std::string::npos)
      << text;
}

/// Of a block that runs for long, without a wait for all of it.
TEST(BulkCopy, ManyStores) {
  std::string body = source + fill + fence + meet + "R:\n" + store + commit +
                     waitRead +
                     "add.u32 n, n, 1;\nsetp.lt.u32 d, n, 20000;\n"
                     "@d bra R;\n";
  EXPECT_EQ(resultOf(body, 64, SimOptions()), firstBytes(1024));
}

/// Blocks have no order: one copies what another has stored.
TEST(BulkCopy, RacesOfBlocks) {
  Sim sim("sm_90a", onlyRaces());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  std::string text = relativeFault(
      message(sim.run(kernelOf(declare + init + expect +
                                   "mad.wide.u32 x, %r_block, 1024, p0;\n@p " +
                                   bulk + " [tile], [p0], 1024, [bar];\n" +
                                   wait + "@p st.global.u32 [x+16], t;\n",
                               2),
                      64, {in, to}, {2, 1, 1})));
  EXPECT_EQ(text,
            "line 6 (" + bulk +
                "), block (1,0,0), thread (0,0,0): reads <a>, byte 16 of an "
                "allocation of 16384 bytes, which thread (0,0,0) of block "
                "(0,0,0) has written in line 10; blocks have no order");
}

TEST(BulkCopy, WhatWasNotWritten) {
  auto of = [](const std::string &body) {
    return faultOf(body, 64, everything());
  };
  EXPECT_EQ(of(init + expect + "@p " + bulk + " [tile], [p1], 1024, [bar];"),
            fault(5, bulk, "reads <a>, " + array + ", which was not written"));
  EXPECT_EQ(of(store), fault(1, "cp.async.bulk.global.shared::cta.bulk_group",
                             "reads 0x0" + space + ", which was not written"));
  EXPECT_EQ(of(init + expect + copy + wait + "ld.shared.b32 v0, [tile+1024];"),
            fault(9, "ld.shared.b32",
                  "reads 0x400" + space + ", which was not written"));
}

/// As a load or store of global memory and one of shared memory.
TEST(BulkCopy, Counters) {
  Sim sim("sm_90a", everything());
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(sim.run(kernelOf(declare + init + expect + copy + wait + store + commit +
                            waitRead,
                        2),
               64, {in, to}));
  SimCounters counters = sim.kernel->counters();
  EXPECT_EQ(counters.globalLoads, 1u);
  EXPECT_EQ(counters.globalStores, 1u);
  EXPECT_EQ(counters.sharedLoads, 1u);
  EXPECT_EQ(counters.sharedStores, 1u);
  ASSERT_EQ(counters.arrays.size(), 2u);
  uint64_t loaded = 0, stored = 0, fetched = 0, full = 0;
  for (const auto &array : counters.arrays) {
    loaded += array.loaded;
    stored += array.stored;
    fetched += array.fetched;
    full += array.full;
  }
  EXPECT_EQ(loaded, 1024u);
  EXPECT_EQ(stored, 1024u);
  EXPECT_EQ(fetched, 32u);
  EXPECT_EQ(full, 2u);
  for (const SimCounters::Line &line : counters.lines)
    if (StringRef(line.text).starts_with("cp.async.bulk.") &&
        StringRef(line.text).contains("global")) {
      EXPECT_EQ(line.count.bytes, 1024u);
      EXPECT_EQ(line.count.sectors, 32u);
      EXPECT_EQ(line.count.wavefronts, 8u);
      EXPECT_EQ(line.count.conflicts, 0u);
    }
}

} // namespace
