#include "Programs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"

#include <mutex>
#include <shared_mutex>

using namespace llvm;

namespace dither::runtime {

namespace {
struct Known {
  std::string encoded;
  /// By the name of the device.
  StringMap<std::unique_ptr<LoadedProgram>> loaded;
};

struct Programs {
  std::shared_mutex mutex;
  StringMap<Known> known;
};
} // namespace

/// Never destroyed: threads of XLA may still run while the process ends.
static Programs &programs() {
  static Programs *all = new Programs;
  return *all;
}

Error addProgram(StringRef digest, StringRef base64) {
  Programs &all = programs();
  {
    std::shared_lock lock(all.mutex);
    if (all.known.contains(digest))
      return Error::success();
  }
  std::vector<char> bytes;
  if (Error error = decodeBase64(base64, bytes))
    return error;
  std::string encoded(bytes.begin(), bytes.end());
  auto hash = SHA256::hash(arrayRefFromStringRef(encoded));
  if (std::string found = toHex(hash, /*LowerCase=*/true); found != digest)
    return createStringError("found a program with digest " + found +
                             ", expected " + digest);
  if (Expected<Program> program = Program::decode(encoded); !program)
    return program.takeError();
  std::unique_lock lock(all.mutex);
  all.known[digest].encoded = std::move(encoded);
  return Error::success();
}

Expected<const LoadedProgram *> findProgram(StringRef digest,
                                            StringRef device) {
  Programs &all = programs();
  {
    std::shared_lock lock(all.mutex);
    auto known = all.known.find(digest);
    if (known == all.known.end())
      return createStringError("found no program with digest " + digest +
                               ", expected one that was instantiated");
    auto loaded = known->second.loaded.find(device);
    if (loaded != known->second.loaded.end())
      return loaded->second.get();
  }
  Expected<Device *> where = getDevice(device);
  if (!where)
    return where.takeError();
  std::unique_lock lock(all.mutex);
  Known &known = all.known[digest];
  std::unique_ptr<LoadedProgram> &place = known.loaded[device];
  if (place)
    return place.get();
  Expected<Program> program = Program::decode(known.encoded);
  if (!program)
    return program.takeError();
  auto loaded = LoadedProgram::load(std::move(*program), **where);
  if (!loaded) {
    known.loaded.erase(device);
    return loaded.takeError();
  }
  place = std::move(*loaded);
  return place.get();
}

} // namespace dither::runtime
