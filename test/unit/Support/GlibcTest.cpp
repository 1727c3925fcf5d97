// runtime/Glibc/Glibc.c, linked into this program: what the unwinder and LLVM
// ask glibc for is answered there.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <set>

extern "C" uint32_t arc4random(void);

namespace {

TEST(GlibcTest, RandomNumbersDiffer) {
  std::set<uint32_t> seen;
  uint32_t everySet = 0, everyClear = 0;
  for (int i = 0; i < 1000; ++i) {
    uint32_t number = arc4random();
    seen.insert(number);
    everySet |= number;
    everyClear |= ~number;
  }
  EXPECT_GT(seen.size(), 990u);
  EXPECT_EQ(everySet, ~0u);
  EXPECT_EQ(everyClear, ~0u);
}

#ifdef DLFO_EH_SEGMENT_TYPE
using Find = int (*)(void *, dl_find_object *);

TEST(GlibcTest, FindsTheFramesThatGlibcFinds) {
  auto theirs = reinterpret_cast<Find>(dlsym(RTLD_NEXT, "_dl_find_object"));
  Find ours = &_dl_find_object;
  ASSERT_TRUE(theirs);
  ASSERT_NE(theirs, ours) << "glibc's own is tested";
  int local = 0;
  static int global = 0;
  void *addresses[] = {reinterpret_cast<void *>(&arc4random),
                       reinterpret_cast<void *>(&std::strlen),
                       dlsym(RTLD_DEFAULT, "cbrt"),
                       dlsym(RTLD_DEFAULT, "malloc"),
                       reinterpret_cast<void *>(ours),
                       &global,
                       &local,
                       nullptr,
                       reinterpret_cast<void *>(~uintptr_t(0))};
  for (void *address : addresses) {
    dl_find_object a = {}, b = {};
    int found = ours(address, &a);
    ASSERT_EQ(found, theirs(address, &b)) << address;
    if (found)
      continue;
    EXPECT_EQ(a.dlfo_eh_frame, b.dlfo_eh_frame);
    EXPECT_LE(a.dlfo_map_start, address);
    EXPECT_GT(a.dlfo_map_end, address);
  }
}
#endif

} // namespace
