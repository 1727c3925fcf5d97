// RUN: dither-opt %s --dither-split-parts --split-input-file --verify-diagnostics

// A CPU gives programs to threads in no order that those of a kernel know.
module attributes {quant.target = "host"} {
func.func @cpu(%x: memref<?xf32>, %c: i1) attributes {quant.kernel} {
  // expected-error @+1 {{is for GPUs, whose programs begin in order}}
  %first = quant.first_part %c
  scf.if %first {
  } else {
  }
  return
}
}

// -----

module attributes {quant.target = "sm_90a"} {
func.func @one_side(%x: memref<?xf32>, %c: i1) attributes {quant.kernel} {
  // expected-error @+1 {{is not the condition of a branch with two sides at the end of the kernel}}
  %first = quant.first_part %c
  scf.if %first {
  }
  return
}
}

// -----

module attributes {quant.target = "sm_90a"} {
func.func @after(%x: memref<?xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is not the condition of a branch with two sides at the end of the kernel}}
  %first = quant.first_part %c
  scf.if %first {
  } else {
  }
  %t = arith.constant dense<1.0> : tensor<1xf32>
  quant.store %t, %x[%c0] : tensor<1xf32>, memref<?xf32>
  return
}
}

// -----

module attributes {quant.target = "sm_90a"} {
func.func @narrow(%x: memref<?xbf16>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<1xbf16>
  %first = quant.first_part %c
  scf.if %first {
    quant.store %t, %x[%c0] : tensor<1xbf16>, memref<?xbf16>
  } else {
    // expected-error @+1 {{is of what the first part of the kernel accesses too, expected loads of f32 that it stores and does not load}}
    %u = quant.load %x[%c0] : memref<?xbf16> -> tensor<1xbf16>
  }
  return
}
}

// -----

// The first part would wait for itself.
module attributes {quant.target = "sm_90a"} {
func.func @both(%x: memref<?xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<1xf32>
  %first = quant.first_part %c
  scf.if %first {
    %u = quant.load %x[%c0] : memref<?xf32> -> tensor<1xf32>
    quant.store %t, %x[%c0] : tensor<1xf32>, memref<?xf32>
  } else {
    // expected-error @+1 {{is of what the first part of the kernel accesses too}}
    %u = quant.load %x[%c0] : memref<?xf32> -> tensor<1xf32>
  }
  return
}
}
