// Compiled kernels on every simulated GPU, with all checks on: they must run
// without a fault, write all of their outputs, and give the bits that they give
// on the CPU.
#include "../Pipelines/CompileText.h"
#include "SimTest.h"
#include "dither/Numerics/Convert.h"
#include "dither/Runtime/CpuDevice.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <functional>

using namespace dither;
using namespace dither::test;

namespace {

const char *const targets[] = {"sm_80",   "sm_86",   "sm_89",   "sm_90a",
                               "sm_100a", "sm_103a", "sm_120a", "sm_121a"};

/// A buffer of a kernel: its contents where it is read, else its size.
struct Buffer {
  std::vector<uint8_t> data;
  bool isOutput = false;
};

/// Bytes of all outputs.
using Outputs = std::vector<std::vector<uint8_t>>;

/// Runs the one kernel of `text`. `scalars` are its slots but for the pointers,
/// for which they have the index of a buffer.
struct Slot {
  bool isPointer;
  int64_t value;
};

struct Case {
  std::string text;
  std::vector<Buffer> buffers;
  std::vector<Slot> slots;
  Grid grid;
};

KernelImage compileFor(const std::string &text, const std::string &target) {
  CompileOptions options;
  options.target = target;
  CompileText compile;
  auto artifact = compile(text, options);
  if (artifact)
    return artifact->kernels[0];
  ADD_FAILURE() << target << ": " << llvm::toString(artifact.takeError())
                << compile.diagnostics;
  return KernelImage();
}

/// `fault` gets what the launch says; without it, it must say nothing.
Outputs runOn(Device &device, const Case &given, const KernelImage &image,
              std::string *fault = nullptr) {
  const std::string &target = image.target;
  auto kernel = must(device.load(image));
  std::vector<void *> memory;
  for (const Buffer &buffer : given.buffers) {
    memory.push_back(must(device.allocate(buffer.data.size())));
    if (!buffer.isOutput)
      must(
          device.copyIn(memory.back(), buffer.data.data(), buffer.data.size()));
  }
  std::vector<int64_t> slots;
  for (const Slot &slot : given.slots)
    slots.push_back(slot.isPointer ? int64_t(memory[size_t(slot.value)])
                                   : slot.value);
  std::string error = message(kernel->launch(slots, given.grid, nullptr));
  if (fault)
    *fault = error;
  else
    EXPECT_EQ(error, "") << target;
  bool checked = device.name() != "cpu" && !fault;
  Outputs outputs;
  for (size_t i = 0; i < memory.size(); ++i) {
    const Buffer &buffer = given.buffers[i];
    if (buffer.isOutput && error.empty()) {
      outputs.emplace_back(buffer.data.size());
      must(
          device.copyOut(outputs.back().data(), memory[i], buffer.data.size()));
    }
    if (checked && buffer.isOutput && error.empty()) {
      auto &simulator = static_cast<SimDevice &>(device);
      size_t size = buffer.data.size();
      EXPECT_EQ(must(simulator.firstUnwritten(memory[i], size)), size)
          << target;
    }
    must(device.release(memory[i]));
  }
  return outputs;
}

void expectSameEverywhere(const Case &given) {
  auto cpu = must(makeCpuDevice());
  Outputs expected = runOn(*cpu, given, compileFor(given.text, "host"));
  ASSERT_FALSE(expected.empty());
  for (const char *target : targets) {
    SimOptions options;
    options.checkInit = options.checkRaces = true;
    auto device = must(SimDevice::make(target, options));
    EXPECT_EQ(runOn(*device, given, compileFor(given.text, target)), expected)
        << target;
  }
}

/// bf16 values of many magnitudes; some rows are zero, some values subnormal.
std::vector<uint8_t> brains(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < count; ++i) {
    float x = normal(random) * std::ldexp(1.0f, int(i / 128 % 23) - 11);
    if (i / 128 % 29 == 7)
      x = 0;
    if (random() % 1000 == 0)
      x = std::ldexp(x, -120);
    uint32_t code = numerics::encode(numerics::kBF16, x);
    bytes.push_back(uint8_t(code));
    bytes.push_back(uint8_t(code >> 8));
  }
  return bytes;
}

std::vector<uint8_t> floats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<uint8_t> bytes(4 * count);
  for (size_t i = 0; i < count; ++i) {
    float x = normal(random);
    std::memcpy(&bytes[4 * i], &x, 4);
  }
  return bytes;
}

Buffer output(size_t bytes) {
  Buffer buffer;
  buffer.data.resize(bytes);
  buffer.isOutput = true;
  return buffer;
}
Buffer input(std::vector<uint8_t> data) {
  Buffer buffer;
  buffer.data = std::move(data);
  return buffer;
}

/// Replaces @NAME@ by values.
std::string
fill(std::string text,
     const std::vector<std::pair<std::string, std::string>> &names) {
  for (const auto &[name, value] : names)
    for (size_t at; (at = text.find("@" + name + "@")) != std::string::npos;)
      text.replace(at, name.size() + 2, value);
  return text;
}

struct Format {
  const char *name, *elem, *scale;
  int64_t block;
  bool tensorScale;
};
const Format formats[] = {{"mxfp8_e4m3", "f8E4M3FN", "f8E8M0FNU", 32, false},
                          {"mxfp8_e5m2", "f8E5M2", "f8E8M0FNU", 32, false},
                          {"mxfp4", "f4E2M1FN", "f8E8M0FNU", 32, false},
                          {"nvfp4", "f4E2M1FN", "f8E4M3FN", 16, true}};

/// Rows of 256 in tiles of 8 x 128, of which the last ones are cut off.
TEST(Compiled, BlocksOfRows) {
  constexpr int64_t rows = 37, columns = 256;
  for (const Format &format : formats) {
    std::string amax = format.tensorScale ? ", %amax" : "";
    std::string amaxType = format.tensorScale ? ", tensor<f32>" : "";
    Case test;
    test.text = fill(
        R"(func.func @k(%x: memref<?x256xbf16> {quant.align = 16 : i64},
    %q: memref<?x256x@E@> {quant.align = 16 : i64}, %s: memref<?x@SC@x@S@>,
    %a: memref<f32>) attributes {quant.kernel} {
  %i = quant.program_id x
  %j = quant.program_id y
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %cs = arith.constant @TS@ : index
  %r = arith.muli %i, %c8 : index
  %c = arith.muli %j, %c128 : index
  %sc = arith.muli %j, %cs : index
  %t = quant.load %x[%r, %c] : memref<?x256xbf16> -> tensor<8x128xbf16>
  %f = arith.extf %t : tensor<8x128xbf16> to tensor<8x128xf32>
  %amax = quant.load %a[] : memref<f32> -> tensor<f32>
  %scale = quant.block_scale %f@A@ axis 1 format <@F@> : tensor<8x128xf32>@AT@ -> tensor<8x@TS@x@S@>
  %codes = quant.cast_@K@ %f, %scale@A@ axis 1 format <@F@> : tensor<8x128xf32>, tensor<8x@TS@x@S@>@AT@ -> tensor<8x128x@E@>
  quant.store %codes, %q[%r, %c] : tensor<8x128x@E@>, memref<?x256x@E@>
  quant.store %scale, %s[%r, %sc] : tensor<8x@TS@x@S@>, memref<?x@SC@x@S@>
  return
})",
        {{"E", format.elem},
         {"S", format.scale},
         {"F", format.name},
         {"K", format.elem[1] == '4' ? "fp4" : "fp8"},
         {"A", amax},
         {"AT", amaxType},
         {"SC", std::to_string(columns / format.block)},
         {"TS", std::to_string(128 / format.block)}});
    float largest = 3.5f;
    std::vector<uint8_t> scalar(4);
    std::memcpy(scalar.data(), &largest, 4);
    int64_t elemBits = format.elem[1] == '4' ? 4 : 8;
    test.buffers = {input(brains(rows * columns, 1)),
                    output(size_t(rows * columns * elemBits / 8)),
                    output(size_t(rows * columns / format.block)),
                    input(scalar)};
    test.slots = {{true, 0}, {false, rows}, {true, 1}, {false, rows},
                  {true, 2}, {false, rows}, {true, 3}};
    test.grid = {5, 2, 1};
    expectSameEverywhere(test);
  }
}

/// Blocks along columns, with codes stored transposed: through shared memory.
Case columns() {
  Case test;
  test.text = R"(
func.func @k(%x: memref<?x128xbf16> {quant.align = 16 : i64}, %q: memref<128x?xf8E4M3FN>,
    %s: memref<128x?xf8E8M0FNU>) attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %i = quant.program_id x
  %j = quant.program_id y
  %c64 = arith.constant 64 : index
  %c2 = arith.constant 2 : index
  %r = arith.muli %i, %c64 : index
  %c = arith.muli %j, %c64 : index
  %sr = arith.muli %i, %c2 : index
  %t = quant.load %x[%r, %c] : memref<?x128xbf16> -> tensor<64x64xbf16>
  %f = arith.extf %t : tensor<64x64xbf16> to tensor<64x64xf32>
  %scale = quant.block_scale %f axis 0 format <mxfp8_e4m3> : tensor<64x64xf32> -> tensor<2x64xf8E8M0FNU>
  %codes = quant.cast_fp8 %f, %scale axis 0 format <mxfp8_e4m3> : tensor<64x64xf32>, tensor<2x64xf8E8M0FNU> -> tensor<64x64xf8E4M3FN>
  %ct = quant.transpose %codes : tensor<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %st = quant.transpose %scale : tensor<2x64xf8E8M0FNU> -> tensor<64x2xf8E8M0FNU>
  quant.store %ct, %q[%c, %r] : tensor<64x64xf8E4M3FN>, memref<128x?xf8E4M3FN>
  quant.store %st, %s[%c, %sr] : tensor<64x2xf8E8M0FNU>, memref<128x?xf8E8M0FNU>
  return
})";
  constexpr int64_t rows = 160;
  test.buffers = {input(brains(rows * 128, 2)), output(rows * 128),
                  output(rows / 32 * 128)};
  // The outer stride of 128x? is its dynamic size.
  test.slots = {{true, 0},          {false, rows},     {true, 1},
                {false, rows},      {false, rows},     {true, 2},
                {false, rows / 32}, {false, rows / 32}};
  test.grid = {3, 2, 1};
  return test;
}

TEST(Compiled, BlocksOfColumns) { expectSameEverywhere(columns()); }

/// Whether a path from `at` on accesses shared memory.
static bool reachesShared(llvm::StringRef code, size_t at) {
  llvm::StringSet<> seen;
  llvm::SmallVector<llvm::StringRef> paths = {code.substr(at)};
  while (!paths.empty()) {
    llvm::StringRef rest = paths.pop_back_val();
    while (!rest.empty()) {
      llvm::StringRef line;
      std::tie(line, rest) = rest.split('\n');
      if (line.contains(".shared."))
        return true;
      if (line.contains("ret;"))
        break;
      if (!line.contains("bra"))
        continue;
      llvm::StringRef label =
          line.substr(line.find('$')).take_until([](char c) {
            return c == ';';
          });
      if (seen.insert(label).second)
        paths.push_back(code.substr(code.find(("\n" + label + ":").str()) + 1));
      if (line.contains("bra.uni"))
        break;
    }
  }
  return false;
}

/// Without any one of its barriers the kernel has a race, which is found; but
/// for barriers behind the last access of a path.
TEST(Compiled, MissingBarriersAreFound) {
  SimOptions options;
  options.checkRaces = true; // alone: what is not written yet is a fault, too
  auto device = must(SimDevice::make("sm_90a", options));
  Case test = columns();
  KernelImage image = compileFor(test.text, "sm_90a");
  size_t found = 0;
  for (size_t at = 0;
       (at = image.code.find("bar.sync", at)) != std::string::npos; ++at) {
    size_t end = image.code.find(';', at);
    bool isLast = !reachesShared(image.code, end);
    KernelImage racy = image;
    racy.code.replace(at, end - at, "");
    std::string fault;
    runOn(*device, test, racy, &fault);
    bool isRace = fault.find("with no barrier in between") != std::string::npos;
    EXPECT_EQ(isRace, !isLast) << "barrier at " << at << ": " << fault;
    found += isRace;
  }
  EXPECT_GE(found, 3u);
}

/// A row to a program: sums across warps, in the order that is fixed.
TEST(Compiled, NormalizedRows) {
  for (int warps : {1, 8}) {
    Case test;
    test.text = fill(
        R"(
func.func @k(%x: memref<?x2048xbf16> {quant.align = 16 : i64}, %g: memref<2048xf32>,
    %q: memref<?x2048xf8E4M3FN>, %s: memref<?x64xf8E8M0FNU>, %sigma: memref<?x1xf32>)
    attributes {quant.kernel, quant.num_warps = @W@ : i64} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %gamma = quant.load %g[%c0] : memref<2048xf32> -> tensor<2048xf32>
  %y, %rs = quant.rms_norm %f, %gamma {eps = 1.0e-5 : f32} : tensor<1x2048xf32>, tensor<2048xf32> -> tensor<1x2048xf32>, tensor<1x1xf32>
  %scale = quant.block_scale %y axis 1 format <mxfp8_e4m3> : tensor<1x2048xf32> -> tensor<1x64xf8E8M0FNU>
  %codes = quant.cast_fp8 %y, %scale axis 1 format <mxfp8_e4m3> : tensor<1x2048xf32>, tensor<1x64xf8E8M0FNU> -> tensor<1x2048xf8E4M3FN>
  quant.store %codes, %q[%i, %c0] : tensor<1x2048xf8E4M3FN>, memref<?x2048xf8E4M3FN>
  quant.store %scale, %s[%i, %c0] : tensor<1x64xf8E8M0FNU>, memref<?x64xf8E8M0FNU>
  quant.store %rs, %sigma[%i, %c0] : tensor<1x1xf32>, memref<?x1xf32>
  return
})",
        {{"W", std::to_string(warps)}});
    constexpr int64_t rows = 5;
    test.buffers = {input(brains(rows * 2048, 3)), input(floats(2048, 4)),
                    output(rows * 2048), output(rows * 64), output(rows * 4)};
    test.slots = {{true, 0},     {false, rows}, {true, 1},
                  {true, 2},     {false, rows}, {true, 3},
                  {false, rows}, {true, 4},     {false, rows}};
    test.grid = {rows, 1, 1};
    expectSameEverywhere(test);
  }
}

/// exp and tanh are the same bits everywhere, and use no approximation.
TEST(Compiled, ElementaryFunctions) {
  Case test;
  test.text = R"(
func.func @k(%x: memref<?x256xf32>, %y: memref<?x256xf32>) attributes {quant.kernel} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x256xf32> -> tensor<1x256xf32>
  %e = quant.exp %t : tensor<1x256xf32>
  %h = quant.tanh %t : tensor<1x256xf32>
  %r = math.sqrt %e : tensor<1x256xf32>
  %s = arith.addf %r, %h : tensor<1x256xf32>
  %d = arith.divf %s, %e : tensor<1x256xf32>
  quant.store %d, %y[%i, %c0] : tensor<1x256xf32>, memref<?x256xf32>
  return
})";
  constexpr int64_t rows = 6;
  test.buffers = {input(floats(rows * 256, 5)), output(rows * 1024)};
  test.slots = {{true, 0}, {false, rows}, {true, 1}, {false, rows}};
  test.grid = {rows, 1, 1};
  expectSameEverywhere(test);
}

/// Maxima of bits keep a NaN, whatever a target makes of one, and products are
/// encoded as what they are.
TEST(Compiled, BitsAndProducts) {
  Case test;
  test.text = R"(
func.func @k(%x: memref<?x256xf32>, %y: memref<?x256xf32>, %f: memref<?x256xf32>,
    %a: memref<?x8xf32>, %q: memref<?x256xf8E4M3FN>, %r: memref<?x256xf8E4M3FN>) attributes {quant.kernel} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x256xf32> -> tensor<1x256xf32>
  %m = quant.block_reduce amax %t block [1, 32] {amax_bits} : tensor<1x256xf32> -> tensor<1x8xf32>
  quant.store %m, %a[%i, %c0] : tensor<1x8xf32>, memref<?x8xf32>
  %u = quant.load %y[%i, %c0] : memref<?x256xf32> -> tensor<1x256xf32>
  %v = quant.load %f[%i, %c0] : memref<?x256xf32> -> tensor<1x256xf32>
  %s = quant.scale_encode %u, %v {finite} : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %s, %q[%i, %c0] : tensor<1x256xf8E4M3FN>, memref<?x256xf8E4M3FN>
  %p = arith.mulf %u, %v : tensor<1x256xf32>
  %c = quant.encode %p : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %c, %r[%i, %c0] : tensor<1x256xf8E4M3FN>, memref<?x256xf8E4M3FN>
  return
})";
  constexpr size_t rows = 6, count = rows * 256;
  std::vector<uint8_t> x = floats(count, 6), factors = floats(count, 7);
  for (size_t i = 0; i < count; ++i) {
    // A NaN of some sign and payload in every other block, in some an infinity.
    if (i % 64 == i / 64)
      x[4 * i + 2] |= 0x80, x[4 * i + 3] |= 0x7F;
    if (i % 96 == 5)
      x[4 * i] = x[4 * i + 1] = 0, x[4 * i + 2] = 0x80, x[4 * i + 3] = 0xFF;
    factors[4 * i + 3] &= 0x7F;
  }
  std::vector<uint32_t> words(count), largest(count / 32);
  std::memcpy(words.data(), x.data(), x.size());
  for (size_t i = 0; i < count; ++i)
    largest[i / 32] = std::max(largest[i / 32], words[i] & 0x7FFFFFFF);
  test.buffers = {input(x),          input(floats(count, 8)), input(factors),
                  output(count / 8), output(count),           output(count)};
  for (int64_t i = 0; i < 6; ++i) {
    test.slots.push_back({true, i});
    test.slots.push_back({false, rows});
  }
  test.grid = {rows, 1, 1};
  expectSameEverywhere(test);
  Outputs outputs =
      runOn(*must(makeCpuDevice()), test, compileFor(test.text, "host"));
  std::vector<uint32_t> maxima(count / 32);
  std::memcpy(maxima.data(), outputs[0].data(), outputs[0].size());
  EXPECT_EQ(maxima, largest);
  EXPECT_EQ(outputs[1], outputs[2]);
}

} // namespace
