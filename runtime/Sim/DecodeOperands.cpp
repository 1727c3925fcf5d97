#include "Decoder.h"

#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static Type elementOf(Type type) {
  switch (type) {
  case Type::F16x2:
  case Type::BF16x2:
  case Type::U16x2:
  case Type::S16x2:
  case Type::TF32:
  case Type::E4M3x4:
  case Type::E5M2x4:
    return Type::B32;
  case Type::F32x2:
    return Type::B64;
  case Type::BF16:
  case Type::E4M3x2:
  case Type::E5M2x2:
  case Type::E2M3x2:
  case Type::E3M2x2:
  case Type::UE8M0x2:
  case Type::E2M1x4:
    return Type::B16;
  case Type::E2M1x2:
    return Type::B8;
  default:
    return type;
  }
}

/// Bits agree with every type of their size, integers with integers, floats
/// with themselves (ISA, 9.4).
bool Decoder::checkRegister(const Operand &operand, Type type, Fit fit) {
  const RegisterDecl &reg = kernel.registers[operand.index];
  auto mismatch = [&] {
    return fail("register " + reg.text() + " has type ." + typeName(reg.type) +
                ", expected ." + typeName(type));
  };
  if ((reg.type == Type::Pred) != (type == Type::Pred))
    return mismatch();
  if (type == Type::Pred)
    return false;
  unsigned need = sizeOf(type), have = sizeOf(reg.type);
  if (fit == Fit::Wider ? have < need : have != need)
    return mismatch();
  Type element = elementOf(type);
  TypeClass a = classOf(reg.type), b = classOf(element);
  if (a == TypeClass::Bits || b == TypeClass::Bits)
    return false;
  if (a == TypeClass::Float || b == TypeClass::Float)
    return reg.type == type || reg.type == element ? false : mismatch();
  return false;
}

unsigned Decoder::widthOf(const Operand &operand, Type type) const {
  return operand.kind == Operand::Register
             ? sizeOf(kernel.registers[operand.index].type)
             : sizeOf(type);
}

/// Floats are given as 0f, 0d or decimals, integers as integers; bits take
/// both.
bool Decoder::immediate(const Operand &operand, Type type, uint64_t &bits) {
  bool isBits = classOf(elementOf(type)) == TypeClass::Bits;
  bool isHalf = type == Type::F16 || type == Type::BF16;
  if (operand.kind == Operand::Immediate && (!isFloat(type) || isBits)) {
    bits = operand.bits;
    return false;
  }
  bool single = operand.kind == Operand::Float32;
  bool twice = operand.kind == Operand::Float64;
  if ((single || twice) && (isFloat(type) || isBits) && !isHalf) {
    float narrow;
    double wide;
    if (single) {
      uint32_t code = uint32_t(operand.bits);
      std::memcpy(&narrow, &code, 4);
      wide = narrow;
    } else {
      std::memcpy(&wide, &operand.bits, 8);
      narrow = float(wide);
    }
    if (sizeOf(type) == 8)
      std::memcpy(&bits, &wide, 8);
    else if (sizeOf(type) == 4) {
      bits = 0;
      std::memcpy(&bits, &narrow, 4);
    } else {
      return fail("unexpected float");
    }
    return false;
  }
  return fail(isFloat(type) ? "expected a register or a float"
                            : "expected a register or an integer");
}

/// What changes while a kernel runs.
static bool isClock(Special special) {
  return special >= Special::Clock && special <= Special::GlobaltimerHi;
}

uint32_t Decoder::numParts(uint32_t reg) const {
  return std::max(sizeOf(kernel.registers[reg].type) / 2, 1u);
}

void Decoder::addParts(std::vector<uint32_t> &list, uint32_t reg) const {
  for (uint32_t part = 0, n = numParts(reg); part < n; ++part)
    list.push_back(kParts * reg + part);
}

bool Decoder::read(const Operand &operand, Type type, uint32_t &offset,
                   Fit fit) {
  if (operand.negated)
    return fail("'!' is only for predicates");
  switch (operand.kind) {
  case Operand::Register:
    if (checkRegister(operand, type, fit))
      return true;
    addParts(uses.reads, operand.index);
    offset = registerOffsets[operand.index];
    return false;
  case Operand::SpecialRegister:
    if (sizeOf(Special(operand.index)) != sizeOf(type))
      return fail("special register of " +
                  Twine(8 * sizeOf(Special(operand.index))) +
                  " bits, expected ." + typeName(type));
    if (isClock(Special(operand.index))) {
      offset = temporary(sizeOf(type));
      Step &step = emit(Form::Clock);
      step.dst = offset;
      step.width = uint8_t(sizeOf(type));
      step.imm = operand.index;
      return false;
    }
    offset = special(Special(operand.index));
    return false;
  case Operand::Param: // its address, in the param space
    if (sizeOf(type) < 4)
      return fail("addresses do not fit ." + typeName(type));
    offset = constant(sizeOf(type), kernel.params[operand.index].offset);
    return false;
  case Operand::Variable: {
    uint64_t address = 0;
    if (variableAddress(operand, address))
      return true;
    if (sizeOf(type) < 4)
      return fail("addresses do not fit ." + typeName(type));
    offset = constant(sizeOf(type), address);
    return false;
  }
  case Operand::Immediate:
  case Operand::Float32:
  case Operand::Float64: {
    uint64_t bits = 0;
    if (immediate(operand, type, bits))
      return true;
    offset = constant(sizeOf(type), bits);
    return false;
  }
  case Operand::Label:
    return fail("unexpected label");
  default:
    return fail("unexpected kind of operand");
  }
}

bool Decoder::readImmediate(unsigned index, uint64_t &value) {
  const Operand &operand = instruction->operands[index];
  if (operand.kind != Operand::Immediate)
    return fail("operand " + Twine(index) + " must be an integer constant");
  value = operand.bits;
  return false;
}

bool Decoder::readPredicate(const Operand &operand, uint32_t &offset,
                            bool &negated) {
  negated = operand.negated;
  if (operand.kind == Operand::Immediate) {
    offset = constant(0, operand.bits);
    return false;
  }
  if (operand.kind != Operand::Register)
    return fail("expected a predicate");
  if (checkRegister(operand, Type::Pred, Fit::Exact))
    return true;
  addParts(uses.reads, operand.index);
  offset = registerOffsets[operand.index];
  return false;
}

bool Decoder::write(const Operand &operand, Type type, uint32_t &offset,
                    Fit fit) {
  if (operand.kind == Operand::Sink) {
    offset = temporary(sizeOf(type));
    return false;
  }
  if (operand.kind != Operand::Register || operand.negated)
    return fail("the destination must be a register");
  if (checkRegister(operand, type, fit))
    return true;
  addParts(uses.writes, operand.index);
  offset = registerOffsets[operand.index];
  Definitions &all = definitions[operand.index];
  all = {all.count + 1, type, instruction->opcode};
  return false;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Step &Decoder::emit(Form form) {
  Step &step = program.steps.emplace_back();
  step.form = form;
  step.guard = kAllOnes;
  return step;
}

/// `width` is that of dst; 0 for the size of `type`.
bool Decoder::lanes(Op op, Type type, uint32_t dst, ArrayRef<uint32_t> src,
                    uint32_t imm, Type second, unsigned width) {
  LaneFn fn = table.lanes({op, type, second});
  if (!fn)
    return fail("is not simulated for ." + typeName(type));
  Step &step = emit(Form::Lanes);
  step.laneFn = fn;
  step.dst = dst;
  std::copy(src.begin(), src.end(), step.src);
  step.imm = imm;
  step.width = uint8_t(width ? width : sizeOf(type));
  return false;
}

bool Decoder::compare(Op op, Type type, uint32_t a, uint32_t b, uint32_t dst,
                      const CompareInfo &info) {
  MaskFn fn = table.masks({op, type, Type::None});
  if (!fn)
    return fail("is not simulated for ." + typeName(type));
  Step &step = emit(Form::Compare);
  step.maskFn = fn;
  step.dst = dst;
  step.src[0] = a;
  step.src[1] = b;
  step.imm = uint32_t(program.compares.size());
  program.compares.push_back(info);
  return false;
}

/// A copy of a source in which subnormals are zeros.
bool Decoder::flush(uint32_t &offset, Type type) {
  uint32_t flushed = temporary(sizeOf(type));
  if (lanes(Op::FFlush, type, flushed, {offset}))
    return true;
  offset = flushed;
  return false;
}

} // namespace dither::runtime::sim
