//===- ThreadPool.h - The threads that run kernels on the CPU --*- C++ -*-===//
//
// One pool for the process, made on first use. A child made by fork() gets its
// own: the parent's threads do not exist there.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_THREADPOOL_H
#define DITHER_RUNTIME_THREADPOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <cstdint>

namespace dither::runtime {

/// Threads that run a kernel, the calling one included: what setNumThreads
/// said, else DITHER_NUM_THREADS (read once), else every hardware thread that
/// the process's affinity mask allows. At least 1. Errors: a malformed
/// variable.
llvm::Expected<unsigned> numThreads();

/// Sets the number of threads from the next launch on; 0 returns to the
/// default. Safe while kernels run: they finish on the threads they have.
void setNumThreads(unsigned threads);

/// Runs body(begin, end) on disjoint ranges that cover [0, total), on at most
/// `threads` threads of which the caller is one: ranges of `chunk` items (the
/// last may be shorter), or all in one where one thread suffices. Returns when
/// all are done. The order and the thread of a range are
/// unspecified. May be called from many threads, and from within a body.
void parallelFor(int64_t total, int64_t chunk, unsigned threads,
                 llvm::function_ref<void(int64_t, int64_t)> body);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_THREADPOOL_H
