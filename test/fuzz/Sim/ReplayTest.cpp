// The fuzz targets without libFuzzer: on the corpus and on inputs that are made
// from it, the same each time. A defect ends the program.
#include "Targets.h"
#include "dither/Runtime/Ptxas.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace dither::fuzz;
using Bytes = std::vector<uint8_t>;

namespace {

const uint8_t *bytes(const std::string &text) {
  return reinterpret_cast<const uint8_t *>(text.data());
}

/// The files of the corpus, in the order of their names.
std::vector<std::string> corpus() {
  std::error_code error;
  std::vector<std::string> paths, texts;
  for (llvm::sys::fs::directory_iterator file(FUZZ_CORPUS, error), end;
       file != end && !error; file.increment(error))
    paths.push_back(file->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto buffer = llvm::MemoryBuffer::getFile(path))
      texts.push_back((*buffer)->getBuffer().str());
  return texts;
}

/// One to four changes: bytes, or lines and words taken from elsewhere.
void mutate(std::string &text, const std::vector<std::string> &all,
            std::mt19937 &random) {
  auto piece = [&](const std::string &from) {
    size_t begin = random() % (from.size() + 1);
    size_t end = random() % 2 ? from.find_first_of(" ,;\n", begin + 1)
                              : from.find('\n', begin);
    return std::pair(begin, std::min(end, from.size()) - begin);
  };
  for (unsigned changes = 1 + random() % 4; changes; --changes) {
    auto [begin, length] = piece(text);
    const std::string &other = all[random() % all.size()];
    auto [otherBegin, otherLength] = piece(other);
    switch (random() % 5) {
    case 0:
      text.erase(begin, length);
      break;
    case 1:
      text.insert(begin, other, otherBegin, otherLength);
      break;
    case 2:
      text.replace(begin, length, other, otherBegin, otherLength);
      break;
    case 3:
      text.insert(begin, 1, "{}[]()<>,;:@!+-*/|=\"#.%0\n"[random() % 25]);
      break;
    case 4:
      if (begin < text.size())
        text[begin] = char(text[begin] ^ 1 << random() % 8);
      break;
    }
  }
}

TEST(Fuzz, Parser) {
  std::vector<std::string> seeds = corpus();
  ASSERT_GE(seeds.size(), 5u) << FUZZ_CORPUS;
  std::mt19937 random(1);
  for (unsigned i = 0; i < 3; ++i) { // and sequences, which are whole kernels
    Bytes data(200);
    for (uint8_t &byte : data)
      byte = uint8_t(random());
    seeds.push_back(makeSequence(data.data(), data.size()).ptx);
  }
  for (const std::string &seed : seeds)
    parsePtx(bytes(seed), seed.size());
  for (unsigned i = 0; i < 60000; ++i) {
    std::string text = seeds[i % seeds.size()];
    mutate(text, seeds, random);
    parsePtx(bytes(text), text.size());
  }
}

TEST(Fuzz, Sequences) {
  std::mt19937 random(2);
  unsigned communicating = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    Bytes data(20 + random() % 600);
    for (uint8_t &byte : data)
      byte = uint8_t(random());
    communicating += makeSequence(data.data(), data.size()).communicates;
    runSequence(data.data(), data.size());
  }
  EXPECT_GT(communicating, 1000u);
  EXPECT_LT(communicating, 2000u);
}

/// ptxas takes them, too, where there is one.
TEST(Fuzz, SequencesAssemble) {
  auto ptxas = dither::runtime::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  std::mt19937 random(3);
  for (unsigned i = 0; i < 6; ++i) {
    Bytes data(2000);
    for (uint8_t &byte : data)
      byte = uint8_t(random());
    data[0] = uint8_t(i); // both kinds
    Sequence sequence = makeSequence(data.data(), data.size());
    auto result = dither::runtime::runPtxas(*ptxas, sequence.ptx, "sm_100a");
    EXPECT_TRUE(bool(result))
        << llvm::toString(result.takeError()) << sequence.ptx;
  }
}

} // namespace
