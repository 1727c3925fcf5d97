#include "dither/Cache/Key.h"
#include "dither/Support/Bytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace dither::cache {

static constexpr FieldRow table[] = {
#define DITHER_KEY_FIELD(NAME, HELP) {NAME, HELP},
#include "dither/Cache/KeyFields.def"
};

ArrayRef<FieldRow> keyTable() { return table; }

Digest digestOf(StringRef bytes) {
  return SHA256::hash(arrayRefFromStringRef(bytes));
}

std::string toHex(const Digest &digest) {
  return llvm::toHex(ArrayRef<uint8_t>(digest), /*LowerCase=*/true);
}

Key::Key(std::vector<Field> fields) : list(std::move(fields)) {
  put<uint32_t>(encoded, list.size());
  for (const Field &field : list) {
    put<uint32_t>(encoded, field.name.size());
    put<uint64_t>(encoded, field.value.size());
    encoded += field.name;
    encoded += field.value;
  }
  sha = digestOf(encoded);
}

Expected<Key> Key::make(ArrayRef<Field> fields) {
  std::vector<Field> ordered;
  for (const FieldRow &row : table) {
    auto named = [&](const Field &field) { return field.name == row.name; };
    auto found = find_if(fields, named);
    if (found == fields.end())
      return createStringError("key has no field '" + row.name +
                               "': expected " + row.help);
    if (std::find_if(found + 1, fields.end(), named) != fields.end())
      return createStringError("field '" + row.name +
                               "' of a key is given twice");
    ordered.push_back(*found);
  }
  for (const Field &field : fields)
    if (none_of(table,
                [&](const FieldRow &row) { return field.name == row.name; }))
      return createStringError("found key field '" + field.name +
                               "', expected a row of KeyFields.def");
  return Key(std::move(ordered));
}

Expected<Key> Key::decode(StringRef encoding) {
  Reader reader(encoding);
  std::vector<Field> fields;
  StringSet<> names;
  uint32_t count = reader.number<uint32_t>();
  for (uint32_t i = 0; i < count && reader.ok; ++i) {
    uint32_t nameSize = reader.number<uint32_t>();
    uint64_t valueSize = reader.number<uint64_t>();
    StringRef name = reader.bytes(nameSize);
    StringRef value = reader.bytes(valueSize);
    if (reader.ok && (name.empty() || !names.insert(name).second))
      return createStringError("found a key with " +
                               (name.empty() ? "a field without a name"
                                             : "two fields '" + name + "'"));
    fields.push_back({name.str(), value.str()});
  }
  if (!reader.ok || !reader.rest.empty())
    return createStringError("found a key of " + Twine(encoding.size()) +
                             " bytes, expected as many as its lengths say");
  return Key(std::move(fields));
}

StringRef Key::value(StringRef name) const {
  for (const Field &field : list)
    if (field.name == name)
      return field.value;
  return {};
}

std::vector<std::string> Key::difference(const Key &other) const {
  std::vector<std::string> names;
  for (const Field &field : list)
    if (!is_contained(other.list, field))
      names.push_back(field.name);
  for (const Field &field : other.list)
    if (none_of(list, [&](const Field &f) { return f.name == field.name; }))
      names.push_back(field.name);
  return names;
}

} // namespace dither::cache
