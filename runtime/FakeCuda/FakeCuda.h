//===- FakeCuda.h - Control of the fake libcuda.so.1 -----------*- C++ -*-===//
//
// A CUDA driver for machines without a GPU: the entry points of
// Cuda/Symbols.def in host memory. It keeps modules' PTX, logs launches instead
// of running them, and rejects what the driver rejects: calls without a
// context, unknown handles and functions, double frees, copies out of bounds,
// blocks and grids that are too large. It reads the environment when it is
// loaded and at each reset:
//
//   FAKE_CUDA_DEVICES     number of devices (1)
//   FAKE_CUDA_NAME        their name (Fake GPU)
//   FAKE_CUDA_CAPABILITY  their compute capability (9.0)
//   FAKE_CUDA_VERSION     newest PTX .version that is accepted, and CUDA (9.0)
//   FAKE_CUDA_MEMORY      bytes that may be allocated (1 GiB)
//   FAKE_CUDA_SHARED      bytes of shared memory that a kernel may ask for
//                         (232448)
//   FAKE_CUDA_THREADS     threads per block that a kernel's registers allow
//   (1024) FAKE_CUDA_FAIL        calls that fail:
//   "cuMemAlloc#2=2,cuLaunchKernel#1=700"
//                         fails the second cuMemAlloc with 2, and so on
//
// Found with dlsym; the names have no suffix of a version.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_FAKECUDA_FAKECUDA_H
#define DITHER_RUNTIME_FAKECUDA_FAKECUDA_H

extern "C" {

/// Forgets everything, as if the library had just been loaded.
using FakeCudaReset = void();
void fakeCudaReset();

/// The launches so far, one a line, oldest first. Parameters are read as the
/// PTX declares them. Valid until the next call from any thread:
///   kernel grid=4x1x1 block=128x1x1 shared=0 stream=0 params=0x7f00,16,0.5
using FakeCudaLaunches = const char *();
const char *fakeCudaLaunches();

/// What is still held: "2 allocations, 1 module, 1 context", or "" for nothing.
using FakeCudaLeaks = const char *();
const char *fakeCudaLeaks();

/// Calls of the entry point `name` so far.
using FakeCudaCalls = unsigned(const char *name);
unsigned fakeCudaCalls(const char *name);

/// A stream that calls accept, beside the null stream.
using FakeCudaStream = void *();
void *fakeCudaStream();
}

#endif // DITHER_RUNTIME_FAKECUDA_FAKECUDA_H
