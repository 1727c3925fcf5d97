//===- Targets.h - What is fuzzed in the simulator --------------*- C++ -*-===//
//
// Each takes any bytes and ends the program where it finds a defect. libFuzzer
// runs them in builds with sanitizers; ReplayTest.cpp runs them
// everywhere, on inputs that are the same each time.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_TEST_FUZZ_TARGETS_H
#define DITHER_TEST_FUZZ_TARGETS_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace dither::fuzz {

/// Parses and decodes the bytes as PTX, and runs the kernels for a while: an
/// error or a fault, if anything.
void parsePtx(const uint8_t *data, size_t size);

/// Makes a kernel from the bytes that is right by construction. It must load
/// and run without a fault, and give the same bits in vectors of both kinds
/// and, where its threads do not see each other, one thread at a time.
void runSequence(const uint8_t *data, size_t size);

struct Sequence {
  std::string ptx;
  /// Threads exchange values through shuffles, votes, shared memory or atomics.
  bool communicates = false;
  uint32_t seed = 0; ///< of the input data
};

/// Bytes of shared memory of a sequence's kernel, and 32-bit words of input and
/// output that each thread has; the rest of the output is for atomics.
inline constexpr unsigned kSequenceInput = 24, kSequenceOutput = 48,
                          kSequenceAtomics = 32;

/// The kernel `k(input, output)` for sm_100a.
Sequence makeSequence(const uint8_t *data, size_t size);

} // namespace dither::fuzz

#endif // DITHER_TEST_FUZZ_TARGETS_H
