"""Fused operators in Triton that need no rows from end to end, as people write them there, with Triton's own functions
and libdevice's tanh. The grid is (cdiv(M, ROWS), K / COLS).
"""

# mypy: disable-error-code="no-untyped-def, attr-defined"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from benchmarks.triton_functions import _load, _store_codes

#: The part that dropout drops.
DROPPED: tl.constexpr = tl.constexpr(0.1)


@triton.jit
def _dgelu(x):
    """The derivative of GELU by tanh."""
    th = libdevice.tanh(x * (0.79788456 + 0.03567741 * x * x))
    return 0.5 * x * ((1.0 - th * th) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1.0 + th)


@triton.jit
def quantize(
    x,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """Grid (cdiv(M, ROWS), K / COLS), as of all that need no rows from end to end."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    _store_codes(x_, tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)


@triton.jit
def quantize_dbias(
    x,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    sums,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """With sums over the rows of each program."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    tl.store(sums + tl.program_id(0) * K + col + tl.arange(0, COLS), tl.sum(x_, 0))
    _store_codes(x_, tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)


@triton.jit
def gelu(
    x,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    y = x_ * (0.5 + 0.5 * libdevice.tanh(x_ * (0.79788456 + 0.03567741 * x_ * x_)))
    _store_codes(y, tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)


@triton.jit
def silu(
    x,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    _store_codes(
        x_ * tl.sigmoid(x_), tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE
    )


@triton.jit
def dgelu(
    grad,
    x,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    grad_ = _load(grad, row, col, M, K, ROWS, COLS)
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    _store_codes(
        grad_ * _dgelu(x_), tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE
    )


@triton.jit
def dbias_dgelu(
    grad,
    x,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    sums,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    grad_ = _load(grad, row, col, M, K, ROWS, COLS)
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    y = grad_ * _dgelu(x_)
    tl.store(sums + tl.program_id(0) * K + col + tl.arange(0, COLS), tl.sum(y, 0))
    _store_codes(y, tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)


@triton.jit
def swiglu(
    gate,
    up,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    gate_ = _load(gate, row, col, M, K, ROWS, COLS)
    up_ = _load(up, row, col, M, K, ROWS, COLS)
    _store_codes(
        gate_ * tl.sigmoid(gate_) * up_,
        tensor_amax,
        q,
        scale,
        col_q,
        col_scale,
        row,
        col,
        M,
        K,
        FORMAT,
        BLOCK,
        BOTH,
        HARDWARE,
    )


@triton.jit
def dswiglu(
    grad,
    gate,
    up,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    up_q,
    up_scale,
    up_col_q,
    up_col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """Gradients of the gate, and of what it lets through."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    grad_ = _load(grad, row, col, M, K, ROWS, COLS)
    gate_ = _load(gate, row, col, M, K, ROWS, COLS)
    up_ = _load(up, row, col, M, K, ROWS, COLS)
    s = tl.sigmoid(gate_)
    silu_ = gate_ * s
    y = grad_ * silu_
    _store_codes(y, tensor_amax, up_q, up_scale, up_col_q, up_col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)
    y = grad_ * up_ * (s + silu_ * (1.0 - s))
    _store_codes(y, tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)


@triton.jit
def add_dropout(
    x,
    residual,
    tensor_amax,
    q,
    scale,
    col_q,
    col_scale,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    BOTH: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    x_ = _load(x, row, col, M, K, ROWS, COLS)
    residual_ = _load(residual, row, col, M, K, ROWS, COLS)
    r, c = row + tl.arange(0, ROWS), col + tl.arange(0, COLS)
    keep = tl.rand(1, r[:, None] * K + c[None, :]) >= DROPPED
    y = residual_ + tl.where(keep, x_ * (1.0 / (1.0 - DROPPED)), 0.0)
    _store_codes(y, tensor_amax, q, scale, col_q, col_scale, row, col, M, K, FORMAT, BLOCK, BOTH, HARDWARE)
