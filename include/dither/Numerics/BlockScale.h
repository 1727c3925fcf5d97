//===- BlockScale.h - Scales and elements of one block ----------*- C++ -*-===//
//
// The definition of the block-scaled modes, one block at a time. Everything is
// binary32, round to nearest even, one rounding per operation as written,
// subnormals kept. fmin(v, c) is `v < c ? v : c`: c for a NaN.
//
// Formats with a tensor scale (F the largest element, R = largestScale * F, for
// NVFP4 6 and 448 * 6 = 2688; G the tensor's amax, b the block's amax):
//   S = fmin(R / G, FLT_MAX), 1 if G is 0 or Inf
//   D = 1 / S; Div6Div: G / R, 1 if that is 0 or +Inf
//   or, of a tensor scale given as encode scale E:  S = E, D = 1 / E,
//   and as decode scale:                            S = 1 / D
//   TE       scale = E4M3(fmin(b * (S * (1/F)), FLT_MAX))
//   MulInv6  scale = E4M3(fmin((b * (1/F)) * S, FLT_MAX))
//   Div6Mul  scale = E4M3(fmin((b / F) * S, FLT_MAX))
//            factor of the elements = fmin(1 / (scale * D), FLT_MAX)
//   Div6Div  scale = E4M3(max(fmin((b / F) / D, 448), 2^-6))
//            factor of the elements = fmin((1 / D) / scale, FLT_MAX)
// with what is rounded to E4M3 raised to leastScale first.
//   element = encode(x * factor);  value = element * v
//   TE, MulInv6        v = (scale * G) * (1/R)
//   Div6Mul, Div6Div   v = scale * (G / R, 1 if that is 0 or +Inf)
//   E or D was given   v = scale * D
// Formats with E4M3 scales and without a tensor scale: S = D = 1, v = scale.
// (TE: NVIDIA Transformer Engine's NVFP4 kernels; Div6Mul: nvFuser and
// Transformer Engine for JAX; Div6Div: torchao; MulInv6: TensorRT-LLM.)
//
// fourOverSix: u is what is rounded to E4M3, of TE (b / F) * S. The scales of u
// and of fmin(u, FLT_MAX) * 1.5 are tried, and the second is taken where its
// error is smaller, the sum over the block of |w - x|, or of (w - x)^2; the
// elements of a row are added from the first to the last, then the rows: upper
// half to lower, until one is left. w = ((element * scale) * G) / R, or
// (element * scale) * D where D is what elements are multiplied by; without a
// tensor scale element * scale. (Transformer Engine; Cook et al., arXiv
// 2512.02010.)
//
// Formats with f32 scales: as of E4M3 without a tensor scale, and without the
// rounding to E4M3 (Div6Div: at least the smallest normal number), or
//   EncodeFirst  a = epsilon if b < epsilon, else b
//                E = F / a, 1 if a is 0, Inf or NaN; FLT_MAX if that is Inf;
//                with pow2Scales, its mantissa is cut off
//                scale = 1 / E;  factor of the elements = E
// (EncodeFirst: Transformer Engine's FP8 of a whole tensor and of blocks.)
//
// Formats with E8M0 scales (e the scale's code, field the exponent field):
//   RCeil  e = encodeE8M0Ceil(b * (1/F))
//          of infinite b 254, or 255 with InfScale::FF
//   Floor  e = field(b) - emax                     Ceil, Even: see ScaleRule.h;
//          at least 0; 255 if b is Inf
//   element = encode(x * 2^(127 - e));  value = element * 2^(e - 127)
// (RCeil: Transformer Engine; the others: OCP MX 1.0, 6.3, and torchao.)
//
// nanScales: if an element of the block is NaN, so are its scale and E.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_BLOCKSCALE_H
#define DITHER_NUMERICS_BLOCKSCALE_H

#include "dither/Numerics/Formats.h"

namespace dither::numerics {

/// S above, the factor that brings a tensor into the range of a two-level
/// format; 1 for other formats. `tensorAmax`, here and below, is what stands
/// for the tensor scale. An amax of NaN gives FLT_MAX.
float tensorEncodeScale(const BlockFormat &format, float tensorAmax);

/// The value that blockScale of a format with a tensor scale rounds to E4M3.
float unroundedBlockScale(const BlockFormat &format, float blockAmax,
                          float tensorAmax);

/// E above, what the elements of a block of this amax are multiplied by.
/// `largest` is the largest finite value of the type that they come in.
float encodeScale(const BlockFormat &format, float blockAmax, float largest);

/// Code of the scale of a block with this amax (NaN only with nanScales), but
/// for fourOverSix. `tensorAmax` is read only where the format has a tensor
/// scale.
uint32_t blockScale(const BlockFormat &format, float blockAmax,
                    float tensorAmax = 0);

/// What the elements are multiplied by before they are encoded, from the
/// scale's code.
float elementFactor(const BlockFormat &format, uint32_t scale,
                    float tensorAmax = 0);

/// What decoded elements are multiplied by.
float dequantizeFactor(const BlockFormat &format, uint32_t scale,
                       float tensorAmax = 0);

/// Quantizes the n elements of a block (a block cut off by the edge of a
/// tensor is shorter), `stride` elements apart. Codes go to codes[0 .. n), one
/// a byte. Returns the scale's code. NaN elements do not count for the scale,
/// but with nanScales, and become elem->nanCode.
uint8_t quantizeBlock(const BlockFormat &format, const float *x, unsigned n,
                      float tensorAmax, uint8_t *codes, int64_t stride = 1);

/// Values of n codes, one a byte, of a block with this scale.
void dequantizeBlock(const BlockFormat &format, const uint8_t *codes,
                     unsigned n, uint32_t scale, float tensorAmax, float *x,
                     int64_t stride = 1);

} // namespace dither::numerics

#endif // DITHER_NUMERICS_BLOCKSCALE_H
