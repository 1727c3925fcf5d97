#include "dither/Runtime/Launch/Key.h"

#include "gtest/gtest.h"

#include <functional>
#include <set>

using namespace dither::runtime::launch;

static TensorRef matrix(int64_t rows, int64_t cols, int64_t stride,
                        DataType type = DataType::BFloat16) {
  TensorRef tensor;
  tensor.pointer = 4096;
  tensor.type = type;
  tensor.rank = 2;
  tensor.shape[0] = rows;
  tensor.shape[1] = cols;
  tensor.strides[0] = stride;
  tensor.strides[1] = 1;
  return tensor;
}

static std::string keyOf(const TensorRef &tensor,
                         Shapes shapes = Shapes::Trailing) {
  Key key;
  return key.append(tensor, shapes) ? key.bytes().str() : "";
}

TEST(Key, NamesWhatCodeDependsOn) {
  TensorRef base = matrix(8, 512, 512);
  base.device = 0;
  const std::function<void(TensorRef &)> changes[] = {
      [](TensorRef &t) { t.type = DataType::Float16; },
      [](TensorRef &t) { t.device = 1; },
      [](TensorRef &t) { t.device = onCpu; },
      [](TensorRef &t) { t.shape[1] = 256, t.strides[0] = 256; },
      [](TensorRef &t) { t.strides[0] = 1024; },
      [](TensorRef &t) { t.strides[0] = 520; },
      [](TensorRef &t) { t.strides[0] = 513; },
      [](TensorRef &t) { t.pointer += 16; },
      [](TensorRef &t) { t.pointer += 2; },
      [](TensorRef &t) { t.rank = 1, t.strides[0] = 1; },
  };
  std::set<std::string> keys = {keyOf(base)};
  for (const auto &change : changes) {
    TensorRef tensor = base;
    change(tensor);
    std::string key = keyOf(tensor);
    EXPECT_FALSE(key.empty());
    EXPECT_TRUE(keys.insert(key).second) << keys.size();
  }
  EXPECT_TRUE(keys.insert(keyOf(base, Shapes::Static)).second);
  EXPECT_TRUE(keys.insert(keyOf(base, Shapes::Dynamic)).second);
}

TEST(Key, NamesAllButWhereATensorLies) {
  auto keyOf = [](const TensorRef &tensor) {
    Key key;
    key.appendAll(tensor);
    return key.bytes().str();
  };
  TensorRef base = matrix(8, 512, 512), elsewhere = base;
  elsewhere.pointer += 2;
  elsewhere.readOnly = true;
  EXPECT_EQ(keyOf(base), keyOf(elsewhere));
  const std::function<void(TensorRef &)> changes[] = {
      [](TensorRef &t) { t.type = DataType::Byte; },
      [](TensorRef &t) { t.device = 0; },
      [](TensorRef &t) { t.shape[0] = 9; },
      [](TensorRef &t) { t.shape[1] = 511; },
      [](TensorRef &t) { t.strides[0] = 513; },
      [](TensorRef &t) { t.strides[1] = 2; },
      [](TensorRef &t) { t.rank = 1; },
  };
  std::set<std::string> keys = {keyOf(base)};
  for (const auto &change : changes) {
    TensorRef tensor = base;
    change(tensor);
    EXPECT_TRUE(keys.insert(keyOf(tensor)).second) << keys.size();
  }
}

TEST(Key, LeavesOutWhatIsKnownAtLaunch) {
  TensorRef base = matrix(8, 512, 512), more = matrix(4096, 512, 512);
  more.pointer += 32;
  more.readOnly = true; // a check of the launch, not of the code
  EXPECT_EQ(keyOf(base), keyOf(more));
  EXPECT_NE(keyOf(base, Shapes::Static), keyOf(more, Shapes::Static));
  EXPECT_EQ(keyOf(matrix(8, 512, 1024)), keyOf(matrix(8, 512, 2048)));
  EXPECT_NE(keyOf(matrix(8, 512, 1024), Shapes::Static),
            keyOf(matrix(8, 512, 2048), Shapes::Static));
}

TEST(Key, OnTheCpuHasNoAlignment) {
  TensorRef base = matrix(8, 512, 1024), other = matrix(8, 512, 513);
  other.pointer += 2;
  EXPECT_EQ(keyOf(base), keyOf(other));
  other.pointer += 1; // no element starts there
  EXPECT_EQ(keyOf(other), "");
}

TEST(Key, OfOneElementHasNoAlignment) {
  TensorRef one, other;
  one.device = other.device = 0;
  one.type = other.type = DataType::Float32;
  one.pointer = 4096;
  other.pointer = 4100;
  EXPECT_EQ(keyOf(one), keyOf(other));
}

TEST(Key, DynamicShapesHaveThreeClassesOfStrides) {
  std::set<std::string> keys;
  for (int64_t cols = 1; cols <= 4096; ++cols) {
    TensorRef tensor = matrix(512, cols, cols + cols % 2, DataType::Float4E2M1);
    tensor.device = 0;
    keys.insert(keyOf(tensor, Shapes::Dynamic));
  }
  EXPECT_EQ(keys.size(), 3u);
}

TEST(Key, RefusesWhatKernelsDoNotTake) {
  TensorRef bytes = matrix(8, 512, 512, DataType::Byte);
  EXPECT_EQ(keyOf(bytes), "");
  TensorRef columns = matrix(8, 512, 1);
  columns.strides[1] = 8;
  EXPECT_EQ(keyOf(columns), "");
  columns.shape[1] = 1; // a stride that is never taken
  EXPECT_NE(keyOf(columns), "");
  TensorRef odd = matrix(8, 512, 512);
  odd.pointer += 1;
  EXPECT_EQ(keyOf(odd), "");
}

TEST(Key, FieldsDoNotRunIntoEachOther) {
  auto texts = [](llvm::StringRef one, llvm::StringRef two) {
    Key key;
    key.append('s', one);
    key.append('s', two);
    return key.bytes().str();
  };
  EXPECT_NE(texts("ab", "c"), texts("a", "bc"));
  EXPECT_NE(texts("", "abc"), texts("abc", ""));
  Key one, two;
  one.append('i', 1);
  two.append('f', 1);
  EXPECT_NE(one.bytes(), two.bytes());
}

TEST(TensorRef, Dense) {
  EXPECT_TRUE(isDense(matrix(8, 512, 512)));
  EXPECT_FALSE(isDense(matrix(8, 512, 520)));
  EXPECT_TRUE(isDense(matrix(0, 512, 520)));
  // Rows of FP4 are padded to whole bytes.
  EXPECT_TRUE(isDense(matrix(8, 511, 512, DataType::Float4E2M1)));
  EXPECT_FALSE(isDense(matrix(8, 511, 511, DataType::Float4E2M1)));
}

TEST(TensorRef, Reinterpret) {
  TensorRef bytes = matrix(8, 256, 300, DataType::Byte);
  TensorRef scales = bytes;
  EXPECT_TRUE(reinterpret(scales, DataType::E8M0, nullptr));
  EXPECT_EQ(scales.type, DataType::E8M0);
  EXPECT_EQ(scales.strides[0], 300);

  TensorRef codes = bytes;
  EXPECT_TRUE(reinterpret(codes, DataType::Float4E2M1, nullptr));
  EXPECT_EQ(codes.shape[1], 512);
  EXPECT_EQ(codes.strides[0], 600);

  int64_t odd[] = {8, 511}, shorter[] = {8, 510}, rows[] = {7, 512};
  codes = bytes;
  EXPECT_TRUE(reinterpret(codes, DataType::Float4E2M1, odd));
  EXPECT_EQ(codes.shape[1], 511);
  codes = bytes;
  EXPECT_FALSE(reinterpret(codes, DataType::Float4E2M1, shorter));
  codes = bytes;
  EXPECT_FALSE(reinterpret(codes, DataType::Float4E2M1, rows));
  TensorRef words = matrix(8, 256, 256, DataType::Float32);
  EXPECT_FALSE(reinterpret(words, DataType::E8M0, nullptr));
  EXPECT_FALSE(reinterpret(words, DataType::Float4E2M1, nullptr));
}
