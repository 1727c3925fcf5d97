#include "dither/Runtime/Ptxas.h"
#include "TestSupport.h"

#include <fstream>
#include <sys/stat.h>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

/// What ptxas 13.0 prints for three kernels, one of which spills and calls.
const char *const sample = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compile time = 11.347 ms
ptxas info    : Compiling entry function 'spill' for 'sm_90a'
ptxas info    : Function properties for spill
    1264 bytes stack frame, 1252 bytes spill stores, 1248 bytes spill loads
ptxas info    : Function properties for helper
    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 1264 bytes cumulative stack size
ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 1 barriers, 512 bytes smem, 384 bytes cmem[0]
ptxas info    : Compile time = 1.566 ms
)";

TEST(Ptxas, ReadsResources) {
  std::vector<KernelResources> kernels = must(parsePtxasLog(sample));
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].kernel, "two");
  EXPECT_EQ(kernels[0].registers, 4u);
  EXPECT_EQ(kernels[0].stackBytes, 0u);
  EXPECT_EQ(kernels[1].kernel, "spill");
  EXPECT_EQ(kernels[1].registers, 32u);
  EXPECT_EQ(kernels[1].stackBytes, 1264u);
  EXPECT_EQ(kernels[1].spillStoreBytes, 1252u);
  EXPECT_EQ(kernels[1].spillLoadBytes, 1248u);
  EXPECT_EQ(kernels[1].sharedBytes, 0u);
  EXPECT_EQ(kernels[2].kernel, "one");
  EXPECT_EQ(kernels[2].barriers, 1u);
  EXPECT_EQ(kernels[2].sharedBytes, 512u);
}

/// ptxas before 12 names no barriers, and shared memory comes first.
TEST(Ptxas, ReadsOlderLogs) {
  auto kernels = must(parsePtxasLog(
      "ptxas info    : Compiling entry function 'f' for 'sm_80'\n"
      "ptxas info    : Function properties for f\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 19 registers, 1024 bytes smem, 360 bytes cmem[0]"));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].registers, 19u);
  EXPECT_EQ(kernels[0].sharedBytes, 1024u);
}

TEST(Ptxas, IncompleteLogs) {
  std::string text = sample;
  EXPECT_EQ(message(parsePtxasLog(text.substr(0, text.find("Used 32")))),
            "ptxas printed no registers for kernel 'spill'");
  size_t line = text.find("ptxas info    : Used 4");
  text.erase(line, text.find('\n', line) - line + 1);
  EXPECT_EQ(message(parsePtxasLog(text)),
            "ptxas printed no registers for kernel 'two'");
  EXPECT_TRUE(must(parsePtxasLog("")).empty());
}

TEST(Ptxas, IsLookedFor) {
  EXPECT_EQ(must(findPtxas("/bin/true")), "/bin/true");
  EXPECT_EQ(message(findPtxas("/nowhere/ptxas")),
            "ptxas at /nowhere/ptxas was not found or cannot be executed");
  ScopedEnv set("DITHER_PTXAS", "/bin/true");
  EXPECT_EQ(must(findPtxas()), "/bin/true");
  EXPECT_EQ(must(findPtxas("/bin/false")), "/bin/false");
  ScopedEnv path("PATH", "/nowhere"), none("DITHER_PTXAS", "");
  Expected<std::string> found = findPtxas();
  if (found)
    EXPECT_EQ(*found, "/usr/local/cuda/bin/ptxas");
  else
    EXPECT_EQ(toString(found.takeError()),
              "ptxas was not found in DITHER_PTXAS, PATH or "
              "/usr/local/cuda/bin");
}

/// A script in the place of ptxas.
class Script {
public:
  explicit Script(const std::string &body)
      : path(testing::TempDir() + "ptxas-" + std::to_string(getpid())) {
    std::ofstream(path) << "#!/bin/sh\n" << body;
    chmod(path.c_str(), 0700);
  }
  ~Script() { unlink(path.c_str()); }
  const std::string path;
};

TEST(Ptxas, IsRunWithItsArguments) {
  Script script("[ $# = 5 ] && [ $1 = -v ] && [ $2 = -arch=sm_80 ] && [ $4 = "
                "-o ] || exit 9\n"
                "tr a-z A-Z < $3 > $5\n"
                "echo \"x : Compiling entry function 'f' for 'sm_80'\"\n"
                "echo 'x : Used 7 registers' >&2\n");
  PtxasResult result = must(runPtxas(script.path, "some ptx", "sm_80"));
  EXPECT_EQ(result.cubin, "SOME PTX");
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_EQ(result.kernels[0].registers, 7u);
  EXPECT_EQ(result.log, "x : Compiling entry function 'f' for 'sm_80'\n"
                        "x : Used 7 registers\n");
  EXPECT_EQ(message(runPtxas(script.path, "some ptx", "sm_90")),
            script.path + " -arch=sm_90 failed (exit status 9):\n");
}

TEST(Ptxas, FailuresComeWithTheLog) {
  Script script("echo 'ptxas fatal : nothing works'; exit 255\n");
  EXPECT_EQ(message(runPtxas(script.path, "", "sm_80")),
            script.path + " -arch=sm_80 failed (exit status 255):\n"
                          "ptxas fatal : nothing works");
  Script silent("exit 0\n");
  EXPECT_EQ(message(runPtxas(silent.path, "", "sm_80")),
            silent.path + " printed no kernel:\n");
  EXPECT_EQ(message(runPtxas("/nowhere/ptxas", "", "sm_80"))
                .find("/nowhere/ptxas -arch=sm_80 failed ("),
            0u);
}

/// The real one, where there is one.
TEST(Ptxas, Assembles) {
  Expected<std::string> ptxas = findPtxas();
  if (!ptxas) {
    consumeError(ptxas.takeError());
    GTEST_SKIP() << "no ptxas";
  }
  std::string ptx = ".version 7.8\n.target sm_80\n.address_size 64\n"
                    ".visible .entry f(.param .u64 p)\n{\n"
                    ".reg .b64 %rd<2>; .reg .b32 %r<3>;\n"
                    ".shared .align 4 .b8 buffer[512];\n"
                    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"
                    "st.shared.u32 [buffer+4], %r1;\nbar.sync 0;\n"
                    "ld.shared.u32 %r2, [buffer];\n"
                    "st.global.u32 [%rd1], %r2;\nret;\n}\n";
  PtxasResult result = must(runPtxas(*ptxas, ptx, "sm_80"));
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_EQ(result.kernels[0].kernel, "f");
  EXPECT_GT(result.kernels[0].registers, 0u);
  EXPECT_EQ(result.kernels[0].sharedBytes, 512u);
  EXPECT_EQ(result.kernels[0].spillStoreBytes, 0u);
  EXPECT_EQ(result.cubin.substr(0, 4), "\x7f"
                                       "ELF");
  ptx.replace(ptx.find("st.global"), 9, "st.globe");
  std::string why = message(runPtxas(*ptxas, ptx, "sm_80"));
  EXPECT_NE(why.find(".globe"), std::string::npos) << why;
}

} // namespace
