#include "Decoder.h"
#include "Memory.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace dither::runtime::sim {

//===----------------------------------------------------------------------===//
// mov, selp, slct
//===----------------------------------------------------------------------===//

/// Types of mov, selp and slct: of 16 bits or more, not packed or alternate.
static bool isMoved(Type type) {
  return type == Type::F32 || type == Type::F64 ||
         (isInteger(type) && sizeOf(type) >= 2 && !isPacked16(type));
}

bool Decoder::decodeMov() {
  Type type;
  opClass = OpClass::Move;
  if (takeType(type) || finish(2))
    return true;
  if (instruction->operands[0].kind == Operand::Vector)
    return decodeUnpack();
  if (instruction->operands[1].kind == Operand::Vector)
    return decodePack();
  if (type == Type::Pred) {
    uint32_t a, d;
    bool negated = false;
    if (readPredicate(instruction->operands[1], a, negated) ||
        write(0, type, d))
      return true;
    Step &step = emit(Form::Logic);
    step.dst = d;
    step.src[0] = step.src[1] = a;
    step.imm = negated ? 0b0011 : 0b1000;
    return false;
  }
  uint32_t a, d;
  if (!isMoved(type))
    return fail("is not for ." + typeName(type));
  if (read(1, type, a) || write(0, type, d))
    return true;
  return lanes(Op::Mov, type, d, {a});
}

/// The type of an element of .bN split in `count`.
static Type partOf(unsigned size, size_t count) {
  switch (count ? size / count : 0) {
  case 1:
    return Type::B8;
  case 2:
    return Type::B16;
  case 4:
    return Type::B32;
  default:
    return Type::None;
  }
}
static Type bitsOf(unsigned size) {
  return size == 2   ? Type::B16
         : size == 4 ? Type::B32
         : size == 8 ? Type::B64
                     : Type::None;
}

/// Notes that element `j` of a register of elements of `part` goes to element
/// `i` of another one; whether checks can tell.
bool Decoder::copyParts(const Operand &to, size_t i, const Operand &from,
                        size_t j, Type part) {
  uint32_t n = sizeOf(part) / 2;
  if (to.kind != Operand::Register || from.kind != Operand::Register || !n)
    return false;
  for (uint32_t k = 0; k < n; ++k)
    uses.copies.push_back({kParts * to.index + uint32_t(i) * n + k,
                           kParts * from.index + uint32_t(j) * n + k});
  return true;
}

/// mov.b64 d, {a, b}
bool Decoder::decodePack() {
  Type type = parseType(instruction->opcode.rsplit('.').second);
  const Operand &vector = instruction->operands[1];
  size_t count = vector.elements.size();
  Type whole = bitsOf(sizeOf(type)), part = partOf(sizeOf(type), count);
  uint32_t src[4], d;
  if (classOf(type) != TypeClass::Bits || part == Type::None ||
      (count != 2 && count != 4))
    return fail("cannot pack " + Twine(count) + " elements");
  for (size_t i = 0; i < count; ++i) {
    size_t reads = uses.reads.size();
    if (read(vector.elements[i], part, src[i]))
      return true;
    if (copyParts(instruction->operands[0], i, vector.elements[i], 0, part))
      uses.reads.resize(reads);
  }
  if (write(0, type, d))
    return true;
  return lanes(count == 2 ? Op::Pack2 : Op::Pack4, whole, d,
               ArrayRef(src, count));
}

/// mov.b64 {a, b}, c
bool Decoder::decodeUnpack() {
  Type type = parseType(instruction->opcode.rsplit('.').second);
  const Operand &vector = instruction->operands[0];
  size_t count = vector.elements.size();
  Type whole = bitsOf(sizeOf(type)), part = partOf(sizeOf(type), count);
  uint32_t a;
  if (classOf(type) != TypeClass::Bits || part == Type::None ||
      (count != 2 && count != 4))
    return fail("cannot unpack " + Twine(count) + " elements");
  if (read(1, type, a))
    return true;
  bool copied = false;
  for (size_t i = 0; i < count; ++i) {
    uint32_t d;
    if (vector.elements[i].kind == Operand::Sink)
      continue;
    copied |=
        copyParts(vector.elements[i], 0, instruction->operands[1], i, part);
    if (write(vector.elements[i], part, d) ||
        lanes(count == 2 ? Op::Unpack2 : Op::Unpack4, whole, d, {a},
              uint32_t(i), Type::None, sizeOf(part)))
      return true;
  }
  if (copied)
    uses.reads.clear();
  return false;
}

bool Decoder::decodeSelp() {
  Type type;
  uint32_t a, b, c, d;
  bool negated = false;
  opClass = OpClass::Move;
  if (takeType(type))
    return true;
  if (!isMoved(type))
    return fail("is not for ." + typeName(type));
  if (finish(4) || read(1, type, a) || read(2, type, b) ||
      readPredicate(instruction->operands[3], c, negated) || write(0, type, d))
    return true;
  if (negated)
    std::swap(a, b);
  return lanes(Op::Select, type, d, {a, b, c});
}

/// slct.type.{s32,f32} d, a, b, c
bool Decoder::decodeSlct() {
  Type type, last;
  opClass = OpClass::Move;
  if (takeType(last) || takeType(type))
    return true;
  if (!isMoved(type) || (last != Type::S32 && last != Type::F32))
    return fail("is not for ." + typeName(type) + " and ." + typeName(last));
  bool ftz = last == Type::F32 && has("ftz");
  uint32_t a, b, c, d;
  if (finish(4) || read(1, type, a) || read(2, type, b) || read(3, last, c) ||
      (ftz && flush(c, last)) || write(0, type, d))
    return true;
  return lanes(Op::Slct, type, d, {a, b, c}, 0, last);
}

//===----------------------------------------------------------------------===//
// setp, set
//===----------------------------------------------------------------------===//

/// Takes the first modifier (ISA, 9.3.1).
bool Decoder::takeComparison(Type type, Op &op) {
  if (modifiers.empty())
    return fail("no comparison");
  StringRef name = modifiers.front();
  modifiers.erase(modifiers.begin());
  constexpr Op none = Op::Add;
  op = StringSwitch<Op>(name)
           .Case("eq", Op::CmpEq)
           .Case("ne", Op::CmpNe)
           .Default(none);
  if (op == none && (isFloat(type) || classOf(type) != TypeClass::Bits))
    op = StringSwitch<Op>(name)
             .Case("lt", Op::CmpLt)
             .Case("le", Op::CmpLe)
             .Case("gt", Op::CmpGt)
             .Case("ge", Op::CmpGe)
             .Default(none);
  if (op == none && classOf(type) == TypeClass::Unsigned)
    op = StringSwitch<Op>(name)
             .Case("lo", Op::CmpLt)
             .Case("ls", Op::CmpLe)
             .Case("hi", Op::CmpGt)
             .Case("hs", Op::CmpGe)
             .Default(none);
  if (op == none && isFloat(type))
    op = StringSwitch<Op>(name)
             .Case("equ", Op::CmpEqu)
             .Case("neu", Op::CmpNeu)
             .Case("ltu", Op::CmpLtu)
             .Case("leu", Op::CmpLeu)
             .Case("gtu", Op::CmpGtu)
             .Case("geu", Op::CmpGeu)
             .Case("num", Op::CmpNum)
             .Case("nan", Op::CmpNan)
             .Default(none);
  if (op == none)
    return fail("'." + name + "' is not a comparison of ." + typeName(type));
  return false;
}

/// How the result is combined with a predicate: the next modifier, if it says.
CompareInfo::Op Decoder::takeBoolean() {
  if (modifiers.empty())
    return CompareInfo::None;
  auto op = StringSwitch<CompareInfo::Op>(modifiers.front())
                .Case("and", CompareInfo::And)
                .Case("or", CompareInfo::Or)
                .Case("xor", CompareInfo::Xor)
                .Default(CompareInfo::None);
  if (op != CompareInfo::None)
    modifiers.erase(modifiers.begin());
  return op;
}

/// setp.lt{.and}{.ftz}.type p{|q}, a, b{, {!}c}; of f16x2, p and q are those of
/// the low and the high half.
bool Decoder::decodeSetp() {
  Type type;
  Op op;
  opClass = OpClass::Predicate;
  if (takeType(type) || takeComparison(type, op))
    return true;
  CompareInfo info;
  info.op = takeBoolean();
  bool ftz = isFloat(type) && has("ftz");
  bool twice = type == Type::F16x2 || type == Type::BF16x2;
  bool brain = type == Type::BF16 || type == Type::BF16x2;
  if (brain && require(90, 78))
    return true;
  if (brain && ftz)
    return fail("'.ftz' is not for ." + typeName(type));
  if (sizeOf(type) < 2 || type == Type::F32x2)
    return fail("is not for ." + typeName(type));
  size_t operands = info.op == CompareInfo::None ? 3 : 4;
  uint32_t a, b, p, q = 0;
  if (finish(operands) || read(1, type, a) || read(2, type, b) ||
      (ftz && (flush(a, type) || flush(b, type))))
    return true;
  if (operands == 4 && readPredicate(instruction->operands[3], info.combine,
                                     info.combineNegated))
    return true;
  const Operand &first = instruction->operands[0];
  bool pair = first.kind == Operand::Pair;
  if (write(pair ? first.elements[0] : first, Type::Pred, p) ||
      (pair && write(first.elements[1], Type::Pred, q)))
    return true;
  if (!twice) {
    info.other = q;
    return compare(op, type, a, b, p, info);
  }
  if (!pair)
    return fail("needs two destinations");
  Type half = type == Type::F16x2 ? Type::F16 : Type::BF16;
  // The first destination may be the operand that both are combined with.
  uint32_t low = temporaryPredicate();
  for (uint32_t i : {0, 1}) {
    uint32_t x = temporary(2), y = temporary(2);
    if (lanes(Op::Unpack2, Type::B32, x, {a}, i, Type::None, 2) ||
        lanes(Op::Unpack2, Type::B32, y, {b}, i, Type::None, 2) ||
        compare(op, half, x, y, i ? q : low, info))
      return true;
  }
  Step &step = emit(Form::Logic);
  step.dst = p;
  step.src[0] = step.src[1] = low;
  step.imm = 0b1000;
  return false;
}

/// set.lt{.and}{.ftz}.dtype.stype d, a, b{, {!}c}: all ones or 1.0.
bool Decoder::decodeSet() {
  Type from, to;
  Op op;
  if (takeType(from) || takeType(to) || takeComparison(from, op))
    return true;
  CompareInfo info;
  info.op = takeBoolean();
  bool ftz = isFloat(from) && has("ftz");
  if (from == Type::F16x2 || from == Type::BF16x2 || from == Type::F32x2)
    return fail("is not simulated for ." + typeName(from));
  if (from == Type::BF16 && require(90, 78))
    return true;
  size_t operands = info.op == CompareInfo::None ? 3 : 4;
  uint32_t a, b, d, p = temporaryPredicate();
  if (finish(operands) || read(1, from, a) || read(2, from, b) ||
      (ftz && (flush(a, from) || flush(b, from))))
    return true;
  if (operands == 4 && readPredicate(instruction->operands[3], info.combine,
                                     info.combineNegated))
    return true;
  if (write(0, to, d) || compare(op, from, a, b, p, info))
    return true;
  return lanes(isFloat(to) ? Op::SetFloat : Op::SetMask, to, d, {p});
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// cvta{.to}.space.u64: generic addresses are those of the global space, with
/// windows for the shared and local ones.
bool Decoder::decodeCvta() {
  Type type;
  opClass = OpClass::Move;
  if (takeType(type))
    return true;
  bool to = has("to");
  Space space;
  if (takeSpace(space))
    return true;
  if (type != Type::U64 || space == Space::Generic || space == Space::Param)
    return fail("is not simulated");
  // The window of a cluster begins with that of the block itself.
  uint64_t window = space == Space::Shared  ? kSharedWindow
                    : space == Space::Local ? kLocalWindow
                                            : 0;
  uint32_t a, d;
  if (finish(2) || read(1, type, a) || write(0, type, d))
    return true;
  return lanes(to ? Op::Sub : Op::Add, type, d, {a, constant(8, window)});
}

/// mapa{.shared::cluster}.{u32,u64} d, a, b: the address in the block of rank b
/// of what is at `a` in this one.
bool Decoder::decodeMapa() {
  Type type;
  opClass = OpClass::Integer;
  if (require(90, 78) || takeType(type))
    return true;
  Space space;
  if (takeSpace(space))
    return true;
  if ((type != Type::U32 && type != Type::U64) ||
      (space != Space::Generic && !inCluster) ||
      (space == Space::Generic && type != Type::U64))
    return fail("is not simulated");
  unsigned width = sizeOf(type);
  uint32_t a, b, d;
  if (finish(3) || read(1, type, a) || read(2, Type::U32, b) ||
      write(0, type, d))
    return true;
  uint32_t rank = temporary(width), own = temporary(width);
  Type bits = width == 8 ? Type::B64 : Type::B32;
  if (width == 8 ? lanes(Op::Convert, Type::U64, rank, {b}, 0, Type::U32)
                 : lanes(Op::Mov, Type::B32, rank, {b}))
    return true;
  // A rank that no cluster has is one still, and not another block's.
  constexpr uint64_t most = 0x7E;
  static_assert(most > kMostClusterBlocks);
  if (lanes(Op::Min, type, rank, {rank, constant(width, most)}))
    return true;
  uint64_t mask = ~(uint64_t(0xFF) << kRankShift);
  uint64_t step = uint64_t(1) << kRankShift;
  return lanes(Op::And, bits, own, {a, constant(width, mask)}) ||
         lanes(Op::MadLo, type, rank,
               {rank, constant(width, step), constant(width, step)}) ||
         lanes(Op::Or, bits, d, {own, rank});
}

bool Decoder::decodeIsspacep() {
  opClass = OpClass::Predicate;
  Space space;
  uint32_t a, p;
  if (takeSpace(space) || finish(2) || read(1, Type::U64, a) ||
      write(0, Type::Pred, p))
    return true;
  Step &step = emit(Form::Isspacep);
  step.dst = p;
  step.src[0] = a;
  step.imm = uint32_t(space);
  step.flags = inCluster;
  return false;
}

} // namespace dither::runtime::sim
