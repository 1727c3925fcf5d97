"""Fused operators on a CPU: dither beside a copy of as many bytes, and torch.compile.

Rows of `benchmarks.cpu --fusions`. The first output of torch is compared with dither's first.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.memcpy import memcpy
from benchmarks.operators import matrix
from benchmarks.peers import torch_fusions, torch_peer
from benchmarks.row import Row


@dataclass(frozen=True)
class Fusion:
    """A call of an operator. `operands` are tensors of `Operands` by name; `torch` is its function in
    `peers.torch_fusions`."""

    name: str
    operator: str
    operands: str
    torch: str
    options: dict[str, Any] = field(default_factory=dict)


MXFP8 = {"format": "mxfp8_e4m3"}
FUSIONS = (
    Fusion("GELU + MXFP8", "gelu", "x", "gelu_mxfp8", MXFP8),
    Fusion("SwiGLU + MXFP8 row+col", "swiglu", "x", "swiglu_mxfp8", {**MXFP8, "layout": "both"}),
    Fusion("dSwiGLU + MXFP8", "dswiglu", "half x", "dswiglu_mxfp8", MXFP8),
    Fusion(
        "dGELU, bias + FP8 delayed",
        "dbias_dgelu",
        "grad x",
        "dbias_dgelu_fp8",
        {"format": "fp8_tensor_e4m3", "encode_scale": 16.0},
    ),
    Fusion("LayerNorm + MXFP8", "layer_norm", "x gamma gamma", "layer_norm_mxfp8", MXFP8),
    Fusion("x + residual, RMSNorm + MXFP8", "add_rms_norm", "x grad gamma", "add_rms_norm_mxfp8", MXFP8),
    Fusion("RMSNorm backward", "rms_norm_backward", "grad x rsigma gamma", "rms_norm_backward"),
    Fusion("RMSNorm backward + MXFP8", "rms_norm_backward", "grad x rsigma gamma", "rms_norm_backward_mxfp8", MXFP8),
    Fusion("LayerNorm backward", "layer_norm_backward", "grad x mean rsigma gamma", "layer_norm_backward"),
)


class Operands:
    """The tensors of rows of one data type, by name."""

    def __init__(self, dtype: str, size: int, cols: int) -> None:
        self.x, self.grad = matrix(dtype, size, cols), matrix(dtype, size, cols, seed=1)
        rows, kind = len(self.x), self.x.dtype
        rng = np.random.default_rng(2)
        self.half = np.ascontiguousarray(self.grad[:, : cols // 2])
        self.gamma = rng.uniform(0.5, 1.5, cols).astype(kind)
        self.mean = rng.standard_normal(rows).astype(np.float32)
        self.rsigma = rng.uniform(0.5, 1.5, rows).astype(np.float32)


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
    """Checks and times an operator, dither and torch in turns with a copy; each operand and result counts once."""
    dither = importlib.import_module("dither")
    importlib.import_module("dither._dither").set_num_threads(threads)
    operator = getattr(dither, fusion.operator)
    names = fusion.operands.split()
    given = [getattr(tensors, name) for name in names]
    result = operator(*given, **fusion.options)
    named = {name: getattr(tensors, name).nbytes for name in names}
    written = sum(array.nbytes for array in leaves(result))
    row = Row(fusion.name, dtype, *tensors.x.shape, sum(named.values()) + written)
    calls: dict[str, Callable[[], object]] = {
        "memcpy": memcpy(tensors.x, row.bytes, threads),
        "dither": lambda: operator(*given, **fusion.options),
    }
    if torch_fusions.torch is None:
        row.missing["torch.compile"] = "torch is not installed"
    else:
        torch = torch_fusions.torch
        torch.set_num_threads(threads)
        torch._dynamo.reset()
        function = torch_fusions.FUNCTIONS[fusion.torch]
        compiled = torch.compile(function, fullgraph=True, dynamic=False, options={"emulate_precision_casts": True})
        of_torch = [torch_peer._tensor(array) for array in _distinct(names, given)]
        found = compiled(*of_torch)[0].view(torch.uint8).numpy()
        differ = float((found != next(leaves(result)).view(np.uint8)).mean())
        if differ:
            row.differs["torch.compile"] = {"bytes": differ}
        calls["torch.compile"] = lambda: compiled(*of_torch)
    row.seconds = timing.interleaved(calls, repetitions)
    return row


def _distinct(names: list[str], given: list[np.ndarray]) -> list[np.ndarray]:
    """Each operand once: torch's functions take one that is given twice once."""
    return list(dict(zip(names, given, strict=True)).values())


def rows(dtypes: list[str], size: int, cols: int, threads: int, repetitions: int, only: list[str] | None) -> list[Row]:
    """Of the operators whose name contains one of `only`."""
    chosen = [f for f in FUSIONS if only is None or any(text.lower() in f.name.lower() for text in only)]
    found = []
    for dtype in dtypes:
        tensors = Operands(dtype, size, cols)
        found += [measure(fusion, tensors, dtype, threads, repetitions) for fusion in chosen]
    return found
