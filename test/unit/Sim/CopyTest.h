//===- CopyTest.h - Kernels that copy bytes ---------------------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_SIM_COPYTEST_H
#define DITHER_TEST_UNIT_SIM_COPYTEST_H

#include "SimTest.h"

namespace dither::test {

constexpr unsigned kBytes = 16384; ///< of the arrays

inline std::vector<uint8_t> someBytes() {
  std::mt19937 random(1);
  std::vector<uint8_t> values(kBytes);
  for (uint8_t &x : values)
    x = uint8_t(random());
  return values;
}

inline std::vector<uint8_t> firstBytes(size_t count) {
  std::vector<uint8_t> bytes = someBytes();
  bytes.resize(count);
  return bytes;
}

/// What kernel `k` of two pointers makes of some bytes, 16 of each thread.
inline std::vector<uint8_t> copiedBy(const std::string &code,
                                     const std::string &target,
                                     uint32_t threads,
                                     const SimOptions &options) {
  Sim sim(target, options);
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  must(sim.run(code, threads, {in, to}));
  return sim.download(to, 16 * threads);
}

/// Its fault, as of relativeFault: lines are those of the body of kernelOf.
inline std::string faultOfCopy(const std::string &code,
                               const std::string &target, uint32_t threads,
                               const SimOptions &options) {
  Sim sim(target, options);
  uint8_t *in = sim.upload(someBytes()), *to = sim.allocate<uint8_t>(kBytes);
  return relativeFault(message(sim.run(code, threads, {in, to})));
}

} // namespace dither::test

#endif // DITHER_TEST_UNIT_SIM_COPYTEST_H
