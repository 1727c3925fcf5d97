//===- ScheduleBuilder.cpp - Builds the loops of a schedule ---------------===//

#include "Schedule/ScheduleBuilder.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dither::transforms {

LogicalResult ScheduleBuilder::build(const Schedule &schedule) {
  classes = schedule.classes;
  for (const Nest &next : schedule.nests) {
    nest = &next;
    engine.emplace(next.before, [this](Value v, Offsets offsets, Sizes sizes) {
      return resolve(v, offsets, sizes);
    });
    if (failed(begin(next)) || failed(buildBody(next.body)))
      return failure();
  }
  llvm::SetVector<Operation *> sinks;
  std::function<void(const std::vector<Node> &)> collect =
      [&](const std::vector<Node> &body) {
        for (const Node &node : body) {
          if (node.sink)
            sinks.insert(node.sink);
          collect(node.body);
        }
      };
  for (const Nest &done : schedule.nests)
    collect(done.body);
  for (Operation *sink : sinks)
    sink->erase();
  return success();
}

LogicalResult ScheduleBuilder::buildBody(const std::vector<Node> &body) {
  for (const Node &node : body)
    if (failed(node.kind == Node::Loop ? buildLoop(node) : buildNode(node)))
      return failure();
  return success();
}

LogicalResult ScheduleBuilder::buildNode(const Node &node) {
  switch (node.kind) {
  case Node::Whole:
    return success(succeeded(engine->materialize(node.tile)));
  case Node::Take: {
    SmallVector<Index> offsets;
    SmallVector<int64_t> sizes;
    place(node.tile, offsets, sizes);
    return engine->tileSink(node.sink, offsets, sizes);
  }
  default:
    llvm_unreachable("a node that this schedule does not have");
  }
}

Value ScheduleBuilder::foundSpecial() {
  if (!found)
    found = arith::ConstantOp::create(builder(), nest->loc,
                                      builder().getBoolAttr(false));
  return found;
}

LogicalResult ScheduleBuilder::buildLoop(const Node &loop) {
  using Values = TilingEngine::Values;
  auto resolved = [&](Bound bound) {
    return bound.kind == Bound::Constant ? index(bound.value) : boundOf(bound);
  };
  Index from = resolved(loop.from), to = resolved(loop.to);
  // A loop over loops finds out anew in each step.
  bool anew = loop.asks && llvm::none_of(loop.body, [](const Node &node) {
                return node.kind == Node::Ask;
              });
  Values inits;
  if (loop.asks)
    inits.push_back(foundSpecial());
  FailureOr<Values> done = engine->forLoop(
      nest->loc, from, to, loop.step, inits,
      [&](Index iv, ValueRange carried) -> FailureOr<Values> {
        Position &position = positions[unsigned(loop.axis)];
        Position outer = position;
        position.at =
            outer.at ? quant::addOffsets(builder(), nest->loc, outer.at, iv)
                     : iv;
        if (!outer.outermost)
          position.outermost = iv;
        position.extent = loop.step;
        if (loop.asks)
          found = anew ? Value() : carried.front();
        bool around = std::exchange(inside, loop.inside);
        LogicalResult built = buildBody(loop.body);
        inside = around;
        position = outer;
        if (failed(built))
          return failure();
        if (!loop.asks)
          return Values{};
        if (!anew)
          return Values{found};
        return Values{arith::OrIOp::create(builder(), nest->loc,
                                           carried.front(), foundSpecial())};
      },
      loop.barrier);
  if (failed(done))
    return failure();
  if (loop.asks)
    found = done->front();
  return success();
}

void ScheduleBuilder::place(Value tile, SmallVectorImpl<Index> &offsets,
                            SmallVectorImpl<int64_t> &sizes) {
  auto type = cast<RankedTensorType>(tile.getType());
  for (int64_t d = 0; d < type.getRank(); ++d) {
    std::optional<Axis> axis;
    int64_t unit = 1;
    if (nest->squares) {
      axis = d == 0 ? Axis::Rows : Axis::Cols;
    } else if (DimClasses::Member m = classes->member(tile, d); m.cls >= 0) {
      unit = m.unit;
      axis = m.cls == nest->row   ? std::optional(Axis::Rows)
             : m.cls == nest->col ? std::optional(Axis::Cols)
                                  : std::nullopt;
    }
    offsets.push_back(index(0));
    sizes.push_back(type.getDimSize(d));
    if (!axis)
      continue;
    const Position &position = positions[unsigned(*axis)];
    if (!position.at)
      continue;
    offsets.back() =
        quant::scaleOffset(builder(), nest->loc, position.at, 1, unit);
    sizes.back() = position.extent / unit;
  }
}

FailureOr<Value> ScheduleBuilder::part(Value tile) {
  SmallVector<Index> offsets;
  SmallVector<int64_t> sizes;
  place(tile, offsets, sizes);
  return engine->materialize(tile, offsets, sizes);
}

} // namespace dither::transforms
