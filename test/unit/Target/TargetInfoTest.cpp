//===- TargetInfoTest.cpp -------------------------------------------------===//

#include "dither/Target/TargetInfo.h"
#include "gtest/gtest.h"

#include <set>

using namespace dither::target;

TEST(TargetInfo, FindsEveryNameAndNoOther) {
  std::set<llvm::StringRef> seen;
  for (llvm::StringRef name : targetNames()) {
    EXPECT_TRUE(seen.insert(name).second) << name.str();
    const TargetInfo *t = lookupTarget(name);
    ASSERT_NE(t, nullptr) << name.str();
    EXPECT_EQ(t->name, name == "host" ? hostTarget().name : name);
  }
  for (const char *name :
       {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a",
        "sm_121a", "host", "host:base"})
    EXPECT_EQ(seen.count(name), 1u) << name;
  // Blackwell without its suffix lacks the 4-bit conversions: not a target.
  for (const char *name : {"", "sm_90", "sm_100", "sm_70", "host:", "avx2"})
    EXPECT_EQ(lookupTarget(name), nullptr) << name;
}

TEST(TargetInfo, ConversionsArriveWithTheirChips) {
  struct Row {
    const char *name;
    bool bf16, fp8, fp4;
  } rows[] = {
      {"sm_80", true, false, false},       {"sm_86", true, false, false},
      {"sm_89", true, true, false},        {"sm_90a", true, true, false},
      {"sm_100a", true, true, true},       {"sm_103a", true, true, true},
      {"sm_120a", true, true, true},       {"sm_121a", true, true, true},
      {"host:avx512", false, false, false}};
  for (const Row &row : rows) {
    const TargetInfo &t = *lookupTarget(row.name);
    EXPECT_EQ(t.cvtBF16x2, row.bf16) << row.name;
    EXPECT_EQ(t.cvtFP8x2, row.fp8) << row.name;
    EXPECT_EQ(t.cvtFP4x2, row.fp4) << row.name;
    EXPECT_EQ(t.cvtFP6x2, row.fp4) << row.name;
    EXPECT_EQ(t.cvtUE8M0x2, row.fp4) << row.name;
    EXPECT_EQ(t.isGpu, t.smVersion != 0) << row.name;
    EXPECT_EQ(t.isGpu, t.sharedBytes != 0) << row.name;
  }
  EXPECT_EQ(lookupTarget("sm_90a")->maxVectorBytes, 16u);
  EXPECT_EQ(lookupTarget("sm_100a")->maxVectorBytes, 32u);
  EXPECT_EQ(lookupTarget("sm_121a")->maxVectorBytes, 32u);
}

TEST(TargetInfo, VectorExtensionsComeWithTheirLevels) {
  for (llvm::StringRef name : targetNames()) {
    const TargetInfo &t = *lookupTarget(name);
    bool avx512 = t.name.starts_with("host:avx512"),
         avx2 = t.name == "host:avx2";
    EXPECT_EQ(t.avx2Intrinsics, avx2) << name.str();
    EXPECT_EQ(t.avx512Intrinsics, avx512) << name.str();
    EXPECT_EQ(t.streamingStores, avx512 || avx2) << name.str();
    EXPECT_EQ(t.bytePermutations, t.llvmFeatures.contains("vbmi"))
        << name.str();
  }
}

TEST(TargetInfo, HostIsOneOfTheCpusAndRuns) {
  const TargetInfo &host = hostTarget();
  EXPECT_FALSE(host.isGpu);
  EXPECT_EQ(&host, lookupTarget("host"));
  EXPECT_TRUE(runsOnHost(host));
  EXPECT_FALSE(runsOnHost(*lookupTarget("sm_90a")));
  EXPECT_NE(runsOnHost(*lookupTarget("host:base")),
            runsOnHost(*lookupTarget("host:neon")));
#if defined(__x86_64__)
  // The compiler's own runtime check agrees.
  bool v4 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl");
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool vbmi = __builtin_cpu_supports("avx512vbmi") &&
              __builtin_cpu_supports("avx512vbmi2") &&
              __builtin_cpu_supports("gfni");
  bool fp16 = __builtin_cpu_supports("avx512fp16");
  EXPECT_EQ(host.name, v3 && v4 && vbmi && fp16 ? "host:avx512fp16"
                       : v3 && v4 && vbmi       ? "host:avx512vbmi"
                       : v3 && v4               ? "host:avx512"
                       : v3                     ? "host:avx2"
                                                : "host:base");
#endif
}

TEST(TargetInfo, ModuleAttributesNameATarget) {
  EXPECT_EQ(lookupTarget("host", "avx2"), lookupTarget("host:avx2"));
  EXPECT_EQ(lookupTarget("host", ""), &hostTarget());
  EXPECT_EQ(lookupTarget("sm_90a", ""), lookupTarget("sm_90a"));
  EXPECT_EQ(lookupTarget("sm_90a", "avx2"), nullptr);
}
