// RUN: dither-opt %s --split-input-file --dither-swizzle-shared | FileCheck %s

// Rows over the warps on one side, columns on the other: through shared memory, in an order that
// both sides reach with wide accesses.

module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @across_warps
// CHECK: quant.convert_layout %{{.*}} {shared = #quant.layout<"{{.*}}offset={{.*}}">, shared_vec = array<i64: {{[124]}}, {{[124]}}>}
func.func @across_warps(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32, #quant.layout<"(64,64) reg=[(0,1),(0,2),(8,0),(16,0),(32,0)] lane=[(0,4),(0,8),(0,16),(0,32),(1,0)] warp=[(2,0),(4,0)]">>
  %u = quant.convert_layout %t : tensor<64x64xf32, #quant.layout<"(64,64) reg=[(0,1),(0,2),(8,0),(16,0),(32,0)] lane=[(0,4),(0,8),(0,16),(0,32),(1,0)] warp=[(2,0),(4,0)]">> -> tensor<64x64xf32, #quant.layout<"(64,64) reg=[(1,0),(2,0),(0,8),(0,16),(0,32)] lane=[(4,0),(8,0),(16,0),(32,0),(0,1)] warp=[(0,2),(0,4)]">>
  quant.store %u, %y[%c0, %c0] : tensor<64x64xf32, #quant.layout<"(64,64) reg=[(1,0),(2,0),(0,8),(0,16),(0,32)] lane=[(4,0),(8,0),(16,0),(32,0),(0,1)] warp=[(0,2),(0,4)]">>, memref<64x64xf32>
  return
}
}

// -----

// Codes of scales, one in a lane on both sides, are bytes there: no two lanes of a warp meet in a bank where they are in
// the order in which threads load them.

module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @scales
// CHECK: quant.convert_layout %{{.*}} {shared = #quant.layout<"(32,4) offset=[(0,1),(0,2),(1,0),(2,0),(4,0),(8,0),(16,0)]">, shared_vec = array<i64: 1, 1>}
func.func @scales(%x: memref<32x4xf8E8M0FNU>, %y: memref<32x4xf8E8M0FNU>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<32x4xf8E8M0FNU> -> tensor<32x4xf8E8M0FNU, #quant.layout<"(32,4) reg=[] lane=[(16,0),(1,0),(2,0),(4,0),(8,0)] warp=[(0,1),(0,2)]">>
  %u = quant.convert_layout %t : tensor<32x4xf8E8M0FNU, #quant.layout<"(32,4) reg=[] lane=[(16,0),(1,0),(2,0),(4,0),(8,0)] warp=[(0,1),(0,2)]">> -> tensor<32x4xf8E8M0FNU, #quant.layout<"(32,4) reg=[] lane=[(0,1),(0,2),(1,0),(2,0),(4,0)] warp=[(8,0),(16,0)]">>
  quant.store %u, %y[%c0, %c0] : tensor<32x4xf8E8M0FNU, #quant.layout<"(32,4) reg=[] lane=[(0,1),(0,2),(1,0),(2,0),(4,0)] warp=[(8,0),(16,0)]">>, memref<32x4xf8E8M0FNU>
  return
}

// Of numbers of 32 bits that order has four lanes in each bank: another one is taken.
// CHECK-LABEL: func.func @numbers
// CHECK-NOT: offset=[(0,1),(0,2),(1,0),(2,0),(4,0),(8,0),(16,0)]
// CHECK: quant.convert_layout %{{.*}} {shared = #quant.layout<"(32,4) offset={{.*}}">, shared_vec = array<i64: 1, 1>}
func.func @numbers(%x: memref<32x4xf32>, %y: memref<32x4xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<32x4xf32> -> tensor<32x4xf32, #quant.layout<"(32,4) reg=[] lane=[(16,0),(1,0),(2,0),(4,0),(8,0)] warp=[(0,1),(0,2)]">>
  %u = quant.convert_layout %t : tensor<32x4xf32, #quant.layout<"(32,4) reg=[] lane=[(16,0),(1,0),(2,0),(4,0),(8,0)] warp=[(0,1),(0,2)]">> -> tensor<32x4xf32, #quant.layout<"(32,4) reg=[] lane=[(0,1),(0,2),(1,0),(2,0),(4,0)] warp=[(8,0),(16,0)]">>
  quant.store %u, %y[%c0, %c0] : tensor<32x4xf32, #quant.layout<"(32,4) reg=[] lane=[(0,1),(0,2),(1,0),(2,0),(4,0)] warp=[(8,0),(16,0)]">>, memref<32x4xf32>
  return
}
}

// -----

// Registers that change places need no memory.

module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @within_lanes
// CHECK: quant.convert_layout %{{[^ ]*}} : tensor
func.func @within_lanes(%x: memref<32x4xf32>, %y: memref<32x4xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<32x4xf32> -> tensor<32x4xf32, #quant.layout<"(32,4) reg=[(0,1),(0,2)] lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[]">>
  %u = quant.convert_layout %t : tensor<32x4xf32, #quant.layout<"(32,4) reg=[(0,1),(0,2)] lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[]">> -> tensor<32x4xf32, #quant.layout<"(32,4) reg=[(0,2),(0,1)] lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[]">>
  quant.store %u, %y[%c0, %c0] : tensor<32x4xf32, #quant.layout<"(32,4) reg=[(0,2),(0,1)] lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[]">>, memref<32x4xf32>
  return
}
}

// -----

// The CPU has no shared memory.

module attributes {quant.target = "host"} {
// CHECK-LABEL: func.func @host
// CHECK: quant.convert_layout %{{[^ ]*}} : tensor
func.func @host(%x: memref<16x16xf32>, %y: memref<16x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<16x16xf32> -> tensor<16x16xf32, #quant.layout<"(16,16) reg=[(1,0),(2,0),(4,0),(8,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
  %u = quant.convert_layout %t : tensor<16x16xf32, #quant.layout<"(16,16) reg=[(1,0),(2,0),(4,0),(8,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">> -> tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">>
  quant.store %u, %y[%c0, %c0] : tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">>, memref<16x16xf32>
  return
}
}

// -----

// 64 KB, more than a block has: the upper rows after the lower ones, and the order is that of either half.

module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @in_halves
// CHECK: quant.convert_layout %{{.*}} {shared = #quant.layout<"(64,128) offset={{.*}}">, shared_vec = array<i64: 4, 4>}
func.func @in_halves(%x: memref<128x128xf32>, %y: memref<128x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<128x128xf32> -> tensor<128x128xf32, #quant.layout<"(128,128) reg=[(0,1),(0,2),(0,4),(0,8),(32,0),(64,0)] lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[(0,16),(0,32),(0,64)]">>
  %u = quant.convert_layout %t : tensor<128x128xf32, #quant.layout<"(128,128) reg=[(0,1),(0,2),(0,4),(0,8),(32,0),(64,0)] lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[(0,16),(0,32),(0,64)]">> -> tensor<128x128xf32, #quant.layout<"(128,128) reg=[(0,1),(0,2),(0,4),(0,8),(32,0),(64,0)] lane=[(0,16),(0,32),(0,64),(1,0),(2,0)] warp=[(4,0),(8,0),(16,0)]">>
  quant.store %u, %y[%c0, %c0] : tensor<128x128xf32, #quant.layout<"(128,128) reg=[(0,1),(0,2),(0,4),(0,8),(32,0),(64,0)] lane=[(0,16),(0,32),(0,64),(1,0),(2,0)] warp=[(4,0),(8,0),(16,0)]">>, memref<128x128xf32>
  return
}
}
