/*===- Unlocked.h - Giving the GIL back, and taking it again ----*- C++ -*-===*/

#ifndef DITHER_PYTHON_UNLOCKED_H
#define DITHER_PYTHON_UNLOCKED_H

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Calls `function(argument)`, which may wait for the GIL. Before Python 3.14,
/// a thread that waits while the interpreter ends is unwound by pthread_exit,
/// which C++ frames do not survive: here it stops where it is, as it does
/// from 3.14 on, and the process ends around it.
void ditherStopAtExit(void (*function)(void *), void *argument);

#ifdef __cplusplus
}

namespace dither::python {

/// The same for anything that can be called, with its result.
template <typename F> PyObject *stopAtExit(F function) {
  struct Call {
    F &function;
    PyObject *result;
  } call{function, nullptr};
  ditherStopAtExit(
      [](void *argument) {
        auto *call = static_cast<Call *>(argument);
        call->result = call->function();
      },
      &call);
  return call.result;
}

/// Runs its scope without the GIL.
class Unlocked {
public:
  Unlocked() : state(PyEval_SaveThread()) {}
  ~Unlocked() {
    ditherStopAtExit(
        [](void *state) {
          PyEval_RestoreThread(static_cast<PyThreadState *>(state));
        },
        state);
  }
  Unlocked(const Unlocked &) = delete;
  Unlocked &operator=(const Unlocked &) = delete;

private:
  PyThreadState *state;
};

} // namespace dither::python
#endif

#endif /* DITHER_PYTHON_UNLOCKED_H */
