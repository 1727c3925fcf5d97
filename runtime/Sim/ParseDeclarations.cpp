#include "Parser.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

/// `.align 16`: a power of two, and no larger than what memory is aligned to.
bool Parser::parseAlign(uint32_t &align) {
  int64_t given = 0;
  if (parseInteger(given))
    return true;
  if (given <= 0 || given > 256 || !isPowerOf2_64(uint64_t(given)))
    return fail("alignment is " + Twine(given) +
                ", expected a power of two up to 256");
  align = uint32_t(given);
  return false;
}

/// `[4][8]` or `[]`.
bool Parser::parseArraySizes(uint64_t &count, bool &open) {
  while (consume('[')) {
    if (consume(']')) {
      open = true;
      continue;
    }
    int64_t size = 0;
    if (parseInteger(size) || expect(']'))
      return true;
    constexpr uint64_t most = uint64_t(1) << 40;
    if (size < 0 || (size && count > most / uint64_t(size)))
      return fail("array of " + Twine(count) + " times " + Twine(size) +
                  " elements");
    count *= uint64_t(size);
  }
  return false;
}

/// After the directive of the state space: `.align 4 .b8 name[16] = {..};`.
bool Parser::parseVariable(Space space, bool isExtern) {
  VariableDecl variable;
  variable.space = space;
  variable.kernel = kernelIndex;
  variable.line = peek().line;
  unsigned lanes = 1;
  Type type = Type::None;
  uint32_t align = 0;
  for (;;) {
    if (consumeDirective(".align")) {
      if (parseAlign(align))
        return true;
    } else if (consumeDirective(".v2")) {
      lanes = 2;
    } else if (consumeDirective(".v4")) {
      lanes = 4;
    } else if (consumeDirective(".attribute")) {
      while (peek().kind != Token::End && !peek().is(')'))
        take();
      if (expect(')'))
        return true;
    } else {
      break;
    }
  }
  if (parseDirectiveType(type))
    return true;
  if (!sizeOf(type))
    return fail("variables of type '" + typeName(type) + "' are not simulated");
  do {
    VariableDecl one = variable;
    bool open = false;
    uint64_t count = lanes;
    if (parseName(one.name) || parseArraySizes(count, open))
      return true;
    one.align = align ? align : sizeOf(type) * lanes;
    one.dynamic = open && isExtern && space == Space::Shared;
    if (isExtern && !one.dynamic)
      return fail("extern variable '" + one.name + "' is not defined here");
    one.size = one.dynamic ? 0 : open ? 0 : count * sizeOf(type);
    if (consume('=')) {
      if (space == Space::Shared || space == Space::Local)
        return fail(spaceName(space) + " variable '" + one.name +
                    "' has an initializer");
      if (parseInitializer(one, type))
        return true;
      if (open)
        one.size = one.initializer.size();
      if (one.initializer.size() > one.size)
        return fail("initializer of '" + one.name + "' is longer than it");
    }
    Operand operand;
    operand.kind = Operand::Variable;
    operand.index = uint32_t(module.variables.size());
    StringRef name = one.name;
    unsigned line = one.line;
    module.variables.push_back(std::move(one));
    if (declare(name, operand, line))
      return true;
  } while (consume(','));
  return expect(';');
}

bool Parser::parseInitializer(VariableDecl &variable, Type type,
                              unsigned depth) {
  if (!consume('{'))
    return parseInitializerValue(variable, type);
  if (depth == kMaxDepth)
    return fail("initializers are nested too deeply");
  if (consume('}'))
    return false;
  do {
    if (parseInitializer(variable, type, depth + 1))
      return true;
  } while (consume(','));
  return expect('}');
}

/// A number, or `name+4`, `generic(name)+4`.
bool Parser::parseInitializerValue(VariableDecl &variable, Type type) {
  unsigned size = sizeOf(type);
  uint64_t bits = 0;
  if (peek().kind == Token::Word) {
    bool generic = peek().text == "generic" && peek(1).is('(');
    if (generic) {
      take();
      take();
    }
    StringRef name;
    if (parseName(name) || (generic && expect(')')))
      return true;
    std::optional<Operand> found = lookup(name);
    if (!found || found->kind != Operand::Variable)
      return fail("'" + name + "' is not the name of a variable");
    if (size != 8)
      return fail("the address of '" + name + "' needs 8 bytes");
    int64_t addend = 0;
    if ((consume('+') || peek().is('-')) && parseInteger(addend))
      return true;
    variable.relocations.push_back(
        {variable.initializer.size(), found->index, addend});
  } else {
    Operand number;
    bool negative = consume('-');
    if (parseNumber(number, negative))
      return true;
    bits = number.bits;
    bool isDouble = number.kind == Operand::Float64;
    if (isDouble && type == Type::F32) {
      double value;
      std::memcpy(&value, &bits, sizeof value);
      float narrow = float(value);
      uint32_t code;
      std::memcpy(&code, &narrow, sizeof code);
      bits = code;
    } else if (number.kind == Operand::Immediate && isFloat(type)) {
      return fail("integer initializer of type '" + typeName(type) + "'");
    }
  }
  for (unsigned i = 0; i < size; ++i)
    variable.initializer.push_back(i < 8 ? uint8_t(bits >> (8 * i)) : 0);
  return false;
}

/// After `.reg`: `.b32 %r<9>, a, b;`.
bool Parser::parseRegisters() {
  Type type = Type::None;
  unsigned line = peek().line;
  if (parseDirectiveType(type))
    return true;
  if (type != Type::Pred && (!sizeOf(type) || sizeOf(type) > 8))
    return fail("registers of type '" + typeName(type) + "' are not simulated");
  do {
    StringRef name;
    if (parseName(name))
      return true;
    RegisterDecl reg;
    reg.name = name;
    reg.type = type;
    uint32_t first = uint32_t(kernel->registers.size());
    if (!consume('<')) {
      kernel->registers.push_back(reg);
      Operand operand;
      operand.kind = Operand::Register;
      operand.index = first;
      if (declare(name, operand, line))
        return true;
      continue;
    }
    int64_t count = 0;
    if (parseInteger(count) || expect('>'))
      return true;
    // Of a gigabyte in all warps.
    constexpr uint64_t most = 1 << 17;
    if (count < 0 || first + uint64_t(count) > most)
      return fail("more than " + Twine(most) + " registers");
    reg.family = true;
    for (reg.number = 0; reg.number < uint64_t(count); ++reg.number)
      kernel->registers.push_back(reg);
    if (!scopes.back()
             .families.try_emplace(name, first, uint32_t(count))
             .second)
      return fail("registers '" + name + "' are declared twice", line);
  } while (consume(','));
  return expect(';');
}

} // namespace dither::runtime::sim
