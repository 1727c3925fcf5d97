// RUN: dither-compile %s --from=distributed --target=sm_100a --emit=ptx | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=SINGLE

// Of eight words that are loaded two are stored as one, and others are used by
// themselves. A GPU that computes with pairs of f32 has registers for two, and
// ptxas would copy what is taken out of them. One that does not has none.
// CHECK: ld.global.v8.b32
// CHECK-NOT: mov.b64 {
// CHECK-COUNT-2: mov.b32 %r{{[0-9]+}}, %r{{[0-9]+}};
// CHECK-NOT: mov.b64 {
// CHECK: st.global.v2.b32
// CHECK: st.global.b32
// SINGLE: ld.global.v4.b32
// SINGLE-NOT: mov.b32
// SINGLE: st.global.v2.b32
func.func @k(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %words = llvm.load %in {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
  %pair = vector.extract_strided_slice %words {offsets = [2], sizes = [2], strides = [1]}
      : vector<8xi32> to vector<2xi32>
  llvm.store %pair, %out {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  %third = vector.extract %words[2] : i32 from vector<8xi32>
  %fourth = vector.extract %words[3] : i32 from vector<8xi32>
  %sum = arith.addi %third, %fourth : i32
  %to = llvm.getelementptr %out[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  llvm.store %sum, %to {alignment = 4 : i64} : i32, !llvm.ptr<1>
  return
}

// Products that may be contracted with a sum are: a move would hide them.
// CHECK-LABEL: .entry contracted(
// CHECK-NOT: mul{{.*}}.f32x2
// CHECK-COUNT-2: fma.rn.f32x2
// CHECK-NOT: f32x2
func.func @contracted(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %one = arith.constant dense<1.0> : vector<2xf32>
  %words = llvm.load %in {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %products = arith.mulf %words, %words fastmath<contract> : vector<4xf32>
  %low = vector.extract_strided_slice %products {offsets = [0], sizes = [2], strides = [1]}
      : vector<4xf32> to vector<2xf32>
  %high = vector.extract_strided_slice %products {offsets = [2], sizes = [2], strides = [1]}
      : vector<4xf32> to vector<2xf32>
  %first = arith.addf %low, %one fastmath<contract> : vector<2xf32>
  %second = arith.addf %high, %one fastmath<contract> : vector<2xf32>
  llvm.store %first, %out {alignment = 16 : i64} : vector<2xf32>, !llvm.ptr<1>
  %to = llvm.getelementptr %out[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  llvm.store %second, %to {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  return
}
