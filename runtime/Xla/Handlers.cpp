#include "Programs.h"
#include "dither/Runtime/XlaHandlers.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace dither::runtime {

static ffi::Error failure(llvm::Error error) {
  return ffi::Error::Internal("dither: " + llvm::toString(std::move(error)));
}

/// The name of a GPU, as dither has it.
static std::string cudaName(int32_t ordinal) {
  return "cuda:" + llvm::itostr(ordinal);
}

static ffi::Error instantiate(std::string_view program,
                              std::string_view digest) {
  if (llvm::Error error = addProgram(digest, program))
    return failure(std::move(error));
  return ffi::Error::Success();
}

/// Operands and results as the buffers of a program. Errors: another number of
/// them, or other sizes.
static llvm::Error collect(const LoadedProgram &program,
                           ffi::RemainingArgs operands,
                           ffi::RemainingRets results,
                           llvm::SmallVectorImpl<void *> &buffers) {
  llvm::ArrayRef<uint64_t> expected = program.buffers();
  if (operands.size() + results.size() != expected.size())
    return llvm::createStringError(
        "found " + llvm::Twine(operands.size()) + " operands and " +
        llvm::Twine(results.size()) + " results, expected " +
        llvm::Twine(expected.size()) + " in all");
  for (size_t i = 0; i < expected.size(); ++i) {
    bool isOperand = i < operands.size();
    size_t place = isOperand ? i : i - operands.size();
    std::optional<ffi::AnyBuffer> buffer;
    if (isOperand) {
      if (auto found = operands.get<ffi::AnyBuffer>(place); found.has_value())
        buffer = *found;
    } else if (auto found = results.get<ffi::AnyBuffer>(place);
               found.has_value()) {
      buffer = **found;
    }
    llvm::StringRef what = isOperand ? "operand " : "result ";
    if (!buffer)
      return llvm::createStringError(what + llvm::Twine(place) +
                                     " is no buffer");
    if (buffer->size_bytes() < expected[i])
      return llvm::createStringError(what + llvm::Twine(place) + " has " +
                                     llvm::Twine(buffer->size_bytes()) +
                                     " bytes, expected " +
                                     llvm::Twine(expected[i]));
    buffers.push_back(buffer->untyped_data());
  }
  return llvm::Error::success();
}

static ffi::Error run(llvm::StringRef device, Stream stream,
                      std::string_view digest, ffi::RemainingArgs operands,
                      ffi::RemainingRets results) {
  llvm::Expected<const LoadedProgram *> program = findProgram(digest, device);
  if (!program)
    return failure(program.takeError());
  llvm::SmallVector<void *, 16> buffers;
  if (llvm::Error error = collect(**program, operands, results, buffers))
    return failure(std::move(error));
  if (llvm::Error error = (*program)->run(buffers, stream))
    return failure(std::move(error));
  return ffi::Error::Success();
}

static ffi::Error runCpu(std::string_view, std::string_view digest,
                         ffi::RemainingArgs operands,
                         ffi::RemainingRets results) {
  return run("cpu", nullptr, digest, operands, results);
}

static ffi::Error runCuda(void *stream, int32_t ordinal, std::string_view,
                          std::string_view digest, ffi::RemainingArgs operands,
                          ffi::RemainingRets results) {
  return run(cudaName(ordinal), stream, digest, operands, results);
}

/// Loads the kernels, before a graph of launches is recorded: that allows no
/// loading.
static ffi::Error initializeCuda(int32_t ordinal, std::string_view,
                                 std::string_view digest, ffi::RemainingArgs,
                                 ffi::RemainingRets) {
  if (auto program = findProgram(digest, cudaName(ordinal)); !program)
    return failure(program.takeError());
  return ffi::Error::Success();
}

XLA_FFI_Error *xlaInstantiate(XLA_FFI_CallFrame *frame) {
  static auto *handler = ffi::Ffi::BindInstantiate()
                             .Attr<std::string_view>("program")
                             .Attr<std::string_view>("digest")
                             .To(instantiate)
                             .release();
  return handler->Call(frame);
}

XLA_FFI_Error *xlaInitializeCuda(XLA_FFI_CallFrame *frame) {
  static auto *handler = ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
                             .Ctx<ffi::DeviceOrdinal>()
                             .Attr<std::string_view>("program")
                             .Attr<std::string_view>("digest")
                             .RemainingArgs()
                             .RemainingRets()
                             .To(initializeCuda)
                             .release();
  return handler->Call(frame);
}

XLA_FFI_Error *xlaRunCpu(XLA_FFI_CallFrame *frame) {
  static auto *handler = ffi::Ffi::Bind()
                             .Attr<std::string_view>("program")
                             .Attr<std::string_view>("digest")
                             .RemainingArgs()
                             .RemainingRets()
                             .To(runCpu)
                             .release();
  return handler->Call(frame);
}

XLA_FFI_Error *xlaRunCuda(XLA_FFI_CallFrame *frame) {
  static auto *handler = ffi::Ffi::Bind()
                             .Ctx<ffi::PlatformStream<void *>>()
                             .Ctx<ffi::DeviceOrdinal>()
                             .Attr<std::string_view>("program")
                             .Attr<std::string_view>("digest")
                             .RemainingArgs()
                             .RemainingRets()
                             .To(runCuda, {ffi::Traits::kCmdBufferCompatible})
                             .release();
  return handler->Call(frame);
}

} // namespace dither::runtime
