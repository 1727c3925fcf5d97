//===- TrustedFile.h - Reading files whose code is to run ------*- C++ -*-===//
//
// Compiled kernels are machine code: who can write one runs it as whoever reads
// it. docs/security.md says which files are believed, and why.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_SUPPORT_TRUSTEDFILE_H
#define DITHER_SUPPORT_TRUSTEDFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace dither {

/// A file descriptor that is closed with the object; -1 for none.
class Descriptor {
public:
  explicit Descriptor(int number = -1) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept;
  ~Descriptor();

  int get() const { return number; }
  int release();
  explicit operator bool() const { return number >= 0; }

private:
  int number;
};

/// `what`: the text of errno.
llvm::Error systemError(const llvm::Twine &what);

/// Who may have written a file that is read.
enum class Trust : uint8_t {
  Own,   ///< this user or root, and nobody else may; a link is refused
  Named, ///< the same, by a name that the user has given: links are followed
  Any,   ///< whoever: what is in it is looked at and never run
};

/// Opens a regular file for reading. Errors: none there; a directory, a pipe; a
/// file that `trust` refuses. It is the opened file that is looked at: what
/// lies under its name later does not matter.
llvm::Expected<Descriptor> openToRead(llvm::StringRef path, Trust trust);

/// All of a file that openToRead opened. Errors: one over `limit` bytes.
llvm::Expected<std::string> readAll(const Descriptor &file, uint64_t limit);

} // namespace dither

#endif // DITHER_SUPPORT_TRUSTEDFILE_H
