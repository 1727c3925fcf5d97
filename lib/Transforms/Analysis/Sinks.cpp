//===- Sinks.cpp - Where tiles go -----------------------------------------===//

#include "Analysis/Sinks.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace dither::transforms {

std::optional<Sink> asSink(Operation *op) {
  if (auto store = dyn_cast<quant::StoreOp>(op))
    return Sink{op, store.getTile(), store.getMemref(), store.getIndices()};
  if (auto scatter = dyn_cast<quant::ScatterOp>(op))
    return Sink{op, scatter.getTile(), scatter.getMemref(),
                op->getOperands().take_back()};
  if (auto atomic = dyn_cast<quant::AtomicOpInterface>(op))
    return Sink{op, atomic.getTile(), atomic.getMemref(), atomic.getIndices()};
  return std::nullopt;
}

bool endsAtMemref(const Sink &sink,
                  llvm::function_ref<bool(unsigned)> follows) {
  RankedTensorType tile = sink.type();
  auto memref = cast<MemRefType>(sink.memref.getType());
  bool namesRows = isa<quant::ScatterOp>(sink.op);
  for (int64_t d = 0; d < tile.getRank(); ++d) {
    if (!follows(d))
      continue;
    int64_t dim = memref.getRank() - tile.getRank() + d;
    if (namesRows || dim < 0 || memref.isDynamicDim(dim))
      return false;
    std::optional<int64_t> at = getConstantIntValue(sink.indices[dim]);
    if (!at || *at + tile.getDimSize(d) < memref.getDimSize(dim))
      return false;
  }
  return true;
}

} // namespace dither::transforms
