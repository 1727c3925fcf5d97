//===- Programs.cpp - Programs in the C interface -------------------------===//

#include "Manifest.h"
#include "Status.h"
#include "dither/Runtime/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace dither::runtime;

struct dither_program {
  std::unique_ptr<LoadedProgram> program;
  std::string target;
};

/// Of a program that was read: loads it. The target is that of its code.
static Expected<dither_program *> load(Device &device, Program read) {
  std::string target = read.images.empty() ? "" : read.images.front().target;
  auto loaded = LoadedProgram::load(std::move(read), device);
  if (!loaded)
    return loaded.takeError();
  return new dither_program{std::move(*loaded), std::move(target)};
}

extern "C" {

dither_status dither_program_load(dither_device *device, const char *manifest,
                                  const char *name, dither_program **program) {
  if (!device || !manifest || !name || !program)
    return missing(!device     ? "device"
                   : !manifest ? "manifest"
                   : !name     ? "name"
                               : "program");
  std::vector<std::string> known;
  auto images = readPrograms(manifest, name, known);
  if (!images)
    return fail(DITHER_BAD_FILE, toString(images.takeError()));
  if (images->empty())
    return fail(DITHER_NOT_FOUND,
                Twine(manifest) + ": no program '" + name + "', found " +
                    (known.empty() ? "none" : join(known, ", ")));
  StringRef target = unwrap(device)->target();
  stable_sort(*images, [&](const auto &a, const auto &b) {
    auto rank = [&](const ManifestProgram &each) {
      return std::pair(each.target != target, -int(levelOf(each.target)));
    };
    return rank(a) < rank(b);
  });
  std::string refusals;
  for (const ManifestProgram &image : *images) {
    // Files for machines of another kind need not even be there.
    if (StringRef(image.target).starts_with("host") != unwrap(device)->isCpu())
      continue;
    Expected<Program> read = readProgram(image);
    if (!read)
      return fail(DITHER_BAD_FILE, toString(read.takeError()));
    Expected<dither_program *> loaded = load(*unwrap(device), std::move(*read));
    if (loaded) {
      *program = *loaded;
      return DITHER_SUCCESS;
    }
    refusals += (refusals.empty() ? "" : "; ") + toString(loaded.takeError());
  }
  return fail(DITHER_NOT_FOUND, Twine(manifest) + ": nothing of program '" +
                                    name + "' runs on '" + target + "'" +
                                    (refusals.empty() ? "" : ": ") + refusals);
}

dither_status dither_program_decode(dither_device *device, const void *bytes,
                                    size_t size, dither_program **program) {
  if (!device || !bytes || !program)
    return missing(!device ? "device" : !bytes ? "bytes" : "program");
  Expected<Program> read =
      Program::decode(StringRef(static_cast<const char *>(bytes), size));
  if (!read)
    return fail(DITHER_BAD_FILE, toString(read.takeError()));
  Expected<dither_program *> loaded = load(*unwrap(device), std::move(*read));
  if (!loaded)
    return fail(DITHER_NOT_FOUND, toString(loaded.takeError()));
  *program = *loaded;
  return DITHER_SUCCESS;
}

void dither_program_unload(dither_program *program) { delete program; }

const char *dither_program_target(const dither_program *program) {
  return program ? program->target.c_str() : "";
}

size_t dither_program_num_buffers(const dither_program *program) {
  return program ? program->program->tensors().size() : 0;
}

size_t dither_program_buffer_bytes(const dither_program *program,
                                   size_t index) {
  return index < dither_program_num_buffers(program)
             ? program->program->tensors()[index]
             : 0;
}

size_t dither_program_workspace_bytes(const dither_program *program) {
  return program ? program->program->workspace() : 0;
}

dither_status dither_program_run(dither_program *program, void *const *buffers,
                                 size_t num_buffers, void *workspace,
                                 size_t workspace_bytes, void *stream) {
  if (!program || (!buffers && num_buffers))
    return missing(program ? "buffers" : "program");
  const LoadedProgram &loaded = *program->program;
  ArrayRef<uint64_t> tensors = loaded.tensors();
  if (num_buffers != tensors.size())
    return fail(DITHER_INVALID_ARGUMENT, "found " + Twine(num_buffers) +
                                             " buffers, expected " +
                                             Twine(tensors.size()));
  std::vector<void *> all(buffers, buffers + num_buffers);
  if (uint64_t bytes = loaded.workspace()) {
    std::string expected = ", expected " + std::to_string(bytes) + " bytes";
    if (!workspace)
      return fail(DITHER_INVALID_ARGUMENT, "the workspace is null" + expected);
    if (workspace_bytes < bytes)
      return fail(DITHER_INVALID_ARGUMENT, "the workspace has " +
                                               Twine(workspace_bytes) +
                                               " bytes" + expected);
  }
  if (loaded.buffers().size() > num_buffers)
    all.push_back(workspace);
  if (Error error = loaded.checkBuffers(all))
    return fail(DITHER_INVALID_ARGUMENT, toString(std::move(error)));
  return check(loaded.run(all, stream));
}

} // extern "C"
