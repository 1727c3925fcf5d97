// RUN: dither-opt %s --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s

module attributes {quant.target = "sm_90a"} {
  // Pointers with what is known about them, then dynamic sizes and strides;
  // scalars as they are. Program ids are block indices.
  // CHECK-LABEL: func.func @params(
  // CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: i64, %[[SX:.*]]: i64, %[[Y:.*]]: !llvm.ptr<1> {llvm.align = 4 : i64, llvm.noalias}, %[[I:.*]]: i64, %[[J:.*]]: i32, %[[F:.*]]: f32)
  // CHECK-SAME: quant.num_threads = 32 : i64, quant.params = ["ptr", "i64", "i64", "ptr", "i64", "i32", "f32"], quant.shared_bytes = 0 : i64
  // CHECK-NOT: memref
  // CHECK-NOT: tensor
  // CHECK-DAG: %[[T:.*]] = nvvm.read.ptx.sreg.tid.x : i32
  // CHECK-DAG: %[[P:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
  // CHECK: arith.muli %{{.*}}, %[[SX]] : i64
  // CHECK: %[[A:.*]] = llvm.getelementptr %[[X]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  // CHECK: llvm.load %[[A]] {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  // CHECK: arith.mulf %{{.*}}, %[[F]] : f32
  // CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
  func.func @params(%x: memref<?x32xf32, strided<[?, 1]>> {quant.align = 16 : i64}, %y: memref<1x32xf32>,
                    %i: index, %j: i32, %f: f32) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x32xf32, strided<[?, 1]>> -> tensor<1x32xf32>
    %b = quant.broadcast %f : f32 -> tensor<1x32xf32>
    %m = arith.mulf %t, %b : tensor<1x32xf32>
    quant.store %m, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
    return
  }

  // CHECK-LABEL: func.func @ids(
  // CHECK-DAG: nvvm.read.ptx.sreg.ctaid.y
  // CHECK-DAG: nvvm.read.ptx.sreg.ctaid.z
  // CHECK-DAG: nvvm.read.ptx.sreg.nctaid.x
  func.func @ids(%x: memref<?x32xf32>, %y: memref<?x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %j = quant.program_id y
    %k = quant.program_id z
    %n = quant.num_programs x
    %a = arith.muli %k, %n : index
    %t = quant.load %x[%j, %c0] {in_bounds} : memref<?x32xf32> -> tensor<1x32xf32>
    quant.store %t, %y[%a, %c0] {in_bounds} : tensor<1x32xf32>, memref<?x32xf32>
    return
  }

  // The pointer, every row and the lane's first column are multiples of 16
  // bytes: one load of eight elements, in words of two.
  // CHECK-LABEL: func.func @wide(
  // CHECK: %[[V:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-COUNT-4: vector.extract %[[V]]
  // CHECK-NOT: llvm.load
  // Rows of the result are known to be multiples of 4 bytes only.
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : i32
  // CHECK-NOT: llvm.store
  func.func @wide(%x: memref<?x256xbf16, strided<[?, 1]>> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
                  %y: memref<?x256xbf16, strided<[?, 1]>> {quant.align = 16 : i64, quant.stride_align = 4 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x256xbf16, strided<[?, 1]>> -> tensor<1x256xbf16>
    quant.store %t, %y[%p, %c0] {in_bounds} : tensor<1x256xbf16>, memref<?x256xbf16, strided<[?, 1]>>
    return
  }

  // An odd column, though the pointer is aligned: two bytes at a time, packed
  // by hand.
  // CHECK-LABEL: func.func @odd_column(
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
  // CHECK-NOT: llvm.load
  // CHECK: llvm.store
  func.func @odd_column(%x: memref<8x512xbf16> {quant.align = 16 : i64}, %y: memref<8x256xbf16> {quant.align = 16 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = quant.load %x[%c0, %c1] {in_bounds} : memref<8x512xbf16> -> tensor<1x256xbf16>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x256xbf16>, memref<8x256xbf16>
    return
  }

  // 120 columns of a tile of 128 that starts at any row: a lane's four columns
  // exist together or not at all.
  // CHECK-LABEL: func.func @masked(
  // CHECK-DAG: %[[ROW:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i64
  // CHECK-DAG: %[[COL:.*]] = arith.cmpi slt, %{{.*}}, %c120_i64
  // CHECK: %[[IN:.*]] = arith.andi %[[ROW]], %[[COL]]
  // CHECK: scf.if %[[IN]] -> (vector<4xf32>) {
  // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK: } else {
  // CHECK-NEXT: scf.yield %{{.*}} : vector<4xf32>
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
  func.func @masked(%x: memref<?x120xf32> {quant.align = 16 : i64}, %y: memref<?x120xf32> {quant.align = 16 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%p, %c0] : memref<?x120xf32> -> tensor<1x128xf32>
    quant.store %t, %y[%p, %c0] : tensor<1x128xf32>, memref<?x120xf32>
    return
  }

  // A row that the caller gives may lie before the first.
  // CHECK-LABEL: func.func @before(
  // CHECK: %[[ROOM:.*]] = arith.subi %c8_i64, %arg2
  // CHECK: %[[FIRST:.*]] = arith.subi %c0_i64, %arg2
  // CHECK-DAG: arith.cmpi sgt, %[[ROOM]], %c0_i64
  // CHECK-DAG: arith.cmpi sle, %[[FIRST]], %c0_i64
  // CHECK: scf.if
  func.func @before(%x: memref<8x32xf32>, %y: memref<8x32xf32>, %i: index) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%i, %c0] : memref<8x32xf32> -> tensor<1x32xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<8x32xf32>
    return
  }

  // Conversions take one word each: two halves, or eight codes of four bits.
  // CHECK-LABEL: func.func @words(
  // CHECK-COUNT-4: quant.decode_words %{{.*}} {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  // CHECK: quant.encode_words %{{.*}} {elem = f4E2M1FN, group = 8 : i64} : vector<8xf32> -> vector<1xi32>
  // CHECK: quant.decode_words %{{.*}} {elem = f4E2M1FN, group = 8 : i64} : vector<1xi32> -> vector<8xf32>
  // CHECK-COUNT-4: quant.encode_words %{{.*}} {elem = f16, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  func.func @words(%x: memref<1x256xbf16>, %y: memref<1x256xf16>, %z: memref<2x256xf4E2M1FN>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x256xbf16> -> tensor<1x256xbf16>
    %f = arith.extf %t : tensor<1x256xbf16> to tensor<1x256xf32>
    %q = quant.encode %f : tensor<1x256xf32> -> tensor<1x256xf4E2M1FN>
    quant.store %q, %z[%c0, %c0] {in_bounds} : tensor<1x256xf4E2M1FN>, memref<2x256xf4E2M1FN>
    %p = quant.load %z[%c1, %c0] {in_bounds} : memref<2x256xf4E2M1FN> -> tensor<1x256xf4E2M1FN>
    %d = quant.decode %p : tensor<1x256xf4E2M1FN> -> tensor<1x256xf32>
    %h = arith.truncf %d : tensor<1x256xf32> to tensor<1x256xf16>
    quant.store %h, %y[%c0, %c0] {in_bounds} : tensor<1x256xf16>, memref<1x256xf16>
    return
  }

  // A tile of the same narrow number: its words.
  // CHECK-LABEL: func.func @narrow_constant(
  // E4M3 1.0 is 38; 0x38383838.
  // CHECK-DAG: %[[W:.*]] = arith.constant 943208504 : i32
  // CHECK: llvm.store %[[W]], %{{.*}} : i32
  func.func @narrow_constant(%y: memref<1x128xf8E4M3FN> {quant.align = 16 : i64}) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<1x128xf8E4M3FN>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x128xf8E4M3FN>, memref<1x128xf8E4M3FN>
    return
  }

  // Four warps meet in shared memory; the two barriers keep the next exchange
  // from overtaking this one. Rows past the tile are NaN, which no maximum
  // takes. One thread updates memory.
  // CHECK-LABEL: func.func @warp_max(
  // CHECK-SAME: quant.num_threads = 128 : i64
  // CHECK-SAME: quant.shared_bytes = 512 : i64
  // CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
  // CHECK-DAG: %[[SH:.*]] = llvm.mlir.addressof @warp_max_shared : !llvm.ptr<3>
  // CHECK-DAG: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK: %[[IN:.*]] = arith.cmpi slt, %[[TID]], %c100_i32
  // CHECK: arith.select %[[IN]], %{{.*}}, %[[NAN]] : f32
  // CHECK-COUNT-5: nvvm.shfl.sync bfly
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
  // CHECK-NEXT: nvvm.barrier0
  // CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
  // CHECK-COUNT-3: arith.maxnumf
  // CHECK: nvvm.barrier0
  // CHECK: %[[BITS:.*]] = arith.andi %[[TID]], %c127_i32
  // CHECK: %[[OWN:.*]] = arith.cmpi eq, %[[BITS]], %c0_i32
  // CHECK: scf.if %[[OWN]] {
  // CHECK: llvm.atomicrmw umax %arg1, %{{.*}} monotonic : !llvm.ptr<1>, i32
  // CHECK: llvm.mlir.global internal @warp_max_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
  func.func @warp_max(%x: memref<128x1xf32>, %y: memref<f32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<128x1xf32> -> tensor<100x1xf32>
    %m = quant.reduce max %t axis 0 : tensor<100x1xf32> -> tensor<1x1xf32>
    %s = quant.reshape %m : tensor<1x1xf32> -> tensor<f32>
    quant.atomic_max %s, %y[] : tensor<f32>, memref<f32>
    return
  }

  // One thread adds to a counter, and the others read what it was.
  // CHECK-LABEL: func.func @counter(
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
  // CHECK: scf.if %[[FIRST]] {
  // CHECK-NEXT: %[[WAS:.*]] = llvm.atomicrmw add %{{.*}}, %c8_i64 monotonic : !llvm.ptr<1>, i64
  // CHECK-NEXT: llvm.store %[[WAS]], %[[AT:.*]] {alignment = 8 : i64} : i64, !llvm.ptr<3>
  // CHECK-NEXT: }
  // CHECK-NEXT: nvvm.barrier0
  // CHECK-NEXT: llvm.load %[[AT]] {alignment = 8 : i64} : !llvm.ptr<3> -> i64
  // CHECK-NEXT: nvvm.barrier0
  func.func @counter(%x: memref<128x1xf32>, %y: memref<?x1xf32>, %next: memref<i64>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<128x1xf32> -> tensor<128x1xf32>
    %first = quant.fetch_add %c8, %next : memref<i64>
    quant.store %t, %y[%first, %c0] : tensor<128x1xf32>, memref<?x1xf32>
    return
  }

  // A sum adds its lanes from the lowest bit up.
  // CHECK-LABEL: func.func @lane_sum(
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c1_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c2_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c4_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c8_i32, %c31_i32
  // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c16_i32, %c31_i32
  // CHECK-NOT: nvvm.barrier0
  func.func @lane_sum(%x: memref<1x32xf32>, %y: memref<1x1xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x32xf32> -> tensor<1x32xf32>
    %m = quant.reduce sum %t axis 1 : tensor<1x32xf32> -> tensor<1x1xf32>
    quant.store %m, %y[%c0, %c0] {in_bounds} : tensor<1x1xf32>, memref<1x1xf32>
    return
  }

  // Bits of magnitudes: no instruction on floats says which NaN it gives.
  // CHECK-LABEL: func.func @amax_bits(
  // CHECK-NOT: absf
  // CHECK: %[[M:.*]] = arith.andi %{{.*}}, %c2147483647_i32 : i32
  // CHECK: arith.maxsi
  // CHECK-NOT: maxnumf
  // CHECK: llvm.store
  func.func @amax_bits(%x: memref<1x256xf32>, %y: memref<1x8xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x256xf32> -> tensor<1x256xf32>
    %m = quant.block_reduce amax %t block [1, 32] {amax_bits} : tensor<1x256xf32> -> tensor<1x8xf32>
    quant.store %m, %y[%c0, %c0] {in_bounds} : tensor<1x8xf32>, memref<1x8xf32>
    return
  }

  // GPUs encode whatever the product is.
  // CHECK-LABEL: func.func @scale_encode(
  // CHECK-COUNT-8: arith.mulf
  // CHECK: quant.encode_words %{{.*}} {elem = f8E4M3FN, group = 4 : i64}
  // CHECK: llvm.store
  func.func @scale_encode(%x: memref<1x256xf32>, %f: memref<1x256xf32>, %q: memref<1x256xf8E4M3FN>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x256xf32> -> tensor<1x256xf32>
    %s = quant.load %f[%c0, %c0] {in_bounds} : memref<1x256xf32> -> tensor<1x256xf32>
    %e = quant.scale_encode %t, %s {finite, bounded} : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
    quant.store %e, %q[%c0, %c0] {in_bounds} : tensor<1x256xf8E4M3FN>, memref<1x256xf8E4M3FN>
    return
  }

  // In the 8x4 order a word is at ((r / 8) (C / 4) + c / 4) 32 + (r mod 8) 4.
  // CHECK-LABEL: func.func @swizzled_8x4(
  // CHECK: %[[BAND:.*]] = arith.shrui %[[ROW:.*]], %c3_i64 : i64
  // CHECK: arith.muli %[[BAND]], %c4_i64
  // CHECK: arith.shli %{{.*}}, %c5_i64
  // CHECK: arith.andi %[[ROW]], %c7_i64
  // CHECK: arith.shli %{{.*}}, %c2_i64
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
  func.func @swizzled_8x4(%x: memref<?x16xf8E4M3FN>, %y: memref<?x16xf8E4M3FN> {quant.align = 16 : i64}) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x16xf8E4M3FN> -> tensor<8x16xf8E4M3FN>
    quant.store %t, %y[%p, %c0] {scale_layout = #quant.scale_layout<swizzle_8x4>} : tensor<8x16xf8E4M3FN>, memref<?x16xf8E4M3FN>
    return
  }

  // In packed columns a word is at ((c / 4) R + r) 4.
  // CHECK-LABEL: func.func @packed(
  // CHECK: %[[QUAD:.*]] = arith.shrui %{{.*}}, %c2_i64 : i64
  // CHECK: %[[COLUMN:.*]] = arith.muli %[[QUAD]], %arg
  // CHECK: %[[AT:.*]] = arith.addi %[[COLUMN]], %{{.*}} : i64
  // CHECK: arith.shli %[[AT]], %c2_i64
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
  func.func @packed(%x: memref<?x16xf8E8M0FNU>, %y: memref<?x16xf8E8M0FNU> {quant.align = 16 : i64}) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x16xf8E8M0FNU> -> tensor<8x16xf8E8M0FNU>
    quant.store %t, %y[%p, %c0] {scale_layout = #quant.scale_layout<packed_column_major>} : tensor<8x16xf8E8M0FNU>, memref<?x16xf8E8M0FNU>
    return
  }

  // Codes are repeated as words are: taken apart, and put together.
  // CHECK-LABEL: func.func @repeated(
  // CHECK: llvm.load
  // CHECK-NOT: quant.
  // CHECK: llvm.store
  func.func @repeated(%x: memref<1x128xf8E4M3FN>, %y: memref<4x128xf8E4M3FN>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf8E4M3FN> -> tensor<1x128xf8E4M3FN>
    %r = quant.block_broadcast %t block [4, 1] : tensor<1x128xf8E4M3FN> -> tensor<4x128xf8E4M3FN>
    quant.store %r, %y[%c0, %c0] {in_bounds} : tensor<4x128xf8E4M3FN>, memref<4x128xf8E4M3FN>
    return
  }

  // Four scales of a row lie together in the 128x4 order: one store of a word,
  // at ((r / 128) (C / 4) + c / 4) 512 + (r mod 32) 16 + (r / 32 mod 4) 4.
  // Rows at or past `valid` are zero.
  // CHECK-LABEL: func.func @swizzled(
  // CHECK: arith.select %{{.*}}, %{{.*}}, %c0_i32 : i32
  // CHECK: %[[BAND:.*]] = arith.shrui %[[ROW:.*]], %c7_i64 : i64
  // CHECK: arith.muli %[[BAND]], %c4_i64
  // CHECK: arith.shli %{{.*}}, %c9_i64
  // CHECK: arith.andi %[[ROW]], %c31_i64
  // CHECK: arith.shli %{{.*}}, %c4_i64
  // CHECK: arith.shrui %[[ROW]], %c5_i64
  // CHECK: arith.andi %{{.*}}, %c3_i64
  // CHECK: arith.shli %{{.*}}, %c2_i64
  // CHECK: arith.cmpi ult, %[[ROW]], %arg3
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  func.func @swizzled(%x: memref<?x16xf8E4M3FN>, %y: memref<?x16xf8E4M3FN> {quant.align = 16 : i64}, %m: index) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x16xf8E4M3FN> -> tensor<8x16xf8E4M3FN>
    quant.store %t, %y[%p, %c0] valid [%m, %c16] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<8x16xf8E4M3FN>, memref<?x16xf8E4M3FN>
    return
  }

  // Of eight scales of a lane the second four have the offset of the first and
  // 512 bytes.
  // CHECK-LABEL: func.func @quads(
  // CHECK: arith.shli %{{.*}}, %c9_i64
  // CHECK: %[[P:.*]] = llvm.getelementptr %{{.*}}[%[[QUAD:.*]]]
  // CHECK: llvm.store %{{.*}}, %[[P]] {alignment = 4 : i64} : i32, !llvm.ptr<1>
  // CHECK: %[[NEXT:.*]] = arith.addi %[[QUAD]], %c512_i64
  // CHECK: %[[Q:.*]] = llvm.getelementptr %{{.*}}[%[[NEXT]]]
  // CHECK: llvm.store %{{.*}}, %[[Q]] {alignment = 4 : i64} : i32, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  func.func @quads(%x: memref<?x32xf8E4M3FN>, %y: memref<?x32xf8E4M3FN> {quant.align = 16 : i64}, %m: index) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x32xf8E4M3FN> -> tensor<8x32xf8E4M3FN>
    quant.store %t, %y[%p, %c0] valid [%m, %c32] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<8x32xf8E4M3FN>, memref<?x32xf8E4M3FN>
    return
  }

  // A transpose moves elements between the lanes of different warps.
  // CHECK-LABEL: func.func @through_shared(
  // CHECK-SAME: quant.shared_bytes = 4096 : i64
  // CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
  // CHECK: nvvm.barrier0
  // CHECK: llvm.load %{{.*}} : !llvm.ptr<3>
  // CHECK: nvvm.barrier0
  // CHECK: llvm.store %{{.*}}, !llvm.ptr<1>
  func.func @through_shared(%x: memref<32x32xf32>, %y: memref<32x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<32x32xf32> -> tensor<32x32xf32>
    %u = quant.transpose %t : tensor<32x32xf32> -> tensor<32x32xf32>
    quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<32x32xf32>, memref<32x32xf32>
    return
  }

  // A mask moves between lanes as words.
  // CHECK-LABEL: func.func @mask(
  // CHECK: %[[P:.*]] = arith.cmpf ogt
  // CHECK: %[[W:.*]] = arith.extui %[[P]] : i1 to i32
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[W]], {{.*}} : i32 -> i32
  // CHECK: arith.trunci %{{.*}} : i32 to i1
  func.func @mask(%x: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<8x8xf32> -> tensor<8x8xf32>
    %z = arith.constant dense<0.0> : tensor<8x8xf32>
    %p = arith.cmpf ogt, %t, %z : tensor<8x8xf32>
    %q = quant.transpose %p : tensor<8x8xi1> -> tensor<8x8xi1>
    %a = arith.andi %p, %q : tensor<8x8xi1>
    %s = arith.select %a, %t, %z : tensor<8x8xi1>, tensor<8x8xf32>
    quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<8x8xf32>, memref<8x8xf32>
    return
  }

  // Lanes that hold copies do not store.
  // CHECK-LABEL: func.func @copies(
  // CHECK: %[[B:.*]] = arith.andi %{{.*}}, %c112_i32
  // CHECK: %[[O:.*]] = arith.cmpi eq, %[[B]], %c0_i32
  // CHECK: scf.if %[[O]] {
  // CHECK: llvm.store
  func.func @copies(%x: memref<1x16xf32>, %y: memref<1x16xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x16xf32> -> tensor<1x16xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x16xf32>, memref<1x16xf32>
    return
  }

  // 64 bits move between lanes as two words.
  // CHECK-LABEL: func.func @long(
  // CHECK: %[[V:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> {{.*}}i64
  // CHECK: %[[L:.*]] = arith.trunci %{{.*}} : i64 to i32
  // CHECK: %[[U:.*]] = arith.shrui %{{.*}}, %c32_i64 : i64
  // CHECK: %[[H:.*]] = arith.trunci %[[U]] : i64 to i32
  // CHECK-DAG: nvvm.shfl.sync idx %{{.*}}, %[[L]], {{.*}} : i32 -> i32
  // CHECK-DAG: nvvm.shfl.sync idx %{{.*}}, %[[H]], {{.*}} : i32 -> i32
  // CHECK: arith.shli %{{.*}}, %c32_i64 : i64
  // CHECK: arith.ori %{{.*}} : i64
  func.func @long(%x: memref<8x8xi64>, %y: memref<8x8xi64>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<8x8xi64> -> tensor<8x8xi64>
    %q = quant.transpose %t : tensor<8x8xi64> -> tensor<8x8xi64>
    %a = arith.addi %t, %q : tensor<8x8xi64>
    quant.store %a, %y[%c0, %c0] {in_bounds} : tensor<8x8xi64>, memref<8x8xi64>
    return
  }

  // Where a lane reads from one that is like it in some bits of their numbers (0 and 4), the segments of a shuffle say
  // so, and the other bits are a constant.
  // CHECK-LABEL: func.func @kept(
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %c0_i32, %c4383_i32
  // CHECK-NOT: arith.xori
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %c8_i32, %c4383_i32
  // CHECK-NOT: arith.xori
  // CHECK: return
  func.func @kept(%x: memref<?x16xbf16> {quant.align = 16 : i64}, %y: memref<?x16xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<?x16xbf16> -> tensor<16x16xbf16>
    %f = arith.extf %t : tensor<16x16xbf16> to tensor<16x16xf32>
    %a = quant.block_reduce amax %f block [16, 1] : tensor<16x16xf32> -> tensor<1x16xf32>
    %b = quant.block_broadcast %a block [16, 1] : tensor<1x16xf32> -> tensor<16x16xf32>
    %m = arith.mulf %f, %b : tensor<16x16xf32>
    quant.store %m, %y[%c0, %c0] {in_bounds} : tensor<16x16xf32>, memref<?x16xf32>
    return
  }

  // One condition chooses words, a mask chooses the codes in them.
  // CHECK-LABEL: func.func @choose(
  // CHECK-SAME: %[[C:[a-z0-9]+]]: i32
  // CHECK: %[[P:.*]] = arith.cmpi ne, %[[C]]
  // CHECK: arith.select %[[P]], %{{.*}}, %{{.*}} : i32
  // CHECK: arith.andi %{{.*}}, %c65535_i32
  // CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
  // CHECK: arith.shli %{{.*}}, %c16_i32
  func.func @choose(%x: memref<8x64xbf16>, %y: memref<8x64xbf16>, %z: memref<8x64xf32>, %c: i32) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %p = arith.cmpi ne, %c, %zero : i32
    %s = quant.load %x[%c0, %c0] {in_bounds} : memref<8x64xbf16> -> tensor<8x64xbf16>
    %t = quant.load %y[%c0, %c0] {in_bounds} : memref<8x64xbf16> -> tensor<8x64xbf16>
    %u = arith.select %p, %s, %t : tensor<8x64xbf16>
    %f = quant.load %z[%c0, %c0] {in_bounds} : memref<8x64xf32> -> tensor<8x64xf32>
    %m = arith.cmpf ogt, %f, %f : tensor<8x64xf32>
    %v = arith.select %m, %u, %t : tensor<8x64xi1>, tensor<8x64xbf16>
    quant.store %v, %x[%c0, %c0] {in_bounds} : tensor<8x64xbf16>, memref<8x64xbf16>
    return
  }

  // It must not touch functions that are no kernels.
  // CHECK-LABEL: func.func @no_kernel(
  // CHECK-SAME: memref<1x16xf32>
  func.func @no_kernel(%x: memref<1x16xf32>) {
    return
  }
}
