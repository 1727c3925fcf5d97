//===- Runtime.cpp - The C interface --------------------------------------===//

#include "Manifest.h"
#include "Status.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace dither::runtime;

struct dither_kernel {
  std::unique_ptr<Kernel> kernel;
  std::string target;
  std::vector<ParamKind> slots;
};

/// Images in the order in which they are tried: for this very target, machine
/// code before what is yet to be compiled; then the others, those that ask most
/// of a machine first.
static void sortImages(std::vector<ManifestImage> &images, StringRef target) {
  stable_sort(images, [&](const ManifestImage &a, const ManifestImage &b) {
    auto rank = [&](const ManifestImage &i) {
      return std::tuple(i.image.target != target, -int(levelOf(i.image.target)),
                        i.format != ManifestImage::Format::Cubin);
    };
    return rank(a) < rank(b);
  });
}

extern "C" {

uint32_t dither_abi_version(void) {
  return DITHER_ABI_MAJOR << 16 | DITHER_ABI_MINOR;
}

const char *dither_error_message(void) { return lastMessage().c_str(); }

dither_status dither_device_open(const char *name, dither_device **device) {
  if (!device)
    return missing("device");
  Expected<Device *> found = name ? getDevice(name) : defaultDevice();
  if (!found)
    return check(found.takeError());
  *device = reinterpret_cast<dither_device *>(*found);
  return DITHER_SUCCESS;
}

// Names of devices are constants or strings that live as long as they do, and
// end in a null byte.
const char *dither_device_name(const dither_device *device) {
  return device ? unwrap(device)->name().data() : "";
}

const char *dither_device_target(const dither_device *device) {
  return device ? unwrap(device)->target().data() : "";
}

dither_status dither_allocate(dither_device *device, size_t bytes,
                              void **pointer) {
  if (!device || !pointer)
    return missing(device ? "pointer" : "device");
  Expected<void *> memory = unwrap(device)->allocate(bytes);
  if (!memory)
    return check(memory.takeError());
  *pointer = *memory;
  return DITHER_SUCCESS;
}

dither_status dither_release(dither_device *device, void *pointer) {
  return device ? check(unwrap(device)->release(pointer)) : missing("device");
}

dither_status dither_copy_in(dither_device *device, void *destination,
                             const void *source, size_t bytes) {
  if (!device || (bytes && (!destination || !source)))
    return missing(!device ? "device" : !source ? "source" : "destination");
  return check(unwrap(device)->copyIn(destination, source, bytes));
}

dither_status dither_copy_out(dither_device *device, void *destination,
                              const void *source, size_t bytes) {
  if (!device || (bytes && (!destination || !source)))
    return missing(!device ? "device" : !source ? "source" : "destination");
  return check(unwrap(device)->copyOut(destination, source, bytes));
}

dither_status dither_synchronize(dither_device *device, void *stream) {
  return device ? check(unwrap(device)->synchronize(stream))
                : missing("device");
}

dither_status dither_kernel_load(dither_device *device, const char *manifest,
                                 const char *name, dither_kernel **kernel) {
  if (!device || !manifest || !name || !kernel)
    return missing(!device     ? "device"
                   : !manifest ? "manifest"
                   : !name     ? "name"
                               : "kernel");
  std::vector<std::string> known;
  auto images = readManifest(manifest, name, known);
  if (!images)
    return fail(DITHER_BAD_FILE, toString(images.takeError()));
  if (images->empty())
    return fail(DITHER_NOT_FOUND, Twine(manifest) + ": no kernel '" + name +
                                      "', found " + join(known, ", "));
  StringRef target = unwrap(device)->target();
  sortImages(*images, target);
  std::string refusals;
  for (const ManifestImage &image : *images) {
    // Files for machines of another kind need not even be there.
    if ((image.format == ManifestImage::Format::Object) !=
        unwrap(device)->isCpu())
      continue;
    Expected<KernelImage> code = readImage(image);
    if (!code)
      return fail(DITHER_BAD_FILE, toString(code.takeError()));
    auto loaded = unwrap(device)->load(*code);
    if (loaded) {
      *kernel =
          new dither_kernel{std::move(*loaded), code->target, code->params};
      return DITHER_SUCCESS;
    }
    refusals += (refusals.empty() ? "" : "; ") + toString(loaded.takeError());
  }
  return fail(DITHER_NOT_FOUND, Twine(manifest) + ": nothing of kernel '" +
                                    name + "' runs on '" + target + "'" +
                                    (refusals.empty() ? "" : ": ") + refusals);
}

void dither_kernel_unload(dither_kernel *kernel) { delete kernel; }

size_t dither_kernel_num_slots(const dither_kernel *kernel) {
  return kernel ? kernel->slots.size() : 0;
}

const char *dither_kernel_target(const dither_kernel *kernel) {
  return kernel ? kernel->target.c_str() : "";
}

dither_status dither_kernel_launch(dither_kernel *kernel, const int64_t *slots,
                                   size_t num_slots, int64_t grid_x,
                                   int64_t grid_y, int64_t grid_z,
                                   void *stream) {
  if (!kernel || (!slots && num_slots))
    return missing(kernel ? "slots" : "kernel");
  if (num_slots != kernel->slots.size())
    return fail(DITHER_INVALID_ARGUMENT, "found " + Twine(num_slots) +
                                             " slots, expected " +
                                             Twine(kernel->slots.size()));
  if (grid_x < 0 || grid_y < 0 || grid_z < 0)
    return fail(DITHER_INVALID_ARGUMENT,
                "grid is " + Twine(grid_x) + "x" + Twine(grid_y) + "x" +
                    Twine(grid_z) + ", expected no negative extent");
  bool runs = grid_x && grid_y && grid_z;
  for (size_t i = 0; runs && i < num_slots; ++i)
    if (kernel->slots[i] == ParamKind::Pointer && !slots[i])
      return fail(DITHER_INVALID_ARGUMENT,
                  "slot " + Twine(i) + " is a null pointer, expected memory");
  return check(kernel->kernel->launch(ArrayRef<int64_t>(slots, num_slots),
                                      {grid_x, grid_y, grid_z}, stream));
}

} // extern "C"
