#include "Targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  dither::fuzz::parsePtx(data, size);
  return 0;
}
