// Many processes on one directory, some of which are killed, while somebody
// spoils files: kernels are always right, nothing is made twice without a
// reason, and nothing is left lying about.

#include "CacheTest.h"

#include <csignal>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace dither::cache;
using namespace dither::test;
using namespace std::chrono_literals;

namespace {

constexpr int numProcesses = 16;
constexpr int numKernels = 64;

class StressTest : public CacheTest {
protected:
  /// What a rank does: every kernel, in an order of its own. Stands for the
  /// compiler with a pause; says in the log what it makes.
  void work(unsigned seed) {
    DiskCache cache(directory, 1 << 30);
    std::mt19937 random(seed);
    std::vector<int> order(numKernels);
    for (int i = 0; i < numKernels; ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    int log =
        ::open((root + "/log").c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    for (int kernel : order) {
      Key key = makeKey("kernel" + std::to_string(kernel));
      Entry expected = makeEntry(key, 3000);
      std::optional<Entry> found = cache.load(key);
      if (!found) {
        KeyLock lock = cache.lock(key, 30s);
        found = cache.load(key);
        if (!found) {
          std::string line =
              std::to_string(kernel) + " " + std::to_string(getpid()) + "\n";
          (void)!::write(log, line.data(), line.size());
          std::this_thread::sleep_for(1ms);
          llvm::consumeError(cache.store(expected));
          continue;
        }
      }
      if (!same(*found, expected))
        _exit(3);
    }
    _exit(0);
  }

  pid_t start(unsigned seed) {
    pid_t child = fork();
    if (child == 0)
      work(seed);
    return child;
  }

  /// Ends a run: kills `kills` of the processes, at any time, and puts others
  /// in their place. Returns the killed.
  std::set<pid_t> run(unsigned kills, bool spoil) {
    std::mt19937 random(42);
    std::set<pid_t> living, killed, quicker;
    unsigned seed = 0;
    while (seed < numProcesses)
      living.insert(start(seed++));
    while (!living.empty()) {
      // At any time, and spread over the work however fast that goes.
      if (killed.size() < kills &&
          countMade() * (kills + 1) > numKernels * killed.size()) {
        auto victim = std::next(living.begin(), random() % living.size());
        kill(*victim, SIGKILL);
        killed.insert(*victim);
      }
      if (spoil)
        this->spoil(random);
      int status;
      pid_t child = waitpid(-1, &status, WNOHANG);
      if (child <= 0) {
        std::this_thread::sleep_for(2ms);
        continue;
      }
      living.erase(child);
      if (WIFSIGNALED(status)) {
        EXPECT_EQ(WTERMSIG(status), SIGKILL);
        living.insert(start(seed++));
      } else {
        EXPECT_EQ(WEXITSTATUS(status), 0) << "a wrong kernel";
        quicker.insert(child);
      }
    }
    for (pid_t process : quicker)
      killed.erase(process);
    return killed;
  }

  size_t countMade() const {
    std::ifstream log(root + "/log");
    return std::count(std::istreambuf_iterator<char>(log), {}, '\n');
  }

  /// Does something bad to a file, as copies that break off, disks and people
  /// do.
  void spoil(std::mt19937 &random) {
    DiskCache cache(directory, 1 << 30);
    Key key = makeKey("kernel" + std::to_string(random() % numKernels));
    Key other = makeKey("kernel" + std::to_string(random() % numKernels));
    std::string path = cache.path(key), name = root + "/spoiled";
    std::error_code code;
    switch (random() % 4) {
    case 0: // changed
      if (std::optional<Entry> entry = cache.load(key)) {
        std::string bytes = encodeEntry(*entry);
        bytes[random() % bytes.size()] ^= 16;
        writeFile(name, bytes);
        std::filesystem::rename(name, path, code);
      }
      break;
    case 1: // cut off
      std::filesystem::resize_file(path, random() % 2000, code);
      break;
    case 2: // another's
      std::filesystem::copy_file(cache.path(other), name, code);
      std::filesystem::rename(name, path, code);
      break;
    case 3: // something else
      if (std::filesystem::exists(path)) {
        writeFile(name, "hello");
        std::filesystem::rename(name, path, code);
      }
      break;
    }
  }

  /// How often each kernel was made, by processes that were not killed.
  std::map<int, int> made(const std::set<pid_t> &killed) {
    std::map<int, int> count;
    std::ifstream log(root + "/log");
    int kernel, process;
    while (log >> kernel >> process)
      count[kernel] += !killed.count(process);
    return count;
  }

  /// Everything is there, whole, and nothing else is.
  void expectClean(bool complete) {
    DiskCache cache(directory, 1 << 30);
    cache.prune(1 << 30);
    for (const std::string &name : names())
      EXPECT_TRUE(name == "lock" || llvm::StringRef(name).ends_with(".kernel"))
          << name;
    int whole = 0;
    for (int i = 0; i < numKernels; ++i) {
      Key key = makeKey("kernel" + std::to_string(i));
      if (std::optional<Entry> found = cache.load(key)) {
        EXPECT_TRUE(same(*found, makeEntry(key, 3000)));
        ++whole;
      }
    }
    EXPECT_TRUE(!complete || whole == numKernels) << whole;
  }
};

TEST_F(StressTest, EachKernelIsMadeOnce) {
  EXPECT_TRUE(run(0, false).empty());
  std::map<int, int> count = made({});
  EXPECT_EQ(count.size(), size_t(numKernels));
  for (auto [kernel, times] : count)
    EXPECT_EQ(times, 1) << kernel;
  expectClean(true);
}

TEST_F(StressTest, KilledProcesses) {
  std::set<pid_t> killed = run(12, false);
  EXPECT_FALSE(killed.empty());
  // What a killed process has made may be lost; then it is made again, once.
  for (auto [kernel, times] : made(killed))
    EXPECT_LE(times, 1) << kernel;
  expectClean(true);
}

TEST_F(StressTest, KilledProcessesAndSpoiledFiles) {
  run(8, true);
  expectClean(false);
}

TEST_F(StressTest, WithoutLocks) {
  ScopedEnv where("FSSHIM_DIRECTORY", directory);
  ScopedEnv none("FSSHIM_NO_LOCKS", "1");
  run(8, true);
  expectClean(false);
}

TEST_F(StressTest, FilesThatShowLate) {
  {
    ScopedEnv where("FSSHIM_DIRECTORY", directory);
    ScopedEnv late("FSSHIM_DELAY_MS", "40");
    run(8, false);
  }
  expectClean(true);
}

TEST_F(StressTest, AFullDisk) {
  {
    ScopedEnv where("FSSHIM_DIRECTORY", directory);
    ScopedEnv full("FSSHIM_FULL_AFTER", "20000");
    run(8, false);
  }
  expectClean(false);
}

} // namespace
