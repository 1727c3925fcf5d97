//===- EmitCopy.cpp - Copies from global to shared memory -----------------===//

#include "Emit/Gpu.h"
#include "Emit/MemoryAccess.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dither::transforms {

/// cp.async moves 4, 8 or 16 bytes (PTX ISA, Asynchronous copy).
constexpr int64_t kLeastCopied = 4, kMostCopied = 16;

LogicalResult Emitter::copy(const TileAccess &from, const TileAccess &to) {
  LaneAccess source(*this, from), target(*this, to);
  int64_t bits = source.bits;
  int64_t step = std::min({source.step, target.step, kMostCopied * 8 / bits});
  int64_t bytes = step * bits / 8;
  bool isWhole = from.inBounds && to.inBounds && source.disjoint;
  for (int64_t d = 0; d < source.rank; ++d)
    isWhole &= !source.padded(d);
  if (!isWhole || bytes < kLeastCopied) {
    FailureOr<Registers> tile = load(from);
    return failed(tile) ? failure() : store(to, *tile);
  }
  OpBuilder::InsertionGuard guard(b);
  if (Value owner = target.owner()) {
    auto branch = make<scf::IfOp>(TypeRange{}, owner, false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  for (int64_t reg = 0; reg < from.layout.numRegs(); reg += step)
    // The widest copies go past the first cache, whose lines they fill.
    gpu::copyAsync(b, loc, target.address(reg), source.address(reg), bytes,
                   /*past=*/bytes == kMostCopied);
  return success();
}

} // namespace dither::transforms
