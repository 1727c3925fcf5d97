#include "Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

unsigned sizeOf(Special special) {
  return special == Special::Clock64 || special == Special::Globaltimer ||
                 special == Special::Gridid
             ? 8
             : 4;
}

static std::optional<Special> parseSpecial(StringRef name) {
  return StringSwitch<std::optional<Special>>(name)
      .Cases({"%tid", "%tid.x"}, Special::TidX)
      .Case("%tid.y", Special::TidY)
      .Case("%tid.z", Special::TidZ)
      .Cases({"%ntid", "%ntid.x"}, Special::NtidX)
      .Case("%ntid.y", Special::NtidY)
      .Case("%ntid.z", Special::NtidZ)
      .Cases({"%ctaid", "%ctaid.x"}, Special::CtaidX)
      .Case("%ctaid.y", Special::CtaidY)
      .Case("%ctaid.z", Special::CtaidZ)
      .Cases({"%nctaid", "%nctaid.x"}, Special::NctaidX)
      .Case("%nctaid.y", Special::NctaidY)
      .Case("%nctaid.z", Special::NctaidZ)
      .Case("%laneid", Special::Laneid)
      .Case("%warpid", Special::Warpid)
      .Case("%nwarpid", Special::Nwarpid)
      .Case("%smid", Special::Smid)
      .Case("%nsmid", Special::Nsmid)
      .Case("%gridid", Special::Gridid)
      .Case("%lanemask_eq", Special::LanemaskEq)
      .Case("%lanemask_le", Special::LanemaskLe)
      .Case("%lanemask_lt", Special::LanemaskLt)
      .Case("%lanemask_ge", Special::LanemaskGe)
      .Case("%lanemask_gt", Special::LanemaskGt)
      .Case("%clock", Special::Clock)
      .Case("%clock_hi", Special::ClockHi)
      .Case("%clock64", Special::Clock64)
      .Case("%globaltimer", Special::Globaltimer)
      .Case("%globaltimer_lo", Special::GlobaltimerLo)
      .Case("%globaltimer_hi", Special::GlobaltimerHi)
      .Case("%dynamic_smem_size", Special::DynamicSmemSize)
      .Case("%total_smem_size", Special::TotalSmemSize)
      .Cases({"%clusterid", "%clusterid.x"}, Special::ClusteridX)
      .Case("%clusterid.y", Special::ClusteridY)
      .Case("%clusterid.z", Special::ClusteridZ)
      .Cases({"%nclusterid", "%nclusterid.x"}, Special::NclusteridX)
      .Case("%nclusterid.y", Special::NclusteridY)
      .Case("%nclusterid.z", Special::NclusteridZ)
      .Cases({"%cluster_ctaid", "%cluster_ctaid.x"}, Special::ClusterCtaidX)
      .Case("%cluster_ctaid.y", Special::ClusterCtaidY)
      .Case("%cluster_ctaid.z", Special::ClusterCtaidZ)
      .Cases({"%cluster_nctaid", "%cluster_nctaid.x"}, Special::ClusterNctaidX)
      .Case("%cluster_nctaid.y", Special::ClusterNctaidY)
      .Case("%cluster_nctaid.z", Special::ClusterNctaidZ)
      .Case("%cluster_ctarank", Special::ClusterCtarank)
      .Case("%cluster_nctarank", Special::ClusterNctarank)
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// Blocks and labels
//===----------------------------------------------------------------------===//

bool Parser::parseBody() {
  if (expect('{'))
    return true;
  if (scopes.size() == kMaxDepth)
    return fail("blocks are nested too deeply");
  scopes.emplace_back();
  while (!peek().is('}')) {
    if (peek().kind == Token::End)
      return unexpected("'}'");
    if (parseStatement())
      return true;
  }
  take();
  return closeScope();
}

bool Parser::closeScope() {
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  for (const Scope::Pending &use : scope.pending) {
    auto found = scope.labels.find(use.label);
    if (found == scope.labels.end()) {
      if (scopes.size() <= 1)
        return fail("'" + use.label + "' is not declared", use.line);
      scopes.back().pending.push_back(use);
      continue;
    }
    if (use.isTarget)
      kernel->branchTargets[use.index][use.element] = found->second;
    else
      kernel->instructions[use.index].operands[use.element].index =
          found->second;
  }
  return false;
}

bool Parser::parseStatement() {
  if (peek().is('{'))
    return parseBody();
  if (consume(';'))
    return false;
  if (peek().kind == Token::Directive)
    return parseBodyDirective();
  if (peek().kind == Token::Word && peek(1).is(':')) {
    unsigned line = peek().line;
    StringRef name = take().text;
    take();
    if (peek().kind == Token::Directive && peek().text == ".branchtargets")
      return parseBranchTargets(name);
    uint32_t position = uint32_t(kernel->instructions.size());
    if (!scopes.back().labels.try_emplace(name, position).second)
      return fail("label '" + name + "' is declared twice", line);
    return false;
  }
  return parseInstruction();
}

/// `name: .branchtargets $L1, $L2;`
bool Parser::parseBranchTargets(StringRef label) {
  unsigned line = take().line;
  Operand operand;
  operand.kind = Operand::BranchTargets;
  operand.index = uint32_t(kernel->branchTargets.size());
  kernel->branchTargets.emplace_back();
  do {
    StringRef name;
    unsigned nameLine = peek().line;
    if (parseName(name))
      return true;
    auto &targets = kernel->branchTargets.back();
    scopes.back().pending.push_back(
        {name, nameLine, true, operand.index, uint32_t(targets.size())});
    targets.push_back(0);
  } while (consume(','));
  return declare(label, operand, line) || expect(';');
}

bool Parser::parseBodyDirective() {
  unsigned line = peek().line;
  StringRef name = take().text;
  if (name == ".reg")
    return parseRegisters();
  if (name == ".shared")
    return parseVariable(Space::Shared, false);
  if (name == ".local")
    return parseVariable(Space::Local, false);
  if (name == ".global")
    return parseVariable(Space::Global, false);
  if (name == ".const")
    return parseVariable(Space::Const, false);
  if (name == ".pragma") {
    take();
    return expect(';');
  }
  if (name == ".loc")
    return parseLoc();
  if (name == ".file")
    return parseFile();
  return fail("directive '" + name + "' is not simulated", line);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool Parser::parseInstruction() {
  Instruction instruction;
  instruction.line = peek().line;
  instruction.file = file;
  instruction.sourceLine = sourceLine;
  if (consume('@')) {
    instruction.guardNegated = consume('!');
    StringRef name;
    if (parseName(name))
      return true;
    std::optional<Operand> found = lookup(name);
    if (!found || found->kind != Operand::Register ||
        kernel->registers[found->index].type != Type::Pred)
      return fail("guard '" + name + "' is not a predicate register");
    instruction.guard = int32_t(found->index);
  }
  instruction.line = peek().line;
  if (parseName(instruction.opcode))
    return true;
  if (!peek().is(';')) {
    do {
      Operand &operand = instruction.operands.emplace_back();
      if (parseOperand(operand))
        return true;
      if (operand.kind != Operand::Label)
        continue;
      scopes.back().pending.push_back(
          {tokens[at - 1].text, instruction.line, false,
           uint32_t(kernel->instructions.size()),
           uint32_t(instruction.operands.size() - 1)});
    } while (consume(','));
  }
  kernel->instructions.push_back(std::move(instruction));
  return expect(';');
}

bool Parser::parseOperand(Operand &operand) {
  const Token &token = peek();
  if (token.is('{'))
    return parseVector(operand);
  if (token.is('['))
    return parseAddress(operand);
  if (token.is('!')) {
    take();
    operand.negated = true;
    return parseNamed(operand);
  }
  if (token.is('-') || token.kind == Token::Integer ||
      token.kind == Token::Float || token.kind == Token::Double)
    return parseNumber(operand, consume('-'));
  if (parseNamed(operand))
    return true;
  if (peek().is('|')) {
    take();
    Operand pair;
    pair.kind = Operand::Pair;
    pair.elements.push_back(std::move(operand));
    if (parseNamed(pair.elements.emplace_back()))
      return true;
    operand = std::move(pair);
  }
  return false;
}

bool Parser::parseVector(Operand &operand) {
  operand.kind = Operand::Vector;
  if (expect('{'))
    return true;
  do {
    Operand &element = operand.elements.emplace_back();
    if (peek().is('{') || peek().is('['))
      return fail("unexpected element of a vector");
    if (parseOperand(element))
      return true;
    if (element.kind == Operand::Label)
      return fail("unexpected element of a vector");
  } while (consume(','));
  return expect('}');
}

/// `[reg]`, `[reg+-4]`, `[name+4]`, `[16]`.
bool Parser::parseAddress(Operand &operand) {
  operand.kind = Operand::Address;
  if (expect('['))
    return true;
  Operand &base = operand.elements.emplace_back();
  if (peek().kind == Token::Word ? parseNamed(base)
                                 : parseNumber(base, consume('-')))
    return true;
  if (base.kind == Operand::Immediate) {
    operand.offset = int64_t(base.bits);
    base.bits = 0;
  } else if (base.kind != Operand::Register && base.kind != Operand::Variable &&
             base.kind != Operand::Param) {
    return fail("unexpected base of an address");
  }
  operand.offset += base.offset; // `name+4`, which parseNamed has taken
  base.offset = 0;
  bool negative = peek().is('-');
  if (consume('+') || negative) {
    int64_t offset = 0;
    if (parseInteger(offset))
      return true;
    operand.offset += offset;
  }
  return expect(']');
}

bool Parser::parseNamed(Operand &operand) {
  bool negated = operand.negated;
  StringRef name;
  if (parseName(name))
    return true;
  if (name == "_") {
    operand.kind = Operand::Sink;
  } else if (std::optional<Operand> found = lookup(name)) {
    operand = *found;
  } else if (std::optional<Special> special = parseSpecial(name)) {
    operand.kind = Operand::SpecialRegister;
    operand.index = uint32_t(*special);
  } else if (name == "WARP_SZ") {
    operand.kind = Operand::Immediate;
    operand.bits = 32;
  } else if (name.starts_with("%")) {
    return fail("'" + name + "' is not declared", tokens[at - 1].line);
  } else {
    operand.kind = Operand::Label; // perhaps declared later
  }
  if (operand.kind == Operand::Variable && peek().is('+')) {
    take();
    if (parseInteger(operand.offset))
      return true;
  }
  operand.negated = negated;
  return false;
}

bool Parser::parseNumber(Operand &operand, bool negative) {
  const Token &token = peek();
  operand.bits = token.bits;
  switch (token.kind) {
  case Token::Integer:
    operand.kind = Operand::Immediate;
    if (negative)
      operand.bits = -operand.bits;
    break;
  case Token::Float:
    operand.kind = Operand::Float32;
    if (negative)
      operand.bits ^= uint64_t(1) << 31;
    break;
  case Token::Double:
    operand.kind = Operand::Float64;
    if (negative)
      operand.bits ^= uint64_t(1) << 63;
    break;
  default:
    return unexpected("an operand");
  }
  take();
  return false;
}

} // namespace dither::runtime::sim
