#include "dither/Runtime/ThreadPool.h"
#include "TestSupport.h"

#include <atomic>
#include <mutex>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dither::runtime;
using namespace dither::test;
using namespace llvm;

namespace {

TEST(ThreadPool, CoversEveryItemOnce) {
  for (int64_t total : {0, 1, 2, 7, 64, 1000})
    for (int64_t chunk : {0, 1, 3, 64, 5000})
      for (unsigned threads : {1u, 2u, 5u}) {
        std::vector<int> seen(total); // plain, so that a race would show
        std::atomic<int64_t> ranges{0};
        parallelFor(total, chunk, threads, [&](int64_t begin, int64_t end) {
          ++ranges;
          EXPECT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i)
            ++seen[i];
        });
        for (int64_t i = 0; i < total; ++i)
          ASSERT_EQ(seen[i], 1) << i << " of " << total << " by " << chunk;
        int64_t size = std::max<int64_t>(1, chunk);
        EXPECT_EQ(ranges, threads == 1 ? total > 0 : (total + size - 1) / size);
      }
}

/// Each of three ranges waits for the others, so one thread alone would hang.
TEST(ThreadPool, RangesRunAtTheSameTime) {
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallelFor(3, 1, 3, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3)
      std::this_thread::yield();
    std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1u);
}

TEST(ThreadPool, Nests) {
  std::atomic<int> sum{0};
  parallelFor(4, 1, 4, [&](int64_t, int64_t) {
    parallelFor(8, 1, 4, [&](int64_t begin, int64_t) { sum += begin; });
  });
  EXPECT_EQ(sum, 4 * 28);
}

TEST(ThreadPool, NumberOfThreads) {
  setNumThreads(7);
  EXPECT_EQ(must(numThreads()), 7u);
  setNumThreads(0);
  EXPECT_GE(must(numThreads()), 1u);
}

/// In a child, so that the variable is read for the first time there.
TEST(ThreadPool, ReadsTheEnvironment) {
  auto child = [](const char *value) {
    setenv("DITHER_NUM_THREADS", value, 1);
    Expected<unsigned> threads = numThreads();
    if (!threads)
      std::fprintf(stderr, "%s\n", message(std::move(threads)).c_str());
    else
      std::fprintf(stderr, "%u threads\n", *threads);
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(child("3"), testing::ExitedWithCode(0), "^3 threads\n$");
  EXPECT_EXIT(child("many"), testing::ExitedWithCode(0),
              "DITHER_NUM_THREADS is 'many': expected a number from 0 to 4096");
}

/// Callers of different widths, so that the pool is remade under them.
TEST(ThreadPool, ManyCallers) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (unsigned c = 0; c < 8; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round)
        parallelFor(50, 3, 2 + c % 3, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            sum += i;
        });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(sum, 8 * 200 * (50 * 49 / 2));
}

#if !DITHER_TEST_TSAN
/// Waits at most 20 s: a child that lost its threads hangs.
int waitFor(pid_t child) {
  int status = -1;
  for (int i = 0; i < 2000; ++i) {
    if (waitpid(child, &status, WNOHANG) == child)
      return status;
    usleep(10000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

bool meet() {
  std::atomic<int> arrived{0};
  parallelFor(3, 1, 3, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3)
      std::this_thread::yield();
  });
  return arrived == 3;
}

TEST(ThreadPool, SurvivesFork) {
  ASSERT_TRUE(meet());
  // Another thread keeps the pool busy while this one forks; not so where the
  // allocator is AddressSanitizer's, whose locks a fork leaves as they are.
  std::atomic<bool> stop{!DITHER_TEST_ALLOCATIONS_FAIL};
  std::thread busy([&] {
    while (!stop)
      meet();
  });
  for (int i = 0; i < 5; ++i) {
    pid_t child = fork();
    if (child == 0) {
      // A grandchild too: its parent's pool was itself made after a fork.
      bool good = meet();
      pid_t grandchild = fork();
      if (grandchild == 0)
        _exit(meet() ? 0 : 1);
      _exit(good && waitFor(grandchild) == 0 ? 0 : 1);
    }
    EXPECT_EQ(waitFor(child), 0);
  }
  stop = true;
  busy.join();
  EXPECT_TRUE(meet());
}
#endif

} // namespace
