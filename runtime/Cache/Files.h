//===- Files.h - Reading and writing files of the cache --------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CACHE_FILES_H
#define DITHER_RUNTIME_CACHE_FILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace dither::cache {

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

/// Makes a directory for this user alone (0700), and its parents. It may exist.
llvm::Error makeDirectory(llvm::StringRef path);

/// Who may have written a file that is read.
enum class Trust : uint8_t {
  Own,   ///< this user, and nobody else may
  Named, ///< whoever: the user has named the file
};

/// Opens a regular file for reading. Errors: none there; a link, a directory, a
/// pipe; a file that `trust` refuses.
llvm::Expected<Descriptor> openToRead(llvm::StringRef path, Trust trust);

/// All of a file that openToRead opened. Errors: one over `limit` bytes.
llvm::Expected<std::string> readAll(const Descriptor &file, uint64_t limit);

/// Writes `directory`/`name` so that readers, and whoever looks after a crash,
/// see all of it or what was there before: a temporary file beside it, fsync,
/// rename, fsync of the directory. Nothing is left where it fails.
llvm::Error writeAtomically(llvm::StringRef directory, llvm::StringRef name,
                            llvm::StringRef bytes);

/// Removes temporary files whose writers have been killed: of processes of this
/// machine that are gone, and of others (which cannot be asked) after an hour.
/// Returns how many.
unsigned removeAbandoned(llvm::StringRef directory);

} // namespace dither::cache

#endif // DITHER_RUNTIME_CACHE_FILES_H
