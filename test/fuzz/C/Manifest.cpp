// Manifests from any bytes: every kernel and program that one names is looked
// for.
#include "../../../runtime/C/Manifest.h"

#include <cstdlib>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dither::runtime;

/// A file in memory, by a name that can be opened.
static std::string makeFile(llvm::StringRef bytes) {
  static int file = memfd_create("manifest", MFD_CLOEXEC);
  if (fchmod(file, 0600) != 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

static void lookForPrograms(const std::string &path) {
  std::vector<std::string> names, known;
  auto none = readPrograms(path, "a name that no manifest has", names);
  if (!none) {
    if (llvm::toString(none.takeError()).empty())
      std::abort();
    return;
  }
  for (const std::string &name : names) {
    auto programs = readPrograms(path, name, known);
    if (!programs) {
      llvm::consumeError(programs.takeError());
      continue;
    }
    for (const ManifestProgram &program : *programs)
      if (program.path.empty() || program.target.empty() ||
          program.sha256.empty())
        std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string path =
      makeFile(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  lookForPrograms(path);
  std::vector<std::string> names;
  auto none = readManifest(path, "a name that no manifest has", names);
  if (!none) {
    if (llvm::toString(none.takeError()).empty())
      std::abort();
    return 0;
  }
  for (const std::string &name : names) {
    std::vector<std::string> known;
    auto images = readManifest(path, name, known);
    if (!images) {
      llvm::consumeError(images.takeError());
      continue;
    }
    for (const ManifestImage &image : *images)
      if (image.image.numThreads < 1 || image.image.numThreads > 1024 ||
          image.path.empty() || image.sha256.empty())
        std::abort();
  }
  return 0;
}
