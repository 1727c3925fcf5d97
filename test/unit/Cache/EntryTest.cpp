#include "CacheTest.h"

using namespace dither::cache;
using namespace dither::test;

namespace {

TEST(EntryTest, ReadsWhatItWrites) {
  for (size_t size : {0, 1, 1000, 100000}) {
    Entry entry = makeEntry(makeKey("k"), size);
    EXPECT_TRUE(same(must(decodeEntry(encodeEntry(entry))), entry));
  }
  Entry bare{makeKey(""), "", ""};
  EXPECT_TRUE(same(must(decodeEntry(encodeEntry(bare))), bare));
}

TEST(EntryTest, AnyChangedBitIsFound) {
  std::string bytes = encodeEntry(makeEntry(makeKey("k"), 100));
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] ^= char(1 << i % 8);
    auto entry = decodeEntry(changed);
    ASSERT_FALSE(bool(entry)) << "bit " << i;
    llvm::consumeError(entry.takeError());
  }
}

TEST(EntryTest, CutOffAnywhere) {
  std::string bytes = encodeEntry(makeEntry(makeKey("k"), 100));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(message(decodeEntry(bytes.substr(0, size))), "no error");
  EXPECT_NE(message(decodeEntry(bytes + "x")), "no error");
}

TEST(EntryTest, SaysWhatIsWrong) {
  std::string bytes = encodeEntry(makeEntry(makeKey("k"), 100));
  EXPECT_EQ(message(decodeEntry("hello, world")), "not a compiled kernel");
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(message(decodeEntry(newer)),
            "a compiled kernel of version 2, expected 1");
  EXPECT_EQ(message(decodeEntry(bytes.substr(0, bytes.size() - 1))),
            "damaged: " + std::to_string(bytes.size() - 1) +
                " bytes are not as many as its lengths say");
  std::string changed = bytes;
  changed[bytes.size() - 40] ^= 1;
  EXPECT_EQ(message(decodeEntry(changed)),
            "damaged: found another checksum than it was written with");
}

} // namespace
