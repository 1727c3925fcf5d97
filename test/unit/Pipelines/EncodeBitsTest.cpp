//===- EncodeBitsTest.cpp - Compiled conversions against Numerics ---------===//
//
// Kernels that only convert, or multiply and convert, compiled for each CPU
// level that this machine runs, on every exponent and sign with mantissas
// around all rounding points.
//
//===----------------------------------------------------------------------===//

#include "RunOnHost.h"
#include "dither/Numerics/Convert.h"
#include "dither/Numerics/Formats.h"

#include <cmath>
#include <cstring>

using namespace dither;
using dither::numerics::ElementFormat;
using dither::test::hostTargets;

namespace {

constexpr int64_t kColumns = 256;

/// For each sign and exponent, the mantissas next to 16 equal steps: ties of
/// every format with at most 3 mantissa bits; plus low bits for the longer
/// ones.
std::vector<float> inputs() {
  std::vector<uint32_t> bits;
  for (uint32_t top = 0; top < 512; ++top) {
    for (uint32_t step = 0; step < 16; ++step)
      for (uint32_t around : {0x7FFFFFu, 0u, 1u})
        bits.push_back(top << 23 | (((step << 19) + around) & 0x7FFFFF));
    for (uint32_t m = 0; m < 256; ++m) // and of integers of 8 bits
      bits.push_back(top << 23 | m << 15);
    for (uint32_t m : {0x7FFFu, 0x8000u, 0x8001u, 0x18000u, 0x0FFFu, 0x1000u,
                       0x1001u, 0x3000u, 0x7FF000u, 0x7F8000u})
      bits.push_back(top << 23 | m);
  }
  while (bits.size() % kColumns)
    bits.push_back(0);
  std::vector<float> values(bits.size());
  memcpy(values.data(), bits.data(), 4 * bits.size());
  return values;
}

/// Runs a kernel of two pointers, each with its number of rows.
void run(const std::string &text, const std::string &targetName, void *in,
         void *out, int64_t rows) {
  int64_t slots[] = {reinterpret_cast<int64_t>(in), rows,
                     reinterpret_cast<int64_t>(out), rows};
  test::runOnHost(text, pipelines::Stage::Quant, targetName, slots, rows);
}

/// `body` computes %q, a tile of `to`, from %t, a tile of `from`.
std::string kernelText(const std::string &from, const std::string &to,
                       const std::string &body) {
  std::string columns = std::to_string(kColumns);
  std::string in = columns + "x" + from, out = columns + "x" + to;
  return "func.func @convert(%x: memref<?x" + in + ">, %y: memref<?x" + out +
         ">) attributes {quant.kernel} {\n"
         "  %i = quant.program_id x\n"
         "  %c0 = arith.constant 0 : index\n"
         "  %t = quant.load %x[%i, %c0] : memref<?x" +
         in + "> -> tensor<1x" + in + ">\n  %q = " + body + " : tensor<1x" +
         in + "> to tensor<1x" + out +
         ">\n  quant.store %q, %y[%i, %c0] : " + "tensor<1x" + out +
         ">, memref<?x" + out + ">\n  return\n}\n";
}

uint32_t codeAt(const std::vector<uint8_t> &bytes, unsigned bits, size_t i) {
  if (bits == 4)
    return bytes[i / 2] >> (i % 2 * 4) & 15;
  if (bits == 8)
    return bytes[i];
  return bytes[2 * i] | bytes[2 * i + 1] << 8;
}

class EncodeBits : public testing::TestWithParam<const char *> {};

TEST_P(EncodeBits, EqualNumerics) {
  std::string name = GetParam(), mode;
  if (size_t at = name.find(' '); at != std::string::npos) {
    mode = name.substr(at + 1);
    name.resize(at);
  }
  const ElementFormat &format = *numerics::findElementFormat(name);
  std::string body = "arith.truncf %t", arrow = " to ";
  bool isEncode = format.bits <= 8;
  if (isEncode)
    body = "quant.encode %t";
  if (!mode.empty())
    body += " {mode = #quant.e8m0_mode<" + mode + ">}";
  std::string text = kernelText("f32", name, body);
  if (isEncode) // quant.encode is spelled with an arrow
    text.replace(text.find(arrow, text.find("quant.encode")), arrow.size(),
                 " -> ");
  std::vector<float> in = inputs();
  for (const std::string &target : hostTargets()) {
    std::vector<uint8_t> out(in.size() * format.storageBits() / 8, 0xA5);
    run(text, target, in.data(), out.data(), in.size() / kColumns);
    int bad = 0;
    for (size_t i = 0; i < in.size() && bad < 5; ++i) {
      uint32_t want = mode == "floor"   ? numerics::encodeE8M0Floor(in[i])
                      : mode == "rceil" ? numerics::encodeE8M0Ceil(in[i])
                                        : numerics::encode(format, in[i]);
      uint32_t got = codeAt(out, format.storageBits(), i), bits;
      memcpy(&bits, &in[i], 4);
      if (got != want && ++bad)
        ADD_FAILURE() << target << ": " << name << " of " << std::hex << bits
                      << " is " << got << ", expected " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EncodeBits,
                         testing::Values("f4E2M1FN", "f6E2M3FN", "f6E3M2FN",
                                         "i8", "f8E4M3FN", "f8E5M2",
                                         "f8E8M0FNU rceil", "f8E8M0FNU floor",
                                         "bf16", "f16"));

class ScaleEncodeBits : public testing::TestWithParam<const char *> {};

/// Products of which all that is promised holds.
TEST_P(ScaleEncodeBits, EqualNumerics) {
  const std::string name = GetParam();
  const ElementFormat &format = *numerics::findElementFormat(name);
  std::vector<float> values = inputs(), in, factors;
  for (float factor : {1.0f, 0x1p-20f, 3.7f, 0x1.fffffep+127f, 0.0f}) {
    in.insert(in.end(), values.begin(), values.end());
    factors.resize(in.size(), factor);
  }
  int64_t rows = in.size() / kColumns;
  for (std::string promises : {"", "{finite}", "{bounded, finite}"}) {
    if (!promises.empty())
      for (size_t i = 0; i < in.size(); ++i)
        if (!std::isfinite(in[i]) ||
            (promises == "{bounded, finite}" &&
             !(std::fabs(in[i] * factors[i]) <= format.max)))
          in[i] = 0;
    std::string to = "1x256x" + name, out = "memref<?x256x" + name + ">";
    std::string text =
        "func.func @scale(%x: memref<?x256xf32>, %f: memref<?x256xf32>, "
        "%y: " +
        out +
        ") attributes {quant.kernel} {\n"
        "  %i = quant.program_id x\n"
        "  %c0 = arith.constant 0 : index\n"
        "  %t = quant.load %x[%i, %c0] : memref<?x256xf32> -> "
        "tensor<1x256xf32>\n"
        "  %s = quant.load %f[%i, %c0] : memref<?x256xf32> -> "
        "tensor<1x256xf32>\n"
        "  %q = quant.scale_encode %t, %s " +
        promises + " : tensor<1x256xf32> -> tensor<" + to +
        ">\n"
        "  quant.store %q, %y[%i, %c0] : tensor<" +
        to + ">, " + out + "\n  return\n}\n";
    for (const std::string &target : hostTargets()) {
      std::vector<uint8_t> codes(in.size() * format.storageBits() / 8, 0xA5);
      int64_t slots[] = {reinterpret_cast<int64_t>(in.data()),      rows,
                         reinterpret_cast<int64_t>(factors.data()), rows,
                         reinterpret_cast<int64_t>(codes.data()),   rows};
      test::runOnHost(text, pipelines::Stage::Quant, target, slots, rows);
      int bad = 0;
      for (size_t i = 0; i < in.size() && bad < 5; ++i) {
        uint32_t want = numerics::encode(format, in[i] * factors[i]),
                 got = codeAt(codes, format.storageBits(), i);
        if (got != want && ++bad)
          ADD_FAILURE() << target << " " << promises << ": " << in[i]
                        << " times " << factors[i] << " is " << std::hex << got
                        << ", expected " << want;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ScaleEncodeBits,
                         testing::Values("f4E2M1FN", "f6E2M3FN", "f6E3M2FN",
                                         "f8E4M3FN", "f8E5M2"));

class DecodeBits : public testing::TestWithParam<const char *> {};

TEST_P(DecodeBits, EqualNumerics) {
  const ElementFormat &format = *numerics::findElementFormat(GetParam());
  std::string body = format.bits <= 8 ? "quant.decode %t" : "arith.extf %t";
  std::string text = kernelText(GetParam(), "f32", body);
  if (format.bits <= 8)
    text.replace(text.find(" to ", text.find("quant.decode")), 4, " -> ");
  size_t codes = std::max<size_t>(kColumns, size_t(1) << format.bits);
  std::vector<uint8_t> in(codes * format.storageBits() / 8);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = format.bits <= 8 ? uint8_t(i) : uint8_t(i / 2 >> i % 2 * 8);
  for (const std::string &target : hostTargets()) {
    std::vector<uint32_t> out(codes, 0xA5A5A5A5);
    run(text, target, in.data(), out.data(), codes / kColumns);
    int bad = 0;
    for (size_t i = 0; i < codes && bad < 5; ++i) {
      // What is above a code does not count.
      uint32_t code = codeAt(in, format.storageBits(), i), want;
      code &= (uint64_t(1) << format.bits) - 1;
      float value = numerics::decode(format, code);
      memcpy(&want, &value, 4);
      bool isNaN = value != value;
      bool gotNaN = (out[i] & 0x7FFFFFFF) > 0x7F800000;
      if ((isNaN ? !gotNaN : out[i] != want) && ++bad)
        ADD_FAILURE() << target << ": " << GetParam() << " " << std::hex << code
                      << " is " << out[i] << ", expected " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, DecodeBits,
                         testing::Values("f4E2M1FN", "f6E2M3FN", "f6E3M2FN",
                                         "i8", "f8E4M3FN", "f8E5M2",
                                         "f8E8M0FNU", "bf16", "f16"));

} // namespace
