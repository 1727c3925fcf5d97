#include "Types.h"

using namespace llvm;

namespace dither::runtime::sim {

namespace {
struct Row {
  StringLiteral name;
  uint8_t size;
  TypeClass kind;
};
} // namespace

/// In the order of Type.
static constexpr Row rows[] = {
    {"", 0, TypeClass::None},          {"pred", 0, TypeClass::Pred},
    {"b8", 1, TypeClass::Bits},        {"b16", 2, TypeClass::Bits},
    {"b32", 4, TypeClass::Bits},       {"b64", 8, TypeClass::Bits},
    {"b128", 16, TypeClass::Bits},     {"u8", 1, TypeClass::Unsigned},
    {"u16", 2, TypeClass::Unsigned},   {"u32", 4, TypeClass::Unsigned},
    {"u64", 8, TypeClass::Unsigned},   {"s8", 1, TypeClass::Signed},
    {"s16", 2, TypeClass::Signed},     {"s32", 4, TypeClass::Signed},
    {"s64", 8, TypeClass::Signed},     {"f16", 2, TypeClass::Float},
    {"bf16", 2, TypeClass::Float},     {"f32", 4, TypeClass::Float},
    {"f64", 8, TypeClass::Float},      {"tf32", 4, TypeClass::Float},
    {"f16x2", 4, TypeClass::Float},    {"bf16x2", 4, TypeClass::Float},
    {"u16x2", 4, TypeClass::Unsigned}, {"s16x2", 4, TypeClass::Signed},
    {"f32x2", 8, TypeClass::Float},    {"e4m3x2", 2, TypeClass::Float},
    {"e5m2x2", 2, TypeClass::Float},   {"e2m1x2", 1, TypeClass::Float},
    {"e2m3x2", 2, TypeClass::Float},   {"e3m2x2", 2, TypeClass::Float},
    {"ue8m0x2", 2, TypeClass::Float},  {"e4m3x4", 4, TypeClass::Float},
    {"e5m2x4", 4, TypeClass::Float},   {"e2m1x4", 2, TypeClass::Float},
};

Type parseType(StringRef name) {
  for (unsigned i = 1; i < std::size(rows); ++i)
    if (rows[i].name == name)
      return Type(i);
  return Type::None;
}

StringRef typeName(Type type) { return rows[unsigned(type)].name; }
unsigned sizeOf(Type type) { return rows[unsigned(type)].size; }
TypeClass classOf(Type type) { return rows[unsigned(type)].kind; }

StringRef spaceName(Space space) {
  static constexpr StringLiteral names[] = {"generic", "global", "shared",
                                            "local",   "param",  "const"};
  return names[unsigned(space)];
}

} // namespace dither::runtime::sim
