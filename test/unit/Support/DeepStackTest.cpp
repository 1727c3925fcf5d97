#include "dither/Support/DeepStack.h"

#include "gtest/gtest.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

using namespace dither;

namespace {

/// Frames of a kilobyte, `depth` of them.
__attribute__((noinline)) int recurse(int depth) {
  volatile char frame[1024];
  frame[depth % 1024] = 1;
  return depth ? recurse(depth - 1) + frame[depth % 1024] : 0;
}

TEST(DeepStackTest, HoldsMoreThanAnyThread) {
  int found = 0;
  runOnDeepStack([&] { found = recurse(100000); });
  EXPECT_EQ(found, 100000);
}

TEST(DeepStackTest, ASmallStackCanCall) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_t thread;
  int found = 0;
  auto run = [](void *found) -> void * {
    runOnDeepStack([&] { *static_cast<int *>(found) = recurse(100000); });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &found), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(found, 100000);
}

TEST(DeepStackTest, SignalsGoElsewhere) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  runOnDeepStack([&] {
    sigset_t inside;
    pthread_sigmask(SIG_SETMASK, nullptr, &inside);
    EXPECT_TRUE(sigismember(&inside, SIGINT));
    EXPECT_FALSE(sigismember(&inside, SIGSEGV));
  });
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

TEST(DeepStackTest, RunsWhereNoThreadCanStart) {
  // In a process of its own, whose address space is full.
  auto runAndExit = [] {
    rlimit limit{64 << 10, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    bool ran = false;
    runOnDeepStack([&] { ran = true; });
    _exit(ran ? 0 : 1);
  };
  EXPECT_EXIT(runAndExit(), testing::ExitedWithCode(0), "");
}

} // namespace
