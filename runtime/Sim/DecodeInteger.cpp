#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

/// d = op(a, b), all of one type.
bool Decoder::decodeIntBinary(Op op, Type type) {
  uint32_t a, b, d;
  if (finish(3) || read(1, type, a) || read(2, type, b) || write(0, type, d))
    return true;
  return lanes(op, type, d, {a, b});
}

/// add{.sat}, sub{.sat}, add.cc, addc{.cc}, .. of integers; add and sub of
/// floats.
bool Decoder::decodeAddSub() {
  Type type;
  bool isAdd = base.starts_with("add");
  // `add.u32`, but `add.cc.u32` and `addc.cc.u32`.
  if (takeType(type))
    return true;
  if (base == "addc" || base == "subc" || has("cc"))
    return decodeCarry(isAdd ? Op::AddCarry : Op::SubBorrow);
  if (isFloat(type))
    return decodeFloatArithmetic(isAdd ? Op::FAdd : Op::FSub, type, 2);
  if (isPacked16(type) && (!isAdd || require(90, 80)))
    return fail("is not simulated for ." + typeName(type));
  if (has("sat")) {
    if (type != Type::S32)
      return fail("'.sat' needs .s32");
    return decodeIntBinary(isAdd ? Op::AddSat : Op::SubSat, type);
  }
  if (classOf(type) == TypeClass::Bits)
    return fail("'." + typeName(type) + "' is not an arithmetic type");
  return decodeIntBinary(isAdd ? Op::Add : Op::Sub, type);
}

/// The type is still known from the opcode: modifiers were taken by the caller.
bool Decoder::decodeCarry(Op op) {
  Type type = parseType(instruction->opcode.rsplit('.').second);
  if (type != Type::U32 && type != Type::S32 && type != Type::U64 &&
      type != Type::S64)
    return fail("'." + typeName(type) + "' has no carry");
  bool takes = base == "addc" || base == "subc";
  // add.cc: the caller has found .cc.
  bool gives = has("cc") || !takes;
  uint32_t a, b, d;
  if (finish(3) || read(1, type, a) || read(2, type, b) || write(0, type, d))
    return true;
  uint32_t in = takes ? carryFlag : kZeroMask;
  Op sum = op == Op::AddCarry ? Op::AddWithCarry : Op::SubWithBorrow;
  uint32_t out = temporaryPredicate();
  // The carry first: the sum may overwrite a source.
  if (gives) {
    MaskFn fn = table.masks({op, type, Type::None});
    Step &step = emit(Form::Compare);
    step.maskFn = fn;
    step.dst = out;
    step.src[0] = a;
    step.src[1] = b;
    step.src[2] = in;
    step.imm = uint32_t(program.compares.size());
    program.compares.emplace_back();
  }
  if (lanes(sum, type, d, {a, b, in}))
    return true;
  if (gives) {
    Step &step = emit(Form::Logic);
    step.dst = carryFlag;
    step.src[0] = step.src[1] = out;
    step.imm = 0b1000; // out and out
  }
  return false;
}

bool Decoder::decodeMul() {
  Type type;
  if (takeType(type))
    return true;
  if (isFloat(type))
    return decodeFloatArithmetic(Op::FMul, type, 2);
  if (classOf(type) == TypeClass::Bits || isPacked16(type))
    return fail("'." + typeName(type) + "' is not an arithmetic type");
  if (has("hi"))
    return decodeIntBinary(Op::MulHi, type);
  if (has("lo"))
    return decodeIntBinary(Op::MulLo, type);
  if (!has("wide"))
    return fail("expected .hi, .lo or .wide");
  Type wide = sizeOf(type) == 2 ? Type::B32 : Type::B64;
  uint32_t a, b, d;
  if (sizeOf(type) == 8)
    return fail("'.wide' needs 16 or 32 bits");
  if (finish(3) || read(1, type, a) || read(2, type, b) || write(0, wide, d))
    return true;
  return lanes(Op::MulWide, type, d, {a, b}, 0, Type::None, sizeOf(wide));
}

bool Decoder::decodeMad() {
  Type type;
  if (takeType(type))
    return true;
  if (isFloat(type)) // mad.rn.f32 is fma.rn.f32 (ISA, mad)
    return decodeFloatArithmetic(Op::FFma, type, 3);
  if (classOf(type) == TypeClass::Bits || isPacked16(type))
    return fail("'." + typeName(type) + "' is not an arithmetic type");
  bool hi = has("hi"), lo = !hi && has("lo"), wide = !hi && !lo && has("wide");
  if (!hi && !lo && !wide)
    return fail("expected .hi, .lo or .wide");
  if (wide && sizeOf(type) == 8)
    return fail("'.wide' needs 16 or 32 bits");
  Type to = !wide ? type : sizeOf(type) == 2 ? Type::B32 : Type::B64;
  uint32_t a, b, c, d;
  if (finish(4) || read(1, type, a) || read(2, type, b) || read(3, to, c) ||
      write(0, to, d))
    return true;
  return lanes(hi   ? Op::MadHi
               : lo ? Op::MadLo
                    : Op::MadWide,
               type, d, {a, b, c}, 0, Type::None, sizeOf(to));
}

bool Decoder::decodeMul24() {
  Type type;
  if (takeType(type))
    return true;
  bool hi = has("hi");
  if (!hi && !has("lo"))
    return fail("expected .hi or .lo");
  if (base == "mul24")
    return decodeIntBinary(hi ? Op::Mul24Hi : Op::Mul24Lo, type);
  uint32_t a, b, c, d;
  if (finish(4) || read(1, type, a) || read(2, type, b) || read(3, type, c) ||
      write(0, type, d))
    return true;
  return lanes(hi ? Op::Mad24Hi : Op::Mad24Lo, type, d, {a, b, c});
}

bool Decoder::decodeRem() {
  Type type;
  if (takeType(type))
    return true;
  return decodeIntBinary(Op::Rem, type);
}

bool Decoder::decodeMinMax() {
  Type type;
  bool isMin = base == "min";
  if (takeType(type))
    return true;
  if (isFloat(type))
    return decodeFloatMinMax(isMin, type);
  bool relu = has("relu");
  if ((relu || isPacked16(type)) && require(90, 80))
    return true;
  if (relu && type != Type::S32 && type != Type::S16x2)
    return fail("'.relu' needs .s32 or .s16x2");
  if (classOf(type) == TypeClass::Bits)
    return fail("'." + typeName(type) + "' is not an arithmetic type");
  uint32_t d;
  if (decodeIntBinary(isMin ? Op::Min : Op::Max, type))
    return true;
  if (!relu)
    return false;
  d = program.steps.back().dst;
  return lanes(Op::Relu, type, d, {d});
}

bool Decoder::decodeAbsNeg() {
  Type type;
  bool isAbs = base == "abs";
  if (takeType(type))
    return true;
  uint32_t a, d;
  bool ftz = isFloat(type) && has("ftz");
  bool isBf16 = type == Type::BF16 || type == Type::BF16x2;
  if (isBf16 && require(80, 70))
    return true;
  if (type == Type::F32x2 || (isBf16 && ftz))
    return fail("is not for ." + typeName(type));
  if (!isFloat(type) && !isSigned(type))
    return fail("needs a signed type");
  if (finish(2) || read(1, type, a) || write(0, type, d))
    return true;
  if (!isFloat(type))
    return lanes(isAbs ? Op::Abs : Op::Neg, type, d, {a});
  opClass =
      sizeOf(type) == 4 && type == Type::F32 ? OpClass::Float : OpClass::Half;
  if (type == Type::F32 || type == Type::F64)
    opClass = OpClass::Float;
  if (lanes(isAbs ? Op::FAbs : Op::FNeg, type, d, {a}))
    return true;
  return ftz && lanes(Op::FFlush, type, d, {d});
}

bool Decoder::decodeSad() {
  Type type;
  uint32_t a, b, c, d;
  if (takeType(type) || finish(4) || read(1, type, a) || read(2, type, b) ||
      read(3, type, c) || write(0, type, d))
    return true;
  return lanes(Op::Sad, type, d, {a, b, c});
}

bool Decoder::decodeDp4a() {
  Type second, first;
  uint32_t a, b, c, d;
  if (takeType(second) || takeType(first) || finish(4) ||
      read(1, Type::B32, a) || read(2, Type::B32, b) || read(3, Type::B32, c) ||
      write(0, Type::B32, d))
    return true;
  return lanes(Op::Dp4a, first, d, {a, b, c}, 0, second);
}

} // namespace dither::runtime::sim
