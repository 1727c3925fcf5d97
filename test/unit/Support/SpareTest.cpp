//===- SpareTest.cpp - What is left for the next --------------------------===//

#include "dither/Support/Spare.h"

#include <gtest/gtest.h>

namespace {

using dither::Spare;

/// Counts those that are there.
struct Counted {
  explicit Counted(int &there) : there(there) { ++there; }
  ~Counted() { --there; }
  int &there;
};

TEST(Spare, GivesWhatWasLeftOnce) {
  Spare<int> spare;
  EXPECT_EQ(spare.take(), nullptr);
  spare.leave(std::make_unique<int>(7));
  std::unique_ptr<int> found = spare.take();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, 7);
  EXPECT_EQ(spare.take(), nullptr);
}

TEST(Spare, DestroysWhatIsReplaced) {
  int there = 0;
  Spare<Counted> spare;
  spare.leave(std::make_unique<Counted>(there));
  spare.leave(std::make_unique<Counted>(there));
  EXPECT_EQ(there, 1);
  spare.take();
  EXPECT_EQ(there, 0);
}

} // namespace
