#include "dither/Cache/DiskCache.h"
#include "Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace llvm;

namespace dither::cache {

static constexpr StringLiteral suffix = ".kernel";
/// More than any kernel: what is larger was put there by somebody else.
static constexpr uint64_t maxEntryBytes = uint64_t(1) << 30;

static std::string inside(StringRef directory, const Twine &name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

std::string DiskCache::path(const Key &key) const {
  return inside(directory, key.hex() + suffix);
}

std::optional<Entry> DiskCache::load(const Key &key) {
  std::string name = path(key);
  auto reading = [&]() -> Expected<Entry> {
    Expected<Descriptor> file = openToRead(name, Trust::Own);
    if (!file)
      return file.takeError();
    Expected<std::string> bytes = readAll(*file, maxEntryBytes);
    if (!bytes)
      return bytes.takeError();
    return decodeEntry(*bytes);
  };
  Expected<Entry> entry = reading();
  if (!entry) {
    consumeError(entry.takeError());
    return std::nullopt;
  }
  // A file under another's name.
  if (!(entry->key == key))
    return std::nullopt;
  // What is used stays longest. A directory that cannot be written keeps all.
  (void)::utimensat(AT_FDCWD, name.c_str(), nullptr, 0);
  return std::move(*entry);
}

Expected<Entry> readEntry(StringRef path, bool isRun) {
  Expected<Descriptor> file =
      openToRead(path, isRun ? Trust::Named : Trust::Any);
  if (!file)
    return file.takeError();
  Expected<std::string> bytes = readAll(*file, maxEntryBytes);
  if (!bytes)
    return bytes.takeError();
  return decodeEntry(*bytes);
}

Error DiskCache::store(const Entry &entry) {
  if (Error error = makeDirectory(directory))
    return error;
  std::string bytes = encodeEntry(entry);
  // An entry that a crash of the machine tears has another checksum, and is
  // made again: no compilation waits for a disk.
  if (Error error = writeAtomically(directory, entry.key.hex() + suffix.str(),
                                    bytes, Survives::Processes))
    return error;
  if (credit.fetch_sub(bytes.size()) < int64_t(bytes.size())) {
    prune(sizeLimit);
    credit = sizeLimit / 16;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Locks
//===----------------------------------------------------------------------===//

// A byte of one file stands for a key, and is locked while its code is made.
// There is a file to open and none to remove, and the kernel frees the locks of
// a process that dies. These are locks of the open file, not of the process:
// threads keep each other out too. NFS carries them where it carries any.

static int lockByte(int file, uint64_t place, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = off_t(place);
  range.l_len = 1;
  return ::fcntl(file, F_OFD_SETLK, &range);
}

KeyLock::KeyLock(KeyLock &&other) noexcept
    : file(std::exchange(other.file, -1)), place(other.place) {}

KeyLock &KeyLock::operator=(KeyLock &&other) noexcept {
  std::swap(file, other.file);
  std::swap(place, other.place);
  return *this;
}

KeyLock::~KeyLock() {
  if (file < 0)
    return;
  // Closing is not enough where a child process has the file open too.
  lockByte(file, place, F_UNLCK);
  ::close(file);
}

KeyLock DiskCache::lock(const Key &key, std::chrono::milliseconds timeout) {
  using namespace std::chrono;
  KeyLock lock;
  if (Error error = makeDirectory(directory)) {
    consumeError(std::move(error)); // store() says it
    return lock;
  }
  Descriptor file(::open(inside(directory, "lock").c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file)
    return lock;
  // A collision of two keys costs time, and nothing else.
  uint64_t place = support::endian::read64le(key.digest().data()) >> 2;
  auto deadline = steady_clock::now() + timeout;
  nanoseconds pause = milliseconds(1);
  for (;; pause = std::min<nanoseconds>(pause * 2, milliseconds(20))) {
    if (lockByte(file.get(), place, F_WRLCK) == 0) {
      lock.file = file.release();
      lock.place = place;
      return lock;
    }
    if (errno == EINTR)
      continue;
    // Anything else says that there are no locks here (ENOLCK, EOPNOTSUPP,
    // EINVAL, ..).
    if (errno != EAGAIN && errno != EACCES)
      return lock;
    nanoseconds left = deadline - steady_clock::now();
    if (left.count() <= 0)
      return lock;
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

//===----------------------------------------------------------------------===//
// Size
//===----------------------------------------------------------------------===//

std::vector<StoredFile> DiskCache::files() const {
  std::vector<StoredFile> found;
  std::error_code code;
  for (sys::fs::directory_iterator it(directory, code, false), end;
       it != end && !code; it.increment(code)) {
    struct stat about;
    if (StringRef(it->path()).ends_with(suffix) &&
        ::lstat(it->path().c_str(), &about) == 0)
      found.push_back(
          {it->path(), uint64_t(about.st_size),
           about.st_mtim.tv_sec * int64_t(1000000000) + about.st_mtim.tv_nsec});
  }
  llvm::sort(found, [](const StoredFile &a, const StoredFile &b) {
    return std::tie(b.usedNs, a.path) < std::tie(a.usedNs, b.path);
  });
  return found;
}

Pruned DiskCache::prune(uint64_t limit) {
  Pruned pruned;
  pruned.temporary = removeAbandoned(directory);
  std::vector<StoredFile> all = files();
  uint64_t total = 0;
  for (const StoredFile &file : all)
    total += file.bytes;
  for (; total > limit && !all.empty(); all.pop_back()) {
    total -= all.back().bytes;
    if (::unlink(all.back().path.c_str()) != 0)
      continue;
    ++pruned.entries;
    pruned.bytes += all.back().bytes;
  }
  return pruned;
}

} // namespace dither::cache
