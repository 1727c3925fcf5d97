// RUN: dither-opt %s --dither-split-parts --split-input-file | FileCheck %s

module attributes {quant.target = "sm_90a"} {
// Each side is a kernel, what hands on is marked, and calls are left. A launch
// of the kernel is none of a side.
// CHECK-LABEL: func.func private @found_first
// CHECK-SAME: memref<?xf32> {quant.handed_on}
// CHECK-SAME: attributes {quant.kernel}
// CHECK-NOT: {{scf.if|first_part}}
// CHECK: quant.reduce
// CHECK-NEXT: quant.reshape
// CHECK-NEXT: quant.store
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @found_second
// CHECK-SAME: attributes {quant.kernel}
// CHECK-NOT: {{scf.if|quant.reduce}}
// CHECK: arith.mulf
// CHECK-NEXT: quant.store
// CHECK-NEXT: return
// CHECK-LABEL: func.func @found
// CHECK-SAME: %[[X:.*]]: memref<?x64xf32>, %[[S:.*]]: memref<?xf32> {quant.handed_on}, %[[Y:.*]]: memref<?x64xf32>)
// CHECK-SAME: attributes {quant.parts = [@found_first, @found_second]}
// CHECK: %[[I:.*]] = quant.program_id x
// CHECK: %[[C:.*]] = arith.cmpi slt, %[[I]]
// CHECK-NEXT: scf.if %[[C]] {
// CHECK-NEXT: call @found_first(%[[X]], %[[S]], %[[Y]])
// CHECK-NEXT: } else {
// CHECK-NEXT: call @found_second(%[[X]], %[[S]], %[[Y]])
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @found(%x: memref<?x64xf32>, %s: memref<?xf32>, %y: memref<?x64xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 16, 1, 1>, slots = array<i64: 0, 8, 0, 8, 0, 8>}} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %lt = arith.cmpi slt, %i, %c8 : index
  %first = quant.first_part %lt
  scf.if %first {
    %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
    %r = quant.reduce sum %t axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
    %v = quant.reshape %r : tensor<1x1xf32> -> tensor<1xf32>
    quant.store %v, %s[%i] : tensor<1xf32>, memref<?xf32>
  } else {
    %j = arith.subi %i, %c8 : index
    %t = quant.load %x[%j, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
    %v = quant.load %s[%j] : memref<?xf32> -> tensor<1xf32>
    %r = quant.reshape %v : tensor<1xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %r : tensor<1x1xf32> -> tensor<1x64xf32>
    %p = arith.mulf %t, %b : tensor<1x64xf32>
    quant.store %p, %y[%j, %c0] : tensor<1x64xf32>, memref<?x64xf32>
  }
  return
}
}

// -----

module attributes {quant.target = "sm_90a"} {
// Programs that do nothing are outside; what both sides read is not handed on.
// CHECK-LABEL: func.func private @guarded_first
// CHECK-NOT: {{scf.if|quant.handed_on}}
// CHECK: quant.store %{{.*}}, %arg1
// CHECK-LABEL: func.func private @guarded_second
// CHECK-NOT: {{scf.if|quant.handed_on}}
// CHECK: quant.store %{{.*}}, %arg2
// CHECK-LABEL: func.func @guarded
// CHECK: scf.if
// CHECK-NEXT: scf.if
// CHECK-NEXT: call @guarded_first
// CHECK: call @guarded_second
func.func @guarded(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %z: memref<?x64xf32>) attributes {quant.kernel} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %lt = arith.cmpi slt, %i, %c8 : index
  %ne = arith.cmpi ne, %i, %c9 : index
  scf.if %ne {
    %first = quant.first_part %lt
    scf.if %first {
      %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
      quant.store %t, %y[%i, %c0] : tensor<1x64xf32>, memref<?x64xf32>
    } else {
      %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
      quant.store %t, %z[%i, %c0] : tensor<1x64xf32>, memref<?x64xf32>
    }
  }
  return
}

// A branch like others has one schedule.
// CHECK-LABEL: func.func @branch
// CHECK-SAME: quant.kernel
// CHECK: scf.if
// CHECK-NEXT: quant.load
func.func @branch(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {quant.kernel} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %lt = arith.cmpi slt, %i, %c8 : index
  scf.if %lt {
    %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
    quant.store %t, %y[%i, %c0] : tensor<1x64xf32>, memref<?x64xf32>
  } else {
    %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
    quant.store %t, %y[%i, %c0] : tensor<1x64xf32>, memref<?x64xf32>
  }
  return
}
}
