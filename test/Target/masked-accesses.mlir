// RUN: dither-compile %s --from=distributed --target=host:avx512 --emit=llvmir | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=host:avx512 --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: dither-compile %s --from=distributed --target=host:avx2 --emit=llvmir | FileCheck %s --check-prefix=AVX2
// REQUIRES: x86_64

// What a mask that is constant selects is stored by plain stores; masked loads
// stay; the value of any other narrow masked store is opaque to LLVM
// (docs/llvm-bugs.md).

// CHECK-LABEL: define void @accesses
// CHECK-NOT: masked.store
// A prefix of 7 lanes.
// CHECK: %[[WORDS:.*]] = load <16 x i32>
// CHECK: %[[BYTES:.*]] = trunc <16 x i32> %[[WORDS]] to <16 x i8>
// CHECK: %[[P0:.*]] = shufflevector <16 x i8> %[[BYTES]], <16 x i8> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
// CHECK: store <4 x i8> %[[P0]], ptr %[[TO:.*]], align 2
// CHECK: %[[P1:.*]] = shufflevector <16 x i8> %[[BYTES]], <16 x i8> poison, <2 x i32> <i32 4, i32 5>
// CHECK: %[[A1:.*]] = getelementptr i8, ptr %[[TO]], i64 4
// CHECK: store <2 x i8> %[[P1]], ptr %[[A1]], align 2
// CHECK: %[[P2:.*]] = extractelement <16 x i8> %[[BYTES]], i64 6
// CHECK: %[[A2:.*]] = getelementptr i8, ptr %[[TO]], i64 6
// CHECK: store i8 %[[P2]], ptr %[[A2]], align 2
// A lane in the middle.
// CHECK: %[[LANE:.*]] = extractelement <16 x i8> %[[BYTES]], i64 3
// CHECK: store i8 %[[LANE]]
// No lane: nothing. Three lanes of a load.
// CHECK: call <16 x float> @llvm.masked.load.v16f32
// A mask that is known at run time only.
// CHECK: %[[OPAQUE:.*]] = call <16 x i8> asm "", "=v,0"(<16 x i8> %[[BYTES]])
// CHECK: call void @llvm.masked.store.v16i8.p0(<16 x i8> %[[OPAQUE]]
// CHECK: call <16 x i8> asm "", "=v,0"
// CHECK: call void @llvm.masked.store.v4i8
// CHECK: call <16 x i32> asm "", "=v,0"
// CHECK: call void @llvm.masked.store.v16i32
// Floats are not truncated.
// CHECK-NOT: asm
// CHECK: call void @llvm.masked.store.v16f32

// ASM-LABEL: accesses:
// ASM-NOT: vpmovdb {{.*}}(%r{{.*}} {%k
// ASM: vmovdqu8 %xmm{{[0-9]+}}, (%{{.*}}) {%k
// ASM-NOT: vpmovdb {{.*}}(%r{{.*}} {%k

// AVX2 has no such stores of bytes: LLVM makes them scalar. Its stores of words
// truncate nothing, and no register holds 16 words.
// AVX2-NOT: asm
// AVX2: call void @llvm.masked.store.v16i32
// AVX2-NOT: asm
func.func @accesses(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %in = llvm.load %slots : !llvm.ptr -> !llvm.ptr
  %s1 = llvm.getelementptr %slots[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %out = llvm.load %s1 : !llvm.ptr -> !llvm.ptr
  %words = llvm.load %in {alignment = 4 : i64} : !llvm.ptr -> vector<16xi32>
  %bytes = arith.trunci %words : vector<16xi32> to vector<16xi8>
  %index = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
  %seven = arith.constant dense<7> : vector<16xi32>
  %prefix = arith.cmpi slt, %index, %seven : vector<16xi32>
  llvm.intr.masked.store %bytes, %out, %prefix {alignment = 2 : i32} : vector<16xi8>, vector<16xi1> into !llvm.ptr
  %three = arith.constant dense<3> : vector<16xi32>
  %lane = arith.cmpi eq, %index, %three : vector<16xi32>
  llvm.intr.masked.store %bytes, %out, %lane {alignment = 1 : i32} : vector<16xi8>, vector<16xi1> into !llvm.ptr
  %zero = arith.constant dense<0> : vector<16xi32>
  %no = arith.cmpi slt, %index, %zero : vector<16xi32>
  llvm.intr.masked.store %bytes, %out, %no {alignment = 1 : i32} : vector<16xi8>, vector<16xi1> into !llvm.ptr
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %lanes3 = arith.cmpi slt, %index, %three : vector<16xi32>
  %f = llvm.intr.masked.load %in, %lanes3, %zeros {alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
  %end32 = arith.trunci %end : i64 to i32
  %limit = vector.broadcast %end32 : i32 to vector<16xi32>
  %some = arith.cmpi slt, %index, %limit : vector<16xi32>
  llvm.intr.masked.store %bytes, %out, %some {alignment = 1 : i32} : vector<16xi8>, vector<16xi1> into !llvm.ptr
  %quad = vector.extract_strided_slice %bytes {offsets = [4], sizes = [4], strides = [1]} : vector<16xi8> to vector<4xi8>
  %some4 = vector.extract_strided_slice %some {offsets = [0], sizes = [4], strides = [1]} : vector<16xi1> to vector<4xi1>
  llvm.intr.masked.store %quad, %out, %some4 {alignment = 1 : i32} : vector<4xi8>, vector<4xi1> into !llvm.ptr
  llvm.intr.masked.store %words, %out, %some {alignment = 4 : i32} : vector<16xi32>, vector<16xi1> into !llvm.ptr
  llvm.intr.masked.store %f, %out, %some {alignment = 4 : i32} : vector<16xf32>, vector<16xi1> into !llvm.ptr
  return
}
