#include "XlaTest.h"

#include "llvm/Support/Base64.h"

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

constexpr auto instantiating = XLA_FFI_ExecutionStage_INSTANTIATE;
constexpr auto initializing = XLA_FFI_ExecutionStage_INITIALIZE;
constexpr auto executing = XLA_FFI_ExecutionStage_EXECUTE;

class XlaCpuTest : public XlaTest {};

TEST_F(XlaCpuTest, RunsAProgram) {
  Program program = recordProgram(5, unique(), 2);
  ASSERT_EQ(instantiate(program), "");
  for (int round = 0; round < 2; ++round) {
    RecordCall call(program);
    EXPECT_EQ(call.run(), "");
    EXPECT_EQ(call.out, std::vector<int64_t>({1, 2, 3, 4, 5}));
    EXPECT_EQ(call.counts, std::vector<int64_t>(5, 2));
  }
}

TEST_F(XlaCpuTest, OfNoBuffers) {
  ASSERT_EQ(instantiate(Program()), "");
  EXPECT_EQ(Frame(executing, Program()).call(xlaRunCpu), "");
}

TEST_F(XlaCpuTest, WrongPrograms) {
  Program program = recordProgram(5, unique());
  std::string encoded = program.encode(), digest = hexDigest(encoded);
  auto said = [](const std::string &text, const std::string &digest) {
    Frame frame(instantiating);
    std::string message = frame.attribute("digest", digest)
                              .attribute("program", text)
                              .call(xlaInstantiate);
    EXPECT_EQ(frame.code, XLA_FFI_Error_Code_INTERNAL);
    return message;
  };
  std::string other = hexDigest("other");
  EXPECT_EQ(said(encodeBase64(encoded), other),
            "dither: found a program with digest " + digest + ", expected " +
                other);
  EXPECT_EQ(
      said(encodeBase64(StringRef("hello, world")), hexDigest("hello, world")),
      "dither: found no program");
  std::string cut = encoded.substr(0, 100);
  EXPECT_EQ(said(encodeBase64(cut), hexDigest(cut)),
            "dither: the program is damaged: found another checksum than it "
            "was written with");
  EXPECT_EQ(said("", hexDigest("")), "dither: found no program");
  EXPECT_EQ(said("abc", digest).find("dither: "), 0u);
  EXPECT_EQ(said("ab\xff=", digest).find("dither: "), 0u);
  program.steps[0].image = 1;
  encoded = program.encode();
  EXPECT_EQ(said(encodeBase64(encoded), hexDigest(encoded)),
            "dither: the program is damaged: step 0 is of image 1, expected "
            "one of 1");
  // None of them is known from now on.
  EXPECT_EQ(RecordCall(program).run(),
            "dither: found no program with digest " + hexDigest(encoded) +
                ", expected one that was instantiated");
}

TEST_F(XlaCpuTest, NotInstantiated) {
  Program program = recordProgram(5, unique());
  RecordCall call(program);
  EXPECT_EQ(call.run(), "dither: found no program with digest " +
                            hexDigest(program.encode()) +
                            ", expected one that was instantiated");
  EXPECT_EQ(call.frame.code, XLA_FFI_Error_Code_INTERNAL);
  ASSERT_EQ(instantiate(program), "");
  EXPECT_EQ(call.run(), "");
}

TEST_F(XlaCpuTest, WrongBuffers) {
  Program program = recordProgram(5, unique());
  ASSERT_EQ(instantiate(program), "");
  std::vector<int64_t> x(64);
  auto said = [&](auto &&fill) {
    Frame frame(executing, program);
    fill(frame);
    return frame.call(xlaRunCpu);
  };
  EXPECT_EQ(said([&](Frame &frame) {}),
            "dither: found 0 operands and 0 results, expected 3 in all");
  EXPECT_EQ(said([&](Frame &frame) {
              frame.operand(x.data(), {5}).result(x.data(), {5});
            }),
            "dither: found 1 operands and 1 results, expected 3 in all");
  EXPECT_EQ(said([&](Frame &frame) {
              for (int i = 0; i < 4; ++i)
                frame.operand(x.data(), {64});
            }),
            "dither: found 4 operands and 0 results, expected 3 in all");
  EXPECT_EQ(said([&](Frame &frame) {
              frame.operand(x.data(), {5}).operand(x.data(), {2, 2});
              frame.result(x.data(), {64});
            }),
            "dither: operand 1 has 32 bytes, expected 40");
  EXPECT_EQ(said([&](Frame &frame) {
              frame.operand(x.data(), {5}).result(x.data(), {5});
              frame.result(x.data(), {295}, XLA_FFI_DataType_F8E4M3FN);
            }),
            "dither: result 1 has 295 bytes, expected 296");
  EXPECT_EQ(said([&](Frame &frame) {
              frame.operand(x.data(), {}).result(x.data(), {5});
              frame.result(x.data(), {64});
            }),
            "dither: operand 0 has 8 bytes, expected 40");
  EXPECT_EQ(said([&](Frame &frame) {
              frame.operand(x.data(), {5}).result(nullptr, {5});
              frame.result(x.data(), {64});
            }),
            "dither: buffer 1 is null, expected 40 bytes");
  EXPECT_EQ(x, std::vector<int64_t>(64));
}

TEST_F(XlaCpuTest, ArraysOfNoElements) {
  Program program;
  program.buffers = {0, 0};
  ASSERT_EQ(instantiate(program), "");
  EXPECT_EQ(Frame(executing, program)
                .operand(nullptr, {0, 7})
                .result(nullptr, {7, 0})
                .call(xlaRunCpu),
            "");
}

/// XLA's own checks, before ours: they must not be lost by the bindings.
TEST_F(XlaCpuTest, WrongAttributes) {
  Program program = recordProgram(5, unique());
  std::string digest = hexDigest(program.encode());
  auto refused = [](Frame frame, XlaHandler *handler) {
    std::string message = frame.call(handler);
    EXPECT_EQ(frame.code, XLA_FFI_Error_Code_INVALID_ARGUMENT);
    return StringRef(message).split('\n').first.str();
  };
  const std::pair<XLA_FFI_ExecutionStage, XlaHandler *> handlers[] = {
      {instantiating, xlaInstantiate},
      {initializing, xlaInitializeCuda},
      {executing, xlaRunCpu},
      {executing, xlaRunCuda}};
  for (auto [stage, handler] : handlers) {
    auto none = refused(Frame(stage), handler);
    EXPECT_TRUE(StringRef(none).contains("expected 2 but got 0")) << none;
    auto one = refused(Frame(stage).attribute("digest", digest), handler);
    EXPECT_TRUE(StringRef(one).contains("expected 2 but got 1")) << one;
    auto other =
        refused(Frame(stage).attribute("digest", digest).attribute("text", ""),
                handler);
    EXPECT_TRUE(StringRef(other).contains("Failed to decode")) << other;
  }
}

TEST_F(XlaCpuTest, WrongStage) {
  Program program = recordProgram(5, unique());
  ASSERT_EQ(instantiate(program), "");
  Frame frame(instantiating, program);
  EXPECT_NE(frame.call(xlaRunCpu).find("Wrong execution stage"),
            std::string::npos);
}

class XlaCudaTest : public XlaTest {
protected:
  static constexpr uintptr_t address = 0x10000;

  /// A call of ptxProgram, whose first buffer has no bytes.
  static Frame frame(XLA_FFI_ExecutionStage stage, const Program &program) {
    Frame frame(stage, program);
    frame.operand(nullptr, {0});
    frame.result(reinterpret_cast<void *>(address), {4, 8},
                 XLA_FFI_DataType_F32);
    return frame;
  }
  static std::string line(int stream, int64_t number) {
    return "scale grid=4x2x1 block=128x1x1 shared=0 stream=" +
           std::to_string(stream) + " params=0x10040," +
           std::to_string(number) + ",7,0\n";
  }
};

TEST_F(XlaCudaTest, LaunchesOnTheStreamOfTheCall) {
  int64_t number = unique();
  Program program = ptxProgram(number);
  ASSERT_EQ(instantiate(program), "");
  EXPECT_EQ(loads(), 0u);
  EXPECT_EQ(frame(initializing, program).call(xlaInitializeCuda), "");
  EXPECT_EQ(loads(), 1u);
  EXPECT_EQ(launches(), "");
  EXPECT_EQ(frame(executing, program).on(stream()).call(xlaRunCuda), "");
  EXPECT_EQ(frame(executing, program).on(nullptr).call(xlaRunCuda), "");
  EXPECT_EQ(launches(), line(1, number) + line(0, number));
  EXPECT_EQ(loads(), 1u);
}

TEST_F(XlaCudaTest, OnceForEachDevice) {
  int64_t number = unique();
  Program program = ptxProgram(number);
  ASSERT_EQ(instantiate(program), "");
  for (int round = 0; round < 2; ++round)
    for (int32_t ordinal : {0, 1})
      EXPECT_EQ(frame(executing, program).on(nullptr, ordinal).call(xlaRunCuda),
                "");
  EXPECT_EQ(loads(), 2u);
  EXPECT_EQ(launches(), line(0, number) + line(0, number) + line(0, number) +
                            line(0, number));
  EXPECT_EQ(frame(executing, program).on(nullptr, 7).call(xlaRunCuda),
            "dither: no device cuda:7: found 2 GPUs");
}

TEST_F(XlaCudaTest, NoStream) {
  Program program = ptxProgram(unique());
  ASSERT_EQ(instantiate(program), "");
  Frame call = frame(executing, program);
  call.context.failure = "this platform has no streams";
  EXPECT_NE(call.call(xlaRunCuda).find("this platform has no streams"),
            std::string::npos);
  EXPECT_EQ(launches(), "");
}

TEST_F(XlaCudaTest, FailuresOfTheDriver) {
  Program program = ptxProgram(unique());
  ASSERT_EQ(instantiate(program), "");
  int none;
  EXPECT_EQ(frame(executing, program).on(&none).call(xlaRunCuda),
            "dither: cuLaunchKernel failed: CUDA_ERROR_INVALID_HANDLE (400): "
            "kernel 'scale', grid 4x2x1, block 128, shared 512 bytes");
}

/// Before a launch, and not only when a graph of launches is recorded.
TEST_F(XlaCudaTest, ProgramsForAnotherTarget) {
  Program program = ptxProgram(unique(), "sm_100a");
  ASSERT_EQ(instantiate(program), "");
  const char *expected =
      "dither: kernel 'scale' is for 'sm_100a': cuda:0 runs 'sm_90a'";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(frame(initializing, program).call(xlaInitializeCuda), expected);
    EXPECT_EQ(frame(executing, program).call(xlaRunCuda), expected);
  }
  EXPECT_EQ(
      frame(executing, program)
          .call(xlaRunCpu)
          .find("dither: kernel 'scale' is for 'sm_100a': this device runs "),
      0u);
  EXPECT_EQ(launches(), "");
  Program host = recordProgram(5, unique());
  ASSERT_EQ(instantiate(host), "");
  EXPECT_EQ(RecordCall(host).frame.call(xlaRunCuda),
            "dither: kernel 'record' is for 'host': cuda:0 runs 'sm_90a'");
}

TEST_F(XlaCudaTest, NotInstantiated) {
  Program program = ptxProgram(unique());
  std::string expected = "dither: found no program with digest " +
                         hexDigest(program.encode()) +
                         ", expected one that was instantiated";
  EXPECT_EQ(frame(initializing, program).call(xlaInitializeCuda), expected);
  EXPECT_EQ(frame(executing, program).call(xlaRunCuda), expected);
  EXPECT_EQ(loads(), 0u);
}

/// What XLA asks when the handlers are registered.
TEST(XlaMetadata, VersionAndTraits) {
  const std::pair<XlaHandler *, uint32_t> handlers[] = {
      {xlaInstantiate, 0},
      {xlaInitializeCuda, 0},
      {xlaRunCpu, 0},
      {xlaRunCuda, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE}};
  for (auto [handler, traits] : handlers) {
    XLA_FFI_Metadata metadata = {};
    metadata.struct_size = XLA_FFI_Metadata_STRUCT_SIZE;
    metadata.traits = 0xff;
    XLA_FFI_Metadata_Extension extension = {};
    extension.extension_base = {XLA_FFI_Metadata_Extension_STRUCT_SIZE,
                                XLA_FFI_Extension_Metadata, nullptr};
    extension.metadata = &metadata;
    // Of the rest of the frame nothing is set.
    XLA_FFI_CallFrame frame = {};
    frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
    frame.api = xlaApi();
    frame.extension_start = &extension.extension_base;
    EXPECT_EQ(handler(&frame), nullptr);
    EXPECT_EQ(metadata.api_version.major_version, XLA_FFI_API_MAJOR);
    EXPECT_EQ(metadata.api_version.minor_version, XLA_FFI_API_MINOR);
    EXPECT_EQ(metadata.traits, traits);
    EXPECT_EQ(metadata.state_type_id.type_id, 0);
  }
}

} // namespace
