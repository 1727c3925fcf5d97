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

// Sums of large square blocks: too many elements for one part.
module attributes {quant.target = "host"} {
func.func @sums(%x: memref<64x64xf32>, %y: memref<1x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  %s = quant.block_reduce sum %t block [1, 64] : tensor<64x64xf32> -> tensor<64x1xf32>
  // expected-remark @+1 {{computed in fragments and not in phases, which take less time: these are sums of more than 1024 elements}}
  %u = quant.block_reduce sum %s block [64, 1] : tensor<64x1xf32> -> tensor<1x1xf32>
  quant.store %u, %y[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
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
  // expected-remark @+1 {{the kernel loads from the tensor that it stores to here}}
  quant.store %u, %x[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

module attributes {quant.target = "host"} {
func.func @rows(%x: memref<512x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<512x64xf32> -> tensor<512x64xf32>
  // expected-remark @+1 {{sums of more than 256 rows are added in chains}}
  %s = quant.reduce sum %t axis 0 : tensor<512x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}
}

// -----

// Rows that all rows decide: they would be read twice.
module attributes {quant.target = "host"} {
func.func @all_rows(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  %m = quant.reduce max %t axis 0 : tensor<4x64xf32> -> tensor<1x64xf32>
  // expected-remark @+2 {{each of its rows depends on all rows}}
  %b = quant.broadcast %m : tensor<1x64xf32> -> tensor<4x64xf32>
  %u = arith.subf %t, %b : tensor<4x64xf32>
  quant.store %u, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

// Blocks with an infinity are computed twice, and added to memory once.
module attributes {quant.target = "host"} {
func.func @atomic_blocks(%x: memref<4x64xf32>, %y: memref<4x2xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<4x64xf32> -> tensor<4x2xf32>
  // expected-remark @+1 {{blocks with an infinity are computed twice, and added once}}
  quant.atomic_max %a, %y[%c0, %c0] : tensor<4x2xf32>, memref<4x2xf32>
  return
}
}

// -----

module attributes {quant.target = "host"} {
func.func @transform(%x: memref<64x128xf32>, %y: memref<64x128xf32>, %z: memref<128x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x128xf32> -> tensor<64x128xf32>
  quant.store %t, %y[%c0, %c0] : tensor<64x128xf32>, memref<64x128xf32>
  %u = quant.transpose %t : tensor<64x128xf32> -> tensor<128x64xf32>
  // expected-remark @+1 {{what it transforms is turned to columns}}
  %h = quant.hadamard %u axis 1 size 16 : tensor<128x64xf32>
  quant.store %h, %z[%c0, %c0] : tensor<128x64xf32>, memref<128x64xf32>
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

// -----

module attributes {quant.target = "host"} {
func.func @twice(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  %u = arith.mulf %t, %t : tensor<4x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  // expected-remark @+1 {{computed in fragments and not in phases, which take less time: another store may write elements that this one writes}}
  quant.store %u, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

// One value that is stored twice is the same in any order: a scale beside both
// halves of a gradient.
module attributes {quant.target = "host"} {
func.func @same(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
}

// -----

// A row of its own, of which something is kept beside the rows of another tile:
// it would be read where no round of these has kept it yet.
func.func @a_row_of_its_own(%x: memref<?x128xf32>, %z: memref<2x1xf32>, %y: memref<2x1xf32>, %q: memref<1x128xf8E5M2>, %b: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %u = quant.load %z[%c0, %c0] : memref<2x1xf32> -> tensor<2x1xf32>
  quant.store %u, %y[%c0, %c0] : tensor<2x1xf32>, memref<2x1xf32>
  %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<1x128xf32>
  %none = arith.constant dense<0.0> : tensor<1x128xf32>
  %mask = quant.broadcast %b : i1 -> tensor<1x128xi1>
  // expected-remark @+1 {{computed in fragments and not in phases, which take less time: these are kept for a row that no other tile has}}
  %v = arith.select %mask, %t, %none : tensor<1x128xi1>, tensor<1x128xf32>
  %s = quant.block_reduce amax %v block [1, 128] : tensor<1x128xf32> -> tensor<1x1xf32>
  %w = quant.block_broadcast %s block [1, 128] : tensor<1x1xf32> -> tensor<1x128xf32>
  %m = arith.mulf %v, %w : tensor<1x128xf32>
  %c = quant.encode %m : tensor<1x128xf32> -> tensor<1x128xf8E5M2>
  quant.store %c, %q[%c0, %c0] : tensor<1x128xf8E5M2>, memref<1x128xf8E5M2>
  return
}
