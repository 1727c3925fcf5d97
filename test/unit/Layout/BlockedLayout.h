//===- BlockedLayout.h - Tiles in lanes, for tests --------------*- C++ -*-===//
#ifndef DITHER_TEST_UNIT_LAYOUT_BLOCKEDLAYOUT_H
#define DITHER_TEST_UNIT_LAYOUT_BLOCKEDLAYOUT_H

#include "dither/Layout/LinearLayout.h"

namespace dither::layout {

/// What a lane holds first: a square of `side` rows and columns, then `vec`
/// elements along the fastest dimension.
struct Blocked {
  uint32_t vec = 1, lanes = 32, warps = 1;
  bool columnMajor = false;
  uint32_t side = 1;
};

/// The coordinate bits of a rows x cols tile, those of the fastest dimension
/// first, dealt to a lane's elements, lanes and warps, and what is left to
/// registers. Lanes and warps past the tile are broadcasts.
inline LinearLayout blockedLayout(uint32_t rows, uint32_t cols,
                                  const Blocked &b) {
  LinearLayout::Input reg{InDim::Reg, {}}, lane{InDim::Lane, {}},
      warp{InDim::Warp, {}};
  for (uint32_t step = 1; step < b.side; step *= 2)
    reg.bases.push_back({0, step});
  for (uint32_t step = 1; step < b.side; step *= 2)
    reg.bases.push_back({step, 0});
  std::vector<LinearLayout::Coord> bits;
  for (bool ofRows : {b.columnMajor, !b.columnMajor})
    for (uint32_t step = b.side; step < (ofRows ? rows : cols); step *= 2)
      bits.push_back(ofRows ? LinearLayout::Coord{step, 0}
                            : LinearLayout::Coord{0, step});
  size_t next = 0;
  auto deal = [&](LinearLayout::Input &into, uint32_t count) {
    for (uint32_t n = 1; n < count; n *= 2)
      into.bases.push_back(next < bits.size() ? bits[next++]
                                              : LinearLayout::Coord{0, 0});
  };
  deal(reg, b.vec);
  deal(lane, b.lanes);
  deal(warp, b.warps);
  while (next < bits.size())
    reg.bases.push_back(bits[next++]);
  return *LinearLayout::get({reg, lane, warp}, {rows, cols});
}

} // namespace dither::layout

#endif // DITHER_TEST_UNIT_LAYOUT_BLOCKEDLAYOUT_H
