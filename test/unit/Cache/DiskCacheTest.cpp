#include "CacheTest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace dither::cache;
using namespace dither::test;

namespace {

class DiskCacheTest : public CacheTest {
protected:
  DiskCache cache{directory, 1 << 30};
  Key key = makeKey("k");
  Entry entry = makeEntry(key);

  bool hits() {
    std::optional<Entry> found = cache.load(key);
    EXPECT_TRUE(!found || same(*found, entry));
    return found.has_value();
  }
  void touch(const Key &key, time_t when) {
    timespec times[2] = {{when, 0}, {when, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, cache.path(key).c_str(), times, 0), 0);
  }
};

TEST_F(DiskCacheTest, KeepsWhatIsStored) {
  EXPECT_FALSE(hits());
  EXPECT_TRUE(names().empty()) << "reading made the directory";
  must(cache.store(entry));
  EXPECT_TRUE(hits());
  EXPECT_EQ(names(), std::vector<std::string>{key.hex() + ".kernel"});
  EXPECT_FALSE(cache.load(makeKey("other")));
}

TEST_F(DiskCacheTest, IsPrivate) {
  umask(0);
  directory = root + "/a/b/cache";
  DiskCache deep(directory, 1 << 30);
  must(deep.store(entry));
  struct stat about;
  for (std::string path : {root + "/a", root + "/a/b", directory}) {
    ASSERT_EQ(stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u) << path;
  }
  ASSERT_EQ(stat(deep.path(key).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  umask(022);
}

TEST_F(DiskCacheTest, RefusesWhatOthersCanWrite) {
  must(cache.store(entry));
  for (mode_t mode : {0620, 0602, 0666}) {
    chmod(cache.path(key).c_str(), mode);
    EXPECT_FALSE(hits()) << mode;
  }
  chmod(cache.path(key).c_str(), 0644);
  EXPECT_TRUE(hits());
  must(cache.store(entry));
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give a file away";
  EXPECT_EQ(chown(cache.path(key).c_str(), 12345, 12345), 0);
  EXPECT_FALSE(hits());
  must(cache.store(entry));
  EXPECT_TRUE(hits());
}

TEST_F(DiskCacheTest, RefusesWhatIsNoFile) {
  must(cache.store(entry));
  std::string path = cache.path(key);
  std::filesystem::rename(path, root + "/elsewhere");
  ASSERT_EQ(symlink((root + "/elsewhere").c_str(), path.c_str()), 0);
  EXPECT_FALSE(hits()) << "a link";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(hits()) << "a pipe, which nobody writes to";
  must(cache.store(entry));
  EXPECT_TRUE(hits());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(hits()) << "a directory";
  EXPECT_NE(message(cache.store(entry)), "");
}

TEST_F(DiskCacheTest, DamagedFilesAreMissesAndReplaced) {
  must(cache.store(entry));
  std::string bytes = readFile(cache.path(key).c_str());
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 4;
  Entry other = makeEntry(makeKey("other"));
  for (const std::string &wrong :
       {std::string(), bytes.substr(0, bytes.size() / 2), bytes + bytes,
        flipped, std::string("hello"), encodeEntry(other)}) {
    writeFile(cache.path(key), wrong);
    EXPECT_FALSE(hits());
    must(cache.store(entry));
    EXPECT_TRUE(hits());
  }
}

TEST_F(DiskCacheTest, PruneTakesTheLeastRecentlyUsed) {
  std::vector<Key> keys;
  for (int i = 0; i < 8; ++i) {
    keys.push_back(makeKey("k" + std::to_string(i)));
    must(cache.store(makeEntry(keys[i])));
    touch(keys[i], 1000 + i);
  }
  uint64_t each = cache.files().front().bytes;
  ASSERT_TRUE(cache.load(keys[0])); // used now
  Pruned pruned = cache.prune(3 * each);
  EXPECT_EQ(pruned.entries, 5u);
  EXPECT_EQ(pruned.bytes, 5 * each);
  std::vector<std::string> left;
  for (const StoredFile &file : cache.files())
    left.push_back(file.path);
  EXPECT_EQ(left,
            (std::vector<std::string>{cache.path(keys[0]), cache.path(keys[7]),
                                      cache.path(keys[6])}));
  EXPECT_EQ(cache.prune(0).entries, 3u);
  EXPECT_TRUE(names().empty());
}

TEST_F(DiskCacheTest, StoringKeepsToTheLimit) {
  DiskCache small(directory, 20000);
  for (int i = 0; i < 60; ++i)
    must(small.store(makeEntry(makeKey("k" + std::to_string(i)))));
  uint64_t total = 0;
  for (const StoredFile &file : small.files())
    total += file.bytes;
  EXPECT_LE(total, 20000 * 17 / 16 + 2000);
  EXPECT_GE(total, 18000u);
  EXPECT_TRUE(small.load(makeKey("k59")));
  EXPECT_FALSE(small.load(makeKey("k0")));
}

TEST_F(DiskCacheTest, TemporaryFilesOfTheDeadGo) {
  must(cache.store(entry));
  // A child that is killed between writing and renaming.
  pid_t child = fork();
  if (child == 0) {
    setenv("FSSHIM_DIRECTORY", directory.c_str(), 1);
    setenv("FSSHIM_DIE_AT_RENAME", "1", 1);
    llvm::consumeError(cache.store(entry));
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(names().size(), 2u);
  std::string ours = names()[0];
  // One of this process, which lives; two of elsewhere, one of them old.
  std::string number = std::to_string(child);
  std::string living = ours;
  living.replace(living.find("-" + number + "-"), number.size() + 1,
                 "-" + std::to_string(getpid()));
  std::string path = directory + "/";
  for (const std::string &name : {living, std::string(".new-elsewhere-1-1"),
                                  std::string(".new-elsewhere-1-2")})
    writeFile(path + name, "x");
  timespec old[2] = {{1000, 0}, {1000, 0}};
  utimensat(AT_FDCWD, (path + ".new-elsewhere-1-2").c_str(), old, 0);
  EXPECT_EQ(cache.prune(1 << 30).temporary, 2u);
  std::vector<std::string> left = {living, ".new-elsewhere-1-1",
                                   key.hex() + ".kernel"};
  std::sort(left.begin(), left.end());
  EXPECT_EQ(names(), left);
}

TEST_F(DiskCacheTest, FullAndReadOnlyDisks) {
  must(cache.store(entry));
  Entry larger = makeEntry(makeKey("larger"), 100000);
  {
    ScopedEnv where("FSSHIM_DIRECTORY", directory);
    ScopedEnv full("FSSHIM_FULL_AFTER", "5000");
    EXPECT_EQ(message(cache.store(larger)),
              "cannot write to " + directory + ": No space left on device");
    EXPECT_TRUE(hits());
  }
  EXPECT_EQ(names().size(), 1u) << "a part of the file was left";
  {
    ScopedEnv where("FSSHIM_DIRECTORY", directory);
    ScopedEnv full("FSSHIM_READ_ONLY", "1");
    EXPECT_EQ(message(cache.store(larger)),
              "cannot write to " + directory + ": Read-only file system");
    EXPECT_FALSE(cache.lock(key, std::chrono::seconds(1)).held());
    EXPECT_TRUE(hits());
  }
  must(cache.store(larger));
}

TEST_F(DiskCacheTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        Key mine = makeKey("k" + std::to_string((i * 7 + t) % 10));
        if (std::optional<Entry> found = cache.load(mine))
          EXPECT_TRUE(same(*found, makeEntry(mine)));
        else
          must(cache.store(makeEntry(mine)));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(names().size(), 10u);
}

} // namespace
