#include "dither/Cache/BuildId.h"

#include <gtest/gtest.h>

namespace {

TEST(BuildIdTest, IsHexadecimalAndStable) {
  const std::string &id = dither::cache::binaryId();
  EXPECT_GE(id.size(), 16u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_EQ(id, dither::cache::binaryId());
}

} // namespace
