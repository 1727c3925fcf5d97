// RUN: dither-opt %s --dither-assign-layouts | FileCheck %s
// What carries layouts is left alone.
// RUN: dither-opt %s --dither-assign-layouts > %t.once
// RUN: dither-opt %t.once --dither-assign-layouts | diff %t.once -

// No target: the CPU, one warp of 16 lanes along the columns. Constants follow
// their users.
// CHECK-LABEL: func.func @elementwise
// CHECK: %[[T:.*]] = quant.load {{.*}} -> tensor<1x256xf32, #quant.layout<"(1,256) reg=[(0,16),(0,32),(0,64),(0,128)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<1x256xf32, #quant.layout<"(1,256) reg=[(0,16),(0,32),(0,64),(0,128)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: arith.mulf %[[T]], %[[C]] : tensor<1x256xf32, #quant.layout<"(1,256) reg=[(0,16),(0,32),(0,64),(0,128)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK-NOT: quant.convert_layout
func.func @elementwise(%x: memref<4x256xf32>, %y: memref<4x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %m = arith.mulf %t, %c : tensor<1x256xf32>
  quant.store %m, %y[%c0, %c0] : tensor<1x256xf32>, memref<4x256xf32>
  return
}

// Narrow elements: two neighbours to a lane, so that the codes of a lane are
// whole bytes.
// CHECK-LABEL: func.func @narrow
// CHECK: quant.load {{.*}} -> tensor<1x256xbf16, #quant.layout<"(1,256) reg=[(0,1),(0,32),(0,64),(0,128)] lane=[(0,2),(0,4),(0,8),(0,16)] warp=[]">>
// CHECK-NOT: quant.convert_layout
func.func @narrow(%x: memref<4x256xbf16>, %y: memref<4x256xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x256xbf16> -> tensor<1x256xbf16>
  %f = arith.extf %t : tensor<1x256xbf16> to tensor<1x256xf32>
  %q = quant.encode %f : tensor<1x256xf32> -> tensor<1x256xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf4E2M1FN>, memref<4x256xf4E2M1FN>
  return
}

// Extents that are no power of two repeat a smaller fragment.
// CHECK-LABEL: func.func @odd
// CHECK: #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[] rep (3,6)">
func.func @odd(%x: memref<4x96xf32>, %y: memref<4x96xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x96xf32> -> tensor<3x96xf32>
  quant.store %t, %y[%c0, %c0] : tensor<3x96xf32>, memref<4x96xf32>
  return
}

// The maxima of 16 blocks end up one to a lane, in order, as the store wants
// them; the elements want all of them in every lane.
// CHECK-LABEL: func.func @blockscale
// CHECK: quant.block_reduce {{.*}} -> tensor<1x16xf32, #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: %[[E:.*]] = quant.encode
// CHECK: %[[I:.*]] = quant.e8m0_inverse %[[E]]
// CHECK: %[[B:.*]] = quant.convert_layout %[[I]] : {{.*}} -> tensor<1x16xf32, #quant.layout<"(1,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(0,0),(0,0),(0,0),(0,0)] warp=[]">>
// CHECK: quant.block_broadcast %[[B]]
// CHECK: quant.store %[[E]], %arg2
func.func @blockscale(%x: memref<4x512xbf16>, %y: memref<4x512xf8E4M3FN>, %z: memref<4x16xf8E8M0FNU>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x512xbf16> -> tensor<1x512xbf16>
  %f = arith.extf %t : tensor<1x512xbf16> to tensor<1x512xf32>
  %a = quant.block_reduce amax %f block [1, 32] : tensor<1x512xf32> -> tensor<1x16xf32>
  %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<1x16xf32> -> tensor<1x16xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<1x16xf8E8M0FNU> -> tensor<1x16xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<1x16xf32> -> tensor<1x512xf32>
  %m = arith.mulf %f, %b : tensor<1x512xf32>
  %q = quant.encode %m : tensor<1x512xf32> -> tensor<1x512xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x512xf8E4M3FN>, memref<4x512xf8E4M3FN>
  quant.store %e, %z[%c0, %c0] : tensor<1x16xf8E8M0FNU>, memref<4x16xf8E8M0FNU>
  return
}

// A row of weights is loaded in the layout that its broadcast needs.
// CHECK-LABEL: func.func @rowvec
// CHECK: quant.load %arg1[%c0] : memref<256xbf16> -> tensor<256xbf16, #quant.layout<"(256) reg=[(16),(32),(64),(128)] lane=[(1),(2),(4),(8)] warp=[]">>
// CHECK: quant.reshape {{.*}} -> tensor<1x256xf32, #quant.layout<"(1,256) reg=[(0,16),(0,32),(0,64),(0,128)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: quant.broadcast {{.*}} -> tensor<4x256xf32, #quant.layout<"(4,256) reg=[(0,16),(0,32),(0,64),(0,128),(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK-NOT: quant.convert_layout
func.func @rowvec(%x: memref<4x256xf32>, %w: memref<256xbf16>, %s: memref<4x1xf32>, %y: memref<4x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<4x256xf32>
  %v = quant.load %w[%c0] : memref<256xbf16> -> tensor<256xbf16>
  %vf = arith.extf %v : tensor<256xbf16> to tensor<256xf32>
  %r = quant.reshape %vf : tensor<256xf32> -> tensor<1x256xf32>
  %b = quant.broadcast %r : tensor<1x256xf32> -> tensor<4x256xf32>
  %m = arith.mulf %t, %b : tensor<4x256xf32>
  quant.store %m, %y[%c0, %c0] : tensor<4x256xf32>, memref<4x256xf32>
  return
}

// A transpose renames the dimensions; 16 neighbours in a lane are wide enough.
// CHECK-LABEL: func.func @transposed
// CHECK: quant.transpose {{.*}} -> tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">>
// CHECK-NOT: quant.convert_layout
func.func @transposed(%x: memref<16x16xf32>, %y: memref<16x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<16x16xf32> -> tensor<16x16xf32>
  %u = quant.transpose %t : tensor<16x16xf32> -> tensor<16x16xf32>
  quant.store %u, %y[%c0, %c0] : tensor<16x16xf32>, memref<16x16xf32>
  return
}

// Two layouts meet: each gets its own constant, the second operand moves.
// CHECK-LABEL: func.func @meet
// CHECK: %[[U:.*]] = quant.transpose
// CHECK-DAG: %[[CU:.*]] = arith.constant dense<1.000000e+00> : tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">>
// CHECK-DAG: %[[CT:.*]] = arith.constant dense<1.000000e+00> : tensor<16x16xf32, #quant.layout<"(16,16) reg=[(1,0),(2,0),(4,0),(8,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: %[[A:.*]] = arith.addf %{{.*}}, %[[CT]]
// CHECK: %[[B:.*]] = arith.addf %[[U]], %[[CU]]
// CHECK: %[[V:.*]] = quant.convert_layout %[[B]] : tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">> -> tensor<16x16xf32, #quant.layout<"(16,16) reg=[(1,0),(2,0),(4,0),(8,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: arith.mulf %[[A]], %[[V]]
func.func @meet(%x: memref<16x16xf32>, %y: memref<16x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<16x16xf32> -> tensor<16x16xf32>
  %u = quant.transpose %t : tensor<16x16xf32> -> tensor<16x16xf32>
  %c = arith.constant dense<1.0> : tensor<16x16xf32>
  %a = arith.addf %t, %c : tensor<16x16xf32>
  %b = arith.addf %u, %c : tensor<16x16xf32>
  %d = arith.mulf %a, %b : tensor<16x16xf32>
  quant.store %d, %y[%c0, %c0] : tensor<16x16xf32>, memref<16x16xf32>
  return
}

// A loop carries its tiles in one layout.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for {{.*}} -> (tensor<1x16xf32, #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>) {
// CHECK: scf.yield {{.*}} : tensor<1x16xf32, #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
func.func @loop(%x: memref<16x16xf32>, %y: memref<1x16xf32>, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant dense<0.0> : tensor<1x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (tensor<1x16xf32>) {
    %t = quant.load %x[%i, %c0] : memref<16x16xf32> -> tensor<1x16xf32>
    %s = arith.addf %a, %t : tensor<1x16xf32>
    scf.yield %s : tensor<1x16xf32>
  }
  quant.store %r, %y[%c0, %c0] : tensor<1x16xf32>, memref<1x16xf32>
  return
}

// Both sides of a branch yield the layout of the first.
// CHECK-LABEL: func.func @branch
// CHECK: %[[T:.*]] = quant.load
// CHECK: %[[V:.*]] = quant.convert_layout %[[T]]
// CHECK: scf.if %arg2 -> (tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">>) {
// CHECK: } else {
// CHECK: scf.yield %[[V]] : tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(1,0),(2,0),(4,0),(8,0)] warp=[]">>
func.func @branch(%x: memref<16x16xf32>, %y: memref<16x16xf32>, %p: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<16x16xf32> -> tensor<16x16xf32>
  %r = scf.if %p -> (tensor<16x16xf32>) {
    %u = quant.transpose %t : tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %u : tensor<16x16xf32>
  } else {
    scf.yield %t : tensor<16x16xf32>
  }
  quant.store %r, %y[%c0, %c0] : tensor<16x16xf32>, memref<16x16xf32>
  return
}

// A sum over rows has all of them, padding included, in one fragment.
// CHECK-LABEL: func.func @rowsum48
// CHECK: quant.convert_layout {{.*}} rep (24,1)">> -> tensor<48x8xf32, #quant.layout<"(64,8) reg=[(2,0),(4,0),(8,0),(16,0),(32,0)] lane=[(0,1),(0,2),(0,4),(1,0)] warp=[]">>
// CHECK: quant.reduce sum
func.func @rowsum48(%x: memref<48x8xf32>, %y: memref<1x8xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<48x8xf32> -> tensor<48x8xf32>
  %s = quant.reduce sum %t axis 0 : tensor<48x8xf32> -> tensor<1x8xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x8xf32>, memref<1x8xf32>
  return
}

// So does every block. Spreading the maxima over a fragment of two rows, eight
// of its repeats share one.
// CHECK-LABEL: func.func @block48
// CHECK: quant.block_reduce {{.*}} #quant.layout<"(16,8) reg=[(2,0),(4,0),(8,0)] lane=[(0,1),(0,2),(0,4),(1,0)] warp=[] rep (3,1)">> -> tensor<3x8xf32, #quant.layout<"(1,8) reg=[] lane=[(0,1),(0,2),(0,4),(0,0)] warp=[] rep (3,1)">>
// CHECK-NEXT: quant.block_broadcast {{.*}} : tensor<3x8xf32, #quant.layout<"(1,8) reg=[] lane=[(0,1),(0,2),(0,4),(0,0)] warp=[] rep (3,1)">> -> tensor<48x8xf32, #quant.layout<"(2,8) reg=[] lane=[(0,1),(0,2),(0,4),(1,0)] warp=[] rep (24,1)">>
func.func @block48(%x: memref<48x8xf32>, %y: memref<48x8xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<48x8xf32> -> tensor<48x8xf32>
  %s = quant.block_reduce amax %t block [16, 1] : tensor<48x8xf32> -> tensor<3x8xf32>
  %b = quant.block_broadcast %s block [16, 1] : tensor<3x8xf32> -> tensor<48x8xf32>
  %m = arith.mulf %t, %b : tensor<48x8xf32>
  quant.store %m, %y[%c0, %c0] : tensor<48x8xf32>, memref<48x8xf32>
  return
}

// It must not touch functions that are no kernels.
// CHECK-LABEL: func.func @no_kernel
// CHECK: quant.load {{.*}} -> tensor<1x256xf32>
func.func @no_kernel(%x: memref<4x256xf32>, %y: memref<4x256xf32>) {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  quant.store %t, %y[%c0, %c0] : tensor<1x256xf32>, memref<4x256xf32>
  return
}

// Nor kernels in which a value has a layout already.
// CHECK-LABEL: func.func @given
// CHECK: %[[T:.*]] = quant.load {{.*}} -> tensor<1x16xf32, #quant.layout<"(1,16) reg=[] lane=[(0,8),(0,4),(0,2),(0,1)] warp=[]">>
// CHECK-NEXT: quant.store %[[T]]
func.func @given(%x: memref<4x16xf32>, %y: memref<4x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xf32> -> tensor<1x16xf32, #quant.layout<"(1,16) reg=[] lane=[(0,8),(0,4),(0,2),(0,1)] warp=[]">>
  quant.store %t, %y[%c0, %c0] : tensor<1x16xf32, #quant.layout<"(1,16) reg=[] lane=[(0,8),(0,4),(0,2),(0,1)] warp=[]">>, memref<4x16xf32>
  return
}

// Rows that an earlier loop left are loaded as rows where they are turned, few
// as they may be.
// CHECK-LABEL: func.func @turned
// CHECK: quant.load {{.*}} -> tensor<8x32xf32, #quant.layout<"(8,32) reg=[(0,16),(1,0),(2,0),(4,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: quant.transpose
func.func @turned(%y: memref<32x8xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = quant.scratch : memref<8x32xf32>
  %t = quant.load %s[%c0, %c0] : memref<8x32xf32> -> tensor<8x32xf32>
  %m = arith.mulf %t, %t : tensor<8x32xf32>
  %u = quant.transpose %m : tensor<8x32xf32> -> tensor<32x8xf32>
  quant.store %u, %y[%c0, %c0] : tensor<32x8xf32>, memref<32x8xf32>
  return
}

// Others are loaded as their user has them.
// CHECK-LABEL: func.func @follows
// CHECK: %[[U:.*]] = quant.transpose {{.*}} -> tensor<8x32xf32, [[LAYOUT:#quant.layout<".*">]]>
// CHECK: %[[T:.*]] = quant.load %{{[0-9]}}[{{.*}} -> tensor<8x32xf32, [[LAYOUT]]>
// CHECK: arith.addf %[[U]], %[[T]]
func.func @follows(%x: memref<32x8xf32>, %y: memref<8x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = quant.scratch : memref<8x32xf32>
  %t = quant.load %x[%c0, %c0] : memref<32x8xf32> -> tensor<32x8xf32>
  %u = quant.transpose %t : tensor<32x8xf32> -> tensor<8x32xf32>
  %v = quant.load %s[%c0, %c0] : memref<8x32xf32> -> tensor<8x32xf32>
  %m = arith.addf %u, %v : tensor<8x32xf32>
  quant.store %m, %y[%c0, %c0] : tensor<8x32xf32>, memref<8x32xf32>
  return
}

// However many ways lead from a load to what is made of it.
// CHECK-LABEL: func.func @doubled
func.func @doubled(%y: memref<8x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = quant.scratch : memref<8x32xf32>
  %v0 = quant.load %s[%c0, %c0] : memref<8x32xf32> -> tensor<8x32xf32>
  %v1 = arith.addf %v0, %v0 : tensor<8x32xf32>
  %v2 = arith.addf %v1, %v1 : tensor<8x32xf32>
  %v3 = arith.addf %v2, %v2 : tensor<8x32xf32>
  %v4 = arith.addf %v3, %v3 : tensor<8x32xf32>
  %v5 = arith.addf %v4, %v4 : tensor<8x32xf32>
  %v6 = arith.addf %v5, %v5 : tensor<8x32xf32>
  %v7 = arith.addf %v6, %v6 : tensor<8x32xf32>
  %v8 = arith.addf %v7, %v7 : tensor<8x32xf32>
  %v9 = arith.addf %v8, %v8 : tensor<8x32xf32>
  %v10 = arith.addf %v9, %v9 : tensor<8x32xf32>
  %v11 = arith.addf %v10, %v10 : tensor<8x32xf32>
  %v12 = arith.addf %v11, %v11 : tensor<8x32xf32>
  %v13 = arith.addf %v12, %v12 : tensor<8x32xf32>
  %v14 = arith.addf %v13, %v13 : tensor<8x32xf32>
  %v15 = arith.addf %v14, %v14 : tensor<8x32xf32>
  %v16 = arith.addf %v15, %v15 : tensor<8x32xf32>
  %v17 = arith.addf %v16, %v16 : tensor<8x32xf32>
  %v18 = arith.addf %v17, %v17 : tensor<8x32xf32>
  %v19 = arith.addf %v18, %v18 : tensor<8x32xf32>
  %v20 = arith.addf %v19, %v19 : tensor<8x32xf32>
  %v21 = arith.addf %v20, %v20 : tensor<8x32xf32>
  %v22 = arith.addf %v21, %v21 : tensor<8x32xf32>
  %v23 = arith.addf %v22, %v22 : tensor<8x32xf32>
  %v24 = arith.addf %v23, %v23 : tensor<8x32xf32>
  %v25 = arith.addf %v24, %v24 : tensor<8x32xf32>
  %v26 = arith.addf %v25, %v25 : tensor<8x32xf32>
  %v27 = arith.addf %v26, %v26 : tensor<8x32xf32>
  %v28 = arith.addf %v27, %v27 : tensor<8x32xf32>
  %v29 = arith.addf %v28, %v28 : tensor<8x32xf32>
  %v30 = arith.addf %v29, %v29 : tensor<8x32xf32>
  %v31 = arith.addf %v30, %v30 : tensor<8x32xf32>
  %v32 = arith.addf %v31, %v31 : tensor<8x32xf32>
  %v33 = arith.addf %v32, %v32 : tensor<8x32xf32>
  %v34 = arith.addf %v33, %v33 : tensor<8x32xf32>
  %v35 = arith.addf %v34, %v34 : tensor<8x32xf32>
  %v36 = arith.addf %v35, %v35 : tensor<8x32xf32>
  %v37 = arith.addf %v36, %v36 : tensor<8x32xf32>
  %v38 = arith.addf %v37, %v37 : tensor<8x32xf32>
  %v39 = arith.addf %v38, %v38 : tensor<8x32xf32>
  %v40 = arith.addf %v39, %v39 : tensor<8x32xf32>
  quant.store %v40, %y[%c0, %c0] : tensor<8x32xf32>, memref<8x32xf32>
  return
}
