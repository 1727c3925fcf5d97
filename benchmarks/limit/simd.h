// AVX-512 parts of the kernels: 16 blocks make a group, 64 elements make a
// chunk.
//
// Encoding a magnitude a costs max, and, fma: with p the power of two under a
// (at least the smallest normal), the sum p * (2^(23-m) + 3) + a rounds a once,
// to m mantissa bits. Its low 16 bits hold the rounded mantissa and its high 16
// bits the exponent; one multiply-add of the halves gives the code in byte 1 of
// the dword, wrapped to the right bias by the 3. Where a dword's bytes 0, 2 and
// 3 go does not matter: a byte permutation collects the codes.
#ifndef DITHER_BENCHMARKS_LIMIT_SIMD_H
#define DITHER_BENCHMARKS_LIMIT_SIMD_H

#include "scalar.h"

#include <immintrin.h>

namespace dither::limit {

using Int = __m512i;
using Float = __m512;

inline Int splat(uint32_t bits) { return _mm512_set1_epi32(int(bits)); }
inline Float splatf(float value) { return _mm512_set1_ps(value); }
inline Float asFloat(Int v) { return _mm512_castsi512_ps(v); }
inline Int asInt(Float v) { return _mm512_castps_si512(v); }
inline Int load(const void *p) { return _mm512_loadu_si512(p); }
/// mask ? a : b, bit by bit.
inline Int select(Int mask, Int a, Int b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}

/// Index table of 64 bytes for a permutation.
struct alignas(64) Bytes {
  uint8_t at[64];
  Int get() const { return _mm512_load_si512(at); }
};

/// Writes 64 bytes.
template <bool NonTemporal> void store(uint8_t *p, Int v) {
  if constexpr (NonTemporal)
    _mm512_stream_si512(reinterpret_cast<Int *>(p), v);
  else
    _mm512_storeu_si512(p, v);
}

/// Keeps the wider-than-the-pair part of a permutation's result out: low half
/// of a, high half of b.
inline Int halves(Int a, Int b) { return _mm512_mask_blend_epi64(0xF0, a, b); }

// ---------------------------------------------------------------------------------------------------------------------
// Inputs: how 64 elements become four registers of 16 floats, and how bytes of
// those become 64 bytes in order.
// ---------------------------------------------------------------------------------------------------------------------

// Table that takes byte `byte` of 16 dwords of two registers, for both halves
// of the result: even and odd elements alternate where `interleave`, else one
// register follows the other.
constexpr Bytes collect(int byte, bool interleave) {
  Bytes table{};
  for (int i = 0; i < 64; ++i) {
    int element = i % 32;
    int lane = interleave ? element / 2 : element % 16;
    bool second = interleave ? element % 2 : element / 16;
    table.at[i] = uint8_t(4 * lane + byte + (second ? 64 : 0));
  }
  return table;
}
// Table that takes the high byte of 32 words of two registers.
constexpr Bytes highBytes() {
  Bytes table{};
  for (int i = 0; i < 64; ++i)
    table.at[i] = uint8_t(2 * i + 1);
  return table;
}
// Table that takes the low byte of 32 words of two registers.
constexpr Bytes lowBytes() {
  Bytes table{};
  for (int i = 0; i < 64; ++i)
    table.at[i] = uint8_t(2 * i);
  return table;
}

inline constexpr Bytes kCodesOfPairs = collect(1, true),
                       kCodesInOrder = collect(1, false);
inline constexpr Bytes kSignsInOrder = collect(3, false);
inline constexpr Bytes kHighBytes = highBytes(), kLowBytes = lowBytes();

/// 64 elements: magnitudes, and their sign bits in bit 7 of the bytes of
/// `signs`, in order.
struct Chunk {
  Float a[4];
  Int signs;
};

/// bf16: registers 0 and 1 hold the even and the odd elements of the first 32,
/// 2 and 3 those of the second 32.
inline Chunk loadChunk(const uint16_t *x) {
  const Int magnitude = splat(0x7FFF7FFF), odd = splat(0x7FFF0000);
  Int r0 = load(x), r1 = load(x + 32);
  Int a0 = _mm512_and_si512(r0, magnitude),
      a1 = _mm512_and_si512(r1, magnitude);
  return {
      {asFloat(_mm512_slli_epi32(a0, 16)), asFloat(_mm512_and_si512(r0, odd)),
       asFloat(_mm512_slli_epi32(a1, 16)), asFloat(_mm512_and_si512(r1, odd))},
      _mm512_permutex2var_epi8(r0, kHighBytes.get(), r1)};
}

/// f32: registers hold 16 elements each, in order.
inline Chunk loadChunk(const float *x) {
  const Int magnitude = splat(0x7FFFFFFF), table = kSignsInOrder.get();
  Int r[4] = {load(x), load(x + 16), load(x + 32), load(x + 48)};
  Chunk chunk;
  for (int i = 0; i < 4; ++i)
    chunk.a[i] = asFloat(_mm512_and_si512(r[i], magnitude));
  chunk.signs = halves(_mm512_permutex2var_epi8(r[0], table, r[1]),
                       _mm512_permutex2var_epi8(r[2], table, r[3]));
  return chunk;
}

inline Int codeTable(const uint16_t *) { return kCodesOfPairs.get(); }
inline Int codeTable(const float *) { return kCodesInOrder.get(); }

// ---------------------------------------------------------------------------------------------------------------------
// Encoding
// ---------------------------------------------------------------------------------------------------------------------

/// E4M3 magnitude code in bits 8 to 14 of each dword, for a <= 448.
inline Int codesE4M3(Float a) {
  Float p = asFloat(_mm512_and_si512(asInt(_mm512_max_ps(a, splatf(0x1p-6F))),
                                     splat(0x7F800000)));
  return _mm512_madd_epi16(asInt(_mm512_fmadd_ps(p, splatf(1048579.0F), a)),
                           splat(0x00100100));
}

/// E2M1 magnitude code in bits 8 to 10 of each dword, saturating; a NaN
/// gives 7.
inline Int codesE2M1(Float a) {
  a = _mm512_min_ps(a, splatf(6.0F));
  Float p = asFloat(_mm512_and_si512(asInt(_mm512_max_ps(a, splatf(1.0F))),
                                     splat(0x7F800000)));
  return _mm512_madd_epi16(asInt(_mm512_fmadd_ps(p, splatf(4194307.0F), a)),
                           splat(0x00040100));
}

/// Bytes of 64 E4M3 codes.
template <typename T> Int encodeE4M3(const Chunk &c, const Float (&m)[4]) {
  const Int table = codeTable(static_cast<const T *>(nullptr));
  Int e[4];
  for (int i = 0; i < 4; ++i)
    e[i] = codesE4M3(_mm512_mul_ps(c.a[i], m[i]));
  Int codes = halves(_mm512_permutex2var_epi8(e[0], table, e[1]),
                     _mm512_permutex2var_epi8(e[2], table, e[3]));
  return select(splat(0x80808080), c.signs, codes);
}

/// Words whose low byte holds two of 64 E2M1 codes.
template <typename T> Int encodeE2M1(const Chunk &c, const Float (&m)[4]) {
  const Int table = codeTable(static_cast<const T *>(nullptr));
  Int e[4];
  for (int i = 0; i < 4; ++i)
    e[i] = codesE2M1(_mm512_mul_ps(c.a[i], m[i]));
  Int codes = halves(_mm512_permutex2var_epi8(e[0], table, e[1]),
                     _mm512_permutex2var_epi8(e[2], table, e[3]));
  Int nibbles = select(splat(0x07070707), codes, _mm512_srli_epi16(c.signs, 4));
  return _mm512_maddubs_epi16(_mm512_and_si512(nibbles, splat(0x0F0F0F0F)),
                              splat(0x10011001));
}

/// 64 bytes of 128 E2M1 codes.
inline Int packE2M1(Int words0, Int words1) {
  return _mm512_permutex2var_epi8(words0, kLowBytes.get(), words1);
}

// ---------------------------------------------------------------------------------------------------------------------
// Maxima of 16 blocks, one in each lane, as the bits of |x|. Unpacking two
// registers and taking the maximum halves both, so that N registers cost N - 1
// steps of three instructions.
// ---------------------------------------------------------------------------------------------------------------------

inline Int maxWords(Int a, Int b) {
  return _mm512_max_epu16(_mm512_unpacklo_epi16(a, b),
                          _mm512_unpackhi_epi16(a, b));
}
inline Int maxDwordsOfWords(Int a, Int b) {
  return _mm512_max_epu16(_mm512_unpacklo_epi32(a, b),
                          _mm512_unpackhi_epi32(a, b));
}
inline Int maxQwordsOfWords(Int a, Int b) {
  return _mm512_max_epu16(_mm512_unpacklo_epi64(a, b),
                          _mm512_unpackhi_epi64(a, b));
}

/// The 8 words of each 128-bit lane of r[0..7] reduced: word w of a lane is the
/// maximum of that lane of r[order(w)], order = {0, 4, 2, 6, 1, 5, 3, 7}
/// reversed in bits, which `laneOrder` undoes.
inline Int maxOfLanes(const Int *r) {
  Int l0 = maxWords(r[0], r[1]), l1 = maxWords(r[2], r[3]),
      l2 = maxWords(r[4], r[5]), l3 = maxWords(r[6], r[7]);
  return maxQwordsOfWords(maxDwordsOfWords(l0, l1), maxDwordsOfWords(l2, l3));
}

// After maxOfLanes word w of a lane belongs to register: unpacking words puts
// registers (0,1) in alternate words, dwords puts (01, 23) in alternate dwords,
// qwords (0123, 4567) in alternate qwords: word w is register w.

/// bf16, blocks of 16: r[8] of |x|, two blocks a register.
inline Int maxima16(const uint16_t *x) {
  const Int magnitude = splat(0x7FFF7FFF);
  Int r[8];
  for (int i = 0; i < 8; ++i)
    r[i] = _mm512_and_si512(load(x + 32 * i), magnitude);
  Int lanes = maxOfLanes(r);
  // Block 2 w + h is the maximum of lanes 2 h and 2 h + 1 at word w.
  Int m = _mm512_max_epu16(lanes, _mm512_shuffle_i64x2(lanes, lanes, 0xB1));
  const Int table =
      _mm512_set_epi16(23, 0, 7, 0, 22, 0, 6, 0, 21, 0, 5, 0, 20, 0, 4, 0, 19,
                       0, 3, 0, 18, 0, 2, 0, 17, 0, 1, 0, 16, 0, 0, 0);
  return _mm512_maskz_permutexvar_epi16(0xAAAAAAAA, table, m);
}

/// bf16, blocks of 32: 16 registers, one block each.
inline Int maxima32(const uint16_t *x) {
  const Int magnitude = splat(0x7FFF7FFF);
  Int t[2];
  for (int h = 0; h < 2; ++h) {
    Int r[8];
    for (int i = 0; i < 8; ++i)
      r[i] = _mm512_and_si512(load(x + 256 * h + 32 * i), magnitude);
    t[h] = maxOfLanes(r);
  }
  // Lanes: t0 {0,2}, t1 {0,2} against t0 {1,3}, t1 {1,3}; then neighbouring
  // lanes.
  Int m = _mm512_max_epu16(_mm512_shuffle_i64x2(t[0], t[1], 0x88),
                           _mm512_shuffle_i64x2(t[0], t[1], 0xDD));
  m = _mm512_max_epu16(m, _mm512_shuffle_i64x2(m, m, 0xB1));
  const Int table =
      _mm512_set_epi16(23, 0, 22, 0, 21, 0, 20, 0, 19, 0, 18, 0, 17, 0, 16, 0,
                       7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
  return _mm512_maskz_permutexvar_epi16(0xAAAAAAAA, table, m);
}

inline Int maxDwords(Int a, Int b) {
  return _mm512_max_epu32(_mm512_unpacklo_epi32(a, b),
                          _mm512_unpackhi_epi32(a, b));
}
inline Int maxQwords(Int a, Int b) {
  return _mm512_max_epu32(_mm512_unpacklo_epi64(a, b),
                          _mm512_unpackhi_epi64(a, b));
}
inline Int maxLanes(Int a, Int b) {
  return _mm512_max_epu32(_mm512_shuffle_i64x2(a, b, 0x88),
                          _mm512_shuffle_i64x2(a, b, 0xDD));
}

/// 16 registers of 16 dwords to their 16 maxima, in order.
inline Int maxOf16(const Int *r) {
  Int q[4];
  for (int i = 0; i < 4; ++i)
    q[i] = maxQwords(maxDwords(r[4 * i], r[4 * i + 1]),
                     maxDwords(r[4 * i + 2], r[4 * i + 3]));
  return maxLanes(maxLanes(q[0], q[1]), maxLanes(q[2], q[3]));
}

/// f32, blocks of 16.
inline Int maxima16(const float *x) {
  Int r[16];
  for (int i = 0; i < 16; ++i)
    r[i] = _mm512_and_si512(load(x + 16 * i), splat(0x7FFFFFFF));
  return maxOf16(r);
}

/// f32, blocks of 32.
inline Int maxima32(const float *x) {
  Int r[16];
  for (int i = 0; i < 16; ++i)
    r[i] = _mm512_max_epu32(
        _mm512_and_si512(load(x + 32 * i), splat(0x7FFFFFFF)),
        _mm512_and_si512(load(x + 32 * i + 16), splat(0x7FFFFFFF)));
  return maxOf16(r);
}

// ---------------------------------------------------------------------------------------------------------------------
// Scales of 16 blocks
// ---------------------------------------------------------------------------------------------------------------------

/// E8M0 of 16 non-negative finite values, rounded up.
inline Int e8m0Rceil(Float a) {
  Int bits = asInt(a);
  __mmask16 above = _mm512_cmpgt_epu32_mask(bits, splat(0x00400000));
  return _mm512_maskz_srli_epi32(above, _mm512_add_epi32(bits, splat(0x7FFFFF)),
                                 23);
}

/// Scale bytes of 16 blocks from the bits of their finite maxima, and the
/// multipliers.
template <LimitFormat Format>
__m128i scales16(Int maxima, const TensorScale &tensor, Float &multiplier) {
  if constexpr (Format == LimitNVFP4) {
    Float a = _mm512_min_ps(_mm512_mul_ps(asFloat(maxima), splatf(tensor.mult)),
                            splatf(448.0F));
    Int code =
        _mm512_and_si512(_mm512_srli_epi32(codesE4M3(a), 8), splat(0x7F));
    Float value =
        _mm512_mul_ps(asFloat(_mm512_slli_epi32(code, 20)), splatf(0x1p120F));
    Float inverse = _mm512_div_ps(splatf(1.0F),
                                  _mm512_mul_ps(value, splatf(tensor.decode)));
    multiplier = _mm512_min_ps(inverse, splatf(kMaxF32));
    return _mm512_cvtepi32_epi8(code);
  }
  Int e = Format == LimitMXFP4
              ? _mm512_subs_epu16(_mm512_srli_epi32(maxima, 23), splat(2))
              : e8m0Rceil(_mm512_mul_ps(
                    asFloat(maxima),
                    splatf(1.0F / (Format == LimitMXFP8 ? 448.0F : 6.0F))));
  multiplier = asFloat(_mm512_slli_epi32(_mm512_sub_epi32(splat(254), e), 23));
  return _mm512_cvtepi32_epi8(e);
}

/// Multipliers of the four registers of chunk c of a group.
template <LimitFormat Format>
void spread(const Float &all, const float *one, int c, const uint16_t *,
            Float (&m)[4]) {
  if constexpr (blockOf<Format>() == 16) { // lanes 0 to 7 of a register are one
                                           // block, lanes 8 to 15 the next
    const Int table =
        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    m[0] = m[1] =
        _mm512_permutexvar_ps(_mm512_add_epi32(table, splat(4 * c)), all);
    m[2] = m[3] =
        _mm512_permutexvar_ps(_mm512_add_epi32(table, splat(4 * c + 2)), all);
  } else {
    m[0] = m[1] = splatf(one[2 * c]);
    m[2] = m[3] = splatf(one[2 * c + 1]);
  }
}
template <LimitFormat Format>
void spread(const Float &, const float *one, int c, const float *,
            Float (&m)[4]) {
  for (int i = 0; i < 4; ++i)
    m[i] = splatf(one[(4 * c + i) * 16 / blockOf<Format>()]);
}

/// Writes the 16 scales of a group and returns true, or false where it holds an
/// infinity or a NaN.
template <LimitFormat Format, typename T>
inline __attribute__((always_inline)) bool
groupScales(const T *x, const TensorScale &tensor, uint8_t *scale, Float &all) {
  Int maxima;
  if constexpr (blockOf<Format>() == 16)
    maxima = maxima16(x);
  else
    maxima = maxima32(x);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(scale),
                   scales16<Format>(maxima, tensor, all));
  return _mm512_cmpge_epu32_mask(maxima, splat(0x7F800000)) == 0;
}

/// How far ahead of its input quantizeBlocks fetches, in bytes.
constexpr int64_t kAhead = 8192;

/// Writes the codes of a group, 16 * bytesOf<Format>() bytes, given its
/// multipliers. Fetches as many elements at `ahead`.
template <LimitFormat Format, bool NonTemporal, typename T, typename From>
inline __attribute__((always_inline)) void
encodeGroup(const T *x, Float all, uint8_t *q, const From *ahead) {
  alignas(64) float one[16];
  _mm512_store_ps(one, all);
  constexpr int chunks = blockOf<Format>() / 4;
  Float m[4];
#pragma GCC unroll 8
  for (int c = 0; c < chunks; c += 2) {
    for (int i = 0; i < 128; i += 64 / int(sizeof(From)))
      _mm_prefetch(reinterpret_cast<const char *>(ahead + 64 * c + i),
                   _MM_HINT_T0);
    spread<Format>(all, one, c, x, m);
    Int low, high;
    if constexpr (Format == LimitMXFP8) {
      low = encodeE4M3<T>(loadChunk(x + 64 * c), m);
      spread<Format>(all, one, c + 1, x, m);
      high = encodeE4M3<T>(loadChunk(x + 64 * c + 64), m);
      store<NonTemporal>(q + 64 * c, low);
      store<NonTemporal>(q + 64 * c + 64, high);
    } else {
      low = encodeE2M1<T>(loadChunk(x + 64 * c), m);
      spread<Format>(all, one, c + 1, x, m);
      high = encodeE2M1<T>(loadChunk(x + 64 * c + 64), m);
      store<NonTemporal>(q + 32 * c, packE2M1(low, high));
    }
  }
}

/// Quantizes `blocks` consecutive blocks; q aligned to 64 bytes where
/// NonTemporal. The scales of a group are computed before the codes of the one
/// before it, so that their long chain of dependent instructions has other work
/// beside it: twice as fast for NVFP4, whose chain has a division. As many
/// elements at `ahead`, which comes next, are fetched meanwhile.
template <LimitFormat Format, bool NonTemporal, typename T, typename From>
void quantizeBlocks(const T *x, int64_t blocks, const TensorScale &tensor,
                    uint8_t *q, uint8_t *scale, const From *ahead) {
  constexpr int n = blockOf<Format>(), bytes = bytesOf<Format>();
  const int64_t whole = blocks / 16 * 16;
  Float all, next;
  bool finite = false, nextFinite = false;
  if (whole > 0)
    finite = groupScales<Format>(x, tensor, scale, all);
  for (int64_t b = 0; b < whole; b += 16) {
    if (b + 16 < whole)
      nextFinite =
          groupScales<Format>(x + (b + 16) * n, tensor, scale + b + 16, next);
    if (__builtin_expect(finite, 1))
      encodeGroup<Format, NonTemporal>(x + b * n, all, q + b * bytes,
                                       ahead + b * n);
    else
      scalarBlocks<Format>(x + b * n, 16, tensor, q + b * bytes, scale + b);
    all = next;
    finite = nextFinite;
  }
  scalarBlocks<Format>(x + whole * n, blocks - whole, tensor, q + whole * bytes,
                       scale + whole);
}

} // namespace dither::limit

#endif
