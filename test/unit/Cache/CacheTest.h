//===- CacheTest.h - What the tests of the cache share ---------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_CACHE_CACHETEST_H
#define DITHER_TEST_UNIT_CACHE_CACHETEST_H

#include "../Runtime/TestSupport.h"
#include "dither/Cache/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <filesystem>
#include <fstream>
#include <random>

namespace dither::test {

/// A directory of the test's own, and the name of one in it that is yet to be
/// made.
class CacheTest : public testing::Test {
protected:
  CacheTest() {
    llvm::SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("dither-cache", path));
    root = path.str().str();
    directory = root + "/cache";
  }
  ~CacheTest() override { std::filesystem::remove_all(root); }

  /// Names in the directory, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    std::error_code code;
    for (const auto &file :
         std::filesystem::directory_iterator(directory, code))
      found.push_back(file.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  std::string root, directory;
};

inline cache::Key makeKey(const std::string &kernel,
                          const std::string &target = "sm_90a") {
  return must(cache::Key::make({{"kernel", kernel},
                                {"arguments", "x: f32[?,64]"},
                                {"constexprs", ""},
                                {"target", target},
                                {"num_warps", "None"},
                                {"math", "exact"},
                                {"tiles", "any"},
                                {"build", "1"}}));
}

/// An entry whose content follows from its key.
inline cache::Entry makeEntry(const cache::Key &key, size_t bytes = 1000) {
  std::seed_seq seed(key.digest().begin(), key.digest().end());
  std::mt19937 random(seed);
  std::string code(bytes, '\0');
  for (char &byte : code)
    byte = char(random());
  return {key, "{\"name\": \"" + key.value("kernel").str() + "\"}", code};
}

inline bool same(const cache::Entry &a, const cache::Entry &b) {
  return a.key == b.key && a.metadata == b.metadata && a.code == b.code;
}

inline void writeFile(const std::string &path, llvm::StringRef bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
}

} // namespace dither::test

#endif // DITHER_TEST_UNIT_CACHE_CACHETEST_H
