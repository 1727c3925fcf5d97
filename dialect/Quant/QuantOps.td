//===- QuantOps.td - Umbrella: all operations --------------*- tablegen -*-===//

#ifndef DITHER_QUANT_OPS
#define DITHER_QUANT_OPS

include "QuantProgramOps.td"
include "QuantTileOps.td"
include "QuantScaleOps.td"
include "QuantNormOps.td"
include "QuantWordOps.td"

#endif // DITHER_QUANT_OPS
