#include "Checks.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::runtime {

std::string gridText(const Grid &grid) {
  return (Twine(grid.x) + "x" + Twine(grid.y) + "x" + Twine(grid.z)).str();
}

Grid blocksOf(const Grid &programs, uint32_t clusterSize) {
  return {programs.x * clusterSize, programs.y, programs.z};
}

Error checkLaunch(StringRef kernel, size_t numParams, const WholeTiles &tiles,
                  ArrayRef<int64_t> slots, const Grid &grid) {
  if (slots.size() != numParams)
    return createStringError("kernel '" + kernel + "' takes " +
                             Twine(numParams) + " slots, found " +
                             Twine(slots.size()));
  int64_t total;
  if (grid.x < 0 || grid.y < 0 || grid.z < 0 ||
      MulOverflow(grid.x, grid.y, total) || MulOverflow(total, grid.z, total))
    return createStringError("grid of kernel '" + kernel + "' is " +
                             gridText(grid) +
                             ": expected sizes of 0 or more, and a product "
                             "that fits in 64 bits");
  if (tiles.required && !tiles.hold(slots.data(), extentsOf(grid).data()))
    return createStringError("kernel '" + kernel +
                             "' is made for launches whose tiles are inside of "
                             "their tensors, found grid " +
                             gridText(grid) + ", which reaches past one");
  return Error::success();
}

} // namespace dither::runtime
