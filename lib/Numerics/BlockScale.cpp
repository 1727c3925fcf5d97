//===- BlockScale.cpp - Scales and elements of one block ------------------===//

#include "dither/Numerics/BlockScale.h"
#include "dither/Numerics/Bits.h"
#include "dither/Numerics/Convert.h"
#include "dither/Numerics/ReductionOrder.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dither::numerics {

namespace {

constexpr float kMaxFloat = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float fmin(float v, float c) { return v < c ? v : c; }

/// D of BlockScale.h.
float tensorDecodeScale(const BlockFormat &format, float tensorAmax) {
  float d = tensorAmax / format.range();
  return d == 0 || d == kInfinity ? 1.0f : d;
}

/// The shared exponent by powers of two of the amax itself, not of a quotient.
uint32_t sharedExponent(const BlockFormat &format, float blockAmax) {
  uint32_t bits = bitsOf(blockAmax) & 0x7FFFFFFF;
  if (bits >= 0x7F800000)
    return 0xFF;
  switch (format.rounding) {
  case ScaleRounding::RCeil:
  case ScaleRounding::Floor:
    break;
  case ScaleRounding::Ceil:
    bits += 0x7FFFFF;
    break;
  case ScaleRounding::Even:
    bits += 1u << (22 - format.elem->mantissaBits);
    break;
  }
  return uint32_t(std::max(0, int(bits >> 23) - format.elem->maxExponent()));
}

} // namespace

float tensorEncodeScale(const BlockFormat &format, float tensorAmax) {
  if (tensorAmax == 0 || !format.tensorScale)
    return 1.0f;
  float s = fmin(format.range() / tensorAmax, kMaxFloat);
  return s == 0 ? 1.0f : s;
}

float unroundedBlockScale(const BlockFormat &format, float blockAmax,
                          float tensorAmax) {
  switch (format.order) {
  case ScaleOrder::TE: {
    float factor =
        tensorEncodeScale(format, tensorAmax) * (1.0f / format.elem->max);
    return fmin(blockAmax * factor, kMaxFloat);
  }
  case ScaleOrder::Div6Mul:
    return fmin(blockAmax / format.elem->max *
                    tensorEncodeScale(format, tensorAmax),
                kMaxFloat);
  case ScaleOrder::Div6Div:
    return std::max(fmin(blockAmax / format.elem->max /
                             tensorDecodeScale(format, tensorAmax),
                         format.scale->max),
                    format.scale->minNormal);
  case ScaleOrder::EncodeFirst:
    return 1.0f / encodeScale(format, blockAmax, kMaxFloat);
  }
  return 0;
}

float encodeScale(const BlockFormat &format, float blockAmax, float largest) {
  float amax = blockAmax < format.epsilon ? format.epsilon : blockAmax;
  if (!(std::abs(amax) < kInfinity) || amax == 0)
    return 1.0f;
  float scale = format.elem->max / amax;
  if (std::abs(scale) == kInfinity)
    scale = largest;
  return format.pow2Scales ? floatOf(bitsOf(scale) & 0xFF800000) : scale;
}

uint32_t blockScale(const BlockFormat &format, float blockAmax,
                    float tensorAmax) {
  if (format.scale != &kE8M0)
    return encode(*format.scale,
                  unroundedBlockScale(format, blockAmax, tensorAmax));
  if (format.rounding == ScaleRounding::RCeil)
    return encodeE8M0Ceil(blockAmax * (1.0f / format.elem->max));
  return sharedExponent(format, blockAmax);
}

float elementFactor(const BlockFormat &format, uint32_t scale,
                    float tensorAmax) {
  if (format.scale == &kE8M0)
    return e8m0Inverse(scale);
  float s = decode(*format.scale, scale);
  if (format.order == ScaleOrder::Div6Div)
    return fmin(1.0f / tensorDecodeScale(format, tensorAmax) / s, kMaxFloat);
  float decodeScale = 1.0f / tensorEncodeScale(format, tensorAmax);
  return fmin(1.0f / (s * decodeScale), kMaxFloat);
}

float dequantizeFactor(const BlockFormat &format, uint32_t scale,
                       float tensorAmax) {
  float s = decode(*format.scale, scale);
  return format.tensorScale ? s * tensorAmax * (1.0f / format.range()) : s;
}

uint8_t quantizeBlock(const BlockFormat &format, const float *x, unsigned n,
                      float tensorAmax, uint8_t *codes, int64_t stride) {
  uint32_t scale = blockScale(format, amax(x, n, stride), tensorAmax);
  float factor = elementFactor(format, scale, tensorAmax);
  for (unsigned i = 0; i < n; ++i)
    codes[i] = uint8_t(encode(*format.elem, x[i * stride] * factor));
  return uint8_t(scale);
}

void dequantizeBlock(const BlockFormat &format, const uint8_t *codes,
                     unsigned n, uint32_t scale, float tensorAmax, float *x,
                     int64_t stride) {
  float factor = dequantizeFactor(format, scale, tensorAmax);
  for (unsigned i = 0; i < n; ++i)
    x[i * stride] = decode(*format.elem, codes[i]) * factor;
}

} // namespace dither::numerics
