#include "Engine.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace dither::runtime::sim {

void FaultSink::report(uint64_t block, std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (block >= first.load())
    return;
  first = block;
  message = std::move(text);
}

void EndedBlocks::add(uint64_t block) {
  std::lock_guard<std::mutex> lock(mutex);
  later.insert(block);
  uint64_t next = first.load();
  while (later.erase(next))
    ++next;
  first = next;
}

static std::string triple(uint32_t x, uint32_t y, uint32_t z) {
  return "(" + utostr(x) + "," + utostr(y) + "," + utostr(z) + ")";
}

std::string Engine::blockText(uint64_t index) const {
  const uint32_t *n = launch.grid;
  return triple(uint32_t(index % n[0]), uint32_t(index / n[0] % n[1]),
                uint32_t(index / n[0] / n[1]));
}

std::string Engine::threadText(uint32_t thread) const {
  const uint32_t *n = launch.block;
  return triple(thread % n[0], thread / n[0] % n[1], thread / n[0] / n[1]);
}

std::string Engine::clusterThreadText(uint32_t thread) const {
  uint32_t perBlock = 32 * uint32_t(warps.size()), of = thread / perBlock;
  std::string text = threadText(thread % perBlock);
  if (of != rank)
    text += " of block " + blockText(launch.blockOf(clusterIndex, of));
  return text;
}

/// `text` begins with what follows the block.
bool Engine::fault(uint64_t block, uint32_t source, const Twine &text) {
  const Source &at = launch.program.sources[source];
  faults.report(block, ("kernel '" + launch.program.name + "', line " +
                        Twine(at.line) + " (" + at.text + "), block " +
                        blockText(block) + text)
                           .str());
  return false;
}

bool Engine::fault(const Step &step, const Twine &text) {
  return fault(blockIndex, step.source, ": " + text);
}

bool Engine::fault(Warp &warp, const Step &step, unsigned lane,
                   const Twine &text) {
  return fault(blockIndex, step.source,
               ", thread " + threadText(warp.index * 32 + lane) + ": " + text);
}

/// Where an address lies: "0x7f..10, 16 bytes past the end of an allocation of
/// 512 bytes".
std::string Engine::describe(Space space, uint64_t address,
                             uint64_t bytes) const {
  std::string where = "0x" + utohexstr(address, /*LowerCase=*/true);
  if (space != Space::Global && space != Space::Const) {
    uint64_t size = space == Space::Shared  ? sharedBytes
                    : space == Space::Local ? launch.program.localBytes
                                            : launch.program.paramBytes;
    return where + " of the " + spaceName(space).str() + " space, of " +
           utostr(size) + " bytes";
  }
  const MemoryMap &map = launch.map;
  const Allocation *below = map.before(address);
  if (below && address < below->end)
    return where + ", byte " + utostr(address - below->begin) +
           " of an allocation of " + utostr(below->end - below->begin) +
           " bytes";
  // The nearer of the neighbours, where one is near.
  const Allocation *above = nullptr;
  size_t next = below ? size_t(below - map.allocations.data()) + 1 : 0;
  if (next < map.allocations.size())
    above = &map.allocations[next];
  uint64_t past = below ? address - below->end : ~uint64_t(0);
  uint64_t ahead = above ? above->begin - address : ~uint64_t(0);
  if (past <= ahead && past < kGuardBytes)
    return where + ", " + utostr(past) + " bytes past the end of an " +
           "allocation of " + utostr(below->end - below->begin) + " bytes";
  if (ahead <= kGuardBytes)
    return where + ", " + utostr(ahead) + " bytes before an allocation of " +
           utostr(above->end - above->begin) + " bytes";
  return where + ", which is not memory of the device";
}

} // namespace dither::runtime::sim
