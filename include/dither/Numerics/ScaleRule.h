//===- ScaleRule.h - How the scales of blocks are made ---------*- C++ -*-===//
//
// The choices that a block-scaled format has besides its elements, scales and
// blocks. BlockScale.h has what each of them computes.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_SCALERULE_H
#define DITHER_NUMERICS_SCALERULE_H

#include "dither/Numerics/Bits.h"

#include <tuple>

namespace dither::numerics {

/// How an E8M0 block scale is picked. F is the largest element value, emax its
/// exponent, a the block's amax.
enum class ScaleRounding : uint32_t {
  RCeil, ///< a/F rounded up to a power of two
  Floor, ///< a rounded down to a power of two, over 2^emax
  Ceil,  ///< a rounded up to a power of two, over 2^emax
  Even,  ///< a rounded half up to the element's mantissa, then as Floor
};

/// Which expression gives the block scale where there are several: of E4M3 and
/// f32 scales. F is 6 for NVFP4.
enum class ScaleOrder : uint32_t {
  TE,      ///< amax times one folded factor
  Div6Mul, ///< amax / 6 first, then times the encode scale
  Div6Div, ///< amax / 6 over the decode scale, at least 2^-6
  /// Of f32 scales: F / amax is what elements are multiplied by, and the scale
  /// is one over that.
  EncodeFirst,
  MulInv6, ///< amax times 1/6 first, then times the encode scale
};

/// What stands for the tensor scale.
enum class TensorScaleAs : uint32_t {
  Amax,   ///< the amax of the tensor, which scales follow from
  Encode, ///< what the tensor is multiplied by
  Decode, ///< one over that
};

/// The E8M0 scale of a block whose amax is infinite: the largest, or NaN.
enum class InfScale : uint32_t { FE, FF };

/// Whether a block takes its largest element to 4 instead of 6 where that makes
/// the error of the block smaller, and which error.
enum class FourOverSix : uint32_t {
  None,
  MAE, ///< the sum of absolute differences
  MSE, ///< the sum of squared differences
};

struct ScaleRule {
  ScaleRounding rounding = ScaleRounding::RCeil; ///< of E8M0 scales
  ScaleOrder order = ScaleOrder::TE;             ///< of E4M3 and f32 scales
  bool pow2Scales = false; ///< EncodeFirst: F / amax is cut to a power of two
  float epsilon = 0;       ///< EncodeFirst: amax is at least this
  TensorScaleAs tensorScaleAs = TensorScaleAs::Amax;
  /// Under a tensor scale: the scale of a block that has the tensor's amax.
  float largestScale = 448;
  float leastScale = 0;             ///< of E4M3 and f32 scales but EncodeFirst
  InfScale infScale = InfScale::FE; ///< RCeil
  bool nanScales = false;           ///< the scale of a block with NaN is NaN
  FourOverSix fourOverSix = FourOverSix::None; ///< of E2M1 with E4M3 scales

  /// All of it, floats by their bits: to compare and to hash.
  auto key() const {
    return std::make_tuple(rounding, order, pow2Scales, bitsOf(epsilon),
                           tensorScaleAs, bitsOf(largestScale),
                           bitsOf(leastScale), infScale, nanScales,
                           fourOverSix);
  }
};

inline bool operator==(const ScaleRule &a, const ScaleRule &b) {
  return a.key() == b.key();
}
inline bool operator!=(const ScaleRule &a, const ScaleRule &b) {
  return !(a == b);
}

} // namespace dither::numerics

#endif // DITHER_NUMERICS_SCALERULE_H
