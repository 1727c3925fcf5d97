#include "../Program/ProgramTest.h"
#include "Built.h"
#include "dither-c/dither.h"

using namespace dither::test;
using dither::runtime::Program;

namespace {

/// The program `counted`, beside the kernel of BuiltTest: recordProgram(4),
/// whose third buffer is a workspace of 288 bytes, for the CPU.
class CProgramsTest : public BuiltTest {
protected:
  CProgramsTest() {
    Program program = recordProgram(4);
    program.workspaces = 1;
    encoded = program.encode();
    write("counted.program", encoded);
    write("manifest.json", manifestOf(hash(encoded)));
    EXPECT_EQ(dither_device_open("cpu", &device), DITHER_SUCCESS);
  }
  ~CProgramsTest() override { dither_program_unload(program); }

  static std::string manifestOf(const std::string &sha256,
                                const std::string &target = "host") {
    return R"({"manifest": 1, "kernels": [], "programs": [{"name": "counted",
      "images": [{"target": "sm_90a", "file": "none", "sha256": "0"},
                 {"target": ")" +
           target + R"(", "file": "counted.program", "sha256": ")" + sha256 +
           R"("}]}]})";
  }

  dither_status load(const char *name = "counted") {
    return dither_program_load(device, manifest.c_str(), name, &program);
  }
  dither_status decode(const std::string &bytes) {
    return dither_program_decode(device, bytes.data(), bytes.size(), &program);
  }
  dither_status run(std::vector<void *> buffers, void *workspace,
                    size_t bytes = 288) {
    return dither_program_run(program, buffers.data(), buffers.size(),
                              workspace, bytes, nullptr);
  }
  void expectCounts(int64_t times) {
    EXPECT_EQ(counts, std::vector<int64_t>(4, times));
  }

  dither_device *device = nullptr;
  dither_program *program = nullptr;
  std::string encoded;
  std::vector<int64_t> out = std::vector<int64_t>(4),
                       counts = std::vector<int64_t>(4),
                       workspace = std::vector<int64_t>(36);
};

TEST_F(CProgramsTest, RunsFromAManifestAndFromBytes) {
  for (bool fromBytes : {false, true}) {
    ASSERT_EQ(fromBytes ? decode(encoded) : load(), DITHER_SUCCESS)
        << dither_error_message();
    EXPECT_STREQ(dither_program_target(program), "host");
    ASSERT_EQ(dither_program_num_buffers(program), 2u);
    EXPECT_EQ(dither_program_buffer_bytes(program, 0), 32u);
    EXPECT_EQ(dither_program_buffer_bytes(program, 1), 32u);
    EXPECT_EQ(dither_program_buffer_bytes(program, 2), 0u);
    EXPECT_EQ(dither_program_workspace_bytes(program), 288u);
    ASSERT_EQ(run({out.data(), counts.data()}, workspace.data()),
              DITHER_SUCCESS)
        << dither_error_message();
    expectCounts(fromBytes ? 2 : 1);
    dither_program_unload(program);
    program = nullptr;
  }
}

TEST_F(CProgramsTest, WithoutAWorkspace) {
  Program other = recordProgram(4);
  ASSERT_EQ(decode(other.encode()), DITHER_SUCCESS);
  EXPECT_EQ(dither_program_num_buffers(program), 3u);
  EXPECT_EQ(dither_program_workspace_bytes(program), 0u);
  EXPECT_EQ(run({out.data(), counts.data(), workspace.data()}, nullptr, 0),
            DITHER_SUCCESS);
  expectCounts(1);
}

TEST_F(CProgramsTest, NothingRunsOnWrongBuffers) {
  ASSERT_EQ(load(), DITHER_SUCCESS);
  auto expect = [&](dither_status status, const char *text) {
    EXPECT_EQ(status, DITHER_INVALID_ARGUMENT) << text;
    EXPECT_STREQ(dither_error_message(), text);
  };
  expect(run({out.data()}, workspace.data()), "found 1 buffers, expected 2");
  expect(run({out.data(), counts.data(), workspace.data()}, workspace.data()),
         "found 3 buffers, expected 2");
  expect(run({out.data(), nullptr}, workspace.data()),
         "buffer 1 is null, expected 32 bytes");
  expect(run({out.data(), counts.data()}, nullptr),
         "the workspace is null, expected 288 bytes");
  expect(run({out.data(), counts.data()}, workspace.data(), 287),
         "the workspace has 287 bytes, expected 288 bytes");
  expect(
      dither_program_run(program, nullptr, 2, workspace.data(), 288, nullptr),
      "argument 'buffers' is a null pointer");
  expectCounts(0);
}

TEST_F(CProgramsTest, NullPointersAreErrors) {
  ASSERT_EQ(load(), DITHER_SUCCESS);
  dither_program *other = nullptr;
  const char *path = manifest.c_str();
  auto expect = [&](dither_status status, const char *name) {
    EXPECT_EQ(status, DITHER_INVALID_ARGUMENT) << name;
    EXPECT_EQ(std::string(dither_error_message()),
              std::string("argument '") + name + "' is a null pointer");
  };
  expect(dither_program_load(nullptr, path, "counted", &other), "device");
  expect(dither_program_load(device, nullptr, "counted", &other), "manifest");
  expect(dither_program_load(device, path, nullptr, &other), "name");
  expect(dither_program_load(device, path, "counted", nullptr), "program");
  expect(dither_program_decode(nullptr, "", 0, &other), "device");
  expect(dither_program_decode(device, nullptr, 0, &other), "bytes");
  expect(dither_program_decode(device, "", 0, nullptr), "program");
  expect(dither_program_run(nullptr, nullptr, 0, nullptr, 0, nullptr),
         "program");
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(dither_program_num_buffers(nullptr), 0u);
  EXPECT_EQ(dither_program_buffer_bytes(nullptr, 0), 0u);
  EXPECT_EQ(dither_program_workspace_bytes(nullptr), 0u);
  EXPECT_STREQ(dither_program_target(nullptr), "");
  dither_program_unload(nullptr);
}

TEST_F(CProgramsTest, WhatIsNoProgram) {
  auto expect = [&](dither_status found, dither_status status,
                    const std::string &text) {
    EXPECT_EQ(found, status) << text;
    EXPECT_EQ(std::string(dither_error_message()), text);
    EXPECT_EQ(program, nullptr);
  };
  expect(load("count"), DITHER_NOT_FOUND,
         manifest + ": no program 'count', found counted");
  expect(decode("hello"), DITHER_BAD_FILE, "found no program");
  std::string changed = encoded;
  changed[100] ^= 1;
  expect(decode(changed), DITHER_BAD_FILE,
         "the program is damaged: found another checksum than it was written "
         "with");
  // A place out of range, and a checksum that fits.
  Program far = recordProgram(4);
  far.steps[0].slots[2] = 300;
  expect(decode(far.encode()), DITHER_BAD_FILE,
         "the program is damaged: slot 2 of step 0 is 300 bytes into buffer 2, "
         "expected at most 288");
  write("counted.program", changed);
  expect(load(), DITHER_BAD_FILE,
         directory + "/counted.program is damaged: found another checksum than "
                     "the manifest has");
  write("manifest.json", manifestOf(hash(changed)));
  expect(load(), DITHER_BAD_FILE,
         directory + "/counted.program: the program is damaged: found another "
                     "checksum than it was written with");
  write("manifest.json", R"({"manifest": 1, "kernels": []})");
  expect(load(), DITHER_NOT_FOUND,
         manifest + ": no program 'counted', found none");
  for (const char *rows :
       {"[7]", R"([{"images": []}])", R"([{"name": "counted"}])",
        R"([{"name": "counted", "images": [{"target": "host"}]}])"}) {
    write("manifest.json",
          std::string(R"({"manifest": 1, "kernels": [], "programs": )") + rows +
              "}");
    EXPECT_EQ(load(), DITHER_BAD_FILE) << rows;
  }
}

TEST_F(CProgramsTest, NothingThatRunsThere) {
  Program other = ptxProgram();
  EXPECT_EQ(decode(other.encode()), DITHER_NOT_FOUND);
  EXPECT_NE(std::string(dither_error_message()).find("is for 'sm_90a'"),
            std::string::npos);
  write("manifest.json", manifestOf(hash(encoded), "sm_100a"));
  EXPECT_EQ(load(), DITHER_NOT_FOUND);
  EXPECT_NE(std::string(dither_error_message())
                .find("nothing of program 'counted' runs on 'host"),
            std::string::npos);
}

} // namespace
