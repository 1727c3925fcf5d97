//===- LayoutText.cpp - Printing and parsing layouts ----------------------===//
#include "TextCursor.h"
#include "dither/Layout/LinearLayout.h"
#include "dither/Layout/RepeatedLayout.h"

namespace dither::layout {

template <typename T>
static std::string tupleText(const std::vector<T> &values) {
  std::string text = "(";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? "," : "") + std::to_string(values[i]);
  return text + ")";
}

static Result<InDim> parseInDim(TextCursor &cursor, const std::string &name) {
  for (unsigned dim = 0; dim < unsigned(InDim::FirstGeneric); ++dim)
    if (name == toString(InDim(dim)))
      return InDim(dim);
  if (name.size() > 2 && name.size() < 6 && name.compare(0, 2, "in") == 0) {
    unsigned index = 0;
    bool digits = true;
    for (char c : name.substr(2)) {
      digits &= std::isdigit((unsigned char)c) != 0;
      index = index * 10 + unsigned(c - '0');
    }
    if (digits && toString(genericDim(index)) == name)
      return genericDim(index);
  }
  return cursor.expected("reg, lane, warp, offset or in<n>");
}

/// sizes, then name=[basis, ..] until something else follows.
static Result<LinearLayout> parseLinear(TextCursor &cursor) {
  Result<std::vector<uint32_t>> sizes = cursor.tuple();
  if (!sizes)
    return sizes.error();
  std::vector<LinearLayout::Input> inputs;
  for (;;) {
    size_t begin = cursor.position();
    std::string name = cursor.name();
    if (name.empty() || name == "rep") {
      cursor.rewind(begin);
      return LinearLayout::get(inputs, *sizes);
    }
    Result<InDim> dim = parseInDim(cursor, name);
    if (!dim)
      return dim.error();
    if (!cursor.consume('=') || !cursor.consume('['))
      return cursor.expected("'=['");
    inputs.push_back({*dim, {}});
    if (cursor.consume(']'))
      continue;
    do {
      Result<LinearLayout::Coord> basis = cursor.tuple();
      if (!basis)
        return basis.error();
      inputs.back().bases.push_back(*basis);
    } while (cursor.consume(','));
    if (!cursor.consume(']'))
      return cursor.expected("',' or ']'");
  }
}

std::string LinearLayout::toString() const {
  std::string text = tupleText(sizes);
  for (const In &in : ins) {
    text += " " + layout::toString(in.dim) + "=[";
    for (size_t bit = 0; bit < in.bases.size(); ++bit)
      text += (bit ? "," : "") + tupleText(unflatten(in.bases[bit]));
    text += "]";
  }
  return text;
}

std::string RepeatedLayout::toString() const {
  std::string text = linear.toString();
  if (numRepeats() != 1)
    text += " rep " + tupleText(reps);
  return text;
}

Result<RepeatedLayout> RepeatedLayout::parse(std::string_view text) {
  TextCursor cursor(text);
  Result<LinearLayout> base = parseLinear(cursor);
  if (!base)
    return base.error();
  std::vector<int64_t> repeats(base->outRank(), 1);
  if (!cursor.atEnd()) {
    if (cursor.name() != "rep")
      return cursor.expected("an input dimension, 'rep' or the end");
    Result<std::vector<uint32_t>> values = cursor.tuple();
    if (!values)
      return values.error();
    repeats.assign(values->begin(), values->end());
    if (!cursor.atEnd())
      return cursor.expected("the end");
  }
  return get(std::move(*base), std::move(repeats));
}

} // namespace dither::layout
