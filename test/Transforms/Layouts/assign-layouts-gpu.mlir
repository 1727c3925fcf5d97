// RUN: dither-opt %s --dither-assign-layouts | FileCheck %s

module attributes {quant.target = "sm_90a"} {
  // Four warps where nothing says otherwise; a lane takes what leaves work for
  // all of them.
  // CHECK-LABEL: func.func @elementwise
  // CHECK: #quant.layout<"(1,256) reg=[(0,1)] lane=[(0,2),(0,4),(0,8),(0,16),(0,32)] warp=[(0,64),(0,128)]">
  func.func @elementwise(%x: memref<4x256xf32>, %y: memref<4x256xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
    %c = arith.constant dense<2.0> : tensor<1x256xf32>
    %m = arith.mulf %t, %c : tensor<1x256xf32>
    quant.store %m, %y[%c0, %c0] : tensor<1x256xf32>, memref<4x256xf32>
    return
  }

  // With one warp and enough elements, 16 bytes.
  // CHECK-LABEL: func.func @one_warp
  // CHECK: #quant.layout<"(1,256) reg=[(0,1),(0,2),(0,128)] lane=[(0,4),(0,8),(0,16),(0,32),(0,64)] warp=[]">
  func.func @one_warp(%x: memref<4x256xf32>, %y: memref<4x256xf32>)
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
    quant.store %t, %y[%c0, %c0] : tensor<1x256xf32>, memref<4x256xf32>
    return
  }

  // The codes that are stored decide: 16 elements of bf16 become 8 or 16 bytes.
  // CHECK-LABEL: func.func @codes
  // CHECK: #quant.layout<"(1,2048) reg=[(0,1),(0,2),(0,4),(0,8)] lane=[(0,16),(0,32),(0,64),(0,128),(0,256)] warp=[(0,512),(0,1024)]">
  func.func @codes(%x: memref<4x2048xbf16>, %y: memref<4x2048xf8E4M3FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x2048xbf16> -> tensor<1x2048xbf16>
    %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
    %q = quant.encode %f : tensor<1x2048xf32> -> tensor<1x2048xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x2048xf8E4M3FN>, memref<4x2048xf8E4M3FN>
    return
  }

  // Codes of four bits stay two to a lane, however little work there is.
  // CHECK-LABEL: func.func @few_codes
  // CHECK: quant.load {{.*}} #quant.layout<"(1,32) reg=[(0,1)] lane=[(0,2),(0,4),(0,8),(0,16),(0,0)] warp=[(0,0),(0,0)]">
  // CHECK: quant.store {{.*}} #quant.layout<"(1,32) reg=[(0,1)] lane=[(0,2),(0,4),(0,8),(0,16),(0,0)] warp=[(0,0),(0,0)]">
  func.func @few_codes(%x: memref<4x32xf32>, %y: memref<4x32xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x32xf32> -> tensor<1x32xf32>
    %a = math.absf %t : tensor<1x32xf32>
    %q = quant.encode %a : tensor<1x32xf32> -> tensor<1x32xf4E2M1FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x32xf4E2M1FN>, memref<4x32xf4E2M1FN>
    return
  }
  // CHECK-LABEL: func.func @few_codes_transposed
  // CHECK: quant.store {{.*}} #quant.layout<"(16,2) reg=[(0,1)]
  func.func @few_codes_transposed(%x: memref<2x16xf4E2M1FN>, %y: memref<16x2xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<2x16xf4E2M1FN> -> tensor<2x16xf4E2M1FN>
    %u = quant.transpose %t : tensor<2x16xf4E2M1FN> -> tensor<16x2xf4E2M1FN>
    quant.store %u, %y[%c0, %c0] : tensor<16x2xf4E2M1FN>, memref<16x2xf4E2M1FN>
    return
  }

  // The warps of a sum have its highest bits: they are combined last. What the
  // lanes leave below them is in registers.
  // CHECK-LABEL: func.func @row_sum
  // CHECK: quant.load {{.*}} #quant.layout<"(1,1024) reg=[(0,1),(0,2),(0,128)] lane=[(0,4),(0,8),(0,16),(0,32),(0,64)] warp=[(0,256),(0,512)] rep (1,4)">
  // CHECK-NEXT: quant.reduce sum
  func.func @row_sum(%x: memref<1x4096xf32>, %y: memref<1x1xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<1x4096xf32> -> tensor<1x4096xf32>
    %s = quant.reduce sum %t axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
    quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
    return
  }

  // Lanes share no more of a row than the chains of its sum: runs shrink before
  // warps hold copies.
  // CHECK-LABEL: func.func @sum_and_codes
  // CHECK: quant.load {{.*}} #quant.layout<"(1,1024) reg=[(0,1),(0,2),(0,4)] lane=[(0,8),(0,16),(0,32),(0,64),(0,128)] warp=[(0,256),(0,512)] rep (1,4)">
  func.func @sum_and_codes(%x: memref<1x4096xbf16>, %y: memref<1x4096xf8E4M3FN>, %z: memref<1x1xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<1x4096xbf16> -> tensor<1x4096xbf16>
    %f = arith.extf %t : tensor<1x4096xbf16> to tensor<1x4096xf32>
    %s = quant.reduce sum %f axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
    %q = quant.encode %f : tensor<1x4096xf32> -> tensor<1x4096xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x4096xf8E4M3FN>, memref<1x4096xf8E4M3FN>
    quant.store %s, %z[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
    return
  }

  // Blocks of 32 rows stay inside a warp, two rows in registers and 16 lanes
  // across. Their scales are in an order of their own among the lanes, which
  // write whole sectors all the same.
  // CHECK-LABEL: func.func @tall_blocks
  // CHECK: quant.load {{.*}} #quant.layout<"(32,128) reg=[(0,1),(0,2),(0,4),(0,8),(16,0)] lane=[(0,16),(1,0),(2,0),(4,0),(8,0)] warp=[(0,32),(0,64)]">
  // CHECK: quant.block_reduce
  // CHECK-NOT: quant.convert_layout
  // CHECK: quant.store {{.*}} lane=[(0,16),(0,8),(0,4),(0,2),(0,1)]
  func.func @tall_blocks(%x: memref<32x4096xbf16>, %y: memref<32x4096xf8E4M3FN>, %s: memref<1x4096xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<32x4096xbf16> -> tensor<32x128xbf16>
    %f = arith.extf %t : tensor<32x128xbf16> to tensor<32x128xf32>
    %a = quant.block_reduce amax %f block [32, 1] : tensor<32x128xf32> -> tensor<1x128xf32>
    %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<1x128xf32> -> tensor<1x128xf8E8M0FNU>
    quant.store %e, %s[%c0, %c0] : tensor<1x128xf8E8M0FNU>, memref<1x4096xf8E8M0FNU>
    %q = quant.encode %f : tensor<32x128xf32> -> tensor<32x128xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<32x128xf8E4M3FN>, memref<32x4096xf8E4M3FN>
    return
  }

  // Every second lane has a scale of its own, and neighbours continue it: stored
  // as it is.
  // CHECK-LABEL: func.func @scales_in_copies
  // CHECK-NOT: quant.convert_layout
  // CHECK: quant.store {{.*}} lane=[(0,0),(0,1),(0,2),(0,4),(0,8)]
  func.func @scales_in_copies(%x: memref<4x2048xbf16>, %y: memref<4x2048xf8E4M3FN>, %s: memref<4x64xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x2048xbf16> -> tensor<1x2048xbf16>
    %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
    %a = quant.block_reduce amax %f block [1, 32] : tensor<1x2048xf32> -> tensor<1x64xf32>
    %q = quant.encode %f : tensor<1x2048xf32> -> tensor<1x2048xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x2048xf8E4M3FN>, memref<4x2048xf8E4M3FN>
    quant.store %a, %s[%c0, %c0] : tensor<1x64xf32>, memref<4x64xf32>
    return
  }

  // Lanes that share a block have a part of four of them, which repeats of the
  // fragment are: each gets one whole block, of which it computes what follows
  // once, and all get the factors back. Its scale is stored as it is.
  // CHECK-LABEL: func.func @shared_blocks
  // CHECK: quant.block_reduce amax {{.*}} rep (1,4)">> -> tensor<1x128xf32, #quant.layout<"(1,128) reg=[] lane=[(0,64),(0,32),(0,1),(0,2),(0,4)] warp=[(0,8),(0,16)]">>
  // CHECK-NEXT: quant.encode
  // CHECK-NEXT: %[[F:.*]] = quant.e8m0_inverse
  // CHECK-NEXT: %[[ALL:.*]] = quant.convert_layout %[[F]] : {{.*}} -> tensor<1x128xf32, #quant.layout<"(1,32) reg=[] lane=[(0,0),(0,0),(0,1),(0,2),(0,4)] warp=[(0,8),(0,16)] rep (1,4)">>
  // CHECK-NEXT: quant.block_broadcast %[[ALL]]
  // CHECK-NOT: quant.convert_layout
  // CHECK: quant.store {{.*}} lane=[(0,64),(0,32),(0,1),(0,2),(0,4)]
  func.func @shared_blocks(%x: memref<4x4096xbf16>, %y: memref<4x4096xf8E4M3FN>, %s: memref<4x128xf8E8M0FNU>, %z: memref<1x1xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x4096xbf16> -> tensor<1x4096xbf16>
    %f = arith.extf %t : tensor<1x4096xbf16> to tensor<1x4096xf32>
    %r = quant.reduce sum %f axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
    quant.store %r, %z[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
    %a = quant.block_reduce amax %f block [1, 32] : tensor<1x4096xf32> -> tensor<1x128xf32>
    %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<1x128xf32> -> tensor<1x128xf8E8M0FNU>
    %i = quant.e8m0_inverse %e : tensor<1x128xf8E8M0FNU> -> tensor<1x128xf32>
    %b = quant.block_broadcast %i block [1, 32] : tensor<1x128xf32> -> tensor<1x4096xf32>
    %p = arith.mulf %f, %b : tensor<1x4096xf32>
    %q = quant.encode %p : tensor<1x4096xf32> -> tensor<1x4096xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x4096xf8E4M3FN>, memref<4x4096xf8E4M3FN>
    quant.store %e, %s[%c0, %c0] : tensor<1x128xf8E8M0FNU>, memref<4x128xf8E8M0FNU>
    return
  }

  // Rows that are summed are neighbours in the registers of a lane. It adds its
  // own up, pair by pair, and what is left of a column meets in one lane.
  // CHECK-LABEL: func.func @column_sum
  // CHECK: quant.load {{.*}} #quant.layout<"(32,64) reg=[(0,1),(0,2),(1,0),(2,0)] lane=[(0,4),(0,8),(0,16),(0,32),(4,0)] warp=[(8,0),(16,0)]">
  // CHECK-NEXT: quant.block_reduce sum {{.*}} block [2, 1] : tensor<32x64xf32
  // CHECK-NEXT: quant.block_reduce sum {{.*}} block [2, 1] : tensor<16x64xf32
  // CHECK-NEXT: quant.convert_layout {{.*}} -> tensor<8x64xf32, #quant.layout<"(8,64) reg=[(1,0),(2,0),(4,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] warp=[(0,32),(0,0)]">>
  // CHECK-NEXT: quant.reduce sum {{.*}} axis 0 : tensor<8x64xf32
  func.func @column_sum(%x: memref<32x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<32x64xf32> -> tensor<32x64xf32>
    %s = quant.reduce sum %t axis 0 : tensor<32x64xf32> -> tensor<1x64xf32>
    quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
    return
  }

  // Where a lane has two columns, lanes and warps exchange them.
  // CHECK-LABEL: func.func @narrow_column_sum
  // CHECK: quant.load
  // CHECK-NEXT: quant.reduce sum
  func.func @narrow_column_sum(%x: memref<32x8xf32>, %y: memref<1x8xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<32x8xf32> -> tensor<32x8xf32>
    %s = quant.reduce sum %t axis 0 : tensor<32x8xf32> -> tensor<1x8xf32>
    quant.store %s, %y[%c0, %c0] : tensor<1x8xf32>, memref<1x8xf32>
    return
  }

  // Many parts of few columns: a lane takes some, and warps add up theirs.
  // CHECK-LABEL: func.func @tall_column_sum
  // CHECK: quant.convert_layout {{.*}} -> tensor<32x32xf32, #quant.layout<"(32,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] warp=[(4,0),(8,0),(16,0)]">>
  // CHECK-NEXT: quant.reduce sum
  func.func @tall_column_sum(%x: memref<256x32xf32>, %y: memref<1x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<256x32xf32> -> tensor<256x32xf32>
    %s = quant.reduce sum %t axis 0 : tensor<256x32xf32> -> tensor<1x32xf32>
    quant.store %s, %y[%c0, %c0] : tensor<1x32xf32>, memref<1x32xf32>
    return
  }

  // What is read beside blocks of 32 rows: they stay in a warp, and what lanes
  // have is added up before it leaves them.
  // CHECK-LABEL: func.func @column_sum_of_blocks
  // CHECK: quant.load {{.*}} #quant.layout<"(32,128) reg=[(0,1),(0,2),(0,4),(0,8),(1,0)] lane=[(0,16),(2,0),(4,0),(8,0),(16,0)] warp=[(0,32),(0,64)]">
  // CHECK: quant.block_reduce sum {{.*}} block [2, 1] : tensor<32x128xf32
  // CHECK-NEXT: quant.convert_layout {{.*}} -> tensor<16x128xf32
  // CHECK-NEXT: quant.reduce sum {{.*}} : tensor<16x128xf32
  func.func @column_sum_of_blocks(%x: memref<32x4096xbf16>, %y: memref<32x4096xf8E4M3FN>, %s: memref<1x4096xf8E8M0FNU>, %z: memref<1x4096xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<32x4096xbf16> -> tensor<32x128xbf16>
    %f = arith.extf %t : tensor<32x128xbf16> to tensor<32x128xf32>
    %r = quant.reduce sum %f axis 0 : tensor<32x128xf32> -> tensor<1x128xf32>
    quant.store %r, %z[%c0, %c0] : tensor<1x128xf32>, memref<1x4096xf32>
    %a = quant.block_reduce amax %f block [32, 1] : tensor<32x128xf32> -> tensor<1x128xf32>
    %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<1x128xf32> -> tensor<1x128xf8E8M0FNU>
    quant.store %e, %s[%c0, %c0] : tensor<1x128xf8E8M0FNU>, memref<1x4096xf8E8M0FNU>
    %q = quant.encode %f : tensor<32x128xf32> -> tensor<32x128xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<32x128xf8E4M3FN>, memref<32x4096xf8E4M3FN>
    return
  }

  // Two sums of different lengths: 512 elements are 256 chains, 4096 are 1024.
  // CHECK-LABEL: func.func @two_sums
  // CHECK: quant.reduce sum {{.*}} : tensor<1x4096xf32, #quant.layout<"(1,1024)
  // CHECK: quant.reduce sum {{.*}} : tensor<1x512xf32, #quant.layout<"(1,256)
  func.func @two_sums(%x: memref<1x4096xf32>, %y: memref<1x1xf32>, %z: memref<1x1xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<1x4096xf32> -> tensor<1x4096xf32>
    %s = quant.reduce sum %t axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
    quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
    %u = quant.load %x[%c0, %c0] : memref<1x4096xf32> -> tensor<1x512xf32>
    %r = quant.reduce sum %u axis 1 : tensor<1x512xf32> -> tensor<1x1xf32>
    quant.store %r, %z[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
    return
  }

  // Neighbours of a transposed tile are in different lanes, one element each:
  // the store wants them together.
  // CHECK-LABEL: func.func @transposed
  // CHECK: %[[U:.*]] = quant.transpose
  // CHECK: %[[V:.*]] = quant.convert_layout %[[U]] : {{.*}} -> tensor<16x16xf32, #quant.layout<"(16,16) reg=[(0,1)] lane=[(0,2),(0,4),(0,8),(1,0),(2,0)] warp=[(4,0),(8,0)]">>
  // CHECK: quant.store %[[V]]
  func.func @transposed(%x: memref<16x16xf32>, %y: memref<16x16xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<16x16xf32> -> tensor<16x16xf32>
    %u = quant.transpose %t : tensor<16x16xf32> -> tensor<16x16xf32>
    quant.store %u, %y[%c0, %c0] : tensor<16x16xf32>, memref<16x16xf32>
    return
  }

  // A tile smaller than a warp: lanes and warps hold copies.
  // CHECK-LABEL: func.func @loop
  // CHECK: #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8),(0,0)] warp=[(0,0),(0,0)]">
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

  // What begins as a constant and takes up sums of rows has their layout: no
  // round converts it. One that takes up what is loaded has that of a load.
  // CHECK-LABEL: func.func @sums_of_rows
  // CHECK: scf.for
  // CHECK-NOT: convert_layout
  // CHECK: quant.reduce
  // CHECK-NOT: convert_layout
  // CHECK: scf.yield
  func.func @sums_of_rows(%x: memref<?x16xf32>, %y: memref<8x1xf32>, %n: index) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %z = arith.constant dense<0.0> : tensor<8x1xf32>
    %w = arith.constant dense<0xFF800000> : tensor<8x1xf32>
    %r:2 = scf.for %i = %c0 to %n step %c8 iter_args(%a = %z, %m = %w) -> (tensor<8x1xf32>, tensor<8x1xf32>) {
      %t = quant.load %x[%i, %c0] : memref<?x16xf32> -> tensor<8x16xf32>
      %s = quant.reduce sum %t axis 1 : tensor<8x16xf32> -> tensor<8x1xf32>
      %d = arith.maxnumf %m, %s : tensor<8x1xf32>
      %p = arith.addf %a, %d : tensor<8x1xf32>
      scf.yield %p, %d : tensor<8x1xf32>, tensor<8x1xf32>
    }
    %q = arith.addf %r#0, %r#1 : tensor<8x1xf32>
    quant.store %q, %y[%c0, %c0] : tensor<8x1xf32>, memref<8x1xf32>
    return
  }

  // A round of random bits that eight lanes share: each does some of them, and
  // they exchange what they have. What is as cheap as a move is done by all.
  // CHECK-LABEL: func.func @shared_rounds
  // CHECK: quant.mulhi {{.*}} : tensor<1x128xi32, #quant.layout<"(1,128) reg=[] lane=[{{.*}}] warp=[{{.*}}]">>
  // CHECK: quant.convert_layout {{.*}} : tensor<1x128xi32, #quant.layout<"(1,128) reg=[] {{.*}}">> -> tensor<1x128xi32, #quant.layout<"(1,128) reg=[({{.*}})
  // CHECK: quant.broadcast
  // CHECK-LABEL: func.func @shared_sums
  // CHECK-NOT: quant.convert_layout
  func.func @shared_rounds(%x: memref<16x128xi32>, %y: memref<16x128xi32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<16x128xi32> -> tensor<16x128xi32>
    %i = quant.iota dim 1 : tensor<1x128xi32>
    %h = quant.mulhi %i, %i : tensor<1x128xi32>
    %b = quant.broadcast %h : tensor<1x128xi32> -> tensor<16x128xi32>
    %s = arith.xori %t, %b : tensor<16x128xi32>
    quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<16x128xi32>, memref<16x128xi32>
    return
  }
  func.func @shared_sums(%x: memref<16x128xi32>, %y: memref<16x128xi32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<16x128xi32> -> tensor<16x128xi32>
    %i = quant.iota dim 1 : tensor<1x128xi32>
    %h = arith.addi %i, %i : tensor<1x128xi32>
    %b = quant.broadcast %h : tensor<1x128xi32> -> tensor<16x128xi32>
    %s = arith.xori %t, %b : tensor<16x128xi32>
    quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<16x128xi32>, memref<16x128xi32>
    return
  }
}
