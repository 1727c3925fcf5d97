#include "Programs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>

using namespace llvm;

namespace dither::runtime {

namespace {
/// A program on one device.
struct OnDevice {
  /// Held while it is loaded: by one thread, others that want it wait.
  std::mutex loading;
  std::unique_ptr<LoadedProgram> program;
  /// The program, once it is there.
  std::atomic<const LoadedProgram *> ready{nullptr};
};

struct Known {
  std::string encoded;
  /// By the name of the device.
  StringMap<OnDevice> devices;
};

/// Entries are never removed, and stay where they are. The mutex is for the
/// maps alone, and not held while a program is loaded: a driver may wait for
/// its GPU then, and that for what another thread is to launch.
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
  // Another thread may have been first, and others read what it has added.
  all.known.try_emplace(digest, Known{std::move(encoded), {}});
  return Error::success();
}

/// The program of a digest, and its place on a device; null where there is
/// none yet.
static Expected<std::pair<const Known *, OnDevice *>> lookUp(StringRef digest,
                                                             StringRef device) {
  Programs &all = programs();
  std::shared_lock lock(all.mutex);
  auto known = all.known.find(digest);
  if (known == all.known.end())
    return createStringError("found no program with digest " + digest +
                             ", expected one that was instantiated");
  auto place = known->second.devices.find(device);
  return std::pair(&known->second, place == known->second.devices.end()
                                       ? nullptr
                                       : &place->second);
}

static OnDevice &makePlace(StringRef digest, StringRef device) {
  Programs &all = programs();
  std::unique_lock lock(all.mutex);
  return all.known[digest].devices[device];
}

Expected<const LoadedProgram *> findProgram(StringRef digest,
                                            StringRef device) {
  auto found = lookUp(digest, device);
  if (!found)
    return found.takeError();
  auto [known, place] = *found;
  if (place)
    if (const LoadedProgram *ready = place->ready.load())
      return ready;
  Expected<Device *> where = getDevice(device);
  if (!where)
    return where.takeError();
  if (!place)
    place = &makePlace(digest, device);
  std::lock_guard lock(place->loading);
  if (place->program)
    return place->program.get();
  Expected<Program> program = Program::decode(known->encoded);
  if (!program)
    return program.takeError();
  auto loaded = LoadedProgram::load(std::move(*program), **where);
  if (!loaded)
    return loaded.takeError();
  place->program = std::move(*loaded);
  place->ready = place->program.get();
  return place->program.get();
}

} // namespace dither::runtime
