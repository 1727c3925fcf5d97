// Every operation, through the custom form, the generic form and bytecode.
// RUN: dither-opt %s | FileCheck %s
// RUN: dither-opt %s | dither-opt | FileCheck %s
// RUN: dither-opt %s --mlir-print-op-generic | dither-opt | FileCheck %s
// RUN: dither-opt %s --emit-bytecode | dither-opt | FileCheck %s
// RUN: dither-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @programs
func.func @programs() -> (index, index, index, index, index, index) {
  // CHECK-NEXT: %{{.*}} = quant.program_id x{{$}}
  // CHECK-NEXT: %{{.*}} = quant.program_id y{{$}}
  // CHECK-NEXT: %{{.*}} = quant.program_id z{{$}}
  // CHECK-NEXT: %{{.*}} = quant.num_programs x{{$}}
  // CHECK-NEXT: %{{.*}} = quant.num_programs y{{$}}
  // CHECK-NEXT: %{{.*}} = quant.num_programs z{{$}}
  // GENERIC: "quant.program_id"() <{dim = #quant<dim x>}> : () -> index
  // GENERIC: "quant.num_programs"() <{dim = #quant<dim z>}> : () -> index
  %0 = quant.program_id x
  %1 = quant.program_id y
  %2 = quant.program_id z
  %3 = quant.num_programs x
  %4 = quant.num_programs y
  %5 = quant.num_programs z
  return %0, %1, %2, %3, %4, %5 : index, index, index, index, index, index
}

// CHECK-LABEL: func.func @memory
// CHECK-SAME: (%[[A:.*]]: memref<?x4096xbf16>, %[[B:.*]]: memref<?xf4E2M1FN, strided<[1], offset: ?>>, %[[C:.*]]: memref<f32>, %[[S:.*]]: memref<?x128xf8E4M3FN, strided<[?, 1]>>, %[[I:.*]]: index,
func.func @memory(%a: memref<?x4096xbf16>, %b: memref<?xf4E2M1FN, strided<[1], offset: ?>>, %c: memref<f32>,
                  %s: memref<?x128xf8E4M3FN, strided<[?, 1]>>, %i: index, %h: memref<?xi32>, %h0: memref<i64>, %h1: memref<i64>,
                  %n: tensor<16xi32>, %n0: tensor<i64>, %r: tensor<4x1xi32>, %x: memref<?x?x?x64xbf16>) {
  // CHECK-NEXT: %[[T2:.*]] = quant.load %[[A]][%[[I]], %[[I]]] : memref<?x4096xbf16> -> tensor<4x128xbf16>
  // CHECK-NEXT: %[[T1:.*]] = quant.load %[[B]][%[[I]]] {in_bounds} : memref<?xf4E2M1FN, strided<[1], offset: ?>> -> tensor<16xf4E2M1FN>
  // CHECK-NEXT: quant.prefetch %[[A]][%[[I]], %[[I]]] [4, 128] : memref<?x4096xbf16>
  // CHECK-NEXT: %[[T0:.*]] = quant.load %[[C]][] : memref<f32> -> tensor<f32>
  // CHECK-NEXT: %[[TS:.*]] = quant.load %[[S]][%[[I]], %[[I]]] : memref<?x128xf8E4M3FN, strided<[?, 1]>> -> tensor<128x4xf8E4M3FN>
  // GENERIC: "quant.load"(%{{.*}}, %{{.*}}) <{in_bounds}> : (memref<?xf4E2M1FN, strided<[1], offset: ?>>, index) -> tensor<16xf4E2M1FN>
  %t2 = quant.load %a[%i, %i] : memref<?x4096xbf16> -> tensor<4x128xbf16>
  %t1 = quant.load %b[%i] {in_bounds} : memref<?xf4E2M1FN, strided<[1], offset: ?>> -> tensor<16xf4E2M1FN>
  quant.prefetch %a[%i, %i] [4, 128] : memref<?x4096xbf16>
  %t0 = quant.load %c[] : memref<f32> -> tensor<f32>
  %ts = quant.load %s[%i, %i] : memref<?x128xf8E4M3FN, strided<[?, 1]>> -> tensor<128x4xf8E4M3FN>
  // CHECK-NEXT: quant.store %[[T2]], %[[A]][%[[I]], %[[I]]] : tensor<4x128xbf16>, memref<?x4096xbf16>
  // CHECK-NEXT: quant.store %[[T2]], %[[A]][%[[I]], %[[I]]] valid [%[[I]], %[[I]]] : tensor<4x128xbf16>, memref<?x4096xbf16>
  // CHECK-NEXT: quant.store %[[T1]], %[[B]][%[[I]]] {in_bounds} : tensor<16xf4E2M1FN>, memref<?xf4E2M1FN, strided<[1], offset: ?>>
  // CHECK-NEXT: quant.store %[[T1]], %[[B]][%[[I]]] {stream} : tensor<16xf4E2M1FN>, memref<?xf4E2M1FN, strided<[1], offset: ?>>
  // CHECK-NEXT: quant.store %[[TS]], %[[S]][%[[I]], %[[I]]] valid [%[[I]], %[[I]]] {in_bounds, scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<128x4xf8E4M3FN>, memref<?x128xf8E4M3FN, strided<[?, 1]>>
  // CHECK-NEXT: quant.store %[[T0]], %[[C]][] : tensor<f32>, memref<f32>
  // CHECK-NEXT: quant.atomic_max %[[T0]], %[[C]][] : tensor<f32>, memref<f32>
  // CHECK-NEXT: quant.atomic_add %{{.*}}, %{{.*}}[%[[I]]] : tensor<16xi32>, memref<?xi32>
  // CHECK-NEXT: quant.atomic_add %{{.*}}, %{{.*}}[] : tensor<i64>, memref<i64>
  // CHECK-NEXT: quant.fetch_add %[[I]], %{{.*}} : memref<i64>
  // CHECK-NEXT: %[[IN:.*]] = arith.cmpi
  // CHECK-NEXT: quant.likely %[[IN]]{{$}}
  // CHECK-NEXT: quant.first_part %[[IN]]{{$}}
  // CHECK-NEXT: quant.gather %[[A]][%{{.*}}, %[[I]]] : memref<?x4096xbf16>, tensor<4x1xi32> -> tensor<4x128xbf16>
  // CHECK-NEXT: quant.scatter %[[T2]], %[[A]][%{{.*}}, %[[I]]] : tensor<4x128xbf16>, memref<?x4096xbf16>, tensor<4x1xi32>
  // CHECK-NEXT: quant.view %{{.*}}[%[[I]], %[[I]]] dims [1, 3] : memref<?x?x?x64xbf16> -> memref<?x64xbf16, strided<[?, 1]>>
  // CHECK-NEXT: quant.view %{{.*}}[%[[I]], %[[I]], %[[I]]] dims [3] : memref<?x?x?x64xbf16> -> memref<?xbf16, strided<[1]>>
  // CHECK-NEXT: quant.view %{{.*}}[] dims [0, 1] : memref<?x4096xbf16> -> memref<?x4096xbf16, strided<[4096, 1]>>
  // CHECK-NEXT: quant.slice %[[A]][%[[I]]] count %[[I]] dim 0 : memref<?x4096xbf16> -> memref<?x4096xbf16, strided<[4096, 1]>>
  // CHECK-NEXT: quant.matrix %{{.*}}[%[[I]]] rows %[[I]] cols %[[I]] : memref<?xi32> -> memref<?x?xi32, strided<[?, 1]>>
  // CHECK-NEXT: quant.matrix %{{.*}}[%[[I]]] rows %[[I]] : memref<?xi32> -> memref<?x7xi32, strided<[7, 1]>>
  // CHECK-NEXT: quant.tile_id of 8
  // CHECK-NEXT: quant.store %{{.*}}, %{{.*}}[] {total = 1 : i64} : tensor<f32>, memref<f32>
  // CHECK-NEXT: quant.cluster_rank
  // CHECK-NEXT: quant.cluster_part %[[A]] run 512 blocks 4 : memref<?x4096xbf16> -> memref<?x1024xbf16, strided<[4096, 1]>>
  // CHECK-NEXT: quant.cluster_part %{{.*}} run 32 blocks 2 : memref<?xi32> -> memref<?xi32, strided<[1]>>
  // CHECK-NEXT: quant.scratch : memref<4x32xf4E2M1FN>
  // CHECK-NEXT: %[[P:.*]] = quant.scratch {pairs} : memref<4x64xf32>
  // CHECK-NEXT: quant.load %[[P]][%{{.*}}, %{{.*}}] : memref<4x64xf32> -> tensor<4x32xf32>
  // GENERIC: "quant.store"(%{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 2, 0>, scale_layout = #quant.scale_layout<linear>}>
  // GENERIC: "quant.store"(%{{.*}}) <{in_bounds, operandSegmentSizes = array<i32: 1, 1, 2, 2>, scale_layout = #quant.scale_layout<swizzle_128x4>}>
  quant.store %t2, %a[%i, %i] : tensor<4x128xbf16>, memref<?x4096xbf16>
  quant.store %t2, %a[%i, %i] valid [%i, %i] {scale_layout = #quant.scale_layout<linear>} : tensor<4x128xbf16>, memref<?x4096xbf16>
  quant.store %t1, %b[%i] {in_bounds} : tensor<16xf4E2M1FN>, memref<?xf4E2M1FN, strided<[1], offset: ?>>
  quant.store %t1, %b[%i] {stream} : tensor<16xf4E2M1FN>, memref<?xf4E2M1FN, strided<[1], offset: ?>>
  quant.store %ts, %s[%i, %i] valid [%i, %i] {scale_layout = #quant.scale_layout<swizzle_128x4>, in_bounds} : tensor<128x4xf8E4M3FN>, memref<?x128xf8E4M3FN, strided<[?, 1]>>
  quant.store %t0, %c[] : tensor<f32>, memref<f32>
  quant.atomic_max %t0, %c[] : tensor<f32>, memref<f32>
  quant.atomic_add %n, %h[%i] : tensor<16xi32>, memref<?xi32>
  quant.atomic_add %n0, %h0[] : tensor<i64>, memref<i64>
  %f0 = quant.fetch_add %i, %h1 : memref<i64>
  %in = arith.cmpi slt, %i, %f0 : index
  %likely = quant.likely %in
  %part = quant.first_part %in
  %tg = quant.gather %a[%r, %i] : memref<?x4096xbf16>, tensor<4x1xi32> -> tensor<4x128xbf16>
  quant.scatter %t2, %a[%r, %i] : tensor<4x128xbf16>, memref<?x4096xbf16>, tensor<4x1xi32>
  %v0 = quant.view %x[%i, %i] dims [1, 3] : memref<?x?x?x64xbf16> -> memref<?x64xbf16, strided<[?, 1]>>
  %v1 = quant.view %x[%i, %i, %i] dims [3] : memref<?x?x?x64xbf16> -> memref<?xbf16, strided<[1]>>
  %v2 = quant.view %a[] dims [0, 1] : memref<?x4096xbf16> -> memref<?x4096xbf16, strided<[4096, 1]>>
  %l0 = quant.slice %a[%i] count %i dim 0 : memref<?x4096xbf16> -> memref<?x4096xbf16, strided<[4096, 1]>>
  %m0 = quant.matrix %h[%i] rows %i cols %i : memref<?xi32> -> memref<?x?xi32, strided<[?, 1]>>
  %m1 = quant.matrix %h[%i] rows %i : memref<?xi32> -> memref<?x7xi32, strided<[7, 1]>>
  %ti = quant.tile_id of 8
  quant.store %t0, %c[] {total = 1 : i64} : tensor<f32>, memref<f32>
  %cr = quant.cluster_rank
  %c0 = quant.cluster_part %a run 512 blocks 4 : memref<?x4096xbf16> -> memref<?x1024xbf16, strided<[4096, 1]>>
  %c1 = quant.cluster_part %h run 32 blocks 2 : memref<?xi32> -> memref<?xi32, strided<[1]>>
  %s0 = quant.scratch : memref<4x32xf4E2M1FN>
  %s1 = quant.scratch {pairs} : memref<4x64xf32>
  %tp = quant.load %s1[%i, %i] : memref<4x64xf32> -> tensor<4x32xf32>
  return
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<4x1xf32>, %g: tensor<f32>, %f: f32, %i: i32, %b: i1, %d: tensor<?x8xbf16>) {
  // CHECK-NEXT: quant.broadcast %{{.*}} : tensor<4x1xf32> -> tensor<4x128xf32>
  // CHECK-NEXT: quant.broadcast %{{.*}} : tensor<f32> -> tensor<4x128xf32>
  // CHECK-NEXT: quant.broadcast %{{.*}} : f32 -> tensor<16xf32>
  // CHECK-NEXT: quant.broadcast %{{.*}} : i32 -> tensor<4x128xi32>
  // CHECK-NEXT: quant.broadcast %{{.*}} : i1 -> tensor<i1>
  // CHECK-NEXT: quant.reshape %{{.*}} : tensor<4x1xf32> -> tensor<4xf32>
  // CHECK-NEXT: quant.reshape %{{.*}} : tensor<f32> -> tensor<1x1xf32>
  // CHECK-NEXT: quant.reshape %{{.*}} : tensor<?x8xbf16> -> tensor<?x1x8xbf16>
  // CHECK-NEXT: quant.transpose %{{.*}} : tensor<4x1xf32> -> tensor<1x4xf32>
  // CHECK-NEXT: quant.transpose %{{.*}} : tensor<?x8xbf16> -> tensor<8x?xbf16>
  // CHECK-NEXT: quant.has_special %{{.*}} : tensor<4x128xf32>
  // CHECK-NEXT: quant.iota dim 1 : tensor<4x128xi32>
  // CHECK-NEXT: quant.iota dim 0 : tensor<16xi32>
  %0 = quant.broadcast %x : tensor<4x1xf32> -> tensor<4x128xf32>
  %1 = quant.broadcast %g : tensor<f32> -> tensor<4x128xf32>
  %2 = quant.broadcast %f : f32 -> tensor<16xf32>
  %3 = quant.broadcast %i : i32 -> tensor<4x128xi32>
  %4 = quant.broadcast %b : i1 -> tensor<i1>
  %5 = quant.reshape %x : tensor<4x1xf32> -> tensor<4xf32>
  %6 = quant.reshape %g : tensor<f32> -> tensor<1x1xf32>
  %7 = quant.reshape %d : tensor<?x8xbf16> -> tensor<?x1x8xbf16>
  %8 = quant.transpose %x : tensor<4x1xf32> -> tensor<1x4xf32>
  %9 = quant.transpose %d : tensor<?x8xbf16> -> tensor<8x?xbf16>
  %s = quant.has_special %1 : tensor<4x128xf32>
  %10 = quant.iota dim 1 : tensor<4x128xi32>
  %11 = quant.iota dim 0 : tensor<16xi32>
  return
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<4x128xf32>, %d: tensor<?x?xf32>, %c: tensor<4x16xf8E4M3FN>) {
  // CHECK-NEXT: quant.reduce sum %{{.*}} axis 1 : tensor<4x128xf32> -> tensor<4x1xf32>
  // CHECK-NEXT: quant.reduce max %{{.*}} axis 0 : tensor<4x128xf32> -> tensor<1x128xf32>
  // CHECK-NEXT: quant.reduce min %{{.*}} axis 1 : tensor<?x?xf32> -> tensor<?x1xf32>
  // CHECK-NEXT: quant.reduce amax %{{.*}} axis 1 {count = 100 : i64} : tensor<4x128xf32> -> tensor<4x1xf32>
  // CHECK-NEXT: quant.block_reduce amax %{{.*}} block [1, 16] : tensor<4x128xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: quant.block_reduce amax %{{.*}} block [1, 16] {amax_bits} : tensor<4x128xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: quant.block_reduce max %{{.*}} block [4, 1] : tensor<4x128xf32> -> tensor<1x128xf32>
  // CHECK-NEXT: quant.block_reduce min %{{.*}} block [2, 32] : tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK-NEXT: quant.block_broadcast %{{.*}} block [1, 32] : tensor<4x16xf8E4M3FN> -> tensor<4x512xf8E4M3FN>
  // CHECK-NEXT: quant.block_broadcast %{{.*}} block [16, 1] : tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK-NEXT: quant.hadamard %{{.*}} axis 1 size 16 : tensor<4x128xf32>
  // CHECK-NEXT: quant.hadamard %{{.*}} axis 0 size 64 : tensor<?x?xf32>
  // GENERIC: "quant.reduce"(%{{.*}}) <{axis = 1 : i64, chains = 0 : i64, count = 100 : i64, kind = #quant<reduce_kind amax>}>
  // GENERIC: "quant.block_reduce"(%{{.*}}) <{block = array<i64: 1, 16>, kind = #quant<reduce_kind amax>}>
  %0 = quant.reduce sum %x axis 1 : tensor<4x128xf32> -> tensor<4x1xf32>
  %1 = quant.reduce max %x axis 0 : tensor<4x128xf32> -> tensor<1x128xf32>
  %2 = quant.reduce min %d axis 1 : tensor<?x?xf32> -> tensor<?x1xf32>
  %3 = quant.reduce amax %x axis 1 {count = 100} : tensor<4x128xf32> -> tensor<4x1xf32>
  %4 = quant.block_reduce amax %x block [1, 16] : tensor<4x128xf32> -> tensor<4x8xf32>
  %a = quant.block_reduce amax %x block [1, 16] {amax_bits} : tensor<4x128xf32> -> tensor<4x8xf32>
  %5 = quant.block_reduce max %x block [4, 1] : tensor<4x128xf32> -> tensor<1x128xf32>
  %6 = quant.block_reduce min %d block [2, 32] : tensor<?x?xf32> -> tensor<?x?xf32>
  %7 = quant.block_broadcast %c block [1, 32] : tensor<4x16xf8E4M3FN> -> tensor<4x512xf8E4M3FN>
  %8 = quant.block_broadcast %d block [16, 1] : tensor<?x?xf32> -> tensor<?x?xf32>
  %9 = quant.hadamard %x axis 1 size 16 : tensor<4x128xf32>
  %10 = quant.hadamard %d axis 0 size 64 : tensor<?x?xf32>
  return
}

// CHECK-LABEL: func.func @conversions
func.func @conversions(%x: tensor<4x16xf32>, %q4: tensor<16xf4E2M1FN>, %q8: tensor<4x16xf8E4M3FN>, %q5: tensor<f8E5M2>, %e: tensor<?x4xf8E8M0FNU>) {
  // CHECK-NEXT: quant.encode %{{.*}} : tensor<4x16xf32> -> tensor<4x16xf4E2M1FN>
  // CHECK-NEXT: quant.encode %{{.*}} : tensor<4x16xf32> -> tensor<4x16xf8E4M3FN>
  // CHECK-NEXT: quant.encode %{{.*}} : tensor<4x16xf32> -> tensor<4x16xf8E5M2>
  // CHECK-NEXT: quant.encode %{{.*}} {mode = #quant.e8m0_mode<rceil>} : tensor<4x16xf32> -> tensor<4x16xf8E8M0FNU>
  // CHECK-NEXT: quant.encode %{{.*}} {mode = #quant.e8m0_mode<floor>} : tensor<4x16xf32> -> tensor<4x16xf8E8M0FNU>
  // CHECK-NEXT: quant.scale_encode %{{.*}}, %{{.*}} : tensor<4x16xf32> -> tensor<4x16xf4E2M1FN>
  // CHECK-NEXT: quant.scale_encode %{{.*}}, %{{.*}} {finite} : tensor<4x16xf32> -> tensor<4x16xf6E3M2FN>
  // CHECK-NEXT: quant.scale_encode %{{.*}}, %{{.*}} {bounded, finite} : tensor<4x16xf32> -> tensor<4x16xf8E5M2>
  // CHECK-NEXT: quant.decode %{{.*}} : tensor<16xf4E2M1FN> -> tensor<16xf32>
  // CHECK-NEXT: quant.decode %{{.*}} : tensor<4x16xf8E4M3FN> -> tensor<4x16xf32>
  // CHECK-NEXT: quant.decode %{{.*}} : tensor<f8E5M2> -> tensor<f32>
  // CHECK-NEXT: quant.decode %{{.*}} : tensor<?x4xf8E8M0FNU> -> tensor<?x4xf32>
  // CHECK-NEXT: quant.e8m0_inverse %{{.*}} : tensor<?x4xf8E8M0FNU> -> tensor<?x4xf32>
  %0 = quant.encode %x : tensor<4x16xf32> -> tensor<4x16xf4E2M1FN>
  %1 = quant.encode %x : tensor<4x16xf32> -> tensor<4x16xf8E4M3FN>
  %2 = quant.encode %x : tensor<4x16xf32> -> tensor<4x16xf8E5M2>
  %3 = quant.encode %x {mode = #quant.e8m0_mode<rceil>} : tensor<4x16xf32> -> tensor<4x16xf8E8M0FNU>
  %4 = quant.encode %x {mode = #quant.e8m0_mode<floor>} : tensor<4x16xf32> -> tensor<4x16xf8E8M0FNU>
  %s0 = quant.scale_encode %x, %x : tensor<4x16xf32> -> tensor<4x16xf4E2M1FN>
  %s1 = quant.scale_encode %x, %x {finite} : tensor<4x16xf32> -> tensor<4x16xf6E3M2FN>
  %s2 = quant.scale_encode %x, %x {finite, bounded} : tensor<4x16xf32> -> tensor<4x16xf8E5M2>
  %5 = quant.decode %q4 : tensor<16xf4E2M1FN> -> tensor<16xf32>
  %6 = quant.decode %q8 : tensor<4x16xf8E4M3FN> -> tensor<4x16xf32>
  %7 = quant.decode %q5 : tensor<f8E5M2> -> tensor<f32>
  %8 = quant.decode %e : tensor<?x4xf8E8M0FNU> -> tensor<?x4xf32>
  %9 = quant.e8m0_inverse %e : tensor<?x4xf8E8M0FNU> -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @layouts
func.func @layouts(%x: tensor<4x32xf32, #quant.layout<"(4,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)]">>) {
  // CHECK-NEXT: quant.convert_layout %{{.*}} : tensor<4x32xf32, #{{.*}}> -> tensor<4x32xf32, #{{.*}}>
  %0 = quant.convert_layout %x : tensor<4x32xf32, #quant.layout<"(4,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)]">> -> tensor<4x32xf32, #quant.layout<"(4,32) reg=[(0,1),(0,2)] lane=[(0,4),(0,8),(0,16),(1,0),(2,0)]">>
  // Results of inferred operations may carry a layout.
  // CHECK-NEXT: quant.reduce amax %{{.*}} axis 1 : tensor<4x32xf32, #{{.*}}> -> tensor<4x1xf32, #{{.*}}>
  %1 = quant.reduce amax %0 axis 1 : tensor<4x32xf32, #quant.layout<"(4,32) reg=[(0,1),(0,2)] lane=[(0,4),(0,8),(0,16),(1,0),(2,0)]">> -> tensor<4x1xf32, #quant.layout<"(4,1) lane=[(1,0),(2,0)]">>
  return
}

// CHECK-LABEL: func.func @scales
func.func @scales(%x: tensor<4x128xf32>, %h: tensor<64x?xbf16>, %g: tensor<f32>, %n: tensor<128xf16>, %s: tensor<100x9xf8E8M0FNU>, %u: tensor<?x?xf8E4M3FN>, %p: tensor<?xf32>, %r: tensor<64x1xf32>) {
  // CHECK-NEXT: %[[S4:.*]] = quant.block_scale %{{.*}}, %[[G:.*]] axis 1 format <nvfp4> : tensor<4x128xf32>, tensor<f32> -> tensor<4x8xf8E4M3FN>
  // CHECK-NEXT: %[[Q4:.*]] = quant.cast_fp4 %{{.*}}, %[[S4]], %[[G]] axis 1 format <nvfp4> : tensor<4x128xf32>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf4E2M1FN>
  // CHECK-NEXT: quant.dequantize %[[Q4]], %[[S4]], %[[G]] axis 1 format <nvfp4> : tensor<4x128xf4E2M1FN>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf32>
  // CHECK-NEXT: %[[S8:.*]] = quant.block_scale %{{.*}} axis 0 format <mxfp8_e4m3> : tensor<64x?xbf16> -> tensor<2x?xf8E8M0FNU>
  // CHECK-NEXT: %[[Q8:.*]] = quant.cast_fp8 %{{.*}}, %[[S8]] axis 0 format <mxfp8_e4m3> : tensor<64x?xbf16>, tensor<2x?xf8E8M0FNU> -> tensor<64x?xf8E4M3FN>
  // CHECK-NEXT: quant.dequantize %[[Q8]], %[[S8]] axis 0 format <mxfp8_e4m3> : tensor<64x?xf8E4M3FN>, tensor<2x?xf8E8M0FNU> -> tensor<64x?xf32>
  // CHECK-NEXT: quant.block_scale %{{.*}} axis 1 format <mxfp8_e5m2> : tensor<64x?xbf16> -> tensor<64x?xf8E8M0FNU>
  // CHECK-NEXT: quant.block_scale %{{.*}} axis 0 format <mxfp4> : tensor<128xf16> -> tensor<4xf8E8M0FNU>
  %s4 = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<4x128xf32>, tensor<f32> -> tensor<4x8xf8E4M3FN>
  %q4 = quant.cast_fp4 %x, %s4, %g axis 1 format <nvfp4> : tensor<4x128xf32>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf4E2M1FN>
  %d4 = quant.dequantize %q4, %s4, %g axis 1 format <nvfp4> : tensor<4x128xf4E2M1FN>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf32>
  %s8 = quant.block_scale %h axis 0 format <mxfp8_e4m3> : tensor<64x?xbf16> -> tensor<2x?xf8E8M0FNU>
  %q8 = quant.cast_fp8 %h, %s8 axis 0 format <mxfp8_e4m3> : tensor<64x?xbf16>, tensor<2x?xf8E8M0FNU> -> tensor<64x?xf8E4M3FN>
  %d8 = quant.dequantize %q8, %s8 axis 0 format <mxfp8_e4m3> : tensor<64x?xf8E4M3FN>, tensor<2x?xf8E8M0FNU> -> tensor<64x?xf32>
  %s5 = quant.block_scale %h axis 1 format <mxfp8_e5m2> : tensor<64x?xbf16> -> tensor<64x?xf8E8M0FNU>
  %s3 = quant.block_scale %n axis 0 format <mxfp4> : tensor<128xf16> -> tensor<4xf8E8M0FNU>
  // CHECK-NEXT: quant.rms_norm %{{.*}}, %{{.*}} {eps = 9.99999974E-6 : f32} : tensor<4x128xf32>, tensor<128xf16> -> tensor<4x128xf32>, tensor<4x1xf32>
  // CHECK-NEXT: quant.rms_norm %{{.*}}, %{{.*}} {count = 100 : i64, eps = 0.000000e+00 : f32, zero_centered_gamma} : tensor<4x128xf32>, tensor<128xf16> -> tensor<4x128xf32>, tensor<4x1xf32>
  // CHECK-NEXT: quant.rms_norm_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x128xf32>, tensor<4x128xf32>, tensor<128xf16>, tensor<4x1xf32> -> tensor<4x128xf32>, tensor<4x128xf32>
  // CHECK-NEXT: quant.rms_norm_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {zero_centered_gamma} : tensor<64x?xbf16>, tensor<64x?xf32>, tensor<?xf32>, tensor<64x1xf32> -> tensor<64x?xf32>, tensor<64x?xf32>
  // CHECK-NEXT: quant.layer_norm_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {count = 100 : i64, zero_centered_gamma} : tensor<4x128xf32>, tensor<4x128xf32>, tensor<128xf16>, tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x128xf32>, tensor<4x128xf32>
  // CHECK-NEXT: quant.swizzle_scales %{{.*}} : tensor<100x9xf8E8M0FNU> -> tensor<128x12xf8E8M0FNU>
  // CHECK-NEXT: quant.swizzle_scales %{{.*}} : tensor<?x?xf8E4M3FN> -> tensor<?x?xf8E4M3FN>
  // GENERIC: "quant.rms_norm"(%{{.*}}) <{count = 100 : i64, eps = 0.000000e+00 : f32, zero_centered_gamma}>
  // GENERIC: "quant.layer_norm_backward"(%{{.*}}) <{count = 100 : i64, zero_centered_gamma}>
  %y:2 = quant.rms_norm %x, %n {eps = 1.0e-5 : f32} : tensor<4x128xf32>, tensor<128xf16> -> tensor<4x128xf32>, tensor<4x1xf32>
  %z:2 = quant.rms_norm %x, %n {eps = 0.0 : f32, zero_centered_gamma, count = 100} : tensor<4x128xf32>, tensor<128xf16> -> tensor<4x128xf32>, tensor<4x1xf32>
  %b:2 = quant.rms_norm_backward %x, %x, %n, %y#1 : tensor<4x128xf32>, tensor<4x128xf32>, tensor<128xf16>, tensor<4x1xf32> -> tensor<4x128xf32>, tensor<4x128xf32>
  %c:2 = quant.rms_norm_backward %h, %d8, %p, %r {zero_centered_gamma} : tensor<64x?xbf16>, tensor<64x?xf32>, tensor<?xf32>, tensor<64x1xf32> -> tensor<64x?xf32>, tensor<64x?xf32>
  %e:2 = quant.layer_norm_backward %x, %x, %n, %y#1, %y#1 {zero_centered_gamma, count = 100} : tensor<4x128xf32>, tensor<4x128xf32>, tensor<128xf16>, tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x128xf32>, tensor<4x128xf32>
  %w = quant.swizzle_scales %s : tensor<100x9xf8E8M0FNU> -> tensor<128x12xf8E8M0FNU>
  %v = quant.swizzle_scales %u : tensor<?x?xf8E4M3FN> -> tensor<?x?xf8E4M3FN>
  return
}

// CHECK-LABEL: func.func @words
func.func @words(%g: vector<16xf32>, %c: vector<8x16xf32>, %w: vector<2xi32>, %b: vector<8x16xi32>, %f: vector<4xf32>) {
  // CHECK-NEXT: quant.encode_words %{{.*}} {elem = f4E2M1FN, group = 8 : i64} : vector<16xf32> -> vector<2xi32>
  // CHECK-NEXT: quant.encode_words %{{.*}} {elem = f8E5M2, group = 4 : i64} : vector<8x16xf32> -> vector<2x16xi32>
  // CHECK-NEXT: quant.encode_words %{{.*}} {elem = f16, group = 2 : i64} : vector<8x16xf32> -> vector<4x16xi32>
  // CHECK-NEXT: quant.encode_words %{{.*}} {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<floor>} : vector<16xf32> -> vector<16xi32>
  // CHECK-NEXT: quant.decode_words %{{.*}} {elem = bf16, group = 2 : i64} : vector<8x16xi32> -> vector<16x16xf32>
  // CHECK-NEXT: quant.decode_words %{{.*}} {elem = f8E4M3FN, group = 4 : i64} : vector<2xi32> -> vector<8xf32>
  // CHECK-NEXT: quant.e8m0_inverse_words %{{.*}} {group = 4 : i64} : vector<2xi32> -> vector<8xf32>
  // CHECK-NEXT: quant.scale_encode_words %{{.*}}, %{{.*}} {elem = f8E4M3FN} : vector<8x16xf32>, vector<8x16xf32> -> vector<4x16xi32>
  // CHECK-NEXT: quant.scale_encode_words %{{.*}}, %{{.*}} {bounded, elem = f4E2M1FN} : vector<2xi32>, vector<4xf32> -> vector<2xi32>
  // CHECK-NEXT: quant.scale_encode_words %{{.*}}, %{{.*}} {elem = f4E2M1FN, in_order} : vector<8x16xf32>, vector<8x16xf32> -> vector<1x16xi32>
  %0 = quant.encode_words %g {elem = f4E2M1FN, group = 8} : vector<16xf32> -> vector<2xi32>
  %1 = quant.encode_words %c {elem = f8E5M2, group = 4} : vector<8x16xf32> -> vector<2x16xi32>
  %2 = quant.encode_words %c {elem = f16, group = 2} : vector<8x16xf32> -> vector<4x16xi32>
  %3 = quant.encode_words %g {elem = f8E8M0FNU, group = 1, mode = #quant.e8m0_mode<floor>} : vector<16xf32> -> vector<16xi32>
  %4 = quant.decode_words %b {elem = bf16, group = 2} : vector<8x16xi32> -> vector<16x16xf32>
  %5 = quant.decode_words %w {elem = f8E4M3FN, group = 4} : vector<2xi32> -> vector<8xf32>
  %6 = quant.e8m0_inverse_words %w {group = 4} : vector<2xi32> -> vector<8xf32>
  %7 = quant.scale_encode_words %c, %c {elem = f8E4M3FN} : vector<8x16xf32>, vector<8x16xf32> -> vector<4x16xi32>
  %8 = quant.scale_encode_words %w, %f {elem = f4E2M1FN, bounded} : vector<2xi32>, vector<4xf32> -> vector<2xi32>
  %9 = quant.scale_encode_words %c, %c {elem = f4E2M1FN, in_order} : vector<8x16xf32>, vector<8x16xf32> -> vector<1x16xi32>
  return
}

// CHECK-LABEL: func.func @stochastic
func.func @stochastic(%x: tensor<4x64xf32>, %b: tensor<4x64xbf16>, %r: tensor<4x64xi32>, %e: tensor<4x2xf8E8M0FNU>, %n: tensor<4x4xf8E4M3FN>, %g: tensor<f32>) {
  // CHECK-NEXT: quant.stochastic_round %{{.*}}, %{{.*}} {elem = f8E4M3FN} : tensor<4x64xf32>, tensor<4x64xi32>
  // CHECK-NEXT: quant.scale %{{.*}}, %{{.*}} axis 1 format <mxfp8_e4m3> : tensor<4x64xbf16>, tensor<4x2xf8E8M0FNU> -> tensor<4x64xf32>
  // CHECK-NEXT: quant.scale %{{.*}}, %{{.*}}, %{{.*}} axis 1 format <nvfp4> : tensor<4x64xf32>, tensor<4x4xf8E4M3FN>, tensor<f32> -> tensor<4x64xf32>
  %0 = quant.stochastic_round %x, %r {elem = f8E4M3FN} : tensor<4x64xf32>, tensor<4x64xi32>
  %1 = quant.scale %b, %e axis 1 format <mxfp8_e4m3> : tensor<4x64xbf16>, tensor<4x2xf8E8M0FNU> -> tensor<4x64xf32>
  %2 = quant.scale %x, %n, %g axis 1 format <nvfp4> : tensor<4x64xf32>, tensor<4x4xf8E4M3FN>, tensor<f32> -> tensor<4x64xf32>
  return
}
