//===- EnvVars.h - Typed access to the DITHER_* environment ----*- C++ -*-===//
//
// EnvVars.def is the table; each variable in it has a typed getter here. A
// getter reads the environment on every call, so a variable that a program sets
// for itself works; what is read on a hot path is kept by its reader.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_SUPPORT_ENVVARS_H
#define DITHER_SUPPORT_ENVVARS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dither::env {

/// How the text of a variable is read.
enum class Kind : uint8_t {
  Flag,   ///< 1, on, true, yes; 0, off, false, no
  Count,  ///< a decimal number from min to max
  Bytes,  ///< a decimal number, with K, M, G or T for powers of 1024
  Text,   ///< anything
  Choice, ///< one of values
  Set     ///< some of values, separated by commas; or all, or none
};

/// One row of EnvVars.def.
struct Variable {
  llvm::StringLiteral name;
  Kind kind;
  /// Of Choice and Set: what is allowed, separated by commas.
  llvm::StringLiteral values;
  /// What an unset or empty variable means.
  llvm::StringLiteral defaultText;
  uint64_t min, max;
  llvm::StringLiteral help;
};

/// The table, in the order of EnvVars.def.
llvm::ArrayRef<Variable> variables();

/// The row called `name`. Errors: an unknown name, with the nearest known one.
llvm::Expected<const Variable *> lookup(llvm::StringRef name);

/// What the environment holds for `variable`, else its default. Not checked.
std::string text(const Variable &variable);

/// Checks `value` against `variable`: `DITHER_CACHE is 'x': expected on, off or
/// readonly`. An empty value is always valid: it means the default.
llvm::Error check(const Variable &variable, llvm::StringRef value);

/// Checks the whole environment: every DITHER_* variable in it has a known name
/// and a valid value. All that is wrong is joined in one error.
llvm::Error checkEnvironment();

/// As above, of "NAME=value" strings (other names are ignored).
llvm::Error checkEnvironment(llvm::ArrayRef<const char *> entries);

#define DITHER_ENV_FLAG(GETTER, NAME, DEFAULT, HELP)                           \
  llvm::Expected<bool> GETTER();
#define DITHER_ENV_COUNT(GETTER, NAME, DEFAULT, MIN, MAX, HELP)                \
  llvm::Expected<uint64_t> GETTER();
#define DITHER_ENV_BYTES(GETTER, NAME, DEFAULT, HELP)                          \
  llvm::Expected<uint64_t> GETTER();
#define DITHER_ENV_TEXT(GETTER, NAME, DEFAULT, HELP)                           \
  llvm::Expected<std::string> GETTER();
#define DITHER_ENV_CHOICE(GETTER, NAME, VALUES, DEFAULT, HELP)                 \
  llvm::Expected<std::string> GETTER();
#define DITHER_ENV_SET(GETTER, NAME, VALUES, DEFAULT, HELP)                    \
  llvm::Expected<llvm::StringSet<>> GETTER();
#include "dither/Support/EnvVars.def"

} // namespace dither::env

#endif // DITHER_SUPPORT_ENVVARS_H
