#include "Manifest.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <optional>

using namespace llvm;

namespace dither::runtime {

static constexpr int64_t version = 1;

static Expected<std::unique_ptr<MemoryBuffer>> readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("cannot read " + path + ": " +
                             buffer.getError().message());
  return std::move(*buffer);
}

static std::optional<ParamKind> parseKind(StringRef text) {
  return StringSwitch<std::optional<ParamKind>>(text)
      .Case("ptr", ParamKind::Pointer)
      .Case("i64", ParamKind::I64)
      .Case("i32", ParamKind::I32)
      .Case("f32", ParamKind::F32)
      .Default(std::nullopt);
}

/// The kinds of "slots"; nothing where one is unknown.
static std::optional<std::vector<ParamKind>>
parseSlots(const json::Object &kernel) {
  const json::Array *slots = kernel.getArray("slots");
  if (!slots)
    return std::nullopt;
  std::vector<ParamKind> kinds;
  for (const json::Value &slot : *slots) {
    const json::Object *row = slot.getAsObject();
    auto kind = parseKind(row ? row->getString("kind").value_or("") : "");
    if (!kind)
      return std::nullopt;
    kinds.push_back(*kind);
  }
  return kinds;
}

Expected<std::vector<ManifestImage>>
readManifest(StringRef path, StringRef name, std::vector<std::string> &known) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return createStringError(path + ": " + toString(value.takeError()));
  auto fail = [&](const Twine &what) {
    return createStringError(path + ": " + what);
  };
  const json::Object *top = value->getAsObject();
  std::optional<int64_t> found =
      top ? top->getInteger("manifest") : std::nullopt;
  const json::Array *kernels = top ? top->getArray("kernels") : nullptr;
  if (!found || !kernels)
    return fail("not a manifest of kernels");
  if (*found != version)
    return fail("found a manifest of version " + Twine(*found) + ", expected " +
                Twine(version));
  std::vector<ManifestImage> images;
  for (const json::Value &each : *kernels) {
    const json::Object *kernel = each.getAsObject();
    std::optional<StringRef> kernelName =
        kernel ? kernel->getString("name") : std::nullopt;
    if (!kernelName)
      return fail("found a kernel without a name");
    known.push_back(kernelName->str());
    if (*kernelName != name)
      continue;
    auto slots = parseSlots(*kernel);
    const json::Array *files = kernel->getArray("images");
    std::optional<StringRef> symbol = kernel->getString("symbol");
    if (!slots || !files || !symbol)
      return fail("kernel '" + name + "' has no symbol, slots or images");
    for (const json::Value &item : *files) {
      const json::Object *row = item.getAsObject();
      auto text = [&](StringRef key) {
        return row ? row->getString(key).value_or("").str() : std::string();
      };
      auto number = [&](StringRef key) {
        return uint32_t(row ? row->getInteger(key).value_or(0) : 0);
      };
      ManifestImage image;
      image.image.name = symbol->str();
      image.image.target = text("target");
      image.image.numThreads = number("num_threads");
      image.image.sharedBytes = number("shared_bytes");
      image.image.params = *slots;
      image.isCubin = text("format") == "cubin";
      image.sha256 = text("sha256");
      std::string file = text("file");
      if (file.empty() || image.image.target.empty() || image.sha256.empty() ||
          !image.image.numThreads)
        return fail("an image of kernel '" + name +
                    "' has no file, target, sha256 or num_threads");
      SmallString<256> place(sys::path::parent_path(path));
      sys::path::append(place, file);
      image.path = place.str().str();
      images.push_back(std::move(image));
    }
  }
  return images;
}

Expected<KernelImage> readImage(const ManifestImage &image) {
  auto buffer = readFile(image.path);
  if (!buffer)
    return buffer.takeError();
  StringRef code = (*buffer)->getBuffer();
  auto digest = SHA256::hash(arrayRefFromStringRef(code));
  if (toHex(digest, /*LowerCase=*/true) != image.sha256)
    return createStringError(image.path +
                             " is damaged: found another checksum than the "
                             "manifest has");
  KernelImage loaded = image.image;
  loaded.code = code.str();
  return loaded;
}

} // namespace dither::runtime
