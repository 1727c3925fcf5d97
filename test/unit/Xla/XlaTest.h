//===- XlaTest.h - What the tests of handlers share ------------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_XLA_XLATEST_H
#define DITHER_TEST_UNIT_XLA_XLATEST_H

#include "Frame.h"

namespace dither::test {

/// A call of recordProgram: one operand, and the others are results.
struct RecordCall {
  explicit RecordCall(const runtime::Program &program, int64_t programs = 5)
      : out(programs), counts(programs), workspace(32 + programs),
        frame(XLA_FFI_ExecutionStage_EXECUTE, program) {
    frame.operand(out.data(), {programs})
        .result(counts.data(), {1, programs})
        .result(workspace.data(), {8 * int64_t(workspace.size())},
                XLA_FFI_DataType_U8);
  }
  std::string run() { return frame.call(runtime::xlaRunCpu); }

  std::vector<int64_t> out, counts, workspace;
  Frame frame;
};

/// Handlers keep programs and devices for the life of the process: every test
/// has programs of its own, all share one fake driver with two GPUs, and what
/// it counts and logs is compared with what it had when the test began.
class XlaTest : public testing::Test {
protected:
  XlaTest() {
    setenv("DITHER_LIBCUDA", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    static bool reset = (fakeFunction<FakeCudaReset>("fakeCudaReset")(), true);
    (void)reset;
    before = allLaunches().size();
    loadsBefore = allLoads();
  }
  ~XlaTest() override { EXPECT_EQ(numXlaErrors(), 0); }

  /// Launches of this test.
  std::string launches() const { return allLaunches().substr(before); }
  /// Modules that this test has loaded.
  unsigned loads() const { return allLoads() - loadsBefore; }
  static void *stream() {
    return fakeFunction<FakeCudaStream>("fakeCudaStream")();
  }

  /// A number that no other program of these tests has.
  static int64_t unique() {
    static int64_t number = 0;
    return ++number;
  }
  static std::string instantiate(const runtime::Program &program) {
    return Frame(XLA_FFI_ExecutionStage_INSTANTIATE, program)
        .call(runtime::xlaInstantiate);
  }

private:
  static std::string allLaunches() {
    return fakeFunction<FakeCudaLaunches>("fakeCudaLaunches")();
  }
  static unsigned allLoads() {
    return fakeFunction<FakeCudaCalls>("fakeCudaCalls")("cuModuleLoadDataEx");
  }
  size_t before;
  unsigned loadsBefore;
};

} // namespace dither::test

#endif // DITHER_TEST_UNIT_XLA_XLATEST_H
