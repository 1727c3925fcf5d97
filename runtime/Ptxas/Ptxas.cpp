#include "dither/Runtime/Ptxas.h"
#include "dither/Support/EnvVars.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace dither::runtime {

Expected<std::string> findPtxas(StringRef path) {
  std::string given = path.str();
  if (given.empty()) {
    Expected<std::string> variable = env::ptxas();
    if (!variable)
      return variable.takeError();
    given = *variable;
  }
  if (!given.empty()) {
    if (sys::fs::can_execute(given))
      return given;
    return createStringError("ptxas at " + given +
                             " was not found or cannot be executed");
  }
  if (ErrorOr<std::string> found = sys::findProgramByName("ptxas"))
    return *found;
  const char *usual = "/usr/local/cuda/bin/ptxas";
  if (sys::fs::can_execute(usual))
    return std::string(usual);
  return createStringError(
      "ptxas was not found in DITHER_PTXAS, PATH or /usr/local/cuda/bin");
}

namespace {

/// A temporary file that goes with the object.
struct TemporaryFile {
  SmallString<128> path;
  FileRemover remover;

  Error create(StringRef suffix) {
    int descriptor = -1;
    if (std::error_code code = sys::fs::createTemporaryFile(
            "dither", suffix, descriptor, path, sys::fs::OF_None))
      return createStringError("cannot make a temporary file: " +
                               code.message());
    sys::Process::SafelyCloseFileDescriptor(descriptor);
    remover.setFile(path);
    return Error::success();
  }

  Error write(StringRef text) {
    std::error_code code;
    raw_fd_ostream out(path, code);
    if (!code) {
      out << text;
      out.close();
      code = out.error();
      out.clear_error();
    }
    if (code)
      return createStringError("cannot write " + path + ": " + code.message());
    return Error::success();
  }

  Expected<std::string> read() const {
    auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return createStringError("cannot read " + path + ": " +
                               buffer.getError().message());
    return (*buffer)->getBuffer().str();
  }
};

} // namespace

Expected<PtxasResult> runPtxas(StringRef ptxas, StringRef ptx,
                               StringRef target) {
  TemporaryFile input, output, log;
  for (auto [file, suffix] :
       {std::pair(&input, "ptx"), {&output, "cubin"}, {&log, "log"}})
    if (Error error = file->create(suffix))
      return error;
  if (Error error = input.write(ptx))
    return error;
  std::string architecture = ("-arch=" + target).str(), why;
  int status = sys::ExecuteAndWait(
      ptxas, {ptxas, "-v", architecture, input.path, "-o", output.path},
      /*Env=*/std::nullopt,
      /*Redirects=*/{StringRef(""), StringRef(log.path), StringRef(log.path)},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  Expected<std::string> printed = log.read();
  if (!printed)
    return printed.takeError();
  if (status != 0)
    return createStringError(
        ptxas + " -arch=" + target + " failed (" +
        (why.empty() ? ("exit status " + Twine(status)).str() : why) + "):\n" +
        StringRef(*printed).trim());
  PtxasResult result;
  result.log = std::move(*printed);
  Expected<std::vector<KernelResources>> kernels = parsePtxasLog(result.log);
  if (!kernels)
    return kernels.takeError();
  if (kernels->empty())
    return createStringError(ptxas + " printed no kernel:\n" +
                             StringRef(result.log).trim());
  result.kernels = std::move(*kernels);
  Expected<std::string> cubin = output.read();
  if (!cubin)
    return cubin.takeError();
  result.cubin = std::move(*cubin);
  return result;
}

} // namespace dither::runtime
