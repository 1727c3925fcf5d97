// RUN: dither-opt %s --convert-dither-quant-to-arith --canonicalize --cse | FileCheck %s
// RUN: dither-opt %s --convert-dither-quant-to-arith | FileCheck %s --check-prefix=NONE
// NONE-NOT: = quant.

// On the CPU: 6 where x is not below it, integer minima and maxima, code 0 in
// the low bits and code 1 four bits up.
// CHECK-LABEL: func.func @e2m1_cpu(
// CHECK-DAG: %[[SIX:.*]] = arith.constant dense<6.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[SIXBITS:.*]] = arith.constant dense<1086324736> : vector<16xi32>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1065353216> : vector<16xi32>
// CHECK-DAG: %[[FOUR:.*]] = arith.constant dense<4> : vector<16xi32>
// CHECK: %[[X:.*]] = vector.extract %arg0[0]
// CHECK: %[[P:.*]] = arith.cmpf olt, %[[X]], %[[SIX]]
// CHECK: %[[C:.*]] = arith.select %[[P]], %[[X]], %[[SIX]]
// CHECK: %[[MAG:.*]] = arith.minui %{{.*}}, %[[SIXBITS]]
// CHECK: arith.maxui %[[MAG]], %[[ONE]]
// CHECK: %[[R:.*]] = math.fma
// CHECK: %[[RB:.*]] = arith.bitcast %[[R]]
// CHECK: %[[E:.*]] = arith.shrui %[[RB]]
// CHECK: arith.addi %[[E]], %[[RB]]
// CHECK: %[[HIGH:.*]] = arith.shli %{{.*}}, %[[FOUR]]
// CHECK: arith.ori %{{.*}}, %[[HIGH]]
func.func @e2m1_cpu(%x: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.encode_words %x {elem = f4E2M1FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// E4M3, on the CPU: at most 448, normal from 2^-6, NaN 7F.
// CHECK-LABEL: func.func @e4m3(
// CHECK-DAG: %[[SHIFT:.*]] = arith.constant dense<8> : vector<16xi32>
// CHECK-DAG: %[[MAX:.*]] = arith.constant dense<1138753536> : vector<16xi32>
// CHECK-DAG: %[[MIN:.*]] = arith.constant dense<1015021568> : vector<16xi32>
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant dense<0x49800098> : vector<16xf32>
// CHECK-DAG: %[[NAN:.*]] = arith.constant dense<127> : vector<16xi32>
// CHECK: %[[X:.*]] = vector.extract %arg0[0] : vector<16xf32>
// CHECK: arith.minui %{{.*}}, %[[MAX]]
// CHECK: arith.maxui %{{.*}}, %[[MIN]]
// CHECK: math.fma %{{.*}}, %[[MAGIC]]
// CHECK: %[[P:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: %[[A:.*]] = arith.select %[[P]], %[[NAN]]
// CHECK: %[[B:.*]] = arith.shli %{{.*}}, %[[SHIFT]]
// CHECK: arith.ori %[[A]], %[[B]] : vector<16xi32>
func.func @e4m3(%x: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.encode_words %x {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// A register without lanes: the same, a code after the other.
// CHECK-LABEL: func.func @e5m2(
// CHECK-DAG: %[[MAX:.*]] = arith.constant 1197473792 : i32
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant 2.097210e+06 : f32
// CHECK: arith.minui %{{.*}}, %[[MAX]]
// CHECK: math.fma %{{.*}}, %[[MAGIC]]
// CHECK: arith.cmpf uno
// CHECK: arith.select %{{.*}}, %c127_i32
// CHECK-NOT: arith.shli
func.func @e5m2(%x: vector<1xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E5M2, group = 1 : i64} : vector<1xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// The exponent rounded up: 2^-127 and below are 0, infinity is FE, NaN FF.
// CHECK-LABEL: func.func @e8m0_rceil(
// CHECK: %[[ABS:.*]] = arith.andi %{{.*}}, %c2147483647_i32
// CHECK: %[[TINY:.*]] = arith.cmpi ule, %[[ABS]], %c4194304_i32
// CHECK: %[[F:.*]] = arith.minui %[[ABS]], %c2130706432_i32
// CHECK: %[[U:.*]] = arith.addi %[[F]], %c8388607_i32
// CHECK: %[[E:.*]] = arith.shrui %[[U]], %c23_i32
// CHECK: %[[Z:.*]] = arith.select %[[TINY]], %c0_i32, %[[E]]
// CHECK: %[[NAN:.*]] = arith.cmpi ugt, %[[ABS]], %c2139095040_i32
// CHECK: arith.select %[[NAN]], %c255_i32, %[[Z]]
func.func @e8m0_rceil(%x: vector<1xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<rceil>} : vector<1xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// The exponent field.
// CHECK-LABEL: func.func @e8m0_floor(
// CHECK: %[[ABS:.*]] = arith.andi %{{.*}}, %c2147483647_i32
// CHECK-NEXT: %[[E:.*]] = arith.shrui %[[ABS]], %c23_i32
// CHECK-NEXT: vector.broadcast %[[E]]
func.func @e8m0_floor(%x: vector<1xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<floor>} : vector<1xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// bf16: half of the last bit and the bit above it; NaN 7FFF.
// CHECK-LABEL: func.func @bf16(
// CHECK: %[[X:.*]] = vector.extract %arg0[0]
// CHECK: %[[B:.*]] = arith.bitcast %[[X]]
// CHECK: %[[H:.*]] = arith.shrui %[[B]], %c16_i32
// CHECK: %[[ODD:.*]] = arith.andi %[[H]], %c1_i32
// CHECK: %[[A:.*]] = arith.addi %[[B]], %c32767_i32
// CHECK: %[[S:.*]] = arith.addi %[[A]], %[[ODD]]
// CHECK: %[[U:.*]] = arith.shrui %[[S]], %c16_i32
// CHECK: %[[P:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: %[[L:.*]] = arith.select %[[P]], %c32767_i32, %[[U]]
// CHECK: %[[HI:.*]] = arith.shli %{{.*}}, %c16_i32
// CHECK: arith.ori %[[L]], %[[HI]]
func.func @bf16(%x: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = bf16, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Vectors round the two halves of a word at once: up where the bits that go, and
// the last one of what stays, are above the middle.
// CHECK-LABEL: func.func @bf16_lanes(
// CHECK-DAG: %[[NAN:.*]] = arith.constant dense<2147418112> : vector<16xi32>
// CHECK-DAG: %[[MIDDLE:.*]] = arith.constant dense<-2147450880> : vector<16xi32>
// CHECK: %[[X:.*]] = vector.extract %arg0[0]
// CHECK: %[[P:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: arith.select %[[P]], %[[NAN]]
// CHECK: arith.cmpf uno
// CHECK-NOT: llvm.call_intrinsic
// CHECK: %[[M:.*]] = vector.bitcast %[[MIDDLE]] : vector<16xi32> to vector<32xi16>
// CHECK: %[[UP:.*]] = arith.cmpi ugt, %{{.*}}, %[[M]] : vector<32xi16>
// CHECK: %[[MORE:.*]] = arith.addi %[[CODE:.*]], %{{.*}} : vector<32xi16>
// CHECK: arith.select %[[UP]], %[[MORE]], %[[CODE]]
func.func @bf16_lanes(%x: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.encode_words %x {elem = bf16, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// With AVX-512 by its own instructions.
module attributes {quant.target = "host", quant.features = "avx512"} {
// CHECK-LABEL: func.func @bf16_avx512(
// CHECK-NOT: arith.cmpf
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.mask.fixupimm.ps.512"
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: %[[UP:.*]] = arith.cmpi ugt
// CHECK: %[[MORE:.*]] = llvm.intr.uadd.sat(%[[CODE:.*]], %{{.*}})
// CHECK: arith.select %[[UP]], %[[MORE]], %[[CODE]]
func.func @bf16_avx512(%x: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.encode_words %x {elem = bf16, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}
}

// CHECK-LABEL: func.func @f16(
// CHECK: %[[H:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK: %[[B:.*]] = arith.bitcast %[[H]] : f16 to i16
// CHECK: %[[W:.*]] = arith.extui %[[B]] : i16 to i32
// CHECK: arith.select %{{.*}}, %c32767_i32, %[[W]]
func.func @f16(%x: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f16, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
