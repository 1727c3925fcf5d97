//===- Lexer.h - Tokens of PTX ----------------------------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_SIM_LEXER_H
#define DITHER_RUNTIME_SIM_LEXER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <vector>

namespace dither::runtime::sim {

struct Token {
  enum Kind : uint8_t {
    End,
    Word, ///< an identifier with its suffixes: `ld.global.v4.b32`, `%tid.x`
    Directive, ///< `.reg`: a word that starts with a dot
    Integer,   ///< value in `bits`, without a sign
    Float,     ///< `0f3F800000`: the binary32 encoding in `bits`
    Double,    ///< `0d...`, `1.5`: the binary64 encoding in `bits`
    String,    ///< text without the quotes
    Symbol     ///< one character
  };
  Kind kind = End;
  unsigned line = 0;
  llvm::StringRef text;
  uint64_t bits = 0;

  bool is(char c) const { return kind == Symbol && text[0] == c; }
};

/// The tokens of `source`, an End last; they refer to its text. Comments and
/// lines that start with # are skipped. Errors: a character or a number that
/// PTX does not have, with its line.
llvm::Expected<std::vector<Token>> tokenize(llvm::StringRef source);

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_LEXER_H
