#include "Manifest.h"
#include "Built.h"

using namespace dither::runtime;
using namespace dither::test;

namespace {

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
      "DIR/manifest.json: an image of kernel 'where' has no file, target, "
      "sha256 or num_threads");
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

} // namespace
