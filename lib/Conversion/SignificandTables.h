//===- SignificandTables.h - Products of bf16 by table ----------*- C++ -*-===//

#ifndef DITHER_LIB_CONVERSION_SIGNIFICANDTABLES_H
#define DITHER_LIB_CONVERSION_SIGNIFICANDTABLES_H

#include "Words.h"

namespace dither::conversion {

/// CPUs that permute the bytes of two registers (AVX512-VBMI): codes of FP8 of
/// bf16 times a factor that loops share, which are looked up where none of a
/// register is subnormal, infinite or a NaN. The bits are the same.
void tabulateProducts(mlir::Region &body, ConstantPool &pool);

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_SIGNIFICANDTABLES_H
