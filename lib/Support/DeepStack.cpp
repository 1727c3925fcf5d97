//===- DeepStack.cpp - Work that recurses deeply --------------------------===//

#include "dither/Support/DeepStack.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

namespace dither {

/// Of address space: only what is used takes memory.
static constexpr size_t kMostBytes = size_t(1) << 30, kLeastBytes = size_t(16)
                                                                    << 20;

void runOnDeepStack(llvm::function_ref<void()> body) {
  // A new thread has the mask of its maker. Handlers of signals that come from
  // outside belong to threads that know of them; faults stay where they are.
  sigset_t outside, before;
  sigfillset(&outside);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&outside, fault);
  pthread_sigmask(SIG_BLOCK, &outside, &before);
  auto run = [](void *body) -> void * {
    (*static_cast<llvm::function_ref<void()> *>(body))();
    return nullptr;
  };
  pthread_t thread;
  bool started = false;
  for (size_t bytes = kMostBytes; !started && bytes >= kLeastBytes;
       bytes /= 4) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
      break;
    started = !pthread_attr_setstacksize(&attributes, bytes) &&
              !pthread_create(&thread, &attributes, run, &body);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started)
    pthread_join(thread, nullptr);
  else
    body();
}

} // namespace dither
