//===- ThreadWords.cpp - What a thread has in shared memory ---------------===//

#include "Emit/ThreadWords.h"

using namespace mlir;

namespace dither::transforms {

ThreadWords::ThreadWords(Emitter &e, const layout::LinearLayout &lanes,
                         Value base, Type type)
    : e(e), base(base), type(type) {
  // Bits of the index that move by as many places do so at once.
  std::map<int64_t, int64_t> masks;
  auto add = [&](layout::InDim dim, int64_t firstBit) {
    for (unsigned i = 0, n = lanes.inBits(dim); i < n; ++i) {
      int64_t image = lanes.basis(dim, i)[0], from = firstBit + i;
      bits |= image;
      for (int64_t to = 0; image >> to; ++to)
        if (image >> to & 1)
          masks[to - from] |= int64_t(1) << from;
    }
  };
  add(layout::InDim::Lane, 0);
  add(layout::InDim::Warp, 5);
  for (auto [up, mask] : masks) {
    Value part = e.make<arith::AndIOp>(e.tid, e.i32(mask));
    if (up > 0)
      part = e.make<arith::ShLIOp>(part, e.i32(up));
    if (up < 0)
      part = e.make<arith::ShRUIOp>(part, e.i32(-up));
    thread = thread ? Value(e.make<arith::XOrIOp>(thread, part)) : part;
  }
  if (!thread)
    thread = e.i32(0);
}

Value ThreadWords::address(int64_t offset, int64_t past) {
  // Bits that no thread has are added, which an access does for nothing.
  int64_t mixed = offset & bits, added = past + (offset & ~bits);
  Value &at = starts[mixed];
  if (!at) {
    Value word =
        mixed ? Value(e.make<arith::XOrIOp>(thread, e.i32(mixed))) : thread;
    at = e.make<LLVM::GEPOp>(base.getType(), type, base,
                             ArrayRef<LLVM::GEPArg>{word});
  }
  if (!added)
    return at;
  return e.make<LLVM::GEPOp>(base.getType(), type, at,
                             ArrayRef<LLVM::GEPArg>{int32_t(added)});
}

} // namespace dither::transforms
