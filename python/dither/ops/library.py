"""The kernels of the operator library by name, each specialized as a call of its operator specializes it.

One table for those who want all of them: `python -m dither compile --library`, and tests that assemble each for
each target or compare devices with each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from .. import types
from ..arrays import Array, row_major
from ..compiled import Compiled, Lowered
from ..devices import is_gpu
from ..formats import FORMATS, FP8_1X128_E4M3, FP8_TENSOR_E4M3, Format
from ..jit import Kernel
from ..language import linear
from ..types import DType, TensorType
from . import kernels, outputs
from .dequantize import blocks_of
from .gated import swiglu
from .norms import RMS_NORM, layer_norm
from .operator import Operator, plain_tile
from .quantize import QUANTIZE
from .scaled_tensor import data_shape, scale_storage, specialization
from .tiles import Tile, dequantize_tile, transpose_tile
from .transpose import MOVED

#: The (M, N) that entries are for. Kernels know N, never M.
SHAPE = (2048, 1024)
INPUTS = (types.float32, types.bfloat16, types.float16)

#: Data type, shape, and the class of shapes that calls of operators ask for.
Tensor = tuple[DType, tuple[int, ...]] | tuple[DType, tuple[int, ...], str]
SCALAR: Tensor = (types.float32, ())


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kernel of the library with its arguments for one (M, N).

    Attributes:
        name: operator and choices, as in "quantize-nvfp4-rowwise-128x4-bfloat16"; a good file name.
        kernel: the function over tiles.
        tensors: each tensor by parameter; None for what is left out.
        constexprs: format, layout and tile.
        grid: programs that cover the (M, N) of the table.
        reads: parameters of tensors that are not written.
        core: one of the few that together take every path of the compiler; for tests over many targets.
    """

    name: str
    kernel: Kernel
    tensors: Mapping[str, Tensor | None]
    constexprs: Mapping[str, Any]
    grid: tuple[int, ...]
    reads: frozenset[str]
    core: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The type of each tensor, dense and aligned; its leading extent is known at launch."""
        return {name: None if tensor is None else dense(*tensor) for name, tensor in self.tensors.items()}

    def lower(self, target: str) -> Lowered:
        """As `Kernel.lower`. `target` is of the kind, CPU or GPU, that the table was made for."""
        return self.kernel.lower(**self.arguments, **self.constexprs, target=target)

    def compile(self, target: str) -> Compiled:
        """As `Kernel.compile`: with the text of every stage."""
        return self.kernel.compile(**self.arguments, **self.constexprs, target=target)


@dataclasses.dataclass(frozen=True)
class Row:
    """An operator of the library, and the kernels of it that are worth having ahead of time.

    Attributes:
        operator: the producer and its kernel.
        constants: its constexprs, as calls have them by default.
        variants: other choices of them, by a word for names; plain output in bfloat16.
        plain: whether calls ask for plain output.
        whole: whether there is each layout and order of scales for every data type, and not for bfloat16 alone.
    """

    operator: Operator
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    plain: bool = True
    whole: bool = False


#: What quantizes. A new operator is a producer and a row here.
OPERATORS = (
    Row(QUANTIZE, plain=False, whole=True),
    Row(
        RMS_NORM,
        {"eps": 1e-5, "zero_centered": False},
        {"zero_centered": {"zero_centered": True}},
    ),
    Row(
        layer_norm.operator,
        {"eps": 1e-5, "zero_centered_gamma": False},
        {"zero_centered": {"zero_centered_gamma": True}},
    ),
    Row(swiglu.operator),
)


def library(target: str = "host", shape: tuple[int, int] = SHAPE) -> list[Entry]:
    """Every entry for a target (CPUs and GPUs have tiles of their own) and an (M, N); names are unique."""
    operators = [entry for row in OPERATORS for entry in entries(row, target, shape)]
    cpu = not is_gpu(target)
    return [*operators, *_dequantize(shape, cpu), *_transposes(shape, cpu)]


def entries(row: Row, target: str = "host", shape: tuple[int, int] = SHAPE) -> list[Entry]:
    """Those of one operator."""
    return list(_operator(row, shape, not is_gpu(target)))


def dense(dtype: DType, shape: tuple[int, ...], shapes: str = "trailing") -> TensorType:
    """The type of a dense tensor of this shape in memory that frameworks allocate, which is aligned."""
    page = 4096
    return Array(page, dtype, dtype.name, shape, row_major(shape, dtype), "cpu", False, None).type(shapes=shapes)


def formats_of(row: Row) -> list[Format]:
    """All formats for `quantize`; of FP8 with float32 scales others have the two that activations are in."""
    fused = (FP8_TENSOR_E4M3, FP8_1X128_E4M3)
    return [fmt for fmt in FORMATS.values() if row.whole or fmt.scale is not types.float32 or fmt in fused]


def orders_of(fmt: Format) -> tuple[str, ...]:
    """The orders of scales that matrix products take, and the linear one."""
    if fmt.scale.bits == 8:
        return "linear", "128x4"
    return ("linear", "column_major") if isinstance(fmt.block, int) else ("linear",)


def _operator(row: Row, shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    operator, name = row.operator, row.operator.producer.name
    bf16 = types.bfloat16
    tile = plain_tile(operator.producer, shape[1], cpu)
    if not row.plain:
        for dtype in INPUTS:
            yield _entry(row, f"amax-{dtype}", dtype, shape, tile, shape, dtype is bf16, out_amax=SCALAR)
    else:
        saved = _saved(row, shape)
        for dtype in INPUTS:
            out = {"out": (dtype, shape), **saved, "ROUND": None if dtype is types.float32 else dtype}
            yield _entry(row, f"{name}-{dtype}", dtype, shape, tile, shape, dtype is bf16, **out)
        out = {"out": (bf16, shape), **saved, "ROUND": bf16}
        for word, constants in row.variants.items():
            yield _entry(row, f"{name}-{word}-{bf16}", bf16, shape, tile, shape, False, **out, **constants)
        yield _entry(row, f"{name}-with_amax-{bf16}", bf16, shape, tile, shape, False, **out, out_amax=SCALAR)
        yield _entry(row, f"{name}-amax_only-{bf16}", bf16, shape, tile, shape, out_amax=SCALAR, ROUND=bf16)
    for fmt in formats_of(row):
        for layout in outputs.LAYOUTS:
            for scales in orders_of(fmt):
                p = outputs.plan(fmt, layout, scales)
                if len(p.parts(row.operator.producer.whole_rows, cpu)) == 1:
                    yield from _quantizing(row, p, f"{fmt.name}-{layout}-{scales}", shape, cpu)


def _quantizing(row: Row, p: outputs.Plan, what: str, shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """Entries of one format, layout and order of scales."""
    producer, bf16 = row.operator.producer, types.bfloat16
    simple = p.rowwise and not p.colwise and p.layout is linear
    about = p.amaxes(shape)
    for dtype in INPUTS:
        if not row.whole and not simple and dtype is not bf16:
            continue
        named = {
            **{name: (types.float32, extents) for name, extents in about.items()},
            **_codes(p, shape),
            **_saved(row, shape),
            "FMT": p.fmt,
            "LAYOUT": p.layout,
            "ROUND": dtype if row.plain and dtype is not types.float32 else None,
        }
        # Of `quantize` each format, direction, scale order and input type at least once; of others two formats.
        core = dtype is bf16 and (simple or (p.rowwise and p.colwise and p.layout is not linear))
        if row.whole:
            core |= p.fmt.name == "mxfp8_e4m3" and simple
        else:
            core &= p.fmt.name in ("nvfp4", "mxfp8_e4m3")
        tile = p.tile(shape[1], producer, cpu)
        yield _entry(row, f"{producer.name}-{what}-{dtype}", dtype, shape, tile, p.extent(shape), core, **named)


def _entry(
    row: Row,
    name: str,
    dtype: DType,
    shape: tuple[int, int],
    tile: Tile,
    extent: tuple[int, int],
    core: bool = False,
    **named: Any,
) -> Entry:
    """An entry with operands of a data type; `named` are outputs, and constexprs that are not the default."""
    operator, (m, n) = row.operator, shape
    shapes: dict[str, tuple[int, ...]] = {"tile": (m, n), "row": (n,), "column": (m,), "scalar": ()}
    producer = operator.producer
    # Tiles are there, and what else has no default.
    needed = [name for name, role in producer.roles.items() if role == "tile" or name not in producer.optional]
    operands: dict[str, Tensor | None] = {
        name: (dtype, shapes[role]) if name in needed else None
        for name, role in producer.roles.items()
        if role in shapes
    }
    choices = {**operator.choices(operands), **row.constants, "ROWS": tile.rows, "COLS": tile.cols}
    chosen = {name: named.pop(name, value) for name, value in choices.items()}
    tensors = {**operands, **operator.absent, **named}
    rows, cols = tile.grid(*extent)
    grid = (rows,) if producer.whole_rows else (rows, cols)
    return Entry(name, operator.kernel, tensors, chosen, grid, frozenset((*operands, "amax", "col_amax")), core)


def _saved(row: Row, shape: tuple[int, int]) -> dict[str, Tensor]:
    """What the producer saves; of sums of columns, those of each program's rows."""
    shapes = {"column": shape[:1], "tile": shape, "column_sum": shape}
    return {name: (types.float32, shapes[kind]) for name, kind in row.operator.producer.saves.items()}


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
                    **_extents(tile),
                }
                name = f"dequantize-{fmt.name}-{'colwise' if colwise else 'rowwise'}-{dtype}"
                core = dtype is types.bfloat16 and (not colwise or fmt.name in ("nvfp4", "mxfp8_e4m3"))
                reads = frozenset(("data", "scale", "amax"))
                grid = tile.grid(rows, cols)
                yield Entry(name, kernels.dequantize_kernel, tensors, constexprs, grid, reads, core)


def _transposes(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    """Of each size of elements: in words of 32 bits where the shape has them, and an element at a time."""
    m, n = shape
    reads = frozenset(("x",))
    for dtype in MOVED.values():
        each = 32 // dtype.bits
        if m % each == 0 and n % each == 0:
            tile = transpose_tile(dtype.bits, True, cpu)
            rows, cols = m // each, n // each
            words: dict[str, Tensor | None] = {
                "x": (types.int32, (rows, each, cols)),
                "y": (types.int32, (cols, each, rows), "dynamic"),
            }
            constexprs = {"BITS": dtype.bits, **_extents(tile)}
            grid = tile.grid(rows, cols)
            yield Entry(f"transpose-{dtype}", kernels.transpose_words_kernel, words, constexprs, grid, reads)
        if each > 1:
            tile = transpose_tile(dtype.bits, False, cpu)
            elements: dict[str, Tensor | None] = {"x": (dtype, (m, n)), "y": (dtype, (n, m), "dynamic")}
            name = f"transpose-any-{dtype}"
            yield Entry(name, kernels.transpose_kernel, elements, _extents(tile), tile.grid(m, n), reads)


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
