// The entry point of libFuzzer; DITHER_FUZZ_TARGET is a function of Targets.h.
#include "Targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  dither::fuzz::DITHER_FUZZ_TARGET(data, size);
  return 0;
}
