"""dither.grouped_quantize and its like: groups of rows, each a tensor of its own."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..arrays import Buffer, describe
from ..devices import Device, chosen_device
from ..errors import renaming
from ..formats import Format
from ..frameworks import replayable
from ..language import ScaleLayout
from ..types import int32, int64
from . import group_kernels, kernels
from .dequantize import blocks_of, dtype_of_values
from .flatten import reshape
from .group_splits import say_of_stack
from .grouped_outputs import codes_and_scales
from .grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .grouping import KINDS, Groups, integers, retiled
from .hadamard import RandomHadamard
from .operator import run
from .orders import OF_LAYOUT
from .quantize import QUANTIZE, rounds_first
from .request import check_flag, wanted_of
from .shards import Describing, describes
from .tiles import Tile
from .written import new_or_given

#: What groups are given as is an argument of `grouped_quantize` by another name.
_ARGUMENTS = {kind: f"group_{kind}" for kind in KINDS}


@replayable
def grouped_quantize(
    x: Any,
    format: Format | str,
    layout: str = "rowwise",
    scale_layout: str = "linear",
    *,
    group_sizes: Any = None,
    group_starts: Any = None,
    group_ends: Any = None,
    pad: int = 1,
    rows: Any = None,
    joined: bool = False,
    amax: Any = None,
    device: str | Device | None = None,
    stream: int | None = None,
    rounding: str = "nearest",
    seed: Any = None,
    offset: Any = 0,
    encode_scale: Any = None,
    decode_scale: Any = None,
    repeat_scales: bool = False,
    transform: RandomHadamard | None = None,
    numerics: str | None = None,
    out: GroupedScaledTensor1x | GroupedScaledTensor2x | None = None,
    record_amax: Any = None,
    skip: Any = None,
) -> GroupedScaledTensor1x | GroupedScaledTensor2x:
    """Groups of the rows of `x`, each quantized as `dither.quantize` would quantize it alone, in one launch.

    Args:
        x: (M, N) as of `dither.quantize`, or a stack (G, K, N) of G groups of K rows.
        group_sizes: (G,) int32 or int64 where `x` is: rows of each group, zero included, which make up all of them; or
            an earlier result, of codes with as many rows, whose groups they are; or integers of the host, as
            `dither.Groups` says.
        group_starts: in its place the first row of each group, of which the first is 0.
        group_ends: in its place the row after the last one of each.
        pad: a power of two that rows of groups are padded to with rows of zeros.
        rows: (M',) int32: which rows of `x` the rows of the groups are, of which there are M' then; negative for zeros.
        joined: whether transposed codes are one matrix (N, M), as `dither.Groups` says.
        amax: largest magnitude of all groups, a number, or of each, (G,) float32; computed for each if None.
        encode_scale, decode_scale: as of `dither.quantize`, one for all groups, or (G,).
        out: an earlier result of as many groups, rows and columns, to be overwritten, as of `dither.quantize`.
        record_amax: as of `dither.quantize`, or float32 (G,): each is raised to the largest magnitude of its group.
        skip: as of `dither.quantize`: where the flag is not zero, `out` stays as it is, with its groups.
        rounding, seed, offset: as of `dither.quantize`; group g has the random bits of a call with offset + g 2^32.

    The other arguments are those of `dither.quantize`. Sizes are read on the device: where they do not make up all
    rows, rows past the groups are zero, groups past the rows end with them, and `wrong` of the result is 1.
    """
    named = {"sizes": group_sizes, "starts": group_starts, "ends": group_ends}
    given = [_ARGUMENTS[name] for name, value in named.items() if value is not None]
    shape = tuple(getattr(x, "shape", ()))
    alike: dict[str, int] = {}
    stack = None
    if len(shape) == 3:
        # Of matrices with no rows, or as many as a symbol of torch, the number of them is known.
        alike = {"height": shape[1]} if type(shape[1]) is int and shape[1] else {"count": shape[0]}
        stack, x = x, reshape(x, (shape[0] * shape[1], shape[2]), "x")
        if given:
            raise ValueError(f"argument '{given[0]}' was given for x of shape {shape}, expected a matrix")
    elif not given:
        raise TypeError("found no groups, expected group_sizes, group_starts or group_ends, or x of shape (G, K, N)")
    elif len(given) > 1:
        raise TypeError(f"found {' and '.join(given)}, expected one of group_sizes, group_starts and group_ends")
    for name, value in named.items():
        if value is not None and not isinstance(value, (GroupedScaledTensor1x, GroupedScaledTensor2x, list, tuple)):
            integers(_ARGUMENTS[name], value, (int32, int64))
    wanted = wanted_of(
        format,
        layout=layout,
        scale_layout=scale_layout,
        amax=amax,
        device=device,
        stream=stream,
        out=out,
        rounding=rounding,
        seed=seed,
        offset=offset,
        encode_scale=encode_scale,
        decode_scale=decode_scale,
        record_amax=record_amax,
        skip=skip,
        repeat_scales=repeat_scales,
        transform=transform,
        flatten_axis=-1,
        numerics=numerics,
        groups=Groups(**named, **alike, pad=pad, rows=rows, joined=joined),
    )
    assert wanted.plan is not None
    wanted.round_intermediate = rounds_first(wanted.plan)
    with renaming(_ARGUMENTS):
        result: GroupedScaledTensor1x | GroupedScaledTensor2x = run(QUANTIZE, {"x": x}, {}, wanted).out
    if isinstance(stack, Buffer) and describes(stack.array.owner):
        say_of_stack(stack.array.owner, stack)
    return result


@replayable
def grouped_dequantize(
    x: GroupedScaledTensor1x | GroupedScaledTensor2x,
    dtype: Any = None,
    *,
    rows: Any = None,
    height: int | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    undo_transform: bool = False,
    out: Any = None,
) -> Any:
    """The values of quantized groups, (M, N), in the order of their codes; those past all groups are zero.

    Args:
        x: what `grouped_quantize` gives; of both directions the rowwise codes.
        dtype: float32, bfloat16 or float16, by default that before quantization.
        rows: (M,) int32: which row of the result each row of the codes is, as `rows` of `grouped_quantize` has it;
            negative for none. Of rows with one index one is taken; those that no row is are zero.
        height: with `rows`, the number of rows of the result.
        undo_transform: whether a transform is undone.
        out: a dense array for the values, of their shape, in memory of its own; they have its data type by default.

    Returns an array of the library of the codes. Raises TypeError or ValueError, which name the argument.
    """
    if isinstance(x, GroupedScaledTensor2x):
        x = x.rowwise
    if not isinstance(x, GroupedScaledTensor1x):
        raise TypeError(f"argument 'x' is {type(x).__name__}, expected what dither.grouped_quantize gives")
    check_flag("undo_transform", undo_transform)
    dtype = dtype_of_values(dtype, out, x.dtype)
    if (rows is None) != (height is None):
        raise ValueError(f"argument '{'height' if rows is None else 'rows'}' was given alone, expected both or none")
    m, n = x.shape
    data = describe(x.data)
    assert data is not None
    where = chosen_device(device, data.device)
    index = None
    inputs = {"x": data}
    if rows is not None and height is not None:
        index = integers("rows", rows, (int32,))
        if index.shape != (m,):
            raise ValueError(f"argument 'rows' has shape {index.shape}, expected ({m},)")
        y = new_or_given(out, x.data, data, (height, n), dtype, {**inputs, "rows": index}, dense=True)
        kernels.zero(y, where, stream)
    else:
        y = new_or_given(out, x.data, data, (m, n), dtype, inputs, dense=True)
    # Of repeated scales, a block is a row of what is one.
    fmt = x.format.with_(block=x.format.block_cols) if x.repeated else x.format
    stands = x.amax if x.format.tensor_scale_as == "amax" else x.tensor_scale
    codes, scales = codes_and_scales(x, x.scale_inv, x.scale_layout)
    quads = 1
    if not OF_LAYOUT[x.scale_layout].linear and x.scale_layout is not ScaleLayout.column_major:
        quads = 4 * (fmt.block_cols or 1)
        # Programs name the rows: four scales that are neighbours in all orders.
        scales = dataclasses.replace(scales, shape=(math.prod(scales.shape) // 4, 4), strides=(4, 1), shapes=None)
    run = x.transform.size if undo_transform and x.transform is not None else 1
    # Blocks that are longer than tiles are taken in parts.
    height_of_tile = max(32, run, quads if x.is_colwise else 1)
    tile = Tile(height_of_tile, max(4096 // height_of_tile, run, 1 if x.is_colwise else quads))
    part = blocks_of(fmt, 0 if x.is_colwise else 1, tile)["FMT"]
    table, tiles = retiled(x, tile.rows, where, stream)
    group_kernels.grouped_dequantize_kernel.launch(
        (m // tile.rows + x.groups + 1, -(-n // tile.cols)),
        codes,
        scales,
        stands if x.format.tensor_scale else None,
        y,
        index,
        tiles,
        table,
        n,
        FMT=fmt,
        PART=part,
        COLWISE=x.is_colwise,
        LAYOUT=x.scale_layout,
        TRANSFORM=x.transform if undo_transform else None,
        ROWS=tile.rows,
        COLS=tile.cols,
        device=where,
        stream=stream,
    )
    if describes(where):
        split = Describing.of(x if undo_transform else dataclasses.replace(x, transform=None))
        split.label(y, (None if index is not None else split.rows[0], *split.cols))
        if index is not None:
            split.keep(*split.rows)
        split.say(where)
    return y
