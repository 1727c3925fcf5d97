"""The kernels of triton_functions.py in dither's tile language, tile for tile."""

# mypy: disable-error-code="no-untyped-def, attr-defined"
from __future__ import annotations

from typing import Any

from benchmarks import dither_kernels
from benchmarks.dither_kernels import Kernel, _dense, dither, dl


@dither.jit
def load(x, row, col, ROWS: dl.constexpr, COLS: dl.constexpr):
    return dl.load(x, (row, col), (ROWS, COLS)).to(dl.float32)


@dither.jit
def store_mxfp8(t, q, scale, row, col):
    s = dl.block_scale(t, dither.MXFP8_E4M3)
    dl.store(q, (row, col), dl.cast(t, s, dither.MXFP8_E4M3))
    dl.store(scale, (row, col // 32), s)


@dither.jit
def softmax(x, q, scale):
    row = dl.program_id(0)
    t = load(x, row, 0, 1, x.shape[1])
    e = dl.exp(t - dl.max(t, axis=1))
    store_mxfp8(e / dl.sum(e, axis=1), q, scale, row, 0)


@dither.jit
def gelu(x, q, scale, ROWS: dl.constexpr, COLS: dl.constexpr):
    row, col = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = load(x, row, col, ROWS, COLS)
    store_mxfp8(t * (0.5 + 0.5 * dl.tanh(t * (0.79788456 + 0.03567741 * t * t))), q, scale, row, col)


@dither.jit
def gelu_erf(x, q, scale, ROWS: dl.constexpr, COLS: dl.constexpr):
    row, col = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = load(x, row, col, ROWS, COLS)
    store_mxfp8(0.5 * t * (1.0 + dl.erf(t * 0.70710678)), q, scale, row, col)


@dither.jit
def swiglu(x, up, q, scale, ROWS: dl.constexpr, COLS: dl.constexpr):
    row, col = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    gate = load(x, row, col, ROWS, COLS)
    store_mxfp8(gate * dl.sigmoid(gate) * load(up, row, col, ROWS, COLS), q, scale, row, col)


@dither.jit
def swiglu_backward(x, up, grad, q, scale, up_q, up_scale, ROWS: dl.constexpr, COLS: dl.constexpr):
    row, col = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    gate, linear = load(x, row, col, ROWS, COLS), load(up, row, col, ROWS, COLS)
    g = load(grad, row, col, ROWS, COLS)
    s = dl.sigmoid(gate)
    silu = gate * s
    store_mxfp8(g * linear * (s + silu * (1.0 - s)), q, scale, row, col)
    store_mxfp8(g * silu, up_q, up_scale, row, col)


@dither.jit
def rope(x, cos, sin, q, scale, ROWS: dl.constexpr, COLS: dl.constexpr):
    row, col, half = dl.program_id(0) * ROWS, dl.program_id(1) * COLS, x.shape[1] // 2
    a, b = load(x, row, col, ROWS, COLS), load(x, row, half + col, ROWS, COLS)
    c, s = load(cos, row, col, ROWS, COLS), load(sin, row, col, ROWS, COLS)
    store_mxfp8(a * c - b * s, q, scale, row, col)
    store_mxfp8(b * c + a * s, q, scale, row, half + col)


def kernels(dtype: Any = None, k: int = 4096) -> dict[str, Kernel]:
    """All kernels for an input type (bf16 by default) and a row length."""
    dtype = dtype or dither.bfloat16
    x, table = _dense(dtype, None, k), _dense(dither.float32, None, k // 2)
    codes, scales = _dense(dither.MXFP8_E4M3.element, None, k), _dense(dither.MXFP8_E4M3.scale, None, k // 32)
    outputs = {"q": codes, "scale": scales}
    tile = {"ROWS": 4, "COLS": 512}
    both = outputs | {"up_q": codes, "up_scale": scales}
    return {
        "softmax": Kernel(softmax, {"x": x, **outputs}, {}, k),
        "gelu": Kernel(gelu, {"x": x, **outputs}, tile, 2048),
        "gelu_erf": Kernel(gelu_erf, {"x": x, **outputs}, tile, 2048),
        "swiglu": Kernel(swiglu, {"x": x, "up": x, **outputs}, tile, 2048),
        "swiglu_backward": Kernel(swiglu_backward, {"x": x, "up": x, "grad": x, **both}, tile, 2048),
        "rope": Kernel(rope, {"x": x, "cos": table, "sin": table, **outputs}, tile, 4096),
    }


def every() -> dict[str, Kernel]:
    """These and those of dither_kernels.py."""
    return dither_kernels.kernels() | kernels()


def compile(name: str, target: str, math: str | None = None) -> Any:
    """The compiled kernel: `.ptx`, `.timings` (milliseconds by stage, from Python source on), `.image`.

    It is for launches whose tiles are all inside of their tensors, as that of one program on many rows is; Triton's are
    made for tensors whose extents are multiples of 16.
    """
    kernel = every()[name]
    lowered = kernel.function.lower(**kernel.arguments, **kernel.constants, target=target, math=math)
    shapes = {name: (1 << 20,) * kind.rank for name, kind in kernel.arguments.items() if hasattr(kind, "rank")}
    return lowered.compile(grid=(1, 1, 1), shapes=shapes)
