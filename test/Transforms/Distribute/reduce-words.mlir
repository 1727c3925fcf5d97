// RUN: dither-opt %s --dither-set-target=target=sm_90a --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SIGN
// RUN: dither-opt %s --dither-set-target=target=sm_80 --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,MASK

// The amax of 16-bit values is found in their words, one instruction for two:
// of magnitudes where there is such an instruction, else of masked words. Two
// blocks of a lane share a word then, which lanes combine at once, and of which
// each keeps a half. NaN goes last, against 0.
// CHECK-LABEL: func.func @blocks(
// MASK-COUNT-8: arith.andi %{{.*}}, %c2147450879_i32
// SIGN-COUNT-6: max.xorsign.abs.bf16x2
// MASK-COUNT-6: "max.bf16x2
// CHECK: %[[LOW:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x5410;{{.*}} %[[A:.*]], %[[B:[0-9]+]] :
// CHECK: %[[HIGH:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x7632;{{.*}} %[[A]], %[[B]] :
// CHECK: %[[PAIR:.*]] = llvm.inline_asm {{.*}}bf16x2 {{.*}} %[[LOW]], %[[HIGH]] :
// CHECK: %[[OTHER:.*]] = nvvm.shfl.sync {{.*}} %[[PAIR]], %c1_i32
// CHECK: %[[BOTH:.*]] = llvm.inline_asm {{.*}}bf16x2 {{.*}} %[[PAIR]], %[[OTHER]] :
// CHECK: %[[SHIFT:.*]] = arith.select %{{.*}}, %c0_i32, %c16_i32
// CHECK: %[[MINE:.*]] = arith.shli %[[BOTH]], %[[SHIFT]]
// CHECK: arith.andi %[[MINE]], %c-65536_i32
// CHECK: arith.maxnumf {{.*}} : f32
// CHECK-NOT: arith.maxnumf
// CHECK-NOT: quant.decode_words
func.func @blocks(%x: memref<?x512xbf16> {quant.align = 16 : i64}, %y: memref<?x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x512xbf16> -> tensor<1x512xbf16>
  %f = arith.extf %t : tensor<1x512xbf16> to tensor<1x512xf32>
  %a = quant.block_reduce amax %f block [1, 16] : tensor<1x512xf32> -> tensor<1x32xf32>
  quant.store %a, %y[%p, %c0] {in_bounds} : tensor<1x32xf32>, memref<?x32xf32>
  return
}

// Over all lanes of a warp: the bits of a magnitude order as it does.
// CHECK-LABEL: func.func @all(
// CHECK: nvvm.redux.sync umax
// CHECK-NOT: nvvm.shfl
// CHECK: return
func.func @all(%x: memref<?x512xbf16> {quant.align = 16 : i64}, %y: memref<?x1xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x512xbf16> -> tensor<1x512xbf16>
  %f = arith.extf %t : tensor<1x512xbf16> to tensor<1x512xf32>
  %a = quant.reduce amax %f axis 1 : tensor<1x512xf32> -> tensor<1x1xf32>
  quant.store %a, %y[%p, %c0] {in_bounds} : tensor<1x1xf32>, memref<?x1xf32>
  return
}

// Not of f32, and not for a maximum of signed numbers.
// CHECK-LABEL: func.func @wide(
// CHECK-NOT: bf16x2
// CHECK: nvvm.redux.sync umax
// CHECK: return
func.func @wide(%x: memref<?x512xf32> {quant.align = 16 : i64}, %y: memref<?x1xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x512xf32> -> tensor<1x512xf32>
  %a = quant.reduce amax %t axis 1 : tensor<1x512xf32> -> tensor<1x1xf32>
  quant.store %a, %y[%p, %c0] {in_bounds} : tensor<1x1xf32>, memref<?x1xf32>
  return
}
// CHECK-LABEL: func.func @signed(
// CHECK-NOT: xorsign
// CHECK-NOT: nvvm.redux
// CHECK: return
func.func @signed(%x: memref<?x512xbf16> {quant.align = 16 : i64}, %y: memref<?x1xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x512xbf16> -> tensor<1x512xbf16>
  %f = arith.extf %t : tensor<1x512xbf16> to tensor<1x512xf32>
  %a = quant.reduce max %f axis 1 : tensor<1x512xf32> -> tensor<1x1xf32>
  quant.store %a, %y[%p, %c0] {in_bounds} : tensor<1x1xf32>, memref<?x1xf32>
  return
}

// Down the columns of words that were transposed: each instruction takes a row
// of two columns.
// CHECK-LABEL: func.func @turned(
// SIGN-COUNT-30: max.xorsign.abs.bf16x2
// SIGN-NOT: max.xorsign
// MASK-COUNT-30: "max.bf16x2
// CHECK-COUNT-4: arith.maxnumf {{.*}} : f32
// CHECK-NOT: arith.maxnumf
// CHECK: return
func.func @turned(%x: memref<?x128xbf16> {quant.align = 16 : i64}, %y: memref<?x1xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x128xbf16> -> tensor<16x128xbf16>
  %f = arith.extf %t : tensor<16x128xbf16> to tensor<16x128xf32>
  %u = quant.transpose %f : tensor<16x128xf32> -> tensor<128x16xf32>
  %a = quant.block_reduce amax %u block [1, 16] : tensor<128x16xf32> -> tensor<128x1xf32>
  quant.store %a, %y[%p, %c0] {in_bounds} : tensor<128x1xf32>, memref<?x1xf32>
  return
}

// Down columns over more lanes than each has words: those exchange words, and
// halves of the last one.
// CHECK-LABEL: func.func @columns(
// CHECK-COUNT-4: nvvm.shfl.sync bfly {{.*}} : i32
// CHECK-NOT: nvvm.shfl
// CHECK: arith.shli
// CHECK-COUNT-1: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: return
func.func @columns(%x: memref<?x16xbf16> {quant.align = 16 : i64}, %y: memref<?x16xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x16xbf16> -> tensor<16x16xbf16>
  %f = arith.extf %t : tensor<16x16xbf16> to tensor<16x16xf32>
  %a = quant.block_reduce amax %f block [16, 1] : tensor<16x16xf32> -> tensor<1x16xf32>
  quant.store %a, %y[%p, %c0] {in_bounds} : tensor<1x16xf32>, memref<?x16xf32>
  return
}
