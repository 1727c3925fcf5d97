//===- XlaHandlers.h - Programs as custom calls of XLA ---------*- C++ -*-===//
//
// Handlers of XLA's typed FFI (xla/ffi/api of jaxlib). One target runs every
// program. Its attributes:
//
//   program   the program (Program::encode), in base64
//   digest    what stands for it: the SHA-256 of those bytes, in hexadecimal
//
// Its buffers are the operands and then the results, each in row-major order
// and as large as the program says. `instantiate` decodes the program, once for
// all calls of it; the kernels are loaded on a device when it first runs there.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_XLAHANDLERS_H
#define DITHER_RUNTIME_XLAHANDLERS_H

struct XLA_FFI_Error;
struct XLA_FFI_CallFrame;

namespace dither::runtime {

using XlaHandler = XLA_FFI_Error *(XLA_FFI_CallFrame *);

/// The stages of the target: for each platform, and for CPUs and GPUs.
XLA_FFI_Error *xlaInstantiate(XLA_FFI_CallFrame *frame);
XLA_FFI_Error *xlaInitializeCuda(XLA_FFI_CallFrame *frame);
XLA_FFI_Error *xlaRunCpu(XLA_FFI_CallFrame *frame);
XLA_FFI_Error *xlaRunCuda(XLA_FFI_CallFrame *frame);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_XLAHANDLERS_H
