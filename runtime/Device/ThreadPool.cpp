#include "dither/Runtime/ThreadPool.h"
#include "dither/Support/EnvVars.h"

#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <pthread.h>

using namespace llvm;

namespace dither::runtime {

namespace {

using Pool = std::shared_ptr<DefaultThreadPool>;

/// The pool and its size, behind a mutex that fork() holds. Never destroyed:
/// workers may still wait in it while the process exits.
struct State {
  std::mutex mutex;
  unsigned requested = 0;
  /// What the environment says; 0 until it was read.
  unsigned configured = 0;
  unsigned poolSize = 0;
  Pool pool;
  /// Pools of the processes this one was forked from. Their threads are gone,
  /// so they can be neither used nor destroyed.
  std::vector<Pool> abandoned;
};

State &state() {
  static State *instance = [] {
    pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                   [] {
                     State &s = state();
                     if (s.pool)
                       s.abandoned.push_back(std::move(s.pool));
                     s.poolSize = 0;
                     s.mutex.unlock();
                   });
    return new State;
  }();
  return *instance;
}

/// The pool, with `workers` threads or more; it starts them as work comes.
Pool getPool(unsigned workers) {
  State &s = state();
  Pool old; // destroyed, that is joined, without the mutex
  std::lock_guard<std::mutex> lock(s.mutex);
  if (!s.pool || s.poolSize != workers) {
    old = std::move(s.pool);
    s.pool = std::make_shared<DefaultThreadPool>(hardware_concurrency(workers));
    s.poolSize = workers;
  }
  return s.pool;
}

/// Ranges handed out by a counter. Workers that come late find nothing left,
/// perhaps after the caller has returned: the job is shared, the body is not
/// touched any more.
struct Job {
  Job(int64_t total, int64_t chunk, function_ref<void(int64_t, int64_t)> body)
      : total(total), chunk(chunk), body(body) {}

  void run() {
    for (;;) {
      int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= total)
        return;
      int64_t end = std::min(total, begin + chunk);
      body(begin, end);
      int64_t before = done.fetch_add(end - begin, std::memory_order_acq_rel);
      if (before + (end - begin) == total) {
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_one();
      }
    }
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    finished.wait(
        lock, [&] { return done.load(std::memory_order_acquire) == total; });
  }

  const int64_t total, chunk;
  function_ref<void(int64_t, int64_t)> body;
  std::atomic<int64_t> next{0}, done{0};
  std::mutex mutex;
  std::condition_variable finished;
};

} // namespace

Expected<unsigned> numThreads() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.requested)
    return s.requested;
  if (!s.configured) {
    Expected<uint64_t> threads = env::numThreads();
    if (!threads)
      return threads.takeError();
    s.configured =
        *threads ? *threads : hardware_concurrency().compute_thread_count();
  }
  return std::max(1u, s.configured);
}

void setNumThreads(unsigned threads) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.requested = threads;
}

void parallelFor(int64_t total, int64_t chunk, unsigned threads,
                 function_ref<void(int64_t, int64_t)> body) {
  if (total <= 0)
    return;
  chunk = std::max<int64_t>(1, std::min(chunk, total));
  int64_t chunks = (total - 1) / chunk + 1;
  int64_t helpers = std::min<int64_t>(threads, chunks) - 1;
  if (helpers <= 0)
    return body(0, total);
  auto job = std::make_shared<Job>(total, chunk, body);
  Pool pool = getPool(threads - 1);
  for (int64_t i = 0; i < helpers; ++i)
    pool->async([job] { job->run(); });
  job->run();
  job->wait();
}

} // namespace dither::runtime
