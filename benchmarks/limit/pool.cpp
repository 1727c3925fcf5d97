#include "pool.h"

#include "limit.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <immintrin.h>
#include <mutex>
#include <thread>
#include <vector>

namespace dither::limit {
namespace {

struct Loop {
  int64_t items = 0, step = 1;
  RangeFn fn = nullptr;
  const void *context = nullptr;
};

class Pool {
public:
  void run(const Loop &next, int threads) {
    std::unique_lock<std::mutex> lock(mutex);
    while (static_cast<int>(workers.size()) < threads - 1) {
      int index = static_cast<int>(workers.size());
      workers.emplace_back(
          [this, index, seen = generation] { work(index, seen); });
    }
    loop = next;
    position.store(0, std::memory_order_relaxed);
    wanted = busy = threads - 1;
    ++generation;
    lock.unlock();
    start.notify_all();
    drain();
    lock.lock();
    done.wait(lock, [this] { return busy == 0; });
  }

private:
  // Takes ranges until none is left: a thread that the machine took away for a
  // while does not hold up the rest.
  void drain() {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved &
               ~0x8040U); // neither flush to zero nor denormals are zero
    for (;;) {
      int64_t begin = position.fetch_add(loop.step, std::memory_order_relaxed);
      if (begin >= loop.items)
        break;
      loop.fn(loop.context, begin, std::min(begin + loop.step, loop.items));
    }
    _mm_sfence(); // non-temporal stores are visible before the caller returns
    _mm_setcsr(saved);
  }

  void work(int index, uint64_t seen) {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex);
      start.wait(lock, [&] { return generation != seen; });
      seen = generation;
      if (index >= wanted)
        continue;
      lock.unlock();
      drain();
      lock.lock();
      if (--busy == 0)
        done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable start, done;
  std::vector<std::thread> workers;
  Loop loop;
  std::atomic<int64_t> position{0};
  uint64_t generation = 0;
  int wanted = 0, busy = 0;
};

} // namespace

void parallelRanges(int64_t items, int64_t grain, int threads, RangeFn fn,
                    const void *context) {
  static Pool &pool =
      *new Pool; // never destroyed: its threads end with the process
  threads = std::max(threads, 1);
  // Eight ranges a thread even out what other processes take away.
  int64_t step = (items + 8 * threads - 1) / (8 * threads);
  step = std::max((step + grain - 1) / grain * grain, grain);
  pool.run(
      {items, step, fn, context},
      static_cast<int>(std::min<int64_t>(threads, (items + step - 1) / step)));
}

} // namespace dither::limit

LIMIT_API void limit_memcpy(void *to, const void *from, int64_t n,
                            int32_t threads) {
  dither::limit::parallelFor(
      n, int64_t(1) << 20, threads, [=](int64_t begin, int64_t end) {
        std::memcpy(static_cast<char *>(to) + begin,
                    static_cast<const char *>(from) + begin, end - begin);
      });
}

LIMIT_API int32_t limit_supported() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi");
}
