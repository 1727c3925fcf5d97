// Matrices of 8 x 8 in shared memory: ldmatrix, stmatrix.
#include "SimTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

/// Number i is i + 1, in as many matrices of 8 x 8.
std::vector<uint16_t> numbers(unsigned matrices) {
  std::vector<uint16_t> values(64 * matrices);
  for (unsigned i = 0; i < values.size(); ++i)
    values[i] = uint16_t(i + 1);
  return values;
}

std::string registers(unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", v" : "{v") + std::to_string(i);
  return list + "}";
}

/// Copies p0, rows of 16 bytes, to shared memory; `body` has the address of
/// row `lane` there as s, and the lane's part of p1, 16 bytes, as y.
std::string kernelOfRows(const std::string &body,
                         const std::string &target = "sm_90a") {
  return kernelOf(".shared .align 16 .b8 rows[512];\n.reg .b32 s, v<4>;\n"
                  ".reg .b64 x, y;\nmov.u32 s, rows;\n"
                  "cvt.u32.u64 v0, %rd_id;\nmad.lo.u32 s, v0, 16, s;\n"
                  "mad.lo.u64 x, %rd_id, 16, p0;\n"
                  "mad.lo.u64 y, %rd_id, 16, p1;\n"
                  "ld.global.v4.b32 {v0, v1, v2, v3}, [x];\n"
                  "st.shared.v4.b32 [s], {v0, v1, v2, v3};\nbar.sync 0;\n" +
                      body,
                  2, target);
}

std::string storeAll(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += "st.global.b32 [y+" + std::to_string(4 * i) + "], v" +
            std::to_string(i) + ";\n";
  return text;
}

SimOptions allChecks() {
  SimOptions options;
  options.checkInit = options.checkRaces = options.countMemory = true;
  return options;
}

TEST(MatrixOps, LoadsWhatTheIsaSays) {
  auto data = numbers(4);
  for (unsigned count : {1, 2, 4})
    for (bool transposed : {false, true}) {
      Sim sim("sm_90a", allChecks());
      uint16_t *in = sim.upload(data), *out = sim.allocate<uint16_t>(256);
      std::string load = "ldmatrix.sync.aligned.m8n8.x" +
                         std::to_string(count) + (transposed ? ".trans" : "") +
                         ".shared.b16 " + registers(count) + ", [s];\n";
      must(sim.run(kernelOfRows(load + storeAll(count)), 32, {in, out}));
      auto found = sim.download(out, 256);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned m = 0; m < count; ++m)
          for (unsigned half = 0; half < 2; ++half) {
            unsigned row = lane / 4, column = lane % 4 * 2 + half;
            unsigned at = transposed ? column * 8 + row : row * 8 + column;
            EXPECT_EQ(found[8 * lane + 2 * m + half], data[64 * m + at])
                << load << lane;
          }
    }
}

/// What was loaded is stored where it was, and transposed where one of the two
/// is.
TEST(MatrixOps, StoresAreTheInverse) {
  auto data = numbers(4);
  for (bool load : {false, true})
    for (bool store : {false, true}) {
      Sim sim("sm_90a", allChecks());
      uint16_t *in = sim.upload(data), *out = sim.allocate<uint16_t>(256);
      auto name = [](bool transposed) {
        return std::string(".sync.aligned.m8n8.x4") +
               (transposed ? ".trans" : "") + ".shared.b16 ";
      };
      must(sim.run(kernelOfRows("ldmatrix" + name(load) + registers(4) +
                                ", [s];\nbar.sync 0;\nstmatrix" + name(store) +
                                "[s], " + registers(4) +
                                ";\nbar.sync 0;\n"
                                "ld.shared.v4.b32 {v0, v1, v2, v3}, [s];\n" +
                                storeAll(4)),
                   32, {in, out}));
      auto found = sim.download(out, 256);
      for (unsigned i = 0; i < 256; ++i) {
        unsigned row = i / 8 % 8, column = i % 8;
        unsigned at = load == store ? i : i / 64 * 64 + column * 8 + row;
        EXPECT_EQ(found[i], data[at]) << i;
      }
    }
}

TEST(MatrixOps, Refused) {
  Sim sim;
  auto message = [&](const std::string &line, const std::string &target) {
    auto loaded = Sim(target).load(kernelOfRows(line, target), 32,
                                   {ParamKind::Pointer, ParamKind::Pointer});
    return loaded ? "loaded" : toString(loaded.takeError());
  };
  for (auto [line, target, expected] :
       {std::tuple("stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {v0};",
                   "sm_80", "needs sm_90, the target is sm_80"),
        std::tuple("ldmatrix.sync.aligned.m8n8.x1.b16 {v0}, [s];", "sm_90a",
                   "is simulated for the shared space alone"),
        std::tuple("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {v0}, [s];",
                   "sm_90a", "1 elements, expected 2"),
        std::tuple("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {y}, [s];",
                   "sm_90a", "has registers of 32 bits")})
    EXPECT_NE(message(line, target).find(expected), std::string::npos)
        << message(line, target);
}

TEST(MatrixOps, Faults) {
  auto data = numbers(4);
  auto message = [&](const std::string &body) {
    Sim sim("sm_90a", allChecks());
    uint16_t *in = sim.upload(data), *out = sim.allocate<uint16_t>(256);
    Error error = sim.run(kernelOfRows(body), 32, {in, out});
    return error ? toString(std::move(error)) : std::string("no error");
  };
  std::string load =
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " + registers(4) + ", [s";
  EXPECT_NE(message(load + "+4];").find("is not a multiple of 16"),
            std::string::npos);
  EXPECT_NE(message(load + "+16];").find("reads 16 bytes at"),
            std::string::npos);
  EXPECT_NE(
      message(".reg .pred p;\nsetp.ne.u64 p, %rd_id, 3;\n@p " + load + "];")
          .find("needs all lanes of the warp, and 0x8 are elsewhere"),
      std::string::npos);
  // Row of another lane.
  std::string store =
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], " + registers(4) + ";\n";
  std::string other = "xor.b32 v0, s, 16;\nld.shared.b32 v0, [v0];\n"
                      "st.global.b32 [y], v0;\n";
  EXPECT_NE(message(store + other).find("with no barrier in between"),
            std::string::npos);
  EXPECT_EQ(message(store + "bar.sync 0;\n" + other), "no error");
}

} // namespace
