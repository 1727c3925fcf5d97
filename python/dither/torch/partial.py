"""Master weights that lie in several processes, each of which has some elements in a row, whatever blocks they are of.

Amaxes of blocks are those of what a process has, then those of all, and codes follow from them: Transformer Engine's
partial amax and partial cast, for any format of blocks.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..arrays import view
from ..devices import get_device
from ..formats import Format, get_format
from ..language import ScaleLayout
from ..ops import ScaledTensor1x, quantize
from ..ops.dequantize import blocks_of
from ..ops.partial_kernels import cast_kernel
from ..ops.tiles import Tile, round_up
from .dtypes import dither_dtype, torch_dtype
from .exchange import all_reduce_amax, gathered_slices
from .tensor import QuantizedTensor

#: Rows and columns of the tile of a program.
_TILE = Tile(32, 128)


def partial_amax(
    x: torch.Tensor, start: int, shape: tuple[int, int], format: Format | str, columnwise: bool = False
) -> torch.Tensor:
    """The largest magnitude of each block, of the elements that are here.

    Args:
        x: float32, bfloat16 or float16 (n,): the elements of a matrix of `shape`, in the order of its rows, from
            element `start` on.
        start: the first of them.
        shape: (M, N).
        format: whose blocks, without `four_over_six` and `row_amax`.
        columnwise: whether blocks run along columns, of formats that are not stored transposed.

    Returns (blocks of rows, blocks of columns), float32, 0 for blocks without an element here.
    """
    fmt = _format(format, columnwise)
    window, first = _window(x, start, shape, fmt, columnwise)
    rows, cols = _blocks(fmt, shape, columnwise)
    height, width = -(-shape[0] // rows), -(-shape[1] // cols)
    found = torch.zeros((height, width), device=x.device)
    if not window.numel():
        return found
    magnitude = window.detach().float().abs()
    nan = float("nan") if fmt.nan_scales else 0.0
    magnitude = magnitude.nan_to_num(nan, posinf=float("inf"))
    pad = (0, -magnitude.shape[1] % cols, 0, -magnitude.shape[0] % rows)
    tiles = torch.nn.functional.pad(magnitude, pad).reshape(-1, rows, width, cols)
    part = tiles.amax((1, 3))
    found[first // rows : first // rows + len(part)] = part
    return found


def partial_cast(
    x: torch.Tensor,
    start: int,
    shape: tuple[int, int],
    block_amax: torch.Tensor,
    format: Format | str,
    amax: torch.Tensor | None = None,
    columnwise: bool = False,
) -> torch.Tensor:
    """The codes of the elements that are here, (n,), or (n / 2,) bytes of FP4, under the scales of blocks with these
    amaxes, of all processes; `amax` is that of the tensor, for formats with a tensor scale. The others are those of
    `partial_amax`; of FP4 `start` and the number of elements are even."""
    fmt = _format(format, columnwise)
    pairs = 2 if fmt.element.bits == 4 else 1
    if start % pairs or (x.numel() % pairs) or shape[1] % pairs:
        raise ValueError(
            f"found elements {start} to {start + x.numel()} of FP4, expected even numbers: two share a byte"
        )
    window, first = _window(x, start, shape, fmt, columnwise)
    rows, _ = _blocks(fmt, shape, columnwise)
    m, n = window.shape
    native = _narrow(fmt)
    data = torch.empty((m, n // pairs), dtype=native, device=x.device)
    if m and n:
        axis = 0 if columnwise else 1
        where = get_device("cpu" if x.device.type == "cpu" else f"cuda:{x.device.index or 0}")
        cast_kernel.launch(
            _TILE.grid(m, n),
            window,
            block_amax[first // rows :],
            _amax_of(fmt, amax, block_amax),
            view(data, fmt.element, (m, n)),
            **blocks_of(fmt, axis, _TILE),
            ONE=fmt.with_(block=1),
            AXIS=axis,
            ROWS=_TILE.rows,
            COLS=_TILE.cols,
            device=where,
        )
    begin = (start - first * n) // pairs
    return data.reshape(-1)[begin : begin + x.numel() // pairs]


def scales_of_amaxes(
    block_amax: torch.Tensor, format: Format | str, amax: torch.Tensor | None = None, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """The scales of blocks with these amaxes, of elements of `dtype`, in linear order."""
    fmt = _format(format, False)
    one = fmt.with_(block=1)
    scales: torch.Tensor = quantize(block_amax.to(dtype), one, amax=_amax_of(fmt, amax, block_amax)).scale_inv
    return scales


def quantize_master(
    x: torch.Tensor, start: int, shape: tuple[int, int], format: Format | str, group: Any = None
) -> QuantizedTensor:
    """A matrix of which each process of a group has some elements, quantized along rows, and gathered as codes.

    `x`, `start` and `shape` are those of `partial_amax`. Elements of the processes follow one another by rank and are
    all of the matrix. The result has the bits of `dither.quantize` of the matrix, in each process. Raises ValueError in
    all processes where elements are missing.
    """
    fmt = _format(format, False)
    block_amax = all_reduce_amax(partial_amax(x, start, shape, fmt), group)
    amax = block_amax.amax() if fmt.tensor_scale else None
    codes = partial_cast(x, start, shape, block_amax, fmt, amax)
    pairs = 2 if fmt.element.bits == 4 else 1
    data = gathered_slices(codes, start // pairs, shape[0] * shape[1] // pairs, group).reshape(shape[0], -1)
    scales = scales_of_amaxes(block_amax, fmt, amax, x.dtype)
    linear = ScaleLayout.linear
    made = ScaledTensor1x(data, scales, None, fmt, tuple(shape), dither_dtype(x.dtype), False, linear)
    return QuantizedTensor(dataclasses.replace(made, amax=amax))


def _format(format: Format | str, columnwise: bool) -> Format:
    fmt = get_format(format)
    if fmt.four_over_six != "none" or fmt.row_amax or fmt.tensor_scale_as != "amax":
        found = "four_over_six" if fmt.four_over_six != "none" else "row_amax" if fmt.row_amax else "tensor_scale_as"
        raise ValueError(f"{fmt.name} has {found}, expected scales that follow from amaxes of blocks and the tensor")
    if columnwise and (fmt.transposed or isinstance(fmt.block, str)):
        raise ValueError(f"{fmt.name} is stored transposed along columns, expected a format that is not")
    return fmt


def _blocks(fmt: Format, shape: tuple[int, int], columnwise: bool) -> tuple[int, int]:
    """Rows and columns of a block."""
    rows, cols = fmt.block_extents(0 if columnwise else 1)
    return rows or max(shape[0], 1), cols or max(shape[1], 1)


def _window(
    x: torch.Tensor, start: int, shape: tuple[int, int], fmt: Format, columnwise: bool
) -> tuple[torch.Tensor, int]:
    """The rows of blocks that have elements here, zeros elsewhere, and the first of them."""
    m, n = shape
    if x.dim() != 1:
        raise ValueError(f"argument 'x' has rank {x.dim()}, expected 1: elements in the order of rows")
    if not 0 <= start <= start + x.numel() <= m * n:
        raise ValueError(f"found elements {start} to {start + x.numel()}, expected some of the {m * n} of {shape}")
    if not x.numel():
        return x.new_zeros(0, n), 0
    rows, _ = _blocks(fmt, shape, columnwise)
    first = start // n // rows * rows
    end = -(-(start + x.numel()) // n)
    last = min(round_up(end, rows), m)
    window = x.new_zeros(last - first, n)
    window.view(-1)[start - first * n : start - first * n + x.numel()] = x.detach()
    return window, first


def _amax_of(fmt: Format, amax: torch.Tensor | None, block_amax: torch.Tensor) -> torch.Tensor | None:
    if not fmt.tensor_scale:
        if amax is not None:
            raise ValueError(f"argument 'amax' was given for {fmt.name}, expected none: it has no tensor scale")
        return None
    return (block_amax.amax() if amax is None else amax).reshape(())


def _narrow(fmt: Format) -> torch.dtype:
    """What codes lie in."""
    found: torch.dtype = torch.uint8 if fmt.element.bits == 4 or fmt.element.name.startswith("float6") else torch.int8
    return torch_dtype(fmt.element) if fmt.element.name.startswith("float8") else found
