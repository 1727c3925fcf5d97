#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

static bool isPackedNarrow(Type type) {
  return type == Type::E4M3x2 || type == Type::E5M2x2 || type == Type::E2M1x2 ||
         type == Type::E2M3x2 || type == Type::E3M2x2 || type == Type::UE8M0x2;
}
static Type unsignedOf(unsigned size) {
  return size == 1   ? Type::U8
         : size == 2 ? Type::U16
         : size == 4 ? Type::U32
                     : Type::U64;
}
/// The 64-bit type of the same sign.
static Type extended(Type type, unsigned size) {
  if (!isSigned(type))
    return unsignedOf(size);
  return size == 1   ? Type::S8
         : size == 2 ? Type::S16
         : size == 4 ? Type::S32
                     : Type::S64;
}

/// Which targets have the conversion (ISA, cvt, target notes; as ptxas of CUDA
/// 13.0 has it, and what PTX 9.1 has more as that of 13.3).
bool Decoder::convertTarget(Type to, Type from) {
  auto either = [&](Type type) { return to == type || from == type; };
  bool six = to == Type::E2M3x2 || to == Type::E3M2x2;
  if ((from == Type::BF16x2 && isPackedNarrow(to) && to != Type::UE8M0x2) ||
      (from == Type::F16x2 && six))
    return requireSpecific({100, 101, 103, 110, 120, 121}, true, 91);
  if (either(Type::E2M1x2) || either(Type::E2M3x2) || either(Type::E3M2x2) ||
      either(Type::UE8M0x2))
    return requireSpecific({100, 101, 103, 110, 120, 121}, true, 86);
  if (either(Type::E4M3x2) || either(Type::E5M2x2))
    return require(89, 81);
  if (to == Type::F16x2 || to == Type::BF16x2 ||
      (to == Type::BF16 && from == Type::F32))
    return require(80, 70);
  if (to == Type::F32 && from == Type::BF16)
    return require(80, 71);
  if (either(Type::BF16))
    return require(90, 78);
  return false;
}

/// Combinations that there are not.
bool Decoder::convertModifiers(Type to, Type from) {
  bool brain = to == Type::BF16 || from == Type::BF16;
  bool single = to == Type::F32 || from == Type::F32;
  auto given = [&](StringRef name) { return is_contained(modifiers, name); };
  if (from == Type::TF32)
    return fail("'.tf32' is not a source");
  if (brain && (sizeOf(to) == 1 || sizeOf(from) == 1))
    return fail("'.bf16' is not converted from or to 8 bits");
  if (given("ftz") && (!single || from == Type::BF16 || to == Type::TF32))
    return fail("'.ftz' in this form is not simulated");
  if (!given("sat"))
    return false;
  if (brain)
    return fail("'.sat' is not for .bf16");
  if (isFloat(to) || isFloat(from))
    return false;
  // Values that always fit: a larger type, or the same; from unsigned to signed
  // ones only larger.
  bool fits = isSigned(from) ? isSigned(to) && sizeOf(to) >= sizeOf(from)
                             : sizeOf(to) >= sizeOf(from) + isSigned(to);
  return fits && fail("'.sat' is for values that may not fit");
}

bool Decoder::decodeCvt() {
  opClass = OpClass::Convert;
  if (has("pack"))
    return convertPack();
  Type from, to;
  if (takeType(from) || takeType(to))
    return true;
  if (has("rs"))
    return convertStochastic(to);
  if (convertModifiers(to, from))
    return true;
  if (convertTarget(to, from))
    return true;
  if (isPackedNarrow(from))
    return convertUnpacked(to, from);
  if (isPackedNarrow(to) || to == Type::F16x2 || to == Type::BF16x2)
    return convertPacked(to, from);
  bool fromInteger = !isFloat(from), toInteger = !isFloat(to);
  if ((fromInteger && classOf(from) == TypeClass::Bits) ||
      (toInteger && classOf(to) == TypeClass::Bits))
    return fail("bits are not converted");
  if (fromInteger && toInteger)
    return convertIntegers(to, from, has("sat"));
  if (fromInteger)
    return convertToFloat(to, from);
  if (toInteger)
    return convertToInteger(to, from);
  return convertFloats(to, from);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Registers may be wider than the types: sources are cut, results extended.
bool Decoder::convertIntegers(Type to, Type from, bool saturate) {
  uint32_t a, d;
  const auto &operands = instruction->operands;
  if (finish(2) || read(1, from, a, Fit::Wider) ||
      write(operands[0], to, d, Fit::Wider))
    return true;
  unsigned fromWidth = widthOf(operands[1], from);
  unsigned toWidth = widthOf(operands[0], to);
  if (fromWidth != sizeOf(from)) {
    uint32_t cut = temporary(sizeOf(from));
    if (lanes(Op::Convert, extended(from, sizeOf(from)), cut, {a}, 0,
              unsignedOf(fromWidth)))
      return true;
    a = cut;
  }
  Op op = saturate ? Op::ConvertSat : Op::Convert;
  if (toWidth == sizeOf(to))
    return lanes(op, to, d, {a}, 0, from);
  uint32_t exact = temporary(sizeOf(to));
  return lanes(op, to, exact, {a}, 0, from) ||
         lanes(Op::Convert, extended(to, toWidth), d, {exact}, 0, to);
}

bool Decoder::convertToFloat(Type to, Type from) {
  std::optional<Rounding> rounding = takeRounding();
  bool saturate = has("sat");
  uint32_t a, d;
  if (!rounding)
    return fail("needs a rounding");
  if (finish(2) || read(1, from, a, Fit::Wider) || write(0, to, d))
    return true;
  unsigned width = widthOf(instruction->operands[1], from);
  if (width != sizeOf(from)) {
    uint32_t cut = temporary(sizeOf(from));
    if (lanes(Op::Convert, from, cut, {a}, 0, unsignedOf(width)))
      return true;
    a = cut;
  }
  if (to == Type::F16 || to == Type::BF16) {
    NarrowMode mode;
    mode.rounding = *rounding;
    if (lanes(Op::IntToHalf, to, d, {a}, mode.encode(), from))
      return true;
  } else {
    if (lanes(Op::IntToFloat, to, d, {a}, 0, from))
      return true;
    program.steps.back().rounding = *rounding;
  }
  return saturate && lanes(Op::FSaturate, to, d, {d});
}

/// The integer roundings; nothing where there is none.
static std::optional<Integral> integralOf(StringRef name) {
  if (name == "rni")
    return Integral::Nearest;
  if (name == "rzi")
    return Integral::Zero;
  if (name == "rmi")
    return Integral::Down;
  if (name == "rpi")
    return Integral::Up;
  return std::nullopt;
}

bool Decoder::convertToInteger(Type to, Type from) {
  std::optional<Integral> mode;
  for (StringRef name : {"rni", "rzi", "rmi", "rpi"})
    if (has(name))
      mode = integralOf(name);
  bool ftz = has("ftz");
  has("sat"); // results are clamped without it, too
  uint32_t a, d;
  if (!mode)
    return fail("needs a rounding");
  if (finish(2) || read(1, from, a) || (ftz && flush(a, from)) ||
      write(instruction->operands[0], to, d, Fit::Wider))
    return true;
  if (from == Type::F16 || from == Type::BF16) {
    uint32_t wide = temporary(4);
    if (lanes(Op::Widen, Type::F32, wide, {a}, 0, from))
      return true;
    a = wide;
    from = Type::F32;
  }
  unsigned width = widthOf(instruction->operands[0], to);
  if (width == sizeOf(to))
    return lanes(Op::FloatToInt, to, d, {a}, uint32_t(*mode), from);
  uint32_t exact = temporary(sizeOf(to));
  return lanes(Op::FloatToInt, to, exact, {a}, uint32_t(*mode), from) ||
         lanes(Op::Convert, extended(to, width), d, {exact}, 0, to);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// Between f16, bf16, f32, f64 and to tf32: {.rn, ..}{.ftz}{.sat}{.relu}
/// {.satfinite}, or to an integer in the same type.
bool Decoder::convertFloats(Type to, Type from) {
  std::optional<Integral> integral;
  for (StringRef name : {"rni", "rzi", "rmi", "rpi"})
    if (has(name))
      integral = integralOf(name);
  bool nearestAway = to == Type::TF32 && has("rna");
  std::optional<Rounding> rounding = takeRounding();
  bool ftz = has("ftz"), saturate = has("sat");
  NarrowMode mode;
  mode.relu = has("relu");
  mode.saturate = has("satfinite");
  mode.rounding = rounding.value_or(Rounding::Nearest);
  if (nearestAway)
    return fail("'.rna' is not simulated");
  if (to == Type::TF32 && (from != Type::F32 || require(90, 78)))
    return fail("'.tf32' is from .f32");
  bool directed =
      mode.rounding == Rounding::Up || mode.rounding == Rounding::Down;
  if (directed && (mode.relu || mode.saturate || to == Type::TF32))
    return fail("needs .rn or .rz");
  if (mode.saturate && (to == Type::TF32 ? require(100, 86) : require(80, 81)))
    return true;
  bool narrows = sizeOf(to) < sizeOf(from) || to == Type::TF32 ||
                 (to != from && sizeOf(to) == 2 && sizeOf(from) == 2);
  // f16 to bf16 rounds, and takes a rounding the other way, too.
  bool between = to != from && sizeOf(to) == 2 && sizeOf(from) == 2;
  if (narrows && !between && !rounding)
    return fail("needs a rounding");
  // Some conversions of bf16 may name a rounding all the same.
  bool named = from == Type::BF16 && (to == Type::F32 || to == Type::F64);
  if (!narrows && rounding && !named)
    return fail("has no rounding: it is exact");
  if (integral && to != from)
    return fail("integer roundings are within a type");
  uint32_t a, d;
  if (finish(2) || read(1, from, a) ||
      (ftz && from == Type::F32 && flush(a, from)) || write(0, to, d))
    return true;
  if (sizeOf(from) == 2 && (to != from || integral)) {
    uint32_t wide = to == Type::F32 ? d : temporary(4);
    if (lanes(Op::Widen, Type::F32, wide, {a}, 0, from))
      return true;
    a = wide;
    from = Type::F32;
  }
  if (integral) {
    Type in = sizeOf(to) == 2 ? Type::F32 : to;
    uint32_t rounded = in == to ? d : temporary(4);
    if (lanes(Op::RoundIntegral, in, rounded, {a}, uint32_t(*integral)) ||
        (in != to && lanes(Op::Narrow, to, d, {rounded}, 0, in)))
      return true;
  } else if (to == from) {
    if (a != d && lanes(Op::Mov, to, d, {a}))
      return true;
  } else if (to == Type::F64) {
    if (lanes(Op::Widen, to, d, {a}, 0, Type::F32))
      return true;
  } else if (to == Type::F32) {
    if (lanes(Op::Narrow, to, d, {a}, 0, Type::F64))
      return true;
    program.steps.back().rounding = mode.rounding;
  } else {
    bool fast = mode.rounding == Rounding::Nearest && !mode.relu &&
                !mode.saturate && from == Type::F32 && to != Type::TF32;
    if (lanes(fast ? Op::Narrow : Op::NarrowSlow, to, d, {a}, mode.encode(),
              from))
      return true;
  }
  if (ftz && to == Type::F32 && lanes(Op::FFlush, to, d, {d}))
    return true;
  return saturate && lanes(Op::FSaturate, to, d, {d});
}

/// Two values to a register: d, a, b from .f32, or d, a from .f16x2 and
/// .bf16x2. The first is the high element.
bool Decoder::convertPacked(Type to, Type from) {
  NarrowMode mode;
  std::optional<Rounding> rounding = takeRounding();
  mode.relu = has("relu");
  mode.saturate = has("satfinite");
  mode.rounding = rounding.value_or(Rounding::Nearest);
  bool half = to == Type::F16x2 || to == Type::BF16x2;
  if (!rounding)
    return fail("needs a rounding");
  if (to == Type::UE8M0x2 ? mode.relu || (mode.rounding != Rounding::Up &&
                                          mode.rounding != Rounding::Zero)
      : half ? mode.rounding == Rounding::Up || mode.rounding == Rounding::Down
             : mode.rounding != Rounding::Nearest)
    return fail("the rounding is not one of this conversion");
  if (half && mode.saturate && require(80, 81))
    return true;
  if (!half && to != Type::UE8M0x2 && !mode.saturate)
    return fail("needs .satfinite");
  uint32_t a, b, d;
  if (from == Type::F32) {
    if (finish(3) || read(1, from, a) || read(2, from, b))
      return true;
  } else {
    // Widening is exact.
    bool expected = !half && (from == Type::BF16x2 ||
                              (from == Type::F16x2 && to != Type::UE8M0x2));
    Type element = from == Type::F16x2 ? Type::F16 : Type::BF16;
    uint32_t packed;
    if (!expected)
      return fail("is not a conversion");
    if (finish(2) || read(1, from, packed))
      return true;
    a = temporary(4);
    b = temporary(4);
    for (uint32_t i : {0, 1}) {
      uint32_t narrow = temporary(2);
      if (lanes(Op::Unpack2, Type::B32, narrow, {packed}, i, Type::None, 2) ||
          lanes(Op::Widen, Type::F32, i ? a : b, {narrow}, 0, element))
        return true;
    }
  }
  if (mode.relu && !half)
    for (uint32_t *source : {&a, &b}) {
      uint32_t positive = temporary(4);
      if (lanes(Op::FRelu, Type::F32, positive, {*source}))
        return true;
      *source = positive;
    }
  if (write(0, to, d))
    return true;
  // The second type marks what the fast functions do not do.
  bool slow = to == Type::UE8M0x2
                  ? mode.rounding == Rounding::Zero || !mode.saturate
                  : half && (mode.relu || mode.saturate ||
                             mode.rounding != Rounding::Nearest);
  return lanes(Op::PackNarrow, to, d, {a, b}, mode.encode(),
               slow ? Type::F32 : Type::None);
}

/// cvt.rn{.relu}.f16x2.e4m3x2 d, a
bool Decoder::convertUnpacked(Type to, Type from) {
  bool toBf16 = from == Type::UE8M0x2;
  uint32_t a, d;
  if (!has("rn"))
    return fail("needs .rn");
  bool relu = !toBf16 && has("relu");
  if (to != (toBf16 ? Type::BF16x2 : Type::F16x2))
    return fail("is not a conversion");
  if (finish(2) || read(1, from, a) || write(0, to, d) ||
      lanes(Op::UnpackWiden, to, d, {a}, 0, from))
    return true;
  return relu && lanes(Op::FRelu, to, d, {d});
}

/// cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits;
/// cvt.rs{.relu}.satfinite.e4m3x4.f32 d, {a, b, e, f}, rbits
bool Decoder::convertStochastic(Type to) {
  NarrowMode mode;
  mode.relu = has("relu");
  mode.saturate = has("satfinite");
  if (requireSpecific({100, 103}, false, 87))
    return true;
  approximate(); // the ISA leaves open how random bits are aligned
  opClass = OpClass::Convert;
  uint32_t random, d;
  if (to == Type::F16x2 || to == Type::BF16x2) {
    uint32_t a, b;
    if (finish(4) || read(1, Type::F32, a) || read(2, Type::F32, b) ||
        read(3, Type::B32, random) || write(0, to, d))
      return true;
    return lanes(Op::Stochastic, to, d, {a, b, random}, mode.encode());
  }
  Type pair = to == Type::E4M3x4   ? Type::E4M3x2
              : to == Type::E5M2x4 ? Type::E5M2x2
              : to == Type::E2M1x4 ? Type::E2M1x2
                                   : Type::None;
  if (pair == Type::None || !mode.saturate)
    return fail("is not a conversion");
  const Operand &vector = instruction->operands[1];
  uint32_t src[4], half[2];
  if (finish(3))
    return true;
  if (vector.kind != Operand::Vector || vector.elements.size() != 4)
    return fail("expected a vector of four");
  for (int i = 0; i < 4; ++i)
    if (read(vector.elements[i], Type::F32, src[i]))
      return true;
  if (read(2, Type::B32, random) || write(0, to, d))
    return true;
  for (int i : {0, 1}) { // a and b are the upper half, e and f the lower
    half[i] = temporary(sizeOf(pair));
    if (lanes(Op::Stochastic, pair, half[i],
              {src[2 * i], src[2 * i + 1], random},
              mode.encode() | uint32_t(i == 0) << 8))
      return true;
  }
  return lanes(Op::Pack2, sizeOf(to) == 4 ? Type::B32 : Type::B16, d,
               {half[1], half[0]});
}

/// cvt.pack.sat.{s16,u16}.s32 d, a, b;
/// cvt.pack.sat.{s8,u8,..}.s32.b32 d, a, b, c
bool Decoder::convertPack() {
  Type last, to;
  if (takeType(last))
    return true;
  bool three = last == Type::B32;
  Type from = last;
  if ((three && takeType(from)) || takeType(to))
    return true;
  if (!has("sat") || from != Type::S32 || !isInteger(to) ||
      sizeOf(to) != (three ? 1u : 2u))
    return fail("is not simulated");
  uint32_t a, b, c, d;
  if (require(75, 65) || finish(three ? 4 : 3) || read(1, from, a) ||
      read(2, from, b) || (three && read(3, Type::B32, c)) ||
      write(0, Type::B32, d))
    return true;
  unsigned size = sizeOf(to);
  uint32_t high = temporary(size), low = temporary(size);
  if (lanes(Op::ConvertSat, to, high, {a}, 0, from) ||
      lanes(Op::ConvertSat, to, low, {b}, 0, from))
    return true;
  if (!three)
    return lanes(Op::Pack2, Type::B32, d, {low, high});
  // The low half of c moves up.
  uint32_t bytes = temporary(2), above = temporary(2);
  return lanes(Op::Pack2, Type::B16, bytes, {low, high}) ||
         lanes(Op::Unpack2, Type::B32, above, {c}, 0, Type::None, 2) ||
         lanes(Op::Pack2, Type::B32, d, {bytes, above});
}

} // namespace dither::runtime::sim
