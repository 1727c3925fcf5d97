// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments=fragment=1,256 | FileCheck %s
// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments=fragment=1,256 > %t.once
// RUN: dither-opt %t.once --split-input-file --dither-tile-to-fragments=fragment=1,256 | diff %t.once -

// One loop over the rows, one over the columns inside it; values that do not
// depend on the columns stay between them.

// CHECK-LABEL: func.func @scale_rows
// CHECK: scf.for %[[R:.*]] = %{{.*}} to
// CHECK:   %[[F:.*]] = quant.load %{{.*}} : memref<64x1xf32> -> tensor<1x1xf32>
// CHECK:   scf.for %[[C:.*]] = %{{.*}} to
// CHECK:     quant.load %{{.*}}[%{{.*}}, %[[C]]] : memref<64x1024xf32> -> tensor<1x256xf32>
// CHECK:     quant.broadcast %[[F]]
// CHECK:     arith.mulf {{.*}} : tensor<1x256xf32>
// CHECK:     quant.store {{.*}} : tensor<1x256xf32>, memref<64x1024xf32>
// CHECK-NOT: tensor<4x
func.func @scale_rows(%x: memref<64x1024xf32>, %f: memref<64x1xf32>,
                      %y: memref<64x1024xf32>) attributes {quant.kernel} {
  %pid = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %pid, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %s = quant.load %f[%r, %c0] : memref<64x1xf32> -> tensor<4x1xf32>
  %b = quant.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>
  %p = arith.mulf %t, %b : tensor<4x1024xf32>
  quant.store %p, %y[%r, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}
