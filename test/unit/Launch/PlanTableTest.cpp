#include "dither/Runtime/Launch/PlanTable.h"

#include "gtest/gtest.h"

#include <thread>

using namespace dither::runtime::launch;

TEST(PlanTable, KeepsTheNewest) {
  PlanTable<int> table;
  EXPECT_EQ(table.find("a"), nullptr);
  table.insert("a", std::make_shared<int>(1));
  table.insert("a", std::make_shared<int>(2));
  EXPECT_EQ(*table.find("a"), 2);
  EXPECT_EQ(table.size(), 1u);
  table.clear();
  EXPECT_EQ(table.find("a"), nullptr);
}

TEST(PlanTable, IsBounded) {
  PlanTable<int> table(16);
  for (int i = 0; i < 1000; ++i) {
    table.insert(std::to_string(i), std::make_shared<int>(i));
    ASSERT_EQ(*table.find(std::to_string(i)), i);
    ASSERT_LE(table.size(), 16u);
  }
}

namespace {
/// Comes back to its table when it is destroyed, as Python objects may.
struct Returning {
  explicit Returning(PlanTable<Returning> &table) : table(table) {}
  ~Returning() { table.find("gone"); }
  PlanTable<Returning> &table;
};
} // namespace

TEST(PlanTable, DestroysOutsideOfItsLock) {
  PlanTable<Returning> table(1);
  table.insert("a", std::make_shared<Returning>(table));
  table.insert("a", std::make_shared<Returning>(table));
  table.insert("b", std::make_shared<Returning>(table));
  table.clear();
  EXPECT_EQ(table.size(), 0u);
}

TEST(PlanTable, PlansOutliveTheirEntries) {
  PlanTable<int> table(8);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        std::string key = std::to_string((i + t) % 32);
        std::shared_ptr<const int> found = table.find(key);
        if (!found) {
          table.insert(key, std::make_shared<int>((i + t) % 32));
          continue;
        }
        if (i % 97 == 0)
          table.clear();
        wrong += std::to_string(*found) != key;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}
