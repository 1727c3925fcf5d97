// A persistent pool of threads that share the items [0, n) of a loop.
#ifndef DITHER_BENCHMARKS_LIMIT_POOL_H
#define DITHER_BENCHMARKS_LIMIT_POOL_H

#include <cstdint>

namespace dither::limit {

using RangeFn = void (*)(const void *context, int64_t begin, int64_t end);

/// Calls fn on disjoint ranges that cover [0, items), from the caller and
/// threads - 1 workers; returns when all are done. Ranges are multiples of
/// `grain` but for the last. One loop at a time. Workers flush no subnormals.
void parallelRanges(int64_t items, int64_t grain, int threads, RangeFn fn,
                    const void *context);

/// As above, for a callable taking (int64_t begin, int64_t end).
template <typename Callable>
void parallelFor(int64_t items, int64_t grain, int threads,
                 const Callable &callable) {
  parallelRanges(
      items, grain, threads,
      [](const void *context, int64_t begin, int64_t end) {
        (*static_cast<const Callable *>(context))(begin, end);
      },
      &callable);
}

} // namespace dither::limit

#endif
