"""Scaling modes on a CPU: dither beside a copy of as many bytes, and torch.compile.

Rows of `benchmarks.cpu --modes`. There are no kernels by hand for these; torch's codes are compared with dither's
first, but where they are rounded at random.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.memcpy import memcpy
from benchmarks.operators import matrix
from benchmarks.peers import torch_modes, torch_peer
from benchmarks.row import Row


@dataclass(frozen=True)
class Mode:
    """A call of `dither.quantize`; `torch` is the function of `peers.torch_modes` that does the same."""

    name: str
    format: str
    changes: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    torch: str = ""


STOCHASTIC = {"rounding": "stochastic", "seed": 1}
MODES = (
    Mode("FP8 tensor, current", "fp8_tensor_e4m3", torch="fp8_tensor"),
    Mode("FP8 tensor, delayed", "fp8_tensor_e4m3", options={"encode_scale": 16.0}, torch="fp8_given"),
    Mode("FP8 tensor row+col", "fp8_tensor_e4m3", options={"layout": "both"}, torch="fp8_both"),
    Mode("FP8 rows", "fp8_row_e4m3", torch="fp8_rows"),
    Mode("FP8 1x128", "fp8_1x128_e4m3", torch="fp8_1x128"),
    Mode("FP8 128x128", "fp8_128x128_e4m3", torch="fp8_128x128"),
    Mode("MXFP8 32x32", "mxfp8_e4m3", {"block": (32, 32)}, torch="mxfp8_32x32"),
    Mode("NVFP4 16x16", "nvfp4", {"block": (16, 16)}, torch="nvfp4_16x16"),
    Mode("NVFP4 row+col", "nvfp4", options={"layout": "both"}, torch="nvfp4_both"),
    Mode("NVFP4, an amax of each row", "nvfp4", {"row_amax": True}, torch="nvfp4_row_amax"),
    Mode(
        "NVFP4, four over six",
        "nvfp4",
        {"four_over_six": "mae", "largest_scale": 256},
        torch="nvfp4_four_over_six",
    ),
    Mode(
        "NVFP4 columns, transformed",
        "nvfp4",
        options={"layout": "colwise", "transform": 16},
        torch="nvfp4_transformed",
    ),
    Mode("NVFP4, stochastic", "nvfp4", options=STOCHASTIC, torch="nvfp4_stochastic"),
    Mode("MXFP8, stochastic", "mxfp8_e4m3", options=STOCHASTIC, torch="mxfp8_stochastic"),
    Mode("INT8 rows", "int8_row", torch="int8_rows"),
)


def measure(mode: Mode, x: np.ndarray, dtype: str, threads: int, repetitions: int) -> Row:
    """Checks and times a mode, dither and torch in turns with a copy. Each input byte counts once, although some modes
    read it twice, and each byte of codes and scales once."""
    dither = importlib.import_module("dither")
    importlib.import_module("dither._dither").set_num_threads(threads)
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
    calls: dict[str, Callable[[], object]] = {"memcpy": memcpy(x, row.bytes, threads), "dither": ours}
    if torch_modes.torch is None:
        row.missing["torch.compile"] = "torch is not installed"
    else:
        compiled, differ = _compiled(mode, x, options, parts, threads)
        calls["torch.compile"] = compiled
        if differ:
            row.differs["torch.compile"] = differ
    row.seconds = timing.interleaved(calls, repetitions)
    return row


def _compiled(
    mode: Mode, x: np.ndarray, options: dict[str, Any], parts: list[Any], threads: int
) -> tuple[Callable[[], object], dict[str, float]]:
    """The mode in torch, and the fraction of its codes that differ from those of dither."""
    torch = torch_modes.torch
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    function = getattr(torch_modes, mode.torch)
    if "transform" in options:
        transform = options["transform"]
        function = function([-1.0 if transform.sign_mask >> i & 1 else 1.0 for i in range(transform.size)])
    compiled = torch.compile(function, fullgraph=True, dynamic=False, options={"emulate_precision_casts": True})
    given = torch_peer._tensor(x)
    with torch.no_grad():
        outputs = compiled(given)
    differ = {}
    if "rounding" not in options:
        for name, got, part in zip(("codes", "column codes"), outputs[::2], parts, strict=False):
            fraction = float((got.view(torch.uint8).numpy() != np.asarray(part.data).view(np.uint8)).mean())
            if fraction:
                differ[name] = fraction

    def call() -> None:
        with torch.no_grad():
            compiled(given)

    return call, differ


def rows(dtypes: list[str], size: int, cols: int, threads: int, repetitions: int, only: list[str] | None) -> list[Row]:
    """Of the modes whose name contains one of `only`."""
    chosen = [m for m in MODES if only is None or any(text.lower() in m.name.lower() for text in only)]
    found = []
    for dtype in dtypes:
        x = matrix(dtype, size, cols)
        found += [measure(mode, x, dtype, threads, repetitions) for mode in chosen]
    return found
