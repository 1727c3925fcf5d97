#include "ProgramTest.h"

#include <functional>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

/// Every kind of parameter, two kernels, three buffers, of which one is empty,
/// and four steps.
Program sample() {
  Program program;
  KernelImage bare;
  bare.name = "bare";
  bare.target = "host";
  KernelImage kinds;
  kinds.name = "kinds";
  kinds.target = "host:avx2";
  kinds.code = std::string("co\0de", 5);
  kinds.numThreads = 128;
  kinds.sharedBytes = 70000;
  kinds.params = {ParamKind::Pointer, ParamKind::I64, ParamKind::I32,
                  ParamKind::F32, ParamKind::Pointer};
  program.images = {bare, kinds};
  program.buffers = {64, uint64_t(1) << 40, 0};
  program.steps = {{1, {4, 2, 1}, {8, -9, 7, 1, 64}, {{0, 1}, {4, 0}}},
                   {0, {1, 1, 1}, {}, {}},
                   {1, {0, 1, 1}, {0, 1, 2, 3, 0}, {{0, 2}}},
                   {1, {1, 1, 65535}, {0, 1, 2, 3, 0}, {}}};
  program.workspaces = 1;
  return program;
}

bool same(const KernelImage &a, const KernelImage &b) {
  return a.name == b.name && a.target == b.target && a.code == b.code &&
         a.numThreads == b.numThreads && a.sharedBytes == b.sharedBytes &&
         a.params == b.params;
}

bool same(const Program::Step &a, const Program::Step &b) {
  auto samePointer = [](Program::Pointer a, Program::Pointer b) {
    return a.slot == b.slot && a.buffer == b.buffer;
  };
  return a.image == b.image && a.grid.x == b.grid.x && a.grid.y == b.grid.y &&
         a.grid.z == b.grid.z && a.slots == b.slots &&
         llvm::equal(a.pointers, b.pointers, samePointer);
}

bool same(const Program &a, const Program &b) {
  auto sameImage = [](auto &a, auto &b) { return same(a, b); };
  return llvm::equal(a.images, b.images, sameImage) && a.buffers == b.buffers &&
         llvm::equal(a.steps, b.steps, sameImage) &&
         a.workspaces == b.workspaces;
}

/// An error with a text, or the one program that these bytes are.
void expectReadOrRefused(const std::string &bytes, const Twine &what) {
  Expected<Program> program = Program::decode(bytes);
  if (program)
    EXPECT_EQ(program->encode(), bytes) << what.str();
  else
    EXPECT_NE(toString(program.takeError()), "") << what.str();
}

TEST(ProgramEncodeTest, ReadsWhatItWrites) {
  for (const Program &program :
       {Program(), sample(), recordProgram(16), ptxProgram()})
    EXPECT_TRUE(same(must(Program::decode(program.encode())), program));
}

TEST(ProgramEncodeTest, EqualProgramsAreEqualBytes) {
  EXPECT_EQ(sample().encode(), sample().encode());
  Program other = sample();
  other.steps[2].slots[1] += 1;
  EXPECT_NE(sample().encode(), other.encode());
}

TEST(ProgramEncodeTest, AnyChangedBitIsFound) {
  std::string bytes = sample().encode();
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] ^= char(1 << i % 8);
    EXPECT_NE(message(Program::decode(changed)), "no error") << "bit " << i;
  }
}

TEST(ProgramEncodeTest, CutOffAnywhere) {
  std::string bytes = sample().encode();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(message(Program::decode(bytes.substr(0, size))), "no error")
        << size;
  EXPECT_NE(message(Program::decode(bytes + "x")), "no error");
}

/// What a checksum does not find: bytes that somebody wrote.
TEST(ProgramEncodeTest, AnyByteWithAChecksumThatFits) {
  std::string bytes = sample().encode();
  for (size_t i = 0; i + 32 < bytes.size(); ++i)
    for (int change : {0x01, 0x80, 0xff, int(uint8_t(bytes[i]))}) {
      std::string changed = bytes;
      changed[i] ^= char(change);
      expectReadOrRefused(sealed(changed), "byte " + Twine(i));
    }
}

TEST(ProgramEncodeTest, CutOffAnywhereWithAChecksumThatFits) {
  std::string bytes = sample().encode();
  for (size_t size = 0; size + 32 < bytes.size(); ++size) {
    std::string cut = sealed(bytes.substr(0, size) + std::string(32, '\0'));
    EXPECT_NE(message(Program::decode(cut)), "no error") << size;
  }
  std::string longer = bytes;
  longer.insert(bytes.size() - 32, "x");
  EXPECT_NE(message(Program::decode(sealed(longer))), "no error");
}

TEST(ProgramEncodeTest, SaysWhatIsWrong) {
  std::string bytes = sample().encode();
  EXPECT_EQ(message(Program::decode("")), "found no program");
  EXPECT_EQ(message(Program::decode("hello, world")), "found no program");
  std::string newer = bytes;
  newer[8] = 4;
  EXPECT_EQ(message(Program::decode(newer)),
            "found a program of version 4, expected 3");
  EXPECT_EQ(message(Program::decode(bytes.substr(0, 40))),
            "the program is damaged: it is cut off");
  std::string changed = bytes;
  changed[60] ^= 1;
  EXPECT_EQ(message(Program::decode(changed)),
            "the program is damaged: found another checksum than it was "
            "written with");
  changed = bytes;
  changed[12] += 1; // three images
  EXPECT_EQ(message(Program::decode(sealed(changed))),
            "the program is damaged: its lengths do not fit each other");
}

/// Places that a program does not have, whoever wrote it.
TEST(ProgramEncodeTest, PlacesOutOfRange) {
  const std::pair<std::function<void(Program &)>, const char *> cases[] = {
      {[](Program &p) { p.steps[1].image = 2; },
       "step 1 is of image 2, expected one of 2"},
      {[](Program &p) { p.images.clear(); },
       "step 0 is of image 1, expected one of 0"},
      {[](Program &p) { p.steps[0].slots.pop_back(); },
       "step 0 has 4 slots, expected 5 for kernel 'kinds'"},
      {[](Program &p) { p.steps[1].slots = {1}; },
       "step 1 has 1 slots, expected 0 for kernel 'bare'"},
      {[](Program &p) { p.steps[0].pointers[0].slot = 5; },
       "step 0 has a buffer for slot 5, expected one of 5"},
      {[](Program &p) { p.steps[0].pointers[0].slot = 1; },
       "step 0 has a buffer for slot 1, which is no pointer of kernel 'kinds'"},
      {[](Program &p) { p.steps[0].pointers[1].slot = 0; },
       "step 0 has two buffers for slot 0"},
      {[](Program &p) { p.steps[0].pointers[1].buffer = 3; },
       "slot 4 of step 0 is in buffer 3, expected one of 3"},
      {[](Program &p) { p.steps[0].slots[4] = 65; },
       "slot 4 of step 0 is 65 bytes into buffer 0, expected at most 64"},
      {[](Program &p) { p.steps[0].slots[0] = -1; },
       "slot 0 of step 0 is -1 bytes into buffer 1, expected at most "
       "1099511627776"},
      {[](Program &p) {
         p.steps[0].slots[0] = -1;
         p.buffers[1] = UINT64_MAX;
       },
       "slot 0 of step 0 is -1 bytes into buffer 1, expected at most "
       "18446744073709551615"},
      // An address of the process that wrote it is none of another's.
      {[](Program &p) { p.steps[3].slots[0] = 4096; },
       "slot 0 of step 3 is an address, expected a place in a buffer"},
      {[](Program &p) { p.images[1].params[1] = ParamKind(4); },
       "parameter 1 of kernel 'kinds' is of kind 4, expected at most 3"},
      {[](Program &p) { p.workspaces = 2; },
       "found 2 workspaces among 3 buffers, expected at most one"},
      {[](Program &p) {
         p.buffers.clear();
         p.steps.clear();
       },
       "found 1 workspaces among 0 buffers, expected at most one"},
  };
  auto cpu = must(getDevice("cpu"));
  for (auto &[change, expected] : cases) {
    Program program = sample();
    change(program);
    EXPECT_EQ(message(Program::decode(program.encode())),
              std::string("the program is damaged: ") + expected);
    // Programs that were never encoded run, too.
    EXPECT_EQ(message(LoadedProgram::load(program, *cpu)), expected);
  }
}

} // namespace
