#include "XlaTest.h"

#include <atomic>
#include <functional>
#include <thread>

using namespace dither::runtime;
using namespace dither::test;

namespace {

/// What threads of XLA share: the programs that are known and loaded.
class XlaSharedTest : public XlaTest {
protected:
  static void expectRuns(const Program &program, int64_t programs) {
    RecordCall call(program, programs);
    EXPECT_EQ(call.run(), "");
    for (int64_t p = 0; p < programs; ++p)
      EXPECT_EQ(call.out[p], 1 + p);
    EXPECT_EQ(call.counts, std::vector<int64_t>(programs, 1));
  }

  static void inThreads(int count, const std::function<void(int)> &body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
      threads.emplace_back(body, t);
    for (std::thread &thread : threads)
      thread.join();
  }
};

TEST_F(XlaSharedTest, OneProgramOfManyThreads) {
  Program program = recordProgram(20, unique());
  inThreads(8, [&](int) {
    for (int round = 0; round < 20; ++round) {
      EXPECT_EQ(instantiate(program), "");
      expectRuns(program, 20);
    }
  });
}

TEST_F(XlaSharedTest, ManyProgramsOfManyThreads) {
  std::vector<Program> programs;
  for (int i = 0; i < 6; ++i)
    programs.push_back(recordProgram(3 + i, unique()));
  inThreads(6, [&](int t) {
    for (int round = 0; round < 12; ++round) {
      int which = (t + round) % 6;
      EXPECT_EQ(instantiate(programs[which]), "");
      expectRuns(programs[which], 3 + which);
    }
  });
}

TEST_F(XlaSharedTest, LoadedOnceForEachDevice) {
  Program program = ptxProgram(unique());
  ASSERT_EQ(instantiate(program), "");
  inThreads(8, [&](int t) {
    auto call = [&](XLA_FFI_ExecutionStage stage, XlaHandler *handler) {
      return Frame(stage, program)
          .operand(nullptr, {0})
          .result(reinterpret_cast<void *>(0x10000), {16})
          .on(nullptr, t % 2)
          .call(handler);
    };
    EXPECT_EQ(call(XLA_FFI_ExecutionStage_INITIALIZE, xlaInitializeCuda), "");
    EXPECT_EQ(call(XLA_FFI_ExecutionStage_EXECUTE, xlaRunCuda), "");
  });
  EXPECT_EQ(loads(), 2u);
  EXPECT_EQ(llvm::StringRef(launches()).count("scale grid=4x2x1"), 8u);
}

/// A load may wait for the GPU, and the GPU for what another thread launches.
TEST_F(XlaSharedTest, LoadsKeepNobodyWaiting) {
  Program small = recordProgram(1, unique());
  Program large = recordProgram(1, unique());
  large.images.resize(300, large.images[0]);
  ASSERT_EQ(instantiate(small), "");
  ASSERT_EQ(instantiate(large), "");
  RecordCall run(small, 1), load(large, 1);
  ASSERT_EQ(run.run(), "");
  std::atomic<bool> loading{false}, loaded{false};
  std::thread loader([&] {
    loading = true;
    EXPECT_EQ(load.run(), "");
    loaded = true;
  });
  while (!loading)
    std::this_thread::yield();
  unsigned runs = 0;
  for (; !loaded; ++runs)
    EXPECT_EQ(run.run(), "");
  loader.join();
  // A handful where runs wait for the load.
  EXPECT_GT(runs, 300u);
}

} // namespace
