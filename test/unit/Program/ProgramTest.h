//===- ProgramTest.h - Programs for tests ----------------------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_PROGRAM_PROGRAMTEST_H
#define DITHER_TEST_UNIT_PROGRAM_PROGRAMTEST_H

#include "../Runtime/FakeDriver.h"
#include "dither/Runtime/Program.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

namespace dither::test {

/// A kernel of test/unit/Runtime/Kernels for the CPU.
inline runtime::KernelImage cpuImage(const char *name,
                                     std::vector<runtime::ParamKind> params) {
  runtime::KernelImage image;
  image.name = name;
  image.target = "host";
  image.code = readFile(KERNELS_OBJECT);
  image.params = std::move(params);
  return image;
}

/// The kernel `record` on `programs` programs, `steps` times in a row: out is
/// buffer 0, counts is buffer 1, and who is 256 bytes into a workspace.
inline runtime::Program recordProgram(int64_t programs, int64_t spin = 0,
                                      unsigned steps = 1) {
  using runtime::ParamKind;
  runtime::Program program;
  program.images.push_back(
      cpuImage("record", {ParamKind::Pointer, ParamKind::Pointer,
                          ParamKind::Pointer, ParamKind::I64}));
  uint64_t bytes = 8 * programs;
  program.buffers = {bytes, bytes, 256 + bytes};
  runtime::Program::Step step{0, {programs, 1, 1}, {0, 0, 256, spin}, {}};
  step.pointers = {{0, 0}, {1, 1}, {2, 2}};
  program.steps.assign(steps, step);
  return program;
}

/// The kernel of ptxImage, once: x is 64 bytes into buffer 1.
inline runtime::Program ptxProgram(int64_t number = 5,
                                   const std::string &target = "sm_90a") {
  runtime::Program program;
  program.images.push_back(ptxImage("scale", target));
  program.buffers = {0, 128};
  runtime::Program::Step step{0, {4, 2, 1}, {64, number, 7, 0}, {{0, 1}}};
  program.steps.push_back(step);
  return program;
}

/// Bytes with the checksum that fits them in place of their last.
inline std::string sealed(llvm::StringRef bytes) {
  llvm::StringRef body = bytes.drop_back(std::min<size_t>(32, bytes.size()));
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(body));
  return body.str() + std::string(digest.begin(), digest.end());
}

} // namespace dither::test

#endif // DITHER_TEST_UNIT_PROGRAM_PROGRAMTEST_H
