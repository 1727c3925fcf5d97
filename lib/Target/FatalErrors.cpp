//===- FatalErrors.cpp - Errors that LLVM ends the process for ------------===//
//
// LLVM calls a handler before it aborts, on the thread of the error and with no
// lock held. LLVM is linked into this library, so that the handler is that of
// no other LLVM in the process.
//
//===----------------------------------------------------------------------===//

#include "FatalErrors.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csetjmp>
#include <mutex>

namespace dither::target {

namespace {

struct Recovery {
  std::jmp_buf where;
  std::string reason;
};

thread_local Recovery *recovery = nullptr;

/// Where nobody waits for the error LLVM aborts next; with a handler it prints
/// nothing itself.
void handle(void *, const char *reason, bool) {
  if (!recovery) {
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return;
  }
  recovery->reason = reason;
  std::longjmp(recovery->where, 1);
}

} // namespace

std::optional<std::string> catchFatalError(llvm::function_ref<void()> body) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::remove_fatal_error_handler();
    llvm::install_fatal_error_handler(handle);
  });
  Recovery here;
  Recovery *outer = recovery;
  recovery = &here;
  bool failed = setjmp(here.where) != 0;
  if (!failed)
    body();
  recovery = outer; // unchanged since setjmp
  if (!failed)
    return std::nullopt;
  return std::move(here.reason);
}

} // namespace dither::target
