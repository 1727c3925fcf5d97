// RUN: split-file %s %t
// RUN: dither-compile %t/gpu.mlir --from=distributed --target=sm_90a --emit=llvmir | FileCheck %t/gpu.mlir
// RUN: dither-compile %t/gpu.mlir --from=distributed --target=sm_90a --emit=ptx | FileCheck %t/gpu.mlir --check-prefix=PTX
// RUN: dither-compile %t/host.mlir --from=distributed --target=host:base --emit=llvmir | FileCheck %t/host.mlir

//--- gpu.mlir
// A block has 128 threads. The elements e and e + 512 have one address in each
// tensor, with a distance of 1024 bytes in one of 16 bits, 256 in one of 4. Of
// e + 513 the codes of 4 bits have no distance in whole bytes from those of e:
// an address of its own stays.
// CHECK-LABEL: define {{.*}}void @k
// CHECK: call {{.*}}range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
// CHECK-NOT: or disjoint
// CHECK-DAG: %[[IN:.*]] = getelementptr i8, ptr addrspace(1) %0, i64 %{{.*}}
// CHECK-DAG: load i32, ptr addrspace(1) %[[IN]]
// CHECK-DAG: %[[FAR:.*]] = getelementptr i8, ptr addrspace(1) %[[IN]], i64 1024
// CHECK-DAG: load i32, ptr addrspace(1) %[[FAR]]
// CHECK-DAG: %[[OUT:.*]] = getelementptr i8, ptr addrspace(1) %1, i64 %{{.*}}
// CHECK-DAG: getelementptr i8, ptr addrspace(1) %[[OUT]], i64 256
// CHECK-DAG: %[[G:.*]] = add nuw nsw i64 %{{.*}}, 513
// CHECK-DAG: %[[ODD:.*]] = lshr i64 %[[G]], 1
// CHECK-DAG: getelementptr i8, ptr addrspace(1) %1, i64 %[[ODD]]
// CHECK-NOT: or disjoint
// CHECK: ret void
// PTX: ld.global.b32 %{{.*}}, [%[[A:rd[0-9]+]]];
// PTX: ld.global.b8 %{{.*}}, [%[[A]]+1024];
// PTX: st.global.b8 [%[[C:rd[0-9]+]]], {{.*}}
// PTX: st.global.b8 [%[[C]]+256], {{.*}}
func.func @k(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %c1 = arith.constant 1 : i64
  %c512 = arith.constant 512 : i64
  %c513 = arith.constant 513 : i64
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %wide = arith.extui %thread : i32 to i64
  %c64 = arith.constant 64 : i64
  %c31 = arith.constant 31 : i64
  %inner = arith.andi %wide, %c31 : i64
  %outer = arith.subi %wide, %inner : i64
  %row = arith.muli %outer, %c64 : i64
  %e = arith.addi %row, %inner : i64
  %f = arith.addi %e, %c512 : i64
  %g = arith.addi %e, %c513 : i64
  %e2 = arith.shli %e, %c1 : i64
  %f2 = arith.shli %f, %c1 : i64
  %pe = llvm.getelementptr %in[%e2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %pf = llvm.getelementptr %in[%f2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x = llvm.load %pe {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %y = llvm.load %pf {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %xb = arith.trunci %x : i32 to i8
  %yb = arith.trunci %y : i32 to i8
  %e4 = arith.shrsi %e, %c1 : i64
  %f4 = arith.shrsi %f, %c1 : i64
  %g4 = arith.shrsi %g, %c1 : i64
  %qe = llvm.getelementptr %out[%e4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %qf = llvm.getelementptr %out[%f4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %qg = llvm.getelementptr %out[%g4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  llvm.store %xb, %qe {alignment = 1 : i64} : i8, !llvm.ptr<1>
  llvm.store %yb, %qf {alignment = 1 : i64} : i8, !llvm.ptr<1>
  llvm.store %yb, %qg {alignment = 1 : i64} : i8, !llvm.ptr<1>
  return
}

// Of 8 bits a distance is one of elements.
// CHECK-LABEL: define {{.*}}void @bytes
// CHECK: %[[AT:.*]] = getelementptr i8, ptr addrspace(1) %1, i64 %{{.*}}
// CHECK: %[[NEXT:.*]] = getelementptr i8, ptr addrspace(1) %[[AT]], i64 512
// CHECK: store i8 %{{.*}}, ptr addrspace(1) %[[AT]]
// CHECK: store i8 %{{.*}}, ptr addrspace(1) %[[NEXT]]
// CHECK: ret void
// PTX-LABEL: .entry bytes(
// PTX: st.global.b8 [%[[B:rd[0-9]+]]], {{.*}}
// PTX: st.global.b8 [%[[B]]+512], {{.*}}
func.func @bytes(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 128 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %c1 = arith.constant 1 : i64
  %c10 = arith.constant 10 : i64
  %c512 = arith.constant 512 : i64
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %wide = arith.extui %thread : i32 to i64
  %program = arith.extui %block : i32 to i64
  %row = arith.shli %program, %c10 : i64
  %e = arith.addi %row, %wide : i64
  %f = arith.addi %e, %c512 : i64
  %e2 = arith.shli %e, %c1 : i64
  %f2 = arith.shli %f, %c1 : i64
  %pe = llvm.getelementptr %in[%e2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %pf = llvm.getelementptr %in[%f2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x = llvm.load %pe {alignment = 1 : i64} : !llvm.ptr<1> -> i8
  %y = llvm.load %pf {alignment = 1 : i64} : !llvm.ptr<1> -> i8
  %qe = llvm.getelementptr %out[%e] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %qf = llvm.getelementptr %out[%f] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  llvm.store %x, %qe {alignment = 1 : i64} : i8, !llvm.ptr<1>
  llvm.store %y, %qf {alignment = 1 : i64} : i8, !llvm.ptr<1>
  return
}

//--- host.mlir
// Instructions of a CPU have room for more of an address.
// CHECK-LABEL: define {{.*}}void @k
// CHECK: %[[F:.*]] = add i64 %[[E:.*]], 512
// CHECK: %[[BYTES:.*]] = shl i64 %[[F]], 1
// CHECK: getelementptr i8, ptr %{{.*}}, i64 %[[BYTES]]
func.func @k(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %p = llvm.load %slots {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %e = llvm.load %p {alignment = 8 : i64} : !llvm.ptr -> i64
  %c1 = arith.constant 1 : i64
  %c512 = arith.constant 512 : i64
  %f = arith.addi %e, %c512 : i64
  %f2 = arith.shli %f, %c1 : i64
  %q = llvm.getelementptr %p[%f2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.store %f, %q {alignment = 1 : i64} : i64, !llvm.ptr
  return
}
