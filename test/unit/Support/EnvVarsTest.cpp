#include "dither/Support/EnvVars.h"

#include <gtest/gtest.h>
#include <set>

using namespace dither;
using namespace llvm;

namespace {

/// Sets a variable for the life of the object.
class Scoped {
public:
  Scoped(const char *name, const char *value) : name(name) {
    setenv(name, value, 1);
  }
  ~Scoped() { unsetenv(name); }

private:
  const char *name;
};

std::string message(Error error) { return toString(std::move(error)); }

template <typename T> std::string message(Expected<T> value) {
  return value ? std::string("no error") : toString(value.takeError());
}

/// The value, or the end of the test program: llvm::cantFail checks nothing
/// where LLVM's assertions are off.
template <typename T> T must(Expected<T> value) {
  if (value)
    return std::move(*value);
  std::fprintf(stderr, "unexpected error: %s\n",
               toString(value.takeError()).c_str());
  std::abort();
}

TEST(EnvVars, TableIsWellFormed) {
  std::set<StringRef> names;
  ASSERT_GT(env::variables().size(), 10u);
  for (const env::Variable &variable : env::variables()) {
    EXPECT_TRUE(variable.name.starts_with("DITHER_")) << variable.name.str();
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name.str();
    EXPECT_FALSE(variable.help.empty());
    EXPECT_FALSE(variable.help.ends_with("."));
    // Every default is a value that the variable accepts.
    EXPECT_EQ(message(env::check(variable, variable.defaultText)), "");
    bool listed =
        variable.kind == env::Kind::Choice || variable.kind == env::Kind::Set;
    EXPECT_EQ(!variable.values.empty(), listed) << variable.name.str();
  }
}

TEST(EnvVars, UnsetAndEmptyMeanTheDefault) {
  unsetenv("DITHER_CACHE");
  EXPECT_EQ(must(env::cache()), "on");
  Scoped empty("DITHER_CACHE", "");
  EXPECT_EQ(must(env::cache()), "on");
  EXPECT_EQ(must(env::libCuda()), "libcuda.so.1");
}

TEST(EnvVars, Flags) {
  for (const char *yes : {"1", "on", "true", "YES"}) {
    Scoped set("DITHER_TIMING", yes);
    EXPECT_TRUE(must(env::timing())) << yes;
  }
  for (const char *no : {"0", "off", "False", "no", ""}) {
    Scoped set("DITHER_TIMING", no);
    EXPECT_FALSE(must(env::timing())) << no;
  }
  Scoped set("DITHER_TIMING", "2");
  EXPECT_EQ(
      message(env::timing()),
      "DITHER_TIMING is '2': expected 1 or 0 (on, true, yes; off, false, no)");
}

TEST(EnvVars, Counts) {
  {
    Scoped set("DITHER_NUM_THREADS", "12");
    EXPECT_EQ(must(env::numThreads()), 12u);
  }
  for (const char *bad :
       {"-1", "4097", "1e3", "0x10", " 4", "four", "99999999999999999999"}) {
    Scoped set("DITHER_NUM_THREADS", bad);
    EXPECT_EQ(message(env::numThreads()),
              std::string("DITHER_NUM_THREADS is '") + bad +
                  "': expected a number from 0 to 4096");
  }
}

TEST(EnvVars, Bytes) {
  const std::pair<const char *, uint64_t> good[] = {
      {"0", 0},
      {"4096", 4096},
      {"3K", 3 << 10},
      {"512M", 512 << 20},
      {"2T", uint64_t(2) << 40},
      {"18446744073709551615", UINT64_MAX}};
  for (auto [text, value] : good) {
    Scoped set("DITHER_CACHE_SIZE", text);
    EXPECT_EQ(must(env::cacheSize()), value) << text;
  }
  // The last one overflows once it is scaled.
  for (const char *bad : {"G", "1.5G", "-1", "1GB", "1g", "16777216T"}) {
    Scoped set("DITHER_CACHE_SIZE", bad);
    EXPECT_EQ(message(env::cacheSize()),
              std::string("DITHER_CACHE_SIZE is '") + bad +
                  "': expected a number of bytes, such as 4096, 512M or 1G");
  }
}

TEST(EnvVars, Choices) {
  for (const char *good : {"on", "off", "readonly"}) {
    Scoped set("DITHER_CACHE", good);
    EXPECT_EQ(must(env::cache()), good);
  }
  Scoped set("DITHER_CACHE", "of");
  EXPECT_EQ(message(env::cache()),
            "DITHER_CACHE is 'of': expected on, off or readonly");
}

TEST(EnvVars, Sets) {
  {
    Scoped set("DITHER_DUMP_STAGES", "ptx, tiled");
    StringSet<> stages = must(env::dumpStages());
    EXPECT_EQ(stages.size(), 2u);
    EXPECT_TRUE(stages.contains("ptx") && stages.contains("tiled"));
  }
  {
    Scoped set("DITHER_DUMP_STAGES", "all");
    EXPECT_TRUE(must(env::dumpStages()).contains("passes"));
  }
  {
    Scoped set("DITHER_DUMP_STAGES", "none");
    EXPECT_EQ(must(env::dumpStages()).size(), 0u);
  }
  EXPECT_FALSE(must(env::dumpStages()).contains("passes"));
  Scoped set("DITHER_DUMP_STAGES", "ptx,sass");
  EXPECT_EQ(message(env::dumpStages()),
            "DITHER_DUMP_STAGES is 'ptx,sass': found 'sass', expected all, "
            "none, or some of source, quant, passes, tiled, distributed, llvm, "
            "llvmir, ptx, asm");
}

TEST(EnvVars, NamesTheNearestVariable) {
  EXPECT_EQ(message(env::lookup("DITHER_CACHEDIR")),
            "unknown variable DITHER_CACHEDIR: did you mean DITHER_CACHE_DIR?");
  EXPECT_EQ(
      message(env::lookup("DITHER_THREADS")),
      "unknown variable DITHER_THREADS: did you mean DITHER_NUM_THREADS?");
  EXPECT_EQ(message(env::lookup("DITHER_QQQQQQQQQ")),
            "unknown variable DITHER_QQQQQQQQQ");
  EXPECT_EQ(message(env::lookup("DITHER_")), "unknown variable DITHER_");
  EXPECT_EQ(must(env::lookup("DITHER_PTXAS"))->name, "DITHER_PTXAS");
}

TEST(EnvVars, ChecksEverythingAtOnce) {
  const char *bad[] = {"DITHER_CACHE=maybe", "PATH=/bin", "DITHER_LOGS=debug",
                       "DITHER_TIMING=1"};
  EXPECT_EQ(message(env::checkEnvironment(bad)),
            "DITHER_CACHE is 'maybe': expected on, off or readonly\n"
            "unknown variable DITHER_LOGS: did you mean DITHER_LOG?");
  const char *good[] = {"DITHER_CACHE=off", "DITHER_LOG=", "DITHERED=1"};
  EXPECT_EQ(message(env::checkEnvironment(good)), "");
}

TEST(EnvVars, ChecksTheProcessEnvironment) {
  EXPECT_EQ(message(env::checkEnvironment()), "");
  Scoped set("DITHER_NUM_THREAD", "1");
  EXPECT_EQ(
      message(env::checkEnvironment()),
      "unknown variable DITHER_NUM_THREAD: did you mean DITHER_NUM_THREADS?");
}

} // namespace
