//===- Print.cpp - Layouts as tables --------------------------------------===//
#include "dither/Layout/Print.h"

#include <algorithm>

namespace dither::layout {

static std::string coordText(const std::vector<int64_t> &coord) {
  std::string text = "(";
  for (size_t d = 0; d < coord.size(); ++d)
    text += (d ? "," : "") + std::to_string(coord[d]);
  return text + ")";
}

static bool isMemory(const RepeatedLayout &layout) {
  return layout.base().hasInDim(InDim::Offset);
}

namespace {
/// One place in hardware or memory and the element it holds.
struct Holder {
  std::string name;
  std::vector<int64_t> coord;
};
} // namespace

/// All places in order. `lineStart` is called before the first register of a
/// lane.
template <typename Start, typename Visit>
static void forEachHolder(const RepeatedLayout &layout, Start lineStart,
                          Visit visit) {
  const LinearLayout &base = layout.base();
  if (isMemory(layout)) {
    int64_t size = int64_t(base.inSize(InDim::Offset));
    for (int64_t i = 0; i < size * layout.numRepeats(); ++i) {
      std::vector<int64_t> coord = layout.repeatCoordinate(i / size);
      LinearLayout::Coord inner =
          base.apply({{InDim::Offset, uint64_t(i % size)}});
      for (unsigned d = 0; d < coord.size(); ++d)
        coord[d] = coord[d] * base.outSize(d) + inner[d];
      lineStart("offset " + std::to_string(i));
      visit(Holder{std::to_string(i), coord});
    }
    return;
  }
  for (int64_t warp = 0; warp < layout.numWarps(); ++warp)
    for (int64_t lane = 0; lane < layout.numLanes(); ++lane) {
      std::string prefix =
          layout.numWarps() > 1 ? std::to_string(warp) + "." : "";
      prefix += std::to_string(lane);
      lineStart((layout.numWarps() > 1 ? "warp " + std::to_string(warp) + " "
                                       : std::string()) +
                "lane " + std::to_string(lane));
      for (int64_t reg = 0; reg < layout.numRegs(); ++reg)
        visit(Holder{prefix + ":" + std::to_string(reg),
                     layout.coordinate(reg, uint64_t(lane), uint64_t(warp))});
    }
}

std::string hardwareView(const RepeatedLayout &layout) {
  std::string text;
  forEachHolder(
      layout,
      [&](const std::string &line) {
        text += (text.empty() ? "" : "\n") + line + ":";
      },
      [&](const Holder &holder) { text += " " + coordText(holder.coord); });
  return text + "\n";
}

std::string tensorView(const RepeatedLayout &layout) {
  std::vector<int64_t> shape = layout.shape();
  size_t count = 1;
  for (int64_t size : shape)
    count *= size_t(size);
  std::vector<std::string> cells(count);
  forEachHolder(
      layout, [](const std::string &) {},
      [&](const Holder &holder) {
        size_t index = 0;
        for (size_t d = 0; d < shape.size(); ++d)
          index = index * size_t(shape[d]) + size_t(holder.coord[d]);
        cells[index] += (cells[index].empty() ? "" : "|") + holder.name;
      });
  size_t width = 1;
  for (std::string &cell : cells) {
    if (cell.empty())
      cell = "-";
    width = std::max(width, cell.size());
  }
  size_t cols = shape.empty() ? 1 : size_t(shape.back());
  size_t rows = shape.size() < 2 ? 1 : size_t(shape[shape.size() - 2]);
  std::string text;
  for (size_t line = 0; line < count / cols; ++line) {
    if (shape.size() == 3 && line % rows == 0)
      text += "plane " + std::to_string(line / rows) + "\n";
    for (size_t col = 0; col < cols; ++col) {
      const std::string &cell = cells[line * cols + col];
      text += (col ? " " : "") + std::string(width - cell.size(), ' ') + cell;
    }
    text += "\n";
  }
  return text;
}

/// Bits of a mask as a list.
static std::string bitList(uint64_t mask) {
  std::string text;
  for (unsigned bit = 0; bit < 64; ++bit)
    if ((mask >> bit) & 1)
      text += (text.empty() ? "" : ",") + std::to_string(bit);
  return text;
}

std::string describe(const RepeatedLayout &layout) {
  const LinearLayout &base = layout.base();
  std::string text = "shape " + coordText(layout.shape());
  if (isMemory(layout))
    text += ", " +
            std::to_string(int64_t(base.inSize(InDim::Offset)) *
                           layout.numRepeats()) +
            " offsets, " +
            std::to_string(1u << base.numContiguous(InDim::Offset)) +
            " contiguous\n";
  else
    text += ", " + std::to_string(layout.numRegs()) + " registers, " +
            std::to_string(layout.numLanes()) + " lanes, " +
            std::to_string(layout.numWarps()) + " warps, " +
            std::to_string(1u << base.numContiguous()) +
            " contiguous registers\n";
  if (!base.isSurjective())
    text += "holds 2^" + std::to_string(base.rank()) + " of 2^" +
            std::to_string(base.totalOutBits()) + " elements of each tile\n";
  for (const auto &[dim, mask] : base.freeVariableMasks())
    if (mask)
      text +=
          "broadcast along " + toString(dim) + " bits " + bitList(mask) + "\n";
  return text;
}

} // namespace dither::layout
