//===- SimTest.h - Kernels in a few lines -----------------------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_SIM_SIMTEST_H
#define DITHER_TEST_UNIT_SIM_SIMTEST_H

#include "../Runtime/TestSupport.h"
#include "dither/Runtime/SimDevice.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace dither::test {

using namespace dither::runtime;

inline std::string header(const std::string &target,
                          const std::string &version = "9.1") {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n";
}

/// All checks, and counters.
inline SimOptions everything() {
  SimOptions options;
  options.checkInit = options.checkRaces = options.countMemory = true;
  return options;
}

inline SimOptions onlyRaces() {
  SimOptions options;
  options.checkRaces = true;
  return options;
}

/// A device with memory that goes with it.
class Sim {
public:
  explicit Sim(const std::string &target = "sm_90a",
               const SimOptions &options = SimOptions())
      : device(must(SimDevice::make(target, options))) {}

  template <class T> T *allocate(size_t count) {
    return static_cast<T *>(must(device->allocate(count * sizeof(T))));
  }
  template <class T> T *upload(const std::vector<T> &data) {
    T *memory = allocate<T>(data.size());
    must(device->copyIn(memory, data.data(), data.size() * sizeof(T)));
    return memory;
  }
  template <class T> std::vector<T> download(const T *memory, size_t count) {
    std::vector<T> data(count);
    must(device->copyOut(data.data(), memory, count * sizeof(T)));
    return data;
  }

  /// Loads kernel `k` of a module, whose parameters have these kinds.
  llvm::Expected<std::unique_ptr<Kernel>> load(const std::string &code,
                                               uint32_t threads,
                                               std::vector<ParamKind> params) {
    KernelImage image;
    image.name = "k";
    image.target = device->target().str();
    image.code = code;
    image.numThreads = threads;
    image.params = std::move(params);
    return device->load(image);
  }

  /// Runs kernel `k` with pointers.
  llvm::Error run(const std::string &code, uint32_t threads,
                  const std::vector<const void *> &pointers,
                  Grid grid = Grid()) {
    auto made =
        load(code, threads,
             std::vector<ParamKind>(pointers.size(), ParamKind::Pointer));
    if (!made)
      return made.takeError();
    kernel.reset(static_cast<SimKernel *>(made->release()));
    std::vector<int64_t> slots;
    for (const void *pointer : pointers)
      slots.push_back(int64_t(reinterpret_cast<uintptr_t>(pointer)));
    return kernel->launch(slots, grid, nullptr);
  }

  std::unique_ptr<SimDevice> device;
  std::unique_ptr<SimKernel> kernel; ///< of the last run
};

/// A kernel with pointer parameters p0, p1, .. in 64-bit registers of the same
/// names, and the linear thread id of the launch in %r_id and %rd_id.
inline std::string kernelOf(const std::string &body, unsigned numParams,
                            const std::string &target = "sm_90a",
                            const std::string &version = "9.1") {
  std::string text = header(target, version) + ".visible .entry k(";
  for (unsigned i = 0; i < numParams; ++i)
    text += (i ? ", " : "") + std::string(".param .u64 k_") + std::to_string(i);
  text += ")\n{\n.reg .b64 %rd_id;\n.reg .b32 %r_id, %r_block, %r_size;\n";
  for (unsigned i = 0; i < numParams; ++i)
    text += ".reg .b64 p" + std::to_string(i) + ";\nld.param.b64 p" +
            std::to_string(i) + ", [k_" + std::to_string(i) + "];\n";
  text += "mov.u32 %r_id, %tid.x;\nmov.u32 %r_block, %ctaid.x;\n"
          "mov.u32 %r_size, %ntid.x;\n"
          "mad.lo.u32 %r_id, %r_block, %r_size, %r_id;\n"
          "cvt.u64.u32 %rd_id, %r_id;\n" +
          body + "\nret;\n}\n";
  return text;
}

/// A fault without the kernel's name; its lines are counted from the one after
/// `linesBefore`, those that kernelOf puts in front of the second line of a
/// body for two parameters, and its addresses of global memory are <a>.
inline std::string relativeFault(std::string text, int linesBefore = 17) {
  for (size_t at = 0; (at = text.find("line ", at)) != std::string::npos;) {
    at += 5;
    size_t end = text.find_first_not_of("0123456789", at);
    text.replace(
        at, end - at,
        std::to_string(std::stoi(text.substr(at, end - at)) - linesBefore));
  }
  for (size_t at = 0; (at = text.find("0x", at)) != std::string::npos; ++at)
    if (size_t end = text.find_first_not_of("0123456789abcdef", at + 2);
        end - at > 10)
      text.replace(at, end - at, "<a>");
  llvm::StringRef rest = text;
  rest.consume_front("kernel 'k', ");
  return rest.str();
}

/// A relative fault of a thread of the first block.
inline std::string fault(int line, const std::string &opcode,
                         const std::string &rest,
                         const std::string &thread = "0") {
  return "line " + std::to_string(line) + " (" + opcode +
         "), block (0,0,0), thread (" + thread + ",0,0): " + rest;
}

/// All threads of a cluster meet.
inline const std::string meetAll = "barrier.cluster.arrive.aligned;\n"
                                   "barrier.cluster.wait.aligned;\n";

/// As kernelOf, for clusters of so many blocks ("4", "2, 2, 1").
inline std::string clusterOf(const std::string &blocks, const std::string &body,
                             unsigned numParams,
                             const std::string &target = "sm_90a") {
  std::string text = kernelOf(body, numParams, target);
  std::string end = ")\n{";
  return text.replace(text.find(end), end.size(),
                      ")\n.explicitcluster\n.reqnctapercluster " + blocks +
                          "\n{");
}

/// Runs `code` for each element of the sources: their registers are a, b, c and
/// e, that of the result is d; of the size of the elements.
template <class D, class... S>
std::vector<D> evaluate(const std::string &target, const std::string &code,
                        const std::vector<S> &...sources) {
  Sim sim(target);
  std::vector<const void *> pointers;
  std::string body;
  size_t count = 0;
  const char *names[] = {"a", "b", "c", "e"};
  auto address = [](const std::string &name, size_t index, size_t size) {
    return ".reg .b64 " + name + "_p;\nmad.lo.u64 " + name + "_p, %rd_id, " +
           std::to_string(size) + ", p" + std::to_string(index) + ";\n";
  };
  auto add = [&](const auto &source) {
    using T = typename std::decay_t<decltype(source)>::value_type;
    std::string name = names[pointers.size()];
    std::string type = ".b" + std::to_string(8 * sizeof(T));
    body += address(name, pointers.size(), sizeof(T)) + ".reg " + type + " " +
            name + ";\nld.global" + type + " " + name + ", [" + name + "_p];\n";
    count = source.size();
    std::vector<T> padded = source;
    padded.resize((count + 31) / 32 * 32);
    pointers.push_back(sim.upload(padded));
  };
  (add(sources), ...);
  size_t padded = (count + 31) / 32 * 32;
  D *result = sim.allocate<D>(padded);
  std::string type = ".b" + std::to_string(8 * sizeof(D));
  body += ".reg " + type + " d;\n" + code + "\n" +
          address("d", pointers.size(), sizeof(D)) + "st.global" + type +
          " [d_p], d;\n";
  pointers.push_back(result);
  must(sim.run(kernelOf(body, unsigned(pointers.size()), target), 32, pointers,
               {int64_t(padded / 32), 1, 1}));
  return sim.download(result, count);
}

/// Values with every pattern of a few high and low bits, and random ones.
template <class T> std::vector<T> interesting(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  constexpr int bits = 8 * sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = random();
    switch (random() % 4) {
    case 0: // near zero and the powers of two
      x = (uint64_t(1) << (x % bits)) + (x >> 32 & 3) - 1;
      break;
    case 1: // small, of both signs
      x = uint64_t(int64_t(x % 41) - 20);
      break;
    default:
      break;
    }
    values.push_back(T(x));
  }
  return values;
}

/// binary32 patterns of all exponents, with zeros, infinities and NaNs.
inline std::vector<uint32_t> interestingFloats(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  const uint32_t special[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000,
                              0x7FC00000, 0xFFC12345, 0x7F800001, 0x00000001,
                              0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000,
                              0xBF800000, 0x3F800001, 0x40C00000, 0x43E00000};
  std::vector<uint32_t> values;
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = random();
    uint32_t bits = uint32_t(x);
    switch (x >> 61) {
    case 0:
      bits = special[(x >> 32) % std::size(special)];
      break;
    case 1:
    case 2:
    case 3: // moderate exponents
      bits = (bits & 0x807FFFFF) | uint32_t(117 + (x >> 32) % 21) << 23;
      break;
    default:
      break;
    }
    values.push_back(bits);
  }
  return values;
}

inline float toFloat(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint32_t toBits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

} // namespace dither::test

#endif // DITHER_TEST_UNIT_SIM_SIMTEST_H
