//===- ScaleFactorLayout.h - The 128x4 order of scale factors ---*- C++ -*-===//
//
// Block-scaled matrix instructions read scale factors in tiles of 128 rows and
// 4 columns, 512 bytes each, row-major over the tiles of the zero-padded matrix
// ("1D block scaling factors layout" in the cuBLAS documentation):
//
//   offset(r, c) = ((r / 128) * Ct + c / 4) * 512
//                + (r % 32) * 16 + (r % 128 / 32) * 4 + c % 4,   Ct = ceil(C /
//                4)
//
// Inside a tile this is a permutation of coordinate bits.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_SCALEFACTORLAYOUT_H
#define DITHER_LAYOUT_SCALEFACTORLAYOUT_H

#include "dither/Layout/LinearLayout.h"

namespace dither::layout {

/// One tile: byte offset (512) to (row, column) of (128, 4).
LinearLayout scaleFactor128x4();

} // namespace dither::layout

#endif // DITHER_LAYOUT_SCALEFACTORLAYOUT_H
