#include "CacheTest.h"

#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace dither::cache;
using namespace dither::test;
using namespace std::chrono;
using namespace std::chrono_literals;

namespace {

class LockTest : public CacheTest {
protected:
  DiskCache cache{directory, 1 << 30};
  Key key = makeKey("k");
};

TEST_F(LockTest, KeepsOthersOut) {
  KeyLock first = cache.lock(key, 0ms);
  EXPECT_TRUE(first.held());
  auto start = steady_clock::now();
  EXPECT_FALSE(cache.lock(key, 50ms).held());
  EXPECT_GE(steady_clock::now() - start, 50ms);
  EXPECT_TRUE(cache.lock(makeKey("other"), 0ms).held());
  first = KeyLock();
  EXPECT_TRUE(cache.lock(key, 0ms).held());
}

TEST_F(LockTest, AWaiterGetsItWhenItIsFree) {
  std::optional<KeyLock> first = cache.lock(key, 0ms);
  std::thread other([&] {
    std::this_thread::sleep_for(30ms);
    first.reset();
  });
  EXPECT_TRUE(cache.lock(key, 10s).held());
  other.join();
}

/// A child that takes the lock, says so, and does what it is told.
template <typename F> pid_t holder(DiskCache &cache, const Key &key, F then) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  pid_t child = fork();
  if (child == 0) {
    KeyLock lock = cache.lock(key, 0ms);
    char byte = lock.held();
    (void)!write(pipes[1], &byte, 1);
    then();
    _exit(0);
  }
  char held = 0;
  EXPECT_EQ(read(pipes[0], &held, 1), 1);
  EXPECT_TRUE(held);
  close(pipes[0]);
  close(pipes[1]);
  return child;
}

TEST_F(LockTest, ADeadHolderHoldsNothing) {
  pid_t child = holder(cache, key, [] { pause(); });
  EXPECT_FALSE(cache.lock(key, 20ms).held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(cache.lock(key, 0ms).held());
}

TEST_F(LockTest, AStoppedHolderIsWaitedForNoLongerThanSaid) {
  pid_t child = holder(cache, key, [] { raise(SIGSTOP); });
  EXPECT_FALSE(cache.lock(key, 50ms).held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(LockTest, AChildDoesNotKeepItsParentsLock) {
  std::optional<KeyLock> lock = cache.lock(key, 0ms);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  lock.reset();
  EXPECT_TRUE(cache.lock(key, 0ms).held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(LockTest, WithoutLocksNobodyWaits) {
  KeyLock first = cache.lock(key, 0ms);
  ScopedEnv where("FSSHIM_DIRECTORY", directory);
  ScopedEnv none("FSSHIM_NO_LOCKS", "1");
  auto start = steady_clock::now();
  EXPECT_FALSE(cache.lock(key, 10s).held());
  EXPECT_LT(steady_clock::now() - start, 5s);
}

TEST_F(LockTest, LeavesOneFile) {
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(cache.lock(makeKey(std::to_string(i)), 0ms).held());
  EXPECT_EQ(names(), std::vector<std::string>{"lock"});
}

} // namespace
