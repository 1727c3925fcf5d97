#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

static bool isHalf(Type type) {
  return type == Type::F16 || type == Type::F16x2 || type == Type::BF16 ||
         type == Type::BF16x2;
}
static bool isBrain(Type type) {
  return type == Type::BF16 || type == Type::BF16x2;
}

std::optional<Rounding> Decoder::takeRounding() {
  if (has("rn"))
    return Rounding::Nearest;
  if (has("rz"))
    return Rounding::Zero;
  if (has("rm"))
    return Rounding::Down;
  if (has("rp"))
    return Rounding::Up;
  return std::nullopt;
}

/// The target and version that arithmetic in `type` needs (ISA, target notes).
bool Decoder::floatTarget(Op op, Type type) {
  opClass = isHalf(type) ? OpClass::Half : OpClass::Float;
  switch (type) {
  case Type::F32:
  case Type::F64:
  case Type::F16:
  case Type::F16x2:
    return false;
  case Type::BF16:
  case Type::BF16x2:
    return op == Op::FFma ? require(80, 70) : require(90, 78);
  case Type::F32x2:
    return require(100, 86);
  default:
    return fail("'." + typeName(type) + "' is not an arithmetic type");
  }
}

/// add, sub and fma{.rn, ..}{.sat}.f32.{f16,bf16} d, a{, b}, c: all but c and d
/// are of the narrow type, which widens exactly.
bool Decoder::decodeMixedArithmetic(Op op, Type narrow, unsigned sources) {
  std::optional<Rounding> rounding = takeRounding();
  bool saturate = has("sat");
  bool fused = instruction->opcode.starts_with("fma"); // and not mad
  if (op != Op::FAdd && op != Op::FSub && !(fused && rounding))
    return fail("has no such mixed form");
  uint32_t src[3], d;
  if (require(100, 86) || finish(sources + 1))
    return true;
  for (unsigned i = 0; i + 1 < sources; ++i) {
    uint32_t half;
    src[i] = temporary(4);
    if (read(i + 1, narrow, half) ||
        lanes(Op::Widen, Type::F32, src[i], {half}, 0, narrow))
      return true;
  }
  if (read(sources, Type::F32, src[sources - 1]) || write(0, Type::F32, d) ||
      lanes(op, Type::F32, d, ArrayRef(src, sources)))
    return true;
  program.steps.back().rounding = rounding.value_or(Rounding::Nearest);
  return saturate && lanes(Op::FSaturate, Type::F32, d, {d});
}

/// add, sub, mul, fma and div: d = op(a, b{, c}).
bool Decoder::decodeFloatArithmetic(Op op, Type type, unsigned sources) {
  if ((type == Type::F16 || type == Type::BF16) && has("f32"))
    return decodeMixedArithmetic(op, type, sources);
  if (floatTarget(op, type))
    return true;
  std::optional<Rounding> rounding = takeRounding();
  bool half = isHalf(type);
  if (half && rounding && *rounding != Rounding::Nearest)
    return fail("roundings of ." + typeName(type) +
                " other than .rn are not simulated");
  if ((op == Op::FFma || op == Op::FDiv) && !rounding)
    return fail("needs a rounding");
  bool ftz = has("ftz"), saturate = has("sat"), relu = half && has("relu");
  if (relu && (op != Op::FFma || require(80, 70)))
    return fail("'.relu' is for fma");
  if (saturate && relu)
    return fail("'.sat' and '.relu' exclude each other");
  if (saturate && (type == Type::F64 || type == Type::F32x2 || isBrain(type)))
    return fail("'.sat' needs .f32, .f16 or .f16x2");
  if (ftz && (type == Type::F64 || isBrain(type)))
    return fail("'.ftz' is not for ." + typeName(type));
  uint32_t src[3], d;
  if (finish(sources + 1))
    return true;
  for (unsigned i = 0; i < sources; ++i)
    if (read(i + 1, type, src[i]) || (ftz && flush(src[i], type)))
      return true;
  if (write(0, type, d) || lanes(op, type, d, ArrayRef(src, sources)))
    return true;
  if (type == Type::F32x2)
    useByParts(sources);
  program.steps.back().rounding = rounding.value_or(Rounding::Nearest);
  if (ftz && lanes(Op::FFlush, type, d, {d}))
    return true;
  if (saturate && lanes(Op::FSaturate, type, d, {d}))
    return true;
  return relu && lanes(Op::FRelu, type, d, {d});
}

bool Decoder::decodeFma() {
  Type type;
  if (takeType(type))
    return true;
  return decodeFloatArithmetic(Op::FFma, type, 3);
}

bool Decoder::decodeDiv() {
  Type type;
  if (takeType(type))
    return true;
  if (!isFloat(type))
    return decodeIntBinary(Op::Div, type);
  if (type != Type::F32 && type != Type::F64)
    return fail("needs .f32 or .f64");
  if (has("approx") || has("full")) {
    // Within 2 ulp; to nearest here.
    if (type != Type::F32)
      return fail("'.approx' and '.full' need .f32");
    modifiers.push_back("rn");
    bool failed = decodeFloatArithmetic(Op::FDiv, type, 2);
    approximate();
    return failed;
  }
  return decodeFloatArithmetic(Op::FDiv, type, 2);
}

/// Each half of a pair follows from those of the operands alone.
void Decoder::useByParts(unsigned sources) {
  uses.reads.clear();
  const Operand &to = instruction->operands[0];
  for (unsigned i = 1; i <= sources; ++i)
    for (size_t half : {0, 1})
      copyParts(to, half, instruction->operands[i], half, Type::F32);
}

/// min and max: {.ftz}{.NaN}{.xorsign.abs}, of two or three sources.
bool Decoder::decodeFloatMinMax(bool isMin, Type type) {
  opClass = isHalf(type) ? OpClass::Half : OpClass::Float;
  bool ftz = has("ftz"), nan = has("NaN"), xorsign = has("xorsign");
  bool absolute = has("abs");
  size_t sources = instruction->operands.size() - 1;
  if (type == Type::F32x2 || (xorsign && !absolute))
    return fail("is not simulated");
  if ((isHalf(type) || nan) && require(80, 70))
    return true;
  if ((nan && type == Type::F64) ||
      (ftz && (type == Type::F64 || isBrain(type))))
    return fail("has no such form for ." + typeName(type));
  if (xorsign && require(86, 72))
    return true;
  if ((sources == 3 || (absolute && !xorsign)) &&
      (type != Type::F32 || xorsign || require(100, 88)))
    return fail("three sources need .f32");
  if (xorsign && type == Type::F64)
    return fail("'.xorsign' is not for .f64");
  if (finish(3, 4))
    return true;
  uint32_t src[3], original[2], d;
  for (unsigned i = 0; i < sources; ++i) {
    if (read(i + 1, type, src[i]) || (ftz && flush(src[i], type)))
      return true;
    if (i < 2)
      original[i] = src[i];
    if (!absolute)
      continue;
    uint32_t magnitude = temporary(sizeOf(type));
    if (lanes(Op::FAbs, type, magnitude, {src[i]}))
      return true;
    src[i] = magnitude;
  }
  Op op =
      isMin ? (nan ? Op::FMinNan : Op::FMin) : (nan ? Op::FMaxNan : Op::FMax);
  if (write(0, type, d))
    return true;
  if (sources == 3 || xorsign) {
    uint32_t partial = temporary(sizeOf(type));
    if (lanes(op, type, partial, {src[0], src[1]}))
      return true;
    return xorsign ? lanes(Op::FXorsign, type, d,
                           {original[0], original[1], partial})
                   : lanes(op, type, d, {partial, src[2]});
  }
  return lanes(op, type, d, {src[0], src[1]});
}

/// What root and reciprocal are once their modifiers are read.
bool Decoder::roundedUnary(Op op, Type type, Rounding rounding, bool approx,
                           bool ftz) {
  if (approx)
    approximate();
  uint32_t a, d;
  if (finish(2) || read(1, type, a) || (ftz && flush(a, type)) ||
      write(0, type, d) || lanes(op, type, d, {a}))
    return true;
  program.steps.back().rounding = rounding;
  return ftz && lanes(Op::FFlush, type, d, {d});
}

bool Decoder::decodeRoot() {
  Type type;
  if (takeType(type))
    return true;
  if (type != Type::F32 && type != Type::F64)
    return fail("needs .f32 or .f64");
  bool approx = type == Type::F32 && has("approx");
  std::optional<Rounding> rounding =
      approx ? Rounding::Nearest : takeRounding();
  bool ftz = type == Type::F32 && has("ftz");
  opClass = OpClass::Float;
  if (!rounding)
    return fail("needs a rounding");
  return roundedUnary(Op::FSqrt, type, *rounding, approx, ftz);
}

bool Decoder::decodeReciprocal() {
  Type type;
  if (takeType(type))
    return true;
  if (type != Type::F32 && type != Type::F64)
    return fail("needs .f32 or .f64");
  bool approx = has("approx");
  std::optional<Rounding> rounding =
      approx ? Rounding::Nearest : takeRounding();
  bool ftz = has("ftz");
  opClass = OpClass::Float;
  if (!rounding)
    return fail("needs a rounding");
  if (type == Type::F64 && (approx || ftz))
    return fail("of .f64 in this form is not simulated");
  return roundedUnary(Op::FRcp, type, *rounding, approx, ftz);
}

/// rsqrt, ex2, lg2, sin, cos and tanh: .approx{.ftz}.
bool Decoder::decodeApproximate() {
  Type type;
  if (takeType(type))
    return true;
  if (!has("approx"))
    return fail("needs .approx");
  bool ftz = has("ftz");
  Op op = base == "rsqrt" ? Op::Rsqrt
          : base == "ex2" ? Op::Ex2
          : base == "lg2" ? Op::Lg2
          : base == "sin" ? Op::Sin
          : base == "cos" ? Op::Cos
                          : Op::Tanh;
  bool halves = op == Op::Ex2 || op == Op::Tanh;
  if (type != Type::F32 && !(op == Op::Rsqrt && type == Type::F64) &&
      !(halves && isHalf(type)))
    return fail("is not for ." + typeName(type));
  if (isHalf(type) && (isBrain(type) ? require(90, 78) : require(75, 70)))
    return true;
  if (op == Op::Tanh && (ftz || require(75, 70)))
    return fail("'.ftz' is not for tanh");
  if (ftz && (type == Type::F16 || type == Type::F16x2))
    return fail("'.ftz' is not for ." + typeName(type));
  // ex2.approx.ftz.bf16 must have the modifier, and bf16 has no subnormals
  // then.
  if (op == Op::Ex2 && isBrain(type) && !ftz)
    return fail("needs .ftz for ." + typeName(type));
  approximate();
  uint32_t a, d;
  if (finish(2) || read(1, type, a) || (ftz && flush(a, type)) ||
      write(0, type, d) || lanes(op, type, d, {a}))
    return true;
  return ftz && lanes(Op::FFlush, type, d, {d});
}

bool Decoder::decodeCopysign() {
  Type type;
  uint32_t a, b, d;
  opClass = OpClass::Float;
  if (takeType(type))
    return true;
  if (type != Type::F32 && type != Type::F64)
    return fail("needs .f32 or .f64");
  if (finish(3) || read(1, type, a) || read(2, type, b) || write(0, type, d))
    return true;
  return lanes(Op::FCopysign, type, d, {a, b});
}

bool Decoder::decodeTestp() {
  Type type;
  uint32_t a, p;
  if (takeType(type))
    return true;
  if (type != Type::F32 && type != Type::F64)
    return fail("needs .f32 or .f64");
  Op op = has("finite")       ? Op::TestFinite
          : has("infinite")   ? Op::TestInfinite
          : has("number")     ? Op::TestNumber
          : has("notanumber") ? Op::TestNotANumber
          : has("normal")     ? Op::TestNormal
          : has("subnormal")  ? Op::TestSubnormal
                              : Op::Add;
  if (op == Op::Add)
    return fail("expected a property");
  opClass = OpClass::Predicate;
  if (finish(2) || read(1, type, a) || write(0, Type::Pred, p))
    return true;
  return compare(op, type, a, a, p, CompareInfo());
}

} // namespace dither::runtime::sim
