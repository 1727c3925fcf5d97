#include "Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::runtime::sim {

//===----------------------------------------------------------------------===//
// Cursor
//===----------------------------------------------------------------------===//

bool Parser::fail(const Twine &text, unsigned line) {
  if (!error)
    error = createStringError("line " + Twine(line ? line : peek().line) +
                              ": " + text);
  return true;
}

bool Parser::unexpected(StringRef expected) {
  StringRef found = peek().kind == Token::End ? "the end" : peek().text;
  return fail("found '" + found + "', expected " + expected);
}

bool Parser::consume(char symbol) {
  if (!peek().is(symbol))
    return false;
  take();
  return true;
}

bool Parser::expect(char symbol) {
  if (consume(symbol))
    return false;
  return unexpected("'" + std::string(1, symbol) + "'");
}

bool Parser::consumeDirective(StringRef name) {
  if (peek().kind != Token::Directive || peek().text != name)
    return false;
  take();
  return true;
}

bool Parser::parseName(StringRef &name) {
  if (peek().kind != Token::Word)
    return unexpected("a name");
  name = take().text;
  return false;
}

bool Parser::parseInteger(int64_t &value) {
  bool negative = consume('-');
  if (peek().kind != Token::Integer)
    return unexpected("an integer");
  value = int64_t(take().bits);
  if (negative)
    value = int64_t(-uint64_t(value));
  return false;
}

bool Parser::parseDirectiveType(Type &type) {
  type = peek().kind == Token::Directive ? parseType(peek().text.drop_front())
                                         : Type::None;
  if (type == Type::None)
    return unexpected("a type");
  take();
  return false;
}

void Parser::skipLine() {
  unsigned line = peek().line;
  while (peek().kind != Token::End && peek().line == line)
    take();
}

/// `1 "kernel.py"`, and perhaps `, timestamp, size`.
bool Parser::parseFile() {
  unsigned line = peek().line;
  int64_t index = 0;
  if (parseInteger(index))
    return true;
  if (peek().kind != Token::String)
    return unexpected("a path");
  module.files[uint32_t(index)] = take().text;
  while (peek().kind != Token::End && peek().line == line)
    take();
  return false;
}

/// `1 12 5`: file, line and column; what code was inlined from follows.
bool Parser::parseLoc() {
  unsigned line = peek().line;
  int64_t index = 0, number = 0;
  if (parseInteger(index) || parseInteger(number))
    return true;
  file = uint32_t(index);
  sourceLine = uint32_t(number);
  while (peek().kind != Token::End && peek().line == line)
    take();
  return false;
}

bool Parser::skipBraces() {
  if (expect('{'))
    return true;
  for (unsigned depth = 1; depth;) {
    if (peek().kind == Token::End)
      return unexpected("'}'");
    if (peek().is('{'))
      ++depth;
    if (peek().is('}'))
      --depth;
    take();
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool Parser::declare(StringRef name, Operand operand, unsigned line) {
  if (!scopes.back().names.try_emplace(name, std::move(operand)).second)
    return fail("'" + name + "' is declared twice", line);
  return false;
}

std::optional<Operand> Parser::lookup(StringRef name) const {
  StringRef prefix = name.rtrim("0123456789");
  uint32_t number = 0;
  bool inFamily = prefix.size() < name.size() &&
                  !name.drop_front(prefix.size()).getAsInteger(10, number);
  for (const Scope &scope : reverse(scopes)) {
    if (auto found = scope.names.find(name); found != scope.names.end())
      return found->second;
    if (!inFamily)
      continue;
    auto family = scope.families.find(prefix);
    if (family == scope.families.end() || number >= family->second.second)
      continue;
    Operand operand;
    operand.kind = Operand::Register;
    operand.index = family->second.first + number;
    return operand;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Module level
//===----------------------------------------------------------------------===//

bool Parser::parseTarget() {
  StringRef name;
  if (parseName(name))
    return true;
  StringRef number = name;
  if (!number.consume_front("sm_"))
    return fail("target '" + name + "', expected sm_XY");
  if (!number.empty() && (number.back() == 'a' || number.back() == 'f')) {
    module.suffix = number.back();
    number = number.drop_back();
  }
  if (number.getAsInteger(10, module.sm))
    return fail("target '" + name + "', expected sm_XY");
  while (consume(',')) // debug, texmode_unified, ..
    if (parseName(name))
      return true;
  return false;
}

bool Parser::parseParam(KernelDecl &kernel) {
  ParamDecl param;
  if (!consumeDirective(".param"))
    return unexpected("'.param'");
  uint32_t align = 0;
  if (consumeDirective(".align") && parseAlign(align))
    return true;
  if (parseDirectiveType(param.type))
    return true;
  if (consumeDirective(".ptr")) {
    // What the pointer refers to: of no meaning for a correct program.
    for (StringRef space : {".global", ".shared", ".local", ".const"})
      if (consumeDirective(space))
        break;
    uint32_t pointee = 0;
    if (consumeDirective(".align") && parseAlign(pointee))
      return true;
  }
  unsigned line = peek().line;
  uint64_t count = 1;
  bool open = false;
  param.isArray = false;
  if (parseName(param.name))
    return true;
  if (peek().is('[')) {
    param.isArray = true;
    if (parseArraySizes(count, open))
      return true;
  }
  if (!sizeOf(param.type) || open)
    return fail("parameter '" + param.name + "' has no size", line);
  param.align = align ? align : sizeOf(param.type);
  uint64_t begin = alignTo(kernel.paramBytes, param.align);
  uint64_t end = begin + count * sizeOf(param.type);
  if (end > 32764)
    return fail("more than 32764 bytes of parameters", line);
  param.offset = uint32_t(begin);
  param.size = uint32_t(end - begin);
  kernel.paramBytes = uint32_t(end);
  Operand operand;
  operand.kind = Operand::Param;
  operand.index = uint32_t(kernel.params.size());
  kernel.params.push_back(param);
  return declare(param.name, operand, line);
}

/// Performance-tuning directives between the parameters and the body (ISA,
/// 11.4).
bool Parser::parsePerformance(KernelDecl &kernel, bool &done) {
  StringRef name = peek().text;
  if (peek().kind != Token::Directive) {
    done = true;
    return false;
  }
  take();
  if (name == ".reqntid" || name == ".maxntid" ||
      name == ".reqnctapercluster") {
    uint64_t product = 1;
    int64_t sizes[3] = {1, 1, 1};
    for (int i = 0; i < 3; ++i) {
      if (i && !consume(','))
        break;
      if (parseInteger(sizes[i]))
        return true;
      if (sizes[i] <= 0)
        return fail(name + " is " + Twine(sizes[i]) + ", expected 1 or more");
      product *= uint64_t(sizes[i]);
    }
    if (name == ".reqntid")
      for (int i = 0; i < 3; ++i)
        kernel.reqntid[i] = uint32_t(sizes[i]);
    if (name == ".maxntid")
      kernel.maxntid = uint32_t(product);
    if (name == ".reqnctapercluster") {
      if (product > 1 && module.sm < 90)
        return fail("clusters need sm_90 or later");
      // What is portable (CUDA programming guide, Thread Block Clusters).
      if (product > kMostClusterBlocks)
        return fail("a cluster of " + Twine(product) + " blocks, at most " +
                    Twine(kMostClusterBlocks) + " are simulated");
      for (int i = 0; i < 3; ++i)
        kernel.cluster[i] = uint32_t(sizes[i]);
    }
    return false;
  }
  if (name == ".explicitcluster")
    return false;
  if (name == ".minnctapersm" || name == ".maxnreg" ||
      name == ".maxnctapersm" || name == ".maxclusterrank") {
    int64_t value;
    return parseInteger(value);
  }
  if (name == ".noreturn" || name == ".blocksareclusters")
    return false;
  if (name == ".pragma") {
    while (peek().kind != Token::End && !peek().is(';'))
      take();
    return expect(';');
  }
  return fail("directive '" + name + "' is not simulated");
}

bool Parser::parseEntry() {
  kernelIndex = int32_t(module.kernels.size());
  kernel = &module.kernels.emplace_back();
  kernel->line = peek().line;
  file = sourceLine = 0;
  scopes.emplace_back();
  if (parseName(kernel->name))
    return true;
  for (const KernelDecl &other : module.kernels)
    if (&other != kernel && other.name == kernel->name)
      return fail("'" + other.name + "' is declared twice");
  if (consume('(') && !consume(')')) {
    do {
      if (parseParam(*kernel))
        return true;
    } while (consume(','));
    if (expect(')'))
      return true;
  }
  for (bool done = false; !done;)
    if (parsePerformance(*kernel, done))
      return true;
  if (parseBody() || closeScope())
    return true;
  kernel = nullptr;
  kernelIndex = -1;
  return false;
}

bool Parser::parseTopLevel() {
  if (peek().kind != Token::Directive)
    return unexpected("a directive");
  unsigned line = peek().line;
  StringRef name = take().text;
  bool isExtern = false;
  while (name == ".visible" || name == ".extern" || name == ".weak" ||
         name == ".common") {
    isExtern |= name == ".extern";
    name = peek().text;
    if (peek().kind != Token::Directive)
      return unexpected("a directive");
    take();
  }
  if (name == ".version") {
    // `8.4` is read as a number.
    StringRef text = take().text;
    auto [major, minor] = text.split('.');
    unsigned parts[2];
    if (major.getAsInteger(10, parts[0]) || minor.getAsInteger(10, parts[1]))
      return fail("version '" + text + "', expected a number like 8.4", line);
    module.version = 10 * parts[0] + parts[1];
    return false;
  }
  if (name == ".target")
    return parseTarget();
  if (name == ".address_size") {
    int64_t bits = 0;
    if (parseInteger(bits))
      return true;
    return bits == 64
               ? false
               : fail("addresses of " + Twine(bits) + " bits are not simulated",
                      line);
  }
  if (name == ".entry")
    return parseEntry();
  if (name == ".global")
    return parseVariable(Space::Global, isExtern);
  if (name == ".const")
    return parseVariable(Space::Const, isExtern);
  if (name == ".shared")
    return parseVariable(Space::Shared, isExtern);
  if (name == ".file")
    return parseFile();
  if (name == ".loc")
    return parseLoc();
  if (name == ".section") {
    if (peek().kind == Token::Directive || peek().kind == Token::Word)
      take();
    return skipBraces();
  }
  if (name == ".pragma") {
    take();
    return expect(';');
  }
  return fail("directive '" + name + "' is not simulated", line);
}

Error Parser::run() {
  scopes.emplace_back();
  while (peek().kind != Token::End)
    if (parseTopLevel())
      return std::move(error);
  if (!module.version)
    fail("no .version directive");
  else if (!module.sm)
    fail("no .target directive");
  return std::move(error);
}

Expected<Module> parseModule(StringRef text) {
  Module module;
  module.text = std::make_unique<std::string>(text.str());
  Expected<std::vector<Token>> tokens = tokenize(*module.text);
  if (!tokens)
    return tokens.takeError();
  if (Error error = Parser(*tokens, module).run())
    return error;
  return module;
}

} // namespace dither::runtime::sim
