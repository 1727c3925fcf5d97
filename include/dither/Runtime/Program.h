//===- Program.h - Launches in a row, on memory given later ----*- C++ -*-===//

#ifndef DITHER_RUNTIME_PROGRAM_H
#define DITHER_RUNTIME_PROGRAM_H

#include "dither/Runtime/Device.h"

namespace dither::runtime {

/// What a call of an operator launches: kernels, one after the other, on
/// buffers that are known when it runs. The sizes of all tensors are part of
/// it.
struct Program {
  /// A slot whose value is an offset into a buffer.
  struct Pointer {
    uint32_t slot;
    uint32_t buffer;
  };
  struct Step {
    /// The place of its kernel in `images`.
    uint32_t image;
    Grid grid;
    /// As for Kernel::launch; those of `pointers` count bytes from the start
    /// of a buffer.
    std::vector<int64_t> slots;
    std::vector<Pointer> pointers;
  };

  /// Code for one target.
  std::vector<KernelImage> images;
  /// Bytes of each buffer.
  std::vector<uint64_t> buffers;
  std::vector<Step> steps;
  /// How many of the buffers, the last ones, hold nothing before a run and
  /// nothing that is wanted after it: 0 or 1.
  uint32_t workspaces = 0;

  /// Bytes of the workspace.
  uint64_t workspace() const { return workspaces ? buffers.back() : 0; }

  /// Errors: a place that is out of range, of an image, a slot, a buffer or a
  /// byte in one; a pointer that is in no buffer and not null; more workspaces
  /// than one, or than buffers.
  llvm::Error check() const;

  /// "dither\0p", u32 version, the fields (numbers little-endian, lengths
  /// first), and the SHA-256 of all before it.
  std::string encode() const;

  /// The inverse. Errors: not a program; one of another version; cut off; a
  /// checksum that does not fit; what `check` gives.
  static llvm::Expected<Program> decode(llvm::StringRef bytes);
};

/// A program with its kernels on a device. Running is safe from many threads.
class LoadedProgram {
public:
  /// Errors: what Program::check gives; an image that does not run there.
  static llvm::Expected<std::unique_ptr<LoadedProgram>> load(Program program,
                                                             Device &device);

  /// Errors: another number of buffers than the program has; one that has bytes
  /// and is null, or on a GPU at no multiple of 32.
  llvm::Error checkBuffers(llvm::ArrayRef<void *> buffers) const;

  /// Launches every step. Errors: those of `checkBuffers`, or what a launch
  /// gives, after the steps before it were started.
  llvm::Error run(llvm::ArrayRef<void *> buffers, Stream stream) const;

  /// Bytes of each buffer.
  llvm::ArrayRef<uint64_t> buffers() const { return program.buffers; }

  /// Of those that are no workspace.
  llvm::ArrayRef<uint64_t> tensors() const {
    return buffers().drop_back(program.workspaces);
  }

  /// Bytes of the workspace.
  uint64_t workspace() const { return program.workspace(); }

private:
  Program program;
  uint64_t alignment = 1;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

} // namespace dither::runtime

#endif // DITHER_RUNTIME_PROGRAM_H
