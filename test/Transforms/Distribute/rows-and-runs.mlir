// RUN: dither-opt %s --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s

module attributes {quant.target = "sm_90a"} {
  // Sums and differences of registers cost no shuffles; those of lanes one each, and a multiply-add by 1 or -1.
  // Sixteen elements are four registers of four lanes: two steps each.
  // CHECK-LABEL: func.func @hadamard(
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK-DAG: %[[MINUS:.*]] = arith.constant -1.000000e+00 : f32
  // CHECK-COUNT-2: arith.addf
  // CHECK: arith.addf
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: arith.subf
  // CHECK-NEXT: arith.subf
  // CHECK-NOT: arith.addf
  // CHECK: %[[SIGN:.*]] = arith.select %{{.*}}, %[[MINUS]], %[[ONE]] : f32
  // CHECK-COUNT-2: nvvm.shfl.sync bfly
  // CHECK: math.fma %{{.*}}, %[[SIGN]], %{{.*}} : f32
  // CHECK-NEXT: math.fma %{{.*}}, %[[SIGN]], %{{.*}} : f32
  // CHECK-COUNT-6: nvvm.shfl.sync bfly
  // CHECK-NOT: nvvm.shfl
  func.func @hadamard(%x: memref<1x128xf32>, %y: memref<1x128xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf32> -> tensor<1x128xf32>
    %h = quant.hadamard %t axis 1 size 16 : tensor<1x128xf32>
    quant.store %h, %y[%c0, %c0] {in_bounds} : tensor<1x128xf32>, memref<1x128xf32>
    return
  }

  // Sums of blocks have the order of places. A lane that has registers for them only of one block adds its four
  // elements to the sum of the lane before it: four sums are handed on.
  // CHECK-LABEL: func.func @block_sum(
  // CHECK-COUNT-3: arith.addf
  // CHECK: nvvm.shfl.sync idx
  // CHECK-COUNT-4: arith.addf
  // CHECK: nvvm.shfl.sync idx
  // CHECK-COUNT-4: arith.addf
  // CHECK: nvvm.shfl.sync idx
  // CHECK-COUNT-4: arith.addf
  // CHECK: nvvm.shfl.sync idx
  // CHECK-NOT: nvvm.shfl
  // CHECK-NOT: arith.addf
  // CHECK: return
  func.func @block_sum(%x: memref<1x128xf32>, %y: memref<1x8xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf32> -> tensor<1x128xf32>
    %s = quant.block_reduce sum %t block [1, 16] : tensor<1x128xf32> -> tensor<1x8xf32>
    quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<1x8xf32>, memref<1x8xf32>
    return
  }

  // Where lanes have registers of four blocks, they exchange them, and each adds up a block of its own.
  // CHECK-LABEL: func.func @blocks_sum(
  // CHECK-COUNT-16: nvvm.shfl.sync bfly
  // CHECK-COUNT-15: arith.addf
  // CHECK-NOT: arith.addf
  // CHECK: return
  func.func @blocks_sum(%x: memref<4x128xf32>, %y: memref<4x8xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x128xf32> -> tensor<4x128xf32>
    %s = quant.block_reduce sum %t block [1, 16] : tensor<4x128xf32> -> tensor<4x8xf32>
    quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<4x8xf32>, memref<4x8xf32>
    return
  }

  // Halves are bits from the highest down: two shuffles, then two sums of registers.
  // CHECK-LABEL: func.func @block_halves(
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c2_i32,
  // CHECK-COUNT-7: nvvm.shfl.sync bfly
  // CHECK-NOT: nvvm.shfl
  func.func @block_halves(%x: memref<1x128xf32>, %y: memref<1x8xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf32> -> tensor<1x128xf32>
    %s = quant.block_reduce sum %t block [1, 16] {halves} : tensor<1x128xf32> -> tensor<1x8xf32>
    quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<1x8xf32>, memref<1x8xf32>
    return
  }

  // A number is read by all threads, from the one place that there is.
  // CHECK-LABEL: func.func @number(
  // CHECK: %[[N:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // CHECK: arith.cmpi ne, %[[N]], %{{.*}} : i32
  func.func @number(%n: memref<i32>, %x: memref<1x128xf32>, %y: memref<1x128xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %c0_i32 = arith.constant 0 : i32
    %i = quant.load_scalar %n : memref<i32> -> i32
    %p = arith.cmpi ne, %i, %c0_i32 : i32
    scf.if %p {
      %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf32> -> tensor<1x128xf32>
      quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x128xf32>, memref<1x128xf32>
    }
    return
  }

  // A row that the memref does not have is not read: one comparison of unsigned numbers.
  // CHECK-LABEL: func.func @gather(
  // CHECK-SAME: %[[X:[^:]*]]: !llvm.ptr<1>
  // CHECK-SAME: %[[SIZE:[^:]*]]: i64
  // CHECK: %[[ROW:.*]] = arith.extsi %{{.*}} : i32 to i64
  // CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[ROW]], %[[SIZE]] : i64
  // CHECK: %[[INSIDE:.*]] = arith.andi %[[EXISTS]], %{{.*}} : i1
  // CHECK: scf.if %[[INSIDE]]
  // CHECK: arith.muli %[[ROW]], %{{.*}} : i64
  // CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
  func.func @gather(%x: memref<?x32xf32>, %i: memref<1x1xi32>, %y: memref<1x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %rows = quant.load %i[%c0, %c0] {in_bounds} : memref<1x1xi32> -> tensor<1x1xi32>
    %t = quant.gather %x[%rows, %c0] : memref<?x32xf32>, tensor<1x1xi32> -> tensor<1x32xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
    return
  }

  // A view outside its memref begins where that does, and has no rows.
  // CHECK-LABEL: func.func @view(
  // CHECK-SAME: %[[X:[^:]*]]: !llvm.ptr<1> {{{[^}]*}}}, %[[BATCHES:[^:]*]]: i64, %[[ROWS:[^:]*]]: i64, %{{[^:]*}}: i64, %[[B:[^:]*]]: i64
  // CHECK: %[[IN:.*]] = arith.cmpi ult, %[[B]], %[[BATCHES]] : i64
  // CHECK: %[[START:.*]] = arith.select %[[IN]], %{{.*}}, %c0_i64 : i64
  // CHECK: llvm.getelementptr %[[X]]
  // CHECK: arith.select %[[IN]], %[[ROWS]], %c0_i64 : i64
  func.func @view(%x: memref<?x?x32xf32>, %b: index, %y: memref<1x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %v = quant.view %x[%b] dims [1, 2] : memref<?x?x32xf32> -> memref<?x32xf32, strided<[32, 1]>>
    %t = quant.load %v[%c0, %c0] : memref<?x32xf32, strided<[32, 1]>> -> tensor<1x32xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
    return
  }

  // A slice ends where its memref does, and begins in it. An end past the largest number is one past the memref's.
  // CHECK-LABEL: func.func @slice(
  // CHECK-SAME: %[[X:[^:]*]]: !llvm.ptr<1> {{{[^}]*}}}, %[[ROWS:[^:]*]]: i64, %[[S:[^:]*]]: i64, %[[N:[^:]*]]: i64
  // CHECK: %[[SUM:.*]] = arith.addi %[[S]], %[[N]] : i64
  // CHECK: %[[WRAPS:.*]] = arith.cmpi slt, %[[SUM]], %[[S]] : i64
  // CHECK: %[[PAST:.*]] = arith.select %[[WRAPS]], %[[ROWS]], %[[SUM]] : i64
  // CHECK: %[[NONE:.*]] = arith.cmpi sle, %[[N]], %c0_i64 : i64
  // CHECK: %[[END:.*]] = arith.select %[[NONE]], %[[S]], %[[PAST]] : i64
  // CHECK: %[[MOST:.*]] = arith.minsi %[[S]], %[[ROWS]] : i64
  // CHECK: %[[START:.*]] = arith.maxsi %[[MOST]], %c0_i64 : i64
  // CHECK: %[[HERE:.*]] = arith.minsi %[[END]], %[[ROWS]] : i64
  // CHECK: %[[LAST:.*]] = arith.maxsi %[[HERE]], %[[START]] : i64
  // CHECK: arith.subi %[[LAST]], %[[START]] : i64
  // CHECK: llvm.getelementptr %[[X]]
  func.func @slice(%x: memref<?x32xf32>, %s: index, %n: index, %y: memref<1x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %v = quant.slice %x[%s] count %n dim 0 : memref<?x32xf32> -> memref<?x32xf32, strided<[32, 1]>>
    %t = quant.load %v[%c0, %c0] : memref<?x32xf32, strided<[32, 1]>> -> tensor<1x32xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
    return
  }

  // A matrix of which the memref does not have all has no rows.
  // CHECK-LABEL: func.func @matrix(
  // CHECK-SAME: %[[X:[^:]*]]: !llvm.ptr<1> {{{[^}]*}}}, %[[SIZE:[^:]*]]: i64, %[[S:[^:]*]]: i64
  // CHECK: %[[ROOM:.*]] = arith.subi %[[SIZE]], %[[S]] : i64
  // CHECK-DAG: %[[NOT:.*]] = arith.cmpi sge, %[[S]], %c0_i64 : i64
  // CHECK-DAG: %[[FITS:.*]] = arith.cmpi sle, %{{.*}}, %[[ROOM]] : i64
  // CHECK: %[[IN:.*]] = arith.andi %[[NOT]], %[[FITS]] : i1
  // CHECK: arith.select %[[IN]], %[[S]], %c0_i64 : i64
  func.func @matrix(%x: memref<?xf32>, %s: index, %n: index, %y: memref<1x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %v = quant.matrix %x[%s] rows %n : memref<?xf32> -> memref<?x32xf32, strided<[32, 1]>>
    %t = quant.load %v[%c0, %c0] : memref<?x32xf32, strided<[32, 1]>> -> tensor<1x32xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
    return
  }

  // A number that is not there is 0.
  // CHECK-LABEL: func.func @number_at(
  // CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : i64
  // CHECK: scf.if %[[IN]] -> (i32)
  // CHECK-NEXT: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  func.func @number_at(%n: memref<?xi32>, %i: index, %x: memref<1x128xf32>, %y: memref<1x128xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %c0_i32 = arith.constant 0 : i32
    %v = quant.load_scalar %n[%i] : memref<?xi32> -> i32
    %p = arith.cmpi ne, %v, %c0_i32 : i32
    scf.if %p {
      %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf32> -> tensor<1x128xf32>
      quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x128xf32>, memref<1x128xf32>
    }
    return
  }
}
