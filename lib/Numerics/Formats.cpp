//===- Formats.cpp - Look-ups in the format tables ------------------------===//

#include "dither/Numerics/Formats.h"

namespace dither::numerics {

float ElementFormat::minPositive() const {
  return hasSign ? minNormal / float(uint32_t(1) << mantissaBits) : minNormal;
}

const ElementFormat *findElementFormat(std::string_view name) {
  for (const ElementFormat *f : kElementFormats)
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
