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

#include "dither/Layout/RepeatedLayout.h"

namespace dither::layout {

/// One tile: byte offset (512) to (row, column) of (128, 4).
LinearLayout scaleFactor128x4();

/// The whole matrix of rows x cols scales (padded up to whole tiles) as tiles
/// repeated row-major. Errors: sizes below 1 or a matrix that is too large.
Result<RepeatedLayout> scaleFactorLayout(int64_t rows, int64_t cols);

struct MatrixCoord {
  int64_t row, col;
  bool operator==(const MatrixCoord &o) const {
    return row == o.row && col == o.col;
  }
};

/// rows and cols rounded up to multiples of 128 and 4; their product is the
/// size in bytes.
MatrixCoord scaleFactorPaddedShape(int64_t rows, int64_t cols);

/// Byte offset of scale (row, col) in a matrix with `cols` columns before
/// padding.
int64_t scaleFactorOffset(int64_t row, int64_t col, int64_t cols);

/// The scale (possibly padding) at a byte offset: the inverse of
/// scaleFactorOffset.
MatrixCoord scaleFactorCoordinate(int64_t offset, int64_t cols);

} // namespace dither::layout

#endif // DITHER_LAYOUT_SCALEFACTORLAYOUT_H
