"""Scaling modes on a CPU: dither beside a copy of as many bytes, and torch.compile where torch has the mode.

Rows of `benchmarks.cpu --modes`. There are no kernels by hand for these; what torch gives is compared with dither's
codes first.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import limit, timing
from benchmarks.operators import DTYPES, matrix
from benchmarks.row import Row

try:
    import torch
except ImportError:  # pragma: no cover
    torch = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Mode:
    """A call of `dither.quantize`; `torch` is what a user of torch would write for it, giving codes."""

    name: str
    format: str
    changes: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    torch: Callable[[Any], Any] | None = None


def _fp8(x: Any, amax: Any) -> Any:
    wide = x.float()
    scale = 448.0 / amax
    return (wide * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


def _tensor(x: Any) -> Any:
    return _fp8(x, x.abs().amax().float())


def _rows(x: Any) -> Any:
    return _fp8(x, x.abs().amax(1, keepdim=True).float())


def _blocks(x: Any) -> Any:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 128, 128)
    scale = (448.0 / blocks.abs().amax(2, keepdim=True)).view(torch.int32) & -0x800000
    return (blocks * scale.view(torch.float32)).clamp(-448.0, 448.0).to(torch.float8_e4m3fn).view(rows, cols)


def _given(x: Any) -> Any:
    return (x.float() * 16.0).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


STOCHASTIC = {"rounding": "stochastic", "seed": 1}
MODES = (
    Mode("FP8 tensor, current", "fp8_tensor_e4m3", torch=_tensor),
    Mode("FP8 tensor, delayed", "fp8_tensor_e4m3", options={"encode_scale": 16.0}, torch=_given),
    Mode("FP8 tensor row+col", "fp8_tensor_e4m3", options={"layout": "both"}),
    Mode("FP8 rows", "fp8_row_e4m3", torch=_rows),
    Mode("FP8 1x128", "fp8_1x128_e4m3", torch=_blocks),
    Mode("FP8 128x128", "fp8_128x128_e4m3"),
    Mode("MXFP8 32x32", "mxfp8_e4m3", {"block": (32, 32)}),
    Mode("NVFP4 16x16", "nvfp4", {"block": (16, 16)}),
    Mode("NVFP4 row+col", "nvfp4", options={"layout": "both"}),
    Mode("NVFP4, an amax of each row", "nvfp4", {"row_amax": True}),
    Mode("NVFP4, four over six", "nvfp4", {"four_over_six": "mae", "largest_scale": 256}),
    Mode("NVFP4 columns, transformed", "nvfp4", options={"layout": "colwise", "transform": 16}),
    Mode("NVFP4, stochastic", "nvfp4", options=STOCHASTIC),
    Mode("MXFP8, stochastic", "mxfp8_e4m3", options=STOCHASTIC),
    Mode("INT8 rows", "int8_row"),
)


def measure(mode: Mode, dtype: str, size: int, cols: int, threads: int, repetitions: int) -> Row:
    """Checks and times a mode, dither and torch in turns with a copy. Each input byte counts once, although some modes
    read it twice, and each byte of codes and scales once."""
    dither = importlib.import_module("dither")
    importlib.import_module("dither._dither").set_num_threads(threads)
    x = matrix(dtype, size, cols)
    fmt = dither.formats.get_format(mode.format).with_(**mode.changes)
    options = dict(mode.options)
    if "transform" in options:
        options["transform"] = dither.RandomHadamard(options["transform"])
    results: list[Any] = [dither.quantize(x, fmt, **options)]

    def ours() -> None:
        results[0] = dither.quantize(x, fmt, **options, out=results[0])

    parts = [results[0].rowwise, results[0].colwise] if hasattr(results[0], "rowwise") else results
    written = sum(np.asarray(a).nbytes for part in parts for a in (part.data, part.scale_inv))
    row = Row(mode.name, dtype, *x.shape, x.nbytes + written)
    source = x.reshape(-1).view(np.uint8)[: row.bytes // 2]
    target = limit.empty(source.shape)
    calls: dict[str, Callable[[], object]] = {"memcpy": lambda: np.copyto(target, source), "dither": ours}
    if mode.torch is None:
        row.missing["torch.compile"] = "not written for modes that torch has no types or no rounding for"
    elif torch is None:
        row.missing["torch.compile"] = "torch is not installed"
    else:
        torch.set_num_threads(threads)
        given = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if dtype == "bf16" else torch.from_numpy(x)
        compiled = torch.compile(mode.torch, dynamic=False)
        codes = compiled(given).view(torch.uint8).numpy()
        differ = float((codes != np.asarray(parts[0].data).view(np.uint8)).mean())
        if differ:
            row.differs["torch.compile"] = {"codes": differ}
        calls["torch.compile"] = lambda: compiled(given)
    row.seconds = timing.interleaved(calls, repetitions)
    return row


def rows(dtypes: list[str], size: int, cols: int, threads: int, repetitions: int, only: list[str] | None) -> list[Row]:
    """Of the modes whose name contains one of `only`."""
    chosen = [m for m in MODES if only is None or any(text.lower() in m.name.lower() for text in only)]
    assert set(dtypes) <= set(DTYPES)
    return [measure(mode, dtype, size, cols, threads, repetitions) for dtype in dtypes for mode in chosen]
