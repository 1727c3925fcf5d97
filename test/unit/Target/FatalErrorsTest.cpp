//===- FatalErrorsTest.cpp - LLVM gives up, and the process goes on -------===//

#include "../../../lib/Target/FatalErrors.h"
#include "llvm/Support/ErrorHandling.h"
#include "gtest/gtest.h"

#include <thread>
#include <vector>

using dither::target::catchFatalError;

namespace {

TEST(FatalErrors, AreCaught) {
  int steps = 0;
  auto reason = catchFatalError([&] {
    ++steps;
    llvm::report_fatal_error("cannot select this");
    ++steps;
  });
  EXPECT_EQ(reason, "cannot select this");
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(catchFatalError([&] { ++steps; }), std::nullopt);
  EXPECT_EQ(steps, 2);
}

TEST(FatalErrors, NestAndBelongToTheirThread) {
  auto outer = catchFatalError([] {
    EXPECT_EQ(catchFatalError([] { llvm::report_fatal_error("inner"); }),
              "inner");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([i] {
        std::string text = "thread " + std::to_string(i);
        for (int n = 0; n < 100; ++n)
          EXPECT_EQ(
              catchFatalError([&] { llvm::report_fatal_error(text.c_str()); }),
              text);
      });
    for (std::thread &thread : threads)
      thread.join();
    llvm::report_fatal_error("outer");
  });
  EXPECT_EQ(outer, "outer");
}

TEST(FatalErrorsDeathTest, OfNobodyEndTheProcess) {
  EXPECT_EQ(catchFatalError([] {}), std::nullopt);
  EXPECT_DEATH(llvm::report_fatal_error("nobody waits"), "nobody waits");
}

} // namespace
