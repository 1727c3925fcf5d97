#include "LaneOps.h"

namespace dither::runtime::sim {

namespace Level0 {
extern const LaneTable table;
}

#ifdef DITHER_SIM_HAS_LEVEL3
namespace Level3 {
extern const LaneTable table;
}
#endif

const LaneTable *laneTable(int level) {
  if (level == 0)
    return &Level0::table;
#ifdef DITHER_SIM_HAS_LEVEL3
  if (level == 3 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("f16c"))
    return &Level3::table;
#endif
  return nullptr;
}

const LaneTable &laneTable() {
  static const LaneTable *best = laneTable(3) ? laneTable(3) : laneTable(0);
  return *best;
}

} // namespace dither::runtime::sim
