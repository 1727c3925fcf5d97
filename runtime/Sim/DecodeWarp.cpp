#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

/// shfl.sync.mode.b32 d{|p}, a, b, c, membermask
bool Decoder::decodeShuffle() {
  opClass = OpClass::WarpLevel;
  WarpInfo info;
  if (!has("sync"))
    return fail("needs .sync");
  if (!has("b32"))
    return fail("needs .b32");
  info.mode = has("up")     ? WarpInfo::Up
              : has("down") ? WarpInfo::Down
              : has("bfly") ? WarpInfo::Bfly
                            : WarpInfo::Idx;
  if (info.mode == WarpInfo::Idx && !has("idx"))
    return fail("expected .up, .down, .bfly or .idx");
  uint32_t a, b, c, d;
  if (finish(5) || read(1, Type::B32, a) || read(2, Type::B32, b) ||
      read(3, Type::B32, c) || read(4, Type::B32, info.mask))
    return true;
  const Operand &first = instruction->operands[0];
  bool pair = first.kind == Operand::Pair;
  if (write(pair ? first.elements[0] : first, Type::B32, d) ||
      (pair && write(first.elements[1], Type::Pred, info.predicate)))
    return true;
  Step &step = emit(Form::Shuffle);
  step.dst = d;
  step.width = 4;
  step.src[0] = a;
  step.src[1] = b;
  step.src[2] = c;
  step.imm = uint32_t(program.warps.size());
  program.warps.push_back(info);
  return false;
}

/// vote.sync.{all,any,uni}.pred p, {!}q, mask; vote.sync.ballot.b32 d, {!}q,
/// mask
bool Decoder::decodeVote() {
  opClass = OpClass::WarpLevel;
  WarpInfo info;
  Type type;
  if (!has("sync"))
    return fail("needs .sync");
  if (takeType(type))
    return true;
  info.mode = has("all")   ? WarpInfo::All
              : has("any") ? WarpInfo::Any
              : has("uni") ? WarpInfo::Uni
                           : WarpInfo::Ballot;
  bool ballot = info.mode == WarpInfo::Ballot;
  if (ballot && !has("ballot"))
    return fail("expected .all, .any, .uni or .ballot");
  if (type != (ballot ? Type::B32 : Type::Pred))
    return fail("has no form for ." + typeName(type));
  uint32_t a, d;
  if (finish(3) || readPredicate(instruction->operands[1], a, info.negated) ||
      read(2, Type::B32, info.mask) || write(0, type, d))
    return true;
  Step &step = emit(Form::Vote);
  step.dst = d;
  step.width = ballot ? 4 : 0;
  step.src[0] = a;
  step.imm = uint32_t(program.warps.size());
  program.warps.push_back(info);
  return false;
}

/// match.{any,all}.sync.{b32,b64} d{|p}, a, mask
bool Decoder::decodeMatch() {
  opClass = OpClass::WarpLevel;
  WarpInfo info;
  Type type;
  if (takeType(type))
    return true;
  bool all = has("all");
  info.mode = all ? WarpInfo::All : WarpInfo::Any;
  if (!all && !has("any"))
    return fail("expected .any or .all");
  if (!has("sync") || (type != Type::B32 && type != Type::B64))
    return fail("needs .sync, and .b32 or .b64");
  uint32_t a, d;
  if (finish(3) || read(1, type, a) || read(2, Type::B32, info.mask))
    return true;
  const Operand &first = instruction->operands[0];
  bool pair = first.kind == Operand::Pair;
  if (pair && !all)
    return fail("a second destination is for .all");
  if (write(pair ? first.elements[0] : first, Type::B32, d) ||
      (pair && write(first.elements[1], Type::Pred, info.predicate)))
    return true;
  Step &step = emit(Form::Match);
  step.dst = d;
  step.width = 4;
  step.src[0] = a;
  step.flags = uint8_t(sizeOf(type));
  step.imm = uint32_t(program.warps.size());
  program.warps.push_back(info);
  return false;
}

/// redux.sync.op.type d, a, mask
bool Decoder::decodeRedux() {
  opClass = OpClass::WarpLevel;
  WarpInfo info;
  Type type;
  if (!has("sync"))
    return fail("needs .sync");
  if (takeType(type) || require(80, 70))
    return true;
  bool minMax = true, logic = false;
  if (has("min")) {
    info.mode = WarpInfo::Min;
  } else if (has("max")) {
    info.mode = WarpInfo::Max;
  } else {
    minMax = false;
    logic = true;
    info.mode = has("and")   ? WarpInfo::And
                : has("or")  ? WarpInfo::Or
                : has("xor") ? WarpInfo::Xor
                             : WarpInfo::Add;
    if (info.mode == WarpInfo::Add) {
      logic = false;
      if (!has("add"))
        return fail("expected an operation");
    }
  }
  info.isFloat = type == Type::F32;
  info.isSigned = isSigned(type);
  if (info.isFloat) {
    if (!minMax || requireSpecific({100, 101, 103}, true, 86))
      return fail("is not for .f32");
    info.abs = has("abs");
    info.nan = has("NaN");
  } else if (type != Type::B32 && type != Type::U32 && type != Type::S32) {
    return fail("is not for ." + typeName(type));
  } else if (logic != (type == Type::B32)) {
    return fail("has no form for ." + typeName(type));
  }
  uint32_t a, d;
  if (finish(3) || read(1, type, a) || read(2, Type::B32, info.mask) ||
      write(0, type, d))
    return true;
  Step &step = emit(Form::Redux);
  step.dst = d;
  step.width = 4;
  step.src[0] = a;
  step.imm = uint32_t(program.warps.size());
  program.warps.push_back(info);
  return false;
}

bool Decoder::decodeActivemask() {
  opClass = OpClass::WarpLevel;
  uint32_t d;
  if (!has("b32"))
    return fail("needs .b32");
  if (finish(1) || write(0, Type::B32, d))
    return true;
  Step &step = emit(Form::Activemask);
  step.dst = d;
  step.width = 4;
  return false;
}

/// elect.sync d|p, mask: the first of the members.
bool Decoder::decodeElect() {
  opClass = OpClass::WarpLevel;
  uint32_t mask, d, p;
  if (!has("sync"))
    return fail("needs .sync");
  if (require(90, 80) || finish(2) || read(1, Type::B32, mask))
    return true;
  const Operand &first = instruction->operands[0];
  if (first.kind != Operand::Pair)
    return fail("needs two destinations");
  if (write(first.elements[0], Type::B32, d) ||
      write(first.elements[1], Type::Pred, p))
    return true;
  Step &step = emit(Form::Elect);
  step.dst = d;
  step.width = 4;
  step.src[0] = mask;
  step.src[1] = p;
  return false;
}

/// Cache policies have no effect here: the register gets zero.
bool Decoder::decodeCreatepolicy() {
  opClass = OpClass::Move;
  uint32_t d;
  if (require(80, 74))
    return true;
  modifiers.clear();
  if (finish(1, 4) || write(0, Type::B64, d))
    return true;
  return lanes(Op::Mov, Type::B64, d, {constant(8, 0)});
}

} // namespace dither::runtime::sim
