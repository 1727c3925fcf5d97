//===- RoundingsTest.cpp - floor, ceil, trunc and roundeven ---------------===//
//
// The same bits at each level of CPUs that this machine runs, with and without
// an instruction for them.
//
//===----------------------------------------------------------------------===//

#include "RunOnHost.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace dither;

namespace {

constexpr int64_t kLanes = 8;

/// Numbers around integers, halves, and where fractions end; of any size.
template <typename Float> std::vector<Float> inputs() {
  using Limits = std::numeric_limits<Float>;
  std::vector<Float> values = {0,
                               Limits::infinity(),
                               Limits::quiet_NaN(),
                               Limits::denorm_min(),
                               Limits::min(),
                               Limits::max()};
  auto around = [&](Float v) {
    values.push_back(v);
    values.push_back(std::nextafter(v, -Limits::infinity()));
    values.push_back(std::nextafter(v, Limits::infinity()));
  };
  for (int i = 0; i < 40; ++i)
    around(Float(i) / 4);
  for (int e = -3; e < Limits::digits + 3; ++e)
    for (Float m : {1.0, 1.25, 1.5, 1.75})
      around(std::ldexp(m, e));
  for (size_t i = 0, n = values.size(); i < n; ++i)
    values.push_back(-values[i]);
  while (values.size() % kLanes)
    values.push_back(0);
  return values;
}

/// A loop over vectors that writes `math.<name>` of each.
std::string kernelText(const char *name, const char *type, int64_t bytes,
                       int64_t count) {
  std::string vector = "vector<" + std::to_string(kLanes) + "x" + type + ">";
  std::string align = " {alignment = " + std::to_string(bytes) + " : i64} : ";
  std::string at = "[%i] : (!llvm.ptr, i64) -> !llvm.ptr, " + vector + "\n";
  return "func.func @round(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, "
         "%begin: i64, %end: i64) attributes {quant.kernel, "
         "quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64, "
         "quant.params = [\"ptr\", \"ptr\"]} {\n"
         "  %in = llvm.load %slots : !llvm.ptr -> !llvm.ptr\n"
         "  %second = llvm.getelementptr %slots[1] : (!llvm.ptr) -> "
         "!llvm.ptr, i64\n"
         "  %out = llvm.load %second : !llvm.ptr -> !llvm.ptr\n"
         "  %zero = arith.constant 0 : i64\n"
         "  %one = arith.constant 1 : i64\n"
         "  %n = arith.constant " +
         std::to_string(count / kLanes) +
         " : i64\n"
         "  scf.for %i = %zero to %n step %one : i64 {\n"
         "    %p = llvm.getelementptr %in" +
         at + "    %q = llvm.getelementptr %out" + at +
         "    %x = llvm.load %p" + align + "!llvm.ptr -> " + vector +
         "\n    %y = math." + name + " %x : " + vector +
         "\n    llvm.store %y, %q" + align + vector +
         ", !llvm.ptr\n  }\n  return\n}\n";
}

template <typename Float, typename Bits>
void expectEqual(const char *name, const char *type, Float (*expected)(Float)) {
  std::vector<Float> in = inputs<Float>();
  std::string text = kernelText(name, type, sizeof(Float), in.size());
  for (const std::string &target : test::hostTargets()) {
    std::vector<Float> out(in.size(), 7);
    int64_t slots[] = {reinterpret_cast<int64_t>(in.data()),
                       reinterpret_cast<int64_t>(out.data())};
    test::runOnHost(text, pipelines::Stage::Distributed, target, slots, 1);
    for (size_t i = 0; i < in.size(); ++i) {
      Float want = expected(in[i]);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(out[i])) << target << ": " << name;
      else
        EXPECT_EQ(llvm::bit_cast<Bits>(out[i]), llvm::bit_cast<Bits>(want))
            << target << ": " << name << " of " << in[i] << " is " << out[i];
    }
  }
}

template <typename Float, typename Bits> void expectAll(const char *type) {
  expectEqual<Float, Bits>("floor", type, std::floor);
  expectEqual<Float, Bits>("ceil", type, std::ceil);
  expectEqual<Float, Bits>("trunc", type, std::trunc);
  // Tests run in the mode to nearest even.
  expectEqual<Float, Bits>("roundeven", type, std::nearbyint);
}

TEST(Roundings, OfFloats) { expectAll<float, uint32_t>("f32"); }
TEST(Roundings, OfDoubles) { expectAll<double, uint64_t>("f64"); }

} // namespace
