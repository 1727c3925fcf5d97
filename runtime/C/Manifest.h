//===- Manifest.h - What `dither build` has written ------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_C_MANIFEST_H
#define DITHER_RUNTIME_C_MANIFEST_H

#include "dither/Runtime/KernelImage.h"
#include "dither/Runtime/Program.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace dither::runtime {

/// One file of a kernel; its code is read when it is wanted.
struct ManifestImage {
  KernelImage image; ///< without code
  std::string path;
  /// SHA-256 of the file in hexadecimal.
  std::string sha256;
  /// What the file holds: machine code for a CPU, PTX, or machine code for one
  /// GPU, which needs no compiler.
  enum class Format : uint8_t { Object, Ptx, Cubin } format = Format::Object;
};

/// How much of a machine code for a target asks: the compute capability of a
/// GPU and the PTX of its driver, the level of a CPU.
unsigned levelOf(llvm::StringRef target);

/// The images of the kernel `name` in a manifest. Errors: a file that cannot be
/// read, is of others (Support/TrustedFile.h) or is none; another version; an
/// entry without what it needs. Empty where there is no such kernel; `known`
/// then has the names that there are.
llvm::Expected<std::vector<ManifestImage>>
readManifest(llvm::StringRef path, llvm::StringRef name,
             std::vector<std::string> &known);

/// The image with its code. Errors: the file cannot be read, or is another one
/// than was built.
llvm::Expected<KernelImage> readImage(const ManifestImage &image);

/// A program for one target; it is read when it is wanted.
struct ManifestProgram {
  std::string target;
  std::string path;
  /// SHA-256 of the file in hexadecimal.
  std::string sha256;
};

/// As readManifest, of the program `name`.
llvm::Expected<std::vector<ManifestProgram>>
readPrograms(llvm::StringRef path, llvm::StringRef name,
             std::vector<std::string> &known);

/// The program. Errors: the file cannot be read, is another one than was built,
/// or what Program::decode gives.
llvm::Expected<Program> readProgram(const ManifestProgram &program);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_C_MANIFEST_H
