//===- Print.h - Layouts as tables ------------------------------*- C++ -*-===//
#ifndef DITHER_LAYOUT_PRINT_H
#define DITHER_LAYOUT_PRINT_H

#include "dither/Layout/RepeatedLayout.h"

namespace dither::layout {

/// What each lane holds: one line per lane of each warp, its registers in order
/// as coordinates. A layout from memory offsets prints one line per offset
/// instead.
std::string hardwareView(const RepeatedLayout &layout);

/// Who holds each element: one line per row (leading dimensions of rank 3 in
/// front), cells `lane:register` or `warp.lane:register` where there are
/// several warps, holders of the same element joined by '|', '-' for an element
/// nobody holds. A layout from memory offsets prints offsets.
std::string tensorView(const RepeatedLayout &layout);

/// Shape, numbers of registers, lanes and warps, contiguity, missing and
/// repeated elements.
std::string describe(const RepeatedLayout &layout);

} // namespace dither::layout

#endif // DITHER_LAYOUT_PRINT_H
