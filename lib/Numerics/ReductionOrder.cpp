//===- ReductionOrder.cpp - The order of sums and maxima ------------------===//

#include "dither/Numerics/ReductionOrder.h"

#include <algorithm>
#include <cmath>

namespace dither::numerics {

float sum(const float *x, int64_t n, int64_t stride) {
  if (n <= 0)
    return -0.0f;
  int64_t chains = sumChains(n), held = std::min(chains, n);
  float acc[kMaxSumChains];
  for (int64_t r = 0; r < held; ++r) {
    acc[r] = x[r * stride];
    for (int64_t i = r + chains; i < n; i += chains)
      acc[r] += x[i * stride];
  }
  // A level of the tree joins neighbours; an accumulator without one moves up
  // as it is, which is what adding -0.0 does.
  for (; held > 1; held = (held + 1) / 2)
    for (int64_t r = 0; r < held; r += 2)
      acc[r / 2] = r + 1 < held ? acc[r] + acc[r + 1] : acc[r];
  return acc[0];
}

float amaxStep(float amax, float x) {
  float magnitude = std::fabs(x);
  return magnitude > amax ? magnitude : amax;
}

float amax(const float *x, int64_t n, int64_t stride) {
  float result = 0;
  for (int64_t i = 0; i < n; ++i)
    result = amaxStep(result, x[i * stride]);
  return result;
}

} // namespace dither::numerics
