#include "Decoder.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace dither::runtime::sim {

bool Decoder::decodeLogic() {
  Type type;
  if (takeType(type))
    return true;
  if (type == Type::Pred)
    return decodePredicateLogic();
  if (classOf(type) != TypeClass::Bits || sizeOf(type) < 2)
    return fail("needs .pred, .b16, .b32 or .b64");
  Op op = StringSwitch<Op>(base)
              .Case("and", Op::And)
              .Case("or", Op::Or)
              .Case("xor", Op::Xor)
              .Case("not", Op::Not)
              .Default(Op::Cnot);
  bool unary = op == Op::Not || op == Op::Cnot;
  uint32_t a, b = 0, d;
  if (finish(unary ? 2 : 3) || read(1, type, a) ||
      (!unary && read(2, type, b)) || write(0, type, d))
    return true;
  return lanes(op, type, d, {a, b});
}

/// Bit i of a truth table is the result for a = i / 2, b = i % 2.
bool Decoder::decodePredicateLogic() {
  opClass = OpClass::Predicate;
  unsigned truth = StringSwitch<unsigned>(base)
                       .Case("and", 0b1000)
                       .Case("or", 0b1110)
                       .Case("xor", 0b0110)
                       .Case("not", 0b0011)
                       .Default(0);
  if (!truth)
    return fail("is not for predicates");
  bool unary = base == "not", negated[2] = {false, false};
  uint32_t a, b, d;
  if (finish(unary ? 2 : 3) ||
      readPredicate(instruction->operands[1], a, negated[0]))
    return true;
  b = a;
  if (!unary && readPredicate(instruction->operands[2], b, negated[1]))
    return true;
  if (negated[0] || negated[1])
    return fail("'!' is not for operands of this instruction");
  if (write(0, Type::Pred, d))
    return true;
  Step &step = emit(Form::Logic);
  step.dst = d;
  step.src[0] = a;
  step.src[1] = b;
  step.imm = truth;
  return false;
}

bool Decoder::decodeShift() {
  Type type;
  uint32_t a, b, d;
  bool left = base == "shl";
  if (takeType(type))
    return true;
  if (!isInteger(type) || sizeOf(type) < 2 ||
      (left && classOf(type) != TypeClass::Bits))
    return fail("is not for ." + typeName(type));
  if (finish(3) || read(1, type, a) || read(2, Type::U32, b) ||
      write(0, type, d))
    return true;
  return lanes(left ? Op::Shl : Op::Shr, type, d, {a, b});
}

/// shf.{l,r}.{clamp,wrap}.b32 d, a, b, c
bool Decoder::decodeFunnel() {
  Type type;
  uint32_t a, b, c, d;
  if (takeType(type))
    return true;
  bool left = has("l");
  if (!left && !has("r"))
    return fail("expected .l or .r");
  bool clamp = has("clamp");
  if (!clamp && !has("wrap"))
    return fail("expected .clamp or .wrap");
  if (type != Type::B32)
    return fail("needs .b32");
  if (finish(4) || read(1, type, a) || read(2, type, b) ||
      read(3, Type::U32, c) || write(0, type, d))
    return true;
  return lanes(left ? Op::ShfL : Op::ShfR, type, d, {a, b, c}, clamp);
}

bool Decoder::decodeField() {
  Type type;
  uint32_t a, b, c, d;
  if (takeType(type))
    return true;
  if (base == "fns") {
    if (finish(4) || read(1, Type::B32, a) || read(2, Type::B32, b) ||
        read(3, Type::S32, c) || write(0, Type::B32, d))
      return true;
    return lanes(Op::Fns, Type::B32, d, {a, b, c});
  }
  if (sizeOf(type) < 4 || !isInteger(type) || isPacked16(type) ||
      (classOf(type) == TypeClass::Bits) != (base == "bfi"))
    return fail("is not for ." + typeName(type));
  if (base == "bfe") {
    if (finish(4) || read(1, type, a) || read(2, Type::U32, b) ||
        read(3, Type::U32, c) || write(0, type, d))
      return true;
    return lanes(Op::Bfe, type, d, {a, b, c});
  }
  uint32_t e;
  if (finish(5) || read(1, type, a) || read(2, type, b) ||
      read(3, Type::U32, c) || read(4, Type::U32, e) || write(0, type, d))
    return true;
  return lanes(Op::Bfi, type, d, {a, b, c, e});
}

/// popc, clz and bfind give 32 bits; brev the type's.
bool Decoder::decodeCount() {
  Type type;
  uint32_t a, d;
  if (takeType(type))
    return true;
  Op op = StringSwitch<Op>(base)
              .Case("popc", Op::Popc)
              .Case("clz", Op::Clz)
              .Case("bfind", Op::Bfind)
              .Default(Op::Brev);
  if (sizeOf(type) < 4 || !isInteger(type) || isPacked16(type) ||
      (classOf(type) == TypeClass::Bits) == (op == Op::Bfind))
    return fail("is not for ." + typeName(type));
  bool shiftAmount = op == Op::Bfind && has("shiftamt");
  Type to = op == Op::Brev ? type : Type::B32;
  if (finish(2) || read(1, type, a) || write(0, to, d))
    return true;
  return lanes(op, type, d, {a}, shiftAmount, Type::None, sizeOf(to));
}

bool Decoder::decodePrmt() {
  opClass = OpClass::Move;
  PrmtMode mode = has("f4e")    ? PrmtMode::F4e
                  : has("b4e")  ? PrmtMode::B4e
                  : has("rc8")  ? PrmtMode::Rc8
                  : has("ecl")  ? PrmtMode::Ecl
                  : has("ecr")  ? PrmtMode::Ecr
                  : has("rc16") ? PrmtMode::Rc16
                                : PrmtMode::Index;
  uint32_t a, b, c, d;
  if (!has("b32"))
    return fail("needs .b32");
  if (finish(4) || read(1, Type::B32, a) || read(2, Type::B32, b) ||
      read(3, Type::B32, c) || write(0, Type::B32, d))
    return true;
  return lanes(Op::Prmt, Type::B32, d, {a, b, c}, uint32_t(mode));
}

bool Decoder::decodeLop3() {
  uint32_t a, b, c, d;
  uint64_t truth = 0;
  if (!has("b32"))
    return fail("needs .b32");
  if (finish(5) || read(1, Type::B32, a) || read(2, Type::B32, b) ||
      read(3, Type::B32, c) || readImmediate(4, truth) ||
      write(0, Type::B32, d))
    return true;
  if (truth > 255)
    return fail("a truth table of " + Twine(truth) + ", expected 0 to 255");
  return lanes(Op::Lop3, Type::B32, d, {a, b, c}, uint32_t(truth));
}

/// szext.{clamp,wrap}.{u32,s32}, bmsk.{clamp,wrap}.b32
bool Decoder::decodeExtend() {
  Type type;
  uint32_t a, b, d;
  if (takeType(type) || require(70, 76))
    return true;
  bool clamp = has("clamp");
  if (!clamp && !has("wrap"))
    return fail("expected .clamp or .wrap");
  if (sizeOf(type) != 4)
    return fail("needs 32 bits");
  if (finish(3) || read(1, type, a) || read(2, Type::U32, b) ||
      write(0, type, d))
    return true;
  return lanes(base == "szext" ? Op::Szext : Op::Bmsk, type, d, {a, b}, clamp);
}

} // namespace dither::runtime::sim
