//===- Parser.h - From tokens to a Module -----------------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_SIM_PARSER_H
#define DITHER_RUNTIME_SIM_PARSER_H

#include "Lexer.h"
#include "Module.h"

#include "llvm/ADT/StringMap.h"

#include <optional>

namespace dither::runtime::sim {

/// What is common to declarations and statements: a cursor over the tokens, and
/// the module that is made. Functions return true where they failed, with the
/// error kept (as parsers in LLVM do).
class Parser {
public:
  Parser(llvm::ArrayRef<Token> tokens, Module &module)
      : tokens(tokens), module(module) {}

  llvm::Error run();

private:
  /// Of blocks and initializers: functions call themselves for each level.
  static constexpr unsigned kMaxDepth = 256;

  // Cursor.
  const Token &peek(unsigned ahead = 0) const {
    size_t i = at + ahead;
    return i < tokens.size() ? tokens[i] : tokens.back();
  }
  const Token &take() {
    const Token &token = peek();
    if (token.kind != Token::End)
      ++at;
    return token;
  }
  bool fail(const llvm::Twine &text, unsigned line = 0);
  bool unexpected(llvm::StringRef expected);
  bool consume(char symbol);
  bool expect(char symbol);
  bool consumeDirective(llvm::StringRef name);
  bool parseName(llvm::StringRef &name);
  bool parseInteger(int64_t &value);
  bool parseDirectiveType(Type &type);
  void skipLine();
  bool parseFile();
  bool parseLoc();
  bool skipBraces();

  // Module level (Parser.cpp).
  bool parseTopLevel();
  bool parseTarget();
  bool parseEntry();
  bool parseParam(KernelDecl &kernel);
  bool parsePerformance(KernelDecl &kernel, bool &done);

  // Declarations (ParseDeclarations.cpp).
  bool parseVariable(Space space, bool isExtern);
  bool parseAlign(uint32_t &align);
  bool parseArraySizes(uint64_t &count, bool &open);
  bool parseInitializer(VariableDecl &variable, Type type, unsigned depth = 0);
  bool parseInitializerValue(VariableDecl &variable, Type type);
  bool parseRegisters();

  // Statements (ParseStatements.cpp).
  bool parseBody();
  bool parseStatement();
  bool parseBodyDirective();
  bool parseBranchTargets(llvm::StringRef label);
  bool parseInstruction();
  bool parseOperand(Operand &operand);
  bool parseAddress(Operand &operand);
  bool parseVector(Operand &operand);
  bool parseNamed(Operand &operand);
  bool parseNumber(Operand &operand, bool negative);
  bool closeScope();

  /// What a `{` opens: names of one block.
  struct Scope {
    llvm::StringMap<Operand> names;
    /// `.reg .b32 %r<9>`: number of the first register, and the count.
    llvm::StringMap<std::pair<uint32_t, uint32_t>> families;
    llvm::StringMap<uint32_t> labels;
    /// Uses of labels that this scope or an outer one declares later: which
    /// instruction and operand (or entry of a list of branch targets).
    struct Pending {
      llvm::StringRef label;
      unsigned line;
      bool isTarget;
      uint32_t index, element;
    };
    std::vector<Pending> pending;
  };
  bool declare(llvm::StringRef name, Operand operand, unsigned line);
  std::optional<Operand> lookup(llvm::StringRef name) const;

  llvm::ArrayRef<Token> tokens;
  size_t at = 0;
  Module &module;
  KernelDecl *kernel = nullptr;
  int32_t kernelIndex = -1;
  /// Of the last `.loc` in this kernel.
  uint32_t file = 0, sourceLine = 0;
  std::vector<Scope> scopes;
  llvm::Error error = llvm::Error::success();
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_PARSER_H
