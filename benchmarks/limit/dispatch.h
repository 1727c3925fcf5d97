// From the integers of the C interface to template arguments.
#ifndef DITHER_BENCHMARKS_LIMIT_DISPATCH_H
#define DITHER_BENCHMARKS_LIMIT_DISPATCH_H

#include "limit.h"

#include <type_traits>

namespace dither::limit {

template <auto Value>
using Constant = std::integral_constant<decltype(Value), Value>;

/// Outputs beyond this many bytes do not stay in a cache, so that stores need
/// not read the lines they replace.
constexpr int64_t kNonTemporalBytes = int64_t(4) << 20;

inline bool nonTemporal(int64_t bytes, const void *p, const void *q) {
  return bytes >= kNonTemporalBytes &&
         (reinterpret_cast<uintptr_t>(p) | reinterpret_cast<uintptr_t>(q)) %
                 64 ==
             0;
}

/// Calls fn(Constant<format>, Constant<bool>) and returns its result, or
/// LimitBadFormat.
template <typename Fn>
int32_t withFormat(int32_t format, bool stream, const Fn &fn) {
  auto then = [&](auto f) {
    return stream ? fn(f, Constant<true>()) : fn(f, Constant<false>());
  };
  switch (format) {
  case LimitNVFP4:
    return then(Constant<LimitNVFP4>());
  case LimitMXFP8:
    return then(Constant<LimitMXFP8>());
  case LimitMXFP4:
    return then(Constant<LimitMXFP4>());
  case LimitMXFP4Rceil:
    return then(Constant<LimitMXFP4Rceil>());
  default:
    return LimitBadFormat;
  }
}

/// Calls fn(const T *x) with the element type of `input` and returns its
/// result, or LimitBadInput.
template <typename Fn>
int32_t withInput(int32_t input, const void *x, const Fn &fn) {
  if (input == LimitBF16)
    return fn(static_cast<const uint16_t *>(x));
  if (input == LimitF32)
    return fn(static_cast<const float *>(x));
  return LimitBadInput;
}

} // namespace dither::limit

#endif
