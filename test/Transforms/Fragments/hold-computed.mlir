// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments=fragment=1,256 --canonicalize --cse | FileCheck %s

// Sums along rows and maxima along columns, of parts that have neither all rows
// nor all columns: each is computed once, in loops of its own, and lies in
// memory. No loop over rows computes what columns have.

// CHECK-LABEL: func.func @both
// CHECK-DAG: %[[COLS:.*]] = quant.scratch : memref<1x1024xf32>
// CHECK-DAG: %[[ROWS:.*]] = quant.scratch : memref<64x1xf32>
// CHECK: quant.reduce sum {{.*}} axis 1
// CHECK: quant.store %{{.*}}, %[[ROWS]]
// CHECK-NOT: quant.reduce sum
// CHECK: quant.load %[[ROWS]]
// CHECK: quant.store %{{.*}}, %[[COLS]]
// CHECK-NOT: quant.reduce
// CHECK-DAG: quant.load %[[ROWS]]
// CHECK-DAG: quant.load %[[COLS]]
// CHECK: quant.store %{{.*}}, %arg1
// CHECK: return
module attributes {quant.target = "host"} {
func.func @both(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<64x1024xf32>
  %s = quant.reduce sum %t axis 1 : tensor<64x1024xf32> -> tensor<64x1xf32>
  %sb = quant.broadcast %s : tensor<64x1xf32> -> tensor<64x1024xf32>
  %u = arith.divf %t, %sb : tensor<64x1024xf32>
  %m = quant.reduce amax %u axis 0 : tensor<64x1024xf32> -> tensor<1x1024xf32>
  %mb = quant.broadcast %m : tensor<1x1024xf32> -> tensor<64x1024xf32>
  %v = arith.divf %u, %mb : tensor<64x1024xf32>
  quant.store %v, %y[%c0, %c0] : tensor<64x1024xf32>, memref<64x1024xf32>
  return
}
}

// -----

// Not where a part has whole rows, nor where one direction is all there is.

// CHECK-LABEL: func.func @whole_rows
// CHECK-NOT: quant.scratch
// CHECK: return
// CHECK-LABEL: func.func @rows
// CHECK-NOT: quant.scratch
// CHECK: return
module attributes {quant.target = "host"} {
func.func @whole_rows(%x: memref<64x128xf32>, %y: memref<64x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x128xf32> -> tensor<64x128xf32>
  %s = quant.reduce sum %t axis 1 : tensor<64x128xf32> -> tensor<64x1xf32>
  %sb = quant.broadcast %s : tensor<64x1xf32> -> tensor<64x128xf32>
  %u = arith.divf %t, %sb : tensor<64x128xf32>
  %m = quant.reduce amax %u axis 0 : tensor<64x128xf32> -> tensor<1x128xf32>
  %mb = quant.broadcast %m : tensor<1x128xf32> -> tensor<64x128xf32>
  %v = arith.divf %u, %mb : tensor<64x128xf32>
  quant.store %v, %y[%c0, %c0] : tensor<64x128xf32>, memref<64x128xf32>
  return
}
func.func @rows(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<64x1024xf32>
  %m = quant.reduce amax %t axis 1 : tensor<64x1024xf32> -> tensor<64x1xf32>
  %mb = quant.broadcast %m : tensor<64x1xf32> -> tensor<64x1024xf32>
  %u = arith.divf %t, %mb : tensor<64x1024xf32>
  %s = quant.reduce sum %u axis 1 : tensor<64x1024xf32> -> tensor<64x1xf32>
  %sb = quant.broadcast %s : tensor<64x1xf32> -> tensor<64x1024xf32>
  %v = arith.divf %u, %sb : tensor<64x1024xf32>
  quant.store %v, %y[%c0, %c0] : tensor<64x1024xf32>, memref<64x1024xf32>
  return
}
}

// -----

// What is transposed and made of what is transposed lies in memory. What is
// transposed first does not.

// CHECK-LABEL: func.func @turned
// CHECK: %[[HELD:.*]] = quant.scratch : memref<128x128xf32>
// CHECK-NOT: quant.scratch
// CHECK: quant.load %arg0
// CHECK: quant.store %{{.*}}, %[[HELD]]
// CHECK-NOT: quant.load %arg0
// CHECK: quant.load %[[HELD]]
// CHECK: quant.store %{{.*}}, %arg1
// CHECK-LABEL: func.func @once
// CHECK-NOT: quant.scratch
// CHECK: return
module attributes {quant.target = "host"} {
func.func @turned(%x: memref<128x128xf32>, %y: memref<128x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<128x128xf32> -> tensor<128x128xf32>
  %tt = quant.transpose %t : tensor<128x128xf32> -> tensor<128x128xf32>
  %u = arith.addf %t, %tt : tensor<128x128xf32>
  %e = quant.exp %u : tensor<128x128xf32>
  %et = quant.transpose %e : tensor<128x128xf32> -> tensor<128x128xf32>
  %v = arith.addf %e, %et : tensor<128x128xf32>
  quant.store %v, %y[%c0, %c0] : tensor<128x128xf32>, memref<128x128xf32>
  return
}
func.func @once(%x: memref<128x128xf32>, %y: memref<128x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<128x128xf32> -> tensor<128x128xf32>
  %e = quant.exp %t : tensor<128x128xf32>
  %et = quant.transpose %e : tensor<128x128xf32> -> tensor<128x128xf32>
  %v = arith.addf %e, %et : tensor<128x128xf32>
  quant.store %v, %y[%c0, %c0] : tensor<128x128xf32>, memref<128x128xf32>
  return
}
}
