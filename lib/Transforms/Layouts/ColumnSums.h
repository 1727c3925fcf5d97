//===- ColumnSums.h - Sums down the columns of a tile -----------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_COLUMNSUMS_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_COLUMNSUMS_H

#include "Layouts/LayoutRules.h"

namespace dither::transforms {

/// Parts of a sum that a lane takes, whatever their number, where others have
/// copies of the sum.
constexpr int64_t kMostParts = 16;

/// Whether a sum, whose operand has a layout, takes fewer instructions where
/// what lanes have added up of each column meets in one lane than where lanes
/// and warps exchange it, bit by bit: lanes have parts of several columns.
bool gathers(quant::ReduceOp sum, const LayoutRules &rules);

/// Adds up what the registers of a lane have of each column, pair by pair, and
/// makes the sum one of these parts. Bits do not change: neighbouring rows are
/// first in the order of sums.
void addOwnRows(quant::ReduceOp sum, const LayoutRules &rules);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_COLUMNSUMS_H
