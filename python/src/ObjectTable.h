//===- ObjectTable.h - What is known of a few Python objects ---*- C++ -*-===//

#ifndef DITHER_PYTHON_OBJECTTABLE_H
#define DITHER_PYTHON_OBJECTTABLE_H

#include <Python.h>

#include "llvm/Support/Compiler.h"

#include <atomic>
#include <mutex>

namespace dither::python::launch {

/// A table of up to 64 objects, which it keeps alive, searched by address
/// without a lock: entries are only ever added. What does not fit is worked out
/// anew each time.
template <typename T> class ObjectTable {
public:
  /// What `make(object, value)` said when `object` first came, or says now of
  /// what `keep(object, value)` is false for. False, with a Python error, where
  /// it did.
  template <typename Make, typename Keep>
  bool find(PyObject *object, T &value, Make make, Keep keep) {
    unsigned known = count.load(std::memory_order_acquire);
    for (unsigned i = 0; i < known; ++i)
      if (entries[i].object == object) {
        value = entries[i].value;
        return true;
      }
    return add(object, value, make, keep);
  }

private:
  /// Out of the way of what launches do.
  template <typename Make, typename Keep>
  LLVM_ATTRIBUTE_NOINLINE bool add(PyObject *object, T &value, Make make,
                                   Keep keep) {
    // Python code runs here: not under the mutex.
    if (!make(object, value))
      return false;
    if (!keep(object, value))
      return true;
    std::lock_guard<std::mutex> lock(mutex);
    unsigned end = count.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < end; ++i)
      if (entries[i].object == object)
        return true; // another thread was first
    if (end < capacity) {
      Py_INCREF(object);
      entries[end] = {object, value};
      count.store(end + 1, std::memory_order_release);
    }
    return true;
  }

  static constexpr unsigned capacity = 64;
  struct Entry {
    PyObject *object;
    T value;
  };
  std::atomic<unsigned> count{0};
  std::mutex mutex;
  Entry entries[capacity];
};

} // namespace dither::python::launch

#endif // DITHER_PYTHON_OBJECTTABLE_H
