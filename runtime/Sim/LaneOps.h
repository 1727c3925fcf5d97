//===- LaneOps.h - Operations on the 32 lanes of a warp ---------*- C++ -*-===//
//
// The table of functions that compute lanes. They are compiled once for every
// x86 and once for x86-64-v3 (AVX2, FMA), each in a namespace of its own.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_LANEOPS_H
#define DITHER_RUNTIME_SIM_LANEOPS_H

#include "Program.h"
#include "Types.h"

namespace dither::runtime::sim {

enum class Op : uint8_t {
  // Integers. `type` is that of the sources, where not said otherwise.
  Add,
  Sub,
  MulLo,
  MulHi,
  MulWide,
  MadLo,
  MadHi,
  MadWide,
  Mul24Lo,
  Mul24Hi,
  Mad24Lo,
  Mad24Hi,
  Sad,
  Div,
  Rem,
  Abs,
  Neg,
  Min,
  Max,
  AddSat,
  SubSat,
  Dp4a, ///< type u32 or s32 of a, second type of b
  Relu, ///< max with 0
  // Carries: Compare forms that give the carry out of the sum.
  AddCarry, ///< maskFn: carry of a + b + c
  SubBorrow,
  AddWithCarry, ///< laneFn: a + b + c, c a predicate
  SubWithBorrow,
  // Bits. Only the size of `type` matters, unless said.
  And,
  Or,
  Xor,
  Not,
  Cnot,
  Shl,
  Shr,  ///< signed types shift arithmetically
  ShfL, ///< imm 1 clamps, 0 wraps
  ShfR,
  Bfe,
  Bfi,
  Popc,
  Clz,
  Brev,
  Bfind, ///< imm 1: shift amount
  Fns,
  Prmt,  ///< imm: mode, as PrmtMode
  Lop3,  ///< imm: truth table
  Szext, ///< imm 1 clamps, 0 wraps
  Bmsk,
  // Moves.
  Mov,
  Select,   ///< src[2] is a predicate
  Slct,     ///< second type is that of c: s32 or f32
  SetMask,  ///< src[0] a predicate: all ones or zero, of type
  SetFloat, ///< src[0] a predicate: 1.0 or 0.0, of type
  Pack2,    ///< type of the result; elements of half its size
  Pack4,
  Unpack2, ///< element imm of the source of `type`
  Unpack4,
  // Conversions of integers: from second type to type.
  Convert,
  ConvertSat,
  // Floats: f32, f64, f16, bf16, and the x2 types.
  FAdd,
  FSub,
  FMul,
  FFma,
  FDiv,
  FMin,
  FMax,
  FMinNan,
  FMaxNan,
  FAbs,
  FNeg,
  FCopysign,
  FSqrt,
  FRcp,
  FSaturate,
  FRelu,
  FFlush,   ///< subnormals to zeros of the same sign
  FXorsign, ///< sign(a) ^ sign(b) on the magnitude of c
  // Approximations.
  Ex2,
  Lg2,
  Sin,
  Cos,
  Tanh,
  Rsqrt,
  // Conversions of floats.
  IntToFloat,    ///< second type to type (f32, f64)
  FloatToInt,    ///< second type (f32, f64) to type; imm: Integral
  RoundIntegral, ///< within type; imm: Integral
  Widen,         ///< second type (f16, bf16, f32) to type (f32, f64)
  Narrow,        ///< second type (f32, f64) to type (f16, bf16, f32), nearest
  NarrowSlow,    ///< as Narrow, any rounding, in imm as NarrowMode
  PackNarrow,    ///< two f32 (src[0] high) to type x2; imm: NarrowMode
  UnpackWiden,   ///< second type x2 to type (f16x2, bf16x2)
  Stochastic,    ///< imm: NarrowMode; see ExecStochastic.cpp
  IntToHalf,     ///< second type to f16 or bf16; imm: NarrowMode
  // Comparisons (maskFn). `type` is that of the sources.
  CmpEq,
  CmpNe,
  CmpLt,
  CmpLe,
  CmpGt,
  CmpGe,
  CmpEqu, ///< or unordered
  CmpNeu,
  CmpLtu,
  CmpLeu,
  CmpGtu,
  CmpGeu,
  CmpNum,
  CmpNan,
  // Of one float (maskFn).
  TestFinite,
  TestInfinite,
  TestNumber,
  TestNotANumber,
  TestNormal,
  TestSubnormal,
};

enum class Integral : uint8_t { Nearest, Zero, Down, Up };

/// imm of the conversions to narrow floats.
struct NarrowMode {
  Rounding rounding = Rounding::Nearest;
  bool saturate = false, relu = false;
  uint32_t encode() const {
    return uint32_t(rounding) | uint32_t(saturate) << 4 | uint32_t(relu) << 5;
  }
  static NarrowMode decode(uint32_t imm) {
    NarrowMode mode;
    mode.rounding = Rounding(imm & 15);
    mode.saturate = imm >> 4 & 1;
    mode.relu = imm >> 5 & 1;
    return mode;
  }
};

enum class PrmtMode : uint8_t { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };

/// Which function, of all an Op stands for.
struct LaneKey {
  Op op;
  Type type = Type::None, second = Type::None;
};

struct LaneTable {
  /// Null where there is no such operation.
  LaneFn (*lanes)(const LaneKey &key);
  MaskFn (*masks)(const LaneKey &key);
};

/// Of the widest level that this CPU has.
const LaneTable &laneTable();

/// A table compiled for a level: 0 for every CPU, 3 for x86-64-v3. Null where
/// the level is not built or this CPU lacks it.
const LaneTable *laneTable(int level);

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_LANEOPS_H
