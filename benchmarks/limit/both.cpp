// MXFP8 rowwise and columnwise from one read: of tiles 32 rows high, and so
// wide that the second pass over one finds it in the first cache.
#include "dispatch.h"
#include "pool.h"
#include "simd.h"

using namespace dither::limit;

namespace {

struct Outputs {
  uint8_t *rowQ, *rowScale, *colQ, *colScale;
};

// Columns of a tile: one group of row blocks. 32 KiB of bf16, 64 KiB of f32.
constexpr int kTile = 512;

inline Int maxMagnitude(const uint16_t *x, Int sofar) {
  return _mm512_max_epu16(sofar, _mm512_and_si512(load(x), splat(0x7FFF7FFF)));
}
inline Int maxMagnitude(const float *x, Int sofar) {
  return _mm512_max_epu32(sofar, _mm512_and_si512(load(x), splat(0x7FFFFFFF)));
}
/// Scales of the columns in one register of maxima; the multipliers replace the
/// maxima, bf16 as bf16 (they are powers of two).
inline void columnScales(const uint16_t *, Int &maxima, uint8_t *scale) {
  Int even = e8m0Rceil(_mm512_mul_ps(asFloat(_mm512_slli_epi32(maxima, 16)),
                                     splatf(1.0F / 448.0F)));
  Int odd = e8m0Rceil(
      _mm512_mul_ps(asFloat(_mm512_and_si512(maxima, splat(0xFFFF0000))),
                    splatf(1.0F / 448.0F)));
  Int e = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(scale),
                      _mm512_cvtepi16_epi8(e));
  maxima = _mm512_slli_epi16(_mm512_sub_epi16(splat(0x00FE00FE), e), 7);
}
inline void columnScales(const float *, Int &maxima, uint8_t *scale) {
  Int e = e8m0Rceil(_mm512_mul_ps(asFloat(maxima), splatf(1.0F / 448.0F)));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(scale), _mm512_cvtepi32_epi8(e));
  maxima = _mm512_slli_epi32(_mm512_sub_epi32(splat(254), e), 23);
}

inline void multipliers(const uint16_t *, const Int *r, Float (&m)[4]) {
  for (int i = 0; i < 2; ++i) {
    m[2 * i] = asFloat(_mm512_slli_epi32(r[i], 16));
    m[2 * i + 1] = asFloat(_mm512_and_si512(r[i], splat(0xFFFF0000)));
  }
}
inline void multipliers(const float *, const Int *r, Float (&m)[4]) {
  for (int i = 0; i < 4; ++i)
    m[i] = asFloat(r[i]);
}

template <typename T>
__attribute__((noinline)) void scalarColumns(const T *x, int64_t stride,
                                             int columns, uint8_t *q,
                                             uint8_t *scale) {
  const TensorScale tensor(0);
  for (int c = 0; c < columns; ++c) {
    float multiplier;
    scale[c] = blockScale<LimitMXFP8>(blockAmax(x + c, stride, 32), tensor,
                                      multiplier);
    for (int r = 0; r < 32; ++r)
      q[r * stride + c] = encodeE4M3(widen(x[r * stride + c]) * multiplier);
  }
}

template <typename T>
void scalarTile(const T *x, int64_t cols, int columns, const Outputs &out) {
  const TensorScale tensor(0);
  for (int r = 0; r < 32; ++r)
    scalarBlocks<LimitMXFP8>(x + r * cols, columns / 32, tensor,
                             out.rowQ + r * cols,
                             out.rowScale + r * (cols / 32));
  scalarColumns(x, cols, columns, out.colQ, out.colScale);
}

/// One tile; all pointers at its first element, `next` at that of the tile
/// after it. The first pass takes the maxima in both directions, the second
/// encodes each element twice while the next tile comes from memory.
template <bool NonTemporal, typename T>
void tile(const T *x, const T *next, int64_t cols, const Outputs &out) {
  constexpr int lanes = 64 / int(sizeof(T)), registers = kTile / lanes,
                perChunk = 64 / lanes;
  const TensorScale tensor(0);
  Int columns[registers], worst = _mm512_setzero_si512();
  alignas(64) float rowMultipliers[32][16];
  for (int i = 0; i < registers; ++i)
    columns[i] = _mm512_setzero_si512();
  for (int r = 0; r < 32; ++r) {
    const T *row = x + r * cols;
    Int maxima = maxima32(row);
#pragma GCC unroll 32
    for (int i = 0; i < registers; ++i)
      columns[i] = maxMagnitude(row + i * lanes, columns[i]);
    worst = _mm512_max_epu32(worst, maxima);
    Float multipliers;
    _mm_storeu_si128(
        reinterpret_cast<__m128i *>(out.rowScale + r * (cols / 32)),
        scales16<LimitMXFP8>(maxima, tensor, multipliers));
    _mm512_store_ps(rowMultipliers[r], multipliers);
  }
  if (__builtin_expect(_mm512_cmpge_epu32_mask(worst, splat(0x7F800000)) != 0,
                       0))
    return scalarTile(x, cols, kTile, out);
  for (int i = 0; i < registers; ++i)
    columnScales(x, columns[i], out.colScale + i * lanes);
  for (int r = 0; r < 32; ++r) {
    const T *row = x + r * cols;
    const float *one = rowMultipliers[r];
#pragma GCC unroll 8
    for (int c = 0; c < kTile / 64; ++c) {
      for (int line = 0; line < perChunk; ++line)
        _mm_prefetch(reinterpret_cast<const char *>(next + r * cols + 64 * c +
                                                    line * lanes),
                     _MM_HINT_T1);
      Chunk chunk = loadChunk(row + 64 * c);
      Float m[4] = {splatf(one[2 * c]), splatf(one[2 * c]),
                    splatf(one[2 * c + 1]), splatf(one[2 * c + 1])};
      store<NonTemporal>(out.rowQ + r * cols + 64 * c, encodeE4M3<T>(chunk, m));
      multipliers(x, columns + c * perChunk, m);
      store<NonTemporal>(out.colQ + r * cols + 64 * c, encodeE4M3<T>(chunk, m));
    }
  }
}

/// 32 rows, all columns.
template <bool NonTemporal, typename T>
void band(const T *x, int64_t cols, const Outputs &out) {
  int64_t c = 0;
  for (; c + kTile <= cols; c += kTile) {
    // The last tile of a band fetches the first of the next; past the end of
    // the matrix a prefetch does nothing.
    const T *next = c + 2 * kTile <= cols ? x + c + kTile : x + 32 * cols;
    tile<NonTemporal>(
        x + c, next, cols,
        {out.rowQ + c, out.rowScale + c / 32, out.colQ + c, out.colScale + c});
  }
  if (c < cols)
    scalarTile(
        x + c, cols, int(cols - c),
        {out.rowQ + c, out.rowScale + c / 32, out.colQ + c, out.colScale + c});
}

} // namespace

LIMIT_API int32_t limit_quantize_both(int32_t input, const void *x,
                                      int64_t rows, int64_t cols, uint8_t *rowQ,
                                      uint8_t *rowScale, uint8_t *colQ,
                                      uint8_t *colScale, int32_t threads) {
  if (rows < 0 || cols < 0 || rows % 32 != 0 || cols % 32 != 0)
    return LimitBadShape;
  // A row starts on a line only where cols is a multiple of 64.
  bool stream = nonTemporal(2 * rows * cols, rowQ, colQ) && cols % 64 == 0;
  return withInput(input, x, [&](auto *typed) -> int32_t {
    parallelFor(rows / 32, 1, threads, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Outputs out{rowQ + 32 * b * cols, rowScale + b * cols,
                    colQ + 32 * b * cols, colScale + b * cols};
        if (stream)
          band<true>(typed + 32 * b * cols, cols, out);
        else
          band<false>(typed + 32 * b * cols, cols, out);
      }
    });
    return LimitOk;
  });
}
