"""The outputs of a quantizing kernel: making them, passing them, wrapping them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..arrays import Array, describe_argument, view
from ..formats import Format
from ..language import ScaleLayout
from ..types import DType
from .allocate import empty_like
from .producer import Producer
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x, data_shape, scale_shape, specialization
from .tiles import GPU_TRANSPOSED, Tile, elementwise_tile, round_up, row_tile

LAYOUTS = ("rowwise", "colwise", "both")
SCALE_LAYOUTS = {"linear": ScaleLayout.linear, "128x4": ScaleLayout.swizzle_128x4}


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a call asks for."""

    fmt: Format
    rowwise: bool
    colwise: bool
    layout: ScaleLayout
    stochastic: bool = False

    @property
    def transposed(self) -> bool:
        """Whether some codes are stored transposed."""
        return self.colwise and self.fmt.transposed

    @property
    def granule(self) -> tuple[int, int]:
        """Rows and columns that tiles are multiples of: whole blocks, and runs of columns that are worth it."""
        # One scale for a row asks for whole rows, which are padded with columns of zeros.
        rows, cols = self.fmt.block_rows or 1, self.fmt.block_cols or 32
        if self.stochastic:  # groups of 16 elements share a block of random words, along lines of either output
            cols = max(cols, 16)
        if not self.colwise:
            return rows, cols
        return max(rows, cols), max(rows, cols if self.rowwise else min(cols, 32))

    @property
    def row_blocks(self) -> bool:
        """Whether a whole row is a block, so that tiles are rows from end to end."""
        return self.rowwise and self.fmt.block == "row"

    def tile(self, n: int, producer: Producer, cpu: bool) -> Tile:
        """The tile of a program for rows of `n` elements, from end to end where the producer needs them so."""
        rows, cols = self.granule
        if producer.whole_rows:
            padded = round_up(max(n, self.extent((1, n))[1]), producer.columns)
            return row_tile(padded, self.granule, self.colwise, cpu)
        if self.row_blocks:
            return row_tile(round_up(n, producer.columns), self.granule, False, cpu)
        tall = self.colwise or bool(producer.sums)
        return elementwise_tile(n, (rows, max(cols, producer.columns)), tall, self.transposed, cpu)

    def amax_shape(self, n: int) -> tuple[int, ...] | None:
        """Shape of the amax that a kernel is given: that of the tensor, or of each of `n` columns that are blocks."""
        if self.fmt.tensor_scale or self.fmt.block == "tensor":
            return ()
        return (1, n) if self.colwise and self.fmt.block == "row" else None

    def passes(
        self, result: ScaledTensor1x | ScaledTensor2x, whole_rows: bool, cpu: bool
    ) -> list[tuple[Plan, ScaledTensor1x | ScaledTensor2x]]:
        """What each launch writes: a GPU does not hold squares of long blocks that are stored transposed, and tiles
        of whole rows are no good for columns, unless the operator needs them."""
        rows, cols = self.granule
        two = self.row_blocks or (not cpu and self.transposed and rows * cols > GPU_TRANSPOSED)
        if whole_rows or not (two and isinstance(result, ScaledTensor2x)):
            return [(self, result)]
        along_rows = dataclasses.replace(self, colwise=False)
        along_cols = dataclasses.replace(self, rowwise=False)
        return [(along_rows, result.rowwise), (along_cols, result.colwise)]

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """What the programs must cover: the tensor, and the padding of scales in the 128x4 order."""
        m, n = shape
        if self.layout is ScaleLayout.linear or 0 in shape:
            return m, n
        rows, cols = m, n
        block_rows, block_cols = self.fmt.block_rows, self.fmt.block_cols
        assert block_rows is not None and block_cols is not None
        if self.rowwise:
            rows, cols = round_up(m, 128 * block_rows), round_up(n, 4 * block_cols)
        if self.colwise:
            rows = max(rows, round_up(m, 4 * block_cols))
            cols = max(cols, round_up(n, 128 * block_rows))
        return rows, cols


def plan(fmt: Format, layout: Any, scale_layout: Any, stochastic: bool = False) -> Plan:
    """Checks the choices of a call."""
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, expected {', '.join(LAYOUTS)}")
    if not isinstance(scale_layout, str) or scale_layout not in SCALE_LAYOUTS:
        raise ValueError(f"scale_layout is {scale_layout!r}, expected {', '.join(SCALE_LAYOUTS)}")
    if scale_layout == "128x4" and fmt.scale.bits != 8:
        raise ValueError(
            f"scale_layout is '128x4' for scales of {fmt.scale}, expected 'linear': that order is of bytes"
        )
    if scale_layout == "128x4" and fmt.block_cols is None:
        raise ValueError(
            f"scale_layout is '128x4' for one scale for each {fmt.block}, expected 'linear': that order is of blocks"
        )
    return Plan(fmt, layout != "colwise", layout != "rowwise", SCALE_LAYOUTS[scale_layout], stochastic)


def allocate(
    p: Plan, x: Any, array: Array, dtype: DType, amax: Any, out: Any, inputs: Mapping[str, Array]
) -> ScaledTensor1x | ScaledTensor2x:
    """The result of a call on `inputs`, `x` the first of them, its arrays uninitialised; or `out`, checked."""
    m, n = array.shape
    if out is not None:
        result = _reuse(p, out, (m, n), amax)
        check_apart(result, inputs)
        return result

    def make(colwise: bool) -> ScaledTensor1x:
        data = empty_like(x, array, data_shape((m, n), p.fmt, colwise), p.fmt.element)
        scale = empty_like(x, array, scale_shape((m, n), p.fmt, colwise, p.layout), p.fmt.scale)
        return ScaledTensor1x(data, scale, amax, p.fmt, (m, n), dtype, colwise, p.layout)

    if p.rowwise and p.colwise:
        return ScaledTensor2x(make(False), make(True))
    return make(p.colwise)


def arguments(result: ScaledTensor1x | ScaledTensor2x) -> dict[str, Any]:
    """The kernel arguments row_data, row_scale, col_data and col_scale, None where there is no such output."""
    parts = [result.rowwise, result.colwise] if isinstance(result, ScaledTensor2x) else [result]
    named: dict[str, Any] = dict.fromkeys(("row_data", "row_scale", "col_data", "col_scale"))
    for part in parts:
        prefix = "col" if part.is_colwise else "row"
        named[f"{prefix}_data"], named[f"{prefix}_scale"] = codes_and_scales(part, part.scale_inv, part.scale_layout)
    return named


def codes_and_scales(part: ScaledTensor1x, scales: Any, layout: ScaleLayout) -> tuple[Any, Any]:
    """The codes of a tensor and `scales`, its scales in `layout`, as kernel arguments."""
    shape = data_shape(part.shape, part.format, part.is_colwise)
    of_codes, of_scales = specialization(part.format, part.is_colwise, layout)
    codes = view(part.data, part.format.element, shape, shapes=of_codes)
    return codes, view(scales, part.format.scale, shapes=of_scales)


def check_fields(part: ScaledTensor1x, name: str) -> None:
    """Checks the fields of argument `name` that are no arrays."""
    for what, field, kind in (
        ("format", part.format, Format),
        ("dtype", part.dtype, DType),
        ("is_colwise", part.is_colwise, bool),
        ("scale_layout", part.scale_layout, ScaleLayout),
    ):
        if not isinstance(field, kind):
            raise TypeError(f"argument '{name}' has {what} {field!r}, expected a {kind.__name__}")
    shape = part.shape
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise TypeError(f"argument '{name}' has shape {shape!r}, expected (M, N)")


def check_arrays(part: ScaledTensor1x, name: str) -> None:
    """Checks that the arrays of argument `name` hold what its fields say: kernels take their word for it."""
    check_fields(part, name)
    rows, cols = data_shape(part.shape, part.format, part.is_colwise)
    pairs = part.format.element.bits == 4
    scale = scale_shape(part.shape, part.format, part.is_colwise, part.scale_layout)
    for what, value, dtype, shape in (
        ("data", part.data, part.format.element, (rows, (cols + 1) // 2 if pairs else cols)),
        ("scale_inv", part.scale_inv, part.format.scale, scale),
    ):
        array = describe_argument(name, value)
        if array is None:
            raise TypeError(f"argument '{name}' has {what} of type {type(value).__name__}, expected an array")
        if array.dtype is not dtype and array.storage != "uint8":
            kind = array.dtype or array.storage
            raise TypeError(f"argument '{name}' has {what} of data type {kind}, expected {dtype} or uint8")
        found = (array.shape[0], array.shape[1] // 2) if array.dtype is dtype and dtype.bits == 4 else array.shape
        if found != shape:
            raise ValueError(f"argument '{name}' has {what} of shape {found}, expected {shape}")
        swizzled = what == "scale_inv" and part.scale_layout is not ScaleLayout.linear
        if swizzled and 0 not in shape and array.strides != (shape[1], 1):
            raise ValueError(f"argument '{name}' has {what} with strides {array.strides}, expected {(shape[1], 1)}")


def check_apart(out: ScaledTensor1x | ScaledTensor2x, inputs: Mapping[str, Array]) -> None:
    """Raises ValueError where an array of `out`, to be written, has a byte in common with another or with an input."""
    from .. import _dither

    parts = [out.rowwise, out.colwise] if isinstance(out, ScaledTensor2x) else [out]
    known = [(f"argument '{name}'", array) for name, array in inputs.items()]
    for part in parts:
        for what, value in (("data", part.data), ("scale_inv", part.scale_inv)):
            array = describe_argument("out", value)
            assert array is not None
            name = f"{what} of argument 'out'"
            if _dither.overlaps_itself(array.extent):
                raise ValueError(f"{name} has elements that share memory, strides {array.strides}, expected none")
            for other, beside in known:
                if _dither.overlap(array.extent, beside.extent):
                    raise ValueError(f"{name} shares memory with {other}, expected memory of its own")
            known.append((name, array))


def _reuse(p: Plan, out: Any, shape: tuple[int, int], amax: Any) -> ScaledTensor1x | ScaledTensor2x:
    want = ScaledTensor2x if p.rowwise and p.colwise else ScaledTensor1x
    if not isinstance(out, want):
        raise TypeError(f"argument 'out' is {type(out).__name__}, expected a {want.__name__}")
    parts = [out.rowwise, out.colwise] if isinstance(out, ScaledTensor2x) else [out]
    for part, colwise in zip(parts, [False, True] if len(parts) == 2 else [p.colwise], strict=True):
        check_fields(part, "out")
        found = (part.shape, part.format, part.is_colwise, part.scale_layout)
        if found != (shape, p.fmt, colwise, p.layout):
            way = "colwise" if colwise else "rowwise"
            expected = f"{p.fmt!r}, {way}, shape {shape}, {p.layout.name} scales"
            raise ValueError(f"argument 'out' is a {part!r}, expected {expected}")
        check_arrays(part, "out")
        for what, value in (("data", part.data), ("scale_inv", part.scale_inv)):
            array = describe_argument("out", value)
            if array is not None and array.readonly:
                raise ValueError(f"argument 'out' has read-only {what}, expected memory that can be written")
    filled = [dataclasses.replace(part, amax=amax) for part in parts]
    return ScaledTensor2x(filled[0], filled[1]) if len(filled) == 2 else filled[0]
