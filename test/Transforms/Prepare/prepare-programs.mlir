// RUN: dither-opt %s --dither-prepare-programs | FileCheck %s
// RUN: dither-opt %s --dither-prepare-programs --canonicalize | FileCheck %s --check-prefix=FOLDED
// RUN: dither-opt %s --dither-prepare-programs --dither-select-config | FileCheck %s --check-prefix=CONFIG

// What nothing uses is gone, also where it hangs together, and loads with it.
// CHECK-LABEL: func.func @unused
// CHECK-NOT: iota
// CHECK-NOT: broadcast
// CHECK-COUNT-1: quant.load
// CHECK-NOT: quant.load
// CHECK: quant.store
// CONFIG-LABEL: func.func @unused
// CONFIG-SAME: quant.config = {edge = array<i64: 1, 32>, fragment = array<i64: 4, 32>, num_warps = 1 : i64, tile = array<i64: 4, 32>}
func.func @unused(%x: memref<4x32xf32>, %y: memref<4096x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.iota dim 0 : tensor<4096xi32>
  %r = quant.reshape %i : tensor<4096xi32> -> tensor<4096x1xi32>
  %b = quant.broadcast %r : tensor<4096x1xi32> -> tensor<4096x64xi32>
  %f = arith.sitofp %b : tensor<4096x64xi32> to tensor<4096x64xf32>
  %l = quant.load %y[%c0, %c0] : memref<4096x64xf32> -> tensor<4096x64xf32>
  %s = arith.addf %f, %l : tensor<4096x64xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x32xf32> -> tensor<4x32xf32>
  quant.store %t, %x[%c0, %c0] : tensor<4x32xf32>, memref<4x32xf32>
  return
}

// What has an effect stays, used or not.
// CHECK-LABEL: func.func @effects
// CHECK: scf.if
// CHECK: quant.atomic_max
func.func @effects(%x: memref<1xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<1xf32>
  scf.if %c {
    quant.atomic_max %t, %x[%c0] : tensor<1xf32>, memref<1xf32>
  }
  return
}

// Integers become bf16 by way of f32: the two roundings are not merged.
// CHECK-LABEL: func.func @rounds_twice
// CHECK: arith.truncf %{{.*}} to_nearest_even : tensor<4x32xf32> to tensor<4x32xbf16>
// FOLDED-LABEL: func.func @rounds_twice
// FOLDED: arith.sitofp %{{.*}} : tensor<4x32xi32> to tensor<4x32xf32>
// FOLDED: arith.truncf %{{.*}} to_nearest_even : tensor<4x32xf32> to tensor<4x32xbf16>
func.func @rounds_twice(%x: memref<4x32xi32>, %y: memref<4x32xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.load %x[%c0, %c0] : memref<4x32xi32> -> tensor<4x32xi32>
  %f = arith.sitofp %i : tensor<4x32xi32> to tensor<4x32xf32>
  %h = arith.truncf %f : tensor<4x32xf32> to tensor<4x32xbf16>
  quant.store %h, %y[%c0, %c0] : tensor<4x32xbf16>, memref<4x32xbf16>
  return
}

// A rounding that is named stays, and so does a widening that is undone.
// CHECK-LABEL: func.func @named
// CHECK: arith.truncf %{{.*}} toward_zero
// FOLDED-LABEL: func.func @named
// FOLDED-NOT: arith.extf
func.func @named(%x: memref<4x32xbf16>, %y: memref<4x32xf32>, %z: memref<4x32xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x32xbf16> -> tensor<4x32xbf16>
  %w = arith.extf %t : tensor<4x32xbf16> to tensor<4x32xf32>
  %n = arith.truncf %w : tensor<4x32xf32> to tensor<4x32xbf16>
  quant.store %n, %x[%c0, %c0] : tensor<4x32xbf16>, memref<4x32xbf16>
  %f = quant.load %y[%c0, %c0] : memref<4x32xf32> -> tensor<4x32xf32>
  %m = arith.truncf %f toward_zero : tensor<4x32xf32> to tensor<4x32xbf16>
  quant.store %m, %z[%c0, %c0] : tensor<4x32xbf16>, memref<4x32xbf16>
  return
}

// Constant offsets leave room for sums; the others stay as they are.
// CHECK-LABEL: func.func @far_away
// CHECK-DAG: %[[BEFORE:.*]] = arith.constant -4611686018427387904 : index
// CHECK-DAG: %[[NEAR:.*]] = arith.constant 4611686018427387903 : index
// CHECK: quant.load %{{.*}}[%[[NEAR]], %[[BEFORE]]]
// CHECK: %[[FAR:.*]] = arith.constant 4611686018427387904 : index
// CHECK: %[[SAME:.*]] = arith.constant 4611686018427387904 : index
// CHECK: quant.store %{{.*}}[%[[FAR]], %arg1] valid [%[[SAME]], %arg1]
func.func @far_away(%x: memref<4x32xf32>, %i: index) attributes {quant.kernel} {
  %far = arith.constant 9223372036854775807 : index
  %before = arith.constant -9223372036854775808 : index
  %near = arith.constant 4611686018427387903 : index
  %t = quant.load %x[%near, %before] : memref<4x32xf32> -> tensor<4x32xf32>
  quant.store %t, %x[%far, %i] valid [%far, %i] : tensor<4x32xf32>, memref<4x32xf32>
  return
}
