#include "ObjectLinker.h"

#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

#include <mutex>
#include <pthread.h>

using namespace llvm;

namespace dither::runtime {

namespace {

/// ORC without its compile layers: LLJIT would create a code generator, which a
/// process that only runs cached kernels has no use for.
struct Session {
  explicit Session(std::unique_ptr<orc::ExecutorProcessControl> control)
      : session(std::move(control)), layer(session) {
    // ORC reports the cause of a failure here and returns only that it failed.
    session.setErrorReporter([this](Error error) {
      if (!causes.empty())
        causes += "; ";
      causes += toString(std::move(error));
    });
  }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  std::string causes;
  uint64_t count = 0;
};

/// Guards the session; fork() holds it, so that a child never starts with a
/// session that another thread was in the middle of changing.
std::mutex &sessionMutex() {
  static std::mutex *mutex = [] {
    pthread_atfork([] { sessionMutex().lock(); },
                   [] { sessionMutex().unlock(); },
                   [] { sessionMutex().unlock(); });
    return new std::mutex;
  }();
  return *mutex;
}

/// The session, made on first use and never destroyed: kernels may outlive
/// every static object. Needs the mutex.
Expected<Session &> getSession() {
  static Session *session = nullptr;
  if (!session) {
    auto control = orc::SelfExecutorProcessControl::Create(
        nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
    if (!control)
      return control.takeError();
    session = new Session(std::move(*control));
  }
  return *session;
}

} // namespace

/// JITLink links objects for any machine; running them is another matter.
static Error checkMachine(StringRef object, Triple host) {
  auto file = object::ObjectFile::createObjectFile({object, "object"});
  if (!file)
    return file.takeError();
  if ((*file)->getArch() == host.getArch())
    return Error::success();
  return createStringError(
      "the object is for " + Triple::getArchTypeName((*file)->getArch()) +
      ", expected " + Triple::getArchTypeName(host.getArch()));
}

Expected<LinkedCode> linkCode(StringRef object, StringRef symbol) {
  std::lock_guard<std::mutex> lock(sessionMutex());
  Expected<Session &> session = getSession();
  if (!session)
    return session.takeError();
  orc::ExecutionSession &es = session->session;
  if (Error error = checkMachine(object, es.getTargetTriple()))
    return error;
  orc::JITDylib &dylib =
      es.createBareJITDylib("kernel" + std::to_string(session->count++));
  session->causes.clear();
  auto fail = [&](Error error) -> Expected<LinkedCode> {
    std::string why = toString(std::move(error));
    if (Error removal = es.removeJITDylib(dylib))
      why += "; " + toString(std::move(removal));
    if (!session->causes.empty())
      why = session->causes;
    return createStringError(why);
  };
  if (Error error = session->layer.add(
          dylib, MemoryBuffer::getMemBufferCopy(object, symbol)))
    return fail(std::move(error));
  Expected<orc::ExecutorSymbolDef> found =
      es.lookup({&dylib}, es.intern(symbol));
  if (!found)
    return fail(found.takeError());
  return LinkedCode{found->getAddress().toPtr<void *>(), &dylib};
}

void unlinkCode(const LinkedCode &code) {
  std::lock_guard<std::mutex> lock(sessionMutex());
  Session &session = cantFail(getSession()); // it made `code`
  // Unmapping can only fail for memory that is not mapped; it then stays.
  consumeError(session.session.removeJITDylib(
      *static_cast<orc::JITDylib *>(code.handle)));
}

} // namespace dither::runtime
