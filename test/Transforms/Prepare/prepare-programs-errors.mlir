// RUN: dither-opt %s --dither-prepare-programs --verify-diagnostics

// What was gathered is gathered again where it is used.
func.func @gathered(%x: memref<8x32xf32>, %rows: memref<4x1xi32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.load %rows[%c0, %c0] : memref<4x1xi32> -> tensor<4x1xi32>
  // expected-error @below {{rows are gathered from a tensor that the program also writes to: write to another tensor}}
  %t = quant.gather %x[%i, %c0] : memref<8x32xf32>, tensor<4x1xi32> -> tensor<4x32xf32>
  quant.store %t, %x[%c0, %c0] : tensor<4x32xf32>, memref<8x32xf32>
  return
}

// Another one may be written to.
func.func @copied(%x: memref<8x32xf32>, %rows: memref<4x1xi32>, %y: memref<4x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.load %rows[%c0, %c0] : memref<4x1xi32> -> tensor<4x1xi32>
  %t = quant.gather %x[%i, %c0] : memref<8x32xf32>, tensor<4x1xi32> -> tensor<4x32xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x32xf32>, memref<4x32xf32>
  return
}

// Loops count as numbers with a sign do.
func.func @unsigned(%x: memref<?x16xf32>, %l: i32, %n: i32) attributes {quant.kernel} {
  %one = arith.constant 1 : i32
  // expected-error @below {{'scf.for' op compares numbers without a sign, expected a loop over numbers with one}}
  scf.for unsigned %i = %l to %n step %one : i32 {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<?x16xf32> -> tensor<1x16xf32>
    quant.store %t, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32>
  }
  return
}

func.func @hands_on_memory(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{'scf.for' op hands on a memref, expected tiles and numbers}}
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (memref<?x64xf32>) {
    %t = quant.load %a[%i, %c0] : memref<?x64xf32> -> tensor<4x64xf32>
    quant.store %t, %y[%i, %c0] : tensor<4x64xf32>, memref<?x64xf32>
    scf.yield %y : memref<?x64xf32>
  }
  return
}

func.func @no_dimension(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{'memref.dim' op of dimension 4, expected 0 to 1}}
  %d = memref.dim %x, %c4 : memref<?x64xf32>
  %t = quant.load %x[%d, %c0] : memref<?x64xf32> -> tensor<4x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  return
}

func.func @sparse(%y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'arith.constant' op is a sparse tile or one in a resource, expected a dense one}}
  %t = arith.constant sparse<[[0, 0]], [1.0]> : tensor<4x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}
