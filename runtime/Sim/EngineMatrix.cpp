#include "Engine.h"

#include "llvm/ADT/Twine.h"

#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

bool Engine::isAligned(Warp &warp, const Step &step, uint32_t active) {
  uint32_t missing = ~active;
  if (!missing)
    return true;
  return fault(warp, step, unsigned(llvm::countr_zero(active)),
               "needs all lanes of the warp, and 0x" +
                   Twine::utohexstr(missing) + " are elsewhere");
}

/// Lane i has two elements of each matrix, in row i / 4 from column i % 4 * 2
/// on; in that of the transposed matrix (ISA, ldmatrix).
void Engine::moveMatrices(Warp &warp, const MemoryInfo &info,
                          const Access &access) {
  for (unsigned matrix = 0; matrix < info.count; ++matrix) {
    if (info.registers[matrix] == ~0u)
      continue;
    char *registers = warp.frame + info.registers[matrix];
    for (unsigned i = 0; i < 32; ++i)
      for (unsigned half = 0; half < 2; ++half) {
        unsigned row = i / 4, column = i % 4 * 2 + half;
        if (info.isTransposed)
          std::swap(row, column);
        char *there = access.pointer[8 * matrix + row] + 2 * column;
        char *here = registers + 4 * i + 2 * half;
        std::memcpy(access.isStore ? there : here,
                    access.isStore ? here : there, 2);
      }
  }
}

} // namespace dither::runtime::sim
