//===- MaskedAccessesTest.cpp - Masked loads and stores on CPUs -----------===//
//
// Masks that are constant once the IR is optimized, and masks known at run time
// only, for every width, executed at each level that this machine runs: lanes
// that are not set are neither read nor written. LLVM writes more where it is
// left alone: docs/llvm-bugs.md.
//
//===----------------------------------------------------------------------===//

#include "RunOnHost.h"
#include "llvm/Support/MathExtras.h"

using namespace dither;
using dither::test::hostTargets;

namespace {

/// Bytes of a case: of its vector, of what follows it in memory (the mask), of
/// what comes back, and of what must stay before that.
constexpr int64_t kVector = 128, kIn = 136, kOut = 256, kGuard = 64;

/// When the compiler knows the masks.
enum class Masks { Constant, RunTime };

struct Case {
  unsigned from, to, lanes; // bits of an element, before and after
  uint64_t mask;
};

std::vector<Case> cases(Masks masks) {
  std::vector<Case> all;
  for (auto [from, to] : {std::pair(32u, 8u),
                          {32, 16},
                          {16, 8},
                          {64, 8},
                          {64, 32},
                          {32, 32},
                          {8, 8},
                          {16, 16}})
    for (unsigned lanes : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
      // Kernels access no more than 64 bytes by a mask.
      if (lanes * from > 8 * kVector || (lanes > 16 && lanes * to > 512) ||
          (lanes > 16 && masks == Masks::Constant))
        continue;
      uint64_t every = llvm::maskTrailingOnes<uint64_t>(lanes);
      // Longer vectors: every seventh prefix, and the longest ones.
      for (unsigned k = 0; k <= lanes; k += lanes > 16 && k + 9 < lanes ? 7 : 1)
        all.push_back({from, to, lanes, llvm::maskTrailingOnes<uint64_t>(k)});
      for (unsigned k = 1; k < lanes; k += lanes > 16 ? 9 : 1)
        all.push_back({from, to, lanes, uint64_t(1) << k});
      all.push_back({from, to, lanes, 0xB6DBB6DBB6DBB6DB & every});
      all.push_back({from, to, lanes, every << lanes / 2 & every});
    }
  return all;
}

std::string vectorOf(unsigned lanes, unsigned bits) {
  return "vector<" + std::to_string(lanes) + "xi" + std::to_string(bits) + ">";
}

/// A kernel of two pointers that runs `body(i, case, %in, %out)` for each case.
template <typename Body>
std::string kernelText(const std::vector<Case> &all, Masks masks, Body body) {
  std::string text =
      "func.func @accesses(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, "
      "%begin: i64, %end: i64) attributes {quant.kernel, "
      "quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64, "
      "quant.params = [\"ptr\", \"ptr\"]} {\n"
      "  %in = llvm.load %slots : !llvm.ptr -> !llvm.ptr\n"
      "  %second = llvm.getelementptr %slots[1] : (!llvm.ptr) -> !llvm.ptr, "
      "i64\n"
      "  %out = llvm.load %second : !llvm.ptr -> !llvm.ptr\n";
  for (size_t i = 0; i < all.size(); ++i) {
    const Case &c = all[i];
    std::string n = std::to_string(i), bits;
    for (unsigned lane = 0; lane < c.lanes; ++lane)
      bits += (lane ? ", " : "") +
              std::string(c.mask >> lane & 1 ? "true" : "false");
    if (masks == Masks::Constant)
      text += "  %m" + n + " = arith.constant dense<[" + bits +
              "]> : " + vectorOf(c.lanes, 1) + "\n";
    else
      text += "  %a" + n + " = llvm.getelementptr %in[" +
              std::to_string(i * kIn + kVector) +
              "] : (!llvm.ptr) -> !llvm.ptr, i8\n  %b" + n + " = llvm.load %a" +
              n + " : !llvm.ptr -> vector<64xi1>\n  %m" + n +
              " = vector.extract_strided_slice %b" + n +
              " {offsets = [0], sizes = [" + std::to_string(c.lanes) +
              "], strides = [1]} : vector<64xi1> to " + vectorOf(c.lanes, 1) +
              "\n";
    text += "  %i" + n + " = llvm.getelementptr %in[" +
            std::to_string(i * kIn) + "] : (!llvm.ptr) -> !llvm.ptr, i8\n  %o" +
            n + " = llvm.getelementptr %out[" +
            std::to_string(i * kOut + kGuard) +
            "] : (!llvm.ptr) -> !llvm.ptr, i8\n" + body(n, c);
  }
  return text + "  return\n}\n";
}

void run(const std::string &text, const std::string &targetName,
         const std::vector<uint8_t> &in, std::vector<uint8_t> &out) {
  int64_t slots[] = {reinterpret_cast<int64_t>(in.data()),
                     reinterpret_cast<int64_t>(out.data())};
  test::runOnHost(text, pipelines::Stage::Distributed, targetName, slots, 1);
}

/// Random vectors, each with its case's mask.
std::vector<uint8_t> inputs(const std::vector<Case> &all) {
  std::vector<uint8_t> v(all.size() * kIn);
  uint32_t x = 1;
  for (uint8_t &b : v)
    b = (x = x * 1664525 + 1013904223) >> 24;
  for (size_t i = 0; i < all.size(); ++i)
    memcpy(&v[i * kIn + kVector], &all[i].mask, sizeof(all[i].mask));
  return v;
}

void expectEqual(const std::vector<Case> &all, const std::vector<uint8_t> &got,
                 const std::vector<uint8_t> &want, const std::string &target) {
  int bad = 0;
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i] && ++bad <= 10) {
      const Case &c = all[i / kOut];
      ADD_FAILURE() << target << ": " << c.lanes << " lanes of i" << c.from
                    << " to i" << c.to << ", mask " << c.mask << ", byte "
                    << int64_t(i % kOut) - kGuard;
    }
  EXPECT_EQ(bad, 0);
}

class MaskedAccesses : public testing::TestWithParam<Masks> {};

TEST_P(MaskedAccesses, StoresWriteTheirLanesOnly) {
  std::vector<Case> all = cases(GetParam());
  std::string text =
      kernelText(all, GetParam(), [](const std::string &n, const Case &c) {
        std::string wide = vectorOf(c.lanes, c.from), v = "%v" + n;
        std::string narrow = vectorOf(c.lanes, c.to),
                    t = c.from == c.to ? v : "%t" + n;
        std::string s = "  " + v + " = llvm.load %i" + n +
                        " {alignment = 1 : i64} : !llvm.ptr -> " + wide + "\n";
        if (c.from != c.to)
          s += "  " + t + " = arith.trunci " + v + " : " + wide + " to " +
               narrow + "\n";
        return s + "  llvm.intr.masked.store " + t + ", %o" + n + ", %m" + n +
               " {alignment = 1 : i32} : " + narrow + ", " +
               vectorOf(c.lanes, 1) + " into !llvm.ptr\n";
      });
  std::vector<uint8_t> in = inputs(all);
  std::vector<uint8_t> want(all.size() * kOut, 0xA5);
  for (size_t i = 0; i < all.size(); ++i)
    for (unsigned lane = 0; lane < all[i].lanes; ++lane)
      if (all[i].mask >> lane & 1)
        memcpy(&want[i * kOut + kGuard + lane * all[i].to / 8],
               &in[i * kIn + lane * all[i].from / 8], all[i].to / 8);
  for (const std::string &target : hostTargets()) {
    std::vector<uint8_t> out(want.size(), 0xA5);
    run(text, target, in, out);
    expectEqual(all, out, want, target);
  }
}

TEST_P(MaskedAccesses, LoadsKeepTheOtherLanes) {
  std::vector<Case> all = cases(GetParam());
  std::string text =
      kernelText(all, GetParam(), [](const std::string &n, const Case &c) {
        std::string type = vectorOf(c.lanes, c.to);
        return "  %k" + n + " = arith.constant dense<77> : " + type + "\n  %v" +
               n + " = llvm.intr.masked.load %i" + n + ", %m" + n + ", %k" + n +
               " {alignment = 1 : i32} : (!llvm.ptr, " + vectorOf(c.lanes, 1) +
               ", " + type + ") -> " + type + "\n  llvm.store %v" + n + ", %o" +
               n + " {alignment = 1 : i64} : " + type + ", !llvm.ptr\n";
      });
  std::vector<uint8_t> in = inputs(all);
  std::vector<uint8_t> want(all.size() * kOut, 0xA5);
  for (size_t i = 0; i < all.size(); ++i)
    for (unsigned lane = 0; lane < all[i].lanes; ++lane) {
      unsigned size = all[i].to / 8;
      uint64_t value = 77;
      if (all[i].mask >> lane & 1)
        memcpy(&value, &in[i * kIn + lane * size], size);
      memcpy(&want[i * kOut + kGuard + lane * size], &value, size);
    }
  for (const std::string &target : hostTargets()) {
    std::vector<uint8_t> out(want.size(), 0xA5);
    run(text, target, in, out);
    expectEqual(all, out, want, target);
  }
}

INSTANTIATE_TEST_SUITE_P(, MaskedAccesses,
                         testing::Values(Masks::Constant, Masks::RunTime),
                         [](const auto &info) {
                           return info.param == Masks::Constant ? "Constant"
                                                                : "RunTime";
                         });

} // namespace
