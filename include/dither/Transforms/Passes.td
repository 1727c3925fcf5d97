//===- Passes.td - Transformations of tile programs --------*- tablegen -*-===//
//
// In alphabetical order. Each description says what the pass requires, what it
// guarantees and what it declines; the order of passes is in Pipelines.h.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_TRANSFORMS_PASSES
#define DITHER_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def DitherAssignLayouts : Pass<"dither-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "give every tile value of a kernel a layout";
  let description = [{
    Requires: decomposed kernels whose tiles fit one fragment; `quant.target` on
    the module, num_warps in `quant.config` for GPU targets.
    Guarantees: every tile value carries a #quant.layout; wherever two disagree or
    a store would be narrow there is a quant.convert_layout.
    Declines: kernels that carry layouts already, which are left alone.
  }];
  let dependentDialects = ["::dither::quant::QuantDialect", "::mlir::arith::ArithDialect"];
}

def DitherCarryInMemory : Pass<"dither-carry-in-memory", "::mlir::func::FuncOp"> {
  let summary = "move what loops and branches hand on, and registers do not hold, to memory";
  let description = [{
    Requires: decomposed kernels with a fragment in `quant.config`.
    Guarantees: what a loop of a CPU kernel carries, or a branch yields, fits in a
    fragment. Other tiles lie in quant.scratch: stored before a loop and at the end
    of its body, or at the end of each branch, and loaded where they are used.
    Declines: kernels for a GPU, and kernels of phases, which have neither.
  }];
  let dependentDialects = ["::dither::quant::QuantDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def DitherCopyAsync : Pass<"dither-copy-async", "::mlir::func::FuncOp"> {
  let summary = "copy to shared memory of a GPU without waiting for each part";
  let description = [{
    Requires: kernels of fragments.
    Guarantees: in a kernel for a GPU a quant.store to a quant.scratch of what a quant.load has read, in bounds and for
    that store alone, is `async`, and a quant.await_copies stands before what reads that memory: all parts of a tile
    are on their way at once.
    Declines: kernels for a CPU; copies that may reach past a tensor.
  }];
  let dependentDialects = ["::dither::quant::QuantDialect"];
}

def DitherCopyEdges : Pass<"dither-copy-edges", "::mlir::func::FuncOp"> {
  let summary = "copy tall tiles that may reach past a tensor row by row";
  let description = [{
    Requires: kernels of fragments.
    Guarantees: loads and stores of a CPU kernel that do not carry `in_bounds` have at
    most four rows. Taller ones became a loop over rows and an access in bounds to a
    quant.scratch, which holds the tile in between.
    Declines: kernels for a GPU, and kernels of phases. Tiles of one dimension.
  }];
  let dependentDialects = ["::dither::quant::QuantDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def DitherDecomposeOps : Pass<"dither-decompose-ops", "::mlir::func::FuncOp"> {
  let summary = "replace aggregate operations by elementwise ones and reductions";
  let description = [{
    Requires: tile programs, or whole-tensor programs of static shape.
    Guarantees: no block_scale, cast, dequantize, norm or backward form of a norm is
    left; the arithmetic of each is that of its definition, operation by
    operation, in f32 without contraction. Rounding by random bits is of three
    multiply-adds where the target has some that round toward zero, with the same
    bits.
    Declines: formats without a decomposition, with an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def DitherDistribute : Pass<"dither-distribute", "::mlir::ModuleOp"> {
  let summary = "rewrite kernels as the program of one lane";
  let description = [{
    Requires: kernels in which every tile value carries a layout.
    Guarantees: no tensor and no memref is left. Tiles are vectors of registers,
    narrow types are words, program ids are block indices (GPU) or a loop over the
    range given (CPU); the arguments follow the kernel ABI (docs/architecture.md). Attributes
    `quant.num_threads`, `quant.shared_bytes` and `quant.params` describe the launch.
    Declines: functions without `quant.kernel`, kernels that are distributed already.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"];
}

def DitherFold : Pass<"dither-fold", "::mlir::func::FuncOp"> {
  let summary = "fold operations in their order, in time that grows with their number";
  let description = [{
    Requires: nothing.
    Guarantees: no operation folds, given what its operands were before; what only
    folded operations used is gone.
    Declines: rewrites that are no folds, which are left to the canonicalizer.
  }];
}

def DitherOrderAccesses : Pass<"dither-order-accesses", "::mlir::func::FuncOp"> {
  let summary = "put barriers between accesses of one tensor by different lanes";
  let description = [{
    Requires: kernels for a GPU in which every tile value carries a layout;
    conditions and bounds that are the same for all lanes.
    Guarantees: between two accesses of an element by different threads of a block,
    one of them writing and not both atomic, there is a barrier: of the block, or of the
    warp where no other takes part. Memrefs with such accesses carry `quant.exchanged`.
    There is none between accesses of tiles that do not overlap, nor where every element
    stays with its thread.
    Declines: kernels for the CPU.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::NVVM::NVVMDialect"];
}

def DitherSplitParts : Pass<"dither-split-parts", "::mlir::ModuleOp"> {
  let summary = "make a function of each part of a kernel";
  let description = [{
    Requires: tile programs, before anything else looks at them.
    Guarantees: of a kernel with a branch on quant.first_part each side is a kernel of its own, of the same arguments, with a
    schedule of its own. The function is left with `quant.parts`, their names, and calls of them; dither-distribute puts
    them back. What the first part stores and the second loads is `quant.handed_on`.
    Declines: kernels without quant.first_part; with an error, kernels for CPUs, branches that are not at the end of the
    kernel, and parts that hand on what is not f32.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def DitherPreparePrograms : Pass<"dither-prepare-programs", "::mlir::func::FuncOp"> {
  let summary = "drop what is not used, say how conversions round, bound offsets";
  let description = [{
    Requires: tile programs or whole-tensor programs, before anything else looks at them.
    Guarantees: no value is left that nothing uses, so that choices depend on what a program does
    and not on what it mentions; every arith.truncf names its rounding, to_nearest_even, which keeps
    the canonicalizer from merging it with a conversion of integers into one that rounds once;
    constant indices of loads, stores and atomics are at most 2^62 from 0, so that sums with extents do
    not wrap.
    Declines: programs that gather rows of a memref and write to it, with an error.
  }];
}

def DitherResolveSlices : Pass<"dither-resolve-slices", "::mlir::func::FuncOp"> {
  let summary = "compute slices by themselves, and concatenated tiles one by one";
  let description = [{
    Requires: tile programs. Slices are tensor.extract_slice of constant offsets and sizes with
    strides of 1, concatenations tensor.concat.
    Guarantees: neither is left. What makes a sliced tile is made again for the part; operations on
    concatenated tiles, and what loops carry and branches yield of them, became one for each tile.
    Where an operation needs the elements side by side (a sum along the axis, blocks across a
    seam), each tile is made as wide as all, and elements are chosen. Loads find what they found.
    Declines: programs without either. Sums of concatenated tiles that a loop or a branch hands
    on, with an error.
  }];
  let dependentDialects = ["::dither::quant::QuantDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def DitherSelectConfig : Pass<"dither-select-config", "::mlir::func::FuncOp"> {
  let summary = "choose fragment, warps and tile for each kernel";
  let description = [{
    Requires: functions with `quant.kernel`, or whole-tensor functions (results
    of tensor type), in a module with `quant.target` (default: host).
    Guarantees: `quant.config = {edge = array<i64: rows, columns>, fragment = array<i64: rows,
    columns>, num_warps = n : i64, tile = array<i64: rows, columns>}`, a function of the IR and of
    the target only. `edge`, the fragment at the edges of tensors, is left out where it would be
    no smaller than the others. `tile` is what dither-tile-to-grid uses where it is given
    no sizes.
    Declines: functions that have a `quant.config`, which is left alone.
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "report each choice as a remark">
  ];
}

def DitherSwizzleShared : Pass<"dither-swizzle-shared", "::mlir::func::FuncOp"> {
  let summary = "order shared memory so that layout conversions meet no bank twice";
  let description = [{
    Requires: kernels for a GPU in which every tile value carries a layout.
    Guarantees: each quant.convert_layout that must go through shared memory names the
    order of its units there, chosen by the algebra of layouts for the fewest wavefronts.
    Declines: conversions within registers or a warp, those between layouts that cover
    different shapes (they take rows as they are, with an XOR of the row), kernels for the CPU.
  }];
}

def DitherSpreadRows : Pass<"dither-spread-rows", "::mlir::func::FuncOp"> {
  let summary = "spread rows that one GPU block does not hold over a cluster";
  let description = [{
    Requires: decomposed kernels with quant.config, in a module for a GPU.
    Guarantees: where a program works on one row, reads it more than once, and shared memory of a block does
    not hold it, the program is a cluster of 2, 4 or 8 blocks (`cluster` of quant.config), as few as hold the row. Each
    block has a part of the columns (quant.cluster_part): of each P, the number of chains of the row's sums, one
    run, so that sums keep the canonical order. quant.cluster_reduce combines what the blocks have.
    Declines: targets without clusters, rows that are no multiple of P, several rows, loops and branches, elements
    that change columns, and blocks that are longer than a run.
  }];
  let options = [
    Option<"heldBytes", "held-bytes", "int64_t", "-1",
           "bytes of a row that a block holds, instead of the target's">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::dither::quant::QuantDialect"];
}

def DitherTileToFragments : Pass<"dither-tile-to-fragments", "::mlir::func::FuncOp"> {
  let summary = "cover tiles with loops over parts that fit in registers";
  let description = [{
    Requires: decomposed kernels; `quant.config` with a fragment, or the option.
    Guarantees: no tile value has more rows or columns than the fragment, except
    where a block is taller or wider than it. Loops over rows hold the loops
    over columns; what does not depend on a loop is outside it; a loop with one
    iteration is not made. Accesses of one memref keep their order: a tile that is overwritten before
    its last use is kept as a whole, in registers or in quant.scratch. Sums over more than one fragment keep the canonical
    order (docs/architecture.md, Order of sums).
    What nearly all programs branch past (quant.likely) is computed in the fragment `edge` of
    quant.config, where that divides its tiles: its code is to be short.
    A tile whose dimensions belong together, as those of a square and its transpose, is
    computed in squares.
    Declines: blocks whose tiles fit in one fragment. Tiles that loops of a GPU carry
    and that do not fit, and dimensions that leave a remainder smaller than a block, are
    errors.
  }];
  let options = [
    ListOption<"fragment", "fragment", "int64_t",
               "rows and columns, instead of those in quant.config">,
    Option<"printSchedule", "print-schedule", "bool", "false",
           "print the loops of each block before they are built">
  ];
  let dependentDialects = ["::dither::quant::QuantDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DitherTileToGrid : Pass<"dither-tile-to-grid", "::mlir::func::FuncOp"> {
  let summary = "make a tile program of a whole-tensor program";
  let description = [{
    Requires: a function whose arguments and results are ranked tensors or
    scalars. Only the leading dimension may be dynamic.
    Guarantees: a kernel (`quant.kernel`) with a memref for each tensor argument
    and, after them, one for each result, with the attributes of either. Program id
    x counts tiles along rows, y along columns; `quant.grid` names the extents. Scale outputs in the 128x4
    order are written with their padding.
    Declines: kernels and functions without tensor results.
  }];
  let options = [
    ListOption<"tileSizes", "tile-sizes", "int64_t",
               "rows and columns of a tile; 0 or nothing takes whole rows">
  ];
  let dependentDialects = ["::dither::quant::QuantDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

def DitherTileToPhases : Pass<"dither-tile-to-phases", "::mlir::func::FuncOp"> {
  let summary = "cover tiles with short loops, one for each step of the work";
  let description = [{
    Requires: decomposed kernels for a CPU.
    Guarantees: a kernel that is one nest over rows and columns becomes bands of
    rows, and in each band loops that compute what its rows have in common, the
    scales of its blocks and its elements, in this order; values go from one loop to the
    next through quant.scratch, and so do codes that are stored as columns, until they fill
    lines. Each loop first covers the parts in bounds, whose
    accesses carry `in_bounds`, then the rest in smaller parts. Such kernels carry
    `quant.phases`; sums keep the canonical order (docs/architecture.md). Maxima and sums over
    the rows of the tile are collected on the way, and what depends on them comes last;
    rows at the end that add +0 are left out.
    Declines: all other kernels, which are left to dither-version-bounds and
    dither-tile-to-fragments; with `remarks` it says why.

    Example: test/Transforms/Phases/tile-to-phases.mlir.
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "say why a kernel is left to fragments">,
    Option<"printSchedule", "print-schedule", "bool", "false",
           "print the loops of each kernel before they are built">
  ];
  let dependentDialects = ["::dither::quant::QuantDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def DitherVersionBounds : Pass<"dither-version-bounds", "::mlir::func::FuncOp"> {
  let summary = "make a copy of the body for programs that stay in bounds";
  let description = [{
    Requires: kernels.
    Guarantees: divisions of indices that cannot be negative are unsigned. Accesses
    that are in bounds whatever the program id and the iteration of a loop carry `in_bounds`. Where the bounds of others can be checked before the body runs,
    the body becomes the two branches of an scf.if: one in which those carry
    `in_bounds` too, and the original. The condition is quant.likely. A loop over tiles up to an extent becomes two, the
    first over those that are inside; where nothing else is to be checked there is no scf.if. Of a row whose static length ends inside of the tile of a GPU's
    program that is not cut into fragments, what is past it stays outside; a vector of as many columns is one of
    that length there (memref.cast). Where offsets follow from program ids, `quant.whole_if` says what
    keeps every tile of a launch inside; the body of a kernel for a launch (`quant.launch`, which is gone)
    that has it is the first of the two branches alone, and `quant.whole` says so.
    Declines: accesses whose offsets are computed inside loops or branches or from
    memory; they stay masked. Kernels with no access to check. Kernels of a CPU whose
    body is so long that two copies would take seconds to compile.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // DITHER_TRANSFORMS_PASSES
