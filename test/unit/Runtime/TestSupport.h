//===- TestSupport.h - What the runtime's tests share ----------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_RUNTIME_TESTSUPPORT_H
#define DITHER_TEST_UNIT_RUNTIME_TESTSUPPORT_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

// ThreadSanitizer does not follow a child with threads, and neither it nor
// AddressSanitizer lets an allocation fail.
#if defined(__SANITIZE_THREAD__)
#define DITHER_TEST_TSAN 1
#define DITHER_TEST_ALLOCATIONS_FAIL 0
#elif defined(__SANITIZE_ADDRESS__)
#define DITHER_TEST_TSAN 0
#define DITHER_TEST_ALLOCATIONS_FAIL 0
#else
#define DITHER_TEST_TSAN 0
#define DITHER_TEST_ALLOCATIONS_FAIL 1
#endif

namespace dither::test {

inline std::string message(llvm::Error error) {
  return llvm::toString(std::move(error));
}

template <typename T> std::string message(llvm::Expected<T> value) {
  return value ? std::string("no error") : llvm::toString(value.takeError());
}

/// The value, or the end of the test program: llvm::cantFail checks nothing
/// where LLVM's assertions are off.
template <typename T> T must(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  std::fprintf(stderr, "unexpected error: %s\n",
               llvm::toString(value.takeError()).c_str());
  std::abort();
}

inline void must(llvm::Error error) {
  if (!error)
    return;
  std::fprintf(stderr, "unexpected error: %s\n",
               llvm::toString(std::move(error)).c_str());
  std::abort();
}

inline std::string readFile(const char *path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer)) << path;
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Sets an environment variable for the life of the object.
class ScopedEnv {
public:
  ScopedEnv(const char *name, const std::string &value) : name(name) {
    if (const char *old = std::getenv(name)) {
      had = true;
      before = old;
    }
    setenv(name, value.c_str(), 1);
  }
  ~ScopedEnv() {
    if (had)
      setenv(name, before.c_str(), 1);
    else
      unsetenv(name);
  }

private:
  const char *name;
  bool had = false;
  std::string before;
};

} // namespace dither::test

#endif // DITHER_TEST_UNIT_RUNTIME_TESTSUPPORT_H
