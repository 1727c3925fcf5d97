#include "dither/Support/EnvVars.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cstdlib>
#include <optional>
#include <unistd.h>

using namespace llvm;

namespace dither::env {

static constexpr Variable table[] = {
#define DITHER_ENV_FLAG(GETTER, NAME, DEFAULT, HELP)                           \
  {NAME, Kind::Flag, "", DEFAULT, 0, 1, HELP},
#define DITHER_ENV_COUNT(GETTER, NAME, DEFAULT, MIN, MAX, HELP)                \
  {NAME, Kind::Count, "", DEFAULT, MIN, MAX, HELP},
#define DITHER_ENV_BYTES(GETTER, NAME, DEFAULT, HELP)                          \
  {NAME, Kind::Bytes, "", DEFAULT, 0, UINT64_MAX, HELP},
#define DITHER_ENV_TEXT(GETTER, NAME, DEFAULT, HELP)                           \
  {NAME, Kind::Text, "", DEFAULT, 0, 0, HELP},
#define DITHER_ENV_CHOICE(GETTER, NAME, VALUES, DEFAULT, HELP)                 \
  {NAME, Kind::Choice, VALUES, DEFAULT, 0, 0, HELP},
#define DITHER_ENV_SET(GETTER, NAME, VALUES, DEFAULT, HELP)                    \
  {NAME, Kind::Set, VALUES, DEFAULT, 0, 0, HELP},
#include "dither/Support/EnvVars.def"
};

namespace {
/// Index of each getter's row.
enum Row : size_t {
#define DITHER_ENV_FLAG(GETTER, NAME, DEFAULT, HELP) row_##GETTER,
#define DITHER_ENV_COUNT(GETTER, NAME, DEFAULT, MIN, MAX, HELP) row_##GETTER,
#define DITHER_ENV_BYTES(GETTER, NAME, DEFAULT, HELP) row_##GETTER,
#define DITHER_ENV_TEXT(GETTER, NAME, DEFAULT, HELP) row_##GETTER,
#define DITHER_ENV_CHOICE(GETTER, NAME, VALUES, DEFAULT, HELP) row_##GETTER,
#define DITHER_ENV_SET(GETTER, NAME, VALUES, DEFAULT, HELP) row_##GETTER,
#include "dither/Support/EnvVars.def"
};
} // namespace

ArrayRef<Variable> variables() { return table; }

/// How far a typed name is from a known one, both without the prefix; a name
/// that holds the other one is near (THREADS, NUM_THREADS).
static unsigned distance(StringRef typed, StringRef known, unsigned most) {
  if (typed.size() >= 4 && (known.contains(typed) || typed.contains(known)))
    return 1;
  return typed.edit_distance(known, true, most + 1);
}

Expected<const Variable *> lookup(StringRef name) {
  const StringRef prefix = "DITHER_";
  StringRef typed = name;
  typed.consume_front(prefix);
  const Variable *nearest = nullptr;
  // Half the letters may be wrong; beyond that it is no typo.
  unsigned best = typed.size() / 2;
  for (const Variable &variable : table) {
    if (variable.name == name)
      return &variable;
    unsigned far =
        distance(typed, variable.name.drop_front(prefix.size()), best);
    if (far <= best && (!nearest || far < best)) {
      best = far;
      nearest = &variable;
    }
  }
  std::string message = ("unknown variable " + name).str();
  if (nearest)
    message += (": did you mean " + nearest->name + "?").str();
  return createStringError(message);
}

std::string text(const Variable &variable) {
  const char *value = std::getenv(variable.name.data());
  return value && *value ? std::string(value) : variable.defaultText.str();
}

//===----------------------------------------------------------------------===//
// Reading text
//===----------------------------------------------------------------------===//

static std::optional<bool> parseFlag(StringRef text) {
  for (StringRef yes : {"1", "on", "true", "yes"})
    if (text.equals_insensitive(yes))
      return true;
  for (StringRef no : {"0", "off", "false", "no"})
    if (text.equals_insensitive(no))
      return false;
  return std::nullopt;
}

static std::optional<uint64_t> parseBytes(StringRef text) {
  unsigned shift = 0;
  size_t suffix =
      text.empty() ? StringRef::npos : StringRef("KMGT").find(text.back());
  if (suffix != StringRef::npos) {
    shift = 10 * (suffix + 1);
    text = text.drop_back();
  }
  uint64_t number = 0;
  if (!all_of(text, isDigit) || text.getAsInteger(10, number) ||
      number > (UINT64_MAX >> shift))
    return std::nullopt;
  return number << shift;
}

static std::optional<uint64_t> parseCount(const Variable &variable,
                                          StringRef text) {
  uint64_t number = 0;
  if (!all_of(text, isDigit) || text.getAsInteger(10, number) ||
      number < variable.min || number > variable.max)
    return std::nullopt;
  return number;
}

static SmallVector<StringRef> words(StringRef list) {
  SmallVector<StringRef> parts;
  list.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef &part : parts)
    part = part.trim();
  return parts;
}

/// "a, b or c".
static std::string alternatives(ArrayRef<StringRef> names) {
  if (names.size() < 2)
    return join(names, "");
  return join(names.drop_back(), ", ") + " or " + names.back().str();
}

/// What is wrong with `value`, or nothing.
static std::string expectation(const Variable &variable, StringRef value) {
  switch (variable.kind) {
  case Kind::Text:
    return "";
  case Kind::Flag:
    return parseFlag(value) ? ""
                            : "expected 1 or 0 (on, true, yes; off, false, no)";
  case Kind::Count:
    return parseCount(variable, value)
               ? ""
               : ("expected a number from " + Twine(variable.min) + " to " +
                  Twine(variable.max))
                     .str();
  case Kind::Bytes:
    return parseBytes(value)
               ? ""
               : "expected a number of bytes, such as 4096, 512M or 1G";
  case Kind::Choice:
    return is_contained(words(variable.values), value)
               ? ""
               : "expected " + alternatives(words(variable.values));
  case Kind::Set: {
    SmallVector<StringRef> allowed = words(variable.values);
    if (value == "all" || value == "none")
      return "";
    for (StringRef word : words(value))
      if (!is_contained(allowed, word))
        return ("found '" + word + "', expected all, none, or some of ").str() +
               join(allowed, ", ");
    return "";
  }
  }
  return "";
}

Error check(const Variable &variable, StringRef value) {
  if (value.empty())
    return Error::success();
  std::string wrong = expectation(variable, value);
  if (wrong.empty())
    return Error::success();
  return createStringError(variable.name + " is '" + value + "': " + wrong);
}

Error checkEnvironment(ArrayRef<const char *> entries) {
  Error errors = Error::success();
  for (StringRef entry : entries) {
    auto [name, value] = entry.split('=');
    if (!name.starts_with("DITHER_"))
      continue;
    Expected<const Variable *> variable = lookup(name);
    errors = joinErrors(std::move(errors), variable ? check(**variable, value)
                                                    : variable.takeError());
  }
  return errors;
}

Error checkEnvironment() {
  SmallVector<const char *> entries;
  for (char **entry = environ; entry && *entry; ++entry)
    entries.push_back(*entry);
  return checkEnvironment(entries);
}

//===----------------------------------------------------------------------===//
// Getters
//===----------------------------------------------------------------------===//

/// The text of a row, once it is known to be valid.
static Expected<std::string> checked(Row row) {
  std::string value = text(table[row]);
  if (Error error = check(table[row], value))
    return error;
  return value;
}

static Expected<bool> getFlag(Row row) {
  Expected<std::string> value = checked(row);
  if (!value)
    return value.takeError();
  return *parseFlag(*value);
}

static Expected<uint64_t> getNumber(Row row) {
  Expected<std::string> value = checked(row);
  if (!value)
    return value.takeError();
  return table[row].kind == Kind::Bytes ? *parseBytes(*value)
                                        : *parseCount(table[row], *value);
}

static Expected<StringSet<>> getSet(Row row) {
  Expected<std::string> value = checked(row);
  if (!value)
    return value.takeError();
  StringSet<> set;
  if (*value == "none")
    return set;
  for (StringRef word :
       words(*value == "all" ? StringRef(table[row].values) : *value))
    set.insert(word);
  return set;
}

#define DITHER_ENV_FLAG(GETTER, NAME, DEFAULT, HELP)                           \
  Expected<bool> GETTER() { return getFlag(row_##GETTER); }
#define DITHER_ENV_COUNT(GETTER, NAME, DEFAULT, MIN, MAX, HELP)                \
  Expected<uint64_t> GETTER() { return getNumber(row_##GETTER); }
#define DITHER_ENV_BYTES(GETTER, NAME, DEFAULT, HELP)                          \
  Expected<uint64_t> GETTER() { return getNumber(row_##GETTER); }
#define DITHER_ENV_TEXT(GETTER, NAME, DEFAULT, HELP)                           \
  Expected<std::string> GETTER() { return checked(row_##GETTER); }
#define DITHER_ENV_CHOICE(GETTER, NAME, VALUES, DEFAULT, HELP)                 \
  Expected<std::string> GETTER() { return checked(row_##GETTER); }
#define DITHER_ENV_SET(GETTER, NAME, VALUES, DEFAULT, HELP)                    \
  Expected<StringSet<>> GETTER() { return getSet(row_##GETTER); }
#include "dither/Support/EnvVars.def"

} // namespace dither::env
