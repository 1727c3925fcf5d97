#include "ProgramTest.h"
#include "dither/Runtime/CpuDevice.h"

#include <cstring>
#include <thread>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

/// The buffers of recordProgram.
struct Record {
  explicit Record(int64_t programs)
      : out(programs), counts(programs), workspace(32 + programs, -1) {}
  std::vector<void *> buffers() {
    return {out.data(), counts.data(), workspace.data()};
  }
  std::vector<int64_t> out, counts, workspace;
};

class ProgramCpuTest : public testing::Test {
protected:
  std::unique_ptr<LoadedProgram> load(Program program) {
    return must(LoadedProgram::load(std::move(program), *device));
  }
  std::unique_ptr<Device> device = makeCpuDevice(kLeastLevel);
};

TEST_F(ProgramCpuTest, EachStepRunsOnce) {
  auto program = load(recordProgram(5, 0, 3));
  EXPECT_EQ(program->buffers(), ArrayRef<uint64_t>({40, 40, 296}));
  Record record(5);
  must(program->run(record.buffers(), nullptr));
  EXPECT_EQ(record.out, std::vector<int64_t>({1, 2, 3, 4, 5}));
  EXPECT_EQ(record.counts, std::vector<int64_t>(5, 3));
  // The first 256 bytes of the workspace are nobody's.
  EXPECT_EQ(ArrayRef(record.workspace).take_front(32),
            ArrayRef<int64_t>(std::vector<int64_t>(32, -1)));
  for (int64_t who : ArrayRef(record.workspace).drop_front(32))
    EXPECT_NE(who, -1);
  // Again, on other memory.
  Record other(5);
  must(program->run(other.buffers(), nullptr));
  EXPECT_EQ(other.counts, std::vector<int64_t>(5, 3));
  EXPECT_EQ(record.counts, std::vector<int64_t>(5, 3));
}

/// `place` stores 0, 1, 2, .., `record` 1, 2, 3, .. at the same addresses.
TEST_F(ProgramCpuTest, StepsRunInOrder) {
  for (bool placeIsLast : {false, true}) {
    Program program = recordProgram(4);
    program.images.push_back(cpuImage("place", {ParamKind::Pointer}));
    Program::Step place{1, {4, 1, 1}, {0}, {{0, 0}}};
    program.steps.insert(
        placeIsLast ? program.steps.end() : program.steps.begin(), place);
    Record record(4);
    must(load(program)->run(record.buffers(), nullptr));
    EXPECT_EQ(record.out.front(), placeIsLast ? 0 : 1);
  }
}

TEST_F(ProgramCpuTest, EmptyGridsRunNothing) {
  for (Grid grid : {Grid{0, 1, 1}, Grid{4, 0, 1}, Grid{4, 1, 0}}) {
    Program program = recordProgram(4, 0, 2);
    program.steps[0].grid = grid;
    Record record(4);
    must(load(program)->run(record.buffers(), nullptr));
    EXPECT_EQ(record.counts, std::vector<int64_t>(4, 1)); // of the other step
  }
}

TEST_F(ProgramCpuTest, OfNothing) {
  must(load(Program())->run({}, nullptr));
  Program unused;
  unused.buffers = {0, 8};
  int64_t word = 3;
  must(load(unused)->run({nullptr, &word}, nullptr));
  EXPECT_EQ(word, 3);
}

/// A tensor of no elements may lie at the end of its buffer, or in none.
TEST_F(ProgramCpuTest, PlacesOfNoElements) {
  Program program = recordProgram(4);
  program.buffers.push_back(0);
  program.steps[0].grid.x = 0;
  program.steps[0].slots = {32, 0, 0, 0};
  program.steps[0].pointers = {{0, 0}, {1, 3}};
  Record record(4);
  std::vector<void *> buffers = record.buffers();
  buffers.push_back(nullptr);
  must(load(program)->run(buffers, nullptr));
}

TEST_F(ProgramCpuTest, NumbersOfEachKind) {
  Program program;
  program.images.push_back(
      cpuImage("kinds", {ParamKind::Pointer, ParamKind::I64, ParamKind::I32,
                         ParamKind::F32}));
  program.buffers = {32};
  float f = -0.375f;
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  program.steps = {
      {0, {1, 1, 1}, {8, -(int64_t(1) << 40), uint32_t(-7), bits}, {{0, 0}}}};
  double out[4] = {};
  must(load(must(Program::decode(program.encode())))->run({out}, nullptr));
  EXPECT_EQ(ArrayRef(out), ArrayRef({0.0, -1099511627776.0, -7.0, -0.375}));
}

TEST_F(ProgramCpuTest, WrongBuffers) {
  auto program = load(recordProgram(4));
  Record record(4);
  std::vector<void *> buffers = record.buffers();
  EXPECT_EQ(message(program->run({}, nullptr)), "found 0 buffers, expected 3");
  EXPECT_EQ(message(program->run(ArrayRef(buffers).drop_back(), nullptr)),
            "found 2 buffers, expected 3");
  buffers[2] = nullptr;
  EXPECT_EQ(message(program->run(buffers, nullptr)),
            "buffer 2 is null, expected 288 bytes");
  EXPECT_EQ(record.counts, std::vector<int64_t>(4, 0));
}

TEST_F(ProgramCpuTest, WrongKernels) {
  Program program = recordProgram(4);
  program.images[0].target = "sm_90a";
  EXPECT_EQ(message(LoadedProgram::load(program, *device)),
            "kernel 'record' is for 'sm_90a': this device runs '" +
                hostTarget(kLeastLevel).str() + "'");
  program = recordProgram(4, 0, 2);
  program.steps[1].grid.y = -1;
  Record record(4);
  EXPECT_EQ(message(load(program)->run(record.buffers(), nullptr)),
            "grid of kernel 'record' is 4x-1x1: expected sizes of 0 or more, "
            "and a product that fits in 64 bits");
  EXPECT_EQ(record.counts, std::vector<int64_t>(4, 1));
}

TEST_F(ProgramCpuTest, ManyRunners) {
  auto program = load(recordProgram(30, 100, 2));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        Record record(30);
        must(program->run(record.buffers(), nullptr));
        EXPECT_EQ(record.counts, std::vector<int64_t>(30, 2));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

class ProgramCudaTest : public FakeDriverTest {
protected:
  /// Addresses that nothing reads.
  std::vector<void *> buffers(uintptr_t second = 0x10000) {
    return {nullptr, reinterpret_cast<void *>(second)};
  }
};

TEST_F(ProgramCudaTest, LaunchesOnTheStream) {
  auto gpu = device();
  Program program = ptxProgram();
  program.images.push_back(ptxImage("other"));
  program.steps.push_back({1, {0, 1, 1}, {0, 0, 0, 0}, {{0, 1}}});
  program.steps.push_back({1, {1, 1, 3}, {0, -1, 0, 0}, {}});
  auto loaded = must(LoadedProgram::load(program, *gpu));
  must(loaded->run(buffers(), stream()));
  must(loaded->run(buffers(0x20000), nullptr));
  EXPECT_EQ(launches(), "scale grid=4x2x1 block=128x1x1 shared=0 stream=1 "
                        "params=0x10040,5,7,0\n"
                        "other grid=1x1x3 block=128x1x1 shared=0 stream=1 "
                        "params=0x0,-1,0,0\n"
                        "scale grid=4x2x1 block=128x1x1 shared=0 stream=0 "
                        "params=0x20040,5,7,0\n"
                        "other grid=1x1x3 block=128x1x1 shared=0 stream=0 "
                        "params=0x0,-1,0,0\n");
  EXPECT_EQ(leaks(), "2 modules, 1 context");
}

/// A kernel that cannot be loaded takes those before it along.
TEST_F(ProgramCudaTest, LoadsAllOrNothing) {
  auto gpu = device();
  Program program = ptxProgram();
  program.images.push_back(ptxImage("newer", "sm_100a"));
  EXPECT_EQ(message(LoadedProgram::load(program, *gpu)),
            "kernel 'newer' is for 'sm_100a': cuda:0 runs 'sm_90a'");
  EXPECT_EQ(leaks(), "1 context");
}

TEST_F(ProgramCudaTest, AFailureEndsTheProgram) {
  configure("FAKE_CUDA_FAIL", "cuLaunchKernel#2=719");
  auto gpu = device();
  Program program = ptxProgram();
  program.steps.assign(3, program.steps[0]);
  auto loaded = must(LoadedProgram::load(program, *gpu));
  EXPECT_NE(message(loaded->run(buffers(), nullptr))
                .find("cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED (719)"),
            std::string::npos);
  EXPECT_EQ(calls("cuLaunchKernel"), 2u);
}

/// Kernels are compiled for buffers as allocators give them: a misaligned one
/// would be an illegal access, which ends the context.
TEST_F(ProgramCudaTest, MisalignedBuffers) {
  auto gpu = device();
  auto loaded = must(LoadedProgram::load(ptxProgram(), *gpu));
  EXPECT_EQ(message(loaded->run(buffers(0x10010), nullptr)),
            "buffer 1 is at 0x10010, expected a multiple of 32 bytes");
  EXPECT_EQ(launches(), "");
  must(loaded->run(buffers(0x10020), nullptr));
  // Of no bytes, it is never read.
  std::vector<void *> odd = buffers();
  odd[0] = reinterpret_cast<void *>(1);
  must(loaded->run(odd, nullptr));
  EXPECT_EQ(calls("cuLaunchKernel"), 2u);
}

} // namespace
