// File systems that misbehave: stands before libc, linked into a test program
// or preloaded (LD_PRELOAD). For files under FSSHIM_DIRECTORY:
//
//   FSSHIM_NO_LOCKS=1        locking fails with ENOLCK, as on NFS without lockd
//   FSSHIM_DELAY_MS=N        a file is not there for readers until it is N ms
//   old,
//                            as on NFS with attribute caching
//   FSSHIM_FULL_AFTER=N      a process may write N bytes; then the disk is full
//   FSSHIM_READ_ONLY=1       nothing can be made or renamed
//   FSSHIM_DIE_AT_RENAME=1   SIGKILL in the place of a rename
//
// Variables are read at every call.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

static const char *setting(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

static bool isInside(const char *path) {
  const char *directory = setting("FSSHIM_DIRECTORY");
  return directory && std::strncmp(path, directory, strlen(directory)) == 0;
}

static bool isInside(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length < 0)
    return false;
  path[length] = '\0';
  return isInside(path);
}

template <typename F> static F *next(const char *name) {
  return reinterpret_cast<F *>(dlsym(RTLD_NEXT, name));
}

static bool isTooYoung(const char *path) {
  const char *delay = setting("FSSHIM_DELAY_MS");
  struct statx about;
  if (!delay || !isInside(path) ||
      statx(AT_FDCWD, path, 0, STATX_BTIME, &about) != 0 ||
      !(about.stx_mask & STATX_BTIME) || !S_ISREG(about.stx_mode))
    return false;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  double age = double(now.tv_sec - about.stx_btime.tv_sec) * 1e3 +
               (double(now.tv_nsec) - about.stx_btime.tv_nsec) / 1e6;
  return age < std::atof(delay);
}

static int openFile(const char *name, const char *path, int flags,
                    mode_t mode) {
  if (setting("FSSHIM_READ_ONLY") && isInside(path) &&
      (flags & (O_CREAT | O_WRONLY | O_RDWR))) {
    errno = EROFS;
    return -1;
  }
  if (!(flags & O_CREAT) && isTooYoung(path)) {
    errno = ENOENT;
    return -1;
  }
  return next<int(const char *, int, ...)>(name)(path, flags, mode);
}

static mode_t modeOf(int flags, va_list list) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

extern "C" {

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = modeOf(flags, list);
  va_end(list);
  return openFile("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = modeOf(flags, list);
  va_end(list);
  return openFile("open64", path, flags, mode);
}

int fcntl(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  if (command == F_OFD_SETLK && setting("FSSHIM_NO_LOCKS") && isInside(file)) {
    errno = ENOLCK;
    return -1;
  }
  return next<int(int, int, ...)>("fcntl")(file, command, argument);
}

ssize_t write(int file, const void *bytes, size_t count) {
  static std::atomic<long> written{0};
  auto real = next<ssize_t(int, const void *, size_t)>("write");
  const char *limit = setting("FSSHIM_FULL_AFTER");
  if (!limit || !isInside(file))
    return real(file, bytes, count);
  long left = std::atol(limit) - written.load();
  if (left <= 0) {
    errno = ENOSPC;
    return -1;
  }
  // A disk that fills takes the first part.
  ssize_t put = real(file, bytes, count < size_t(left) ? count : size_t(left));
  if (put > 0)
    written += put;
  return put;
}

int rename(const char *from, const char *to) {
  if (setting("FSSHIM_DIE_AT_RENAME") && isInside(to))
    raise(SIGKILL);
  if (setting("FSSHIM_READ_ONLY") && isInside(to)) {
    errno = EROFS;
    return -1;
  }
  return next<int(const char *, const char *)>("rename")(from, to);
}

} // extern "C"
