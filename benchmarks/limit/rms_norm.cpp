// RMSNorm and rowwise quantize. A row is read from memory once: its statistics,
// then y into a buffer in the first cache, then the codes from there. y that is
// rounded to bf16 is kept as bf16.
#include "dispatch.h"
#include "pool.h"
#include "simd.h"

#include <algorithm>
#include <vector>

using namespace dither::limit;

namespace {

/// 32 elements: bf16 as even and odd ones, f32 in order.
struct Pair {
  Float a, b;
};
inline Pair load32(const uint16_t *x) {
  Int raw = load(x);
  return {asFloat(_mm512_slli_epi32(raw, 16)),
          asFloat(_mm512_and_si512(raw, splat(0xFFFF0000)))};
}
inline Pair load32(const float *x) {
  return {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
}

// Sums of neighbouring elements of a and b, then of neighbouring pairs, and so
// on: every level halves two registers into one.
inline Float addPairs(Float a, Float b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88),
                       _mm512_shuffle_ps(a, b, 0xDD));
}
inline Float addLanes(Float a, Float b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                       _mm512_shuffle_f32x4(a, b, 0xDD));
}

/// Pairwise sums, lowest index bit first, of each of 8 times 32 elements; lanes
/// 0 to 7 hold them in order. The first level adds even elements to odd ones.
/// Two levels within 128-bit lanes leave sums of register 4 k + i in element i
/// of each lane; two more add the lanes.
inline Float sumsOf32(const Pair *p, const uint16_t *) {
  Float s[8], q[2];
  for (int i = 0; i < 8; ++i)
    s[i] = _mm512_add_ps(p[i].a, p[i].b);
  for (int k = 0; k < 2; ++k)
    q[k] = addPairs(addPairs(s[4 * k], s[4 * k + 1]),
                    addPairs(s[4 * k + 2], s[4 * k + 3]));
  Float lanes = addLanes(q[0], q[1]);
  return addLanes(lanes, lanes);
}
inline Float sumsOf32(const Pair *p, const float *) {
  Float q[4];
  for (int i = 0; i < 4; ++i)
    q[i] = addPairs(addPairs(p[2 * i].a, p[2 * i].b),
                    addPairs(p[2 * i + 1].a, p[2 * i + 1].b));
  // Lane i of the sum of lanes is the sum of register i: one level more.
  Float sums = addLanes(addLanes(q[0], q[1]), addLanes(q[2], q[3]));
  Float pairs = addPairs(sums, sums);
  return _mm512_castpd_ps(_mm512_permutexvar_pd(
      _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), _mm512_castps_pd(pairs)));
}

/// Sum of squares in the canonical order: W = clamp(bit_floor(max(1, n /
/// 1024)), 1, 8) chains, P = 256 W sequential sums over x[o P + r], then a
/// pairwise tree over the bits of r from the lowest. Missing elements add 0,
/// which changes no sum of squares.
template <typename T> float sumOfSquares(const T *x, int64_t n) {
  int chains = 1;
  while (chains < 8 && chains * 2 <= n / 1024)
    chains *= 2;
  const int64_t width = 256 * chains;
  float sums[64 + 8]; // of 32 elements each
  for (int64_t part = 0; part < width; part += 256) {
    Pair acc[8] = {};
    auto add = [&acc](const T *from) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        Pair v = load32(from + 32 * i);
        acc[i].a = _mm512_add_ps(acc[i].a, _mm512_mul_ps(v.a, v.a));
        acc[i].b = _mm512_add_ps(acc[i].b, _mm512_mul_ps(v.b, v.b));
      }
    };
    int64_t base = part;
    for (; base + 256 <= n; base += width)
      add(x + base);
    if (base < n) {
      T rest[256] = {};
      std::memcpy(rest, x + base, std::min<int64_t>(n - base, 256) * sizeof(T));
      add(rest);
    }
    _mm512_storeu_ps(sums + part / 32, sumsOf32(acc, x));
  }
  for (int64_t count = width / 32; count > 1; count /= 2)
    for (int64_t i = 0; i < count / 2; ++i)
      sums[i] = sums[2 * i] + sums[2 * i + 1];
  return sums[0];
}

inline Pair scaled(const Pair &x, const Pair &gamma, Float rs) {
  return {_mm512_mul_ps(gamma.a, _mm512_mul_ps(rs, x.a)),
          _mm512_mul_ps(gamma.b, _mm512_mul_ps(rs, x.b))};
}

/// RNE to bf16, in the upper half of each dword; not for NaN.
inline Int roundUpper(Float y) {
  Int odd = _mm512_and_si512(_mm512_srli_epi32(asInt(y), 16), splat(1));
  return _mm512_add_epi32(_mm512_add_epi32(asInt(y), splat(0x7FFF)), odd);
}

/// y as fp32; n is a multiple of 16.
inline void normalize(const float *x, const float *gamma, int64_t n, Float rs,
                      float *y) {
  for (int64_t i = 0; i < n; i += 16)
    _mm512_store_ps(y + i,
                    _mm512_mul_ps(_mm512_loadu_ps(gamma + i),
                                  _mm512_mul_ps(rs, _mm512_loadu_ps(x + i))));
}
inline Float widen16(const uint16_t *x) {
  return asFloat(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(
                                       reinterpret_cast<const __m256i *>(x))),
                                   16));
}
inline void normalize(const uint16_t *x, const uint16_t *gamma, int64_t n,
                      Float rs, float *y) {
  for (int64_t i = 0; i < n; i += 16)
    _mm512_store_ps(y + i, _mm512_mul_ps(widen16(gamma + i),
                                         _mm512_mul_ps(rs, widen16(x + i))));
}

uint16_t roundScalar(float y) {
  uint32_t bits = bitsOf(y);
  if (y != y)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// y rounded to bf16. `finite`: no NaN can come of it.
void normalize(const uint16_t *x, const uint16_t *gamma, int64_t n, float rs,
               bool finite, uint16_t *y) {
  int64_t i = 0;
  if (finite)
    for (; i + 32 <= n; i += 32) {
      Pair v = scaled(load32(x + i), load32(gamma + i), splatf(rs));
      Int even = _mm512_srli_epi32(roundUpper(v.a), 16);
      store<false>(reinterpret_cast<uint8_t *>(y + i),
                   select(splat(0xFFFF0000), roundUpper(v.b), even));
    }
  for (; i < n; ++i)
    y[i] = roundScalar(widen(gamma[i]) * (rs * widen(x[i])));
}

/// A row's scratch, aligned to 64 bytes and kept for the thread's next rows.
void *scratch(int64_t n) {
  thread_local std::vector<float> storage;
  if (int64_t(storage.size()) < n + 16)
    storage.resize(size_t(n + 16));
  uintptr_t address = reinterpret_cast<uintptr_t>(storage.data());
  return reinterpret_cast<void *>((address + 63) & ~uintptr_t(63));
}

template <LimitFormat Format, bool NonTemporal, typename T> struct Norm {
  const T *x, *gamma;
  int64_t cols;
  float eps;
  TensorScale tensor;
  bool round, gammaFinite;
  uint8_t *q, *scale;
  float *rsigma;

  void row(int64_t r) const {
    const int64_t blocks = cols / blockOf<Format>();
    const T *from = x + r * cols;
    float sum = sumOfSquares(from, cols);
    float rs = 1.0F / std::sqrt(sum * (1.0F / float(cols)) + eps);
    if (rsigma)
      rsigma[r] = rs;
    uint8_t *rowQ = q + r * blocks * bytesOf<Format>();
    uint8_t *rowScale = scale + r * blocks;
    if constexpr (sizeof(T) == 2) {
      if (round) {
        // A finite sum bounds x, and then rs, so that no product overflows.
        bool finite = gammaFinite && sum < INFINITY && rs < INFINITY;
        auto *y = static_cast<uint16_t *>(scratch(cols));
        normalize(from, gamma, cols, rs, finite, y);
        quantizeBlocks<Format, NonTemporal>(y, blocks, tensor, rowQ, rowScale,
                                            from + cols);
        return;
      }
    }
    auto *y = static_cast<float *>(scratch(cols));
    normalize(from, gamma, cols, splatf(rs), y);
    quantizeBlocks<Format, NonTemporal>(y, blocks, tensor, rowQ, rowScale,
                                        from + cols);
  }
};

template <typename T> bool allFinite(const T *x, int64_t n) {
  bool result = true;
  for (int64_t i = 0; i < n; ++i)
    result &= std::fabs(widen(x[i])) < INFINITY;
  return result;
}

} // namespace

LIMIT_API int32_t limit_rms_norm(int32_t format, int32_t input, const void *x,
                                 const void *gamma, int64_t rows, int64_t cols,
                                 float eps, float amax, int32_t round,
                                 uint8_t *q, uint8_t *scale, float *rsigma,
                                 int32_t threads) {
  return withInput(input, x, [&](auto *typed) {
    using T = std::decay_t<decltype(*typed)>;
    auto *typedGamma = static_cast<const T *>(gamma);
    // A row starts on a line only where its bytes are a multiple of 64.
    bool stream = nonTemporal(rows * cols / 2, q, q) && cols % 128 == 0;
    return withFormat(format, stream, [&](auto f, auto nt) -> int32_t {
      if (rows < 0 || cols <= 0 || cols % blockOf<f.value>() != 0)
        return LimitBadShape;
      Norm<f.value, nt.value, T> norm{typed,
                                      typedGamma,
                                      cols,
                                      eps,
                                      TensorScale(amax),
                                      round != 0,
                                      allFinite(typedGamma, cols),
                                      q,
                                      scale,
                                      rsigma};
      parallelFor(rows, 4, threads, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          norm.row(r);
      });
      return LimitOk;
    });
  });
}
