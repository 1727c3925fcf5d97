#include "dither/Cache/Key.h"
#include "../Runtime/TestSupport.h"

#include <algorithm>
#include <random>
#include <set>

using namespace dither::cache;
using dither::test::message;
using dither::test::must;

namespace {

std::vector<Field> someFields(std::mt19937 &random) {
  std::vector<Field> fields;
  for (const FieldRow &row : keyTable()) {
    std::string value(random() % 20, '\0');
    for (char &c : value)
      c = char(random());
    fields.push_back({row.name.str(), value});
  }
  return fields;
}

TEST(KeyTest, IsTheSameForEver) {
  std::vector<Field> fields;
  for (const char *name : {"kernel", "arguments", "constexprs", "target",
                           "num_warps", "math", "tiles", "build"})
    fields.push_back({name, std::string("the ") + name});
  Key key = must(Key::make(fields));
  // Computed by hand of the encoding in Key.h, with Python's hashlib.
  EXPECT_EQ(key.hex(), "b65eb2e5b95fd5749a43a3ca9f9a1a8a"
                       "cbe2905ade21148ac5cf6971d7e0abb7");
}

TEST(KeyTest, TheOrderOfFieldsIsTheTables) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::vector<Field> fields = someFields(random);
    Key key = must(Key::make(fields));
    std::shuffle(fields.begin(), fields.end(), random);
    EXPECT_EQ(must(Key::make(fields)), key);
    for (size_t f = 0; f < keyTable().size(); ++f)
      EXPECT_EQ(key.fields()[f].name, keyTable()[f].name);
  }
}

TEST(KeyTest, AnyChangeOfAnyFieldChangesIt) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    std::vector<Field> fields = someFields(random);
    Key key = must(Key::make(fields));
    std::set<std::string> seen = {key.hex()};
    auto expectNew = [&](const std::vector<Field> &changed,
                         const std::vector<std::string> &names) {
      Key other = must(Key::make(changed));
      EXPECT_TRUE(seen.insert(other.hex()).second) << names.front();
      EXPECT_EQ(key.difference(other), names);
    };
    for (size_t f = 0; f < fields.size(); ++f) {
      std::vector<Field> changed = fields;
      std::string &value = changed[f].value;
      value += '\0';
      expectNew(changed, {fields[f].name});
      value = fields[f].value;
      if (!value.empty()) {
        value[random() % value.size()] ^= char(1 << random() % 8);
        expectNew(changed, {fields[f].name});
      }
      // The same bytes, divided otherwise.
      changed = fields;
      if (f + 1 < fields.size() && !changed[f].value.empty()) {
        changed[f + 1].value.insert(0, 1, changed[f].value.back());
        changed[f].value.pop_back();
        expectNew(changed, {fields[f].name, fields[f + 1].name});
      }
    }
  }
}

TEST(KeyTest, ReadsWhatItWrites) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    Key key = must(Key::make(someFields(random)));
    Key read = must(Key::decode(key.encoding()));
    EXPECT_EQ(read, key);
    EXPECT_EQ(read.fields(), key.fields());
    EXPECT_EQ(read.hex(), key.hex());
    for (const Field &field : key.fields())
      EXPECT_EQ(read.value(field.name), field.value);
  }
}

TEST(KeyTest, CutOffAnywhere) {
  std::mt19937 random(4);
  Key key = must(Key::make(someFields(random)));
  for (size_t size = 0; size < key.encoding().size(); ++size) {
    auto read = Key::decode(key.encoding().take_front(size));
    ASSERT_FALSE(bool(read)) << size;
    llvm::consumeError(read.takeError());
  }
  EXPECT_EQ(message(Key::decode((key.encoding() + "x").str())),
            "found a key of " + std::to_string(key.encoding().size() + 1) +
                " bytes, expected as many as its lengths say");
}

TEST(KeyTest, WrongFields) {
  std::mt19937 random(5);
  std::vector<Field> fields = someFields(random);
  std::vector<Field> less(fields.begin() + 1, fields.end());
  EXPECT_EQ(message(Key::make(less)),
            "key has no field 'kernel': expected " + keyTable()[0].help.str());
  std::vector<Field> twice = fields;
  twice.push_back(fields[0]);
  EXPECT_EQ(message(Key::make(twice)),
            "field 'kernel' of a key is given twice");
  std::vector<Field> more = fields;
  more.push_back({"weather", "fine"});
  EXPECT_EQ(message(Key::make(more)),
            "found key field 'weather', expected a row of KeyFields.def");
}

} // namespace
