//===- BlockScale.cpp - Scales and elements of one block ------------------===//

#include "dither/Numerics/BlockScale.h"
#include "dither/Numerics/Bits.h"
#include "dither/Numerics/Convert.h"
#include "dither/Numerics/ReductionOrder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace dither::numerics {

namespace {

constexpr float kMaxFloat = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float fmin(float v, float c) { return v < c ? v : c; }

bool isDividing(const BlockFormat &format) {
  return format.rule.order == ScaleOrder::Div6Mul ||
         format.rule.order == ScaleOrder::Div6Div;
}

/// G / R, 1 if that is 0 or +Inf.
float rangeOf(const BlockFormat &format, float tensorAmax) {
  float d = tensorAmax / format.range();
  return d == 0 || d == kInfinity ? 1.0f : d;
}

/// D of BlockScale.h.
float tensorDecodeScale(const BlockFormat &format, float tensorAmax) {
  if (format.tensorScale && format.rule.tensorScaleAs == TensorScaleAs::Decode)
    return tensorAmax;
  if (format.tensorScale && format.rule.order == ScaleOrder::Div6Div &&
      format.rule.tensorScaleAs == TensorScaleAs::Amax)
    return rangeOf(format, tensorAmax);
  return 1.0f / tensorEncodeScale(format, tensorAmax);
}

/// What scales of blocks are multiplied by for values, of a format with a
/// tensor scale; nothing where that is G, over R.
std::optional<float> valueScale(const BlockFormat &format, float tensorAmax) {
  if (format.rule.tensorScaleAs != TensorScaleAs::Amax)
    return tensorDecodeScale(format, tensorAmax);
  if (isDividing(format))
    return rangeOf(format, tensorAmax);
  return std::nullopt;
}

/// The shared exponent by powers of two of the amax itself, not of a quotient.
uint32_t sharedExponent(const BlockFormat &format, float blockAmax) {
  uint32_t bits = bitsOf(blockAmax) & 0x7FFFFFFF;
  if (bits >= 0x7F800000)
    return 0xFF;
  switch (format.rule.rounding) {
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
  if (!format.tensorScale)
    return 1.0f;
  if (format.rule.tensorScaleAs != TensorScaleAs::Amax)
    return format.rule.tensorScaleAs == TensorScaleAs::Encode
               ? tensorAmax
               : 1.0f / tensorAmax;
  if (tensorAmax == 0)
    return 1.0f;
  float s = fmin(format.range() / tensorAmax, kMaxFloat);
  return s == 0 ? 1.0f : s;
}

float unroundedBlockScale(const BlockFormat &format, float blockAmax,
                          float tensorAmax) {
  switch (format.rule.order) {
  case ScaleOrder::TE:
    if (format.rule.fourOverSix == FourOverSix::None)
      return fmin(blockAmax * (tensorEncodeScale(format, tensorAmax) *
                               (1.0f / format.elem->max)),
                  kMaxFloat);
    [[fallthrough]];
  case ScaleOrder::Div6Mul:
    return fmin(blockAmax / format.elem->max *
                    tensorEncodeScale(format, tensorAmax),
                kMaxFloat);
  case ScaleOrder::MulInv6:
    return fmin(blockAmax * (1.0f / format.elem->max) *
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

/// Code of the scale of a block from what is rounded to it.
static uint32_t scaleOf(const BlockFormat &format, float blockAmax,
                        float unrounded) {
  if (format.rule.nanScales && std::isnan(blockAmax))
    return format.scale->nanCode;
  return encode(*format.scale, std::max(unrounded, format.rule.leastScale));
}

/// The error of a block under a scale (fourOverSix).
static float errorOf(const BlockFormat &format, const float *x, unsigned n,
                     int64_t stride, uint32_t scale, float tensorAmax) {
  float factor = elementFactor(format, scale, tensorAmax);
  float s = decode(*format.scale, scale), error = 0;
  for (unsigned i = 0; i < n; ++i) {
    float given = x[i * stride];
    float value =
        decode(*format.elem, encode(*format.elem, given * factor)) * s;
    if (format.tensorScale) {
      auto by = valueScale(format, tensorAmax);
      value = by ? value * *by : value * tensorAmax / format.range();
    }
    float d = value - given;
    error += format.rule.fourOverSix == FourOverSix::MAE ? std::abs(d) : d * d;
  }
  return error;
}

float encodeScale(const BlockFormat &format, float blockAmax, float largest) {
  float least = format.rule.epsilon;
  float amax = blockAmax < least ? least : blockAmax;
  if (format.rule.nanScales && std::isnan(amax))
    return amax;
  if (!(std::abs(amax) < kInfinity) || amax == 0)
    return 1.0f;
  float scale = format.elem->max / amax;
  if (std::abs(scale) == kInfinity)
    scale = largest;
  return format.rule.pow2Scales ? floatOf(bitsOf(scale) & 0xFF800000) : scale;
}

uint32_t blockScale(const BlockFormat &format, float blockAmax,
                    float tensorAmax) {
  if (format.scale != &kE8M0)
    return scaleOf(format, blockAmax,
                   unroundedBlockScale(format, blockAmax, tensorAmax));
  if (format.rule.rounding != ScaleRounding::RCeil)
    return sharedExponent(format, blockAmax);
  if (blockAmax == kInfinity && format.rule.infScale == InfScale::FF)
    return 0xFF;
  return encodeE8M0Ceil(blockAmax * (1.0f / format.elem->max));
}

float elementFactor(const BlockFormat &format, uint32_t scale,
                    float tensorAmax) {
  if (format.scale == &kE8M0)
    return e8m0Inverse(scale);
  float s = decode(*format.scale, scale);
  float decodeScale = tensorDecodeScale(format, tensorAmax);
  if (format.rule.order == ScaleOrder::Div6Div)
    return fmin(1.0f / decodeScale / s, kMaxFloat);
  return fmin(1.0f / (s * decodeScale), kMaxFloat);
}

float dequantizeFactor(const BlockFormat &format, uint32_t scale,
                       float tensorAmax) {
  float s = decode(*format.scale, scale);
  if (!format.tensorScale)
    return s;
  auto by = valueScale(format, tensorAmax);
  return by ? s * *by : s * tensorAmax * (1.0f / format.range());
}

uint8_t quantizeBlock(const BlockFormat &format, const float *x, unsigned n,
                      float tensorAmax, uint8_t *codes, int64_t stride) {
  float blockAmax = amax(x, n, stride);
  if (format.rule.nanScales)
    for (unsigned i = 0; i < n; ++i)
      if (std::isnan(x[i * stride]))
        blockAmax = x[i * stride];
  uint32_t scale = blockScale(format, blockAmax, tensorAmax);
  if (format.rule.fourOverSix != FourOverSix::None) {
    uint32_t four =
        scaleOf(format, blockAmax,
                unroundedBlockScale(format, blockAmax, tensorAmax) * 1.5f);
    if (errorOf(format, x, n, stride, four, tensorAmax) <
        errorOf(format, x, n, stride, scale, tensorAmax))
      scale = four;
  }
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
