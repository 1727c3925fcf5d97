// One case for each constraint of dialect/Quant/Semantics.md; every case starts
// with its label, and semantics-labels.test compares the two.
// RUN: dither-opt %s --split-input-file --verify-diagnostics

// FO1: the name of a format is known
// expected-error @+1 {{unknown format 'nvfp5', expected one of nvfp4, mxfp4, mxfp6_e2m3, mxfp6_e3m2, mxfp8_e4m3, mxfp8_e5m2, mxint8, fp8_tensor_e4m3, fp8_tensor_e5m2, fp8_row_e4m3, fp8_row_e5m2, fp8_1x128_e4m3, fp8_1x128_e5m2, fp8_128x128_e4m3, fp8_128x128_e5m2, int8_tensor, int8_row, or an element type}}
func.func private @f() attributes {a = #quant.format<nvfp5>}

// -----
// FO2: a scale rounding is chosen for E8M0 scales only
// expected-error @+1 {{found scale_rounding = floor with scales of 'f8E4M3FN', expected it for f8E8M0FNU scales only}}
func.func private @f() attributes {a = #quant.format<nvfp4, scale_rounding = floor>}

// -----
// FO3: an order is chosen for scales with mantissas
// expected-error @+1 {{found order = div6_div with scales of 'f8E8M0FNU', expected it for f8E4M3FN and f32 scales only}}
func.func private @f() attributes {a = #quant.format<mxfp4, order = div6_div>}

// -----
// FO4: there are no other options
// expected-error @+1 {{unknown option 'blocks', expected scale, block, tensor_scale, transposed, scale_rounding, order, pow2_scales, epsilon, tensor_scale_as, largest_scale, least_scale, inf_scale, nan_scales, four_over_six}}
func.func private @f() attributes {a = #quant.format<mxfp4, blocks = 16>}

// -----
// FO5: an option is given once
// expected-error @+1 {{option 'scale_rounding' is given twice}}
func.func private @f() attributes {a = #quant.format<mxfp4, scale_rounding = ceil, scale_rounding = even>}

// -----
// FO5: an option is given once, also where it says what holds anyway
// expected-error @+1 {{option 'order' is given twice}}
func.func private @f() attributes {a = #quant.format<nvfp4, order = te, order = te>}

// -----
// FO6: options have the values listed
// expected-error @+1 {{found scale_rounding = up, expected rceil, floor, ceil or even}}
func.func private @f() attributes {a = #quant.format<mxfp4, scale_rounding = up>}

// -----
// FO6: options have the values listed
// expected-error @+1 {{found order = div6, expected te, div6_mul, div6_div, encode_first or mul_inv6}}
func.func private @f() attributes {a = #quant.format<nvfp4, order = div6>}

// -----
// FO6: a value is a keyword
// expected-error @+1 {{expected valid keyword}}
func.func private @f() attributes {a = #quant.format<mxfp4, scale_rounding = 1>}

// -----
// FO6: true and false are values
// expected-error @+1 {{found transposed = yes, expected true or false}}
func.func private @f() attributes {a = #quant.format<mxfp4, transposed = yes>}

// -----
// FO7: elements have a format of codes
// expected-error @+1 {{found elements of 'f32', expected f4E2M1FN, f6E2M3FN, f6E3M2FN, i8, f8E4M3FN or f8E5M2}}
func.func private @f() attributes {a = #quant.format<f32, scale = f8E4M3FN, block = [1, 16]>}

// -----
// FO8: scales are of one of two types
// expected-error @+1 {{found scales of 'f8E5M2', expected f8E8M0FNU, f8E4M3FN or f32}}
func.func private @f() attributes {a = #quant.format<f8E4M3FN, scale = f8E5M2, block = [1, 16]>}

// -----
// FO9: extents of blocks are powers of two
// expected-error @+1 {{found blocks of [1, 48], expected positive powers of two, [1, ?] or [?, ?]}}
func.func private @f() attributes {a = #quant.format<mxfp4, block = [1, 48]>}

// -----
// FO9: extents of blocks are positive
// expected-error @+1 {{found blocks of [-1, 32], expected positive powers of two, [1, ?] or [?, ?]}}
func.func private @f() attributes {a = #quant.format<mxfp4, block = [-1, 32]>}

// -----
// FO9: whole rows are blocks of one row
// expected-error @+1 {{found blocks of [4, ?], expected positive powers of two, [1, ?] or [?, ?]}}
func.func private @f() attributes {a = #quant.format<mxfp4, block = [4, ?]>}

// -----
// FO9: whole columns are whole rows for axis 0
// expected-error @+1 {{found blocks of [?, 1], expected positive powers of two, [1, ?] or [?, ?]}}
func.func private @f() attributes {a = #quant.format<mxfp4, block = [?, 1]>}

// -----
// FO10: a tensor scale is not for whole rows
// expected-error @+1 {{found a tensor scale with blocks of [1, ?], expected it for shorter blocks only}}
func.func private @f() attributes {a = #quant.format<nvfp4, block = [1, ?]>}

// -----
// FO10: a tensor scale goes with scales that have a mantissa
// expected-error @+1 {{found a tensor scale with scales of 'f8E8M0FNU', expected it for f8E4M3FN scales only}}
func.func private @f() attributes {a = #quant.format<mxfp4, tensor_scale = true>}

// -----
// FO11: an element type comes with a scale type
// expected-error @+1 {{found an element type without scale, expected scale = TYPE and block = [ROWS, COLUMNS]}}
func.func private @f() attributes {a = #quant.format<f4E2M1FN, block = [1, 32]>}

// -----
// FO11: an element type comes with a block
// expected-error @+1 {{found an element type without block, expected scale = TYPE and block = [ROWS, COLUMNS]}}
func.func private @f() attributes {a = #quant.format<f4E2M1FN, scale = f8E4M3FN>}

// -----
// FO12: encode_first is an order of f32 scales
// expected-error @+1 {{found order = encode_first with scales of 'f8E8M0FNU', expected it for f32 scales only}}
func.func private @f() attributes {a = #quant.format<mxfp8_e4m3, order = encode_first>}

// -----
// FO13: powers of two are for encode_first
// expected-error @+1 {{found pow2_scales = true with order = te, expected it with order = encode_first only}}
func.func private @f() attributes {a = #quant.format<int8_row, pow2_scales = true>}

// -----
// FO13: a least amax is for encode_first
// expected-error @+1 {{found epsilon = 9.999999960e-13 with order = te, expected it with order = encode_first only}}
func.func private @f() attributes {a = #quant.format<int8_row, epsilon = 1.0e-12>}

// -----
// FO14: a least amax is finite and not negative
// expected-error @+1 {{found epsilon = -1.000000000e+00, expected a finite number that is not negative}}
func.func private @f() attributes {a = #quant.format<fp8_row_e4m3, epsilon = -1.0>}

// -----
// FO14: so is the least scale
// expected-error @+1 {{found least_scale = -1.000000000e+00, expected a finite number that is not negative}}
func.func private @f() attributes {a = #quant.format<nvfp4, least_scale = -1.0>}

// -----
// FO15: what stands for a tensor scale is chosen where there is one
// expected-error @+1 {{found tensor_scale_as = decode without a tensor scale, expected it for formats with one only}}
func.func private @f() attributes {a = #quant.format<mxfp4, tensor_scale_as = decode>}

// -----
// FO15: the scale of the tensor's amax is chosen where there is a tensor scale
// expected-error @+1 {{found largest_scale = 2.560000000e+02 without a tensor scale, expected it for formats with one only}}
func.func private @f() attributes {a = #quant.format<f4E2M1FN, scale = f8E4M3FN, block = [1, 16], largest_scale = 256.0>}

// -----
// FO16: the scale of the tensor's amax is in range
// expected-error @+1 {{found largest_scale = 5.000000000e+02, expected 1 to 448}}
func.func private @f() attributes {a = #quant.format<nvfp4, largest_scale = 500.0>}

// -----
// FO17: shared exponents have no least scale
// expected-error @+1 {{found least_scale = 1.000000000e+00 with scales of 'f8E8M0FNU', expected f8E4M3FN or f32 scales}}
func.func private @f() attributes {a = #quant.format<mxfp8_e4m3, least_scale = 1.0>}

// -----
// FO17: encode_first has a least amax
// expected-error @+1 {{found least_scale = 1.000000000e+00 with order = encode_first, expected epsilon}}
func.func private @f() attributes {a = #quant.format<fp8_row_e4m3, least_scale = 1.0>}

// -----
// FO17: a least scale can be stored
// expected-error @+1 {{found least_scale = 4.490000000e+02, expected at most 448, the largest scale}}
func.func private @f() attributes {a = #quant.format<nvfp4, least_scale = 449.0>}

// -----
// FO18: other roundings give FF
// expected-error @+1 {{found inf_scale = FF with scale_rounding = floor, expected it with scale_rounding = rceil only}}
func.func private @f() attributes {a = #quant.format<mxfp4, inf_scale = FF>}

// -----
// FO18: other scales are not infinite
// expected-error @+1 {{found inf_scale = FF with scales of 'f8E4M3FN', expected it for f8E8M0FNU scales only}}
func.func private @f() attributes {a = #quant.format<nvfp4, inf_scale = FF>}

// -----
// FO19: a NaN does not take a whole row
// expected-error @+1 {{found nan_scales = true with blocks of whole rows, expected it for shorter blocks only}}
func.func private @f() attributes {a = #quant.format<int8_row, nan_scales = true>}

// -----
// FO20: 4 and 6 are elements of E2M1
// expected-error @+1 {{found four_over_six = mae, expected it for f4E2M1FN elements in short blocks with f8E4M3FN scales only}}
func.func private @f() attributes {a = #quant.format<mxfp4, four_over_six = mae>}

// -----
// LA1: the text of a layout is well formed
// expected-error @+1 {{expected reg, lane}}
func.func private @f() attributes {a = #quant.layout<"(4,32) regs=[(1,0)]">}

// -----
// LA1: the text of a layout is well formed
// expected-error @+1 {{expected '('}}
func.func private @f() attributes {a = #quant.layout<"">}

// -----
// LA2: a layout has the rank of its tensor
// expected-error @+1 {{layout of rank 1 on a tensor of rank 2}}
func.func private @f(tensor<4x32xf32, #quant.layout<"(32) lane=[(1),(2),(4),(8),(16)]">>)

// -----
// LA3: a layout covers its tensor
// expected-error @+1 {{layout covers 32 elements of dimension 0, expected at least 33}}
func.func private @f(tensor<33xf32, #quant.layout<"(32) lane=[(1),(2),(4),(8),(16)]">>)

// -----
// LA4: a tensor with a layout has a static shape
// expected-error @+1 {{layout on a tensor with dynamic dimension 0, expected a static shape}}
func.func private @f(tensor<?xf32, #quant.layout<"(32) lane=[(1),(2),(4),(8),(16)]">>)

// -----
// PR1: a grid has the dimensions x, y and z
func.func @f() {
  // expected-error @+2 {{expected ::dither::quant::Dim to be one of: x, y, z}}
  // expected-error @+2 {{failed to parse Quant_DimAttr}}
  %0 = quant.program_id w
  return
}

// -----
// ME1: tiles in memory have rank 0, 1 or 2
func.func @f(%m: memref<2x2x2xf32>, %i: index) {
  // expected-error @+1 {{'quant.load' op tile has rank 3, expected at most 2}}
  %0 = quant.load %m[%i, %i, %i] : memref<2x2x2xf32> -> tensor<2x2x2xf32>
  return
}

// -----
// ME2: the tile has the rank of the memref
func.func @f(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.load' op tile has rank 1, expected 2, the rank of the memref}}
  %0 = quant.load %m[%i, %i] : memref<8x8xf32> -> tensor<8xf32>
  return
}

// -----
// ME2: the memref has a rank
func.func @f(%m: memref<*xf32>, %i: index) {
  // expected-error @+1 {{invalid kind of type specified: expected builtin.memref, but found 'memref<*xf32>'}}
  %0 = quant.load %m[%i] : memref<*xf32> -> tensor<8xf32>
  return
}

// -----
// ME2: the memref has a rank, generic form
func.func @f(%m: memref<*xf32>, %i: index) {
  // expected-error @+1 {{operand #0 must be memref of any type values, but got 'memref<*xf32>'}}
  %0 = "quant.load"(%m, %i) : (memref<*xf32>, index) -> tensor<8xf32>
  return
}

// -----
// ME2: the tile has a rank
func.func @f(%m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{result #0 must be ranked tensor of any type values, but got 'tensor<*xf32>'}}
  %0 = "quant.load"(%m, %i) : (memref<8xf32>, index) -> tensor<*xf32>
  return
}

// -----
// ME3: there is an index for each dimension
func.func @f(%m: memref<8x8xf32>, %t: tensor<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.store' op found 1 indices, expected 2, the rank of the memref}}
  quant.store %t, %m[%i] : tensor<8x8xf32>, memref<8x8xf32>
  return
}

// -----
// ME3: there is an index for each dimension
func.func @f(%m: memref<f32>, %i: index) {
  // expected-error @+1 {{'quant.load' op found 1 indices, expected 0, the rank of the memref}}
  %0 = quant.load %m[%i] : memref<f32> -> tensor<f32>
  return
}

// -----
// ME4: the tile has the element type of the memref
func.func @f(%m: memref<8xf32>, %t: tensor<8xbf16>, %i: index) {
  // expected-error @+1 {{'quant.store' op tile has element type 'bf16', expected 'f32', that of the memref}}
  quant.store %t, %m[%i] : tensor<8xbf16>, memref<8xf32>
  return
}

// -----
// ME5: tiles have a static shape
func.func @f(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.load' op tile has shape [?, 8], expected a static shape}}
  %0 = quant.load %m[%i, %i] : memref<8x8xf32> -> tensor<?x8xf32>
  return
}

// -----
// ME6: tiles have elements
func.func @f(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.load' op tile has shape [4, 0], expected no empty dimension}}
  %0 = quant.load %m[%i, %i] : memref<8x8xf32> -> tensor<4x0xf32>
  return
}

// -----
// ME7: elements of the last dimension are adjacent
func.func @f(%m: memref<8x8xf32, strided<[1, 8]>>, %i: index) {
  // expected-error @+1 {{'quant.load' op memref has stride 8 along its last dimension, expected 1}}
  %0 = quant.load %m[%i, %i] : memref<8x8xf32, strided<[1, 8]>> -> tensor<4x4xf32>
  return
}

// -----
// ME7: elements of the last dimension are known to be adjacent
func.func @f(%m: memref<8xf32, strided<[?]>>, %t: tensor<4xf32>, %i: index) {
  // expected-error @+1 {{'quant.store' op memref has stride ? along its last dimension, expected 1}}
  quant.store %t, %m[%i] : tensor<4xf32>, memref<8xf32, strided<[?]>>
  return
}

// -----
// ME7: a memref has strides
func.func @f(%m: memref<8xf32, affine_map<(d0) -> (d0 floordiv 2)>>, %i: index) {
  // expected-error @+1 {{'quant.load' op memref has layout affine_map<(d0) -> (d0 floordiv 2)>, expected strides}}
  %0 = quant.load %m[%i] : memref<8xf32, affine_map<(d0) -> (d0 floordiv 2)>> -> tensor<4xf32>
  return
}

// -----
// ME8: pairs are accessed 32 columns at a time
func.func @f(%i: index) {
  %m = quant.scratch {pairs} : memref<8x64xf32>
  // expected-error @+1 {{'quant.load' op accesses 16 columns of scratch memory in pairs, expected multiples of 32}}
  %0 = quant.load %m[%i, %i] : memref<8x64xf32> -> tensor<1x16xf32>
  return
}

// -----
// ME8: from the first of 32 columns, also of a view
func.func @f(%t: tensor<32xf32>, %i: index) {
  %c16 = arith.constant 16 : index
  %m = quant.scratch {pairs} : memref<8x64xf32>
  %v = quant.view %m[%i] dims [1] : memref<8x64xf32> -> memref<?xf32, strided<[1]>>
  // expected-error @+1 {{'quant.store' op accesses 32 columns from 16 of scratch memory in pairs, expected multiples of 32}}
  quant.store %t, %v[%c16] : tensor<32xf32>, memref<?xf32, strided<[1]>>
  return
}

// -----
// SC1: it is known how much memory a program takes
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory has shape [?, 4], expected a static shape}}
  %m = quant.scratch : memref<?x4xf32>
  return
}

// -----
// SC2: rows lie one after the other
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory is of type 'memref<4x4xf32, strided<[8, 1]>>', expected no layout and no memory space}}
  %m = quant.scratch : memref<4x4xf32, strided<[8, 1]>>
  return
}

// -----
// SC2: there is one kind of memory
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory is of type 'memref<4x4xf32, 3>', expected no layout and no memory space}}
  %m = quant.scratch : memref<4x4xf32, 3>
  return
}

// -----
// SC3: tiles of the elements can be loaded
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory has elements of type 'f64', expected 4, 8, 16 or 32 bits, or i64}}
  %m = quant.scratch : memref<4x4xf64>
  return
}

// -----
// SC4: a row begins with a byte
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory has rows of 31 four-bit elements, expected whole bytes}}
  %m = quant.scratch : memref<4x31xf4E2M1FN>
  return
}

// -----
// SC5: registers hold pairs of words
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op pairs in memory of type 'memref<4x32xbf16>', expected columns of 32 bits}}
  %m = quant.scratch {pairs} : memref<4x32xbf16>
  return
}

// -----
// PF1: a tile has rows and columns
func.func @f(%m: memref<8x8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.prefetch' op memref has rank 3, expected 1 or 2}}
  quant.prefetch %m[%i, %i, %i] [1, 1, 8] : memref<8x8x8xf32>
  return
}

// -----
// PF2: there is an index for each dimension
func.func @f(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.prefetch' op has 1 indices, expected 2, the rank of the memref}}
  quant.prefetch %m[%i] [1, 8] : memref<8x8xf32>
  return
}

// -----
// PF3: and an extent
func.func @f(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.prefetch' op shape is [8], expected 2 extents of 1 or more}}
  quant.prefetch %m[%i, %i] [8] : memref<8x8xf32>
  return
}

// -----
// PF3: no dimension is empty
func.func @f(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.prefetch' op shape is [0, 8], expected 2 extents of 1 or more}}
  quant.prefetch %m[%i, %i] [0, 8] : memref<8x8xf32>
  return
}

// -----
// ST1: there is a valid extent for each dimension, or none
func.func @f(%m: memref<8x8xf32>, %t: tensor<8x8xf32>, %i: index) {
  // expected-error @+1 {{'quant.store' op found 1 valid extents, expected 2, the rank of the memref}}
  quant.store %t, %m[%i, %i] valid [%i] : tensor<8x8xf32>, memref<8x8xf32>
  return
}

// -----
// ST2: tiles in an order of scales have rank 2
func.func @f(%m: memref<512xf8E4M3FN>, %t: tensor<512xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{'quant.store' op swizzle_128x4 of a tile of rank 1, expected rank 2}}
  quant.store %t, %m[%i] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<512xf8E4M3FN>, memref<512xf8E4M3FN>
  return
}

// -----
// ST3: what is stored in the 128x4 order is a byte
func.func @f(%m: memref<128x4xf32>, %t: tensor<128x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.store' op swizzle_128x4 of a tile of 'f32', expected f8E4M3FN or f8E8M0FNU}}
  quant.store %t, %m[%i, %i] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<128x4xf32>, memref<128x4xf32>
  return
}

// -----
// ST4: the memref of a swizzled store is padded
func.func @f(%m: memref<100x4xf8E4M3FN>, %t: tensor<128x4xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{'quant.store' op swizzle_128x4 into dimension 0 of extent 100 of the memref, expected a multiple of 128}}
  quant.store %t, %m[%i, %i] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<128x4xf8E4M3FN>, memref<100x4xf8E4M3FN>
  return
}

// -----
// ST4: the memref of a swizzled store is padded
func.func @f(%m: memref<?x6xf8E8M0FNU>, %t: tensor<128x4xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{'quant.store' op swizzle_128x4 into dimension 1 of extent 6 of the memref, expected a multiple of 4}}
  quant.store %t, %m[%i, %i] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<128x4xf8E8M0FNU>, memref<?x6xf8E8M0FNU>
  return
}

// -----
// ST4: tiles of 8 rows are whole
func.func @f(%m: memref<12x4xf8E4M3FN>, %t: tensor<8x4xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{'quant.store' op swizzle_8x4 into dimension 0 of extent 12 of the memref, expected a multiple of 8}}
  quant.store %t, %m[%i, %i] {scale_layout = #quant.scale_layout<swizzle_8x4>} : tensor<8x4xf8E4M3FN>, memref<12x4xf8E4M3FN>
  return
}

// -----
// ST6: four scales of a word are shared exponents
func.func @f(%m: memref<128x4xf8E4M3FN>, %t: tensor<128x4xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{'quant.store' op packed_column_major of a tile of 'f8E4M3FN', expected f8E8M0FNU}}
  quant.store %t, %m[%i, %i] {scale_layout = #quant.scale_layout<packed_column_major>} : tensor<128x4xf8E4M3FN>, memref<128x4xf8E4M3FN>
  return
}

// -----
// ST7: one program has no tile of its own
func.func @f(%m: memref<4xf32>, %t: tensor<4xf32>, %i: index) {
  // expected-error @+1 {{'quant.store' op once of a tile of rank 1, expected rank 0}}
  quant.store %t, %m[%i] {once} : tensor<4xf32>, memref<4xf32>
  return
}

// -----
// ST5: scales are stored in a known order
func.func @f(%m: memref<128x4xf8E4M3FN>, %t: tensor<128x4xf8E4M3FN>, %i: index) {
  // expected-error @+2 {{expected ::dither::quant::ScaleLayout to be one of: linear, swizzle_128x4, swizzle_8x4, packed_column_major}}
  // expected-error @+1 {{failed to parse}}
  quant.store %t, %m[%i, %i] {scale_layout = #quant.scale_layout<swizzle>} : tensor<128x4xf8E4M3FN>, memref<128x4xf8E4M3FN>
  return
}

// -----
// AM1: atomic maxima are of f32
func.func @f(%m: memref<8xi32>, %t: tensor<8xi32>, %i: index) {
  // expected-error @+1 {{'quant.atomic_max' op operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<8xi32>'}}
  quant.atomic_max %t, %m[%i] : tensor<8xi32>, memref<8xi32>
  return
}

// -----
// AA1: atomic sums are of integers
func.func @f(%m: memref<8xf32>, %t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{'quant.atomic_add' op operand #0 must be ranked tensor of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<8xf32>'}}
  quant.atomic_add %t, %m[%i] : tensor<8xf32>, memref<8xf32>
  return
}

// -----
// LN1: numbers have 32 bits, or are i64
func.func @f(%x: memref<i8>) {
  // expected-error @+1 {{'quant.load_scalar' op operand #0 must be memref of 32-bit float or 32-bit signless integer or 64-bit signless integer values, but got 'memref<i8>'}}
  %0 = quant.load_scalar %x : memref<i8> -> i32
  return
}

// -----
// LN4: an index for each dimension
func.func @f(%x: memref<?xi32>) {
  // expected-error @+1 {{'quant.load_scalar' op found 0 indices, expected 1, the rank of the memref}}
  %0 = quant.load_scalar %x : memref<?xi32> -> i32
  return
}

// -----
// LN2: nor through a view
func.func @f(%x: memref<?xi32>, %t: tensor<4xi32>, %i: index) {
  %v = quant.slice %x[%i] count %i dim 0 : memref<?xi32> -> memref<?xi32, strided<[1]>>
  // expected-error @+1 {{'quant.load_scalar' op memref is written by quant.store, expected one that is only read}}
  %0 = quant.load_scalar %x[%i] : memref<?xi32> -> i32
  quant.store %t, %v[%i] : tensor<4xi32>, memref<?xi32, strided<[1]>>
  return
}

// -----
// LN3: the number is an element
func.func @f(%x: memref<i32>) {
  // expected-error @+1 {{'quant.load_scalar' op result has type 'i64', expected 'i32'}}
  %0 = quant.load_scalar %x : memref<i32> -> i64
  return
}

// -----
// LN2: loads of numbers have no order among writes
func.func @f(%x: memref<i32>, %t: tensor<i32>) {
  // expected-error @+1 {{'quant.load_scalar' op memref is written by quant.store, expected one that is only read}}
  %0 = quant.load_scalar %x : memref<i32> -> i32
  quant.store %t, %x[] : tensor<i32>, memref<i32>
  return
}

// -----
// FA1: a counter is one i64
func.func @f(%m: memref<8xi64>, %i: index) {
  // expected-error @+1 {{'quant.fetch_add' op operand #1 must be 0D memref of 64-bit signless integer values, but got 'memref<8xi64>'}}
  %0 = quant.fetch_add %i, %m : memref<8xi64>
  return
}

// -----
// FA2: a counter is nothing else
func.func @f(%m: memref<i64>, %t: tensor<i64>, %i: index) {
  // expected-error @+1 {{'quant.fetch_add' op counter is used by quant.atomic_add, expected quant.fetch_add alone}}
  %0 = quant.fetch_add %i, %m : memref<i64>
  quant.atomic_add %t, %m[] : tensor<i64>, memref<i64>
  return
}

// -----
// GS1: a row is named for each row of the tile
func.func @f(%m: memref<8x4xf32>, %rows: tensor<4x2xi32>, %i: index) {
  // expected-error @+1 {{'quant.gather' op rows have shape [4, 2], expected [4, 1], one for each row of the tile}}
  %0 = quant.gather %m[%rows, %i] : memref<8x4xf32>, tensor<4x2xi32> -> tensor<4x4xf32>
  return
}

// -----
// VI1: a view is of a strided memref
func.func @f(%m: memref<8x4xf32, affine_map<(i, j) -> (i mod 2, j)>>, %i: index) {
  // expected-error @+1 {{'quant.view' op memref is of type 'memref<8x4xf32, affine_map<(d0, d1) -> (d0 mod 2, d1)>>', expected a ranked one with strides}}
  %0 = quant.view %m[%i] dims [1] : memref<8x4xf32, affine_map<(i, j) -> (i mod 2, j)>> -> memref<?xf32>
  return
}

// -----
// VI2: a view has the last dimension
func.func @f(%m: memref<2x3x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.view' op dims are [0, 1], expected one or two dimensions in their order, the last one 2}}
  %0 = quant.view %m[%i] dims [0, 1] : memref<2x3x4xf32> -> memref<?x3xf32, strided<[12, 4]>>
  return
}

// -----
// VI3: a view has an index for each other dimension
func.func @f(%m: memref<2x3x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.view' op found 2 indices, expected 1, one for each other dimension}}
  %0 = quant.view %m[%i, %i] dims [0, 2] : memref<2x3x4xf32> -> memref<?x4xf32, strided<[12, 1]>>
  return
}

// -----
// VI4: a view may have no elements
func.func @f(%m: memref<2x3x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.view' op result is of type 'memref<2x4xf32, strided<[12, 1]>>', expected 'memref<?x4xf32, strided<[12, 1]>>'}}
  %0 = quant.view %m[%i] dims [0, 2] : memref<2x3x4xf32> -> memref<2x4xf32, strided<[12, 1]>>
  return
}

// -----
// PT1: a slice is of a strided memref
func.func @f(%m: memref<8x4xf32, affine_map<(i, j) -> (i mod 2, j)>>, %i: index) {
  // expected-error @+1 {{'quant.slice' op memref is of type 'memref<8x4xf32, affine_map<(d0, d1) -> (d0 mod 2, d1)>>', expected a ranked one with strides}}
  %0 = quant.slice %m[%i] count %i dim 0 : memref<8x4xf32, affine_map<(i, j) -> (i mod 2, j)>> -> memref<?x4xf32>
  return
}

// -----
// PT2: along one of its dimensions
func.func @f(%m: memref<8x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.slice' op dim is 2, expected one of the 2 dimensions of the memref}}
  %0 = quant.slice %m[%i] count %i dim 2 : memref<8x4xf32> -> memref<?x4xf32, strided<[4, 1]>>
  return
}

// -----
// PT3: no byte is cut
func.func @f(%m: memref<8x4xf4E2M1FN>, %i: index) {
  // expected-error @+1 {{'quant.slice' op dim is 1, along which four-bit elements share bytes, expected another one}}
  %0 = quant.slice %m[%i] count %i dim 1 : memref<8x4xf4E2M1FN> -> memref<8x?xf4E2M1FN, strided<[4, 1]>>
  return
}

// -----
// PT4: the number of elements is unknown
func.func @f(%m: memref<8x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.slice' op result is of type 'memref<8x4xf32>', expected 'memref<?x4xf32, strided<[4, 1]>>'}}
  %0 = quant.slice %m[%i] count %i dim 0 : memref<8x4xf32> -> memref<8x4xf32>
  return
}

// -----
// CP1: columns are neighbours
func.func @f(%m: memref<8x4xf32, strided<[1, 8]>>) {
  // expected-error @+1 {{'quant.cluster_part' op memref is of type 'memref<8x4xf32, strided<[1, 8]>>', expected columns of stride 1}}
  %0 = quant.cluster_part %m run 2 blocks 2 : memref<8x4xf32, strided<[1, 8]>> -> memref<8x2xf32, strided<[1, 8]>>
  return
}

// -----
// CP2: runs are powers of two
func.func @f(%m: memref<8x48xf32>) {
  // expected-error @+1 {{'quant.cluster_part' op run is 3, expected a power of two from 2 to 1073741824}}
  %0 = quant.cluster_part %m run 3 blocks 2 : memref<8x48xf32> -> memref<8x24xf32, strided<[48, 1]>>
  return
}

// -----
// CP3: clusters that every GPU with clusters has
func.func @f(%m: memref<8x48xf32>) {
  // expected-error @+1 {{'quant.cluster_part' op found a cluster of 3 blocks, expected 2, 4 or 8}}
  %0 = quant.cluster_part %m run 4 blocks 3 : memref<8x48xf32> -> memref<8x16xf32, strided<[48, 1]>>
  return
}

// -----
// CP4: one column in so many blocks
func.func @f(%m: memref<8x48xf32>) {
  // expected-error @+1 {{'quant.cluster_part' op result is of type 'memref<8x48xf32>', expected 'memref<8x24xf32, strided<[48, 1]>>'}}
  %0 = quant.cluster_part %m run 8 blocks 2 : memref<8x48xf32> -> memref<8x48xf32>
  return
}

// -----
// MX1: a matrix is in a row of elements
func.func @f(%m: memref<8x4xf32>, %i: index) {
  // expected-error @+1 {{'quant.matrix' op memref is of type 'memref<8x4xf32>', expected rank 1 and stride 1}}
  %0 = quant.matrix %m[%i] rows %i : memref<8x4xf32> -> memref<?x4xf32, strided<[4, 1]>>
  return
}

// -----
// MX2: its rows follow each other, those of four-bit elements in whole bytes
func.func @f(%m: memref<?xf4E2M1FN>, %i: index) {
  // expected-error @+1 {{'quant.matrix' op result is of type 'memref<?x3xf4E2M1FN, strided<[3, 1]>>', expected 'memref<?x3xf4E2M1FN, strided<[4, 1]>>'}}
  %0 = quant.matrix %m[%i] rows %i : memref<?xf4E2M1FN> -> memref<?x3xf4E2M1FN, strided<[3, 1]>>
  return
}

// -----
// MX3: columns are said once
func.func @f(%m: memref<?xf32>, %i: index) {
  // expected-error @+1 {{'quant.matrix' op has cols, expected none: the result has 4 columns}}
  %0 = quant.matrix %m[%i] rows %i cols %i : memref<?xf32> -> memref<?x4xf32, strided<[4, 1]>>
  return
}

// -----
// BC1: a broadcast keeps the element type
func.func @f(%x: f32) {
  // expected-error @+1 {{'quant.broadcast' op source has element type 'f32', expected 'i32', that of the result}}
  %0 = quant.broadcast %x : f32 -> tensor<4xi32>
  return
}

// -----
// BC2: a broadcast keeps the rank, but for rank 0
func.func @f(%x: tensor<128xf32>) {
  // expected-error @+1 {{'quant.broadcast' op source has rank 1, expected 0 or 2, the rank of the result}}
  %0 = quant.broadcast %x : tensor<128xf32> -> tensor<4x128xf32>
  return
}

// -----
// BC3: a broadcast repeats unit dimensions
func.func @f(%x: tensor<2x1xf32>) {
  // expected-error @+1 {{'quant.broadcast' op source has shape [2, 1], expected dimension 0 to be 1 or that of the result, [4, 128]}}
  %0 = quant.broadcast %x : tensor<2x1xf32> -> tensor<4x128xf32>
  return
}

// -----
// BC3: a dimension that is not known is not known to be repeated
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @+1 {{'quant.broadcast' op source has shape [?, 1], expected dimension 0 to be 1 or that of the result, [4, 128]}}
  %0 = quant.broadcast %x : tensor<?x1xf32> -> tensor<4x128xf32>
  return
}

// -----
// BC4: a scalar that is repeated is f32, i32 or i1
func.func @f(%x: index) {
  // expected-error @+1 {{'quant.broadcast' op operand #0 must be ranked tensor of any type values or 32-bit float or 32-bit signless integer or 64-bit signless integer or 1-bit signless integer, but got 'index'}}
  %0 = quant.broadcast %x : index -> tensor<4xindex>
  return
}

// -----
// RS1: a reshape keeps the element type
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.reshape' op source has element type 'f32', expected 'i32', that of the result}}
  %0 = quant.reshape %x : tensor<4xf32> -> tensor<4x1xi32>
  return
}

// -----
// RS2: a reshape inserts or drops unit dimensions
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reshape' op source has shape [4, 8] and the result [8, 4], expected them to differ in unit dimensions only}}
  %0 = quant.reshape %x : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----
// TR1: a tile that is transposed has rank 2
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.transpose' op source has rank 1, expected 2}}
  %0 = quant.transpose %x : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// TR2: the dimensions are exchanged
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.transpose' op result has shape [4, 8], expected [8, 4]}}
  %0 = quant.transpose %x : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
// TR2: the element type stays
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.transpose' op result has element type 'bf16', expected 'f32'}}
  %0 = quant.transpose %x : tensor<4x8xf32> -> tensor<8x4xbf16>
  return
}

// -----
// IO1: index ramps have a static shape
func.func @f() {
  // expected-error @+1 {{'quant.iota' op result has shape [?, 8], expected a static shape}}
  %0 = quant.iota dim 1 : tensor<?x8xi32>
  return
}

// -----
// IO2: the dimension exists
func.func @f() {
  // expected-error @+1 {{'quant.iota' op dim 2 is out of range, expected 0 to 1 for a tensor of rank 2}}
  %0 = quant.iota dim 2 : tensor<4x8xi32>
  return
}

// -----
// IO2: the dimension exists: there is none
func.func @f() {
  // expected-error @+1 {{'quant.iota' op dim 0 of a tensor of rank 0, expected rank 1 or more}}
  %0 = quant.iota dim 0 : tensor<i32>
  return
}

// -----
// IO3: indices are i32
func.func @f() {
  // expected-error @+1 {{'quant.iota' op result #0 must be ranked tensor of 32-bit signless integer values, but got 'tensor<4xindex>'}}
  %0 = quant.iota dim 0 : tensor<4xindex>
  return
}

// -----
// RE1: the reduced dimension exists
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reduce' op axis 2 is out of range, expected 0 to 1 for a tensor of rank 2}}
  %0 = quant.reduce sum %x axis 2 : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE1: dimensions are not counted from the end
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reduce' op axis -1 is out of range, expected 0 to 1 for a tensor of rank 2}}
  %0 = quant.reduce sum %x axis -1 : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE1: a tensor of rank 0 has none
func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{'quant.reduce' op axis 0 of a tensor of rank 0, expected rank 1 or more}}
  %0 = quant.reduce amax %x axis 0 : tensor<f32> -> tensor<f32>
  return
}

// -----
// RE1: an axis is an i64
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reduce' op attribute 'axis' failed to satisfy constraint: 64-bit signless integer attribute}}
  %0 = "quant.reduce"(%x) <{axis = 1 : i128, kind = #quant<reduce_kind sum>}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return
}

// -----
// RE1: an axis is given
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reduce' op requires attribute 'axis'}}
  %0 = "quant.reduce"(%x) <{kind = #quant<reduce_kind sum>}> : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return
}

// -----
// RE2: the reduced dimension has an element
func.func @f(%x: tensor<4x0xf32>) {
  // expected-error @+1 {{'quant.reduce' op dimension 1 is empty, expected an element to reduce}}
  %0 = quant.reduce max %x axis 1 : tensor<4x0xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE3: count is 1 to the extent
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reduce' op count is 9, expected 1 to 8, the extent of dimension 1}}
  %0 = quant.reduce sum %x axis 1 {count = 9} : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE3: count is at least 1
func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{'quant.reduce' op count is 0, expected at least 1}}
  %0 = quant.reduce sum %x axis 1 {count = 0} : tensor<4x?xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE7: a tree is that of a sum
func.func @f(%x: tensor<4x512xf32>) {
  // expected-error @+1 {{'quant.reduce' op tree of a reduction of kind max, expected sum}}
  %0 = quant.reduce max %x axis 1 {tree} : tensor<4x512xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE8: a tree has all elements
func.func @f(%x: tensor<4x512xf32>) {
  // expected-error @+1 {{'quant.reduce' op tree with a count, expected all elements}}
  %0 = quant.reduce sum %x axis 1 {count = 512, tree} : tensor<4x512xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE9: a tree has a power of two
func.func @f(%x: tensor<4x384xf32>) {
  // expected-error @+1 {{'quant.reduce' op tree of 384 elements, expected a power of two up to 2048}}
  %0 = quant.reduce sum %x axis 1 {tree} : tensor<4x384xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE9: no more than there are chains
func.func @f(%x: tensor<4x4096xf32>) {
  // expected-error @+1 {{'quant.reduce' op tree of 4096 elements, expected a power of two up to 2048}}
  %0 = quant.reduce sum %x axis 1 {tree} : tensor<4x4096xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE10: chains are those of sums
func.func @f(%x: tensor<4x512xf32>) {
  // expected-error @+1 {{'quant.reduce' op chains of a reduction of kind max, or with a count or a tree, expected a sum of all elements}}
  %0 = quant.reduce max %x axis 1 {chains = 256} : tensor<4x512xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE11: all chains are as long
func.func @f(%x: tensor<4x384xf32>) {
  // expected-error @+1 {{'quant.reduce' op found 256 chains of 384 elements, expected a power of two up to 2048 that divides them}}
  %0 = quant.reduce sum %x axis 1 {chains = 256} : tensor<4x384xf32> -> tensor<4x1xf32>
  return
}

// -----
// CR1: of so many elements
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @+1 {{'quant.cluster_reduce' op source has shape [?, 1], expected a static shape}}
  %0 = quant.cluster_reduce sum %x blocks 2 : tensor<?x1xf32>
  return
}

// -----
// CR2: clusters that every GPU with clusters has
func.func @f(%x: tensor<1x1xf32>) {
  // expected-error @+1 {{'quant.cluster_reduce' op found a cluster of 16 blocks, expected 2, 4 or 8}}
  %0 = quant.cluster_reduce sum %x blocks 16 : tensor<1x1xf32>
  return
}

// -----
// TI1: tiles that are summed in pairs
func.func @f() {
  // expected-error @+1 {{'quant.tile_id' op found 3 tiles, expected a power of two from 2 to 64}}
  %0 = quant.tile_id of 3
  return
}

// -----
// ST8: totals are of f32
func.func @f(%t: tensor<4xi32>, %m: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.store' op total of a tile of 'i32', expected f32, in linear order, without 'once' and 'valid'}}
  quant.store %t, %m[%c0] {total = 0 : i64} : tensor<4xi32>, memref<4xi32>
  return
}

// -----
// ST8: totals are numbered from 0 on
func.func @f(%t: tensor<4xf32>, %m: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.store' op found total -1, expected 0 to 63}}
  quant.store %t, %m[%c0] {total = -1 : i64} : tensor<4xf32>, memref<4xf32>
  return
}

// -----
// RE4: the kinds are sum, max, min and amax
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expected ::dither::quant::ReduceKind to be one of: sum, max, min, amax}}
  // expected-error @+1 {{failed to parse}}
  %0 = quant.reduce mul %x axis 1 : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----
// RE5: reductions are of f32
func.func @f(%x: tensor<4x8xbf16>) {
  // expected-error @+1 {{'quant.reduce' op operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<4x8xbf16>'}}
  %0 = quant.reduce sum %x axis 1 : tensor<4x8xbf16> -> tensor<4x1xf32>
  return
}

// -----
// RE5: reductions are of tensors with a rank
func.func @f(%x: tensor<*xf32>) {
  // expected-error @+1 {{'quant.reduce' op operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<*xf32>'}}
  %0 = "quant.reduce"(%x) <{axis = 1, kind = #quant<reduce_kind sum>}> : (tensor<*xf32>) -> tensor<4x1xf32>
  return
}

// -----
// RE6: the reduced dimension stays, with extent 1
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'quant.reduce' op result has shape [4], expected [4, 1]}}
  %0 = quant.reduce sum %x axis 1 : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----
// HD1: a transform is along a dimension
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.hadamard' op axis is 2, expected 0 to 1}}
  %0 = quant.hadamard %x axis 2 size 4 : tensor<4x16xf32>
  return
}

// -----
// HD2: the sizes of transforms
func.func @f(%x: tensor<4x256xf32>) {
  // expected-error @+1 {{'quant.hadamard' op size is 256, expected a power of two from 2 to 128}}
  %0 = quant.hadamard %x axis 1 size 256 : tensor<4x256xf32>
  return
}

// -----
// HD3: a transform is of whole runs
func.func @f(%x: tensor<4x24xf32>) {
  // expected-error @+1 {{'quant.hadamard' op dimension 1 has extent 24, expected a multiple of 16}}
  %0 = quant.hadamard %x axis 1 size 16 : tensor<4x24xf32>
  return
}

// -----
// BL1: a block has an extent for each dimension
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op block has 1 extents, expected 2, the rank of the source}}
  %0 = quant.block_reduce amax %x block [16] : tensor<4x16xf32> -> tensor<4x1xf32>
  return
}

// -----
// BL1: a block has an extent for each dimension
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.block_broadcast' op block has 0 extents, expected 2, the rank of the source}}
  %0 = quant.block_broadcast %x block [] : tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----
// BL2: extents of blocks are positive powers of two
func.func @f(%x: tensor<4x24xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op block extent is 12, expected a positive power of two}}
  %0 = quant.block_reduce amax %x block [1, 12] : tensor<4x24xf32> -> tensor<4x2xf32>
  return
}

// -----
// BL2: extents of blocks are positive powers of two
func.func @f(%x: tensor<4x24xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op block extent is 0, expected a positive power of two}}
  %0 = quant.block_reduce amax %x block [1, 0] : tensor<4x24xf32> -> tensor<4x2xf32>
  return
}

// -----
// BL2: extents of blocks are positive powers of two
func.func @f(%x: tensor<4x24xf32>) {
  // expected-error @+1 {{'quant.block_broadcast' op block extent is -9223372036854775808, expected a positive power of two}}
  %0 = quant.block_broadcast %x block [1, -9223372036854775808] : tensor<4x24xf32> -> tensor<4x2xf32>
  return
}

// -----
// BR1: blocks divide the tile
func.func @f(%x: tensor<4x24xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op block of 16 does not divide dimension 1 of extent 24 of the source}}
  %0 = quant.block_reduce amax %x block [1, 16] : tensor<4x24xf32> -> tensor<4x2xf32>
  return
}

// -----
// BR2: sums are along one dimension
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op kind is sum of blocks of [2, 16], expected one extent above 1}}
  %0 = quant.block_reduce sum %x block [2, 16] : tensor<4x32xf32> -> tensor<2x2xf32>
  return
}

// -----
// BR3: the result has an element for each block
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op result has shape [4, 1], expected [4, 2]}}
  %0 = quant.block_reduce amax %x block [1, 16] : tensor<4x32xf32> -> tensor<4x1xf32>
  return
}

// -----
// BR5: halves are added
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op halves of kind max, expected sum}}
  %0 = quant.block_reduce max %x block [1, 16] {halves} : tensor<4x32xf32> -> tensor<4x2xf32>
  return
}

// -----
// BR4: bits order as magnitudes, not as numbers
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_reduce' op amax_bits of kind max, expected amax}}
  %0 = quant.block_reduce max %x block [1, 16] {amax_bits} : tensor<4x32xf32> -> tensor<4x2xf32>
  return
}

// -----
// BB1: extents stay below 2^63
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_broadcast' op block of 4611686018427387904 makes dimension 1 larger than an index}}
  %0 = quant.block_broadcast %x block [1, 4611686018427387904] : tensor<4x32xf32> -> tensor<4x32xf32>
  return
}

// -----
// BB2: the result has a block for each element
func.func @f(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{'quant.block_broadcast' op result has shape [4, 16], expected [4, 32]}}
  %0 = quant.block_broadcast %x block [1, 16] : tensor<4x2xf32> -> tensor<4x16xf32>
  return
}

// -----
// EL1: an elementwise conversion keeps the layout
func.func @f(%x: tensor<32xf32, #quant.layout<"(32) lane=[(1),(2),(4),(8),(16)]">>) {
  // expected-error @+1 {{'quant.encode' op source has layout #quant.layout<"(32) lane=[(1),(2),(4),(8),(16)]"> and the result #quant.layout<"(32) reg=[(1)] lane=[(2),(4),(8),(16)]">, expected the same}}
  %0 = quant.encode %x : tensor<32xf32, #quant.layout<"(32) lane=[(1),(2),(4),(8),(16)]">> -> tensor<32xf8E4M3FN, #quant.layout<"(32) reg=[(1)] lane=[(2),(4),(8),(16)]">>
  return
}

// -----
// EL1: an elementwise conversion keeps the layout
func.func @f(%x: tensor<2xf8E5M2, #quant.layout<"(2) lane=[(1)]">>) {
  // expected-error @+1 {{'quant.decode' op source has layout #quant.layout<"(2) lane=[(1)]"> and the result #quant.layout<"(2) reg=[(1)]">, expected the same}}
  %0 = quant.decode %x : tensor<2xf8E5M2, #quant.layout<"(2) lane=[(1)]">> -> tensor<2xf32, #quant.layout<"(2) reg=[(1)]">>
  return
}

// -----
// EL1: an elementwise conversion keeps the layout
func.func @f(%x: tensor<2xf8E8M0FNU, #quant.layout<"(2) lane=[(1)]">>) {
  // expected-error @+1 {{'quant.e8m0_inverse' op source has layout #quant.layout<"(2) lane=[(1)]"> and the result #quant.layout<"(2) reg=[(1)]">, expected the same}}
  %0 = quant.e8m0_inverse %x : tensor<2xf8E8M0FNU, #quant.layout<"(2) lane=[(1)]">> -> tensor<2xf32, #quant.layout<"(2) reg=[(1)]">>
  return
}

// -----
// EL2: an elementwise conversion keeps the shape
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.encode' op all non-scalar operands/results must have the same shape and base type}}
  %0 = quant.encode %x : tensor<4x16xf32> -> tensor<4x8xf8E4M3FN>
  return
}

// -----
// EN1: E8M0 needs a mode
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.encode' op has no mode, expected rceil or floor for f8E8M0FNU}}
  %0 = quant.encode %x : tensor<4x16xf32> -> tensor<4x16xf8E8M0FNU>
  return
}

// -----
// EN2: other formats have no mode
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.encode' op has mode rceil for 'f4E2M1FN', expected a mode for f8E8M0FNU only}}
  %0 = quant.encode %x {mode = #quant.e8m0_mode<rceil>} : tensor<4x16xf32> -> tensor<4x16xf4E2M1FN>
  return
}

// -----
// EN3: f32 becomes a narrow type
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.encode' op result #0 must be ranked tensor of f4E2M1FN type or f6E2M3FN type or f6E3M2FN type or 8-bit signless integer or f8E4M3FN type or f8E5M2 type or f8E8M0FNU type values, but got 'tensor<4x16xbf16>'}}
  %0 = quant.encode %x : tensor<4x16xf32> -> tensor<4x16xbf16>
  return
}

// -----
// EN3: what is encoded is f32
func.func @f(%x: tensor<4x16xbf16>) {
  // expected-error @+1 {{'quant.encode' op operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<4x16xbf16>'}}
  %0 = quant.encode %x : tensor<4x16xbf16> -> tensor<4x16xf8E4M3FN>
  return
}

// -----
// EN4: the modes are rceil and floor
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+2 {{expected ::dither::quant::E8M0Mode to be one of: rceil, floor}}
  // expected-error @+1 {{failed to parse}}
  %0 = quant.encode %x {mode = #quant.e8m0_mode<even>} : tensor<4x16xf32> -> tensor<4x16xf8E8M0FNU>
  return
}

// -----
// EL1: products are encoded where they are
func.func @f(%x: tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>) {
  // expected-error @+1 {{'quant.scale_encode' op source has layout #quant.layout<"(2) lane=[(1)]"> and the result #quant.layout<"(2) reg=[(1)]">, expected the same}}
  %0 = quant.scale_encode %x, %x : tensor<2xf32, #quant.layout<"(2) lane=[(1)]">> -> tensor<2xf8E5M2, #quant.layout<"(2) reg=[(1)]">>
  return
}

// -----
// SE1: each element has a factor
func.func @f(%x: tensor<4x16xf32>, %f: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.scale_encode' op failed to verify that all of {source, factor} have same type}}
  %0 = "quant.scale_encode"(%x, %f) : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf8E4M3FN>
  return
}

// -----
// SE1: source and factor are held by the same lanes
func.func @f(%x: tensor<2xf32>, %f: tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>) {
  // expected-error @+1 {{'quant.scale_encode' op failed to verify that all of {source, factor} have same type}}
  %0 = "quant.scale_encode"(%x, %f) : (tensor<2xf32>, tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>) -> tensor<2xf8E4M3FN>
  return
}

// -----
// SE2: products become floats of at most 8 bits
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode' op result #0 must be ranked tensor of f4E2M1FN type or f6E2M3FN type or f6E3M2FN type or f8E4M3FN type or f8E5M2 type values, but got 'tensor<4x16xi8>'}}
  %0 = quant.scale_encode %x, %x : tensor<4x16xf32> -> tensor<4x16xi8>
  return
}

// -----
// SE4: nor of the range of factors without it
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode' op has powers, expected it to be bounded, too}}
  %0 = quant.scale_encode %x, %x {finite, powers} : tensor<4x16xf32> -> tensor<4x16xf8E4M3FN>
  return
}

// -----
// SE3: nothing is said of the range of products that may be infinite
func.func @f(%x: tensor<4x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode' op is bounded, expected it to be finite, too}}
  %0 = quant.scale_encode %x, %x {bounded} : tensor<4x16xf32> -> tensor<4x16xf8E4M3FN>
  return
}

// -----
// SR1: what is rounded to has codes of elements
func.func @f(%x: tensor<4x16xf32>, %r: tensor<4x16xi32>) {
  // expected-error @+1 {{'quant.stochastic_round' op elem is 'bf16', expected f4E2M1FN, f6E2M3FN, f6E3M2FN, i8, f8E4M3FN or f8E5M2}}
  %0 = quant.stochastic_round %x, %r {elem = bf16} : tensor<4x16xf32>, tensor<4x16xi32>
  return
}

// -----
// SR2: each element has bits of its own
func.func @f(%x: tensor<4x16xf32>, %r: tensor<4x1xi32>) {
  // expected-error @+1 {{'quant.stochastic_round' op all non-scalar operands/results must have the same shape and base type}}
  %0 = quant.stochastic_round %x, %r {elem = f8E5M2} : tensor<4x16xf32>, tensor<4x1xi32>
  return
}

// -----
// DE1: a narrow type becomes f32
func.func @f(%x: tensor<4x16xbf16>) {
  // expected-error @+1 {{'quant.decode' op operand #0 must be ranked tensor of f4E2M1FN type or f6E2M3FN type or f6E3M2FN type or 8-bit signless integer or f8E4M3FN type or f8E5M2 type or f8E8M0FNU type values, but got 'tensor<4x16xbf16>'}}
  %0 = quant.decode %x : tensor<4x16xbf16> -> tensor<4x16xf32>
  return
}

// -----
// DE1: a narrow type becomes f32
func.func @f(%x: tensor<4xf4E2M1FN>) {
  // expected-error @+1 {{'quant.decode' op result #0 must be ranked tensor of 32-bit float values, but got 'tensor<4xbf16>'}}
  %0 = quant.decode %x : tensor<4xf4E2M1FN> -> tensor<4xbf16>
  return
}

// -----
// EI1: shared exponents are E8M0
func.func @f(%x: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{'quant.e8m0_inverse' op operand #0 must be ranked tensor of f8E8M0FNU type values, but got 'tensor<4xf8E4M3FN>'}}
  %0 = quant.e8m0_inverse %x : tensor<4xf8E4M3FN> -> tensor<4xf32>
  return
}

// -----
// CL1: only the layout changes
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.convert_layout' op all non-scalar operands/results must have the same shape and base type}}
  %0 = quant.convert_layout %x : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----
// CL1: only the layout changes
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.convert_layout' op requires the same element type for all operands and results}}
  %0 = quant.convert_layout %x : tensor<4xf32> -> tensor<4xi32>
  return
}

// -----
// CL2: an order and the width of its accesses
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.convert_layout' op has shared_vec only, expected shared and shared_vec together}}
  %0 = quant.convert_layout %x {shared_vec = array<i64: 1, 1>} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// CL2: an order and the width of its accesses
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.convert_layout' op has shared only, expected shared and shared_vec together}}
  %0 = quant.convert_layout %x {shared = #quant.layout<"(4) offset=[(1),(2)]">} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// CL3: two widths
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.convert_layout' op shared_vec has 1 entries, expected 2 (store and load)}}
  %0 = quant.convert_layout %x {shared = #quant.layout<"(4) offset=[(1),(2)]">, shared_vec = array<i64: 1>} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// CL3: widths that a lane can move at once
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{'quant.convert_layout' op shared_vec has a width of 3 units, expected 1, 2 or 4}}
  %0 = quant.convert_layout %x {shared = #quant.layout<"(4) offset=[(1),(2)]">, shared_vec = array<i64: 1, 3>} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----
// BS1: blocks run along a dimension
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_scale' op axis 2 is out of range, expected 0 to 1 for a tensor of rank 2}}
  %0 = quant.block_scale %x axis 2 format <mxfp4> : tensor<4x32xf32> -> tensor<4x1xf8E8M0FNU>
  return
}

// -----
// BS1: dimensions are not counted from the end
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp4' op axis -1 is out of range, expected 0 to 1 for a tensor of rank 2}}
  %0 = quant.cast_fp4 %x, %s axis -1 format <mxfp4> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf4E2M1FN>
  return
}

// -----
// BS1: a tensor of rank 0 has no blocks
func.func @f(%x: tensor<f8E4M3FN>, %s: tensor<f8E8M0FNU>) {
  // expected-error @+1 {{'quant.dequantize' op axis 0 of a tensor of rank 0, expected rank 1 or more}}
  %0 = quant.dequantize %x, %s axis 0 format <mxfp8_e4m3> : tensor<f8E4M3FN>, tensor<f8E8M0FNU> -> tensor<f32>
  return
}

// -----
// BS2: blocks divide the axis
func.func @f(%x: tensor<4x40xf32>) {
  // expected-error @+1 {{'quant.block_scale' op block of 32 does not divide dimension 1 of extent 40, expected a multiple of 32}}
  %0 = quant.block_scale %x axis 1 format <mxfp4> : tensor<4x40xf32> -> tensor<4x1xf8E8M0FNU>
  return
}

// -----
// BS2: blocks divide the axis
func.func @f(%x: tensor<4x40xf32>, %s: tensor<1x40xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp8' op block of 32 does not divide dimension 0 of extent 4, expected a multiple of 32}}
  %0 = quant.cast_fp8 %x, %s axis 0 format <mxfp8_e5m2> : tensor<4x40xf32>, tensor<1x40xf8E8M0FNU> -> tensor<4x40xf8E5M2>
  return
}

// -----
// BS2: blocks of several rows divide both dimensions
func.func @f(%x: tensor<4x64xf32>) {
  // expected-error @+1 {{'quant.block_scale' op block of 32 does not divide dimension 0 of extent 4, expected a multiple of 32}}
  %0 = quant.block_scale %x axis 1 format <mxfp8_e4m3, block = [32, 32]> : tensor<4x64xf32> -> tensor<1x2xf8E8M0FNU>
  return
}

// -----
// BS3: formats with a tensor scale take its amax
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.block_scale' op format nvfp4 has a tensor scale, expected a tensor_amax operand}}
  %0 = quant.block_scale %x axis 1 format <nvfp4> : tensor<4x32xf32> -> tensor<4x2xf8E4M3FN>
  return
}

// -----
// BS3: formats with a tensor scale take its amax
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x2xf8E4M3FN>) {
  // expected-error @+1 {{'quant.cast_fp4' op format nvfp4 has a tensor scale, expected a tensor_amax operand}}
  %0 = quant.cast_fp4 %x, %s axis 1 format <nvfp4> : tensor<4x32xf32>, tensor<4x2xf8E4M3FN> -> tensor<4x32xf4E2M1FN>
  return
}

// -----
// BS4: other formats do not
func.func @f(%x: tensor<4x32xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{'quant.block_scale' op format mxfp4 has no tensor scale, found a tensor_amax operand}}
  %0 = quant.block_scale %x, %g axis 1 format <mxfp4> : tensor<4x32xf32>, tensor<f32> -> tensor<4x1xf8E8M0FNU>
  return
}

// -----
// BS5: an amax has rank 0, or is that of rows
func.func @f(%x: tensor<4x32xf32>, %g: tensor<1xf32>) {
  // expected-error @+1 {{'quant.block_scale' op tensor_amax has type 'tensor<1xf32>', expected rank 0, or for blocks of one row [4, 1]}}
  %0 = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<4x32xf32>, tensor<1xf32> -> tensor<4x2xf8E4M3FN>
  return
}

// -----
// BS5: the amax of rows is for blocks of one row
func.func @f(%x: tensor<32x32xf32>, %g: tensor<32x1xf32>) {
  // expected-error @+1 {{'quant.block_scale' op tensor_amax has type 'tensor<32x1xf32>', expected rank 0, or for blocks of one row [32, 1]}}
  %0 = quant.block_scale %x, %g axis 1 format <nvfp4, block = [16, 16]> : tensor<32x32xf32>, tensor<32x1xf32> -> tensor<2x2xf8E4M3FN>
  return
}

// -----
// BS5: an amax is f32
func.func @f(%x: tensor<4x32xf32>, %g: tensor<bf16>) {
  // expected-error @+1 {{'quant.block_scale' op operand #1 must be ranked tensor of 32-bit float values, but got 'tensor<bf16>'}}
  %0 = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<4x32xf32>, tensor<bf16> -> tensor<4x2xf8E4M3FN>
  return
}

// -----
// BS6: there is a scale for each block
func.func @f(%x: tensor<4x64xf32>) {
  // expected-error @+1 {{'quant.block_scale' op scale has shape [4, 4], expected [4, 2]}}
  %0 = quant.block_scale %x axis 1 format <mxfp4> : tensor<4x64xf32> -> tensor<4x4xf8E8M0FNU>
  return
}

// -----
// BS6: scales have the type of the format
func.func @f(%x: tensor<4x64xf32>) {
  // expected-error @+1 {{'quant.block_scale' op scale has element type 'f8E4M3FN', expected 'f8E8M0FNU'}}
  %0 = quant.block_scale %x axis 1 format <mxfp4> : tensor<4x64xf32> -> tensor<4x2xf8E4M3FN>
  return
}

// -----
// BS6: an extent that is not known gives scales whose extent is not known
func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{'quant.block_scale' op scale has shape [4, 2], expected [4, ?]}}
  %0 = quant.block_scale %x axis 1 format <mxfp4> : tensor<4x?xf32> -> tensor<4x2xf8E8M0FNU>
  return
}

// -----
// BS7: values are f32, bf16 or f16
func.func @f(%x: tensor<4x32xf64>) {
  // expected-error @+1 {{'quant.block_scale' op operand #0 must be ranked tensor of 32-bit float or bfloat16 type or 16-bit float values, but got 'tensor<4x32xf64>'}}
  %0 = quant.block_scale %x axis 1 format <mxfp4> : tensor<4x32xf64> -> tensor<4x1xf8E8M0FNU>
  return
}

// -----
// BS8: blocks of several rows are of tensors of rank 2
func.func @f(%x: tensor<32xf32>) {
  // expected-error @+1 {{'quant.block_scale' op source has rank 1, expected rank 2 for format f8E4M3FN, scale = f8E8M0FNU, block = [32, 32]}}
  %0 = quant.block_scale %x axis 0 format <mxfp8_e4m3, block = [32, 32]> : tensor<32xf32> -> tensor<1xf8E8M0FNU>
  return
}

// -----
// BS6: a whole row has one scale
func.func @f(%x: tensor<4x100xf32>) {
  // expected-error @+1 {{'quant.block_scale' op scale has shape [4, 2], expected [4, 1]}}
  %0 = quant.block_scale %x axis 1 format <i8, scale = f32, block = [1, ?]> : tensor<4x100xf32> -> tensor<4x2xf32>
  return
}

// -----
// CA1: cast_fp4 takes formats of 4-bit elements
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp4' op format mxfp8_e4m3 has elements of 'f8E4M3FN', expected floats of 4 bits}}
  %0 = quant.cast_fp4 %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf8E4M3FN>
  return
}

// -----
// CA1: cast_fp6 takes formats of 6-bit elements
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp6' op format mxfp4 has elements of 'f4E2M1FN', expected floats of 6 bits}}
  %0 = quant.cast_fp6 %x, %s axis 1 format <mxfp4> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf4E2M1FN>
  return
}

// -----
// CA1: cast_int8 takes formats of integers
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_int8' op format mxfp8_e4m3 has elements of 'f8E4M3FN', expected integers of 8 bits}}
  %0 = quant.cast_int8 %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf8E4M3FN>
  return
}

// -----
// CA1: and cast_fp8 takes none of them
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp8' op format mxint8 has elements of 'i8', expected floats of 8 bits}}
  %0 = quant.cast_fp8 %x, %s axis 1 format <mxint8> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xi8>
  return
}

// -----
// CA1: cast_fp8 takes formats of 8-bit elements
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp8' op format mxfp4 has elements of 'f4E2M1FN', expected floats of 8 bits}}
  %0 = quant.cast_fp8 %x, %s axis 1 format <mxfp4> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf4E2M1FN>
  return
}

// -----
// CA2: there is a scale for each block
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x2xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp4' op scale has shape [4, 2], expected [4, 1]}}
  %0 = quant.cast_fp4 %x, %s axis 1 format <mxfp4> : tensor<4x32xf32>, tensor<4x2xf8E8M0FNU> -> tensor<4x32xf4E2M1FN>
  return
}

// -----
// CA3: scales have the type of the format
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.cast_fp8' op scale has element type 'f32', expected 'f8E8M0FNU'}}
  %0 = quant.cast_fp8 %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xf32>, tensor<4x1xf32> -> tensor<4x32xf8E4M3FN>
  return
}

// -----
// CA4: there is a code for each value
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp4' op result has shape [4, 16], expected [4, 32]}}
  %0 = quant.cast_fp4 %x, %s axis 1 format <mxfp4> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x16xf4E2M1FN>
  return
}

// -----
// CA4: codes have the type of the format
func.func @f(%x: tensor<4x32xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.cast_fp8' op result has element type 'f8E5M2', expected 'f8E4M3FN'}}
  %0 = quant.cast_fp8 %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf8E5M2>
  return
}

// -----
// DQ1: codes have the type of the format
func.func @f(%q: tensor<4x32xf8E5M2>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.dequantize' op source has element type 'f8E5M2', expected 'f8E4M3FN'}}
  %0 = quant.dequantize %q, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xf8E5M2>, tensor<4x1xf8E8M0FNU> -> tensor<4x32xf32>
  return
}

// -----
// DQ2: there is a scale of the format's type for each block
func.func @f(%q: tensor<4x32xf4E2M1FN>, %s: tensor<4x1xf8E4M3FN>, %g: tensor<f32>) {
  // expected-error @+1 {{'quant.dequantize' op scale has shape [4, 1], expected [4, 2]}}
  %0 = quant.dequantize %q, %s, %g axis 1 format <nvfp4> : tensor<4x32xf4E2M1FN>, tensor<4x1xf8E4M3FN>, tensor<f32> -> tensor<4x32xf32>
  return
}

// -----
// DQ3: there is an f32 for each code
func.func @f(%q: tensor<4x32xf8E4M3FN>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.dequantize' op result has shape [32, 4], expected [4, 32]}}
  %0 = quant.dequantize %q, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xf8E4M3FN>, tensor<4x1xf8E8M0FNU> -> tensor<32x4xf32>
  return
}

// -----
// CA2: of scale, too, there is a scale for each block
func.func @f(%x: tensor<4x64xf32>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.scale' op scale has shape [4, 1], expected [4, 2]}}
  %0 = quant.scale %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x64xf32>, tensor<4x1xf8E8M0FNU> -> tensor<4x64xf32>
  return
}

// -----
// SL1: there is an f32 for each element
func.func @f(%x: tensor<4x32xbf16>, %s: tensor<4x1xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.scale' op result has shape [32, 4], expected [4, 32]}}
  %0 = quant.scale %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x32xbf16>, tensor<4x1xf8E8M0FNU> -> tensor<32x4xf32>
  return
}

// -----
// RN1: rows are those of a tile of rank 2
func.func @f(%x: tensor<16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op source has rank 1, expected 2}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32} : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<1xf32>
  return
}

// -----
// RN2: gamma has an element for each column
func.func @f(%x: tensor<4x16xf32>, %g: tensor<4xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op gamma has shape [4], expected [16]}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32} : tensor<4x16xf32>, tensor<4xf32> -> tensor<4x16xf32>, tensor<4x1xf32>
  return
}

// -----
// RN2: beta has an element for each column
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{'quant.layer_norm' op beta has shape [8], expected [16]}}
  %0:3 = quant.layer_norm %x, %g, %b {eps = 0.0 : f32} : tensor<4x16xf32>, tensor<16xf32>, tensor<8xf32> -> tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>
  return
}

// -----
// RN2: gamma has rank 1
func.func @f(%x: tensor<4x16xf32>, %g: tensor<1x16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op gamma has shape [1, 16], expected [16]}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32} : tensor<4x16xf32>, tensor<1x16xf32> -> tensor<4x16xf32>, tensor<4x1xf32>
  return
}

// -----
// RN3: eps is finite and not negative
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op eps is -1.000000e+00 : f32, expected a finite number of at least 0}}
  %0:2 = quant.rms_norm %x, %g {eps = -1.0 : f32} : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>, tensor<4x1xf32>
  return
}

// -----
// RN3: eps is finite and not negative
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op eps is 0x7FC00000 : f32, expected a finite number of at least 0}}
  %0:2 = quant.rms_norm %x, %g {eps = 0x7FC00000 : f32} : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>, tensor<4x1xf32>
  return
}

// -----
// RN4: a row has an element
func.func @f(%x: tensor<4x0xf32>, %g: tensor<0xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op dimension 1 is empty, expected an element to reduce}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32} : tensor<4x0xf32>, tensor<0xf32> -> tensor<4x0xf32>, tensor<4x1xf32>
  return
}

// -----
// RN4: count is 1 to the number of columns
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op count is 17, expected 1 to 16, the extent of dimension 1}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32, count = 17} : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>, tensor<4x1xf32>
  return
}

// -----
// RN5: mean has an element for each row
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.layer_norm' op mean has shape [1, 4], expected [4, 1]}}
  %0:3 = quant.layer_norm %x, %g, %g {eps = 0.0 : f32} : tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x16xf32>, tensor<1x4xf32>, tensor<4x1xf32>
  return
}

// -----
// RN5: the results have the shape of the source, and an element for each row
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op rsigma has shape [4], expected [4, 1]}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32} : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>, tensor<4xf32>
  return
}

// -----
// RN5: the results have the shape of the source, and an element for each row
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>) {
  // expected-error @+1 {{'quant.rms_norm' op result has shape [16, 4], expected [4, 16]}}
  %0:2 = quant.rms_norm %x, %g {eps = 0.0 : f32} : tensor<4x16xf32>, tensor<16xf32> -> tensor<16x4xf32>, tensor<4x1xf32>
  return
}

// -----
// RN2: gamma has an element for each column, also of backward forms
func.func @f(%dz: tensor<4x16xf32>, %x: tensor<4x16xf32>, %g: tensor<4xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op gamma has shape [4], expected [16]}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4xf32>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// RN4: a row has an element, also of backward forms
func.func @f(%dz: tensor<4x0xf32>, %x: tensor<4x0xf32>, %g: tensor<0xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op dimension 1 is empty, expected an element to reduce}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x0xf32>, tensor<4x0xf32>, tensor<0xf32>, tensor<4x1xf32> -> tensor<4x0xf32>, tensor<4x0xf32>
  return
}

// -----
// RN4: count is 1 to the number of columns, also of backward forms
func.func @f(%dz: tensor<4x16xf32>, %x: tensor<4x16xf32>, %g: tensor<16xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op count is 0, expected 1 to 16, the extent of dimension 1}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r {count = 0} : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// NB1: rows are those of a tile of rank 2
func.func @f(%dz: tensor<16xf32>, %x: tensor<16xf32>, %g: tensor<16xf32>, %r: tensor<1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op x has rank 1, expected 2}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<1xf32> -> tensor<16xf32>, tensor<16xf32>
  return
}

// -----
// NB2: dz has the shape of x
func.func @f(%dz: tensor<4x8xf32>, %x: tensor<4x16xf32>, %g: tensor<16xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op dz has shape [4, 8], expected [4, 16]}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x8xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// NB2: dz has the rank of x
func.func @f(%dz: tensor<16xbf16>, %x: tensor<4x16xf32>, %g: tensor<16xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op dz has shape [16], expected [4, 16]}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<16xbf16>, tensor<4x16xf32>, tensor<16xf32>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// NB3: rsigma has an element for each row
func.func @f(%dz: tensor<4x16xf32>, %x: tensor<4x16xf32>, %g: tensor<16xf32>, %r: tensor<1x4xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op rsigma has shape [1, 4], expected [4, 1]}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<1x4xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// NB3: mean has an element for each row
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>, %m: tensor<4xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.layer_norm_backward' op mean has shape [4], expected [4, 1]}}
  %0:2 = quant.layer_norm_backward %x, %x, %g, %m, %r : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<4xf32>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// NB3: statistics are of f32
func.func @f(%x: tensor<4x16xf32>, %g: tensor<16xf32>, %m: tensor<4x1xbf16>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.layer_norm_backward' op operand #3 must be ranked tensor of 32-bit float values, but got 'tensor<4x1xbf16>'}}
  %0:2 = quant.layer_norm_backward %x, %x, %g, %m, %r : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<4x1xbf16>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  return
}

// -----
// NB4: gradients have the shape of x
func.func @f(%dz: tensor<4x16xf32>, %x: tensor<4x16xf32>, %g: tensor<16xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op dx has shape [16, 4], expected [4, 16]}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<4x1xf32> -> tensor<16x4xf32>, tensor<4x16xf32>
  return
}

// -----
// NB4: terms have the shape of x
func.func @f(%dz: tensor<4x16xf32>, %x: tensor<4x16xf32>, %g: tensor<16xf32>, %r: tensor<4x1xf32>) {
  // expected-error @+1 {{'quant.rms_norm_backward' op dgamma_terms has shape [4, 1], expected [4, 16]}}
  %0:2 = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x16xf32>, tensor<4x16xf32>, tensor<16xf32>, tensor<4x1xf32> -> tensor<4x16xf32>, tensor<4x1xf32>
  return
}

// -----
// SW1: scales in the 128x4 order have rank 2
func.func @f(%s: tensor<512xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.swizzle_scales' op source has rank 1, expected 2}}
  %0 = quant.swizzle_scales %s : tensor<512xf8E8M0FNU> -> tensor<512xf8E8M0FNU>
  return
}

// -----
// SW2: padded extents stay below 2^63
func.func @f(%s: tensor<1x9223372036854775807xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.swizzle_scales' op dimension 1 of extent 9223372036854775807 has no padded extent}}
  %0 = quant.swizzle_scales %s : tensor<1x9223372036854775807xf8E8M0FNU> -> tensor<128x4xf8E8M0FNU>
  return
}

// -----
// SW3: what is in the 128x4 order is a byte
func.func @f(%s: tensor<128x4xf32>) {
  // expected-error @+1 {{'quant.swizzle_scales' op source has element type 'f32', expected f8E4M3FN or f8E8M0FNU}}
  %0 = quant.swizzle_scales %s : tensor<128x4xf32> -> tensor<128x4xf32>
  return
}

// -----
// SW4: the result is padded to multiples of 128 and 4
func.func @f(%s: tensor<100x9xf8E8M0FNU>) {
  // expected-error @+1 {{'quant.swizzle_scales' op result has shape [100, 12], expected [128, 12]}}
  %0 = quant.swizzle_scales %s : tensor<100x9xf8E8M0FNU> -> tensor<100x12xf8E8M0FNU>
  return
}

// -----
// WO1: words hold narrow and 16-bit types
func.func @f(%v: vector<8xf32>) {
  // expected-error @+1 {{'quant.encode_words' op elem is 'f32', expected f4E2M1FN, f6E2M3FN, f6E3M2FN, i8, f8E4M3FN, f8E5M2, f8E8M0FNU, bf16 or f16}}
  %0 = quant.encode_words %v {elem = f32, group = 1} : vector<8xf32> -> vector<8xi32>
  return
}

// -----
// WO1: words hold narrow and 16-bit types
func.func @f(%v: vector<8xi32>) {
  // expected-error @+1 {{'quant.decode_words' op elem is 'tensor<4xf32>', expected f4E2M1FN, f6E2M3FN, f6E3M2FN, i8, f8E4M3FN, f8E5M2, f8E8M0FNU, bf16 or f16}}
  %0 = quant.decode_words %v {elem = tensor<4xf32>, group = 1} : vector<8xi32> -> vector<8xf32>
  return
}

// -----
// WO2: a group fits a word
func.func @f(%v: vector<8xf32>) {
  // expected-error @+1 {{'quant.encode_words' op group is 8, expected a power of two up to 4 for codes of 8 bits}}
  %0 = quant.encode_words %v {elem = f8E4M3FN, group = 8} : vector<8xf32> -> vector<1xi32>
  return
}

// -----
// WO2: a group is a power of two
func.func @f(%v: vector<3xi32>) {
  // expected-error @+1 {{'quant.decode_words' op group is 3, expected a power of two up to 8 for codes of 4 bits}}
  %0 = quant.decode_words %v {elem = f4E2M1FN, group = 3} : vector<3xi32> -> vector<9xf32>
  return
}

// -----
// WO2: a group is positive
func.func @f(%v: vector<3xi32>) {
  // expected-error @+1 {{'quant.e8m0_inverse_words' op group is 0, expected a power of two up to 4 for codes of 8 bits}}
  %0 = quant.e8m0_inverse_words %v {group = 0} : vector<3xi32> -> vector<3xf32>
  return
}

// -----
// WO3: vectors have fixed lengths
func.func @f(%v: vector<[8]xf32>) {
  // expected-error @+1 {{'quant.encode_words' op registers are 'vector<[8]xf32>' and words 'vector<[1]xi32>', expected fixed lengths}}
  %0 = quant.encode_words %v {elem = f4E2M1FN, group = 8} : vector<[8]xf32> -> vector<[1]xi32>
  return
}

// -----
// WO4: a word holds a group of registers
func.func @f(%v: vector<8xf32>) {
  // expected-error @+1 {{'quant.encode_words' op registers have shape [8], expected [16], 8 for each word}}
  %0 = quant.encode_words %v {elem = f4E2M1FN, group = 8} : vector<8xf32> -> vector<2xi32>
  return
}

// -----
// WO4: the lanes of a vector register stay
func.func @f(%v: vector<2x16xi32>) {
  // expected-error @+1 {{'quant.decode_words' op registers have shape [16], expected [8, 16], 4 for each word}}
  %0 = quant.decode_words %v {elem = f8E5M2, group = 4} : vector<2x16xi32> -> vector<16xf32>
  return
}

// -----
// WO5: E8M0 needs a mode
func.func @f(%v: vector<4xf32>) {
  // expected-error @+1 {{'quant.encode_words' op has no mode, expected rceil or floor for f8E8M0FNU}}
  %0 = quant.encode_words %v {elem = f8E8M0FNU, group = 4} : vector<4xf32> -> vector<1xi32>
  return
}

// -----
// WO6: other types have no mode
func.func @f(%v: vector<4xf32>) {
  // expected-error @+1 {{'quant.encode_words' op has mode floor for 'bf16', expected a mode for f8E8M0FNU only}}
  %0 = quant.encode_words %v {elem = bf16, group = 2, mode = #quant.e8m0_mode<floor>} : vector<4xf32> -> vector<2xi32>
  return
}

// -----
// WO7: products are encoded to codes with a sign and mantissa
func.func @f(%x: vector<2x16xf32>, %v: vector<2x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op elem is 'f8E8M0FNU', expected f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN or f8E5M2}}
  %0 = quant.scale_encode_words %x, %v {elem = f8E8M0FNU} : vector<2x16xf32>, vector<2x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO9: the range of factors without that of products
func.func @f(%x: vector<1x16xi32>, %v: vector<2x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op has powers, expected it to be bounded, too}}
  %0 = quant.scale_encode_words %x, %v {elem = f8E4M3FN, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO8: a register for each factor
func.func @f(%x: vector<1x16xf32>, %v: vector<2x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op source has shape [1, 16], expected [2, 16]}}
  %0 = quant.scale_encode_words %x, %v {elem = f8E4M3FN} : vector<1x16xf32>, vector<2x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO8: a word of bf16 for each word of codes
func.func @f(%x: vector<2x16xi32>, %v: vector<2x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op source has shape [2, 16], expected [1, 16]}}
  %0 = quant.scale_encode_words %x, %v {elem = f8E4M3FN} : vector<2x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO8: two factors to a word
func.func @f(%x: vector<4x16xf32>, %v: vector<4x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op registers have shape [4, 16], expected [2, 16], 2 for each word}}
  %0 = quant.scale_encode_words %x, %v {elem = f8E4M3FN} : vector<4x16xf32>, vector<4x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO8: in order, all codes of a word are of one lane and the next
func.func @f(%x: vector<2x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op registers have shape [2, 16], expected [4, 16], 4 for each word}}
  %0 = quant.scale_encode_words %x, %x {elem = f8E4M3FN, in_order} : vector<2x16xf32>, vector<2x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO10: words of two bf16 are pairs
func.func @f(%x: vector<1x16xi32>, %f: vector<4x16xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op is in order and has a source of 'vector<1x16xi32>', expected registers of lanes of f32}}
  %0 = quant.scale_encode_words %x, %f {elem = f8E4M3FN, in_order} : vector<1x16xi32>, vector<4x16xf32> -> vector<1x16xi32>
  return
}

// -----
// WO10: one lane has no order
func.func @f(%x: vector<4xf32>) {
  // expected-error @+1 {{'quant.scale_encode_words' op is in order and has a source of 'vector<4xf32>', expected registers of lanes of f32}}
  %0 = quant.scale_encode_words %x, %x {elem = f8E4M3FN, in_order} : vector<4xf32>, vector<4xf32> -> vector<1xi32>
  return
}

// -----
// AT1: what is said of an operation is its own
func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'quant.encode' op has attribute "quant.finite", expected none of the dialect}}
  %0 = quant.encode %x {quant.finite} : tensor<4x32xf32> -> tensor<4x32xf8E4M3FN>
  return
}

// -----
// AT1: kernels have no others
// expected-error @+1 {{'func.func' op has attribute "quant.kernels", expected one of quant.cluster, quant.config, quant.grid, quant.kernel, quant.launch, quant.num_threads, quant.num_warps, quant.params, quant.parts, quant.phases, quant.shared_bytes, quant.whole, quant.whole_if}}
func.func @f() attributes {quant.kernels} { return }

// -----
// AT1: modules have no others
// expected-error @+1 {{'builtin.module' op has attribute "quant.kernel", expected one of quant.features, quant.target}}
module attributes {quant.kernel} {}

// -----
// AT1: arguments have no others
// expected-error @+1 {{'func.func' op argument 0 has attribute "quant.noalias", expected one of quant.align, quant.exchanged, quant.handed_on, quant.stride_align}}
func.func private @f(memref<4xf32> {quant.noalias})

// -----
// AT1: results have no others
// expected-error @+1 {{'func.func' op result 0 has attribute "quant.swizzled", expected one of quant.align, quant.exchanged, quant.handed_on, quant.stride_align}}
func.func private @f() -> (tensor<4xf32> {quant.swizzled})

// -----
// AT2: a target has a name
// expected-error @+1 {{'builtin.module' op has "quant.target" = 90 : i64, expected a string}}
module attributes {quant.target = 90} {}

// -----
// AT3: a kernel is one or not
// expected-error @+1 {{'func.func' op has "quant.kernel" = true, expected no value}}
func.func @f() attributes {quant.kernel = true} { return }

// -----
// AT4: a block has whole warps, and at most 1024 threads
// expected-error @+1 {{'func.func' op has "quant.num_warps" = 3 : i64, expected 1, 2, 4, 8, 16 or 32}}
func.func @f() attributes {quant.num_warps = 3} { return }

// -----
// AT4: a configuration has a number of warps that there can be
// expected-error @+1 {{'func.func' op has "quant.config" = {num_warps = 64 : i64}, expected fragment, edge and tile, two numbers each, num_warps, 1, 2, 4, 8, 16 or 32, and cluster and tiles, positive numbers}}
func.func @f() attributes {quant.config = {num_warps = 64}} { return }

// -----
// AT5: clusters have blocks
// expected-error @+1 {{'func.func' op has "quant.config" = {cluster = 0 : i64}, expected fragment,}}
func.func @f() attributes {quant.config = {cluster = 0}} { return }

// -----
// AT5: a fragment has rows and columns
// expected-error @+1 {{'func.func' op has "quant.config" = {fragment = array<i64: 4>}, expected fragment, edge and tile, two numbers each, num_warps, 1, 2, 4, 8, 16 or 32, and cluster and tiles, positive numbers}}
func.func @f() attributes {quant.config = {fragment = array<i64: 4>}} { return }

// -----
// AT5: so have the fragments at the edges of tensors
// expected-error @+1 {{'func.func' op has "quant.config" = {edge = 4 : i64}, expected fragment, edge and tile,}}
func.func @f() attributes {quant.config = {edge = 4}} { return }

// -----
// AT6: a dimension of the grid is that of an argument
// expected-error @+1 {{'func.func' op has "quant.grid" = [{arg = 0 : i64, dim = 0 : i64}], expected an array of arg, dim and step}}
func.func @f() attributes {quant.grid = [{arg = 0, dim = 0}]} { return }

// -----
// AT7: a block has threads
// expected-error @+1 {{'func.func' op has "quant.num_threads" = 0 : i64, expected a positive number}}
func.func @f() attributes {quant.num_threads = 0} { return }

// -----
// AT7: memory is not negative
// expected-error @+1 {{'func.func' op has "quant.shared_bytes" = -1 : i64, expected a number of bytes}}
func.func @f() attributes {quant.shared_bytes = -1} { return }

// -----
// AT8: a parameter is of a kind
// expected-error @+1 {{'func.func' op has "quant.params" = ["i8"], expected an array of "ptr", "i64", "i32" and "f32"}}
func.func @f() attributes {quant.params = ["i8"]} { return }

// -----
// AT9: every address is a multiple of 1
// expected-error @+1 {{'func.func' op argument 0 has "quant.align" = 0 : i64, expected a positive number}}
func.func private @f(memref<4xf32> {quant.align = 0})

// -----
// AT10: a number has no address
// expected-error @+1 {{'func.func' op argument 1 is of type 'i32' and has "quant.align", expected a memref or a tensor}}
func.func private @f(memref<4xf32>, i32 {quant.align = 4})

// -----
// AT11: parts are functions
// expected-error @+1 {{'func.func' op has "quant.parts" = ["first"], expected an array of names of functions}}
func.func @f() attributes {quant.parts = ["first"]} { return }

// -----
// AT12: a launch has a grid of three numbers
// expected-error @+1 {{'func.func' op has "quant.launch" = {grid = array<i64: 4>, slots = array<i64>}, expected grid, three numbers, and slots, numbers}}
func.func @f() attributes {quant.launch = {grid = array<i64: 4>, slots = array<i64>}} { return }

// -----
// AT13: tiles have elements
// expected-error @+1 {{'func.func' op has "quant.whole_if" = [{end = 0 : i64, extent = 4 : i64}], expected an array of end, axis and step, and slot or extent}}
func.func @f() attributes {quant.whole_if = [{end = 0, extent = 4}]} { return }

// -----
// AT13: a grid has three dimensions
// expected-error @+1 {{'func.func' op has "quant.whole_if" = [{axis = 3 : i64, end = 4 : i64, slot = 1 : i64, step = 4 : i64}], expected an array of end, axis and step, and slot or extent}}
func.func @f() attributes {quant.whole_if = [{end = 4, axis = 3, step = 4, slot = 1}]} { return }

// -----
// AT13: an extent is somewhere
// expected-error @+1 {{'func.func' op has "quant.whole_if" = [{end = 4 : i64}], expected an array of end, axis and step, and slot or extent}}
func.func @f() attributes {quant.whole_if = [{end = 4}]} { return }

// -----
// AT13: programs have tiles some way apart
// expected-error @+1 {{'func.func' op has "quant.whole_if" = [{axis = 0 : i64, end = 4 : i64, slot = 1 : i64}], expected an array of end, axis and step, and slot or extent}}
func.func @f() attributes {quant.whole_if = [{end = 4, axis = 0, slot = 1}]} { return }

// -----
// CP2: the columns of all blocks can be counted
func.func @f(%m: memref<8x48xf32>) {
  // expected-error @+1 {{'quant.cluster_part' op run is 4611686018427387904, expected a power of two from 2 to 1073741824}}
  %0 = quant.cluster_part %m run 4611686018427387904 blocks 4 : memref<8x48xf32> -> memref<8x12xf32, strided<[48, 1]>>
  return
}

// -----
// SC6: memory that is there
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory has shape [0, 64], expected 1 to 2147483647 bytes}}
  %0 = quant.scratch : memref<0x64xf32>
  return
}

// -----
// SC6: bytes can be counted
func.func @f() {
  // expected-error @+1 {{'quant.scratch' op memory has shape [4294967296, 4294967296], expected 1 to 2147483647 bytes}}
  %0 = quant.scratch : memref<4294967296x4294967296xf32>
  return
}

// -----
// PF4: lines are asked for one by one
func.func @f(%m: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.prefetch' op shape is [1000000000, 64], expected at most 1048576 elements}}
  quant.prefetch %m[%c0, %c0] [1000000000, 64] : memref<4x64xf32>
  return
}

// -----
// ME9: elements have bits
func.func @f(%m: memref<4x64xindex>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.load' op tile has element type 'index', expected 4, 8, 16 or 32 bits, or i64}}
  %0 = quant.load %m[%c0, %c0] : memref<4x64xindex> -> tensor<4x64xindex>
  return
}

// -----
// ME8: a number has no columns, wherever it is
func.func @f() {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.scratch' op pairs in memory of type 'memref<f32>', expected columns of 32 bits}}
  %s = quant.scratch {pairs} : memref<f32>
  %t = quant.load %s[] : memref<f32> -> tensor<f32>
  return
}

// -----
// ST8: totals are few
func.func @f(%t: tensor<4xf32>, %m: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.store' op found total 9223372036854775807, expected 0 to 63}}
  quant.store %t, %m[%c0] {total = 9223372036854775807 : i64} : tensor<4xf32>, memref<4xf32>
  return
}

// -----
// ST9: copies go to scratch memory
func.func @f(%t: tensor<4xf32>, %m: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'quant.store' op async to memory of the kernel's arguments, expected scratch memory}}
  quant.store %t, %m[%c0] {async} : tensor<4xf32>, memref<4xf32>
  return
}

// -----
// BS9: blocks have rows and columns
func.func @f(%x: tensor<2x32x128xf32>) {
  // expected-error @+1 {{'quant.block_scale' op source has rank 3, expected rank 1 or 2}}
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<2x32x128xf32> -> tensor<2x1x128xf8E8M0FNU>
  return
}

// -----
// RE12: chains of as many elements as there are
func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{'quant.reduce' op chains or a tree of ? elements, expected a number that is known}}
  %s = quant.reduce sum %x axis 1 {chains = 4 : i64} : tensor<4x?xf32> -> tensor<4x1xf32>
  return
}
