#include "Targets.h"

#include "Decoder.h"
#include "Engine.h"
#include "FloatEnvironment.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace dither::runtime;
using namespace dither::runtime::sim;

namespace dither::fuzz {

namespace {

constexpr unsigned kThreads = 64;

[[noreturn]] void stop(const Sequence &sequence, const std::string &why) {
  std::fprintf(stderr, "%s\n%s\n", sequence.ptx.c_str(), why.c_str());
  std::abort();
}

/// Words that are often floats near one, small integers or special values.
std::vector<uint32_t> inputOf(const Sequence &sequence) {
  std::mt19937 random(sequence.seed);
  const uint32_t special[] = {0,          0x80000000, 0x7F800000, 0xFF800000,
                              0x7FC00000, 1,          0x007FFFFF, 0xFFFFFFFF,
                              0x7F7FFFFF, 0x3F800000, 0x7C007C00, 0x43E043E0};
  std::vector<uint32_t> words(kThreads * kSequenceInput);
  for (uint32_t &word : words) {
    word = uint32_t(random());
    switch (random() % 5) {
    case 0:
      word = special[word % std::size(special)];
      break;
    case 1:
      word %= 100;
      break;
    case 2:
    case 3:
      word = (word & 0x83FFFFFF) | 0x3C000000;
      break;
    }
  }
  return words;
}

/// What the kernel writes, run in `blocks` of `threads`.
std::vector<uint32_t> run(const Sequence &sequence, const LaneTable &table,
                          uint32_t threads, uint32_t blocks = 1) {
  llvm::Expected<Module> module = parseModule(sequence.ptx);
  if (!module)
    stop(sequence, llvm::toString(module.takeError()));
  llvm::Expected<Program> program = decodeKernel(*module, 0, {0}, table);
  if (!program)
    stop(sequence, llvm::toString(program.takeError()));
  SimOptions options;
  options.checkInit = true;
  options.maxSteps = 1 << 20;
  Memory memory(/*trackWrites=*/true);
  std::vector<uint32_t> input = inputOf(sequence),
                        output(kThreads * kSequenceOutput + kSequenceAtomics);
  auto upload = [&](const std::vector<uint32_t> &words) {
    size_t bytes = words.size() * 4;
    void *pointer = memory.allocate(bytes);
    std::memcpy(pointer, words.data(), bytes);
    auto address = reinterpret_cast<uintptr_t>(pointer);
    memory.markWritten(*memory.map()->find(address, bytes), address, bytes);
    return uint64_t(address);
  };
  uint64_t pointers[] = {upload(input), upload(output)};
  std::vector<char> params(sizeof pointers);
  std::memcpy(params.data(), pointers, sizeof pointers);
  std::shared_ptr<const MemoryMap> map = memory.map();
  GridRaces gridRaces;
  EndedBlocks ended;
  Launch launch{*program,        options, *map,      params, {blocks, 1, 1},
                {threads, 1, 1}, 0,       gridRaces, ended};
  FaultSink faults;
  FloatEnvironment environment;
  Engine engine(launch, faults);
  engine.run(0, blocks);
  if (faults.stop() != ~uint64_t(0))
    stop(sequence, faults.text());
  std::memcpy(output.data(), reinterpret_cast<void *>(pointers[1]),
              output.size() * 4);
  return output;
}

/// Compares what the first threads have written, or all words.
void compare(const Sequence &sequence, const std::vector<uint32_t> &expected,
             const std::vector<uint32_t> &got, size_t words, const char *how) {
  for (size_t i = 0; i < words; ++i)
    if (expected[i] != got[i])
      stop(sequence, std::string(how) + ": thread " +
                         std::to_string(i / kSequenceOutput) + ", word " +
                         std::to_string(i % kSequenceOutput) + " is " +
                         std::to_string(got[i]) + ", expected " +
                         std::to_string(expected[i]));
}

} // namespace

void runSequence(const uint8_t *data, size_t size) {
  Sequence sequence = makeSequence(data, size);
  const LaneTable &base = *laneTable(0);
  std::vector<uint32_t> expected = run(sequence, base, kThreads);
  if (const LaneTable *wide = laneTable(3))
    compare(sequence, expected, run(sequence, *wide, kThreads), expected.size(),
            "with AVX2 lanes");
  if (!sequence.communicates) {
    constexpr uint32_t some = 16;
    compare(sequence, expected, run(sequence, base, 1, some),
            some * kSequenceOutput, "a thread at a time");
  }
}

} // namespace dither::fuzz
