"""Fused operators on a CPU: dither beside a copy of as many bytes, torch.compile and JAX.

Rows of `benchmarks.cpu --fusions`. The first output of a framework is compared with dither's first, but where it is
of random numbers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.memcpy import memcpy
from benchmarks.operators import matrix
from benchmarks.peers import jax_fusions, torch_fusions
from benchmarks.row import Row

COLUMNS = ("memcpy", "dither", torch_fusions.NAME, jax_fusions.NAME)


@dataclass(frozen=True)
class Fusion:
    """A call of an operator.

    Attributes:
        name: what the row is called.
        operator: the function of dither.
        operands: tensors of `Operands`, by name. An operand that a call takes twice has a name that ends in "2", and
            frameworks take it once.
        producer: its function in `peers.torch_fusions` and `peers.jax_fusions`.
        sink: how these quantize.
        options: of the call of dither.
        random: whether results are of random numbers, which each framework has its own of.
    """

    name: str
    operator: str
    operands: str
    producer: str
    sink: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    random: bool = False


ROWS = {"format": "mxfp8_e4m3"}
BOTH = {**ROWS, "layout": "both"}
ROW_SCALES = {"format": "fp8_row_e4m3"}
FP8 = {"format": "fp8_tensor_e4m3", "encode_scale": 16.0}
DROPPED = {"p": torch_fusions.P, "dropout_seed": 1}
FUSIONS = (
    Fusion("bias gradient + MXFP8", "quantize_dbias", "x", "dbias", "rows", ROWS),
    Fusion("bias gradient + MXFP8 row+col", "quantize_dbias", "x", "dbias", "both", BOTH),
    Fusion("GELU + MXFP8", "gelu", "x", "gelu", "rows", ROWS),
    Fusion("SiLU + MXFP8", "silu", "x", "silu", "rows", ROWS),
    Fusion("SiLU + FP8 rows", "silu", "x", "silu", "row scales", ROW_SCALES),
    Fusion("dGELU + MXFP8", "dgelu", "grad x", "dgelu", "rows", ROWS),
    Fusion("dGELU, bias + FP8 delayed", "dbias_dgelu", "grad x", "dbias_dgelu", "fp8", FP8),
    Fusion("SwiGLU + MXFP8", "swiglu", "x", "swiglu", "rows", ROWS),
    Fusion("SwiGLU + MXFP8 row+col", "swiglu", "x", "swiglu", "both", BOTH),
    Fusion("dSwiGLU + MXFP8", "dswiglu", "half x", "dswiglu", "rows", ROWS),
    Fusion("dSwiGLU + MXFP8 row+col", "dswiglu", "half x", "dswiglu", "both", BOTH),
    Fusion("RMSNorm + MXFP8", "rms_norm", "x gamma", "rms_norm", "rows", {**ROWS, "eps": torch_fusions.EPS}),
    Fusion(
        "RMSNorm + FP8 rows", "rms_norm", "x gamma", "rms_norm", "row scales", {**ROW_SCALES, "eps": torch_fusions.EPS}
    ),
    Fusion("LayerNorm + MXFP8", "layer_norm", "x gamma gamma2", "layer_norm", "rows", ROWS),
    Fusion("LayerNorm + MXFP8 row+col", "layer_norm", "x gamma gamma2", "layer_norm", "both", BOTH),
    Fusion("x + residual, RMSNorm + MXFP8", "add_rms_norm", "x grad gamma", "add_rms_norm", "rows", ROWS),
    Fusion("RMSNorm backward", "rms_norm_backward", "grad x rsigma gamma", "rms_norm_backward"),
    Fusion("RMSNorm backward + MXFP8", "rms_norm_backward", "grad x rsigma gamma", "rms_norm_backward", "rows", ROWS),
    Fusion("LayerNorm backward", "layer_norm_backward", "grad x mean rsigma gamma", "layer_norm_backward"),
    Fusion(
        "LayerNorm backward + MXFP8",
        "layer_norm_backward",
        "grad x mean rsigma gamma",
        "layer_norm_backward",
        "rows",
        ROWS,
    ),
    Fusion("softmax + MXFP8", "softmax", "x", "softmax", "rows", ROWS),
    Fusion("dsoftmax + MXFP8", "dsoftmax", "grad x", "dsoftmax", "rows", ROWS),
    Fusion("RoPE + MXFP8", "rope", "x cos sin", "rope", "rows", ROWS),
    Fusion("dRoPE + MXFP8", "drope", "x cos sin", "drope", "rows", ROWS),
    Fusion(
        "residual + dropout + MXFP8", "add_dropout", "x grad", "add_dropout", "rows", {**ROWS, **DROPPED}, random=True
    ),
    Fusion(
        "residual + dropout + MXFP8 row+col",
        "add_dropout",
        "x grad",
        "add_dropout",
        "both",
        {**BOTH, **DROPPED},
        random=True,
    ),
    Fusion("ddropout + MXFP8", "ddropout", "grad", "ddropout", "rows", {**ROWS, **DROPPED}, random=True),
    Fusion("8 groups + MXFP8 row+col", "grouped_quantize", "x", "grouped", "both", BOTH),
    Fusion("cast, transpose + FP8 delayed", "cast_transpose", "x", "identity", "fp8 transposed", FP8),
)


class Operands:
    """The tensors of rows of one data type, by name."""

    def __init__(self, dtype: str, size: int, cols: int) -> None:
        self.x, self.grad = matrix(dtype, size, cols), matrix(dtype, size, cols, seed=1)
        rows, kind = len(self.x), self.x.dtype
        rng = np.random.default_rng(2)
        self.half = np.ascontiguousarray(self.grad[:, : cols // 2])
        self.gamma = self.gamma2 = rng.uniform(0.5, 1.5, cols).astype(kind)
        self.mean = rng.standard_normal(rows).astype(np.float32)
        self.rsigma = rng.uniform(0.5, 1.5, rows).astype(np.float32)
        angles = rng.uniform(-np.pi, np.pi, (rows, 64)).astype(np.float32)
        self.cos, self.sin = np.cos(angles), np.sin(angles)
        # Of eight groups, all but the last of no, one, two, .. parts of 32 rows of all.
        part = max(rows // 32 // 32, 1) * 32
        sizes = [min(i * part, max(rows - i * (i - 1) // 2 * part, 0)) for i in range(7)]
        self.sizes = [*sizes, rows - sum(sizes)]


def leaves(result: Any) -> Iterator[np.ndarray]:
    """The arrays of what a call gave: codes and scales of quantized tensors."""
    if isinstance(result, tuple):
        for one in result:
            yield from leaves(one)
    elif hasattr(result, "rowwise"):
        yield from leaves((result.rowwise, result.colwise))
    elif hasattr(result, "scale_inv"):
        yield from (result.data, result.scale_inv)
    elif result is not None:
        yield np.asarray(result)


def measure(fusion: Fusion, tensors: Operands, dtype: str, threads: int, repetitions: int) -> Row:
    """Checks and times an operator, dither and the frameworks in turns with a copy; each operand and result counts
    once. dither writes into results that are there."""
    dither = importlib.import_module("dither")
    importlib.import_module("dither._dither").set_num_threads(threads)
    operator = getattr(dither, fusion.operator)
    names = fusion.operands.split()
    given = [getattr(tensors, name) for name in names]
    options = dict(fusion.options)
    if fusion.operator == "grouped_quantize":
        options["group_sizes"] = np.array(tensors.sizes, np.int32)
    result = operator(*given, **options)
    distinct = {name: array for name, array in zip(names, given, strict=True) if not name.endswith("2")}
    moved = sum(array.nbytes for array in (*distinct.values(), *leaves(result)))
    row = Row(fusion.name, dtype, *tensors.x.shape, moved)
    calls: dict[str, Callable[[], object]] = {
        "memcpy": memcpy(tensors.x, row.bytes, threads),
        "dither": lambda: operator(*given, **options, out=result),
    }
    for peer, module in ((torch_fusions, "torch"), (jax_fusions, "jax")):
        if getattr(peer, module) is None:
            row.missing[peer.NAME] = f"{module} is not installed"
            continue
        calls[peer.NAME], found = peer.prepare(
            fusion.producer, fusion.sink, list(distinct.values()), tensors.sizes, threads
        )
        differ = float((found != next(leaves(result)).view(np.uint8)).mean())
        if differ and not fusion.random:
            row.differs[peer.NAME] = {"bytes": differ}
    row.seconds = timing.interleaved(calls, repetitions)
    return row


def rows(dtypes: list[str], size: int, cols: int, threads: int, repetitions: int, only: list[str] | None) -> list[Row]:
    """Of the operators whose name contains one of `only`."""
    chosen = [f for f in FUSIONS if only is None or any(text.lower() in f.name.lower() for text in only)]
    found = []
    for dtype in dtypes:
        tensors = Operands(dtype, size, cols)
        for fusion in chosen:
            found.append(measure(fusion, tensors, dtype, threads, repetitions))
            print(f"  measured {fusion.name}, {dtype}", file=sys.stderr, flush=True)
    return found
