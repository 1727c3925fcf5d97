// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=ptx | FileCheck %s
// RUN: sed 's/num_threads = 32/num_threads = 1/; s/ptr<1>/ptr/g' %s | dither-compile - --from=distributed --target=host:base --emit=llvmir | FileCheck %s --check-prefix=HOST

// The five bits of a lane in reverse order are the upper ones of a word that is
// turned around; a GPU has no instruction for fewer than 32. On a CPU nothing is
// widened.
// CHECK-LABEL: .entry lanes(
// CHECK: brev.b32 [[R:%r[0-9]+]], {{%r[0-9]+}};
// CHECK-NEXT: shr.u32 {{%r[0-9]+}}, [[R]], 27;
// CHECK-NOT: shl.b
// CHECK: ret;
// HOST-LABEL: define {{.*}}@lanes(
// HOST: call i5 @llvm.bitreverse.i5
func.func @lanes(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %t = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %b0 = arith.andi %t, %c1 : i32
  %b1 = arith.andi %t, %c2 : i32
  %b2 = arith.andi %t, %c4 : i32
  %t2 = arith.shrui %t, %c2 : i32
  %t4 = arith.shrui %t, %c4 : i32
  %a1 = arith.andi %t2, %c2 : i32
  %a0 = arith.andi %t4, %c1 : i32
  %a4 = arith.shli %b0, %c4 : i32
  %a3 = arith.shli %b1, %c2 : i32
  %o = arith.ori %a0, %a1 : i32
  %p = arith.ori %o, %b2 : i32
  %q = arith.ori %p, %a3 : i32
  %r = arith.ori %q, %a4 : i32
  llvm.store %r, %y {alignment = 4 : i64} : i32, !llvm.ptr<1>
  return
}
