//===- Types.h - Types and state spaces of PTX ------------------*- C++ -*-===//
//
// Names and semantics throughout this directory are those of NVIDIA's Parallel
// Thread Execution ISA, version 9.0; sections are given where they matter.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_TYPES_H
#define DITHER_RUNTIME_SIM_TYPES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace dither::runtime::sim {

/// Fundamental, packed and alternate types (ISA, 5.2).
enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64,
  TF32,
  F16x2,
  BF16x2,
  U16x2,
  S16x2,
  F32x2,
  E4M3x2,
  E5M2x2,
  E2M1x2,
  E2M3x2,
  E3M2x2,
  UE8M0x2,
  E4M3x4,
  E5M2x4,
  E2M1x4,
};

/// The type spelled `name` (without the dot); None if there is none.
Type parseType(llvm::StringRef name);
llvm::StringRef typeName(Type type);

/// Bytes of a value; 0 for predicates. e2m1x2 is 1, e4m3x2 is 2.
unsigned sizeOf(Type type);

enum class TypeClass : uint8_t { None, Pred, Bits, Unsigned, Signed, Float };

/// Packed and alternate types are Float (u16x2 and s16x2 as their elements).
TypeClass classOf(Type type);

inline bool isFloat(Type type) { return classOf(type) == TypeClass::Float; }
inline bool isSigned(Type type) { return classOf(type) == TypeClass::Signed; }
/// .bN, .uN or .sN.
inline bool isInteger(Type type) {
  TypeClass c = classOf(type);
  return c == TypeClass::Bits || c == TypeClass::Unsigned ||
         c == TypeClass::Signed;
}

inline bool isPacked16(Type type) {
  return type == Type::U16x2 || type == Type::S16x2;
}

/// State spaces (ISA, 5.1).
enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };

llvm::StringRef spaceName(Space space);

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_TYPES_H
