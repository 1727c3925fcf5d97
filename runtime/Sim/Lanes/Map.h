//===- Map.h - Loops over lanes ---------------------------------*- C++ -*-===//
//
// Only for the files of this directory, which are compiled for several levels
// of the CPU (DITHER_SIM_LEVEL names the namespace) and without strict
// aliasing: registers are read as whatever type an instruction says. Nothing
// here may be an inline function with a name outside of that namespace: the
// linker would keep one of the copies, of any level.
//
// A destination may be one of the sources, never a part of one: iterations are
// independent, which the pragma says.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_LANES_MAP_H
#define DITHER_RUNTIME_SIM_LANES_MAP_H

#include "../LaneOps.h"

#include <cstdint>

#ifdef __clang__
#define DITHER_SIM_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define DITHER_SIM_LANES _Pragma("GCC ivdep")
#endif

namespace dither::runtime::sim::DITHER_SIM_LEVEL {

constexpr int kLanes = 32;

template <class T> struct UnsignedOf;
// clang-format off
template <> struct UnsignedOf<uint8_t> { using type = uint8_t; };
template <> struct UnsignedOf<uint16_t> { using type = uint16_t; };
template <> struct UnsignedOf<uint32_t> { using type = uint32_t; };
template <> struct UnsignedOf<uint64_t> { using type = uint64_t; };
template <> struct UnsignedOf<int8_t> { using type = uint8_t; };
template <> struct UnsignedOf<int16_t> { using type = uint16_t; };
template <> struct UnsignedOf<int32_t> { using type = uint32_t; };
template <> struct UnsignedOf<int64_t> { using type = uint64_t; };
// clang-format on
template <class T> using Unsigned = typename UnsignedOf<T>::type;

/// A type in which products of unsigned Ts do not overflow into a sign.
template <class T> struct ArithmeticOf {
  using type = Unsigned<T>;
};
template <> struct ArithmeticOf<uint16_t> {
  using type = uint32_t;
};
template <> struct ArithmeticOf<int16_t> {
  using type = uint32_t;
};
template <class T> using Arithmetic = typename ArithmeticOf<T>::type;

template <class T> constexpr bool kIsSigned = T(-1) < T(0);
template <class T> constexpr int kBits = 8 * int(sizeof(T));

template <class T>
inline const T *source(const char *frame, const Step &step, int i) {
  return reinterpret_cast<const T *>(frame + step.src[i]);
}

/// F::f(a, step) for each lane; N is 64 for two elements a lane.
template <class D, class A, class F, int N = kLanes>
void map1(const char *frame, const Step &step, char *destination) {
  const A *a = source<A>(frame, step, 0);
  D *d = reinterpret_cast<D *>(destination);
  DITHER_SIM_LANES
  for (int i = 0; i < N; ++i)
    d[i] = F::f(a[i]);
}

template <class D, class A, class B, class F, int N = kLanes>
void map2(const char *frame, const Step &step, char *destination) {
  const A *a = source<A>(frame, step, 0);
  const B *b = source<B>(frame, step, 1);
  D *d = reinterpret_cast<D *>(destination);
  DITHER_SIM_LANES
  for (int i = 0; i < N; ++i)
    d[i] = F::f(a[i], b[i]);
}

template <class D, class A, class B, class C, class F, int N = kLanes>
void map3(const char *frame, const Step &step, char *destination) {
  const A *a = source<A>(frame, step, 0);
  const B *b = source<B>(frame, step, 1);
  const C *c = source<C>(frame, step, 2);
  D *d = reinterpret_cast<D *>(destination);
  DITHER_SIM_LANES
  for (int i = 0; i < N; ++i)
    d[i] = F::f(a[i], b[i], c[i]);
}

/// With the step's imm as a last argument.
template <class D, class A, class F>
void map1Imm(const char *frame, const Step &step, char *destination) {
  const A *a = source<A>(frame, step, 0);
  D *d = reinterpret_cast<D *>(destination);
  uint32_t imm = step.imm;
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    d[i] = F::f(a[i], imm);
}

template <class D, class A, class B, class C, class F>
void map3Imm(const char *frame, const Step &step, char *destination) {
  const A *a = source<A>(frame, step, 0);
  const B *b = source<B>(frame, step, 1);
  const C *c = source<C>(frame, step, 2);
  D *d = reinterpret_cast<D *>(destination);
  uint32_t imm = step.imm;
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    d[i] = F::f(a[i], b[i], c[i], imm);
}

/// A bit for each lane in which F::f holds.
template <class A, class F>
uint32_t mask2(const char *frame, const Step &step) {
  const A *a = source<A>(frame, step, 0);
  const A *b = source<A>(frame, step, 1);
  uint8_t holds[kLanes];
  DITHER_SIM_LANES
  for (int i = 0; i < kLanes; ++i)
    holds[i] = F::f(a[i], b[i]);
  // Eight bytes of 0 or 1 to eight bits: their sum of products with 2^(7(8-k)).
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; i += 8) {
    uint64_t bytes;
    __builtin_memcpy(&bytes, holds + i, 8);
    bits |= uint32_t((bytes * 0x0102040810204080u) >> 56) << i;
  }
  return bits;
}

template <class A, class F>
uint32_t mask1(const char *frame, const Step &step) {
  struct First {
    static bool f(A a, A) { return F::f(a); }
  };
  return mask2<A, First>(frame, step);
}

/// Picks Make<T>::fn for the C++ type of an integer type.
template <template <class> class Make> LaneFn forIntegers(Type type) {
  switch (type) {
  case Type::U16:
    return Make<uint16_t>::fn();
  case Type::S16:
    return Make<int16_t>::fn();
  case Type::U32:
    return Make<uint32_t>::fn();
  case Type::S32:
    return Make<int32_t>::fn();
  case Type::U64:
    return Make<uint64_t>::fn();
  case Type::S64:
    return Make<int64_t>::fn();
  default:
    return nullptr;
  }
}

/// As above, for any type of a size: T is unsigned.
template <template <class> class Make> LaneFn forSizes(Type type) {
  switch (type) {
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return Make<uint8_t>::fn();
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return Make<uint16_t>::fn();
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
  case Type::F16x2:
  case Type::BF16x2:
    return Make<uint32_t>::fn();
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
  case Type::F32x2:
    return Make<uint64_t>::fn();
  default:
    return nullptr;
  }
}

// Each file's part of the table; null for operations of the others.
LaneFn selectInteger(const LaneKey &key);
LaneFn selectMultiply(const LaneKey &key);
LaneFn selectBits(const LaneKey &key);
LaneFn selectMove(const LaneKey &key);
LaneFn selectFloat(const LaneKey &key);
LaneFn selectHalf(const LaneKey &key);
LaneFn selectApproximate(const LaneKey &key);
LaneFn selectConvert(const LaneKey &key);
LaneFn selectNarrow(const LaneKey &key);
LaneFn selectStochastic(const LaneKey &key);
MaskFn selectCompare(const LaneKey &key);

} // namespace dither::runtime::sim::DITHER_SIM_LEVEL

#endif // DITHER_RUNTIME_SIM_LANES_MAP_H
