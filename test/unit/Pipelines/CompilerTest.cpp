//===- CompilerTest.cpp - compileModule as its callers see it -------------===//

#include "CompileText.h"
#include "dither/Target/TargetInfo.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <thread>

using namespace dither;
using dither::runtime::ParamKind;
using dither::test::CompileText;

namespace {

const char *const kScale = R"(
func.func @scale(%x: memref<?x256xf32> {quant.align = 16 : i64}, %y: memref<?x256xbf16>, %f: f32, %n: i32, %k: index)
    attributes {quant.kernel} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x256xf32> -> tensor<1x256xf32>
  %b = quant.broadcast %f : f32 -> tensor<1x256xf32>
  %p = arith.mulf %t, %b : tensor<1x256xf32>
  %q = arith.truncf %p : tensor<1x256xf32> to tensor<1x256xbf16>
  quant.store %q, %y[%i, %c0] : tensor<1x256xbf16>, memref<?x256xbf16>
  return
}
func.func @other(%x: memref<256xf32>) attributes {quant.kernel, quant.num_warps = 2 : i64} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  %p = arith.addf %t, %t : tensor<256xf32>
  quant.store %p, %x[%c0] : tensor<256xf32>, memref<256xf32>
  return
}
)";

template <typename Pairs> std::vector<std::string> namesOf(const Pairs &pairs) {
  std::vector<std::string> names;
  for (const auto &pair : pairs)
    names.push_back(pair.first);
  return names;
}

/// PTX without positions and what goes with them.
std::string instructionsOf(llvm::StringRef ptx) {
  std::string text;
  for (llvm::StringRef line : llvm::split(ptx, '\n')) {
    llvm::StringRef first = line.trim();
    bool position = first.starts_with(".loc") || first.starts_with(".file") ||
                    first.starts_with(".section") ||
                    first.starts_with("$L__tmp") ||
                    first.starts_with("$L__func_");
    if (!position && !first.empty())
      text += (line + "\n").str();
  }
  return text;
}

TEST(Compiler, LinesOfTheSource) {
  CompileOptions options;
  options.target = "sm_90a";
  auto plain = CompileText()(kScale, options);
  options.lineInfo = true;
  auto lines = CompileText()(kScale, options);
  ASSERT_TRUE(bool(plain)) << llvm::toString(plain.takeError());
  ASSERT_TRUE(bool(lines)) << llvm::toString(lines.takeError());
  llvm::StringRef before = plain->kernels[0].code,
                  after = lines->kernels[0].code;
  EXPECT_FALSE(before.contains(".loc"));
  EXPECT_TRUE(after.contains(".file\t1 "));
  // The multiplication is in line 8 of the text, the addition in line 16.
  EXPECT_TRUE(after.contains(".loc\t1 8 "));
  EXPECT_TRUE(after.contains(".loc\t1 16 "));
  EXPECT_EQ(instructionsOf(before), instructionsOf(after));
}

TEST(Compiler, DescribesKernelsInOrder) {
  CompileOptions options;
  options.target = "sm_90a";
  auto artifact = CompileText()(kScale, options);
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  ASSERT_EQ(artifact->kernels.size(), 2u);
  const runtime::KernelImage &scale = artifact->kernels[0];
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.target, "sm_90a");
  EXPECT_EQ(scale.numThreads % 32, 0u);
  EXPECT_EQ(scale.params, (std::vector<ParamKind>{
                              ParamKind::Pointer, ParamKind::I64,
                              ParamKind::Pointer, ParamKind::I64,
                              ParamKind::F32, ParamKind::I32, ParamKind::I64}));
  EXPECT_NE(scale.code.find(".entry scale("), std::string::npos);
  EXPECT_NE(scale.code.find(".entry other("), std::string::npos);
  const runtime::KernelImage &other = artifact->kernels[1];
  EXPECT_EQ(other.name, "other");
  EXPECT_EQ(other.numThreads, 64u);
  // The code is with the first kernel, once.
  EXPECT_TRUE(other.code.empty());
  EXPECT_TRUE(artifact->stages.empty());
}

TEST(Compiler, KeepsStagesAndTimesInOrder) {
  CompileOptions options;
  options.keepStages = true;
  options.verifyEach = true;
  auto artifact = CompileText()(kScale, options);
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  EXPECT_EQ(namesOf(artifact->stages),
            (std::vector<std::string>{"quant", "tiled", "distributed", "llvm",
                                      "llvmir", "asm"}));
  for (const auto &[name, text] : artifact->stages)
    EXPECT_NE(text.find("scale"), std::string::npos) << name;
  EXPECT_EQ(namesOf(artifact->timings),
            (std::vector<std::string>{"passes.tiled", "passes.distributed",
                                      "passes.llvm", "llvm.translate",
                                      "llvm.optimize", "llvm.codegen"}));
  for (const auto &[name, ms] : artifact->timings)
    EXPECT_GT(ms, 0.0) << name;
  EXPECT_EQ(artifact->kernels[0].target, target::hostTarget().name);
  EXPECT_EQ(artifact->kernels[0].numThreads, 1u);
  EXPECT_EQ(artifact->kernels[0].code.substr(1, 3), "ELF");

  options.target = "sm_100a";
  options.keepStages = false;
  auto ptx = CompileText()(kScale, options);
  ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
  EXPECT_TRUE(ptx->stages.empty());
}

TEST(Compiler, SameTextSameCode) {
  // What the cache relies on: nothing of the process leaks into the code.
  for (const char *target : {"sm_90a", "host"}) {
    CompileOptions options;
    options.target = target;
    auto first = CompileText()(kScale, options);
    options.keepStages = options.verifyEach = true;
    auto second = CompileText()(kScale, options);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->kernels[0].code, second->kernels[0].code) << target;
  }
}

TEST(Compiler, ErrorsNameTheStage) {
  CompileOptions options;
  options.target = "sm_75";
  CompileText compile;
  auto artifact = compile(kScale, options);
  ASSERT_FALSE(bool(artifact));
  EXPECT_EQ(llvm::toString(artifact.takeError()), "unknown target 'sm_75'");
  EXPECT_NE(compile.diagnostics.find("found target \"sm_75\", expected one of"),
            std::string::npos)
      << compile.diagnostics;

  options.target = "host";
  auto none = CompileText()("func.func @f() { return }", options);
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(llvm::toString(none.takeError()),
            "the module has no function with quant.kernel");

  CompileText log;
  auto call = log(R"(
    func.func @f(%x: memref<256xf32>) attributes {quant.kernel} {
      %c0 = arith.constant 0 : index
      %t = quant.load %x[%c0] : memref<256xf32> -> tensor<256xf32>
      %y = math.log %t : tensor<256xf32>
      quant.store %y, %x[%c0] : tensor<256xf32>, memref<256xf32>
      return
    })",
                  options);
  ASSERT_FALSE(bool(call));
  EXPECT_EQ(llvm::toString(call.takeError()),
            "the passes to stage 'llvm' failed");
  EXPECT_NE(log.diagnostics.find("'math.log' op has no lowering"),
            std::string::npos)
      << log.diagnostics;
}

TEST(Compiler, ThreadsCompileAtOnce) {
  // LLVM's targets are initialized once; contexts are not shared.
  std::vector<std::string> code(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < code.size(); ++i)
    threads.emplace_back([&, i] {
      CompileOptions options;
      options.target = i % 2 ? "host" : "sm_90a";
      auto artifact = CompileText()(kScale, options);
      if (artifact)
        code[i] = artifact->kernels[0].code;
      else
        llvm::consumeError(artifact.takeError());
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_FALSE(code[0].empty());
  EXPECT_FALSE(code[1].empty());
  EXPECT_EQ(code[0], code[2]);
  EXPECT_EQ(code[1], code[3]);
}

} // namespace
