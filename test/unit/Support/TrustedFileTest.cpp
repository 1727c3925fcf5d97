#include "dither/Support/TrustedFile.h"
#include "../Runtime/TestSupport.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace dither;
using namespace dither::test;

namespace {

class TrustedFileTest : public testing::Test {
protected:
  TrustedFileTest() {
    llvm::SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("dither-files", path));
    directory = path.str().str();
    file = directory + "/file";
    std::ofstream(file) << "some bytes";
  }
  ~TrustedFileTest() override { std::filesystem::remove_all(directory); }

  std::string failureOf(Trust trust) {
    auto opened = openToRead(file, trust);
    return opened ? "" : message(std::move(opened));
  }

  std::string directory, file;
};

constexpr Trust Every[] = {Trust::Own, Trust::Named, Trust::Any};

TEST_F(TrustedFileTest, OurOwn) {
  for (mode_t mode : {0600, 0644, 0444, 0755, 0400})
    for (Trust trust : Every) {
      ASSERT_EQ(chmod(file.c_str(), mode), 0);
      EXPECT_EQ(must(readAll(must(openToRead(file, trust)), 10)), "some bytes");
    }
}

TEST_F(TrustedFileTest, WhatOthersCanWriteIsLookedAtOnly) {
  for (auto [mode, who] : {std::pair(0666, "everybody"),
                           {0602, "everybody"},
                           {0620, "its group"},
                           {0664, "its group"}}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    for (Trust trust : {Trust::Own, Trust::Named})
      EXPECT_EQ(failureOf(trust),
                file + " can be written by " + who +
                    ": the code in it would run as you; chmod go-w it, if you "
                    "trust it");
    EXPECT_EQ(failureOf(Trust::Any), "");
  }
}

TEST_F(TrustedFileTest, WhatBelongsToOthersIsLookedAtOnly) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root";
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  for (Trust trust : {Trust::Own, Trust::Named})
    EXPECT_EQ(failureOf(trust),
              file + " belongs to user 12345, expected root: the code in it "
                     "would run as you; copy it, if you trust it");
  EXPECT_EQ(failureOf(Trust::Any), "");
}

TEST_F(TrustedFileTest, RootIsTrustedByAll) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root";
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  ASSERT_EQ(seteuid(12345), 0);
  std::string ofRoot = failureOf(Trust::Own);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(ofRoot, "");
  ASSERT_EQ(chown(file.c_str(), 54321, 54321), 0);
  ASSERT_EQ(seteuid(12345), 0);
  std::string ofAnother = failureOf(Trust::Own);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_NE(ofAnother.find("belongs to user 54321, expected 12345 or root"),
            std::string::npos)
      << ofAnother;
}

TEST_F(TrustedFileTest, LinksAreFollowedWhereTheUserGaveTheName) {
  std::string target = file;
  file = directory + "/link";
  ASSERT_EQ(symlink(target.c_str(), file.c_str()), 0);
  EXPECT_NE(failureOf(Trust::Own), "");
  EXPECT_EQ(failureOf(Trust::Named), "");
  // What the link leads to is what counts.
  ASSERT_EQ(chmod(target.c_str(), 0666), 0);
  EXPECT_NE(failureOf(Trust::Named), "");
}

TEST_F(TrustedFileTest, WhatIsNoFile) {
  file = directory;
  for (Trust trust : Every)
    EXPECT_EQ(failureOf(trust), directory + " is not a file");
  file = directory + "/pipe";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  for (Trust trust : Every)
    EXPECT_EQ(failureOf(trust), file + " is not a file");
  file = directory + "/none";
  EXPECT_EQ(failureOf(Trust::Any),
            "cannot read " + file + ": No such file or directory");
  file = std::string("file\0name", 9);
  EXPECT_EQ(failureOf(Trust::Any), "found a file name with a null byte");
}

TEST_F(TrustedFileTest, TooLong) {
  EXPECT_EQ(message(readAll(must(openToRead(file, Trust::Any)), 9)),
            "found 10 bytes, expected at most 9");
}

} // namespace
