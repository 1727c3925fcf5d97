#include "dispatch.h"
#include "pool.h"
#include "simd.h"

using namespace dither::limit;

LIMIT_API int32_t limit_quantize(int32_t format, int32_t input, const void *x,
                                 int64_t rows, int64_t cols, float amax,
                                 uint8_t *q, uint8_t *scale, int32_t threads) {
  return withInput(input, x, [&](auto *typed) {
    return withFormat(
        format, nonTemporal(rows * cols / 2, q, q),
        [&](auto f, auto stream) -> int32_t {
          constexpr LimitFormat Format = f.value;
          if (rows < 0 || cols < 0 || cols % blockOf<Format>() != 0)
            return LimitBadShape;
          const TensorScale tensor(amax);
          // Whole rows of whole blocks: the matrix is one row of blocks. 64
          // blocks keep every range's scales on lines of their own.
          parallelFor(rows * cols / blockOf<Format>(), 64, threads,
                      [&](int64_t begin, int64_t end) {
                        const auto *from = typed + begin * blockOf<Format>();
                        quantizeBlocks<Format, stream.value>(
                            from, end - begin, tensor,
                            q + begin * bytesOf<Format>(), scale + begin,
                            from + kAhead / int64_t(sizeof(*from)));
                      });
          return LimitOk;
        });
  });
}
