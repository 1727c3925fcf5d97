#include "Files.h"

#include "dither/Cache/Key.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace dither::cache {

Error makeDirectory(StringRef path) {
  if (::mkdir(path.str().c_str(), 0700) == 0)
    return Error::success();
  if (errno == ENOENT) {
    StringRef parent = sys::path::parent_path(path);
    if (!parent.empty() && parent != path)
      if (Error error = makeDirectory(parent))
        return error;
    if (::mkdir(path.str().c_str(), 0700) == 0)
      return Error::success();
  }
  if (errno == EEXIST && sys::fs::is_directory(path))
    return Error::success();
  return systemError("cannot make the directory " + path);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static constexpr StringLiteral temporaryPrefix = ".new-";

/// What process numbers mean: this machine, since it was started, and the
/// namespace of process numbers. Another machine or container that shares the
/// directory has another.
static const std::string &processSpace() {
  static const std::string space = [] {
    std::string text;
    char buffer[256] = {};
    if (::gethostname(buffer, sizeof(buffer) - 1) == 0)
      text += buffer;
    Descriptor boot(
        ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (ssize_t got = boot ? ::read(boot.get(), buffer, sizeof(buffer)) : 0;
        got > 0)
      text.append(buffer, got);
    if (ssize_t got = ::readlink("/proc/self/ns/pid", buffer, sizeof(buffer));
        got > 0)
      text.append(buffer, got);
    return toHex(digestOf(text)).substr(0, 12);
  }();
  return space;
}

static bool writeBytes(int file, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return false;
    bytes = bytes.drop_front(put);
  }
  return true;
}

Error writeAtomically(StringRef directory, StringRef name, StringRef bytes,
                      Survives survives) {
  // The number is unique in this process; a leftover of another one with its
  // process number gives way to the next.
  static std::atomic<unsigned> counter{0};
  SmallString<256> target(directory), temporary;
  sys::path::append(target, name);
  Descriptor file;
  for (unsigned tries = 0; !file && tries < 1000; ++tries) {
    temporary = directory;
    sys::path::append(temporary, temporaryPrefix + processSpace() + "-" +
                                     Twine(::getpid()) + "-" +
                                     Twine(counter.fetch_add(1)));
    file = Descriptor(::open(temporary.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno != EEXIST)
      return systemError("cannot write to " + directory);
  }
  if (!file)
    return systemError("cannot write to " + directory);
  scope_exit remove([&] { ::unlink(temporary.c_str()); });
  bool sync = survives == Survives::Machine;
  if (!writeBytes(file.get(), bytes) || (sync && ::fsync(file.get()) != 0))
    return systemError("cannot write to " + directory);
  // Some file systems say only now that the disk is full.
  if (::close(file.release()) != 0)
    return systemError("cannot write to " + directory);
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return systemError("cannot write " + target);
  remove.release();
  if (!sync)
    return Error::success();
  // Without this a crash of the machine may lose the file, and no more: a file
  // system that cannot do it is none to complain of.
  Descriptor place(
      ::open(directory.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (place)
    (void)::fsync(place.get());
  return Error::success();
}

/// Whether the writer of a temporary file is gone.
static bool isAbandoned(StringRef name, const std::string &path) {
  StringRef rest = name.drop_front(temporaryPrefix.size());
  auto [space, numbers] = rest.split('-');
  pid_t process = 0;
  if (space == processSpace() &&
      !numbers.split('-').first.getAsInteger(10, process) && process > 0 &&
      ::kill(process, 0) != 0 && errno == ESRCH)
    return true;
  struct stat about;
  return ::lstat(path.c_str(), &about) == 0 &&
         std::time(nullptr) - about.st_mtime > 3600;
}

unsigned removeAbandoned(StringRef directory) {
  unsigned removed = 0;
  std::error_code code;
  for (sys::fs::directory_iterator it(directory, code, false), end;
       it != end && !code; it.increment(code)) {
    StringRef name = sys::path::filename(it->path());
    if (name.starts_with(temporaryPrefix) && isAbandoned(name, it->path()) &&
        ::unlink(it->path().c_str()) == 0)
      ++removed;
  }
  return removed;
}

} // namespace dither::cache
