// RUN: dither-opt %s --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s
// A distributed kernel is left alone.
// RUN: dither-opt %s --dither-assign-layouts --dither-distribute > %t.once
// RUN: dither-opt %t.once --dither-assign-layouts --dither-distribute | diff %t.once -

// Arguments in slots of eight bytes; a loop over the programs [begin, end), x
// fastest. A register is 16 lanes.
// CHECK-LABEL: func.func @abi(
// CHECK-SAME: %[[S:.*]]: !llvm.ptr, %[[GX:.*]]: i64, %[[GY:.*]]: i64, %{{.*}}: i64, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK-SAME: quant.num_threads = 1 : i64, quant.params = ["ptr", "i64", "i64", "ptr", "f32"], quant.shared_bytes = 0 : i64
// CHECK: %[[X:.*]] = llvm.load %[[S]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK: %[[S2:.*]] = llvm.getelementptr %[[S]][2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[STRIDE:.*]] = llvm.load %[[S2]] {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK: %[[S3:.*]] = llvm.getelementptr %[[S]][3]
// CHECK: %[[Y:.*]] = llvm.load %[[S3]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK: %[[S4:.*]] = llvm.getelementptr %[[S]][4]
// CHECK: %[[F:.*]] = llvm.load %[[S4]] {alignment = 8 : i64} : !llvm.ptr -> f32
// CHECK: scf.for %[[P:.*]] = %[[BEGIN]] to %[[END]] step %c1_i64 : i64 {
// CHECK: %[[PX:.*]] = arith.remui %[[P]], %[[GX]]
// CHECK: %[[REST:.*]] = arith.divui %[[P]], %[[GX]]
// CHECK: %[[PY:.*]] = arith.remui %[[REST]], %[[GY]]
// CHECK: arith.muli %{{.*}}, %[[STRIDE]]
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: vector.broadcast %[[F]] : f32 to vector<16xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: llvm.store %{{.*}} : vector<16xf32>, !llvm.ptr
func.func @abi(%x: memref<?x32xf32, strided<[?, 1]>>, %y: memref<4x16xf32>, %f: f32) attributes {quant.kernel} {
  %p = quant.program_id x
  %q = quant.program_id y
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x32xf32, strided<[?, 1]>> -> tensor<1x16xf32>
  %b = quant.broadcast %f : f32 -> tensor<1x16xf32>
  %m = arith.mulf %t, %b : tensor<1x16xf32>
  quant.store %m, %y[%q, %c0] {in_bounds} : tensor<1x16xf32>, memref<4x16xf32>
  return
}

// Where a tile may reach outside, the elements that exist: as many as there is
// room for, none where the row is past the end, and then at an address that
// there is.
// CHECK-LABEL: func.func @masked(
// CHECK: %[[OUT:.*]] = arith.cmpi sle, %{{.*}}, %c0_i64
// CHECK: %[[N:.*]] = arith.select %[[OUT]], %c0_i64, %c12_i64
// CHECK: %[[N32:.*]] = arith.trunci %[[N]] : i64 to i32
// CHECK: %[[B:.*]] = vector.broadcast %[[N32]] : i32 to vector<16xi32>
// CHECK: %[[MASK:.*]] = arith.cmpi sgt, %[[B]], %{{.*}} : vector<16xi32>
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[N32]], %c0_i32
// CHECK: %[[AT:.*]] = arith.select %[[SOME]], %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK: llvm.intr.masked.load %[[AT]], %[[MASK]], %{{.*}} {alignment = 4 : i32}
// CHECK: %[[TO:.*]] = arith.select %{{.*}} : !llvm.ptr
// CHECK: llvm.intr.masked.store %{{.*}}, %[[TO]]
func.func @masked(%x: memref<?x12xf32>, %y: memref<?x12xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] : memref<?x12xf32> -> tensor<1x16xf32>
  quant.store %t, %y[%p, %c0] : tensor<1x16xf32>, memref<?x12xf32>
  return
}

// A column that the caller gives may lie before the first: the mask has two
// ends.
// CHECK-LABEL: func.func @before(
// CHECK: %[[FIRST:.*]] = arith.subi %c0_i64, %[[J:.*]] : i64
// CHECK: arith.cmpi sgt, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: arith.cmpi sle, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: arith.andi %{{.*}} : vector<16xi1>
// CHECK: llvm.intr.masked.load
func.func @before(%x: memref<4x16xf32>, %y: memref<4x16xf32>, %j: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %j] : memref<4x16xf32> -> tensor<1x16xf32>
  quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x16xf32>, memref<4x16xf32>
  return
}

// Two halves to a word, 16 words to a vector; codes of four bits two to a byte.
// CHECK-LABEL: func.func @words(
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi32>
// CHECK: quant.decode_words %{{.*}} {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
// CHECK: %[[Q:.*]] = quant.encode_words %{{.*}} {elem = f4E2M1FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
// CHECK: %[[W:.*]] = vector.extract %[[Q]][0]
// CHECK: %[[B:.*]] = arith.trunci %[[W]] : vector<16xi32> to vector<16xi8>
// CHECK: llvm.store %[[B]], %{{.*}} {alignment = 1 : i64} : vector<16xi8>
func.func @words(%x: memref<1x32xbf16>, %y: memref<1x32xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x32xbf16> -> tensor<1x32xbf16>
  %f = arith.extf %t : tensor<1x32xbf16> to tensor<1x32xf32>
  %q = quant.encode %f : tensor<1x32xf32> -> tensor<1x32xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<1x32xf4E2M1FN>, memref<1x32xf4E2M1FN>
  return
}

// An odd number of codes: the upper half of the last byte is zero.
// CHECK-LABEL: func.func @half_byte(
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<15> : vector<16xi8>
// CHECK: %[[AND:.*]] = arith.andi %{{.*}}, %[[LOW]] : vector<16xi8>
// CHECK: %[[V:.*]] = arith.select %{{.*}}, %[[AND]], %{{.*}} : vector<16xi1>, vector<16xi8>
// CHECK: llvm.intr.masked.store %[[V]]
func.func @half_byte(%x: memref<?x32xf32>, %y: memref<?x31xf4E2M1FN, strided<[32, 1]>>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] : memref<?x32xf32> -> tensor<1x32xf32>
  %q = quant.encode %t : tensor<1x32xf32> -> tensor<1x32xf4E2M1FN>
  quant.store %q, %y[%p, %c0] : tensor<1x32xf4E2M1FN>, memref<?x31xf4E2M1FN, strided<[32, 1]>>
  return
}

// E8M0 and its inverse; the mode goes along.
// CHECK-LABEL: func.func @e8m0(
// CHECK: quant.encode_words %{{.*}} {elem = f8E8M0FNU, group = 2 : i64, mode = #quant.e8m0_mode<floor>}
// CHECK: quant.e8m0_inverse_words %{{.*}} {group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
func.func @e8m0(%x: memref<1x32xf32>, %y: memref<1x32xf8E8M0FNU>, %z: memref<1x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x32xf32> -> tensor<1x32xf32>
  %e = quant.encode %t {mode = #quant.e8m0_mode<floor>} : tensor<1x32xf32> -> tensor<1x32xf8E8M0FNU>
  quant.store %e, %y[%c0, %c0] {in_bounds} : tensor<1x32xf8E8M0FNU>, memref<1x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<1x32xf8E8M0FNU> -> tensor<1x32xf32>
  quant.store %i, %z[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
  return
}

// A tile of one narrow number: E2M1 -1.5 is B, two to a word.
// CHECK-LABEL: func.func @narrow_constant(
// CHECK: %[[B:.*]] = arith.constant dense<-69> : vector<16xi8>
// CHECK: llvm.store %[[B]]
func.func @narrow_constant(%x: memref<1x32xf32>, %y: memref<1x32xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x32xf32> -> tensor<1x32xf32>
  %q = arith.constant dense<-1.5> : tensor<1x32xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<1x32xf4E2M1FN>, memref<1x32xf4E2M1FN>
  return
}

// Lanes are summed from the lowest bit up.
// CHECK-LABEL: func.func @lane_sum(
// CHECK: vector.shuffle %[[V:.*]], %[[V]] [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]
// CHECK: arith.addf
// CHECK: vector.shuffle {{.*}} [2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13]
// CHECK: arith.addf
// CHECK: vector.shuffle {{.*}} [4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11]
// CHECK: arith.addf
// CHECK: vector.shuffle {{.*}} [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: arith.addf
func.func @lane_sum(%x: memref<1x16xf32>, %y: memref<1x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x16xf32> -> tensor<1x16xf32>
  %s = quant.reduce sum %t axis 1 : tensor<1x16xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// Columns past the tile take what changes nothing: -0 in a sum, NaN in a
// minimum.
// CHECK-LABEL: func.func @padding(
// CHECK-DAG: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : vector<16xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[ZERO]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[NAN]]
// CHECK: arith.minnumf
func.func @padding(%x: memref<1x16xf32>, %y: memref<1x1xf32>, %z: memref<1x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x16xf32> -> tensor<1x12xf32>
  %s = quant.reduce sum %t axis 1 : tensor<1x12xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] {in_bounds} : tensor<1x1xf32>, memref<1x1xf32>
  %m = quant.reduce min %t axis 1 : tensor<1x12xf32> -> tensor<1x1xf32>
  quant.store %m, %z[%c0, %c0] {in_bounds} : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// Blocks reduce as they say: the maximum, not the magnitude.
// CHECK-LABEL: func.func @block_max(
// CHECK-NOT: math.absf
// CHECK: arith.maxnumf
func.func @block_max(%x: memref<1x64xf32>, %y: memref<1x4xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x64xf32> -> tensor<1x64xf32>
  %m = quant.block_reduce max %t block [1, 16] : tensor<1x64xf32> -> tensor<1x4xf32>
  quant.store %m, %y[%c0, %c0] {in_bounds} : tensor<1x4xf32>, memref<1x4xf32>
  return
}

// Four scales of a row lie together in the 128x4 order.
// CHECK-LABEL: func.func @swizzled(
// CHECK: %[[Q:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [4], strides = [1]} : vector<16xi8> to vector<4xi8>
// CHECK: scf.if
// CHECK-NEXT: llvm.store %[[Q]], %{{.*}} {alignment = 1 : i64} : vector<4xi8>
// CHECK: vector.extract_strided_slice %{{.*}} {offsets = [4]
func.func @swizzled(%x: memref<?x256xf32>, %y: memref<?x16xf8E4M3FN>, %m: index) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x256xf32> -> tensor<1x256xf32>
  %a = quant.block_reduce amax %t block [1, 16] : tensor<1x256xf32> -> tensor<1x16xf32>
  %e = quant.encode %a : tensor<1x16xf32> -> tensor<1x16xf8E4M3FN>
  quant.store %e, %y[%p, %c0] valid [%m, %c16] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<1x16xf8E4M3FN>, memref<?x16xf8E4M3FN>
  return
}

// One lane of those that hold copies updates memory.
// CHECK-LABEL: func.func @atomic(
// CHECK: %[[V:.*]] = vector.extract %{{.*}}[0] : f32 from vector<16xf32>
// CHECK: %[[W:.*]] = arith.bitcast %[[V]] : f32 to i32
// CHECK: %[[THERE:.*]] = llvm.load %[[P:.*]] atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32
// CHECK: %[[ABOVE:.*]] = arith.cmpi ult, %[[THERE]], %[[W]] : i32
// CHECK: scf.if %[[ABOVE]]
// CHECK-NEXT: llvm.atomicrmw umax %[[P]], %[[W]] monotonic : !llvm.ptr, i32
// CHECK-NOT: llvm.atomicrmw
func.func @atomic(%x: memref<1x16xf32>, %y: memref<f32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x16xf32> -> tensor<1x16xf32>
  %m = quant.reduce amax %t axis 1 : tensor<1x16xf32> -> tensor<1x1xf32>
  %s = quant.reshape %m : tensor<1x1xf32> -> tensor<f32>
  quant.atomic_max %s, %y[] : tensor<f32>, memref<f32>
  return
}

// A counter is added to once, and scalars follow from what it was.
// CHECK-LABEL: func.func @counter(
// CHECK: llvm.atomicrmw add %{{.*}}, %c8_i64 monotonic : !llvm.ptr, i64
// CHECK-NOT: llvm.atomicrmw
func.func @counter(%x: memref<1x16xf32>, %y: memref<?x16xf32>, %next: memref<i64>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x16xf32> -> tensor<1x16xf32>
  %first = quant.fetch_add %c8, %next : memref<i64>
  quant.store %t, %y[%first, %c0] : tensor<1x16xf32>, memref<?x16xf32>
  return
}

// Loops and branches carry registers.
// CHECK-LABEL: func.func @control(
// CHECK: scf.for {{.*}} -> (vector<16xf32>) {
// CHECK: scf.if {{.*}} -> (vector<16xf32>) {
func.func @control(%x: memref<8x16xf32>, %y: memref<1x16xf32>, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant dense<0.0> : tensor<1x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (tensor<1x16xf32>) {
    %t = quant.load %x[%i, %c0] : memref<8x16xf32> -> tensor<1x16xf32>
    %s = arith.addf %a, %t : tensor<1x16xf32>
    scf.yield %s : tensor<1x16xf32>
  }
  %p = arith.cmpi eq, %n, %c1 : index
  %u = scf.if %p -> (tensor<1x16xf32>) {
    %v = math.sqrt %r : tensor<1x16xf32>
    scf.yield %v : tensor<1x16xf32>
  } else {
    scf.yield %r : tensor<1x16xf32>
  }
  quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<1x16xf32>, memref<1x16xf32>
  return
}

// It must not touch functions that are no kernels.
// CHECK-LABEL: func.func @no_kernel(
// CHECK-SAME: memref<1x16xf32>
func.func @no_kernel(%x: memref<1x16xf32>) {
  return
}

// Scratch memory is one for all programs of a call.
// CHECK-LABEL: func.func @scratch(
// CHECK: %[[S:.*]] = llvm.alloca %c256_i64 x i8 {alignment = 64 : i64}
// CHECK: scf.for
// CHECK: %[[V:.*]] = llvm.load
// CHECK: llvm.store %[[V]], %[[S]]
// CHECK: %[[U:.*]] = llvm.load %[[S]]
// CHECK: arith.addf %[[V]], %[[U]]
func.func @scratch(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = quant.scratch : memref<1x64xf32>
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x64xf32> -> tensor<1x64xf32>
  quant.store %t, %s[%c0, %c0] {in_bounds} : tensor<1x64xf32>, memref<1x64xf32>
  %u = quant.load %s[%c0, %c0] {in_bounds} : memref<1x64xf32> -> tensor<1x64xf32>
  %v = arith.addf %t, %u : tensor<1x64xf32>
  quant.store %v, %y[%c0, %c0] {in_bounds} : tensor<1x64xf32>, memref<4x64xf32>
  return
}

// Memory of pairs holds the even and the odd columns as registers do.
// CHECK-LABEL: func.func @pairs(
// CHECK: %[[S:.*]] = llvm.alloca %c128_i64
// CHECK-NOT: vector.shuffle
// CHECK: llvm.store %{{.*}}, %[[S]]
// CHECK: %[[ODD:.*]] = llvm.getelementptr %[[S]][64]
// CHECK: llvm.store %{{.*}}, %[[ODD]]
// CHECK: llvm.load %[[S]]
// CHECK: llvm.load %[[ODD]]
// CHECK-NOT: vector.shuffle
// CHECK: quant.encode_words
func.func @pairs(%x: memref<4x32xf16>, %y: memref<4x32xf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = quant.scratch {pairs} : memref<1x32xf32>
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x32xf16> -> tensor<1x32xf16>
  %f = arith.extf %t : tensor<1x32xf16> to tensor<1x32xf32>
  quant.store %f, %s[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<1x32xf32>
  %u = quant.load %s[%c0, %c0] {in_bounds} : memref<1x32xf32> -> tensor<1x32xf32>
  %g = arith.truncf %u : tensor<1x32xf32> to tensor<1x32xf16>
  quant.store %g, %y[%c0, %c0] {in_bounds} : tensor<1x32xf16>, memref<4x32xf16>
  return
}

// What is too much for the stack lies in memory of the runtime, whose address
// follows the slots.
// CHECK-LABEL: func.func @large_scratch(
// CHECK-SAME: quant.shared_bytes = 65600 : i64
// CHECK: %[[A:.*]] = llvm.getelementptr %arg0[2] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[P:.*]] = llvm.load %[[A]]
// CHECK-DAG: %[[N:.*]] = llvm.getelementptr %[[P]][65536] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-DAG: llvm.alloca %c65536_i64 x i8
func.func @large_scratch(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %a = quant.scratch : memref<256x64xf32>
  %b = quant.scratch : memref<256x64xf32>
  %c = quant.scratch : memref<1x16xf32>
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x64xf32> -> tensor<1x64xf32>
  quant.store %t, %a[%c0, %c0] {in_bounds} : tensor<1x64xf32>, memref<256x64xf32>
  quant.store %t, %b[%c0, %c0] {in_bounds} : tensor<1x64xf32>, memref<256x64xf32>
  %u = quant.load %x[%c0, %c0] {in_bounds} : memref<4x64xf32> -> tensor<1x16xf32>
  quant.store %u, %c[%c0, %c0] {in_bounds} : tensor<1x16xf32>, memref<1x16xf32>
  return
}

// Maxima of bf16 are taken two at a time, in integers: an infinity or a NaN is
// the largest. Of products of finite values two codes make a word, and 64 bytes
// of codes one store.
// CHECK-LABEL: func.func @finite(
// CHECK: %[[W:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<16xi32>
// CHECK-NOT: decode_words
// CHECK: arith.maxsi %{{.*}} : vector<32xi16>
// CHECK: %[[M:.*]] = arith.maxsi %{{.*}} : vector<16xi32>
// CHECK: %[[C:.*]] = arith.cmpi uge, %[[M]], %{{.*}} : vector<16xi32>
// CHECK: %[[BITS:.*]] = vector.bitcast %[[C]] : vector<16xi1> to vector<1xi16>
// CHECK: scf.if
// CHECK: %[[SOURCE:.*]] = vector.broadcast %[[W]] : vector<16xi32> to vector<1x16xi32>
// CHECK: quant.scale_encode_words %[[SOURCE]], %{{.*}} {bounded, elem = f8E4M3FN}
// CHECK-NOT: encode_words
// CHECK: quant.scale_encode_words
// CHECK: %[[ALL:.*]] = vector.shuffle {{.*}} : vector<32xi16>, vector<32xi16>
// CHECK-NEXT: llvm.store %[[ALL]]
func.func @finite(%x: memref<4x64xbf16>, %y: memref<4x4xf32>, %n: memref<4x64xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x64xbf16> -> tensor<1x64xbf16>
  %f = arith.extf %t : tensor<1x64xbf16> to tensor<1x64xf32>
  %a = quant.block_reduce amax %f block [1, 32] {amax_bits} : tensor<1x64xf32> -> tensor<1x2xf32>
  %p = quant.has_special %a : tensor<1x2xf32>
  scf.if %p {
    quant.store %a, %y[%c0, %c0] : tensor<1x2xf32>, memref<4x4xf32>
  }
  %b = quant.block_broadcast %a block [1, 32] : tensor<1x2xf32> -> tensor<1x64xf32>
  %e = quant.scale_encode %f, %b {finite, bounded} : tensor<1x64xf32> -> tensor<1x64xf8E4M3FN>
  quant.store %e, %n[%c0, %c0] {in_bounds} : tensor<1x64xf8E4M3FN>, memref<4x64xf8E4M3FN>
  return
}

// Without a promise any product may be infinite or NaN.
// CHECK-LABEL: func.func @scale_encode(
// CHECK: %[[P:.*]] = arith.mulf
// CHECK-NOT: scale_encode_words
// CHECK: quant.encode_words %{{.*}} {elem = f8E4M3FN, group = 2 : i64}
// CHECK-NOT: scale_encode_words
func.func @scale_encode(%x: memref<4x64xbf16>, %f: memref<4x64xf32>, %n: memref<4x64xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x64xbf16> -> tensor<1x64xbf16>
  %w = arith.extf %t : tensor<1x64xbf16> to tensor<1x64xf32>
  %s = quant.load %f[%c0, %c0] {in_bounds} : memref<4x64xf32> -> tensor<1x64xf32>
  %e = quant.scale_encode %w, %s : tensor<1x64xf32> -> tensor<1x64xf8E4M3FN>
  quant.store %e, %n[%c0, %c0] {in_bounds} : tensor<1x64xf8E4M3FN>, memref<4x64xf8E4M3FN>
  return
}

// Where the output has 4 MB or more, a line of it is stored past the caches, and
// a fence ends the call. Rows of 64 bytes begin lines where the first one does.
// CHECK-LABEL: func.func @stream(
// CHECK-DAG: %[[BITS:.*]] = arith.constant 33554432 : i64
// CHECK: %[[LARGE:.*]] = arith.cmpi sge, %{{.*}}, %[[BITS]] : i64
// CHECK: %[[INT:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr to i64
// CHECK-NEXT: %[[LOW:.*]] = arith.andi %[[INT]], %c63_i64
// CHECK: %[[LINE:.*]] = arith.cmpi eq, %[[LOW]], %c0_i64
// CHECK: %[[BOTH:.*]] = arith.andi %[[LARGE]], %[[LINE]]
// CHECK: scf.for
// CHECK: %[[V:.*]] = llvm.load %[[P:.*]] {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: llvm.store %[[V]], %[[Q:.*]] {alignment = 64 : i64, nontemporal}
// CHECK-NEXT: } else {
// CHECK-NEXT: llvm.store %[[V]], %[[Q]] {alignment = 4 : i64}
// CHECK: llvm.call_intrinsic "llvm.x86.sse.sfence"()
// CHECK-NEXT: return
func.func @stream(%x: memref<?x16xf32>, %y: memref<?x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<?x16xf32> -> tensor<1x16xf32>
  quant.store %t, %y[%c0, %c0] {in_bounds, stream} : tensor<1x16xf32>, memref<?x16xf32>
  return
}

// Where the column may be anything each line is asked for.
// CHECK-LABEL: func.func @anywhere(
// CHECK: scf.for
// CHECK: llvm.load
// CHECK: %[[INT:.*]] = llvm.ptrtoint %[[Q:.*]] : !llvm.ptr to i64
// CHECK: scf.if
// CHECK-NEXT: llvm.store %{{.*}}, %[[Q]] {alignment = 64 : i64, nontemporal}
func.func @anywhere(%x: memref<?x1024xf32>, %y: memref<?x1024xf32>, %i: i64) attributes {quant.kernel} {
  %c = arith.index_cast %i : i64 to index
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c] {in_bounds} : memref<?x1024xf32> -> tensor<1x16xf32>
  quant.store %t, %y[%c0, %c] {in_bounds, stream} : tensor<1x16xf32>, memref<?x1024xf32>
  return
}

// Each line that the tile lies in: 96 bytes of bf16 are two, in each of the rows.
// CHECK-LABEL: func.func @prefetch(
// CHECK: %[[P:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT: "llvm.intr.prefetch"(%[[P]]) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK-COUNT-3: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
func.func @prefetch(%x: memref<?x48xbf16>, %i: i64) attributes {quant.kernel} {
  %r = arith.index_cast %i : i64 to index
  %c0 = arith.constant 0 : index
  quant.prefetch %x[%r, %c0] [2, 48] : memref<?x48xbf16>
  return
}
