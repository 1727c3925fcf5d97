//===- Files.h - Writing files of the cache --------------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CACHE_FILES_H
#define DITHER_RUNTIME_CACHE_FILES_H

#include "dither/Support/TrustedFile.h"

namespace dither::cache {

/// Makes a directory for this user alone (0700), and its parents. It may exist.
llvm::Error makeDirectory(llvm::StringRef path);

/// Whether a file is to be there after a crash of the machine, which takes two
/// waits for the disk, or may be lost or torn.
enum class Survives { Processes, Machine };

/// Writes `directory`/`name` so that readers, and whoever looks after a crash
/// that it survives, see all of it or what was there before: a temporary file
/// beside it, and a rename. Nothing is left where it fails.
llvm::Error writeAtomically(llvm::StringRef directory, llvm::StringRef name,
                            llvm::StringRef bytes, Survives survives);

/// Removes temporary files whose writers have been killed: of processes of this
/// machine that are gone, and of others (which cannot be asked) after an hour.
/// Returns how many.
unsigned removeAbandoned(llvm::StringRef directory);

} // namespace dither::cache

#endif // DITHER_RUNTIME_CACHE_FILES_H
