"""The kernels of the operator library by name, each specialized as a call of its operator specializes it.

`listing` has all of them, for `python -m dither compile --library` and `python -m dither build --library`. `library`
has those of a few operators that together stand for the others: tests assemble each of these for each target, count
what they do, and compare devices with each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from .. import types
from ..arrays import Array, row_major
from ..compiled import Compiled, Lowered
from ..data_classes import dataclass
from ..devices import is_gpu
from ..formats import FORMATS, FP8_1X128_E4M3, FP8_TENSOR_E4M3, MXFP4, MXFP8_E4M3, MXFP8_E5M2, NVFP4, Format
from ..jit import Kernel
from ..language import linear
from ..types import DType, ScalarType, TensorType
from . import column_sum, halves, kernels, outputs
from .dequantize import blocks_of
from .library_rows import MORE, NUMBERS, OPERATORS, Row
from .producer import Producer, plain_tile
from .scaled_tensor import data_shape, scale_storage, specialization
from .tiles import Tile, dequantize_tile, goes_across, transpose_tile
from .transpose import MOVED

#: The (M, N) that entries are for. Kernels know N, never M.
SHAPE = (2048, 1024)
INPUTS = (types.float32, types.bfloat16, types.float16)

#: Data type, shape, and the class of shapes that calls of operators ask for.
Tensor = tuple[DType, tuple[int, ...]] | tuple[DType, tuple[int, ...], str]
SCALAR: Tensor = (types.float32, ())


@dataclass(frozen=True)
class Entry:
    """A kernel of the library with its arguments for one (M, N).

    Attributes:
        name: operator and choices, as in "quantize-nvfp4-rowwise-128x4-bfloat16"; a good file name.
        kernel: the function over tiles.
        tensors: each tensor by parameter; None for what is left out.
        constexprs: format, layout and tile.
        grid: programs that cover the (M, N) of the table.
        reads: parameters of tensors that are not written.
        batch: which place of the grid depends on M, and how: it is M, rounded up to a multiple of the second number,
            over the third, rounded up.
        halves: parameters of the left and the right half of a tensor's columns, whose rows are twice as long.
        numbers: parameters that are numbers, and their types.
        core: one of the few that together take every path of the compiler; for tests over many targets.
    """

    name: str
    kernel: Kernel
    tensors: Mapping[str, Tensor | None]
    constexprs: Mapping[str, Any]
    grid: tuple[int, ...]
    reads: frozenset[str]
    batch: tuple[int, int, int]
    halves: tuple[str, ...] = ()
    numbers: Mapping[str, ScalarType] = dataclasses.field(default_factory=dict)
    core: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The type of each tensor, dense and aligned, its leading extent known at launch, and of each number."""
        found: dict[str, Any] = {name: tensor and dense(*tensor) for name, tensor in self.tensors.items()}
        found |= self.numbers
        for place, name in enumerate(self.halves):
            tensor = self.tensors[name]
            assert tensor is not None
            found[name] = half(tensor[0], tensor[1], place)
        return found

    def lower(self, target: str) -> Lowered:
        """As `Kernel.lower`. `target` is of the kind, CPU or GPU, that the table was made for."""
        return self.kernel.lower(**self.arguments, **self.constexprs, target=target)

    def compile(self, target: str) -> Compiled:
        """As `Kernel.compile`: with the text of every stage."""
        return self.kernel.compile(**self.arguments, **self.constexprs, target=target)

    def turned(self, across: bool) -> Entry:
        """With programs that go along the rows first, as calls of operators have them on GPUs (`tiles.goes_across`), or
        down the columns, of which there may be any number."""
        if self.constexprs.get("ACROSS", across) is across:
            return self
        constexprs, (place, padding, step) = {**self.constexprs, "ACROSS": across}, self.batch
        batch = (1 - place, padding, step)
        return dataclasses.replace(self, constexprs=constexprs, grid=self.grid[::-1], batch=batch)


def listing(target: str = "host", shape: tuple[int, int] = SHAPE) -> list[Entry]:
    """Every kernel of every operator for a target (CPUs and GPUs have tiles of their own) and an (M, N); names are
    unique."""
    more = [entry for row in MORE if row.fits(shape[1]) for entry in entries(row, target, shape)]
    cpu = not is_gpu(target)
    random = [_as_called(entry, cpu) for entry in _stochastic(shape, cpu)]
    return [*library(target, shape), *more, *random, *_column_sums(shape, cpu)]


def library(target: str = "host", shape: tuple[int, int] = SHAPE) -> list[Entry]:
    """As `listing`, of the operators that stand for the others, `dequantize` and `transpose`."""
    operators = [entry for row in OPERATORS for entry in entries(row, target, shape)]
    cpu = not is_gpu(target)
    return [*operators, *(_as_called(entry, cpu) for entry in _dequantize(shape, cpu)), *_transposes(shape, cpu)]


def entries(row: Row, target: str = "host", shape: tuple[int, int] = SHAPE) -> list[Entry]:
    """Those of one operator."""
    cpu = not is_gpu(target)
    return [_as_called(entry, cpu) for entry in _as_planned(row, shape, target)]


def _as_called(entry: Entry, cpu: bool) -> Entry:
    """In the order that calls have programs in."""
    stays = entry.constexprs.get("TRANSPOSED", False)
    return entry if stays else entry.turned(goes_across(entry.grid, cpu))


def dense(dtype: DType, shape: tuple[int, ...], shapes: str = "trailing") -> TensorType:
    """The type of a dense tensor of this shape in memory that frameworks allocate, which is aligned."""
    page = 4096
    return Array(page, dtype, dtype.name, shape, row_major(shape, dtype), "cpu", False, None).type(shapes=shapes)


def half(dtype: DType, shape: tuple[int, ...], place: int) -> TensorType:
    """The type of the left or the right half of the columns of such a tensor, `shape` that of the half."""
    page, (rows, cols) = 4096, shape
    left = row_major((rows, 2 * cols), dtype)
    pointer = page + place * cols * dtype.bits // 8
    return Array(pointer, dtype, dtype.name, shape, left, "cpu", False, None).type()


def formats_of(row: Row) -> list[Format]:
    """All formats for `quantize`; of FP8 with float32 scales others have the two that activations are in."""
    fused = (FP8_TENSOR_E4M3, FP8_1X128_E4M3)
    return [fmt for fmt in FORMATS.values() if row.whole or fmt.scale is not types.float32 or fmt in fused]


def orders_of(fmt: Format) -> tuple[str, ...]:
    """The orders of scales that matrix products take, and the linear one."""
    if fmt.scale.bits == 8:
        return "linear", "128x4"
    return ("linear", "column_major") if isinstance(fmt.block, int) else ("linear",)


def _summing(entry: Entry, least: int, producer: Producer, target: str) -> Entry:
    """An entry whose programs have several tiles, if it saves sums of columns: see `column_sum.programs_of`."""
    if not any(entry.tensors.get(name) for name in producer.sums):
        return entry
    tile = Tile(entry.constexprs["ROWS"], entry.constexprs["COLS"])
    programs = column_sum.programs_of(tile, least, producer, target)
    if programs == column_sum.Programs(tile):
        return entry
    place, padding, _ = entry.batch
    constexprs = {**entry.constexprs, "ROWS": programs.tile.rows, "TILES": programs.tiles}
    grid = tuple(-(-n * tile.rows // programs.rows) if i == place else n for i, n in enumerate(entry.grid))
    return dataclasses.replace(entry, constexprs=constexprs, grid=grid, batch=(place, padding, programs.rows))


def _as_planned(row: Row, shape: tuple[int, int], target: str) -> Iterator[Entry]:
    """Those of a row, with their programs in the order of rows."""
    cpu, two = not is_gpu(target), row.operator.passes
    first, second = row.passes or (row, row)

    def last(p: outputs.Plan | None) -> Row:
        """What gives the output of a plan: the second of two passes, where these pay."""
        apart = two is not None and two.pay(row.producer, p, shape[1], cpu, target)
        return second if apart else row

    if row.plain:
        giving = last(None)
        yield from (_summing(entry, 1, giving.producer, target) for entry in _plain(giving, shape, cpu))
    else:
        yield from (_amax_only(row, dtype, shape, cpu) for dtype in INPUTS)
    if two is not None and not cpu:
        yield from _of_rows(first, shape)
        if first.producer is not row.producer:  # which finds no amax
            yield _amax_only(second if last(None) is row else row, types.bfloat16, shape, cpu)
    for fmt in formats_of(row):
        for layout in outputs.LAYOUTS:
            for scales in orders_of(fmt):
                p = outputs.plan(fmt, layout, scales)
                giving = last(p)
                if _in_one_launch(giving, p, shape, cpu):
                    for entry in _quantizing(giving, p, f"{fmt.name}-{layout}-{scales}", shape, cpu):
                        yield _summing(entry, p.granule[0], giving.producer, target)


def _plain(row: Row, shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """Entries whose output is not quantized."""
    name, bf16 = row.producer.name, types.bfloat16
    tile = plain_tile(row.producer, shape[1], cpu)
    for dtype in INPUTS:
        out = _out(row, dtype, shape)
        yield _entry(row, f"{name}-{dtype}", dtype, shape, tile, shape, core=dtype is bf16, **out)
    out = _out(row, bf16, shape)
    for word, constants in row.variants.items():
        yield _entry(row, f"{name}-{word}-{bf16}", bf16, shape, tile, shape, **out, **constants)
    yield _entry(row, f"{name}-with_amax-{bf16}", bf16, shape, tile, shape, **out, out_amax=SCALAR)
    yield _amax_only(row, bf16, shape, cpu)


def _amax_only(row: Row, dtype: DType, shape: tuple[int, int], cpu: bool) -> Entry:
    """The amax of what would be the output; that of `quantize` is of its input."""
    tile, core = plain_tile(row.producer, shape[1], cpu), dtype is types.bfloat16
    if not row.plain:
        return _entry(row, f"amax-{dtype}", dtype, shape, tile, shape, core=core, out_amax=SCALAR)
    name = f"{row.producer.name}-amax_only-{dtype}"
    return _entry(row, name, dtype, shape, tile, shape, out_amax=SCALAR, ROUND=dtype)


def _of_rows(row: Row, shape: tuple[int, int]) -> Iterator[Entry]:
    """The first of two passes."""
    tile, name = plain_tile(row.producer, shape[1], False), row.producer.name
    for dtype in INPUTS:
        saved: dict[str, Any] = {**_saved(row, dtype, shape), "ROUND": None if dtype is types.float32 else dtype}
        yield _entry(row, f"{name.removesuffix('_of_rows')}_of_rows-{dtype}", dtype, shape, tile, shape, **saved)


def _out(row: Row, dtype: DType, shape: tuple[int, int]) -> dict[str, Any]:
    """Plain output and what is saved."""
    names = ("out", "right") if row.producer.halves else ("out",)
    tensors = dict.fromkeys(names, (dtype, shape))
    return {**tensors, **_saved(row, dtype, shape), "ROUND": None if dtype is types.float32 else dtype}


def _output(row: Row, shape: tuple[int, int]) -> tuple[int, int]:
    """The shape of what is quantized."""
    return (shape[0], 2 * shape[1]) if row.producer.halves else shape


def _in_one_launch(row: Row, p: outputs.Plan, shape: tuple[int, int], cpu: bool) -> bool:
    """Whether one launch writes all of such an output, and what is saved beside it."""
    producer = row.producer
    fits = p.fits(producer, cpu) and (not producer.halves or halves.fit(p, _output(row, shape), producer, cpu))
    apart = p.saves_apart(producer, cpu) or p.tile(shape[1], producer, cpu).rows > column_sum.MOST_ROWS
    return fits and len(p.parts(producer, cpu)) == 1 and not (producer.saves and apart)


def _quantizing(row: Row, p: outputs.Plan, what: str, shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """Entries of one format, layout and order of scales."""
    producer, bf16 = row.producer, types.bfloat16
    simple = p.rowwise and not p.colwise and p.layout is linear
    output = _output(row, shape)
    about = p.amaxes(output)
    for dtype in INPUTS:
        if dtype is not bf16 and (row.few or not (row.whole or simple)):
            continue
        named = {
            **{name: (types.float32, extents) for name, extents in about.items()},
            **_codes(p, output),
            **_saved(row, dtype, shape),
            "FMT": p.fmt,
            "LAYOUT": p.layout,
            "BACKWARDS": not cpu and (row.again or bool(about)),
            "ROUND": dtype if row.plain and dtype is not types.float32 else None,
        }
        # Of `quantize` each format, direction, scale order and input type at least once; of others two formats.
        core = dtype is bf16 and (simple or (p.rowwise and p.colwise and p.layout is not linear))
        if row.whole:
            core |= p.fmt.name == "mxfp8_e4m3" and simple
        else:
            core &= p.fmt.name in ("nvfp4", "mxfp8_e4m3")
        tile, (rows, cols) = p.tile(shape[1], producer, cpu), p.extent(output)
        if producer.halves:
            tile, cols = halves.tile(tile, shape[1]), cols // 2
        padding = p.extent((1, output[1]))[0]
        name = f"{producer.name}-{what}-{dtype}"
        yield _entry(row, name, dtype, shape, tile, (rows, cols), padding, core, **named)


def _stochastic(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """`quantize` of bfloat16 by random bits, of formats that gradients are in; seed and offset are numbers."""
    random = {"seed": NUMBERS["integer"], "offset": NUMBERS["integer"]}
    for fmt in (NVFP4, MXFP4, MXFP8_E4M3, MXFP8_E5M2):
        for layout in outputs.LAYOUTS:
            for scales in orders_of(fmt):
                p = outputs.plan(fmt, layout, scales)
                for entry in _quantizing(OPERATORS[0], p, f"{fmt.name}-{layout}-{scales}-stochastic", shape, cpu):
                    if entry.name.endswith("-bfloat16"):
                        constexprs = {**entry.constexprs, "RANDOM": ("number", "number")}
                        yield dataclasses.replace(entry, constexprs=constexprs, numbers=random, core=False)


def _entry(
    row: Row,
    name: str,
    dtype: DType,
    shape: tuple[int, int],
    tile: Tile,
    extent: tuple[int, int],
    padding: int = 1,
    core: bool = False,
    **named: Any,
) -> Entry:
    """An entry with operands of a data type; `named` are outputs, and constexprs that are not the default."""
    operator, (m, n) = row.operator, shape
    shapes: dict[str, tuple[int, ...]] = {"tile": (m, n), "row": (n,), "column": (m,), "periodic": (m, row.period)}
    producer = row.producer
    left_out = producer.optional - row.given
    operands: dict[str, Tensor | None] = {
        name: None if name in left_out else (row.dtypes.get(name, dtype), shapes[role])
        for name, role in producer.roles.items()
        if role in shapes
    }
    numbers = {name: NUMBERS[role] for name, role in producer.roles.items() if role in NUMBERS}
    values = {**operands, **dict.fromkeys(numbers, 0)}
    choices = {**operator.choices(values), **row.constants, "ROWS": tile.rows, "COLS": tile.cols}
    chosen = {name: named.pop(name, value) for name, value in choices.items()}
    tensors = {**operands, **operator.absent, **named}
    rows, cols = tile.grid(*extent)
    grid = (rows,) if producer.whole_rows else (rows, cols)
    reads = frozenset((*operands, "amax", "col_amax"))
    parts = ("out", "right") if tensors["right"] is not None else ()
    return Entry(name, operator.kernel, tensors, chosen, grid, reads, (0, padding, tile.rows), parts, numbers, core)


def _saved(row: Row, dtype: DType, shape: tuple[int, int]) -> dict[str, Tensor]:
    """What the producer saves; of sums of columns, those of each program's rows."""
    producer = row.producer
    shapes = {"column": shape[:1], "tile": shape, "column_sum": shape}
    return {
        name: (dtype if name in producer.like and kind != "column_sum" else types.float32, shapes[kind])
        for name, kind in producer.saves.items()
    }


def _column_sums(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """Sums of what programs summed, of 256 rows each; the last ones, of all that there are, in a data type."""
    tile = column_sum.tile_of(cpu)
    for dtype in (None, *INPUTS):
        result = shape if dtype is None else shape[1:]
        tensors: dict[str, Tensor | None] = {"x": (types.float32, shape), "y": (dtype or types.float32, result)}
        constexprs = {"LAST": dtype is not None, **_extents(tile)}
        name = "column_sum" if dtype is None else f"column_sum-last-{dtype}"
        grid = tile.grid(shape[0] if dtype is None else 1, shape[1])
        batch = (0, 1, tile.rows)
        yield Entry(name, kernels.column_sum_kernel, tensors, constexprs, grid, frozenset(("x",)), batch)


def _dequantize(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    for fmt in FORMATS.values():
        for colwise in (False, True):
            rows, cols = data_shape(shape, fmt, colwise)
            transposed = colwise and fmt.transposed
            axis = 0 if colwise and not transposed else 1
            tile = dequantize_tile(cols, fmt, axis, transposed, cpu)
            for dtype in INPUTS:
                of_data, of_scale = (known or "trailing" for known in specialization(fmt, colwise, linear))
                tensors = {
                    "data": (fmt.element, (rows, cols), of_data),
                    "scale": (fmt.scale, scale_storage(shape, fmt, colwise, linear)[0], of_scale),
                    "amax": _tensor_amax(fmt),
                    "y": (dtype, shape),
                }
                constexprs = {
                    **blocks_of(fmt, axis, tile),
                    "AXIS": axis,
                    "TRANSPOSED": transposed,
                    "TRANSFORM": None,
                    "ACROSS": False,
                    **_extents(tile),
                }
                name = f"dequantize-{fmt.name}-{'colwise' if colwise else 'rowwise'}-{dtype}"
                core = dtype is types.bfloat16 and (not colwise or fmt.name in ("nvfp4", "mxfp8_e4m3"))
                reads = frozenset(("data", "scale", "amax"))
                grid = tile.grid(rows, cols)
                batch = (1, 1, tile.cols) if transposed else (0, 1, tile.rows)
                yield Entry(name, kernels.dequantize_kernel, tensors, constexprs, grid, reads, batch, core=core)


def _transposes(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """Of each size of elements: an element at a time, and on GPUs in words of 32 bits where the shape has them."""
    m, n = shape
    reads = frozenset(("x",))
    for dtype in MOVED.values():
        each = 32 // dtype.bits
        if not cpu and m % each == 0 and n % each == 0:
            tile = transpose_tile(dtype.bits, True, cpu)
            rows, cols = m // each, n // each
            words: dict[str, Tensor | None] = {
                "x": (types.int32, (rows, each, cols)),
                "y": (types.int32, (cols, each, rows), "dynamic"),
            }
            constexprs = {"BITS": dtype.bits, **_extents(tile)}
            grid = tile.grid(rows, cols)
            batch = (0, 1, tile.rows * each)
            yield Entry(f"transpose-{dtype}", kernels.transpose_words_kernel, words, constexprs, grid, reads, batch)
        if cpu or each > 1:
            tile = transpose_tile(dtype.bits, False, cpu)
            elements: dict[str, Tensor | None] = {"x": (dtype, (m, n)), "y": (dtype, (n, m), "dynamic")}
            name = f"transpose-{dtype}" if cpu else f"transpose-any-{dtype}"
            batch = (0, 1, tile.rows)
            yield Entry(name, kernels.transpose_kernel, elements, _extents(tile), tile.grid(m, n), reads, batch)


def _tensor_amax(fmt: Format) -> Tensor | None:
    return SCALAR if fmt.tensor_scale else None


def _codes(p: outputs.Plan, shape: tuple[int, int]) -> dict[str, Tensor | None]:
    named: dict[str, Tensor | None] = dict.fromkeys(("row_data", "row_scale", "col_data", "col_scale"))
    for prefix, colwise, wanted in (("row", False, p.rowwise), ("col", True, p.colwise)):
        if wanted:
            of_data, of_scale = (known or "trailing" for known in specialization(p.fmt, colwise, p.layout))
            named[f"{prefix}_data"] = (p.fmt.element, data_shape(shape, p.fmt, colwise), of_data)
            named[f"{prefix}_scale"] = (p.fmt.scale, scale_storage(shape, p.fmt, colwise, p.layout)[0], of_scale)
    return named


def _extents(tile: Tile) -> dict[str, int]:
    return {"ROWS": tile.rows, "COLS": tile.cols}
