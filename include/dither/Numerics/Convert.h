//===- Convert.h - f32 to narrow codes and back -----------------*- C++ -*-===//
//
// Scalar conversions in integer arithmetic, the definition that compiled code
// is compared with. All round to nearest, ties to the even code.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_NUMERICS_CONVERT_H
#define DITHER_NUMERICS_CONVERT_H

#include "dither/Numerics/Formats.h"

namespace dither::numerics {

/// Code of x in a format with a sign (not kE8M0). The sign is kept, also of
/// zeros and of values that round to zero unless the format is a two's
/// complement; NaN gives format.nanCode without a sign. Past the largest value
/// the code is that of the largest value (format.saturates) or of infinity.
/// kF32 is the identity but for NaNs.
uint32_t encode(const ElementFormat &format, float x);

/// Value of a code in any of the formats, exact. Bits above format.bits must be
/// zero. NaN codes give a NaN, E8M0's 7FFFFFFF; sign and payload of the others
/// are not part of the contract.
float decode(const ElementFormat &format, uint32_t code);

/// Code of |x|, rounded up to a power of two ("rceil"; PTX
/// cvt.rp.satfinite.ue8m0x2): at most 2^-127 gives 00, above 2^127 and Inf
/// FE, NaN FF.
uint32_t encodeE8M0Ceil(float x);

/// The exponent field of x ("floor"): subnormals give 00, Inf and NaN FF.
uint32_t encodeE8M0Floor(float x);

/// 2^(127 - code), the reciprocal of an E8M0 value: 254 gives the subnormal
/// 2^-127, 255 the NaN 7FFFFFFF.
float e8m0Inverse(uint32_t code);

} // namespace dither::numerics

#endif // DITHER_NUMERICS_CONVERT_H
