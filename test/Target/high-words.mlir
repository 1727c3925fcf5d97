// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=llvmir | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX

// Whether numbers are below 2^32 is asked of their upper halves alone.
// CHECK-LABEL: define {{.*}}void @below
// CHECK-COUNT-2: call i32 asm "{ .reg .b32 l; mov.b64 {l, $0}, $1; }"
// CHECK: %[[ANY:.*]] = or i32
// CHECK: icmp eq i32 %[[ANY]], 0
// CHECK: ret void
// PTX-LABEL: .entry below
// PTX-NOT: setp.lt.u64
// PTX: ret;
func.func @below(%x: i64, %y: i64, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["i64", "i64", "ptr"]} {
  %limit = arith.constant 4294967296 : i64
  %any = arith.ori %x, %y : i64
  %below = arith.cmpi ult, %any, %limit : i64
  %bit = arith.extui %below : i1 to i32
  llvm.store %bit, %out : i32, !llvm.ptr<1>
  return
}

// Other limits are compared with as they are.
// CHECK-LABEL: define {{.*}}void @other
// CHECK-NOT: asm
// CHECK: icmp ult i64 %{{.*}}, 4294967297
// CHECK: ret void
func.func @other(%x: i64, %y: i64, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["i64", "i64", "ptr"]} {
  %limit = arith.constant 4294967297 : i64
  %any = arith.ori %x, %y : i64
  %below = arith.cmpi ult, %any, %limit : i64
  %bit = arith.extui %below : i1 to i32
  llvm.store %bit, %out : i32, !llvm.ptr<1>
  return
}
