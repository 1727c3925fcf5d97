// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=llvmir | FileCheck %s

// An exchange ends with a barrier, for the next one to find the memory free.
// After the last one what follows reads what nobody writes, and stores where
// nobody was: nobody is waited for.
// CHECK-LABEL: define {{.*}}void @last(
// CHECK: store i32 %{{.*}}, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK-NOT: barrier
// CHECK: %[[AT:.*]] = getelementptr i32, ptr addrspace(1) %1
// CHECK: store i32 %{{.*}}, ptr addrspace(1) %[[AT]]
// CHECK: ret void
llvm.mlir.global internal @last_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
func.func @last(%x: !llvm.ptr<1> {llvm.noalias}, %y: !llvm.ptr<1> {llvm.noalias})
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 512 : i64,
                quant.params = ["ptr", "ptr"]} {
  %c127 = arith.constant 127 : i32
  %shared = llvm.mlir.addressof @last_shared : !llvm.ptr<3>
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %other = arith.xori %thread, %c127 : i32
  %from = llvm.getelementptr %x[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %v = llvm.load %from : !llvm.ptr<1> -> i32
  %mine = llvm.getelementptr %shared[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  llvm.store %v, %mine : i32, !llvm.ptr<3>
  nvvm.barrier0
  %its = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %w = llvm.load %its : !llvm.ptr<3> -> i32
  nvvm.barrier0
  %to = llvm.getelementptr %y[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %w, %to : i32, !llvm.ptr<1>
  return
}

// Stored where others have read since the barrier before: after all have.
// CHECK-LABEL: define {{.*}}void @in_place(
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(1) %0
// CHECK: load i32, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: %[[AT:.*]] = getelementptr i32, ptr addrspace(1) %0
// CHECK: store i32 %{{.*}}, ptr addrspace(1) %[[AT]]
// CHECK: ret void
llvm.mlir.global internal @in_place_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
func.func @in_place(%x: !llvm.ptr<1> {llvm.noalias})
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 512 : i64,
                quant.params = ["ptr"]} {
  %c127 = arith.constant 127 : i32
  %shared = llvm.mlir.addressof @in_place_shared : !llvm.ptr<3>
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %other = arith.xori %thread, %c127 : i32
  %mine = llvm.getelementptr %shared[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  llvm.store %other, %mine : i32, !llvm.ptr<3>
  nvvm.barrier0
  %v = llvm.load %x : !llvm.ptr<1> -> i32
  %its = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %w = llvm.load %its : !llvm.ptr<3> -> i32
  %sum = arith.addi %v, %w : i32
  nvvm.barrier0
  %to = llvm.getelementptr %x[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %sum, %to : i32, !llvm.ptr<1>
  return
}

// Others have read it before the first of two barriers: that is enough.
// CHECK-LABEL: define {{.*}}void @read_before(
// CHECK: load i32, ptr addrspace(1) %{{.*}}
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK-NOT: barrier
// CHECK: store i32 %{{.*}}, ptr addrspace(1)
// CHECK: ret void
llvm.mlir.global internal @read_before_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
func.func @read_before(%x: !llvm.ptr<1> {llvm.noalias})
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 512 : i64,
                quant.params = ["ptr"]} {
  %c127 = arith.constant 127 : i32
  %shared = llvm.mlir.addressof @read_before_shared : !llvm.ptr<3>
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %other = arith.xori %thread, %c127 : i32
  %from = llvm.getelementptr %x[%other] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %v = llvm.load %from : !llvm.ptr<1> -> i32
  %mine = llvm.getelementptr %shared[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  llvm.store %v, %mine : i32, !llvm.ptr<3>
  nvvm.barrier0
  %its = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %w = llvm.load %its : !llvm.ptr<3> -> i32
  nvvm.barrier0
  %to = llvm.getelementptr %x[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %w, %to : i32, !llvm.ptr<1>
  return
}

// Two exchanges in words that lie beside each other, round after round: one
// barrier for each, of which the second frees what the first one took.
// CHECK-LABEL: define {{.*}}void @beside(
// CHECK: store i32 %{{.*}}, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK-NOT: barrier
// CHECK: store i32 %{{.*}}, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK-NOT: barrier
// CHECK: ret void
llvm.mlir.global internal @beside_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
func.func @beside(%x: !llvm.ptr<1> {llvm.noalias}, %y: !llvm.ptr<1> {llvm.noalias}, %n: i32)
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 1024 : i64,
                quant.params = ["ptr", "ptr", "i32"]} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %first = llvm.mlir.addressof @beside_shared : !llvm.ptr<3>
  %second = llvm.getelementptr %first[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %other = arith.xori %thread, %c127 : i32
  %mine = llvm.getelementptr %first[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %its = llvm.getelementptr %first[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %mine2 = llvm.getelementptr %second[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %its2 = llvm.getelementptr %second[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = arith.muli %i, %c127 : i32
    %place = arith.addi %at, %thread : i32
    %from = llvm.getelementptr %x[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %from : !llvm.ptr<1> -> i32
    llvm.store %v, %mine : i32, !llvm.ptr<3>
    nvvm.barrier0
    %w = llvm.load %its : !llvm.ptr<3> -> i32
    nvvm.barrier0
    %s = arith.addi %v, %w : i32
    llvm.store %s, %mine2 : i32, !llvm.ptr<3>
    nvvm.barrier0
    %t = llvm.load %its2 : !llvm.ptr<3> -> i32
    nvvm.barrier0
    %to = llvm.getelementptr %y[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %to : i32, !llvm.ptr<1>
  }
  return
}

// The last word of one is the first of the other.
// CHECK-LABEL: define {{.*}}void @overlap(
// CHECK: store i32 %{{.*}}, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: store i32 %{{.*}}, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK-NOT: barrier
// CHECK: ret void
llvm.mlir.global internal @overlap_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
func.func @overlap(%x: !llvm.ptr<1> {llvm.noalias}, %y: !llvm.ptr<1> {llvm.noalias})
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 1024 : i64,
                quant.params = ["ptr", "ptr"]} {
  %c127 = arith.constant 127 : i32
  %first = llvm.mlir.addressof @overlap_shared : !llvm.ptr<3>
  %second = llvm.getelementptr %first[508] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %other = arith.xori %thread, %c127 : i32
  %mine = llvm.getelementptr %first[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %its = llvm.getelementptr %first[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %mine2 = llvm.getelementptr %second[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %its2 = llvm.getelementptr %second[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %from = llvm.getelementptr %x[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %v = llvm.load %from : !llvm.ptr<1> -> i32
  llvm.store %v, %mine : i32, !llvm.ptr<3>
  nvvm.barrier0
  %w = llvm.load %its : !llvm.ptr<3> -> i32
  nvvm.barrier0
  %s = arith.addi %v, %w : i32
  llvm.store %s, %mine2 : i32, !llvm.ptr<3>
  nvvm.barrier0
  %t = llvm.load %its2 : !llvm.ptr<3> -> i32
  nvvm.barrier0
  %to = llvm.getelementptr %y[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %t, %to : i32, !llvm.ptr<1>
  return
}

// In a loop of one exchange the next round stores to the memory.
// CHECK-LABEL: define {{.*}}void @rounds(
// CHECK: store i32 %{{.*}}, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load i32, ptr addrspace(3)
// CHECK: call void @llvm.nvvm.barrier
// CHECK: ret void
llvm.mlir.global internal @rounds_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
func.func @rounds(%x: !llvm.ptr<1> {llvm.noalias}, %y: !llvm.ptr<1> {llvm.noalias}, %n: i32)
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 512 : i64,
                quant.params = ["ptr", "ptr", "i32"]} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %shared = llvm.mlir.addressof @rounds_shared : !llvm.ptr<3>
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %other = arith.xori %thread, %c127 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = arith.muli %i, %c127 : i32
    %place = arith.addi %at, %thread : i32
    %from = llvm.getelementptr %x[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %from : !llvm.ptr<1> -> i32
    %mine = llvm.getelementptr %shared[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %v, %mine : i32, !llvm.ptr<3>
    nvvm.barrier0
    %its = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %w = llvm.load %its : !llvm.ptr<3> -> i32
    nvvm.barrier0
    %to = llvm.getelementptr %y[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %w, %to : i32, !llvm.ptr<1>
  }
  return
}
