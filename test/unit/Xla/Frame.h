//===- Frame.h - Calls of handlers as XLA makes them -----------*- C++ -*-===//

#ifndef DITHER_TEST_UNIT_XLA_FRAME_H
#define DITHER_TEST_UNIT_XLA_FRAME_H

#include "../Program/ProgramTest.h"
#include "dither/Runtime/XlaHandlers.h"

#include "xla/ffi/api/c_api.h"

#include <deque>

// XLA's own, which handlers see by its API alone.
struct XLA_FFI_Error {
  std::string message;
  XLA_FFI_Error_Code code;
};
struct XLA_FFI_ExecutionContext {
  void *stream = nullptr;
  int32_t ordinal = 0;
  /// What asking for the stream fails with, where it does.
  std::string failure;
};

namespace dither::test {

/// The functions of XLA that handlers may call; others are null.
const XLA_FFI_Api *xlaApi();

/// Errors that were made and not destroyed.
int numXlaErrors();

/// One call: of instantiate or of another stage, with a program as attributes
/// and any buffers.
class Frame {
public:
  explicit Frame(XLA_FFI_ExecutionStage stage) : stage(stage) {}
  Frame(XLA_FFI_ExecutionStage stage, const runtime::Program &program)
      : Frame(stage, program.encode()) {}
  /// Attributes of encoded bytes, whatever they are.
  Frame(XLA_FFI_ExecutionStage stage, const std::string &encoded);

  Frame &attribute(const std::string &name, const std::string &value);
  /// An array of a shape, whose elements have 8 bytes, or other ones.
  Frame &operand(void *data, std::vector<int64_t> shape,
                 XLA_FFI_DataType type = XLA_FFI_DataType_S64);
  Frame &result(void *data, std::vector<int64_t> shape,
                XLA_FFI_DataType type = XLA_FFI_DataType_S64);
  Frame &on(void *stream, int32_t ordinal = 0);

  /// What the handler says; "" where it succeeds.
  std::string call(runtime::XlaHandler *handler);

  XLA_FFI_ExecutionContext context;
  /// Of the last error.
  XLA_FFI_Error_Code code = XLA_FFI_Error_Code_OK;

private:
  struct Array {
    std::vector<int64_t> shape;
    XLA_FFI_Buffer buffer;
  };
  struct Attribute {
    std::string name, value;
    XLA_FFI_ByteSpan nameSpan, valueSpan;
  };
  static void *add(std::deque<Array> &arrays, void *data,
                   std::vector<int64_t> shape, XLA_FFI_DataType type);

  XLA_FFI_ExecutionStage stage;
  // Deques: what handlers are given points into them.
  std::deque<Array> arrays;
  std::vector<void *> operands, results;
  std::deque<Attribute> attributes;
};

/// SHA-256 in hexadecimal.
std::string hexDigest(llvm::StringRef bytes);

} // namespace dither::test

#endif // DITHER_TEST_UNIT_XLA_FRAME_H
