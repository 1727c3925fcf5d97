#include "Lexer.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

namespace {

bool startsWord(char c) {
  return isAlpha(c) || c == '_' || c == '$' || c == '%';
}
bool inWord(char c) { return isAlnum(c) || c == '_' || c == '$'; }

class Lexer {
public:
  explicit Lexer(StringRef source) : rest(source) {}

  Expected<std::vector<Token>> run() {
    for (;;) {
      if (Error error = skipBlank())
        return error;
      Expected<Token> token = next();
      if (!token)
        return token.takeError();
      tokens.push_back(*token);
      if (token->kind == Token::End)
        return std::move(tokens);
    }
  }

private:
  Error error(const Twine &text) const {
    return createStringError("line " + Twine(line) + ": " + text);
  }

  Error skipBlank() {
    for (;;) {
      bool newLine = false;
      while (!rest.empty() && isSpace(rest[0])) {
        if (rest[0] == '\n') {
          ++line;
          newLine = true;
        }
        rest = rest.drop_front();
      }
      bool hash = rest.starts_with("#") && (newLine || tokens.empty());
      if (rest.starts_with("//") || hash) {
        rest = rest.drop_until([](char c) { return c == '\n'; });
      } else if (rest.starts_with("/*")) {
        size_t end = rest.find("*/", 2);
        if (end == StringRef::npos)
          return error("comment without an end");
        line += unsigned(rest.take_front(end).count('\n'));
        rest = rest.drop_front(end + 2);
      } else {
        return Error::success();
      }
    }
  }

  Token take(Token::Kind kind, size_t length) {
    Token token;
    token.kind = kind;
    token.line = line;
    token.text = rest.take_front(length);
    rest = rest.drop_front(length);
    return token;
  }

  /// Length of a word: names with dots (modifiers) and :: (`.shared::cta`).
  size_t wordLength() const {
    size_t i = 1;
    for (;;) {
      while (i < rest.size() && inWord(rest[i]))
        ++i;
      auto follows = [&](size_t at) {
        return at < rest.size() && inWord(rest[at]);
      };
      if (i < rest.size() && rest[i] == '.' && follows(i + 1))
        i += 2;
      else if (rest.substr(i).starts_with("::") && follows(i + 2))
        i += 3;
      else
        return i;
    }
  }

  Expected<Token> next() {
    if (rest.empty())
      return take(Token::End, 0);
    char c = rest[0];
    if (startsWord(c))
      return take(Token::Word, wordLength());
    if (c == '.' && rest.size() > 1 && startsWord(rest[1]))
      return take(Token::Directive, directiveLength());
    if (isDigit(c))
      return number();
    if (c == '"') {
      size_t end = rest.find('"', 1);
      if (end == StringRef::npos)
        return error("string without an end");
      Token token = take(Token::String, end + 1);
      token.text = token.text.drop_front().drop_back();
      return token;
    }
    if (StringRef("{}[]()<>,;:@!+-*/|=~&^?").contains(c))
      return take(Token::Symbol, 1);
    return error("unexpected character '" + Twine(c) + "'");
  }

  size_t directiveLength() const {
    size_t i = 1;
    while (i < rest.size() && inWord(rest[i]))
      ++i;
    return i;
  }

  Expected<Token> number() {
    size_t length = 0;
    while (length < rest.size() && isAlnum(rest[length]))
      ++length;
    StringRef text = rest.take_front(length);
    // 0f and 0d are followed by exactly 8 and 16 hexadecimal digits.
    if (text.size() > 1 && text[0] == '0' &&
        (toLower(text[1]) == 'f' || toLower(text[1]) == 'd')) {
      bool isDouble = toLower(text[1]) == 'd';
      Token token = take(isDouble ? Token::Double : Token::Float, length);
      if (text.size() != (isDouble ? 18u : 10u) ||
          text.drop_front(2).getAsInteger(16, token.bits))
        return error("malformed number '" + text + "'");
      return token;
    }
    if (length < rest.size() && rest[length] == '.')
      return decimalFloat();
    Token token = take(Token::Integer, length);
    text.consume_back("U") || text.consume_back("u");
    if (text.getAsInteger(0, token.bits))
      return error("malformed number '" + text + "'");
    return token;
  }

  Expected<Token> decimalFloat() {
    size_t length = 0;
    while (length < rest.size()) {
      char c = rest[length];
      bool exponentSign =
          (c == '+' || c == '-') && toLower(rest[length - 1]) == 'e';
      if (!isDigit(c) && c != '.' && toLower(c) != 'e' && !exponentSign)
        break;
      ++length;
    }
    std::string text = rest.take_front(length).str();
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (*end)
      return error("malformed number '" + text + "'");
    Token token = take(Token::Double, length);
    std::memcpy(&token.bits, &value, sizeof value);
    return token;
  }

  StringRef rest;
  unsigned line = 1;
  std::vector<Token> tokens;
};

} // namespace

Expected<std::vector<Token>> tokenize(StringRef source) {
  return Lexer(source).run();
}

} // namespace dither::runtime::sim
