//===- Spare.h - What is dear to make, handed on ----------------*- C++ -*-===//

#ifndef DITHER_SUPPORT_SPARE_H
#define DITHER_SUPPORT_SPARE_H

#include <atomic>
#include <memory>

namespace dither {

/// Room for one `T` that nobody uses: whoever is done with one leaves it for
/// the next. Safe from any thread, and without a lock: a process may be forked
/// at any time. What is there when the process ends is not destroyed.
template <typename T> class Spare {
public:
  /// What was left, which nobody else has then; null for nothing.
  std::unique_ptr<T> take() {
    return std::unique_ptr<T>(slot.exchange(nullptr));
  }
  /// Leaves `value`; what was there before is destroyed.
  void leave(std::unique_ptr<T> value) {
    delete slot.exchange(value.release());
  }

private:
  std::atomic<T *> slot{nullptr};
};

} // namespace dither

#endif // DITHER_SUPPORT_SPARE_H
