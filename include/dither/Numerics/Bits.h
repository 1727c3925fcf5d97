//===- Bits.h - binary32 values and their encodings -------------*- C++ -*-===//

#ifndef DITHER_NUMERICS_BITS_H
#define DITHER_NUMERICS_BITS_H

#include <cstdint>
#include <cstring>

namespace dither::numerics {

/// The IEEE binary32 encoding of x.
inline uint32_t bitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

/// The value that `bits` encodes.
inline float floatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

} // namespace dither::numerics

#endif // DITHER_NUMERICS_BITS_H
