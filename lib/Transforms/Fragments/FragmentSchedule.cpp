//===- FragmentSchedule.cpp - The loops over fragments as data ------------===//

#include "Analysis/Describe.h"
#include "Fragments/FragmentPlan.h"
#include "Tiling/TilingEngine.h"

using namespace mlir;

namespace dither::transforms {

using Nodes = std::vector<Node>;

/// Whether a part along `cls` may reach past the end of the tile.
bool FragmentPlan::isOpen(int cls) const {
  return llvm::all_of(sinks, [&](const OrderedSink &sink) {
    return endsAtMemref(sink, [&](unsigned d) {
      return classes->member(sink.tile, d).cls == cls;
    });
  });
}

FailureOr<FragmentPlan::Segments> FragmentPlan::segments(int cls) const {
  if (cls < 0)
    return Segments{};
  const DimClasses::Class &info = (*classes)[cls];
  if (fits(info))
    return Segments{{0, 1, info.extent}};
  return segments(info.extent, stepOf(info), info.granule, isOpen(cls));
}

/// Parts of `step` and one or more smaller ones of whole granules. With `open`
/// the last one may reach past the end.
FailureOr<FragmentPlan::Segments> FragmentPlan::segments(int64_t extent,
                                                         int64_t step,
                                                         int64_t granule,
                                                         bool open) const {
  Segments out;
  if (int64_t count = extent / step)
    out.push_back({0, count, step});
  int64_t at = extent / step * step, rest = extent - at;
  if (rest == 0)
    return out;
  int64_t padded = powerOfTwoCeil(rest);
  if (padded != rest && padded % granule == 0 && open) {
    out.push_back({at, 1, padded});
    return out;
  }
  while (rest > 0) {
    int64_t piece = powerOfTwoFloor(rest);
    if (piece % granule != 0)
      return emitError(sinks.empty() ? block.getParentOp()->getLoc()
                                     : sinks.front().op->getLoc())
             << "a dimension of " << extent << " is computed " << step
             << " at a time, and what is left is no multiple of " << granule
             << ", its blocks: make it a multiple of " << step
             << ", or let the tile end where the tensor ends";
    out.push_back({at, 1, piece});
    at += piece;
    rest -= piece;
  }
  return out;
}

/// `body` in a loop for each segment; without a loop if there is none.
static Nodes over(Axis axis, ArrayRef<FragmentPlan::Segment> segments,
                  llvm::function_ref<Nodes(int64_t size)> body) {
  if (segments.empty())
    return body(1);
  Nodes nodes;
  for (const FragmentPlan::Segment &part : segments)
    nodes.push_back(Node::loop(axis, part.start,
                               part.start + part.count * part.size, part.size,
                               body(part.size)));
  return nodes;
}

/// The blocks of a class that are shorter than `height` and taller than a
/// fragment, tallest first: what belongs to one is computed once for it.
SmallVector<int64_t> FragmentPlan::blocksWithin(int cls, int64_t height) const {
  llvm::SetVector<int64_t> units;
  for (Value v : classes->values())
    for (int64_t d = 0; d < cast<RankedTensorType>(v.getType()).getRank(); ++d)
      if (DimClasses::Member m = classes->member(v, d); m.cls == cls)
        units.insert(m.unit);
  SmallVector<int64_t> sorted = units.takeVector();
  llvm::sort(sorted, std::greater<>());
  SmallVector<int64_t> blocks;
  for (int64_t unit : sorted)
    if (unit > rows && unit % rows == 0 && unit < height &&
        (blocks.empty() ? height : blocks.back()) % unit == 0)
      blocks.push_back(unit);
  return blocks;
}

/// Blocks taller than a fragment: what has a row for each block is stored once
/// for the block, what has all rows in parts of it, `heights` of them inside
/// each other.
Nodes FragmentPlan::takeBlocks(ArrayRef<OrderedSink> sinks, int row,
                               int64_t height,
                               ArrayRef<int64_t> heights) const {
  auto unitOf = [&](const OrderedSink &sink) -> int64_t {
    for (int64_t d = 0; d < sink.type().getRank(); ++d)
      if (DimClasses::Member m = classes->member(sink.tile, d); m.cls == row)
        return m.unit;
    return 0;
  };
  Nodes nodes;
  SmallVector<OrderedSink> inner;
  for (const OrderedSink &sink : sinks) {
    int64_t unit = heights.empty() ? 0 : unitOf(sink);
    if (unit && heights.front() % unit == 0)
      inner.push_back(sink);
    else
      nodes.push_back(Node::take(sink));
  }
  if (!inner.empty()) {
    int64_t step = heights.front();
    nodes.push_back(
        Node::loop(Axis::Rows, 0, height / step * step, step,
                   takeBlocks(inner, row, step, heights.drop_front())));
  }
  return nodes;
}

/// Loops over rows, in them what has a value for each row, and loops over
/// columns.
FailureOr<Nodes> FragmentPlan::rowsAndColumns(const Group &group) const {
  FailureOr<Segments> rowParts = segments(group.row),
                      colParts = segments(group.col);
  if (failed(rowParts) || failed(colParts))
    return failure();
  SmallVector<OrderedSink> rowSinks, tileSinks;
  for (const OrderedSink &sink : group.sinks) {
    bool hasCols = group.col < 0;
    for (int64_t d = 0; d < sink.type().getRank(); ++d)
      hasCols |= classes->member(sink.tile, d).cls == group.col;
    (hasCols ? tileSinks : rowSinks).push_back(sink);
  }
  return over(Axis::Rows, *rowParts, [&](int64_t height) {
    SmallVector<int64_t> heights;
    if (group.row >= 0 && height == (*classes)[group.row].granule &&
        height > rows && height % rows == 0 &&
        rows % (*classes)[group.row].atom == 0) {
      heights = blocksWithin(group.row, height);
      heights.push_back(rows);
    }
    Nodes nodes = takeBlocks(rowSinks, group.row, height, heights);
    llvm::append_range(nodes, over(Axis::Cols, *colParts, [&](int64_t) {
                         return takeBlocks(tileSinks, group.row, height,
                                           heights);
                       }));
    return nodes;
  });
}

/// A sink whose dimensions belong to one class, such as a square and its
/// transpose: each of them has a loop, and parts are squares. What a part is
/// computed from lies elsewhere in the tile, in parts as large.
FailureOr<Nodes> FragmentPlan::squares(const OrderedSink &sink) const {
  int64_t side = int64_t(1) << (llvm::Log2_64(rows * cols) / 2);
  SmallVector<Segments> parts;
  for (int64_t d = 0; d < sink.type().getRank(); ++d) {
    DimClasses::Member m = classes->member(sink.tile, d);
    int64_t extent = sink.type().getDimSize(d);
    int64_t granule = std::max<int64_t>(1, (*classes)[m.cls].granule / m.unit);
    int64_t step = std::max(granule, side / granule * granule);
    FailureOr<Segments> along =
        segments(extent, std::min(step, extent), granule, /*open=*/false);
    if (failed(along))
      return failure();
    parts.push_back(*along);
  }
  auto columns = [&](int64_t) {
    return parts.size() == 1 ? Nodes{Node::take(sink)}
                             : over(Axis::Cols, parts[1], [&](int64_t) {
                                 return Nodes{Node::take(sink)};
                               });
  };
  return over(Axis::Rows, parts[0], columns);
}

FailureOr<Schedule> FragmentPlan::schedule() const {
  Schedule out{&*classes, {}};
  for (Value root : roots) {
    auto type = cast<RankedTensorType>(root.getType());
    if (type.getNumElements() > rows * cols)
      return emitError(root.getLoc())
             << "a loop or a branch hands on " << describeTile(type)
             << ", expected at most " << rows * cols
             << " elements: use smaller tiles and more programs";
    // A value that is no tile computation (the result of a loop) stays.
    if (isComplete(root))
      continue;
    Nest &nest = out.nests.emplace_back(root.getDefiningOp(), root.getLoc());
    nest.body.push_back(Node::whole(root));
  }
  for (const Group &group : groups) {
    FailureOr<Nodes> body =
        group.squares ? squares(group.sinks.front()) : rowsAndColumns(group);
    if (failed(body))
      return failure();
    Nest &nest = out.nests.emplace_back(group.sinks.back().op,
                                        group.sinks.front().op->getLoc());
    nest.row = group.row;
    nest.col = group.col;
    nest.squares = group.squares;
    nest.body = std::move(*body);
  }
  return out;
}

} // namespace dither::transforms
