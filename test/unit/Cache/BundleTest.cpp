#include "dither/Cache/Bundle.h"
#include "CacheTest.h"

#include <sys/stat.h>

using namespace dither::cache;
using namespace dither::test;

namespace {

class BundleTest : public CacheTest {
protected:
  BundleTest() : path(root + "/kernels.bundle") {
    for (int i = 0; i < 5; ++i)
      entries.push_back(makeEntry(makeKey("k" + std::to_string(i)), 50 + i));
    must(writeBundle(path, "about it", entries));
    bytes = readFile(path.c_str());
  }

  /// What opening a bundle of other bytes, or reading its entries, says.
  std::string failureOf(const std::string &changed) {
    std::filesystem::remove(path); // ext4 would wait for the disk otherwise
    writeFile(path, changed);
    auto bundle = Bundle::open(path);
    if (!bundle)
      return llvm::toString(bundle.takeError());
    std::string failures;
    for (const Entry &entry : entries) {
      auto found = (*bundle)->load(entry.key);
      if (!found)
        failures += llvm::toString(found.takeError());
      else if (*found) {
        EXPECT_TRUE(same(**found, entry)) << "a wrong hit";
      }
    }
    return failures;
  }

  std::string path, bytes;
  std::vector<Entry> entries;
};

TEST_F(BundleTest, GivesWhatItWasMadeOf) {
  auto bundle = must(Bundle::open(path));
  EXPECT_EQ(bundle->about(), "about it");
  EXPECT_EQ(bundle->path(), path);
  EXPECT_EQ(bundle->size(), entries.size());
  for (const Entry &entry : entries) {
    std::optional<Entry> found = must(bundle->load(entry.key));
    ASSERT_TRUE(found);
    EXPECT_TRUE(same(*found, entry));
  }
  EXPECT_FALSE(must(bundle->load(makeKey("other"))));
  EXPECT_EQ(failureOf(bytes), "");
}

TEST_F(BundleTest, OthersMayNotWriteIt) {
  ASSERT_EQ(chmod(path.c_str(), 0622), 0);
  EXPECT_EQ(message(Bundle::open(path)),
            "bundle: " + path +
                " can be written by everybody: the code in it would run as "
                "you; chmod go-w it, if you trust it");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(message(Bundle::open(path)), "no error");
}

TEST_F(BundleTest, OrderDoesNotMatter) {
  std::reverse(entries.begin(), entries.end());
  entries.push_back(entries.front());
  must(writeBundle(root + "/again", "about it", entries));
  EXPECT_EQ(readFile((root + "/again").c_str()), bytes);
}

TEST_F(BundleTest, OfNothing) {
  must(writeBundle(path, "", {}));
  auto bundle = must(Bundle::open(path));
  EXPECT_EQ(bundle->size(), 0u);
  EXPECT_FALSE(must(bundle->load(makeKey("k"))));
}

TEST_F(BundleTest, AnyChangedBitIsFound) {
  for (size_t i = 0; i < bytes.size() * 8; i += 13) {
    std::string changed = bytes;
    changed[i / 8] ^= char(1 << i % 8);
    EXPECT_NE(failureOf(changed), "") << "bit " << i;
  }
}

TEST_F(BundleTest, CutOffAnywhere) {
  for (size_t size = 0; size < bytes.size(); size += 17)
    EXPECT_NE(failureOf(bytes.substr(0, size)), "") << size;
}

TEST_F(BundleTest, SaysWhatIsWrong) {
  EXPECT_EQ(failureOf("hello"), "bundle " + path + ": not a bundle of kernels");
  std::string newer = bytes;
  newer[8] = 9;
  EXPECT_EQ(failureOf(newer),
            "bundle " + path + ": found version 9, expected 1");
  std::string changed = bytes;
  changed[30] ^= 1;
  EXPECT_EQ(failureOf(changed),
            "bundle " + path +
                ": damaged: found another checksum than it was written with");
  changed = bytes;
  changed.back() ^= 1;
  EXPECT_NE(failureOf(changed).find(
                ": damaged: found another checksum than it was written with"),
            std::string::npos);
  EXPECT_EQ(message(Bundle::open(root + "/none")),
            "bundle: cannot read " + root + "/none: No such file or directory");
}

} // namespace
