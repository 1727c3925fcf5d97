"""Transposes on a CPU: dither beside a copy of as many bytes, torch and JAX.

Rows of `benchmarks.cpu --transposes`: square matrices of elements of 4, 8, 16 and 32 bits, into memory that is there
already, but for JAX, which allocates. The frameworks have no elements of 4 bits that are packed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from benchmarks import limit, timing
from benchmarks.memcpy import memcpy
from benchmarks.row import Row

COLUMNS = ("memcpy", "dither", "torch", "JAX")
SIZES = (4, 8, 16, 32)


def measure(bits: int, size: int, threads: int, repetitions: int) -> Row:
    """Checks and times the transpose of a square of `size` elements a row."""
    dither = importlib.import_module("dither")
    importlib.import_module("dither._dither").set_num_threads(threads)
    kind = np.dtype(f"u{max(bits // 8, 1)}")
    shape = size, size // 2 if bits == 4 else size
    x, y = limit.empty(shape, kind), limit.empty(shape, kind)
    x.view(np.uint8)[...] = np.random.default_rng(0).integers(0, 256, x.view(np.uint8).shape, np.uint8)
    dtype = dither.float4_e2m1 if bits == 4 else None
    row = Row("transpose", f"{bits} bits", size, size, 2 * x.nbytes)
    calls: dict[str, Callable[[], object]] = {
        "memcpy": memcpy(x, row.bytes, threads),
        "dither": lambda: dither.transpose(x, dtype=dtype, out=y),
    }
    calls["dither"]()
    if bits > 4 and not np.array_equal(y, x.T):
        row.differs["dither"] = {"elements": float((y != x.T).mean())}
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        row.missing["torch"] = "torch is not installed"
    else:
        if bits > 4:
            torch.set_num_threads(threads)
            source, target = (torch.from_numpy(a.view(f"i{kind.itemsize}")) for a in (x, y.copy()))
            calls["torch"] = lambda: target.copy_(source.t())
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        row.missing["JAX"] = "JAX is not installed"
    else:
        if bits > 4:
            # Otherwise the layout of the result is what changes, and no byte moves.
            turned, given = jax.jit(lambda x: jax.lax.optimization_barrier(x.T)), jax.numpy.asarray(x)
            calls["JAX"] = lambda: jax.block_until_ready(turned(given))
    row.seconds = timing.interleaved(calls, repetitions)
    return row


def rows(dtypes: list[str], size: int, cols: int, threads: int, repetitions: int, only: list[str] | None) -> list[Row]:
    """One for each size of elements, squares of `cols` a row."""
    if only is not None and not any(text.lower() in "transpose" for text in only):
        return []
    return [measure(bits, cols, threads, repetitions) for bits in SIZES]
