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
from ..formats import FORMATS, Format
from ..jit import Kernel
from ..language import linear
from ..types import DType, TensorType
from . import kernels, outputs
from .scaled_tensor import data_shape, scale_shape, specialization
from .tiles import Tile, dequantize_tile, elementwise_tile, row_tile

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
        core: one of the few that together take every path of the compiler; for tests over many targets.
    """

    name: str
    kernel: Kernel
    tensors: Mapping[str, Tensor | None]
    constexprs: Mapping[str, Any]
    grid: tuple[int, ...]
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


def library(target: str = "host", shape: tuple[int, int] = SHAPE) -> list[Entry]:
    """Every entry for a target (CPUs and GPUs have tiles of their own) and an (M, N); names are unique."""
    cpu = target.startswith("host")
    return [*_amax(shape, cpu), *_quantize(shape, cpu), *_dequantize(shape, cpu), *_rms_norm(shape, cpu)]


def dense(dtype: DType, shape: tuple[int, ...], shapes: str = "trailing") -> TensorType:
    """The type of a dense tensor of this shape in memory that frameworks allocate, which is aligned."""
    page = 4096
    return Array(page, dtype, dtype.name, shape, row_major(shape, dtype), "cpu", False, None).type(shapes=shapes)


def _amax(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    tile = elementwise_tile(shape[1], (1, 32), False, False, cpu)
    for dtype in INPUTS:
        tensors = {"x": (dtype, shape), "amax": SCALAR}
        core = dtype is types.bfloat16
        yield Entry(f"amax-{dtype}", kernels.amax_kernel, tensors, _extents(tile), tile.grid(*shape), core)


def _quantize(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    for fmt in FORMATS.values():
        for layout in outputs.LAYOUTS:
            for scales in outputs.SCALE_LAYOUTS:
                p = outputs.plan(fmt, layout, scales)
                tile = p.tile(shape[1], cpu)
                constexprs = {"FMT": fmt, "LAYOUT": p.layout, **_extents(tile)}
                grid = tile.grid(*p.extent(shape))
                for dtype in INPUTS:
                    tensors = {"x": (dtype, shape), "amax": _tensor_amax(fmt), **_codes(p, shape)}
                    name = f"quantize-{fmt.name}-{layout}-{scales}-{dtype}"
                    # Each format, direction, scale order and input type at least once.
                    core = dtype is types.bfloat16 and (layout, scales) in (("rowwise", "linear"), ("both", "128x4"))
                    core |= fmt.name == "mxfp8_e4m3" and (layout, scales) == ("rowwise", "linear")
                    yield Entry(name, kernels.quantize_kernel, tensors, constexprs, grid, core)


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
                    "scale": (fmt.scale, scale_shape(shape, fmt, colwise, linear), of_scale),
                    "amax": _tensor_amax(fmt),
                    "y": (dtype, shape),
                }
                constexprs = {"FMT": fmt, "AXIS": axis, "TRANSPOSED": transposed, **_extents(tile)}
                name = f"dequantize-{fmt.name}-{'colwise' if colwise else 'rowwise'}-{dtype}"
                core = dtype is types.bfloat16 and (not colwise or fmt.name in ("nvfp4", "mxfp8_e4m3"))
                yield Entry(name, kernels.dequantize_kernel, tensors, constexprs, tile.grid(rows, cols), core)


def _rms_norm(shape: tuple[int, int], cpu: bool) -> Iterator[Entry]:
    m, n = shape
    absent = dict.fromkeys(("y", "rsigma", "y_amax", "amax", "row_data", "row_scale", "col_data", "col_scale"))
    rsigma = (types.float32, (m,))

    def entry(what: str, dtype: DType, named: Mapping[str, Any], core: bool = False) -> Entry:
        given = {"x": (dtype, shape), "gamma": (dtype, (n,)), **absent, **named}
        tile = given.pop("tile", row_tile(n, (1, 1), False, cpu))
        grid = (-(-given.pop("rows", m) // tile.rows),)
        choices = {"EPS": 1e-5, "ZERO_CENTERED": False, "FMT": None, "LAYOUT": linear, **_extents(tile)}
        choices["ROUND"] = dtype is not types.float32
        choices |= {name: given.pop(name) for name in choices if name in given}
        return Entry(f"rms_norm-{what}{dtype}", kernels.rms_norm_kernel, given, choices, grid, core)

    for dtype in INPUTS:
        yield entry("", dtype, {"y": (dtype, shape), "rsigma": rsigma}, dtype is types.bfloat16)
    bf16 = types.bfloat16
    plain = {"y": (bf16, shape), "rsigma": rsigma}
    yield entry("zero_centered-", bf16, {**plain, "ZERO_CENTERED": True})
    yield entry("with_amax-", bf16, {**plain, "y_amax": SCALAR})
    yield entry("amax_only-", bf16, {"y_amax": SCALAR})
    for fmt in FORMATS.values():
        for layout in outputs.LAYOUTS:
            for scales in outputs.SCALE_LAYOUTS:
                p = outputs.plan(fmt, layout, scales)
                tile = row_tile(max(n, p.extent(shape)[1]), p.granule, p.colwise, cpu)
                for dtype in INPUTS:
                    if dtype is not bf16 and (layout, scales) != ("rowwise", "linear"):
                        continue
                    named = {
                        "rsigma": rsigma,
                        "amax": _tensor_amax(fmt),
                        **_codes(p, shape),
                        "FMT": fmt,
                        "LAYOUT": p.layout,
                        "tile": tile,
                        "rows": p.extent(shape)[0],
                    }
                    core = dtype is bf16 and fmt.name in ("nvfp4", "mxfp8_e4m3") and layout != "colwise"
                    core &= (scales == "128x4") == (layout == "both")
                    yield entry(f"{fmt.name}-{layout}-{scales}-", dtype, named, core)


def _tensor_amax(fmt: Format) -> Tensor | None:
    return SCALAR if fmt.tensor_scale else None


def _codes(p: outputs.Plan, shape: tuple[int, int]) -> dict[str, Tensor | None]:
    named: dict[str, Tensor | None] = dict.fromkeys(("row_data", "row_scale", "col_data", "col_scale"))
    for prefix, colwise, wanted in (("row", False, p.rowwise), ("col", True, p.colwise)):
        if wanted:
            of_data, of_scale = (known or "trailing" for known in specialization(p.fmt, colwise, p.layout))
            named[f"{prefix}_data"] = (p.fmt.element, data_shape(shape, p.fmt, colwise), of_data)
            named[f"{prefix}_scale"] = (p.fmt.scale, scale_shape(shape, p.fmt, colwise, p.layout), of_scale)
    return named


def _extents(tile: Tile) -> dict[str, int]:
    return {"ROWS": tile.rows, "COLS": tile.cols}
