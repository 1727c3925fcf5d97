//===- ReductionOrder.h - The order of sums and maxima ----------*- C++ -*-===//
//
// Sums of floats depend on their order, so the order is a function of the
// number of elements N alone, never of the tile, the target or other
// dimensions:
//
//   W = clamp(bit_floor(max(1, N / 1024)), 1, 8),  P = 256 W
//   acc[r] = x[r] + x[r + P] + x[r + 2P] + ..      from left to right, r < P
//   result = pairwise tree over the bits of r, from the lowest to the highest
//
// Missing elements count as -0.0, the identity of addition.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_REDUCTIONORDER_H
#define DITHER_NUMERICS_REDUCTIONORDER_H

#include <cstdint>

namespace dither::numerics {

/// P, the number of chains in a sum of n elements: 256, 512, 1024 or 2048.
constexpr int64_t sumChains(int64_t n) {
  int64_t w = 1;
  while (w < 8 && 2 * w * 1024 <= n)
    w *= 2;
  return 256 * w;
}

/// The largest sumChains.
inline constexpr int64_t kMaxSumChains = 2048;

/// Sum of x[0], x[stride], .., x[(n - 1) stride], each addition rounded to
/// binary32. No elements: -0.0.
float sum(const float *x, int64_t n, int64_t stride = 1);

/// The larger of a running maximum of magnitudes and |x|; a NaN x is ignored.
float amaxStep(float amax, float x);

/// Maximum of |x| over n elements, starting from +0: NaNs are ignored, and no
/// or only NaN elements give +0. The result does not depend on the order.
float amax(const float *x, int64_t n, int64_t stride = 1);

} // namespace dither::numerics

#endif // DITHER_NUMERICS_REDUCTIONORDER_H
