#include "dither/Runtime/Launch/Overlap.h"

#include "gtest/gtest.h"

#include <random>
#include <set>
#include <vector>

using namespace dither::runtime::launch;

static TensorRef tensor(uint64_t pointer, std::vector<int64_t> shape,
                        std::vector<int64_t> strides,
                        DataType type = DataType::Float32) {
  TensorRef ref;
  ref.pointer = pointer;
  ref.type = type;
  ref.rank = uint8_t(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    ref.shape[i] = shape[i];
    ref.strides[i] = strides[i];
  }
  return ref;
}

/// The bytes of each element, in any order; FP4 by whole bytes of a row.
static std::vector<uint64_t> bytesOf(const TensorRef &ref) {
  std::vector<uint64_t> out;
  int64_t shape[3] = {1, 1, 1}, strides[3] = {0, 0, 0};
  for (unsigned dim = 0; dim < ref.rank; ++dim) {
    shape[3 - ref.rank + dim] = ref.shape[dim];
    strides[3 - ref.rank + dim] = ref.strides[dim];
  }
  bool pairs = ref.type == DataType::Float4E2M1;
  int64_t size = pairs ? 1 : bitsOf(ref.type) / 8;
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j)
      for (int64_t k = 0; k < shape[2]; k += pairs ? 2 : 1) {
        int64_t at = i * strides[0] + j * strides[1] + k * strides[2];
        for (int64_t byte = 0; byte < size; ++byte)
          out.push_back(ref.pointer + (pairs ? at / 2 : at * size) + byte);
      }
  return out;
}

static bool meet(const TensorRef &a, const TensorRef &b) {
  std::vector<uint64_t> one = bytesOf(a);
  std::set<uint64_t> known(one.begin(), one.end());
  for (uint64_t byte : bytesOf(b))
    if (known.count(byte))
      return true;
  return false;
}

static bool meetsItself(const TensorRef &a) {
  std::vector<uint64_t> bytes = bytesOf(a);
  return std::set<uint64_t>(bytes.begin(), bytes.end()).size() < bytes.size();
}

TEST(Overlap, TellsTheSameTensorFromOneLikeIt) {
  TensorRef x = tensor(4096, {8, 16}, {16, 1});
  EXPECT_TRUE(isSame(x, x));
  EXPECT_TRUE(isSame(tensor(64, {}, {}), tensor(64, {}, {})));
  EXPECT_FALSE(isSame(x, tensor(4160, {8, 16}, {16, 1})));
  EXPECT_FALSE(isSame(x, tensor(4096, {7, 16}, {16, 1})));
  EXPECT_FALSE(isSame(x, tensor(4096, {8, 16}, {32, 1})));
  EXPECT_FALSE(isSame(x, tensor(4096, {8, 16}, {16, 1}, DataType::Int32)));
  EXPECT_FALSE(isSame(x, tensor(4096, {128}, {1})));
  EXPECT_FALSE(isSame(tensor(64, {0}, {1}), tensor(64, {0}, {1})));
  TensorRef readOnly = x, elsewhere = x;
  readOnly.readOnly = true;
  elsewhere.device = 0;
  EXPECT_FALSE(isSame(x, readOnly));
  EXPECT_FALSE(isSame(x, elsewhere));
}

TEST(Overlap, ColumnsOfOneBase) {
  // Spans meet, elements do not; rows by the million are no more work.
  for (int64_t rows : {4, 1 << 20}) {
    TensorRef left = tensor(4096, {rows, 32}, {64, 1}),
              right = tensor(4096 + 32 * 4, {rows, 32}, {64, 1}),
              wide = tensor(4096, {rows, 33}, {64, 1}),
              even = tensor(4096, {rows / 2, 32}, {128, 1});
    EXPECT_FALSE(overlap(left, right));
    EXPECT_FALSE(overlap(right, left));
    EXPECT_FALSE(overlap(even, right));
    EXPECT_TRUE(overlap(wide, right));
    EXPECT_TRUE(overlap(left, even));
  }
}

TEST(Overlap, NeighboursAndShifts) {
  TensorRef x = tensor(4096, {64}, {1});
  EXPECT_FALSE(overlap(x, tensor(4096 + 256, {64}, {1})));
  EXPECT_TRUE(overlap(x, tensor(4096 + 252, {64}, {1})));
  EXPECT_TRUE(overlap(x, tensor(4097, {2}, {1}, DataType::E8M0)));
  EXPECT_FALSE(overlap(x, tensor(4096, {0}, {1})));
}

TEST(Overlap, RowsThatAreTheSame) {
  EXPECT_TRUE(overlapsItself(tensor(4096, {8, 16}, {0, 1})));
  EXPECT_TRUE(overlapsItself(tensor(4096, {8, 16}, {15, 1})));
  EXPECT_TRUE(overlapsItself(tensor(4096, {4, 4, 16}, {16, 16, 1})));
  EXPECT_FALSE(overlapsItself(tensor(4096, {1, 16}, {0, 1})));
  EXPECT_FALSE(overlapsItself(tensor(4096, {8, 16}, {-16, 1})));
  EXPECT_FALSE(overlapsItself(tensor(4096, {4, 8, 16}, {16, 64, 1})));
  EXPECT_FALSE(overlapsItself(tensor(4096, {0, 16}, {0, 1})));
}

TEST(Overlap, StridesThatNoMemoryHas) {
  int64_t large = int64_t(1) << 60;
  TensorRef x = tensor(4096, {4, 16}, {16, 1}),
            absurd = tensor(4096, {8, 16}, {large, 1});
  EXPECT_TRUE(overlap(x, absurd));
  EXPECT_TRUE(overlapsItself(absurd));
}

TEST(Overlap, IsWhatCountingBytesSays) {
  std::mt19937 random(7);
  auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const DataType types[] = {DataType::Float32, DataType::BFloat16,
                            DataType::E8M0, DataType::Float4E2M1};
  auto any = [&] {
    DataType type = types[number(0, 3)];
    int64_t even = type == DataType::Float4E2M1 ? 2 : 1;
    std::vector<int64_t> shape, strides;
    for (int64_t rank = number(0, 3); rank > 0; --rank) {
      shape.push_back(number(1, 5));
      strides.push_back(rank == 1 ? 1 : even * number(-14, 14));
    }
    return tensor(4096 + 4 * number(-20, 20), shape, strides, type);
  };
  int met = 0, itself = 0, rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    TensorRef a = any(), b = any();
    ASSERT_EQ(overlap(a, b), meet(a, b)) << round;
    ASSERT_EQ(overlapsItself(a), meetsItself(a)) << round;
    met += meet(a, b);
    itself += meetsItself(a);
  }
  // Neither answer is rare.
  EXPECT_TRUE(met > rounds / 10 && met < rounds * 9 / 10) << met;
  EXPECT_TRUE(itself > rounds / 10 && itself < rounds * 9 / 10) << itself;
}
