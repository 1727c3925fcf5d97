//===- BuildId.h - What identifies this binary by content ------*- C++ -*-===//

#ifndef DITHER_CACHE_BUILDID_H
#define DITHER_CACHE_BUILDID_H

#include <string>

namespace dither::cache {

/// Identifies the content of the library or program that this code is linked
/// into: the linker's build id (a hash of its output) in hexadecimal, or where
/// there is none the SHA-256 of the file. Copying, touching and stripping the
/// file change nothing. Empty where neither can be read.
const std::string &binaryId();

} // namespace dither::cache

#endif // DITHER_CACHE_BUILDID_H
