#include "Manifest.h"

#include "dither/Runtime/CpuDevice.h"
#include "dither/Support/TrustedFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <optional>

using namespace llvm;

namespace dither::runtime {

unsigned levelOf(StringRef target) {
  unsigned capability = 0;
  if (target.consume_front("sm_"))
    return target.consumeInteger(10, capability)
               ? 0
               : 3 * capability + !target.empty() + target.contains(':');
  for (HostLevel level : {HostLevel::Avx2, HostLevel::Avx512,
                          HostLevel::Avx512Vbmi, HostLevel::Avx512Fp16})
    if (target == hostTarget(level))
      return unsigned(level);
  return 0;
}

static constexpr int64_t version = 1;

/// More than any manifest, and than the code of any kernel.
static constexpr uint64_t maxBytes = uint64_t(1) << 28;
/// What `dither build` writes has seven levels.
static constexpr unsigned maxDepth = 32;
/// Bytes that no GPU has for a program.
static constexpr uint64_t maxShared = 1 << 20, maxCluster = 8;

/// A file that says what code is to run, or is that code.
static Expected<std::string> readFile(StringRef path) {
  Expected<Descriptor> file = openToRead(path, Trust::Named);
  if (!file)
    return file.takeError();
  Expected<std::string> bytes = readAll(*file, maxBytes);
  if (!bytes)
    return createStringError(path + ": " + toString(bytes.takeError()));
  return bytes;
}

/// A file by its name in a manifest.
static std::string beside(StringRef manifest, StringRef file) {
  SmallString<256> place(sys::path::parent_path(manifest));
  sys::path::append(place, file);
  return place.str().str();
}

/// The file, which is the one that was built.
static Expected<std::string> readBuilt(StringRef path, StringRef sha256) {
  Expected<std::string> bytes = readFile(path);
  if (!bytes)
    return bytes.takeError();
  if (toHex(SHA256::hash(arrayRefFromStringRef(*bytes)), /*LowerCase=*/true) !=
      sha256)
    return createStringError(
        path + " is damaged: found another checksum than the manifest has");
  return bytes;
}

/// Whether brackets nest deeper than the parser, which calls itself for each
/// level, can take.
static bool nestsTooDeeply(StringRef json) {
  unsigned depth = 0;
  bool isText = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (isText && c == '\\')
      ++i;
    else if (c == '"')
      isText = !isText;
    else if (!isText && (c == '[' || c == '{') && ++depth > maxDepth)
      return true;
    else if (!isText && (c == ']' || c == '}') && depth)
      --depth;
  }
  return false;
}

static std::optional<ParamKind> parseKind(StringRef text) {
  return StringSwitch<std::optional<ParamKind>>(text)
      .Case("ptr", ParamKind::Pointer)
      .Case("i64", ParamKind::I64)
      .Case("i32", ParamKind::I32)
      .Case("f32", ParamKind::F32)
      .Default(std::nullopt);
}

static std::optional<ManifestImage::Format> parseFormat(StringRef text) {
  using Format = ManifestImage::Format;
  return StringSwitch<std::optional<Format>>(text)
      .Case("object", Format::Object)
      .Case("ptx", Format::Ptx)
      .Case("cubin", Format::Cubin)
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

/// A manifest of a version that is known.
static Expected<json::Object> readTop(StringRef path) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  auto fail = [&](const Twine &what) {
    return createStringError(path + ": " + what);
  };
  if (nestsTooDeeply(*text))
    return fail("found brackets nested more than " + Twine(maxDepth) +
                " deep, expected a manifest of kernels");
  Expected<json::Value> value = json::parse(*text);
  if (!value)
    return fail(toString(value.takeError()));
  json::Object *top = value->getAsObject();
  std::optional<int64_t> found =
      top ? top->getInteger("manifest") : std::nullopt;
  if (!found || !top->getArray("kernels"))
    return fail("not a manifest of kernels");
  if (*found != version)
    return fail("found a manifest of version " + Twine(*found) + ", expected " +
                Twine(version));
  return std::move(*top);
}

Expected<std::vector<ManifestImage>>
readManifest(StringRef path, StringRef name, std::vector<std::string> &known) {
  Expected<json::Object> top = readTop(path);
  if (!top)
    return top.takeError();
  auto fail = [&](const Twine &what) {
    return createStringError(path + ": " + what);
  };
  const json::Array *kernels = top->getArray("kernels");
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
      // A number within bounds; more than any bound for others.
      auto number = [&](StringRef key) -> uint64_t {
        return row ? uint64_t(row->getInteger(key).value_or(-1)) : ~0ull;
      };
      ManifestImage image;
      image.image.name = symbol->str();
      image.image.target = text("target");
      uint64_t threads = number("num_threads"), shared = number("shared_bytes"),
               cluster = row && row->get("cluster_size")
                             ? number("cluster_size")
                             : 1; // as before there were any
      image.image.numThreads = uint32_t(threads);
      image.image.sharedBytes = uint32_t(shared);
      image.image.clusterSize = uint32_t(cluster);
      image.image.params = *slots;
      image.sha256 = text("sha256");
      std::string file = text("file");
      if (file.empty() || image.image.target.empty() || image.sha256.empty() ||
          threads < 1 || threads > 1024 || shared > maxShared || cluster < 1 ||
          cluster > maxCluster)
        return fail("an image of kernel '" + name +
                    "' has no file, target, sha256, num_threads (1 to 1024), "
                    "shared_bytes (0 to " +
                    Twine(maxShared) + ") or cluster_size (1 to " +
                    Twine(maxCluster) + ")");
      auto format = parseFormat(text("format"));
      if (!format)
        return fail("an image of kernel '" + name + "' has format '" +
                    text("format") + "', expected object, ptx or cubin");
      image.format = *format;
      image.path = beside(path, file);
      images.push_back(std::move(image));
    }
  }
  return images;
}

Expected<KernelImage> readImage(const ManifestImage &image) {
  Expected<std::string> code = readBuilt(image.path, image.sha256);
  if (!code)
    return code.takeError();
  KernelImage loaded = image.image;
  loaded.code = std::move(*code);
  return loaded;
}

Expected<std::vector<ManifestProgram>>
readPrograms(StringRef path, StringRef name, std::vector<std::string> &known) {
  Expected<json::Object> top = readTop(path);
  if (!top)
    return top.takeError();
  auto fail = [&](const Twine &what) {
    return createStringError(path + ": " + what);
  };
  std::vector<ManifestProgram> programs;
  // Manifests of kernels alone have no such list.
  const json::Array *rows = top->getArray("programs");
  for (const json::Value &each : rows ? *rows : json::Array()) {
    const json::Object *program = each.getAsObject();
    std::optional<StringRef> programName =
        program ? program->getString("name") : std::nullopt;
    if (!programName)
      return fail("found a program without a name");
    known.push_back(programName->str());
    if (*programName != name)
      continue;
    const json::Array *files = program->getArray("images");
    if (!files)
      return fail("program '" + name + "' has no images");
    for (const json::Value &item : *files) {
      const json::Object *row = item.getAsObject();
      auto text = [&](StringRef key) {
        return row ? row->getString(key).value_or("").str() : std::string();
      };
      std::string file = text("file");
      ManifestProgram found{text("target"), beside(path, file), text("sha256")};
      if (file.empty() || found.target.empty() || found.sha256.empty())
        return fail("an image of program '" + name +
                    "' has no file, target or sha256");
      programs.push_back(std::move(found));
    }
  }
  return programs;
}

Expected<Program> readProgram(const ManifestProgram &program) {
  Expected<std::string> bytes = readBuilt(program.path, program.sha256);
  if (!bytes)
    return bytes.takeError();
  Expected<Program> decoded = Program::decode(*bytes);
  if (!decoded)
    return createStringError(program.path + ": " +
                             toString(decoded.takeError()));
  return decoded;
}

} // namespace dither::runtime
