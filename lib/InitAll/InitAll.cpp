//===- InitAll.cpp - The dialects and passes of dither --------------------===//

#include "dither/InitAll.h"
#include "dither/Conversion/Passes.h"
#include "dither/Pipelines/Pipelines.h"
#include "dither/Target/Passes.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void dither::registerAllDialects(DialectRegistry &registry) {
  pipelines::registerDialects(registry);
}

void dither::registerAllPasses() {
  transforms::registerDitherTransformsPasses();
  conversion::registerDitherConversionPasses();
  target::registerDitherTargetPasses();
  pipelines::registerPipelines();
  registerCanonicalizerPass();
  registerCSEPass();
  registerSymbolDCEPass();
}
