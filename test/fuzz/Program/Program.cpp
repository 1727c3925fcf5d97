// Programs from any bytes: as they are, and with a checksum that fits, so that
// what is behind it is reached.
#include "dither/Runtime/Program.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <cstdlib>

using dither::runtime::Program;

/// What is read is what was written: there is one text for each program.
static void check(llvm::StringRef bytes) {
  llvm::Expected<Program> program = Program::decode(bytes);
  if (!program) {
    if (llvm::toString(program.takeError()).empty())
      std::abort();
    return;
  }
  if (program->encode() != bytes)
    std::abort();
  // What a run trusts: no place is outside of what it is a place in.
  for (const Program::Step &step : program->steps) {
    if (step.image >= program->images.size() ||
        step.slots.size() != program->images[step.image].params.size())
      std::abort();
    for (auto [slot, buffer] : step.pointers)
      if (slot >= step.slots.size() || buffer >= program->buffers.size() ||
          uint64_t(step.slots[slot]) > program->buffers[buffer])
        std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  check(bytes);
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  std::string fitting = bytes.str();
  fitting.append(digest.begin(), digest.end());
  check(fitting);
  return 0;
}
