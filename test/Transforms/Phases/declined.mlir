// RUN: dither-opt %s --split-input-file --dither-tile-to-phases=remarks --verify-diagnostics

// What a kernel of fragments has that phases cannot take, where it stands.

module attributes {quant.target = "host"} {
func.func @phases(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

module attributes {quant.target = "host"} {
func.func @loop(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @+1 {{computed in fragments and not in phases, which take less time: it has loops or branches}}
  scf.for %i = %c0 to %c1 step %c1 {
    %t = quant.load %x[%i, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
    quant.store %t, %y[%i, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  }
  return
}
}

// -----

module attributes {quant.target = "host"} {
func.func @in_place(%x: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  %u = arith.addf %t, %t : tensor<4x64xf32>
  // expected-remark @+1 {{what is stored here is loaded, too}}
  quant.store %u, %x[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

module attributes {quant.target = "host"} {
func.func @rows(%x: memref<4x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  // expected-remark @+1 {{a reduction along rows needs all of them}}
  %s = quant.reduce max %t axis 0 : tensor<4x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}
}

// -----

module attributes {quant.target = "host"} {
func.func @atomic(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  // expected-remark @+1 {{this is not computed in parts}}
  quant.atomic_max %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

// Kernels for a GPU have no phases, and nothing is said.
module attributes {quant.target = "sm_90a"} {
func.func @gpu(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  return
}
}
