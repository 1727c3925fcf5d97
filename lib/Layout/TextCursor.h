//===- TextCursor.h - A scanner for layout text -----------------*- C++ -*-===//
#ifndef DITHER_LIB_LAYOUT_TEXTCURSOR_H
#define DITHER_LIB_LAYOUT_TEXTCURSOR_H

#include "dither/Layout/Result.h"

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dither::layout {

/// Consumes text token by token, skipping blanks.
class TextCursor {
public:
  explicit TextCursor(std::string_view text) : text(text) {}

  bool consume(char c) {
    skip();
    if (pos >= text.size() || text[pos] != c)
      return false;
    ++pos;
    return true;
  }
  bool atEnd() {
    skip();
    return pos >= text.size();
  }
  /// A name of letters and digits, possibly empty.
  std::string name() {
    skip();
    size_t begin = pos;
    while (pos < text.size() && std::isalnum((unsigned char)text[pos]))
      ++pos;
    return std::string(text.substr(begin, pos - begin));
  }
  /// A decimal number below 2^32.
  Result<uint32_t> number() {
    skip();
    uint64_t value = 0;
    size_t begin = pos;
    while (pos < text.size() && std::isdigit((unsigned char)text[pos])) {
      value = value * 10 + uint64_t(text[pos++] - '0');
      if (value > UINT32_MAX)
        return expected("a number below 2^32");
    }
    if (pos == begin)
      return expected("a number");
    return uint32_t(value);
  }
  /// `(a, b, ..)`, possibly empty.
  Result<std::vector<uint32_t>> tuple() {
    std::vector<uint32_t> values;
    if (!consume('('))
      return expected("'('");
    if (consume(')'))
      return values;
    do {
      Result<uint32_t> value = number();
      if (!value)
        return value.error();
      values.push_back(*value);
    } while (consume(','));
    if (!consume(')'))
      return expected("',' or ')'");
    return values;
  }
  Error expected(const std::string &what) const {
    return Error{"expected " + what + " at position " + std::to_string(pos) +
                 " of layout '" + std::string(text) + "'"};
  }
  size_t position() const { return pos; }
  void rewind(size_t to) { pos = to; }

private:
  void skip() {
    while (pos < text.size() && std::isspace((unsigned char)text[pos]))
      ++pos;
  }
  std::string_view text;
  size_t pos = 0;
};

} // namespace dither::layout

#endif // DITHER_LIB_LAYOUT_TEXTCURSOR_H
