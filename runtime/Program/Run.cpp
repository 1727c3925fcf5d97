#include "dither/Runtime/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace dither::runtime {

/// What addresses of buffers are multiples of: of those of GPUs, what kernels
/// are compiled for at most, and allocators give more. Kernels for the CPU take
/// any.
static constexpr uint64_t gpuAlignment = 32;

Expected<std::unique_ptr<LoadedProgram>> LoadedProgram::load(Program program,
                                                             Device &device) {
  if (Error error = program.check())
    return error;
  auto loaded = std::make_unique<LoadedProgram>();
  loaded->alignment = device.isCpu() ? 1 : gpuAlignment;
  for (KernelImage &image : program.images) {
    Expected<std::unique_ptr<Kernel>> kernel = device.load(image);
    if (!kernel)
      return kernel.takeError();
    loaded->kernels.push_back(std::move(*kernel));
    // The device has it.
    image.code.clear();
  }
  loaded->program = std::move(program);
  return loaded;
}

Error LoadedProgram::checkBuffers(ArrayRef<void *> buffers) const {
  if (buffers.size() != program.buffers.size())
    return createStringError("found " + Twine(buffers.size()) +
                             " buffers, expected " +
                             Twine(program.buffers.size()));
  for (auto [place, bytes] : enumerate(program.buffers)) {
    if (!bytes)
      continue;
    if (!buffers[place])
      return createStringError("buffer " + Twine(place) +
                               " is null, expected " + Twine(bytes) + " bytes");
    auto address = reinterpret_cast<uintptr_t>(buffers[place]);
    if (address % alignment)
      return createStringError(
          "buffer " + Twine(place) + " is at 0x" + Twine::utohexstr(address) +
          ", expected a multiple of " + Twine(alignment) + " bytes");
  }
  return Error::success();
}

Error LoadedProgram::run(ArrayRef<void *> buffers, Stream stream) const {
  if (Error error = checkBuffers(buffers))
    return error;
  SmallVector<int64_t, 64> slots;
  for (const Program::Step &step : program.steps) {
    slots.assign(step.slots.begin(), step.slots.end());
    for (Program::Pointer pointer : step.pointers)
      slots[pointer.slot] +=
          int64_t(reinterpret_cast<uintptr_t>(buffers[pointer.buffer]));
    if (Error error = kernels[step.image]->launch(slots, step.grid, stream))
      return error;
  }
  return Error::success();
}

} // namespace dither::runtime
