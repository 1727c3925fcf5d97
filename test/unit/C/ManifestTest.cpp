#include "Manifest.h"
#include "Built.h"

#include <sys/stat.h>

using namespace dither::runtime;
using namespace dither::test;

namespace {

constexpr const char *noImage =
    "an image of kernel 'where' has no file, target, sha256, num_threads (1 to "
    "1024), shared_bytes (0 to 1048576) or cluster_size (1 to 8)";

class ManifestTest : public BuiltTest {
protected:
  std::string failureOf(const std::string &text) {
    write("manifest.json", text);
    std::vector<std::string> known;
    std::string said = message(readManifest(manifest, "where", known));
    size_t at = said.find(directory);
    return at == std::string::npos ? said
                                   : said.replace(at, directory.size(), "DIR");
  }
};

TEST_F(ManifestTest, GivesTheImages) {
  std::vector<std::string> known;
  auto images = must(readManifest(manifest, "where", known));
  EXPECT_EQ(known, std::vector<std::string>{"where"});
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].image.target, "sm_90a");
  EXPECT_EQ(images[0].image.numThreads, 128u);
  EXPECT_EQ(images[0].image.sharedBytes, 16u);
  EXPECT_EQ(images[0].format, ManifestImage::Format::Ptx);
  EXPECT_EQ(images[1].format, ManifestImage::Format::Object);
  EXPECT_EQ(images[1].image.name, "place");
  EXPECT_EQ(images[1].image.params, std::vector{ParamKind::Pointer});
  EXPECT_EQ(must(readImage(images[1])).code, readFile(KERNELS_OBJECT));
  EXPECT_TRUE(must(readManifest(manifest, "place", known)).empty());
}

TEST_F(ManifestTest, SaysWhatIsWrong) {
  EXPECT_EQ(failureOf("[1]"), "DIR/manifest.json: not a manifest of kernels");
  EXPECT_EQ(failureOf(R"({"manifest": 1})"),
            "DIR/manifest.json: not a manifest of kernels");
  EXPECT_EQ(failureOf(R"({"manifest": 2, "kernels": []})"),
            "DIR/manifest.json: found a manifest of version 2, expected 1");
  EXPECT_EQ(failureOf(R"({"manifest": 1, "kernels": [{}]})"),
            "DIR/manifest.json: found a kernel without a name");
  EXPECT_EQ(failureOf(R"({"manifest": 1, "kernels": [{"name": "where"}]})"),
            "DIR/manifest.json: kernel 'where' has no symbol, slots or images");
  EXPECT_EQ(
      failureOf(R"({"manifest": 1, "kernels": [{"name": "where", "symbol": "w",
                    "slots": [{"kind": "f64"}], "images": []}]})"),
      "DIR/manifest.json: kernel 'where' has no symbol, slots or images");
  EXPECT_EQ(
      failureOf(R"({"manifest": 1, "kernels": [{"name": "where", "symbol": "w",
                    "slots": [], "images": [7]}]})"),
      "DIR/manifest.json: " + std::string(noImage));
}

TEST_F(ManifestTest, NumbersThatNoKernelHas) {
  for (std::string number : {"0", "-1", "1025", "4294967424", "1.5", "1e300",
                             "9223372036854775808", "null", "[]"}) {
    std::string changed = text("0");
    changed.replace(changed.find("128"), 3, number);
    EXPECT_EQ(failureOf(changed), "DIR/manifest.json: " + std::string(noImage))
        << number;
  }
  for (std::string number : {"-1", "1048577", "4294967296", "1.5", "\"16\""}) {
    std::string changed = text("0");
    changed.replace(changed.find("16}"), 2, number);
    EXPECT_EQ(failureOf(changed), "DIR/manifest.json: " + std::string(noImage))
        << number;
  }
}

TEST_F(ManifestTest, FormatsThatAreNone) {
  for (std::string format : {"", "elf", "Object"}) {
    std::string changed = text("0");
    changed.replace(changed.find("object"), 6, format);
    EXPECT_EQ(failureOf(changed),
              "DIR/manifest.json: an image of kernel 'where' has format '" +
                  format + "', expected object, ptx or cubin");
  }
}

TEST_F(ManifestTest, NestedDeeply) {
  const char *expected = "DIR/manifest.json: found brackets nested more than "
                         "32 deep, expected a manifest of kernels";
  for (size_t depth : {40, 100000, 10000000}) {
    EXPECT_EQ(failureOf(std::string(depth, '[')), expected);
    std::string objects;
    for (size_t i = 0; i < depth; ++i)
      objects += "{\"a\":";
    EXPECT_EQ(failureOf(objects), expected);
  }
  // Brackets in text are text.
  std::string named = text("0");
  named.insert(named.find("where"), std::string(100, '[') + "\\\"");
  EXPECT_EQ(failureOf(named), "no error");
}

TEST_F(ManifestTest, NoText) {
  std::string changed = text("0");
  changed.insert(changed.find("where"), "\xff\xfe");
  EXPECT_NE(failureOf(changed).find("Invalid UTF-8"), std::string::npos)
      << failureOf(changed);
}

TEST_F(ManifestTest, OthersMayNotWriteWhatRuns) {
  std::vector<std::string> known;
  auto images = must(readManifest(manifest, "where", known));
  ASSERT_EQ(chmod((directory + "/place.o").c_str(), 0666), 0);
  EXPECT_EQ(message(readImage(images[1])),
            directory + "/place.o can be written by everybody: the code in it "
                        "would run as you; chmod go-w it, if you trust it");
  ASSERT_EQ(chmod(manifest.c_str(), 0660), 0);
  EXPECT_EQ(message(readManifest(manifest, "where", known)),
            manifest + " can be written by its group: the code in it would run "
                       "as you; chmod go-w it, if you trust it");
}

TEST_F(ManifestTest, CutOffAnywhere) {
  std::string whole = text("0");
  for (size_t size = 0; size + 1 < whole.size(); size += 5)
    ASSERT_NE(failureOf(whole.substr(0, size)), "no error") << size;
}

TEST_F(ManifestTest, AFileThatIsAnotherOne) {
  std::vector<std::string> known;
  auto images = must(readManifest(manifest, "where", known));
  write("place.o", "another");
  EXPECT_EQ(message(readImage(images[1])),
            directory + "/place.o is damaged: found another checksum than the "
                        "manifest has");
  EXPECT_EQ(message(readImage(images[0])), "cannot read " + directory +
                                               "/none.ptx: No such file or "
                                               "directory");
}

TEST(Levels, AreOfWhatAMachineHas) {
  const char *const ordered[] = {"sm_80",         "sm_86",  "sm_89",
                                 "sm_90",         "sm_90a", "sm_100a",
                                 "sm_100a:ptx91", "sm_120a"};
  for (size_t i = 1; i < std::size(ordered); ++i)
    EXPECT_LT(levelOf(ordered[i - 1]), levelOf(ordered[i])) << ordered[i];
  const char *const host[] = {"host:base", "host:avx2", "host:avx512",
                              "host:avx512vbmi", "host:avx512fp16"};
  for (size_t i = 1; i < std::size(host); ++i)
    EXPECT_LT(levelOf(host[i - 1]), levelOf(host[i])) << host[i];
}

} // namespace
