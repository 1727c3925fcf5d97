//===- QuantProgramOps.td - Program ids and memory ---------*- tablegen -*-===//

#ifndef DITHER_QUANT_PROGRAM_OPS
#define DITHER_QUANT_PROGRAM_OPS

include "QuantOpBase.td"
include "mlir/Interfaces/ViewLikeInterface.td"

def Quant_ProgramIdOp : Quant_Op<"program_id", [Pure]> {
  let summary = "index of this program in the grid";
  let description = [{
    At least 0 and less than `num_programs` of the same dimension. Programs begin
    in the order of their indices, by and large; `backwards` counts them from the
    last one on.

    ```mlir
    %i = quant.program_id x
    %j = quant.program_id x backwards
    ```
  }];
  let arguments = (ins Quant_DimAttr:$dim, UnitAttr:$backwards);
  let results = (outs Index:$result);
  let assemblyFormat = "`` $dim (`backwards` $backwards^)? attr-dict";
}
def Quant_NumProgramsOp : Quant_Op<"num_programs", [Pure]> {
  let summary = "extent of the grid";
  let description = [{
    ```mlir
    %n = quant.num_programs x
    ```
  }];
  let arguments = (ins Quant_DimAttr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "`` $dim attr-dict";
}

def Quant_ClusterRankOp : Quant_Op<"cluster_rank", [Pure]> {
  let summary = "which block of its cluster this is";
  let description = [{
    Of a program that is a cluster of thread blocks.

    ```mlir
    %r = quant.cluster_rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Quant_TileIdOp : Quant_Op<"tile_id", [Pure]> {
  let summary = "which of its tiles a program is at";
  let description = [{
    A program of a GPU does all of its kernel `count` times, one after the other; this is 0, 1, .. in turn. All of a kernel
    have the same count, a power of two up to 64. What a program stores of all its tiles at once: see `store`, `total`.

    ```mlir
    %i = quant.tile_id of 8
    ```
  }];
  let arguments = (ins I64Attr:$count);
  let results = (outs Index:$result);
  let assemblyFormat = "`of` $count attr-dict";
  let hasVerifier = 1;
}

/// Part of the memory of a memref, as a memref. Programs may see more than one at a time.
class Quant_ViewOp_<string mnemonic, list<Trait> traits = []>
    : Quant_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>] # traits> {
  let extraClassDefinition = [{
    ::mlir::Value $cppClass::getViewSource() { return getMemref(); }
  }];
  let hasVerifier = 1;
}

def Quant_ViewOp : Quant_ViewOp_<"view", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "a row or a matrix of a memref of higher rank";
  let description = [{
    The dimensions `dims`, one or two in their order, the last of the memref among them, at the
    `indices` along the others. Where one of these is outside the memref, the view has no elements:
    its first dimension is empty.

    ```mlir
    %m = quant.view %x[%b, %h] dims [1, 3]
        : memref<?x?x?x64xbf16> -> memref<?x64xbf16, strided<[?, 1]>>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, DenseI64ArrayAttr:$dims);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $memref `[` $indices `]` `dims` $dims attr-dict `:` type($memref) `->` type($result)
  }];
}

def Quant_SliceOp : Quant_ViewOp_<"slice", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "neighbours along a dimension of a memref";
  let description = [{
    `count` elements along `dim`, from `start` on, and all along the others. What is outside the memref is no part
    of it.

    ```mlir
    %g = quant.slice %x[%start] count %n dim 0
        : memref<?x4096xbf16> -> memref<?x4096xbf16, strided<[4096, 1]>>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$start, Index:$count, I64Attr:$dim);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $memref `[` $start `]` `count` $count `dim` $dim attr-dict `:` type($memref) `->` type($result)
  }];
}

def Quant_MatrixOp : Quant_ViewOp_<"matrix"> {
  let summary = "a matrix in the elements of a memref of rank 1";
  let description = [{
    Its rows lie one after the other, the first from element `start` on; those of four-bit elements in whole bytes.
    `cols` is not there where the type of the result says it. Where the memref does not have all of the elements, the
    matrix has none.

    ```mlir
    %g = quant.matrix %x[%start] rows %m cols %n : memref<?xf8E4M3FN> -> memref<?x?xf8E4M3FN, strided<[?, 1]>>
    %h = quant.matrix %x[%start] rows %m : memref<?xf8E4M3FN> -> memref<?x4096xf8E4M3FN, strided<[4096, 1]>>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$start, Index:$rows, Optional<Index>:$cols);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $memref `[` $start `]` `rows` $rows (`cols` $cols^)? attr-dict `:` type($memref) `->` type($result)
  }];
}

def Quant_ClusterPartOp : Quant_ViewOp_<"cluster_part", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the columns of a memref that a block of a cluster works on";
  let description = [{
    The program is a cluster of `blocks` thread blocks. Of each `run * blocks` columns the block of rank r has the
    `run` from column `run * r` on: the view has these, one run after the other. A tile of it lies in one run, or is
    of whole ones.

    ```mlir
    %p = quant.cluster_part %x run 512 blocks 4
        : memref<?x131072xbf16> -> memref<?x32768xbf16, strided<[131072, 1]>>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, I64Attr:$run, I64Attr:$blocks);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $memref `run` $run `blocks` $blocks attr-dict `:` type($memref) `->` type($result)
  }];
}

def Quant_ScratchOp : Quant_Op<"scratch", []> {
  let summary = "memory of a program for its tiles";
  let description = [{
    What it holds at first is not defined, and it ends with the kernel. It is the same memory in all iterations of a
    loop. On a GPU it is shared memory.

    With `pairs` every access begins at a multiple of 32 columns and has a multiple of them. The even and the odd
    ones of each 32 may then lie apart, as registers hold them.

    ```mlir
    %s = quant.scratch : memref<4x32xf8E8M0FNU>
    %v = quant.scratch {pairs} : memref<1x1088xf32>
    ```
  }];
  let arguments = (ins UnitAttr:$pairs);
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Quant_LoadOp : Quant_Op<"load", []> {
  let summary = "read a tile";
  let description = [{
    Reads the tile at `indices`. Elements outside the memref are zero. `in_bounds`
    promises that there are none, but those that a constant index and a static
    extent leave no room for.

    ```mlir
    %t = quant.load %x[%i, %j] : memref<?x4096xbf16> -> tensor<4x128xbf16>
    %u = quant.load %x[%i, %j] {in_bounds} : memref<?x4096xbf16> -> tensor<1x128xbf16>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref, Variadic<Index>:$indices,
                       UnitAttr:$in_bounds);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = [{
    $memref `[` $indices `]` attr-dict `:` type($memref) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Quant_StoreOp : Quant_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "write a tile";
  let description = [{
    Writes the tile at `indices`; elements outside the memref are not written, and `in_bounds` is as for a load. Elements
    at or past the coordinates `valid` are written as zero. With a `scale_layout` other
    than `linear` the memref has the padded 2-D shape of a scale matrix and is written
    in that order.

    `stream` is a hint, which changes no value: nothing reads the elements soon, so a CPU writes whole
    lines past its caches where the memref is too large for them.

    `async` lets a GPU copy what a quant.load has read, for this store alone, without waiting for it: the elements are
    there from the next `quant.await_copies` on.

    With `once` the first program alone stores: the tile has rank 0 and is the same in all of them.

    With a `total`, the number of the sum among those of a kernel, what is stored is the sum of what the tiles of a program
    have (`tile_id`), at the last of them: f32, in pairs of neighbours, then pairs of these.

    ```mlir
    quant.store %t, %x[%i, %j] : tensor<4x128xbf16>, memref<?x4096xbf16>
    quant.store %s, %m[%i, %j] valid [%rows, %columns]
        {scale_layout = #quant.scale_layout<swizzle_128x4>}
        : tensor<128x4xf8E4M3FN>, memref<?x32xf8E4M3FN>
    ```
  }];
  let arguments = (ins Quant_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref,
                       Variadic<Index>:$indices, Variadic<Index>:$valid,
                       DefaultValuedAttr<Quant_ScaleLayoutAttr,
                         "::dither::quant::ScaleLayout::linear">:$scale_layout,
                       UnitAttr:$in_bounds, UnitAttr:$stream, UnitAttr:$async,
                       UnitAttr:$once, OptionalAttr<I64Attr>:$total);
  let assemblyFormat = [{
    $tile `,` $memref `[` $indices `]` (`valid` ` ` `[` $valid^ `]`)? attr-dict
    `:` type($tile) `,` type($memref)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$tile, "::mlir::Value":$memref,
                   "::mlir::ValueRange":$indices)>
  ];
  let hasVerifier = 1;
}

def Quant_AwaitCopiesOp : Quant_Op<"await_copies", []> {
  let summary = "wait for what the program copies";
  let description = [{
    What stores with `async` have copied is there for the lanes that have copied it.

    ```mlir
    quant.store %t, %s[%i, %j] {async, in_bounds} : tensor<1x8192xbf16>, memref<1x65536xbf16>
    quant.await_copies
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Quant_GatherOp : Quant_Op<"gather", []> {
  let summary = "read rows that a tile names";
  let description = [{
    Row r of the result is row `rows[r]` of the memref, from `column` on. Elements that the memref does
    not have are zero.

    ```mlir
    %t = quant.gather %x[%rows, %j] : memref<?x4096xbf16>, tensor<4x1xi32> -> tensor<4x128xbf16>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref, RankedTensorOf<[I32]>:$rows,
                       Index:$column);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = [{
    $memref `[` $rows `,` $column `]` attr-dict `:` type($memref) `,` type($rows) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Quant_ScatterOp : Quant_Op<"scatter", []> {
  let summary = "write rows that a tile names";
  let description = [{
    Row r of the tile goes to row `rows[r]` of the memref, from `column` on. Elements that the memref
    does not have are not written; of rows with one index each element is that of one of them.

    ```mlir
    quant.scatter %t, %x[%rows, %j] : tensor<4x128xbf16>, memref<?x4096xbf16>, tensor<4x1xi32>
    ```
  }];
  let arguments = (ins Quant_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref,
                       RankedTensorOf<[I32]>:$rows, Index:$column);
  let assemblyFormat = [{
    $tile `,` $memref `[` $rows `,` $column `]` attr-dict
    `:` type($tile) `,` type($memref) `,` type($rows)
  }];
  let hasVerifier = 1;
}

class Quant_AtomicOp<string mnemonic, list<Type> elements>
    : Quant_Op<mnemonic, [DeclareOpInterfaceMethods<Quant_AtomicOpInterface>]> {
  let arguments = (ins RankedTensorOf<elements>:$tile,
                       Arg<MemRefOf<elements>, "", [MemRead, MemWrite]>:$memref,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $tile `,` $memref `[` $indices `]` attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Quant_AtomicMaxOp : Quant_AtomicOp<"atomic_max", [F32]> {
  let summary = "maximum of a tile and memory, as non-negative f32";
  let description = [{
    Every element of the memref becomes the maximum of itself and the element of
    the tile, compared as the bit patterns of non-negative f32: exact and independent
    of order.

    ```mlir
    quant.atomic_max %amax, %m[] : tensor<f32>, memref<f32>
    ```
  }];
}

def Quant_AtomicAddOp : Quant_AtomicOp<"atomic_add", [I32, I64]> {
  let summary = "sum of a tile and memory, of integers";
  let description = [{
    Every element of the memref becomes the sum of itself and the element of
    the tile, which wraps: exact and independent of order.

    ```mlir
    quant.atomic_add %n, %m[%i] : tensor<16xi32>, memref<?xi32>
    ```
  }];
}

def Quant_PrefetchOp : Quant_Op<"prefetch", []> {
  let summary = "fetch a tile that is read later";
  let description = [{
    A hint, which changes no value: a CPU fetches the lines of memory that the tile of this shape at
    `indices` lies in, into its second cache. The tile may lie outside the memref. A GPU does nothing.

    ```mlir
    quant.prefetch %x[%i, %j] [1, 64] : memref<?x4096xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$memref `[` $indices `]` $shape attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

def Quant_FetchAddOp : Quant_Op<"fetch_add", []> {
  let summary = "add to a counter, and give what it was";
  let description = [{
    Once for a program, whatever the number of its threads. No two programs are given the same
    numbers: each may take `amount` of them from the result on, such as rows of memory of its own.

    ```mlir
    %first = quant.fetch_add %rows, %next : memref<i64>
    ```
  }];
  let arguments = (ins Index:$amount,
                       Arg<MemRefRankOf<[I64], [0]>, "", [MemRead, MemWrite]>:$memref);
  let results = (outs Index:$result);
  let assemblyFormat = "$amount `,` $memref attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

def Quant_FirstPartOp : Quant_Op<"first_part", [Pure]> {
  let summary = "whether a program is of the first of two parts of a kernel";
  let description = [{
    The condition itself, of a branch at the end of a kernel of a GPU. Its sides are programs of their own kind, the parts
    of the kernel. What the first part stores and the second loads is of f32, and holds NaN of other bits than 0x7FFFFFFF
    when the kernel starts: the second part waits for each element that it loads until the first has stored something else
    (of NaN those bits). Programs begin in the order of their indices, x fastest; those that are waited for come
    first.

    ```mlir
    %first = quant.first_part %c
    scf.if %first {
      quant.store %found, %rows[%i] : tensor<2xf32>, memref<?xf32>
    } else {
      %t = quant.load %rows[%j] : memref<?xf32> -> tensor<32xf32>
    }
    ```
  }];
  let arguments = (ins I1:$condition);
  let results = (outs I1:$result);
  let assemblyFormat = "$condition attr-dict";
}

def Quant_LoadScalarOp : Quant_Op<"load_scalar", []> {
  let summary = "read a number";
  let description = [{
    A number and not a tile: for indices, bounds of loops and conditions. 0 where the memref has no such
    element. The kernel does not write the memref.

    ```mlir
    %n = quant.load_scalar %count : memref<i32> -> i32
    %s = quant.load_scalar %starts[%g] : memref<?xi64> -> i64
    ```
  }];
  let arguments = (ins Arg<MemRefOf<[F32, I32, I64]>, "", [MemRead]>:$memref, Variadic<Index>:$indices);
  let results = (outs AnyTypeOf<[F32, I32, I64]>:$result);
  let assemblyFormat = [{
    $memref (`[` $indices^ `]`)? attr-dict `:` type($memref) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Quant_LikelyOp : Quant_Op<"likely", [Pure]> {
  let summary = "a condition that nearly all programs meet";
  let description = [{
    The condition itself. What a branch on it does otherwise is for the programs at the edges of
    tensors: its code may be short rather than fast.

    ```mlir
    %likely = quant.likely %inside
    ```
  }];
  let arguments = (ins I1:$condition);
  let results = (outs I1:$result);
  let assemblyFormat = "$condition attr-dict";
}

#endif // DITHER_QUANT_PROGRAM_OPS
