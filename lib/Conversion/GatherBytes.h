//===- GatherBytes.h - Bytes of several registers together ------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_GATHERBYTES_H
#define DITHER_LIB_CONVERSION_GATHERBYTES_H

#include "Words.h"

namespace dither::conversion {

/// Where shuffles collect bytes of two or four registers of AVX-512, the same
/// ones of each and one register after the other, a permutation of each
/// register brings its bytes, and all but the first keep what is there (vpermb,
/// of VBMI). `constants` are those of `body`.
void gatherBytes(mlir::Region &body, ConstantPool &constants);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_GATHERBYTES_H
