#include "dither/Support/TrustedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace dither {

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept {
  std::swap(number, other.number);
  return *this;
}

Descriptor::~Descriptor() {
  if (number >= 0)
    ::close(number);
}

int Descriptor::release() {
  int released = number;
  number = -1;
  return released;
}

Error systemError(const Twine &what) {
  int code = errno;
  return createStringError(what + ": " + std::strerror(code));
}

Expected<Descriptor> openToRead(StringRef path, Trust trust) {
  if (path.contains('\0'))
    return createStringError("found a file name with a null byte");
  // A pipe in the place of a file must not make us wait for its writer.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (trust == Trust::Own)
    flags |= O_NOFOLLOW;
  Descriptor file(::open(path.str().c_str(), flags));
  if (!file)
    return systemError("cannot read " + path);
  struct stat about;
  if (::fstat(file.get(), &about) != 0)
    return systemError("cannot read " + path);
  if (!S_ISREG(about.st_mode))
    return createStringError(path + " is not a file");
  if (trust == Trust::Any)
    return file;
  uid_t user = ::geteuid();
  if (about.st_uid != user && about.st_uid != 0) {
    std::string expected = user ? std::to_string(user) + " or root" : "root";
    return createStringError(
        path + " belongs to user " + Twine(about.st_uid) + ", expected " +
        expected +
        ": the code in it would run as you; copy it, if you trust it");
  }
  if (unsigned others = about.st_mode & (S_IWGRP | S_IWOTH))
    return createStringError(
        path + " can be written by " +
        (others & S_IWOTH ? "everybody" : "its group") +
        ": the code in it would run as you; chmod go-w it, if you trust it");
  return file;
}

Expected<std::string> readAll(const Descriptor &file, uint64_t limit) {
  struct stat about;
  if (::fstat(file.get(), &about) != 0)
    return systemError("cannot read a file");
  if (uint64_t(about.st_size) > limit)
    return createStringError("found " + Twine(about.st_size) +
                             " bytes, expected at most " + Twine(limit));
  std::string bytes(about.st_size, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    ssize_t got =
        ::pread(file.get(), &bytes[have], bytes.size() - have, off_t(have));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError("cannot read a file");
    if (got == 0) // it was cut while we read it
      break;
    have += got;
  }
  bytes.resize(have);
  return bytes;
}

} // namespace dither
