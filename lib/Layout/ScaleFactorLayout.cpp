//===- ScaleFactorLayout.cpp - The 128x4 order of scale factors -----------===//
#include "dither/Layout/ScaleFactorLayout.h"

namespace dither::layout {

LinearLayout scaleFactor128x4() {
  // c % 4, then the two high bits of the row, then its five low bits.
  return *LinearLayout::get({{InDim::Offset,
                              {{0, 1},
                               {0, 2},
                               {32, 0},
                               {64, 0},
                               {1, 0},
                               {2, 0},
                               {4, 0},
                               {8, 0},
                               {16, 0}}}},
                            {128, 4});
}

} // namespace dither::layout
