"""Functions of tiles that end in MXFP8, in Triton: what people fuse with a quantize, as they would write it there.

Triton's own `exp`, `sigmoid`, `erf` and division, and libdevice's tanh: fast instructions where it has them. The same
kernels in dither are in dither_functions.py.
"""

# mypy: disable-error-code="no-untyped-def, attr-defined"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from benchmarks import triton_kernels
from benchmarks.triton_kernels import Kernel, _e4m3, _quantize_tile, _scale, _store


@triton.jit
def _load(pointer, row, col, M, STRIDE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """A tile at (row, col) of a matrix of M rows, as fp32."""
    r, c = row + tl.arange(0, ROWS), col + tl.arange(0, COLS)
    return tl.load(pointer + r[:, None].to(tl.int64) * STRIDE + c[None, :], mask=r[:, None] < M, other=0.0).to(
        tl.float32
    )


@triton.jit
def _store_mxfp8(tile, q, scale, row, col, M, K: tl.constexpr):
    codes, s = _quantize_tile(tile, 0.0, "mxfp8", 32, False)
    _store(q, codes, row, col, M, K)
    _store(scale, s, row, col // 32, M, K // 32)


@triton.jit
def _store_codes(
    y,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    row,
    col,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """A tile of fp32, rounded to bf16, as codes and scales along rows and, if BOTH, along columns: MXFP8's lie as the
    tile does, NVFP4's are transposed."""
    y = y.to(tl.bfloat16).to(tl.float32)
    G = tl.load(tensor_amax) if FORMAT == "nvfp4" else 0.0
    PER_BYTE: tl.constexpr = 1 if FORMAT == "mxfp8" else 2
    codes, s = _quantize_tile(y, G, FORMAT, BLOCK, HARDWARE)
    _store(q, codes, row, col // PER_BYTE, M, K // PER_BYTE)
    _store(scale, s, row, col // BLOCK, M, K // BLOCK)
    if BOTH:
        if FORMAT == "mxfp8":
            ROWS: tl.constexpr = y.shape[0]
            COLS: tl.constexpr = y.shape[1]
            bands = tl.reshape(y, (ROWS // 32, 32, COLS))
            s, inverse = _scale(tl.max(tl.abs(bands), 1), 0.0, FORMAT)
            codes = _e4m3(bands * inverse[:, None, :]).to(tl.uint8, bitcast=True)
            _store(col_q, tl.reshape(codes, (ROWS, COLS)), row, col, M, K)
            _store(col_scale, s, row // 32, col, M // 32, K)
        else:
            codes, s = _quantize_tile(tl.trans(y), G, FORMAT, BLOCK, HARDWARE)
            r, b = row // 2 + tl.arange(0, codes.shape[1]), row // BLOCK + tl.arange(0, s.shape[1])
            c = col + tl.arange(0, codes.shape[0])
            tl.store(col_q + c[:, None].to(tl.int64) * (M // 2) + r[None, :], codes)
            tl.store(col_scale + c[:, None].to(tl.int64) * (M // BLOCK) + b[None, :], s)


@triton.jit
def softmax(x, q, scale, M, K: tl.constexpr):
    """Of one row; grid (M,)."""
    row = tl.program_id(0)
    t = _load(x, row, 0, M, K, 1, K)
    e = tl.exp(t - tl.max(t, 1, keep_dims=True))
    _store_mxfp8(e / tl.sum(e, 1, keep_dims=True), q, scale, row, 0, M, K)


@triton.jit
def gelu(x, q, scale, M, K: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """GELU by tanh; grid (cdiv(M, ROWS), K / COLS), as of all below."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    t = _load(x, row, col, M, K, ROWS, COLS)
    y = t * (0.5 + 0.5 * libdevice.tanh(t * (0.79788456 + 0.03567741 * t * t)))
    _store_mxfp8(y, q, scale, row, col, M, K)


@triton.jit
def gelu_erf(x, q, scale, M, K: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    t = _load(x, row, col, M, K, ROWS, COLS)
    _store_mxfp8(0.5 * t * (1.0 + tl.erf(t * 0.70710678)), q, scale, row, col, M, K)


@triton.jit
def swiglu(x, up, q, scale, M, K: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    gate = _load(x, row, col, M, K, ROWS, COLS)
    y = gate * tl.sigmoid(gate) * _load(up, row, col, M, K, ROWS, COLS)
    _store_mxfp8(y, q, scale, row, col, M, K)


@triton.jit
def swiglu_backward(x, up, grad, q, scale, up_q, up_scale, M, K: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    gate = _load(x, row, col, M, K, ROWS, COLS)
    linear = _load(up, row, col, M, K, ROWS, COLS)
    g = _load(grad, row, col, M, K, ROWS, COLS)
    s = tl.sigmoid(gate)
    silu = gate * s
    _store_mxfp8(g * linear * (s + silu * (1.0 - s)), q, scale, row, col, M, K)
    _store_mxfp8(g * silu, up_q, up_scale, row, col, M, K)


@triton.jit
def rope(x, cos, sin, q, scale, M, K: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Rotates pairs of columns that lie K / 2 apart; tables of M x K / 2."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    HALF: tl.constexpr = K // 2
    a, b = _load(x, row, col, M, K, ROWS, COLS), _load(x, row, HALF + col, M, K, ROWS, COLS)
    c, s = _load(cos, row, col, M, HALF, ROWS, COLS), _load(sin, row, col, M, HALF, ROWS, COLS)
    _store_mxfp8(a * c - b * s, q, scale, row, col, M, K)
    _store_mxfp8(b * c + a * s, q, scale, row, HALF + col, M, K)


def kernels(input: str = "bf16", k: int = 4096) -> dict[str, Kernel]:
    """All kernels for an input type (Triton's name) and a row length, a power of two."""
    x, codes = f"*{input}", "*u8"
    tile = {"K": k, "ROWS": 4, "COLS": 512}
    outputs = {"q": codes, "scale": codes}
    made = [
        Kernel("softmax", softmax, {"x": x, **outputs}, {"K": k}, 8, k),
        Kernel("gelu", gelu, {"x": x, **outputs}, tile, 4, 2048),
        Kernel("gelu_erf", gelu_erf, {"x": x, **outputs}, tile, 4, 2048),
        Kernel("swiglu", swiglu, {"x": x, "up": x, **outputs}, tile, 4, 2048),
        Kernel(
            "swiglu_backward",
            swiglu_backward,
            {"x": x, "up": x, "grad": x, **outputs, "up_q": codes, "up_scale": codes},
            tile,
            4,
            2048,
        ),
        Kernel("rope", rope, {"x": x, "cos": "*fp32", "sin": "*fp32", **outputs}, tile, 4, 4096),
    ]
    return {kernel.name: kernel for kernel in made}


def every() -> dict[str, Kernel]:
    """These and those of triton_kernels.py."""
    return triton_kernels.kernels() | kernels()
