//===- calls.cpp - Calls that do nothing, for benchmarks.launch -----------===//

#include <pybind11/pybind11.h>

#include <chrono>

namespace py = pybind11;
using Object = py::object;

/// A function of C's own calling convention that the compiler cannot see into.
extern "C" __attribute__((noinline)) void bareCall(const int64_t *slots) {
  asm volatile("" : : "r"(slots) : "memory");
}

/// Seconds of `count` calls from C.
static double bare(long count) {
  int64_t slots[64] = {};
  auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < count; ++i)
    bareCall(slots);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

static PyObject *fastcall(PyObject *, PyObject *const *, Py_ssize_t) {
  Py_RETURN_NONE;
}
static PyMethodDef fastcallMethod = {
    "fastcall",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&fastcall)),
    METH_FASTCALL, nullptr};

template <typename> using Each = const Object &;
template <typename... T> static void nothing(Each<T>...) {}

PYBIND11_MODULE(calls, m) {
  m.def("bare", &bare);
  m.def("pybind11_1", &nothing<int>);
  m.def("pybind11_4", &nothing<int, int, int, int>);
  m.def("pybind11_8", &nothing<int, int, int, int, int, int, int, int>);
  m.def("pybind11_19",
        &nothing<int, int, int, int, int, int, int, int, int, int, int, int,
                 int, int, int, int, int, int, int>);
  m.add_object("fastcall", py::reinterpret_steal<py::object>(
                               PyCFunction_New(&fastcallMethod, nullptr)));
}
