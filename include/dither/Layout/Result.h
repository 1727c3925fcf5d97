//===- Result.h - A value or a message --------------------------*- C++ -*-===//
//
// The layout library reports every malformed request as a value: release builds
// have no assertions, so a check that aborts or vanishes would be no check.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_RESULT_H
#define DITHER_LAYOUT_RESULT_H

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace dither::layout {

/// A message saying what was found and what was expected; converts to any
/// Result<T>.
struct Error {
  std::string message;
};

/// Either a T or the reason why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : storage(std::move(value)) {}
  Result(Error error) : text(std::move(error.message)) {}

  explicit operator bool() const { return storage.has_value(); }

  /// The message; empty when there is a value.
  const std::string &message() const { return text; }
  Error error() const { return Error{text}; }

  /// The value. Taking the value of a failed result is a bug in the caller and
  /// ends the process with the message rather than reading garbage.
  T &operator*() & { return get(); }
  const T &operator*() const & { return const_cast<Result *>(this)->get(); }
  T &&operator*() && { return std::move(get()); }
  T *operator->() { return &get(); }
  const T *operator->() const { return &const_cast<Result *>(this)->get(); }

private:
  T &get() {
    if (!storage) {
      std::fprintf(stderr, "value of a failed layout result: %s\n",
                   text.c_str());
      std::abort();
    }
    return *storage;
  }

  std::optional<T> storage;
  std::string text;
};

} // namespace dither::layout

#endif // DITHER_LAYOUT_RESULT_H
