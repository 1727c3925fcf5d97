//===- Formats.cpp - Look-ups in the format tables ------------------------===//

#include "dither/Numerics/Formats.h"

namespace dither::numerics {

float FloatFormat::minPositive() const {
  return hasSign ? minNormal / float(uint32_t(1) << mantissaBits) : minNormal;
}

const FloatFormat *findFloatFormat(std::string_view name) {
  for (const FloatFormat *f : kFloatFormats)
    if (f->name == name)
      return f;
  return nullptr;
}

const BlockFormat *findBlockFormat(std::string_view name) {
  for (const BlockFormat &f : kBlockFormats)
    if (f.name == name)
      return &f;
  return nullptr;
}

} // namespace dither::numerics
