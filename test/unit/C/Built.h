//===- Built.h - A directory as `dither build` writes it -------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_C_BUILT_H
#define DITHER_TEST_UNIT_C_BUILT_H

#include "../Runtime/TestSupport.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"

#include <filesystem>
#include <fstream>

namespace dither::test {

/// The kernel `place` of Kernels.c, which has one parameter, for the CPU.
class BuiltTest : public testing::Test {
protected:
  BuiltTest() {
    llvm::SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("dither-c", path));
    directory = path.str().str();
    manifest = directory + "/manifest.json";
    std::string code = readFile(KERNELS_OBJECT);
    write("place.o", code);
    write("manifest.json", text(hash(code)));
  }
  ~BuiltTest() override { std::filesystem::remove_all(directory); }

  void write(const std::string &name, const std::string &bytes) {
    std::ofstream(directory + "/" + name, std::ios::binary) << bytes;
  }

  static std::string hash(llvm::StringRef bytes) {
    return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)),
                       true);
  }

  static std::string text(const std::string &sha256) {
    return R"({"manifest": 1, "kernels": [{"name": "where", "symbol": "place",
      "slots": [{"name": "out", "kind": "ptr"}], "images": [
        {"target": "sm_90a", "format": "ptx", "file": "none.ptx",
         "sha256": "0", "num_threads": 128, "shared_bytes": 16},
        {"target": "host", "format": "object", "file": "place.o",
         "sha256": ")" +
           sha256 + R"(", "num_threads": 1, "shared_bytes": 0}]}]})";
  }

  std::string directory, manifest;
};

} // namespace dither::test

#endif // DITHER_TEST_UNIT_C_BUILT_H
