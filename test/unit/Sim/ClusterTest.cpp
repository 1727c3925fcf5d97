// Clusters of blocks: their registers, shared memory of each other, and the
// barrier that they have in common.
#include "SimTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

const std::string declare =
    ".reg .b64 x, y; .reg .b32 r, n, t, v, w; .reg .pred p; "
    ".shared .align 16 .b8 place[64];\n"
    "mov.u32 r, %cluster_ctarank; mov.u32 n, %cluster_nctarank;\n";
const std::string meet = "barrier.cluster.arrive.release.aligned;\n"
                         "barrier.cluster.wait.acquire.aligned;\n";
/// p1[id] = v
const std::string out = "mad.lo.u64 y, %rd_id, 4, p0; st.global.u32 [y], v;\n";

/// Each block writes its number to the next one, which stores it.
std::string ring(const std::string &before, const std::string &after,
                 const std::string &store = "st.shared::cluster.u32 [x], v;") {
  return declare + before +
         "add.u32 t, r, 1; rem.u32 t, t, n; mov.u32 v, %ctaid.x;\n"
         "setp.eq.u32 p, %r_id, %r_id; mov.u32 w, %tid.x; "
         "setp.eq.u32 p, w, 0;\n"
         "mov.u64 x, place; mapa.shared::cluster.u64 x, x, t;\n@p " +
         store + "\n" + after + "ld.shared.u32 v, [place];\n" + out;
}

std::vector<uint32_t> results(const std::string &code, uint32_t threads,
                              Grid grid) {
  Sim sim("sm_90a", everything());
  size_t count = size_t(threads) * grid.x * grid.y;
  uint32_t *memory = sim.allocate<uint32_t>(count);
  must(sim.run(code, threads, {memory}, grid));
  return sim.download(memory, count);
}

std::string faultOf(const std::string &code, Grid grid = {4, 1, 1},
                    const std::string &target = "sm_90a") {
  Sim sim(target, everything());
  uint32_t *memory = sim.allocate<uint32_t>(4096);
  return message(sim.run(code, 64, {memory}, grid));
}

void expectFault(const std::string &code, const std::string &text,
                 Grid grid = {4, 1, 1}) {
  std::string found = faultOf(code, grid);
  EXPECT_NE(found.find(text), std::string::npos) << found;
}

TEST(Cluster, Ring) {
  for (unsigned blocks : {2, 4, 8}) {
    auto found = results(clusterOf(std::to_string(blocks), ring(meet, meet), 1),
                         64, {16, 1, 1});
    for (unsigned i = 0; i < found.size(); ++i) {
      unsigned block = i / 64, first = block / blocks * blocks;
      EXPECT_EQ(found[i], first + (block - first + blocks - 1) % blocks);
    }
  }
}

TEST(Cluster, GenericAddresses) {
  std::string body = declare + meet +
                     "xor.b32 t, r, 1; mov.u32 v, %ctaid.x;\n"
                     "mov.u64 x, place; cvta.shared.u64 x, x; "
                     "mapa.u64 y, x, t; st.u32 [y], v;\n" +
                     meet + "ld.u32 v, [x];\n" + out;
  auto found = results(clusterOf("2", body, 1), 32, {6, 1, 1});
  for (unsigned i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], (i / 32) ^ 1);
}

/// All threads of all blocks add to a word of the first one.
TEST(Cluster, Atomics) {
  std::string body =
      declare + "mov.u64 x, place; st.shared.u32 [x], 0; bar.sync 0;\n" + meet +
      "mapa.shared::cluster.u64 y, x, 0; "
      "red.relaxed.cluster.shared::cluster.add.u32 [y], 1;\n" +
      meet + "ld.shared::cluster.u32 v, [y];\n" + meet + out;
  // Those of other blocks read what nobody may change any more.
  std::string where = "mad.lo.u64 y, %rd_id, 4, p0;";
  EXPECT_NE(body.find(where), std::string::npos);
  auto found = results(clusterOf("4", body, 1), 64, {8, 1, 1});
  for (uint32_t v : found)
    EXPECT_EQ(v, 256u);
}

TEST(Cluster, Registers) {
  std::string body = declare +
                     "mov.u32 v, %clusterid.x; mov.u32 w, %clusterid.y; "
                     "mad.lo.u32 v, v, 10, w;\n"
                     "mov.u32 w, %cluster_ctaid.x; mad.lo.u32 v, v, 10, w; "
                     "mov.u32 w, %cluster_ctaid.y; mad.lo.u32 v, v, 10, w;\n"
                     "mad.lo.u32 v, v, 10, r; mad.lo.u32 v, v, 10, n; "
                     "mov.u32 w, %nclusterid.x; mad.lo.u32 v, v, 10, w;\n"
                     "mov.u32 w, %cluster_nctaid.y; mad.lo.u32 v, v, 10, w;\n"
                     ".reg .b64 at; .reg .b32 b; mov.u32 w, %nctaid.x; "
                     "mov.u32 b, %ctaid.y; mov.u32 t, %ctaid.x; "
                     "mad.lo.u32 b, b, w, t; cvt.u64.u32 at, b; "
                     "mad.lo.u64 y, at, 4, p0; st.global.u32 [y], v;\n";
  Sim sim("sm_90a", everything());
  uint32_t *memory = sim.allocate<uint32_t>(6 * 4);
  must(sim.run(clusterOf("2, 2, 1", body, 1), 32, {memory}, {6, 4, 1}));
  auto found = sim.download(memory, 24);
  for (unsigned y = 0; y < 4; ++y)
    for (unsigned x = 0; x < 6; ++x) {
      unsigned rank = x % 2 + y % 2 * 2, want = 0;
      for (unsigned digit : {x / 2, y / 2, x % 2, y % 2, rank, 4u, 3u, 2u})
        want = want * 10 + digit;
      EXPECT_EQ(found[y * 6 + x], want);
    }
}

/// Without a cluster each block is one.
TEST(Cluster, OfOneBlock) {
  std::string body = declare + meet +
                     "mad.lo.u32 v, n, 10, r; mov.u32 w, %clusterid.x; "
                     "mad.lo.u32 v, v, 10, w;\n" +
                     out;
  auto found = results(kernelOf(body, 1), 32, {3, 1, 1});
  for (unsigned i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], 100 + i / 32);
}

TEST(Cluster, ThoseThatReturnedAreNotWaitedFor) {
  std::string body = declare +
                     "mov.u32 w, %tid.x; setp.ge.u32 p, w, 32; @p exit;\n" +
                     meet + "mov.u32 v, 7;\n" + out;
  Sim sim("sm_90a", everything());
  uint32_t *memory = sim.allocate<uint32_t>(256);
  must(sim.run(clusterOf("2", body, 1), 64, {memory}, {4, 1, 1}));
  EXPECT_EQ(sim.download(memory, 256)[64], 7u);
}

TEST(Cluster, Faults) {
  // Nothing says that the other block has begun.
  expectFault(clusterOf("2", ring("", meet), 1),
              "block (0,0,0), thread (0,0,0): shared memory of block (1,0,0), "
              "which may not have begun: no wait at the barrier of the "
              "cluster is before the access");
  // An arrival says nothing, whoever else has arrived.
  expectFault(clusterOf("2",
                        ring("barrier.cluster.arrive.aligned;\n",
                             "barrier.cluster.wait.aligned;\n" + meet),
                        1),
              "which may not have begun");
  // Ranks that nobody has, also where their address would wrap.
  for (const char *rank : {"2", "7", "254", "255", "256", "0xffffffff"})
    expectFault(clusterOf("2",
                          declare + meet + "mov.u32 t, place; mov.u32 v, " +
                              rank +
                              "; mapa.shared::cluster.u32 t, t, v; "
                              "st.shared::cluster.b32 [t], r;\n",
                          1),
                "of a cluster of 2");
  // The other one has ended when the address is used.
  expectFault(clusterOf("2",
                        declare + meet +
                            "setp.eq.u32 p, r, 1; @p exit;\n"
                            "bar.sync 0; bar.sync 0;\n"
                            "mov.u64 x, place; mapa.shared::cluster.u64 x, x, "
                            "1; st.shared::cluster.u32 [x], r;\n",
                        1),
              "shared memory of block (1,0,0), which has ended");
  expectFault(clusterOf("2",
                        declare + meet +
                            "mov.u64 x, place; mapa.shared::cluster.u64 x, x, "
                            "2; st.shared::cluster.u32 [x], r;\n",
                        1),
              "shared memory of the block of rank 2 of a cluster of 2");
  // Past the end of the memory of the other block, and of this one.
  expectFault(
      clusterOf("2", ring(meet, meet, "st.shared::cluster.u32 [x+64], v;"), 1),
      "writes 4 bytes at 0x40 of the shared space, of 64 bytes");
  expectFault(clusterOf("2", declare + "barrier.cluster.wait.aligned;\n", 1),
              "waits at the barrier of the cluster, and has not arrived");
  expectFault(clusterOf("2",
                        declare + "barrier.cluster.arrive.aligned; "
                                  "barrier.cluster.arrive.aligned;\n",
                        1),
              "has arrived at the barrier of the cluster before, and has not "
              "waited since");
  expectFault(clusterOf("2",
                        declare + "setp.eq.u32 p, r, 1; @p bra skip;\n" + meet +
                            "skip:\nbar.sync 0;\n" +
                            "@p bra wait; bra end;\nwait:\n"
                            "barrier.cluster.arrive.aligned; bar.sync 1; "
                            "bar.sync 2, 96;\nend:\n",
                        1),
              "never complete");
  expectFault(clusterOf("2",
                        declare + "mov.u32 w, %tid.x; setp.lt.u32 p, w, 5;\n"
                                  "@p barrier.cluster.arrive.aligned;\n",
                        1),
              "is not at the barrier of the cluster that others of its warp "
              "are at");
}

/// What a barrier of the cluster orders.
TEST(Cluster, Races) {
  // The other block writes while this one reads.
  expectFault(
      clusterOf("2",
                ring("st.shared.u32 [place], 0;\n" + meet, "bar.sync 0;\n"), 1),
      "with no barrier in between");
  std::string relaxed = "barrier.cluster.arrive.relaxed.aligned;\n"
                        "barrier.cluster.wait.aligned;\n";
  expectFault(
      clusterOf("2", ring("st.shared.u32 [place], 0;\n" + meet, relaxed), 1),
      "of block (");
  // After the arrival nothing is ordered.
  expectFault(clusterOf("2",
                        ring("st.shared.u32 [place], 0;\n" + meet +
                                 "barrier.cluster.arrive.aligned;\n",
                             "barrier.cluster.wait.aligned;\n"),
                        1),
              "with no barrier in between");
  // Blocks of one cluster have an order, those of two have none.
  std::string global = declare + "mov.u32 w, %tid.x; setp.eq.u32 p, w, 0;\n"
                                 "@p st.global.u32 [p0], r;\n";
  std::string alone = declare + meet +
                      "mov.u32 w, %r_id; setp.eq.u32 p, w, 0;\n"
                      "@p st.global.u32 [p0], r;\n" +
                      meet +
                      "setp.eq.u32 p, w, 64;\n@p ld.global.u32 v, [p0];\n";
  EXPECT_EQ(faultOf(clusterOf("2", alone, 1), {2, 1, 1}), "");
  expectFault(clusterOf("2", global, 1), "with no barrier in between");
  std::string second = declare + meet +
                       "mov.u32 w, %r_id; and.b32 w, w, 127; "
                       "setp.eq.u32 p, w, 64;\n@p st.global.u32 [p0], %r_id;\n";
  expectFault(clusterOf("2", second, 1), "blocks have no order");
}

TEST(Cluster, Launches) {
  expectFault(clusterOf("4", ring(meet, meet), 1),
              "grid of kernel 'k' is 6x1x1, expected whole clusters of 4x1x1",
              {6, 1, 1});
  std::string found = faultOf(clusterOf("16", ring(meet, meet), 1));
  EXPECT_NE(found.find("a cluster of 16 blocks, at most 8 are simulated"),
            std::string::npos)
      << found;
  found =
      faultOf(clusterOf("2", ring(meet, meet), 1, "sm_80"), {2, 1, 1}, "sm_80");
  EXPECT_NE(found.find("clusters need sm_90 or later"), std::string::npos)
      << found;
}

} // namespace
