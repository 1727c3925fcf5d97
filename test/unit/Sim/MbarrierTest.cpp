// Barriers that are objects in shared memory: their phases, and the arrivals
// and waits that kernels get wrong.
#include "SimTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

/// A line, after which those of a body are counted from 1: an mbarrier at `bar`
/// in shared memory, words at `word`, thread i's at w = 4 * i, y = p0 + 4 * id;
/// p is true of thread 0 of the block, q of the first warp.
const std::string declare =
    ".reg .b64 x, y, s<4>, g; .reg .b32 t, w, v, n, c; .reg .pred p, q, d; "
    ".shared .align 16 .b8 words[4096]; .shared .align 16 .b64 bar; "
    "mov.u32 t, %tid.x; shl.b32 w, t, 2; mov.u32 v, words; add.u32 w, w, v; "
    "mad.wide.u32 y, %r_id, 4, p0; setp.eq.u32 p, t, 0; setp.lt.u32 q, t, 32; "
    "mov.b32 n, 0; mov.b32 v, 7;\n";

std::string init(const std::string &count) {
  return "@p mbarrier.init.shared.b64 [bar], " + count + ";\nbar.sync 0;\n";
}
/// Waits until the phase of a parity is over. Labels are the callers' own.
std::string waitParity(const std::string &parity, const std::string &label,
                       const std::string &kind = "try_wait") {
  return label + ":\nmbarrier." + kind + ".parity.shared.b64 d, [bar], " +
         parity + ";\n@!d bra " + label + ";\n";
}
/// Each thread stores its number, and v is that of another warp.
const std::string give = "st.shared.u32 [w], t;\n";
const std::string take = "xor.b32 w, w, 128;\nld.shared.u32 v, [w];\n";
const std::string out = "st.global.u32 [y], v;\n";

std::vector<uint32_t> resultOf(const std::string &body, uint32_t threads = 64,
                               const std::string &target = "sm_90a",
                               const SimOptions &options = everything()) {
  Sim sim(target, options);
  uint32_t *to = sim.allocate<uint32_t>(threads);
  must(sim.run(kernelOf(declare + body, 2, target), threads, {to, to}));
  return sim.download(to, threads);
}

std::string faultOf(const std::string &body, uint32_t threads = 64,
                    const SimOptions &options = SimOptions()) {
  Sim sim("sm_90a", options);
  uint32_t *to = sim.allocate<uint32_t>(threads);
  return relativeFault(
      message(sim.run(kernelOf(declare + body, 2), threads, {to, to})));
}

const std::string atBar = "the mbarrier at 0x1000 of the shared space, of 4104 "
                          "bytes";

/// Numbers of threads with a bit changed.
std::vector<uint32_t> others(uint32_t threads, uint32_t bit = 32) {
  std::vector<uint32_t> want(threads);
  for (uint32_t i = 0; i < threads; ++i)
    want[i] = i ^ bit;
  return want;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

TEST(Mbarrier, AllArriveAndWait) {
  std::string arrive = "mbarrier.arrive.shared.b64 s0, [bar];\n";
  for (const char *kind : {"test_wait", "try_wait"}) {
    EXPECT_EQ(resultOf(init("64") + give + arrive + waitParity("0", "L", kind) +
                       take + out),
              others(64));
    EXPECT_EQ(resultOf(init("64") + give + arrive + "L:\nmbarrier." + kind +
                       ".shared.b64 d, [bar], s0;\n@!d bra L;\n" + take + out),
              others(64));
  }
  // As GPUs without clusters have it, with the address of the generic space.
  EXPECT_EQ(resultOf(init("64") + give +
                         "mov.b64 g, bar; cvta.shared.u64 g, g;\n"
                         "mbarrier.arrive.b64 s0, [g];\n"
                         "L:\nmbarrier.test_wait.b64 d, [g], s0;\n"
                         "@!d bra L;\n" +
                         take + out,
                     64, "sm_80"),
            others(64));
}

/// One thread of a warp arrives for all of it.
TEST(Mbarrier, OneArrivesForItsWarp) {
  std::string leader = "and.b32 c, t, 31; setp.eq.u32 q, c, 0;\n";
  EXPECT_EQ(resultOf(init("4") + leader + give +
                     "bar.warp.sync -1;\n"
                     "@q mbarrier.arrive.shared.b64 _, [bar], 2;\n" +
                     waitParity("0", "L") + take + out),
            others(64));
}

/// As a barrier of the hardware, phase after phase.
TEST(Mbarrier, Phases) {
  for (bool byParity : {false, true}) {
    // Each round all threads move on to the word of the next warp but one.
    std::string wait = byParity ? "and.b32 c, n, 1;\n" + waitParity("c", "W")
                                : "W:\nmbarrier.try_wait.shared.b64 d, [bar], "
                                  "s0, 1000;\n@!d bra W;\n";
    std::string meet =
        "mbarrier.arrive.shared.b64 s0, [bar];\n" + wait + "add.u32 n, n, 1;\n";
    std::string again = meet;
    for (size_t at = 0; (at = again.find("W", at)) != std::string::npos; ++at)
      again.replace(at, 1, "V");
    std::vector<uint32_t> want(96);
    for (uint32_t i = 0; i < 96; ++i)
      want[i] = i + 10;
    EXPECT_EQ(resultOf(init("96") +
                           "mov.u32 v, t;\nROUND:\n"
                           "st.shared.u32 [w], v;\n" +
                           meet + "ld.shared.u32 v, [w];\nadd.u32 v, v, 1;\n" +
                           again + "setp.lt.u32 d, n, 20;\n@d bra ROUND;\n" +
                           out,
                       96),
              want);
  }
}

/// Those that produce and those that consume, with a word for each of two
/// stages: one mbarrier says that it is full, one that it is empty.
TEST(Mbarrier, ProducersAndConsumers) {
  std::string body =
      ".shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];\n"
      ".reg .b32 f, e, a, k, r; .reg .pred z;\n"
      "@p mbarrier.init.shared.b64 [full], 32;\n"
      "@p mbarrier.init.shared.b64 [full+8], 32;\n"
      "@p mbarrier.init.shared.b64 [empty], 32;\n"
      "@p mbarrier.init.shared.b64 [empty+8], 32;\n"
      "bar.sync 0;\nmov.b32 v, 0; and.b32 a, t, 31; shl.b32 a, a, 2; "
      "mov.u32 w, words; add.u32 w, w, a;\n"
      "ROUND:\nand.b32 k, n, 1; shl.b32 c, k, 3; mov.u32 f, full; "
      "add.u32 f, f, c; mov.u32 e, empty; add.u32 e, e, c; "
      "shl.b32 c, k, 7; add.u32 a, w, c; shr.u32 r, n, 1; and.b32 r, r, 1;\n"
      "@!q bra CONSUME;\n"
      // The first time it is empty: the phase before the first is over.
      "xor.b32 c, r, 1;\n"
      "E:\nmbarrier.try_wait.parity.shared.b64 d, [e], c;\n@!d bra E;\n"
      "mad.lo.u32 c, n, 100, t;\nst.shared.u32 [a], c;\n"
      "mbarrier.arrive.shared.b64 _, [f];\nbra NEXT;\n"
      "CONSUME:\n"
      "F:\nmbarrier.try_wait.parity.shared.b64 d, [f], r;\n@!d bra F;\n"
      "ld.shared.u32 c, [a];\nadd.u32 v, v, c;\n"
      "mbarrier.arrive.shared.b64 _, [e];\n"
      "NEXT:\nadd.u32 n, n, 1;\nsetp.lt.u32 z, n, 10;\n@z bra ROUND;\n" +
      out;
  std::vector<uint32_t> want(64);
  for (uint32_t i = 32; i < 64; ++i)
    want[i] = 4500 + 10 * (i - 32);
  EXPECT_EQ(resultOf(body), want);
  // A consumer that says too early that it is done.
  size_t load = body.find("ld.shared"), arrive = body.rfind("mbarrier.arrive"),
         end = body.find("NEXT", arrive);
  std::string early = body.substr(0, load) + body.substr(arrive, end - arrive) +
                      body.substr(load, arrive - load) + body.substr(end);
  std::string text = faultOf(early, 64, onlyRaces());
  EXPECT_NE(text.find("with no barrier in between"), std::string::npos) << text;
}

TEST(Mbarrier, CountsOfArrivals) {
  // State of the phase before, counts and drops.
  std::string one = "@!p bra END;\n", end = "END:\n" + out;
  auto pending = [&](const std::string &count, const std::string &body) {
    return resultOf(init(count) + one + body +
                    "mbarrier.pending_count.b64 v, s0;\n" + end)[0];
  };
  EXPECT_EQ(pending("9", "mbarrier.arrive.shared.b64 s0, [bar];\n"), 9u);
  EXPECT_EQ(pending("9", "mbarrier.arrive.shared.b64 s0, [bar], 4;\n"
                         "mbarrier.arrive.shared.b64 s0, [bar];\n"),
            5u);
  EXPECT_EQ(pending("9", "mbarrier.arrive.noComplete.shared.b64 s0, [bar], 8;\n"
                         "mbarrier.arrive.shared.b64 s0, [bar];\n"
                         "mbarrier.arrive.shared.b64 s0, [bar];\n"),
            9u);
  // Each phase takes fewer.
  EXPECT_EQ(pending("9", "mbarrier.arrive_drop.shared.b64 s0, [bar], 2;\n"
                         "mbarrier.arrive_drop.noComplete.shared.b64 s0, "
                         "[bar], 1;\n"
                         "mbarrier.arrive.shared.b64 s0, [bar], 6;\n"
                         "mbarrier.arrive.shared.b64 s0, [bar], 6;\n"
                         "mbarrier.arrive.shared.b64 s0, [bar], 5;\n"),
            6u);
  EXPECT_EQ(pending("1048575", "mbarrier.arrive.shared.b64 s0, [bar];\n"),
            1048575u);
}

/// Bytes that threads expect and complete themselves.
TEST(Mbarrier, Bytes) {
  EXPECT_EQ(resultOf(init("1") + give +
                     "bar.sync 0;\n"
                     "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n"
                     "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], "
                     "1;\n" +
                     waitParity("0", "L") + take + out),
            others(64));
  // They may come before they are expected.
  EXPECT_EQ(resultOf(init("1") + give +
                     "bar.sync 0;\n"
                     "mbarrier.complete_tx.shared.b64 [bar], 1;\nbar.sync 0;\n"
                     "@p mbarrier.expect_tx.shared.b64 [bar], 32;\n"
                     "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32;\n" +
                     waitParity("0", "L") + take + out),
            others(64));
}

/// Memory is memory again.
TEST(Mbarrier, Invalidate) {
  std::string again = init("64") + "mbarrier.arrive.shared.b64 _, [bar];\n";
  EXPECT_EQ(resultOf(again + waitParity("0", "L") +
                     "bar.sync 0;\n@p mbarrier.inval.shared.b64 [bar];\n" +
                     again + waitParity("0", "M") +
                     "bar.sync 0;\n@p mbarrier.inval.shared.b64 [bar];\n"
                     "@p st.shared.b32 [bar], 5;\nbar.sync 0;\n"
                     "ld.shared.b32 v, [bar];\n" +
                     out),
            std::vector<uint32_t>(64, 5));
}

/// Those of a block are not the next one's.
TEST(Mbarrier, ManyBlocks) {
  Sim sim("sm_90a", everything());
  uint32_t *to = sim.allocate<uint32_t>(64 * 16);
  must(sim.run(kernelOf(declare + init("64") + give +
                            "mbarrier.arrive.shared.b64 _, [bar];\n" +
                            waitParity("0", "L") + take + out,
                        2),
               64, {to, to}, {16, 1, 1}));
  std::vector<uint32_t> want;
  for (unsigned i = 0; i < 16; ++i)
    for (uint32_t x : others(64))
      want.push_back(x);
  EXPECT_EQ(sim.download(to, 64 * 16), want);
}

/// Copies of threads arrive, by their own count or beside those of threads.
TEST(Mbarrier, ArrivalsOfCopies) {
  std::string copy = "st.global.u32 [y], t;\n"
                     "cp.async.ca.shared.global [w], [y], 4;\n";
  for (const char *target : {"sm_80", "sm_90a"}) {
    EXPECT_EQ(
        resultOf(init("64") + copy +
                     "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n" +
                     waitParity("0", "L", "test_wait") + take +
                     "bar.sync 0;\n" + out,
                 64, target),
        others(64));
    EXPECT_EQ(resultOf(init("64") + copy +
                           "cp.async.mbarrier.arrive.shared.b64 [bar];\n"
                           "mbarrier.arrive.shared.b64 s0, [bar];\n" +
                           waitParity("0", "L", "test_wait") + take +
                           "bar.sync 0;\n" + out,
                       64, target),
              others(64));
  }
  // Of a thread that has waited for its copies, or has none.
  EXPECT_EQ(resultOf(init("128") + copy +
                     "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
                     "cp.async.wait_all;\n"
                     "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n" +
                     waitParity("0", "L") + take + "bar.sync 0;\n" + out),
            others(64));
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

TEST(Mbarrier, Objects) {
  std::string arrive = "mbarrier.arrive.shared.b64";
  EXPECT_EQ(
      faultOf(arrive + " s0, [bar];"),
      fault(1, arrive,
            "arrives at an mbarrier at 0x1000 of the shared space, of 4104 "
            "bytes, where none was initialised"));
  EXPECT_EQ(
      faultOf(init("1") + "@p " + arrive + " s0, [bar+4];"),
      fault(3, arrive,
            "arrives at an mbarrier at 0x1004 of the shared space, of 4104 "
            "bytes, where none was initialised"));
  EXPECT_EQ(faultOf(init("1") + "@p mbarrier.arrive.b64 s0, [p0];"),
            fault(3, "mbarrier.arrive.b64",
                  "arrives at an mbarrier at <a>, byte 0 of an allocation of "
                  "256 bytes, expected an address of shared memory"));
  EXPECT_EQ(
      faultOf("@p mbarrier.init.shared.b64 [bar+4], 1;"),
      fault(1, "mbarrier.init.shared.b64",
            "writes 8 bytes at 0x1004 of the shared space, of 4104 bytes: "
            "the address is not a multiple of 8"));
  EXPECT_EQ(faultOf("@p mbarrier.init.shared.b64 [bar+8], 1;"),
            fault(1, "mbarrier.init.shared.b64",
                  "writes 8 bytes at 0x1008 of the shared space, of 4104 "
                  "bytes"));
  for (const char *count : {"0", "1048576", "-1"})
    EXPECT_EQ(faultOf("@p mbarrier.init.shared.b64 [bar], " +
                      std::string(count) + ";"),
              fault(1, "mbarrier.init.shared.b64",
                    "initialises " + atBar + " for " +
                        std::to_string(uint32_t(std::stoi(count))) +
                        " arrivals, expected 1 to 1048575"));
  EXPECT_EQ(faultOf(init("1") + init("1")),
            fault(3, "mbarrier.init.shared.b64",
                  "initialises " + atBar +
                      ", which line 1 has initialised, expected "
                      "mbarrier.inval in between"));
  EXPECT_EQ(
      faultOf(init("1") + "@p mbarrier.inval.shared.b64 [bar];\n@p " + arrive +
              " s0, [bar];"),
      fault(4, arrive,
            "arrives at an mbarrier at 0x1000 of the shared space, of 4104 "
            "bytes, where none was initialised"));
  // Loads and stores may not touch it.
  std::string tail = " of the shared space, of 4104 bytes, where thread "
                     "(0,0,0) has initialised an mbarrier in line 1";
  EXPECT_EQ(faultOf(init("1") + "@p ld.shared.b32 v, [bar+4];"),
            fault(3, "ld.shared.b32", "reads 4 bytes at 0x1004" + tail));
  EXPECT_EQ(faultOf(init("1") + "@p st.shared.b64 [bar], x;"),
            fault(3, "st.shared.b64", "writes 8 bytes at 0x1000" + tail));
  EXPECT_EQ(
      faultOf(init("1") + "@p cp.async.ca.shared.global [bar], [p0], 8;"),
      fault(3, "cp.async.ca.shared.global", "writes 8 bytes at 0x1000" + tail));
}

TEST(Mbarrier, Arrivals) {
  std::string arrive = "mbarrier.arrive.shared.b64";
  // A thread more than are expected, while bytes are missing.
  EXPECT_EQ(faultOf(init("1") +
                    "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n" +
                    "bar.sync 0;\n" + arrive + " s0, [bar];"),
            fault(5, arrive,
                  "arrives 1 times at " + atBar +
                      ", whose phase lacks 0 arrivals and 16 bytes"));
  EXPECT_EQ(faultOf(init("5") + "@p " + arrive + " s0, [bar], 6;"),
            fault(3, arrive,
                  "arrives 6 times at " + atBar +
                      ", whose phase lacks 5 arrivals and 0 bytes"));
  EXPECT_EQ(
      faultOf(init("5") + "mov.b32 c, 0;\n@p " + arrive + " s0, [bar], c;"),
      fault(4, arrive,
            "arrives 0 times at " + atBar + ", expected 1 to 1048575"));
  EXPECT_EQ(faultOf(init("5") +
                    "@p mbarrier.arrive.noComplete.shared.b64 s0, [bar], 5;"),
            fault(3, "mbarrier.arrive.noComplete.shared.b64",
                  "arrives 5 times at " + atBar +
                      ", which completes its phase, with .noComplete"));
  EXPECT_EQ(faultOf(init("1") +
                    "@p mbarrier.expect_tx.shared.b64 [bar], 1048575;\n"
                    "@p mbarrier.expect_tx.shared.b64 [bar], 1;"),
            fault(4, "mbarrier.expect_tx.shared.b64",
                  "expects 1 bytes at " + atBar +
                      ", which lacks 1048575: it counts up to 1048575"));
  EXPECT_EQ(faultOf(init("1") + "@p cp.async.mbarrier.arrive.noinc.shared.b64 "
                                "[bar];\n@p cp.async.mbarrier.arrive.noinc."
                                "shared.b64 [bar];"),
            fault(4, "cp.async.mbarrier.arrive.noinc.shared.b64",
                  "arrives after its copies at " + atBar +
                      ", whose phase lacks 1 arrivals, of which copies bring "
                      "1"));
}

TEST(Mbarrier, WaitsThatNeverEnd) {
  std::string wait = "mbarrier.try_wait.parity.shared.b64";
  EXPECT_EQ(faultOf(init("65") + "mbarrier.arrive.shared.b64 _, [bar];\n" +
                    waitParity("0", "L")),
            fault(5, wait,
                  "waits for phase 0 of " + atBar +
                      ", which is never complete: 1 arrivals are missing, and "
                      "0 bytes",
                  "32"));
  EXPECT_EQ(
      faultOf(init("1") +
                  "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;\n"
                  "@p mbarrier.complete_tx.shared.b64 [bar], 16;\n" +
                  waitParity("0", "L"),
              32),
      fault(6, wait,
            "waits for phase 0 of " + atBar +
                ", which is never complete: 0 arrivals are missing, and "
                "32 bytes"));
  EXPECT_NE(faultOf(init("1") +
                    "@p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
                    "@p mbarrier.complete_tx.shared.b64 [bar], 48;\n" +
                    waitParity("0", "L"))
                .find("0 arrivals are missing, and 32 bytes have come that "
                      "nobody expects"),
            std::string::npos);
  // The wrong parity: the phase that has begun is not the one before.
  EXPECT_NE(faultOf(init("64") + "mbarrier.arrive.shared.b64 _, [bar];\n" +
                    waitParity("0", "L") + waitParity("1", "M"))
                .find("waits for phase 1 of "),
            std::string::npos);
}

TEST(Mbarrier, WrongPhases) {
  std::string wait = "mbarrier.test_wait.shared.b64";
  EXPECT_EQ(faultOf("mov.b32 c, 2;\n" + init("1") +
                    "@p mbarrier.test_wait.parity.shared.b64 d, [bar], c;"),
            fault(4, "mbarrier.test_wait.parity.shared.b64",
                  "waits for parity 2, expected 0 or 1"));
  // A state of two phases ago.
  std::string arrive = "@p mbarrier.arrive.shared.b64 s";
  std::string two =
      init("1") + arrive + "0, [bar];\n" + arrive + "1, [bar];\n@p ";
  EXPECT_EQ(faultOf(two + wait + " d, [bar], s1;"), "");
  EXPECT_EQ(faultOf(two + wait + " d, [bar], s0;"),
            fault(5, wait,
                  "waits for phase 0 of " + atBar +
                      ", expected the present one, which is 2, or the one "
                      "before"));
  // A wait for the phase that was over before is no wait: what the warp reads
  // has no order to the store.
  std::string body = init("64") + give +
                     "mbarrier.arrive.shared.b64 s0, [bar];\n" +
                     waitParity("1", "L") + take;
  EXPECT_EQ(faultOf(body, 64, onlyRaces()),
            fault(3, "st.shared.u32",
                  "writes 0x0 of the shared space, of 4104 bytes, which thread "
                  "(32,0,0) has read in line 9 with no barrier in between"));
}

TEST(Mbarrier, Races) {
  auto races = [](const std::string &body) {
    return faultOf(body, 64, onlyRaces());
  };
  std::string arrive = "mbarrier.arrive.shared.b64 s0, [bar];\n";
  std::string wait = waitParity("0", "L");
  EXPECT_EQ(races(init("64") + give + arrive + wait + take), "");
  // Nothing says that the mbarrier has begun.
  EXPECT_EQ(races("@p mbarrier.init.shared.b64 [bar], 64;\n" + arrive),
            fault(2, "mbarrier.arrive.shared.b64",
                  "arrives at " + atBar +
                      ", which thread (0,0,0) has initialised in line 1 with "
                      "no barrier in between",

                  "1"));
  // Stored after the arrival.
  EXPECT_EQ(races(init("64") + arrive + give + wait + take),
            fault(9, "ld.shared.u32",
                  "reads 0x80 of the shared space, of 4104 bytes, which "
                  "thread (32,0,0) has written in line 4 with no barrier in "
                  "between"));
  // No wait at all.
  EXPECT_EQ(races(init("64") + give + arrive + take),
            fault(3, "st.shared.u32",
                  "writes 0x0 of the shared space, of 4104 bytes, which "
                  "thread (32,0,0) has read in line 6 with no barrier in "
                  "between"));
  // Neither gives anything.
  std::string relaxed = "mbarrier.arrive.relaxed.cta.shared.b64 s0, [bar];\n";
  EXPECT_NE(races(init("64") + give + relaxed + wait + take), "");
  EXPECT_NE(races(init("64") + give + arrive +
                  "L:\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 d, "
                  "[bar], 0;\n@!d bra L;\n" +
                  take),
            "");
  // It ends while others may ask for it.
  EXPECT_EQ(races(init("64") + arrive + wait +
                  "@p mbarrier.inval.shared.b64 [bar];\n"),
            "line 7 (mbarrier.inval.shared.b64), block (0,0,0), thread "
            "(0,0,0): writes 0x1000 of the shared space, of 4104 bytes, which "
            "thread (1,0,0) has read in line 5 with no barrier in between");
}

/// What an arrival gives is what lanes of the warp did before: lanes have no
/// order among themselves by it.
TEST(Mbarrier, LanesHaveNoOrder) {
  EXPECT_EQ(faultOf(init("64") + give +
                        "mbarrier.arrive.shared.b64 s0, [bar];\n"
                        "xor.b32 w, w, 4;\nld.shared.u32 v, [w];\n",
                    32, onlyRaces()),
            fault(6, "ld.shared.u32",
                  "reads 0x4 of the shared space, of 4104 bytes, which "
                  "thread (1,0,0) has written in line 3 with no barrier in "
                  "between"));
}

/// Operands that take steps of their own come before that of the mbarrier.
TEST(Mbarrier, ClocksAsOperands) {
  for (const char *instruction :
       {"mbarrier.expect_tx.shared.b64 [bar], %clock;",
        "mbarrier.init.shared.b64 [bar+8], %clock;",
        "mbarrier.arrive.shared.b64 s0, [bar], %clock;"})
    for (unsigned before = 0; before < 20; ++before) {
      std::string text = init("1048575");
      for (unsigned i = 0; i < before; ++i)
        text += "add.u32 n, n, 1;\n";
      std::string found =
          faultOf(".shared .b64 more;\n" + text + "@p " + instruction);
      EXPECT_EQ(found, "") << instruction << before;
    }
}

/// Others run on for as long as they like.
TEST(Mbarrier, OthersMeetWhileSomeWait) {
  std::string body = init("64") +
                     "@!q bra W;\nR:\nbar.sync 1, 32;\nadd.u32 n, n, 1;\n"
                     "setp.lt.u32 d, n, 300000;\n@d bra R;\nW:\n"
                     "mbarrier.arrive.shared.b64 _, [bar];\n" +
                     waitParity("0", "L") + "mov.u32 v, n;\n" + out;
  EXPECT_EQ(resultOf(body, 64, "sm_90a", SimOptions())[0], 300000u);
}

/// Lanes of a warp that wait leave those to go on that they wait for.
TEST(Mbarrier, LanesOfAWarpWaitForEachOther) {
  for (const char *parted : {"@!p bra L;\n", "@p bra A;\nbra L;\nA:\n"})
    EXPECT_EQ(
        resultOf(init("1") + parted +
                     "st.shared.u32 [words], 9;\n"
                     "mbarrier.arrive.shared.b64 _, [bar];\nbra X;\n" +
                     waitParity("0", "L") +
                     "X:\nbar.warp.sync -1;\nld.shared.u32 v, [words];\n" + out,
                 32),
        std::vector<uint32_t>(32, 9));
}

/// With fences around them relaxed arrivals and waits give and take.
TEST(Mbarrier, FencesOfMemory) {
  std::string arrive = "mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];\n";
  std::string wait = "L:\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 d, "
                     "[bar], 0;\n@!d bra L;\n";
  std::string fence = "fence.acq_rel.cta;\n";
  EXPECT_EQ(
      resultOf(init("64") + give + fence + arrive + wait + fence + take + out),
      others(64));
  EXPECT_NE(faultOf(init("64") + give + fence + arrive + wait + take, 64,
                    onlyRaces()),
            "");
  EXPECT_NE(faultOf(init("64") + give + arrive + wait + fence + take, 64,
                    onlyRaces()),
            "");
  // Before what is stored it is none.
  EXPECT_NE(faultOf(init("64") + fence + give + arrive + wait + fence + take,
                    64, onlyRaces()),
            "");
}

TEST(Mbarrier, CopiesArriveAsOftenAsTheySay) {
  std::string arrive = "mbarrier.arrive.shared.b64";
  std::string copies = "@p cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n";
  EXPECT_EQ(faultOf(init("1") + copies + "@p " + arrive + " _, [bar];"),
            fault(4, arrive,
                  "arrives 1 times at " + atBar +
                      ", whose phase lacks 1 arrivals and 0 bytes, and copies "
                      "bring 1 of them"));
  EXPECT_EQ(faultOf(init("2") + copies + "@p " + arrive + " _, [bar];\n" +
                    waitParity("0", "L")),
            "");
  EXPECT_EQ(faultOf(init("1") + copies + "@p mbarrier.inval.shared.b64 [bar];"),
            fault(4, "mbarrier.inval.shared.b64",
                  "invalidates " + atBar +
                      ", at which copies arrive that are on their way"));
}

/// They tell of themselves and what was before, not of what came later.
TEST(Mbarrier, CopiesGiveWhatTheyCopy) {
  auto body = [](const std::string &late) {
    return "st.global.u32 [y], t;\n" + init("64") +
           "cp.async.ca.shared.global [w], [y], 4;\n"
           "st.shared.u32 [w+1024], t;\n"
           "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n" +
           late + waitParity("0", "L") +
           "xor.b32 w, w, 128;\nld.shared.u32 v, [w];\n"
           "ld.shared.u32 v, [w+1024];\nld.shared.u32 v, [w+2048];\n";
  };
  EXPECT_EQ(faultOf("st.shared.u32 [w+2048], t;\n" + body(""), 64, onlyRaces()),
            "");
  EXPECT_NE(faultOf(body("st.shared.u32 [w+2048], t;\n"), 64, onlyRaces()), "");
  // A thread that waits itself as well.
  EXPECT_EQ(
      faultOf("st.shared.u32 [w+2048], t;\n" + body("cp.async.wait_all;\n"), 64,
              onlyRaces()),
      "");
}

/// A phase that takes no arrivals is never over.
TEST(Mbarrier, AllAreDropped) {
  std::string text =
      faultOf(init("1") +
              "@p mbarrier.arrive_drop.shared.b64 _, [bar];\nbar.sync 0;\n" +
              waitParity("0", "L") + waitParity("1", "M"));
  EXPECT_NE(text.find("waits for phase 1 of " + atBar +
                      ", which is never complete: 0 arrivals are missing"),
            std::string::npos)
      << text;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// All threads of all blocks arrive at that of the first one.
TEST(Mbarrier, OfAnotherBlock) {
  auto body = [&](const std::string &before) {
    return declare +
           ".reg .b32 r, a; mov.u32 r, %cluster_ctarank; "
           "setp.eq.u32 q, r, 0;\n"
           "@p mbarrier.init.shared.b64 [bar], 128;\n" +
           meetAll +
           "mov.u32 a, words; mapa.shared::cluster.u32 a, a, 0; "
           "mad.lo.u32 c, r, 64, t; mad.lo.u32 a, c, 4, a;\n"
           "st.shared::cluster.u32 [a], c;\n" +
           before +
           "mov.u32 a, bar; mapa.shared::cluster.u32 a, a, 0;\n"
           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a];\n"
           "@!q bra END;\nL:\n"
           "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 d, "
           "[bar], 0;\n@!d bra L;\n"
           "ld.shared.u32 v, [w+256];\nst.global.u32 [y], v;\nEND:\n" +
           meetAll;
  };
  Sim sim("sm_90a", everything());
  uint32_t *to = sim.allocate<uint32_t>(256);
  must(sim.run(clusterOf("2", body(""), 2), 64, {to, to}, {4, 1, 1}));
  std::vector<uint32_t> found = sim.download(to, 256);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(found[i], 64 + i);
    EXPECT_EQ(found[128 + i], 64 + i);
  }
  // Nobody has waited for the other block.
  std::string text =
      message(sim.run(clusterOf("2",
                                declare + "mov.u32 c, bar; "
                                          "mapa.shared::cluster.u32 c, c, 1; "
                                          "mbarrier.arrive.shared::cluster.b64 "
                                          "_, [c];\n",
                                2),
                      64, {to, to}, {2, 1, 1}));
  EXPECT_NE(text.find("shared memory of block (1,0,0), which may not have "
                      "begun"),
            std::string::npos)
      << text;
}

/// By generic addresses, as the ISA's examples have it.
TEST(Mbarrier, OfAnotherBlockByGenericAddress) {
  auto body = [&](const std::string &use) {
    return declare +
           ".reg .b32 r; mov.u32 r, %cluster_ctarank; setp.eq.u32 q, r, 0;\n"
           "@p mbarrier.init.shared.b64 [bar], 128;\n" +
           meetAll +
           "mov.u64 g, bar; cvta.shared.u64 g, g; mapa.u64 g, g, 0;\n" + use +
           "@!q bra END;\n" + waitParity("0", "L") + "END:\n" + meetAll;
  };
  Sim sim("sm_90a", everything());
  uint32_t *to = sim.allocate<uint32_t>(256);
  auto run = [&](const std::string &use) {
    return message(
        sim.run(clusterOf("2", body(use), 2), 64, {to, to}, {4, 1, 1}));
  };
  EXPECT_EQ(run("mbarrier.arrive.release.cluster.b64 _, [g];\n"), "");
  EXPECT_EQ(run("mbarrier.arrive.expect_tx.release.cluster.b64 _, [g], 4;\n"
                "mbarrier.complete_tx.b64 [g], 4;\n"),
            "");
  // What has a result is of the block itself.
  EXPECT_NE(
      run("mbarrier.arrive.b64 s0, [g];\n").find("where none was initialised"),
      std::string::npos);
}

/// A fence, and a barrier of the cluster that orders nothing else.
TEST(Mbarrier, RelaxedBarriersOfTheCluster) {
  std::string meet = "barrier.cluster.arrive.relaxed.aligned;\n"
                     "barrier.cluster.wait.acquire.aligned;\n";
  std::string made = "@p mbarrier.init.shared.b64 [bar], 64;\n";
  std::string fence = "@p fence.mbarrier_init.release.cluster;\n";
  std::string use = "mbarrier.arrive.shared.b64 _, [bar];\n";
  for (const char *blocks : {"1", "2"}) {
    Sim sim("sm_90a", everything());
    uint32_t *to = sim.allocate<uint32_t>(256);
    auto run = [&](const std::string &body) {
      return message(sim.run(clusterOf(blocks, declare + body, 2), 64, {to, to},
                             {2, 1, 1}));
    };
    EXPECT_EQ(run(made + fence + meet + use), "");
    EXPECT_NE(run(made + meet + use), "");
    EXPECT_NE(run(fence + made + meet + use), "");
    // One after the arrival is too late for this round.
    EXPECT_NE(run("barrier.cluster.arrive.relaxed.aligned;\n" + made + fence +
                  "barrier.cluster.wait.acquire.aligned;\n" + use),
              "");
  }
}

} // namespace
