// RUN: dither-opt %s --split-input-file --dither-tile-to-phases=print-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=PHASES
// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments="print-schedule fragment=4,128" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FRAGMENTS
// RUN: dither-opt %s --split-input-file --dither-tile-to-phases --dither-tile-to-fragments=fragment=4,128 -o /dev/null 2>&1 | FileCheck %s --allow-empty --check-prefix=QUIET

// QUIET-NOT: nest

// Scales of blocks and then codes; where a block has an infinity or a NaN, the
// loop after the one that found it does all of them again.
// PHASES-LABEL: phases of quantize
// PHASES-NEXT: nest
// PHASES-NEXT: {{^}}  for rows 0 to stored by 1{{$}}
// PHASES-NEXT:     band of 1
// PHASES-NEXT:     for cols 0 to 1024 by 1024{{$}}
// PHASES-NEXT:       stretch
// PHASES-NEXT:       phase 0
// PHASES-NEXT:         for rows 0 to 1 by 1 asks
// PHASES-NEXT:           measure cols by 512
// PHASES-NEXT:           for cols 0 to inside by 512 inside asks
// PHASES-NEXT:             keep 0: quant.e8m0_inverse tensor<4x32xf32>
// PHASES-NEXT:             quant.store of quant.encode tensor<4x32xf8E8M0FNU>
// PHASES-NEXT:             ask
// PHASES-NEXT:           for cols redo to width by 32 asks
// PHASES-NEXT:             keep 0
// PHASES-NEXT:             quant.store
// PHASES-NEXT:             ask
// PHASES-NEXT:       phase 1
// PHASES-NEXT:         for rows 0 to 1 by 1{{$}}
// PHASES-NEXT:           measure cols by 64
// PHASES-NEXT:           for cols 0 to inside by 64 inside{{$}}
// PHASES-NEXT:             quant.store of quant.encode tensor<4x1024xf8E4M3FN>
// PHASES-NEXT:           for cols inside to width by 32{{$}}
// PHASES-NEXT:             quant.store

// Fragments have both outputs in one loop.
// FRAGMENTS-LABEL: fragments of quantize
// FRAGMENTS-NEXT: nest
// FRAGMENTS-NEXT: {{^}}  for cols 0 to 1024 by 128
// FRAGMENTS-NEXT:     quant.store of quant.encode tensor<4x32xf8E8M0FNU>
// FRAGMENTS-NEXT:     quant.store of quant.encode tensor<4x1024xf8E4M3FN>
module attributes {quant.target = "host"} {
func.func @quantize(%x: memref<?x1024xbf16>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x32xf8E8M0FNU>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %k = arith.constant dense<0.00223214296> : tensor<4x32xf32>
  %t = quant.load %x[%r, %c0] : memref<?x1024xbf16> -> tensor<4x1024xbf16>
  %f = arith.extf %t : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.block_reduce amax %f block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %m = arith.mulf %a, %k : tensor<4x32xf32>
  %e = quant.encode %m {mode = #quant.e8m0_mode<rceil>} : tensor<4x32xf32> -> tensor<4x32xf8E8M0FNU>
  quant.store %e, %s[%r, %c0] : tensor<4x32xf8E8M0FNU>, memref<?x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<4x32xf8E8M0FNU> -> tensor<4x32xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %f, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%r, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// What is collected over all rows begins with nothing, and is taken last.
// PHASES-LABEL: phases of largest
// PHASES-NEXT: nest
// PHASES-NEXT: {{^}}  for cols 0 to 128 by 64
// PHASES-NEXT:     clear total 0
// PHASES-NEXT: {{^}}  for rows 0 to stored by 1
// PHASES:               collect total 0: quant.load tensor<4x128xf32>
// PHASES:               collect total 0: quant.load tensor<4x128xf32>
// PHASES-NEXT: {{^}}  for cols 0 to 128 by 64
// PHASES-NEXT:     quant.atomic_max of quant.reduce tensor<1x128xf32>

// A tile that fits in a fragment has no schedule; one that a branch uses is
// there as a whole.
// FRAGMENTS-NOT: fragments of largest
// FRAGMENTS-LABEL: fragments of branch
// FRAGMENTS-NEXT: nest
// FRAGMENTS-NEXT: {{^}}  whole quant.load tensor<4x1xf32>
// FRAGMENTS-NEXT: nest
// FRAGMENTS-NEXT: {{^}}  for cols 0 to 256 by 128
// FRAGMENTS-NEXT:     quant.store of arith.mulf tensor<4x256xf32>
module attributes {quant.target = "host"} {
func.func @largest(%x: memref<4x128xf32>, %m: memref<1x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x128xf32> -> tensor<4x128xf32>
  %k = quant.reduce amax %t axis 0 : tensor<4x128xf32> -> tensor<1x128xf32>
  quant.atomic_max %k, %m[%c0, %c0] : tensor<1x128xf32>, memref<1x128xf32>
  return
}

func.func @branch(%x: memref<4x256xf32>, %s: memref<4x1xf32>, %y: memref<4x256xf32>, %z: memref<4x1xf32>, %if: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<4x256xf32>
  %u = quant.load %s[%c0, %c0] : memref<4x1xf32> -> tensor<4x1xf32>
  %b = quant.broadcast %u : tensor<4x1xf32> -> tensor<4x256xf32>
  %v = arith.mulf %t, %b : tensor<4x256xf32>
  quant.store %v, %y[%c0, %c0] : tensor<4x256xf32>, memref<4x256xf32>
  scf.if %if {
    quant.store %u, %z[%c0, %c0] : tensor<4x1xf32>, memref<4x1xf32>
  }
  return
}
}

// -----

// Rows that are stored as columns are turned eight at a time, in parts of 32,
// and are kept until 64 fill a line of each column; what is the same for all
// rows is stored once, after them.
// PHASES-LABEL: phases of turned
// PHASES: for rows 0 to stored by 64
// PHASES-NEXT: band of 64
// PHASES: for cols 0 to 1024 by 512
// PHASES: for rows 0 to band by 32
// PHASES-NEXT: band of 32
// PHASES-NEXT: measure cols by 32
// PHASES-NEXT: for cols 0 to inside by 32 inside
// PHASES-NEXT: for rows 0 to 32 by 8 inside
// PHASES-NEXT: keep 0: quant.encode tensor<1024x128xf8E4M3FN>
// PHASES-NEXT: for cols inside to width by 8
// PHASES-NEXT: for rows 0 to 32 by 8
// PHASES-NEXT: keep 0: quant.encode tensor<1024x128xf8E4M3FN>
// PHASES: for rows 0 to band by 64
// PHASES: for cols 0 to inside by 1 inside
// PHASES-NEXT: quant.store of quant.encode tensor<1024x128xf8E4M3FN>
// PHASES: {{^}}  quant.store of arith.divf tensor<1x1xf32>
module attributes {quant.target = "host"} {
func.func @turned(%x: memref<?x1024xbf16>, %e: memref<1x1xf32>, %q: memref<1024x?xf8E4M3FN>, %s: memref<1x1xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %r = arith.muli %p, %c128 : index
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %t = quant.load %x[%r, %c0] : memref<?x1024xbf16> -> tensor<128x1024xbf16>
  %w = arith.extf %t : tensor<128x1024xbf16> to tensor<128x1024xf32>
  %f = quant.load %e[%c0, %c0] : memref<1x1xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %f : tensor<1x1xf32> -> tensor<128x1024xf32>
  %y = arith.mulf %w, %b : tensor<128x1024xf32>
  %u = quant.transpose %y : tensor<128x1024xf32> -> tensor<1024x128xf32>
  %c = quant.encode %u : tensor<1024x128xf32> -> tensor<1024x128xf8E4M3FN>
  quant.store %c, %q[%c0, %r] : tensor<1024x128xf8E4M3FN>, memref<1024x?xf8E4M3FN>
  %i = arith.divf %one, %f : tensor<1x1xf32>
  quant.store %i, %s[%p, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  return
}
}

// -----

// Bytes that only move are turned 16 rows at a time.
// PHASES-LABEL: phases of moved
// PHASES: for cols 0 to inside by 32 inside
// PHASES-NEXT: for rows 0 to 32 by 16 inside
// PHASES-NEXT: keep 0: quant.transpose tensor<1024x128xi8>
module attributes {quant.target = "host"} {
func.func @moved(%x: memref<?x1024xi8>, %q: memref<1024x?xi8>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %r = arith.muli %p, %c128 : index
  %t = quant.load %x[%r, %c0] : memref<?x1024xi8> -> tensor<128x1024xi8>
  %u = quant.transpose %t : tensor<128x1024xi8> -> tensor<1024x128xi8>
  quant.store %u, %q[%c0, %r] : tensor<1024x128xi8>, memref<1024x?xi8>
  return
}
}

// -----

// Rows of a tile that fill no line are stored as they are turned.
// PHASES-LABEL: phases of short
// PHASES: for rows 0 to stored by 32
// PHASES: for rows 0 to 32 by 32
// PHASES-NOT: keep
// PHASES: quant.store of quant.encode tensor<1024x32xf8E4M3FN>
module attributes {quant.target = "host"} {
func.func @short(%x: memref<?x1024xf32>, %q: memref<1024x?xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<32x1024xf32>
  %u = quant.transpose %t : tensor<32x1024xf32> -> tensor<1024x32xf32>
  %c = quant.encode %u : tensor<1024x32xf32> -> tensor<1024x32xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<1024x32xf8E4M3FN>, memref<1024x?xf8E4M3FN>
  return
}
}

// -----

// What is transformed is kept first where it takes more than a load, a row at a
// time: a part of a transform has the rows of a run, and no masks, since it
// reads and writes scratch memory alone. No part is wider than a stretch.
// PHASES-LABEL: phases of transformed
// PHASES: for cols 0 to 1024 by 64
// PHASES: phase 0
// PHASES-NEXT: for rows 0 to 128 by 1
// PHASES: measure cols by 64
// PHASES-NEXT: for cols 0 to inside by 64 inside
// PHASES-NEXT: keep 1: arith.mulf tensor<128x1024xf32>
// PHASES: phase 1
// PHASES-NEXT: for rows 0 to 128 by 128
// PHASES-NEXT: for cols 0 to width by 16 inside
// PHASES-NEXT: keep 0: quant.hadamard tensor<128x1024xf32>
// PHASES-NEXT: phase 2
// PHASES-NEXT: for rows 0 to 128 by 1
// PHASES: measure cols by 64
// PHASES: quant.store of quant.encode tensor<128x1024xf4E2M1FN>
module attributes {quant.target = "host"} {
func.func @transformed(%x: memref<?x1024xf32>, %q: memref<?x1024xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<128x1024xf32>
  %u = arith.mulf %t, %t : tensor<128x1024xf32>
  %h = quant.hadamard %u axis 0 size 128 : tensor<128x1024xf32>
  %e = quant.encode %h : tensor<128x1024xf32> -> tensor<128x1024xf4E2M1FN>
  quant.store %e, %q[%c0, %c0] : tensor<128x1024xf4E2M1FN>, memref<?x1024xf4E2M1FN>
  return
}
}

// -----

// Not what is loaded; and along rows the maxima of rows transform for
// themselves.
// PHASES-LABEL: phases of loaded
// PHASES: phase 0
// PHASES: keep 1: quant.reduce tensor<4x1xf32>
// PHASES: phase 1
// PHASES-NEXT: for rows 0 to 1 by 1
// PHASES: keep 0: quant.hadamard tensor<4x1024xf32>
// PHASES: phase 2
// PHASES: quant.store of arith.divf tensor<4x1024xf32>
// PHASES-NOT: phase 3
module attributes {quant.target = "host"} {
func.func @loaded(%x: memref<?x1024xf32>, %y: memref<?x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %h = quant.hadamard %t axis 1 size 16 : tensor<4x1024xf32>
  %m = quant.reduce amax %h axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %b = quant.broadcast %m : tensor<4x1xf32> -> tensor<4x1024xf32>
  %d = arith.divf %h, %b : tensor<4x1024xf32>
  quant.store %d, %y[%c0, %c0] : tensor<4x1024xf32>, memref<?x1024xf32>
  return
}
}

// -----

// What repeats a value of square blocks for each of their rows is stored with
// them, and not kept; blocks of one row have a phase of their own.
// PHASES-LABEL: phases of repeated
// PHASES: phase 0
// PHASES: quant.store of quant.block_reduce tensor<32x32xf32>
// PHASES: phase 1
// PHASES-NEXT: for rows 0 to 32 by 32
// PHASES-NOT: keep
// PHASES: quant.store of quant.block_broadcast tensor<32x32xf32>
// PHASES-NOT: phase 2
module attributes {quant.target = "host"} {
func.func @repeated(%x: memref<?x1024xf32>, %y: memref<?x32xf32>, %z: memref<?x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<32x1024xf32>
  %m = quant.block_reduce amax %t block [32, 32] : tensor<32x1024xf32> -> tensor<1x32xf32>
  %b = quant.block_broadcast %m block [32, 1] : tensor<1x32xf32> -> tensor<32x32xf32>
  %r = quant.block_reduce amax %t block [1, 32] : tensor<32x1024xf32> -> tensor<32x32xf32>
  quant.store %b, %y[%c0, %c0] : tensor<32x32xf32>, memref<?x32xf32>
  quant.store %r, %z[%c0, %c0] : tensor<32x32xf32>, memref<?x32xf32>
  return
}
}

// -----

// A long function whose rows have a scale each: it is computed once, for whole
// rows, before their maxima; rows that are not made of it come first.
// PHASES-LABEL: phases of rows_of_functions
// PHASES: phase 0
// PHASES: keep [[FIRST:[0-9]]]: quant.reduce tensor<4x1xf32>
// PHASES-NOT: stretch
// PHASES: phase 1
// PHASES: keep [[LONG:[0-9]]]: arith.truncf tensor<4x1024xbf16>
// PHASES: phase 2
// PHASES-NEXT: for rows 0 to inside by 1 inside
// PHASES-NEXT: keep [[LAST:[0-9]]]: arith.divf tensor<4x1xf32>
// PHASES-NEXT: quant.store of quant.reduce tensor<4x1xf32>
// PHASES: for cols 0 to 1024 by 1024
// PHASES: phase 3
// PHASES: quant.store of quant.encode tensor<4x1024xf8E4M3FN>
// PHASES-NOT: phase 4
module attributes {quant.target = "host"} {
func.func @rows_of_functions(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %m = quant.reduce max %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %mb = quant.broadcast %m : tensor<4x1xf32> -> tensor<4x1024xf32>
  %u = arith.subf %t, %mb : tensor<4x1024xf32>
  %f = quant.exp %u : tensor<4x1024xf32>
  %n = arith.truncf %f : tensor<4x1024xf32> to tensor<4x1024xbf16>
  %w = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.reduce amax %w axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %most = arith.constant dense<448.0> : tensor<4x1xf32>
  %e = arith.divf %most, %a : tensor<4x1xf32>
  %eb = quant.broadcast %e : tensor<4x1xf32> -> tensor<4x1024xf32>
  %p = arith.mulf %w, %eb : tensor<4x1024xf32>
  %c = quant.encode %p : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  quant.store %a, %s[%c0, %c0] : tensor<4x1xf32>, memref<?x1xf32>
  return
}
}

// -----

// Sums of square blocks: their elements are computed with the blocks, in parts
// of 32 columns.
// PHASES-LABEL: phases of errors
// PHASES: phase 0
// PHASES-NEXT: for rows 0 to 16 by 16
// PHASES: measure cols by 32
// PHASES: quant.store of quant.block_reduce tensor<1x64xf32>
// PHASES-NOT: phase 1
module attributes {quant.target = "host"} {
func.func @errors(%x: memref<?x1024xf32>, %y: memref<?x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<16x1024xf32>
  %e = arith.mulf %t, %t : tensor<16x1024xf32>
  %s = quant.block_reduce sum %e block [1, 16] : tensor<16x1024xf32> -> tensor<16x64xf32>
  %u = quant.block_reduce sum %s block [16, 1] : tensor<16x64xf32> -> tensor<1x64xf32>
  quant.store %u, %y[%c0, %c0] : tensor<1x64xf32>, memref<?x64xf32>
  return
}
}

// -----

// Blocks that are made of no elements, random bits, come before the values that
// are made of them; blocks of elements come after these.
// PHASES-LABEL: phases of random
// PHASES: phase 0
// PHASES: measure cols by 512
// PHASES: keep [[BITS:[0-9]]]: arith.bitcast tensor<4x64xf32>
// PHASES: phase 1
// PHASES: keep [[VALUES:[0-9]]]: arith.mulf tensor<4x1024xf32>
// PHASES: phase 2
// PHASES: quant.store of quant.block_reduce tensor<4x64xf32>
// PHASES-NOT: phase 3
module attributes {quant.target = "host"} {
func.func @random(%x: memref<?x1024xf32>, %y: memref<?x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %i = quant.iota dim 1 : tensor<4x64xi32>
  %k = arith.constant dense<-766435501> : tensor<4x64xi32>
  %w = arith.muli %i, %k : tensor<4x64xi32>
  %f = arith.bitcast %w : tensor<4x64xi32> to tensor<4x64xf32>
  %b = quant.block_broadcast %f block [1, 16] : tensor<4x64xf32> -> tensor<4x1024xf32>
  %u = arith.mulf %t, %b : tensor<4x1024xf32>
  %m = quant.block_reduce amax %u block [1, 16] : tensor<4x1024xf32> -> tensor<4x64xf32>
  quant.store %m, %y[%c0, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  return
}
}

// -----

// What is rounded is kept for the maxima of its rows, too; a product that is
// not is computed again.
// PHASES-LABEL: phases of rows_of_products
// PHASES-NOT: tensor<4x1024xf32>
// PHASES: phase 0
// PHASES: keep 1: quant.reduce tensor<4x1xf32>
// PHASES: phase 1
// PHASES: keep 2: arith.truncf tensor<4x1024xbf16>
// PHASES: phase 2
// PHASES: keep 0: quant.reduce tensor<4x1xf32>
// PHASES: phase 3
// PHASES-NOT: keep
module attributes {quant.target = "host"} {
func.func @rows_of_products(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x1xf32>, %p: memref<?x1024xf8E4M3FN>, %r: memref<?x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %u = arith.mulf %t, %t : tensor<4x1024xf32>
  %n = arith.truncf %u : tensor<4x1024xf32> to tensor<4x1024xbf16>
  %w = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.reduce amax %w axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %ab = quant.broadcast %a : tensor<4x1xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %w, %ab : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  %e = quant.reduce amax %u axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %eb = quant.broadcast %e : tensor<4x1xf32> -> tensor<4x1024xf32>
  %y = arith.mulf %u, %eb : tensor<4x1024xf32>
  %d = quant.encode %y : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  quant.store %a, %s[%c0, %c0] : tensor<4x1xf32>, memref<?x1xf32>
  quant.store %d, %p[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  quant.store %e, %r[%c0, %c0] : tensor<4x1xf32>, memref<?x1xf32>
  return
}
}

// -----

// Square blocks of two heights have a phase each; those of one height share one.
// PHASES-LABEL: phases of heights
// PHASES: phase 0
// PHASES-NEXT: for rows 0 to 16 by 4
// PHASES: quant.store of quant.block_reduce tensor<4x64xf32>
// PHASES: phase 1
// PHASES-NEXT: for rows 0 to 16 by 16
// PHASES: quant.store of quant.block_reduce tensor<1x256xf32>
// PHASES-NEXT: quant.store of math.sqrt tensor<1x256xf32>
// PHASES-NOT: phase 2
module attributes {quant.target = "host"} {
func.func @heights(%x: memref<?x1024xf32>, %y: memref<?x64xf32>, %z: memref<?x256xf32>, %w: memref<?x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<16x1024xf32>
  %a = quant.block_reduce amax %t block [4, 16] : tensor<16x1024xf32> -> tensor<4x64xf32>
  %b = quant.block_reduce amax %t block [16, 4] : tensor<16x1024xf32> -> tensor<1x256xf32>
  %s = math.sqrt %b : tensor<1x256xf32>
  quant.store %a, %y[%c0, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  quant.store %b, %z[%c0, %c0] : tensor<1x256xf32>, memref<?x256xf32>
  quant.store %s, %w[%c0, %c0] : tensor<1x256xf32>, memref<?x256xf32>
  return
}
}

// -----

// Maxima of columns are taken of eight rows at a time, right after those along
// rows, where nothing needs a mask; what has special values does all anew.
// PHASES-LABEL: phases of both
// PHASES:            phase 0
// PHASES-NEXT:         for rows 0 to 32 by 8 asks
// PHASES-NEXT:           for rows 0 to 8 by 1 asks
// PHASES:                for cols redo to width by 32 asks
// PHASES:                for rows 0 to 8 by 8{{$}}
// PHASES-NEXT:             band of 8
// PHASES-NEXT:             measure cols by 32
// PHASES-NEXT:             for cols 0 to inside by 32 inside{{$}}
// PHASES-NEXT:               piece 0 of quant.block_reduce tensor<2x1024xf32>
// PHASES-NEXT:       phase 1
// PHASES-NEXT:         for rows 0 to 32 by 32 asks
module attributes {quant.target = "host"} {
func.func @both(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %r: memref<?x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<64x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<64x1024xf32> -> tensor<64x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<64x32xf32> -> tensor<64x1024xf32>
  %z = arith.mulf %t, %b : tensor<64x1024xf32>
  %c = quant.encode %z : tensor<64x1024xf32> -> tensor<64x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<64x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  %d = quant.block_reduce amax %t block [32, 1] : tensor<64x1024xf32> -> tensor<2x1024xf32>
  %e = quant.block_broadcast %d block [32, 1] : tensor<2x1024xf32> -> tensor<64x1024xf32>
  %y = arith.mulf %t, %e : tensor<64x1024xf32>
  %g = quant.encode %y : tensor<64x1024xf32> -> tensor<64x1024xf8E4M3FN>
  quant.store %g, %r[%c0, %c0] : tensor<64x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// Of blocks of 16 rows there are no pieces.
// PHASES-LABEL: phases of short
// PHASES:            phase 0
// PHASES-NEXT:         for rows 0 to 16 by 1 asks
// PHASES-NOT:    piece
module attributes {quant.target = "host"} {
func.func @short(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %r: memref<?x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<64x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<64x1024xf32> -> tensor<64x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<64x32xf32> -> tensor<64x1024xf32>
  %z = arith.mulf %t, %b : tensor<64x1024xf32>
  %c = quant.encode %z : tensor<64x1024xf32> -> tensor<64x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<64x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  %d = quant.block_reduce amax %t block [16, 1] : tensor<64x1024xf32> -> tensor<4x1024xf32>
  %e = quant.block_broadcast %d block [16, 1] : tensor<4x1024xf32> -> tensor<64x1024xf32>
  %y = arith.mulf %t, %e : tensor<64x1024xf32>
  %g = quant.encode %y : tensor<64x1024xf32> -> tensor<64x1024xf8E4M3FN>
  quant.store %g, %r[%c0, %c0] : tensor<64x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}
