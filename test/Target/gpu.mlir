// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: dither-compile %s --from=distributed --target=sm_90a | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=info | FileCheck %s --check-prefix=INFO
// RUN: %if ptxas %{ dither-compile %s --from=distributed --target=sm_90a -o %t.ptx && %ptxas -arch=sm_90a %t.ptx -o %t.cubin %}

// One warp: the row sum of 32 lanes with 4 registers each, and x / (sum * x + 1).

// INFO: scale: target sm_90a, threads 32, shared 128, params (ptr, ptr, i64, f32)

// LLVM: llvm.mlir.global internal @scale_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x i8>
// LLVM: llvm.func @scale(%{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias}
// LLVM-SAME: nvvm.kernel, nvvm.reqntid = array<i32: 32>
// LLVM-NOT: builtin.unrealized_conversion_cast

// CHECK: .version 8.4
// CHECK: .target sm_90a
// CHECK: .visible .entry scale(
// CHECK-NEXT: .param .u64 .ptr .global .align 16 scale_param_0,
// CHECK-NEXT: .param .u64 .ptr .global .align 16 scale_param_1,
// CHECK-NEXT: .param .u64 scale_param_2,
// CHECK-NEXT: .param .f32 scale_param_3
// CHECK: .reqntid 32
// CHECK-NEXT: .minnctapersm 16
// CHECK: .shared .align 16 .b8 scale_shared[128]
// CHECK: ld.global{{(\.nc)?}}.v4.b32
// A product and a sum stay two roundings: ptxas contracts mul and add, but
// never mul.rn and add.rn.
// CHECK-NOT: {{(mul|add|sub)}}.f32
// CHECK: shfl.sync.bfly.b32
// CHECK: st.shared
// CHECK: bar.sync 0
// CHECK: mul.rn.f32
// CHECK-NOT: fma.rn
// CHECK: add.rn.f32
// CHECK: fma.rn.f32
// CHECK: sqrt.rn.f32
// CHECK: div.rn.f32
// CHECK: st.global.v4.b32

// SM80: .version 7.8
// SM80: .target sm_80
llvm.mlir.global internal @scale_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x i8>
func.func @scale(%in: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias},
                 %out: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias}, %n: i64, %factor: f32)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 128 : i64,
                quant.params = ["ptr", "ptr", "i64", "f32"]} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %row = arith.extui %block : i32 to i64
  %lane = arith.extui %tid : i32 to i64
  %c4 = arith.constant 4 : i64
  %col = arith.muli %lane, %c4 : i64
  %base = arith.muli %row, %n : i64
  %at = arith.addi %base, %col : i64
  %from = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %x = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %x0 = vector.extract %x[0] : f32 from vector<4xf32>
  %x1 = vector.extract %x[1] : f32 from vector<4xf32>
  %s = arith.addf %x0, %x1 : f32
  %bits = arith.bitcast %s : f32 to i32
  %all = arith.constant -1 : i32
  %one = arith.constant 1 : i32
  %clamp = arith.constant 31 : i32
  %other = nvvm.shfl.sync bfly %all, %bits, %one, %clamp : i32 -> i32
  %o = arith.bitcast %other : i32 to f32
  %shared = llvm.mlir.addressof @scale_shared : !llvm.ptr<3>
  %slot = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  llvm.store %o, %slot {alignment = 4 : i64} : f32, !llvm.ptr<3>
  nvvm.barrier0
  %first = llvm.load %shared {alignment = 4 : i64} : !llvm.ptr<3> -> f32
  %p = arith.mulf %first, %factor : f32
  %q = arith.addf %p, %s : f32
  %r = math.fma %q, %factor, %s : f32
  %root = math.sqrt %r : f32
  %v = vector.broadcast %root : f32 to vector<4xf32>
  %y = arith.divf %x, %v : vector<4xf32>
  %zero = arith.constant 0 : i64
  %in_range = arith.cmpi sgt, %n, %zero : i64
  scf.if %in_range {
    %to = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %y, %to {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  }
  return
}
