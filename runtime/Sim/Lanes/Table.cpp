#include "Map.h"

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

static LaneFn lanes(const LaneKey &key) {
  switch (key.op) {
  case Op::Stochastic:
    return selectStochastic(key);
  case Op::RoundIntegral:
    return selectFloat(key);
  default:
    break;
  }
  for (auto *select :
       {selectInteger, selectMultiply, selectBits, selectMove, selectFloat,
        selectHalf, selectApproximate, selectConvert, selectNarrow})
    if (LaneFn fn = select(key))
      return fn;
  return nullptr;
}

extern const LaneTable table;
const LaneTable table = {lanes, selectCompare};

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL
