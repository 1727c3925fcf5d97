// RUN: dither-compile %s --from=distributed --target=host:avx2 --emit=llvmir | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=host:base --emit=llvmir | FileCheck %s --check-prefix=BASE
// RUN: dither-compile %s --from=distributed --target=host:avx512 --emit=llvmir | FileCheck %s --check-prefix=AVX512
// REQUIRES: x86_64

// A CPU without masked accesses of narrow elements takes the whole vector where
// all lanes are set, and a loop over those that are set where some are. The
// lanes of a mask are counted once.

// CHECK-LABEL: define void @narrow
// CHECK: %[[BUFFER:.*]] = alloca [32 x i8], align 16
// CHECK: %[[LANES:.*]] = bitcast <16 x i1> %{{.*}} to i16
// CHECK: %[[BITS:.*]] = zext i16 %[[LANES]] to i32
// CHECK: icmp eq i32 %[[BITS]], 65535
// CHECK: %[[WHOLE:.*]] = load <16 x i16>, ptr %[[IN:.*]], align 2
// CHECK: store <16 x i16> zeroinitializer, ptr %[[BUFFER]], align 16
// CHECK: icmp eq i32 %[[BITS]], 0
// CHECK: %[[LEFT:.*]] = phi i32 [ %[[BITS]], %{{.*}} ], [ %[[NEXT:.*]], %{{.*}} ]
// CHECK: call i32 @llvm.cttz.i32(i32 %[[LEFT]], i1 true)
// CHECK: load i16, ptr %{{.*}}, align 1
// CHECK: store i16 %{{.*}}, ptr %{{.*}}, align 1
// CHECK: %[[NEXT]] = and i32 %[[LEFT]], %{{.*}}
// CHECK: %[[SOME:.*]] = load <16 x i16>, ptr %[[BUFFER]], align 16
// CHECK: phi <16 x i16> [ %[[WHOLE]], %{{.*}} ], [ %[[SOME]], %{{.*}} ]
// CHECK: icmp eq i32 %[[BITS]], 65535
// CHECK: store <16 x i16>
// CHECK: cttz
// CHECK: ret void

// BASE-LABEL: define void @narrow
// BASE-NOT: masked
// BASE: ret void

// AVX512-LABEL: define void @narrow
// AVX512-NOT: cttz
// AVX512: masked.load
// AVX512: masked.store
// AVX512: ret void
func.func @narrow(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %in = llvm.load %slots : !llvm.ptr -> !llvm.ptr
  %s1 = llvm.getelementptr %slots[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %out = llvm.load %s1 : !llvm.ptr -> !llvm.ptr
  %index = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
  %end32 = arith.trunci %end : i64 to i32
  %limit = vector.broadcast %end32 : i32 to vector<16xi32>
  %some = arith.cmpi slt, %index, %limit : vector<16xi32>
  %zeros = arith.constant dense<0> : vector<16xi16>
  %v = llvm.intr.masked.load %in, %some, %zeros {alignment = 2 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xi16>) -> vector<16xi16>
  llvm.intr.masked.store %v, %out, %some {alignment = 2 : i32} : vector<16xi16>, vector<16xi1> into !llvm.ptr
  return
}

// What AVX2 has an instruction for stays, and so does a constant mask. Two lanes
// are stored where they belong, or to the buffer.

// CHECK-LABEL: define void @others
// CHECK-NOT: cttz
// CHECK: masked.load.v16f32
// CHECK: masked.store.v16i16
// CHECK: %[[SET0:.*]] = trunc i32 %{{.*}} to i1
// CHECK: %[[AT0:.*]] = select i1 %[[SET0]], ptr %{{.*}}, ptr %{{.*}}
// CHECK: store i16 %{{.*}}, ptr %[[AT0]], align 1
// CHECK: select i1
// CHECK: store i16
// CHECK: masked.store.v16f32
// CHECK: ret void
func.func @others(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %in = llvm.load %slots : !llvm.ptr -> !llvm.ptr
  %s1 = llvm.getelementptr %slots[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %out = llvm.load %s1 : !llvm.ptr -> !llvm.ptr
  %index = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
  %end32 = arith.trunci %end : i64 to i32
  %limit = vector.broadcast %end32 : i32 to vector<16xi32>
  %some = arith.cmpi slt, %index, %limit : vector<16xi32>
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %v = llvm.intr.masked.load %in, %some, %zeros {alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
  %halves = llvm.load %in {alignment = 2 : i64} : !llvm.ptr -> vector<16xi16>
  %three = arith.constant dense<3> : vector<16xi32>
  %known = arith.cmpi slt, %index, %three : vector<16xi32>
  llvm.intr.masked.store %halves, %out, %known {alignment = 2 : i32} : vector<16xi16>, vector<16xi1> into !llvm.ptr
  %pair = vector.extract_strided_slice %halves {offsets = [0], sizes = [2], strides = [1]} : vector<16xi16> to vector<2xi16>
  %some2 = vector.extract_strided_slice %some {offsets = [0], sizes = [2], strides = [1]} : vector<16xi1> to vector<2xi1>
  llvm.intr.masked.store %pair, %out, %some2 {alignment = 2 : i32} : vector<2xi16>, vector<2xi1> into !llvm.ptr
  llvm.intr.masked.store %v, %out, %some {alignment = 4 : i32} : vector<16xf32>, vector<16xi1> into !llvm.ptr
  return
}
