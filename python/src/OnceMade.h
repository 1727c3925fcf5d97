//===- OnceMade.h - What Python is asked for once --------------*- C++ -*-===//

#ifndef DITHER_PYTHON_ONCEMADE_H
#define DITHER_PYTHON_ONCEMADE_H

#include <atomic>
#include <memory>

namespace dither::python::launch {

/// A value that lives as long as the process, made when it is first needed.
/// Making it may run Python code, which may wait for another thread: no lock is
/// held meanwhile, and of what several threads make at once the first is kept.
template <typename T> class OnceMade {
public:
  /// The value; null before there is one.
  const T *get() const { return known.load(std::memory_order_acquire); }

  /// The value, of `make()` where there is none: a std::unique_ptr, null with a
  /// Python error.
  template <typename Make> const T *get(Make make) {
    const T *value = get();
    if (value)
      return value;
    std::unique_ptr<const T> made = make();
    // Where another one was kept, `value` is that.
    if (!made || !known.compare_exchange_strong(value, made.get()))
      return value;
    return made.release();
  }

private:
  std::atomic<const T *> known{nullptr};
};

} // namespace dither::python::launch

#endif // DITHER_PYTHON_ONCEMADE_H
