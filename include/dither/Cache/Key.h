//===- Key.h - What names the code of a kernel -----------------*- C++ -*-===//
//
// A key is a list of named fields (KeyFields.def). Its encoding puts a length
// before every name and value, so that no two lists have one encoding, and its
// digest names files. The encoding is kept with the code: a key explains
// itself.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_CACHE_KEY_H
#define DITHER_CACHE_KEY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dither::cache {

/// One input that code depends on: any bytes, by name.
struct Field {
  std::string name;
  std::string value;

  bool operator==(const Field &other) const {
    return name == other.name && value == other.value;
  }
};

/// A row of KeyFields.def.
struct FieldRow {
  llvm::StringLiteral name;
  llvm::StringLiteral help;
};

/// The table, in its order.
llvm::ArrayRef<FieldRow> keyTable();

/// SHA-256.
using Digest = std::array<uint8_t, 32>;
Digest digestOf(llvm::StringRef bytes);

/// 64 lower-case hexadecimal digits.
std::string toHex(const Digest &digest);

class Key {
public:
  /// Fields in any order. Errors: a name that the table lacks; a row of the
  /// table that is missing or given twice.
  static llvm::Expected<Key> make(llvm::ArrayRef<Field> fields);

  /// The inverse of encoding(), of this table or of another build's. Errors: a
  /// length that the text does not have; a name given twice, or empty.
  static llvm::Expected<Key> decode(llvm::StringRef encoding);

  /// u32 number of fields, then for each: u32 length of the name, u64 length
  /// of the value (all little-endian), name, value.
  llvm::StringRef encoding() const { return encoded; }
  const Digest &digest() const { return sha; }
  std::string hex() const { return toHex(sha); }

  llvm::ArrayRef<Field> fields() const { return list; }
  /// Empty where there is no such field.
  llvm::StringRef value(llvm::StringRef name) const;

  /// Names of the fields that differ, those of one key alone included; in the
  /// order of this key.
  std::vector<std::string> difference(const Key &other) const;

  bool operator==(const Key &other) const { return encoded == other.encoded; }

private:
  explicit Key(std::vector<Field> fields);

  std::vector<Field> list;
  std::string encoded;
  Digest sha;
};

} // namespace dither::cache

#endif // DITHER_CACHE_KEY_H
