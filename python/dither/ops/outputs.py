"""The outputs of a quantizing kernel: making them, passing them, wrapping them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import sharing
from ..arrays import Array, describe_argument, view
from ..data_classes import dataclass
from ..devices import Device
from ..formats import Format
from ..language import ScaleLayout
from ..torch_tensors import are_extents
from ..types import DType, float32
from .allocate import empty_like
from .grouped_tensor import GroupedScaledTensor1x
from .hadamard import RandomHadamard, Transform
from .orders import OF_LAYOUT, ORDERS, Order
from .producer import Producer
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x, data_shape, scale_matrix, scale_storage, specialization
from .settle import check_array
from .tiles import CPU_SQUARE, GPU_TRANSPOSED, Tile, elementwise_tile, narrowed, round_up, row_tile

LAYOUTS = ("rowwise", "colwise", "both")


@dataclass(frozen=True)
class Plan:
    """What a call asks for."""

    fmt: Format
    rowwise: bool
    colwise: bool
    layout: ScaleLayout
    stochastic: bool = False
    #: Whether scales of blocks of several rows are stored once for each row.
    repeat: bool = False
    transform: RandomHadamard | None = None
    #: Whether rows go on in other parts of the tensor, so that no tile has a whole one.
    rows_go_on: bool = False

    @property
    def order(self) -> Order:
        """The order of scales."""
        return OF_LAYOUT[self.layout]

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
        if self.colwise:
            rows, cols = max(rows, cols), max(rows, cols if self.rowwise else min(cols, 32))
        if self.transform is not None:  # runs are whole, but make no squares of blocks
            rows = max(rows, self.transform.size if self.transform_of(True) else 1)
            cols = max(cols, self.transform.size if self.transform_of(False) else 1)
        return rows, cols

    @property
    def row_blocks(self) -> bool:
        """Whether a whole row is a block, so that tiles are rows from end to end."""
        return self.rowwise and self.fmt.block == "row" and not self.rows_go_on

    def tile(self, n: int, producer: Producer, cpu: bool) -> Tile:
        """The tile of a program for rows of `n` elements, from end to end where the producer needs them so."""
        rows, cols = self.granule
        if producer.whole_rows:
            padded = round_up(max(n, self.extent((1, n))[1]), producer.columns)
            return row_tile(padded, self.granule, self.colwise, cpu, bool(producer.sums))
        if self.row_blocks:
            return row_tile(round_up(n, producer.columns), self.granule, False, cpu)
        width = max(cols, producer.columns)
        # A GPU takes tiles in parts that are wider than this.
        full = not cpu and GPU_TRANSPOSED < rows * width <= 2 * GPU_TRANSPOSED
        if full and width > cols and (self.transposed or producer.sums):
            width *= 2
        tile = elementwise_tile(n, (rows, width), self.colwise, self.transposed, cpu, bool(producer.sums))
        if producer.whole_periods:
            tile = narrowed(tile, producer.columns)
            if self.colwise and not cpu:
                tile = Tile(min(tile.rows, max(rows, GPU_TRANSPOSED // tile.cols)), tile.cols)
        return tile

    def transform_of(self, colwise: bool) -> Transform | None:
        """What one direction is transformed by, if it is there."""
        wanted = self.colwise if colwise else self.rowwise
        return self.transform.of(colwise) if wanted and self.transform is not None else None

    def needs_amax(self, colwise: bool) -> bool:
        """Whether scales of one direction depend on more than their blocks, or these are larger than tiles."""
        if not (self.colwise if colwise else self.rowwise):
            return False
        of_line = self.fmt.block == "row" and (colwise or self.rows_go_on)
        return self.fmt.tensor_scale or self.fmt.block == "tensor" or of_line

    def amaxes(self, shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        """Shapes of the amaxes that scales depend on: "amax" is that of the tensor, "row_amax" and "col_amax" are those
        of its rows and columns, or of what becomes of it before it is quantized along them."""
        found: dict[str, tuple[int, ...]] = {}
        for colwise in (False, True):
            if self.needs_amax(colwise):
                lines = self.fmt.row_amax or self.fmt.block == "row"
                own = lines or self.transform_of(colwise) is not None
                name = "amax" if not own else "col_amax" if colwise else "row_amax"
                found[name] = () if not lines else (1, shape[1]) if colwise else (shape[0], 1)
        return found

    def on(self, where: Device) -> Plan:
        """The plan for a tensor on a device, which may be a part of another."""
        if where.shard is None or where.shard.cols == 1:
            return self
        return dataclasses.replace(self, rows_go_on=True)

    def given_amaxes(self, row: Any, col: Any) -> dict[str, Any]:
        """Those that the kernel is given: one, or that of columns besides where it is another."""
        row, col = (one if self.needs_amax(way) else None for one, way in ((row, False), (col, True)))
        lines = self.fmt.row_amax or self.fmt.block == "row"
        if row is None and not lines:
            return {"amax": col, "col_amax": None}
        return {"amax": row, "col_amax": None if col is row else col}

    @property
    def no_amax(self) -> str:
        """Why a call may not give the amax."""
        if self.fmt.row_amax:
            return f"scales of {self.fmt.name} depend on the amax of each row"
        if self.transform is not None and (self.fmt.tensor_scale or self.fmt.block == "tensor"):
            return "what is quantized is transformed first"
        return f"{self.fmt.name} has no tensor scale"

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raises ValueError for a tensor whose columns a transform of rows does not divide."""
        transform = self.transform_of(False)
        if transform is not None and shape[1] % transform.size:
            raise ValueError(f"found {shape[1]} columns, expected a multiple of {transform.size}, the transform's")

    def shape_of(self, colwise: bool, shape: tuple[int, int]) -> tuple[int, int]:
        """That of what is quantized in one direction: a transform of columns has whole runs, with rows of zeros at the
        end."""
        transform = self.transform_of(True) if colwise else None
        return shape if transform is None else (round_up(shape[0], transform.size), shape[1])

    def amax_tile(self, n: int, producer: Producer, cpu: bool) -> Tile:
        """The tile of the pass that takes the amax of what is transformed."""
        rows, cols = self.granule
        if producer.whole_rows:
            return row_tile(round_up(n, max(producer.columns, cols)), (rows, cols), False, cpu)
        tile = elementwise_tile(n, (rows, max(cols, 32, producer.columns)), self.colwise, False, cpu)
        return narrowed(tile, producer.columns) if producer.whole_periods else tile

    def parts(self, producer: Producer, cpu: bool) -> list[Plan]:
        """What each launch writes. A GPU does not hold squares of long blocks that are stored transposed, of runs that
        are transformed or in two halves; of one tile it holds squares of 128. No device holds those of long runs, and
        tiles of whole rows are no good for columns, unless the operator needs them."""
        rows, cols = self.granule
        room = GPU_TRANSPOSED if producer.halves or self.transform is not None else 2 * GPU_TRANSPOSED
        two = not cpu and self.transposed and rows * cols > room
        if not producer.whole_rows:
            two |= self.row_blocks or self._wide_squares(cpu)
        return self._directions() if two else [self]

    def amax_parts(self, whole_rows: bool, cpu: bool) -> list[Plan]:
        """What each launch of the pass that takes the amax of what is transformed is for."""
        return self._directions() if not whole_rows and self._wide_squares(cpu) else [self]

    def fits(self, producer: Producer, cpu: bool) -> bool:
        """Whether one kernel both computes and quantizes: a GPU does not hold rows from end to end beside squares that
        it turns from rows to columns, of long blocks or of runs that are transformed; a CPU none of the latter."""
        if producer.whole_periods and not self._fits_periods(producer, cpu):
            return False
        if not producer.whole_rows or not self.colwise:
            return True
        if cpu:
            return not self._wide_squares(cpu)
        rows, cols = self.granule
        return rows * cols <= GPU_TRANSPOSED and not (self.transposed and self.transform_of(False) is not None)

    def _fits_periods(self, producer: Producer, cpu: bool) -> bool:
        """Whether tiles have whole periods, whole blocks, and no more code than that."""
        rows, cols = self.granule
        width = producer.columns
        if width & (width - 1) or (self.row_blocks and not producer.whole_rows):
            return False
        return width >= cols and (cpu or not self.colwise or rows * width <= GPU_TRANSPOSED)

    def saves_apart(self, producer: Producer, cpu: bool) -> bool:
        """Whether what the producer saves is computed in a launch of its own: a GPU has no room for it beside squares
        of long blocks, or beside rows from end to end that are transformed."""
        rows, cols = self.granule
        large = rows * cols > GPU_TRANSPOSED or (producer.whole_rows and self.transform is not None)
        return not cpu and bool(producer.saves) and large

    def _directions(self) -> list[Plan]:
        if not (self.rowwise and self.colwise):
            return [self]
        return [dataclasses.replace(self, colwise=False), dataclasses.replace(self, rowwise=False)]

    def _wide_squares(self, cpu: bool) -> bool:
        """Whether runs that are transformed along rows and along columns make squares that a GPU does not turn, and
        that are too much straight code for a CPU."""
        rows, cols = self.granule
        both = self.transform_of(False) is not None and self.transform_of(True) is not None
        return both and rows * cols > (CPU_SQUARE if cpu else GPU_TRANSPOSED)

    def of(self, result: ScaledTensor1x | ScaledTensor2x) -> ScaledTensor1x | ScaledTensor2x:
        """What this plan writes of a result."""
        if not isinstance(result, ScaledTensor2x) or (self.rowwise and self.colwise):
            return result
        return result.colwise if self.colwise else result.rowwise

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """What the programs must cover: the tensor, and the padding of scales in their order."""
        m, n = shape
        if self.order.linear or 0 in shape:
            return m, n
        rows, cols = m, n
        block_rows, block_cols = self.fmt.block_rows, self.fmt.block_cols
        assert block_rows is not None and block_cols is not None
        row, col = self.order.steps(self.fmt.scale)
        row, col = row if self.repeat else row * block_rows, col * block_cols
        if self.rowwise:
            rows, cols = round_up(m, row), round_up(n, col)
        if self.colwise:
            rows, cols = max(rows, round_up(m, col)), max(cols, round_up(n, row))
        return rows, cols


def plan(
    fmt: Format,
    layout: Any,
    scale_layout: Any,
    stochastic: bool = False,
    repeat: Any = False,
    transform: RandomHadamard | None = None,
) -> Plan:
    """Checks the choices of a call."""
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, expected {', '.join(LAYOUTS)}")
    if not isinstance(scale_layout, str) or scale_layout not in ORDERS:
        raise ValueError(f"scale_layout is {scale_layout!r}, expected {', '.join(ORDERS)}")
    order = ORDERS[scale_layout]
    if fmt.scale not in order.scales:
        known = " or ".join(kind.name for kind in order.scales)
        raise ValueError(f"scale_layout is {scale_layout!r} for scales of {fmt.scale}, which is for {known}")
    if not order.linear and fmt.block_cols is None:
        found = f"scale_layout is {scale_layout!r} for one scale for each {fmt.block}"
        raise ValueError(f"{found}, expected 'linear': that order is of blocks")
    if not isinstance(repeat, bool):
        raise TypeError(f"repeat_scales is {repeat!r}, expected True or False")
    if repeat and (fmt.block_rows or 1) == 1:
        raise ValueError(f"repeat_scales is True for blocks of {fmt.name}, expected blocks of several rows")
    p = Plan(fmt, layout != "colwise", layout != "rowwise", order.layout, stochastic, repeat, transform)
    if transform is not None and p.transform_of(False) is p.transform_of(True) is None:
        raise ValueError(f"transform is {transform!r}, expected one of what the layout {layout!r} has")
    return p


class Known(NamedTuple):
    """What a result has of the tensor that it is of: its amax, its scale where that is given otherwise, and whether it
    is quantized by a scale that was given (encode_scale)."""

    amax: Any
    tensor_scale: Any
    scale_given: bool = False


def allocate(
    p: Plan, x: Any, array: Array, dtype: DType, known: Sequence[Known], out: Any
) -> ScaledTensor1x | ScaledTensor2x:
    """The result of a call beside `x`, its arrays uninitialised; or `out`, which was checked.

    `known` is of what is quantized along rows and along columns.
    """
    m, n = array.shape
    if out is not None:
        return of_parts([dataclasses.replace(part, **known[part.is_colwise]._asdict()) for part in parts_of(out)])

    def make(colwise: bool) -> ScaledTensor1x:
        shape = p.shape_of(colwise, (m, n))
        data = empty_like(x, array, data_shape(shape, p.fmt, colwise), p.fmt.element)
        scale = empty_like(x, array, *scale_storage(shape, p.fmt, colwise, p.layout, p.repeat))
        return ScaledTensor1x(
            data,
            scale,
            known[colwise].amax,
            p.fmt,
            shape,
            dtype,
            colwise,
            p.layout,
            p.repeat,
            p.transform_of(colwise),
            tensor_scale=known[colwise].tensor_scale,
            scale_given=known[colwise].scale_given,
        )

    if p.rowwise and p.colwise:
        return ScaledTensor2x(make(False), make(True))
    return make(p.colwise)


def arguments(result: ScaledTensor1x | ScaledTensor2x) -> dict[str, Any]:
    """The kernel arguments row_data, row_scale, col_data and col_scale, None where there is no such output."""
    parts = parts_of(result)
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
    if layout is not ScaleLayout.packed_column_major:
        return codes, view(scales, part.format.scale, shapes=of_scales)
    # Kernels see the matrix that the words are of.
    array = describe_argument("scale_inv", scales)
    assert array is not None
    matrix = scale_matrix(part.shape, part.format, part.is_colwise, part.repeated)
    rows, cols = OF_LAYOUT[layout].padded(matrix, part.format.scale)
    return codes, dataclasses.replace(
        array, dtype=part.format.scale, shape=(rows, cols), strides=(cols, 1), shapes=of_scales
    )


def check_fields(part: ScaledTensor1x | GroupedScaledTensor1x, name: str) -> None:
    """Checks the fields of argument `name` that are no arrays."""
    for what, field, kind in (
        ("format", part.format, Format),
        ("dtype", part.dtype, DType),
        ("is_colwise", part.is_colwise, bool),
        ("repeated", part.repeated, bool),
        ("scale_layout", part.scale_layout, ScaleLayout),
    ):
        if not isinstance(field, kind):
            raise TypeError(f"argument '{name}' has {what} {field!r}, expected a {kind.__name__}")
    if part.transform is not None and not isinstance(part.transform, Transform):
        raise TypeError(f"argument '{name}' has transform {part.transform!r}, expected a Transform or None")
    shape = part.shape
    if not isinstance(shape, tuple) or len(shape) != 2 or not are_extents(shape):
        raise TypeError(f"argument '{name}' has shape {shape!r}, expected (M, N)")


def check_arrays(part: ScaledTensor1x, name: str) -> None:
    """Checks that the arrays of argument `name` hold what its fields say: kernels take their word for it."""
    check_fields(part, name)
    rows, cols = data_shape(part.shape, part.format, part.is_colwise)
    pairs = part.format.element.bits == 4
    scale, storage = scale_storage(part.shape, part.format, part.is_colwise, part.scale_layout, part.repeated)
    for what, value, dtype, shape in (
        ("data", part.data, part.format.element, (rows, (cols + 1) // 2 if pairs else cols)),
        ("scale_inv", part.scale_inv, storage, scale),
    ):
        array = describe_argument(name, value)
        if array is None:
            raise TypeError(f"argument '{name}' has {what} of type {type(value).__name__}, expected an array")
        # What has more than a byte is not in as many bytes.
        if array.dtype is not dtype and (array.storage != "uint8" or dtype.bits > 8):
            kind, known = array.dtype or array.storage, f"{dtype} or uint8" if dtype.bits <= 8 else dtype
            raise TypeError(f"argument '{name}' has {what} of data type {kind}, expected {known}")
        found = array.shape
        if array.dtype is dtype and dtype.bits == 4:  # codes, of which a pair is a byte
            found = (array.shape[0], (array.shape[1] + 1) // 2)
        if found != shape:
            raise ValueError(f"argument '{name}' has {what} of shape {found}, expected {shape}")
        swizzled = what == "scale_inv" and part.scale_layout is not ScaleLayout.linear
        if swizzled and 0 not in shape and array.strides != (shape[1], 1):
            raise ValueError(f"argument '{name}' has {what} with strides {array.strides}, expected {(shape[1], 1)}")


def check_apart(written: Sequence[tuple[str, Any]], inputs: Mapping[str, Array]) -> None:
    """Raises ValueError where one of `written`, arrays and what messages call them, has a byte in common with another,
    with an input, or an element with another of its own."""
    known = [(f"argument '{name}'", array) for name, array in inputs.items()]
    for name, value in written:
        array = describe_argument("out", value)
        assert array is not None
        if sharing.overlaps_itself(array):
            raise ValueError(f"{name} has elements that share memory, strides {array.strides}, expected none")
        for other, beside in known:
            if sharing.overlap(array, beside):
                raise ValueError(f"{name} shares memory with {other}, expected memory of its own")
        known.append((name, array))


def arrays_of(out: ScaledTensor1x | ScaledTensor2x) -> list[tuple[str, Any]]:
    """The arrays of `out`, and what messages call them."""
    return [
        (f"{what} of argument 'out'", value)
        for part in parts_of(out)
        for what, value in (("data", part.data), ("scale_inv", part.scale_inv))
    ]


def parts_of(result: ScaledTensor1x | ScaledTensor2x) -> list[ScaledTensor1x]:
    """Its directions."""
    return [result.rowwise, result.colwise] if isinstance(result, ScaledTensor2x) else [result]


def of_parts(parts: Sequence[ScaledTensor1x]) -> ScaledTensor1x | ScaledTensor2x:
    """The inverse of `parts_of`."""
    return ScaledTensor2x(*parts) if len(parts) == 2 else parts[0]


def check_out(p: Plan, out: Any, shape: tuple[int, int], inputs: Mapping[str, Array]) -> None:
    """Checks that `out` is an earlier result of such a call, to be overwritten, in memory of its own."""
    want = ScaledTensor2x if p.rowwise and p.colwise else ScaledTensor1x
    if not isinstance(out, want):
        raise TypeError(f"argument 'out' is {type(out).__name__}, expected a {want.__name__}")
    parts = parts_of(out)
    for part, colwise in zip(parts, [False, True] if len(parts) == 2 else [p.colwise], strict=True):
        check_fields(part, "out")
        found = (part.shape, part.format, part.is_colwise, part.scale_layout, part.repeated, part.transform)
        own = p.shape_of(colwise, shape)
        if found != (own, p.fmt, colwise, p.layout, p.repeat, p.transform_of(colwise)):
            way = "colwise" if colwise else "rowwise"
            scales = f"{p.layout.name} scales{' for each row' if p.repeat else ''}"
            transform = p.transform_of(colwise)
            expected = f"{p.fmt!r}, {way}, shape {own}, {scales}{f', {transform}' if transform else ''}"
            raise ValueError(f"argument 'out' is a {part!r}, expected {expected}")
        check_arrays(part, "out")
        for what, value in (("data", part.data), ("scale_inv", part.scale_inv)):
            array = describe_argument("out", value)
            if array is not None and array.readonly:
                raise ValueError(f"argument 'out' has read-only {what}, expected memory that can be written")
        if p.fmt.tensor_scale:
            lines = () if not p.fmt.row_amax else (1, shape[1]) if colwise else (shape[0], 1)
            for what, value, extents in (("amax", part.amax, lines), ("tensor_scale", part.tensor_scale, ())):
                if value is not None:
                    check_array(what, value, extents, float32)
    check_apart(arrays_of(out), inputs)
