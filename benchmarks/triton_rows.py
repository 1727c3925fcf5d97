"""Fused operators in Triton whose programs have whole rows: one each, or for the gradient of a norm several, so that
it adds gradients of gamma up. The grid is (M,), or (M / ROWS,).
"""

# mypy: disable-error-code="no-untyped-def, attr-defined"
from __future__ import annotations

import triton
import triton.language as tl

from benchmarks.operators import EPS
from benchmarks.triton_functions import _load, _store_codes
from benchmarks.triton_kernels import _store

#: A head of `rope`.
HEAD: tl.constexpr = tl.constexpr(128)
EPSILON: tl.constexpr = tl.constexpr(EPS)


@triton.jit
def softmax(
    x,
    tensor_amax,
    q,
    scale,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """Grid (M,), as of all that need rows from end to end."""
    row = tl.program_id(0)
    t = _load(x, row, 0, M, K, 1, K)
    e = tl.exp(t - tl.max(t, 1, keep_dims=True))
    y = e / tl.sum(e, 1, keep_dims=True)
    _store_codes(y, tensor_amax, q, scale, q, scale, row, 0, M, K, FORMAT, BLOCK, False, HARDWARE)


@triton.jit
def _normalized(t, gamma, rsigma, row, K: tl.constexpr):
    """A row over the square root of the mean of its squares, times gamma."""
    rs = tl.rsqrt(tl.sum(t * t, 1) * (1.0 / K) + EPSILON)
    tl.store(rsigma + row + tl.arange(0, 1), rs)
    return _load(gamma, 0, 0, 1, K, 1, K) * (rs[:, None] * t)


@triton.jit
def rms_norm(
    x,
    gamma,
    tensor_amax,
    q,
    scale,
    rsigma,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row = tl.program_id(0)
    t = _load(x, row, 0, M, K, 1, K)
    y = _normalized(t, gamma, rsigma, row, K)
    _store_codes(y, tensor_amax, q, scale, q, scale, row, 0, M, K, FORMAT, BLOCK, False, HARDWARE)


@triton.jit
def layer_norm(
    x,
    gamma,
    tensor_amax,
    q,
    scale,
    mean,
    rsigma,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """Gamma is beta, too."""
    row = tl.program_id(0)
    t = _load(x, row, 0, M, K, 1, K)
    m = tl.sum(t, 1) * (1.0 / K)
    tl.store(mean + row + tl.arange(0, 1), m)
    y = _normalized(t - m[:, None], gamma, rsigma, row, K) + _load(gamma, 0, 0, 1, K, 1, K)
    _store_codes(y, tensor_amax, q, scale, q, scale, row, 0, M, K, FORMAT, BLOCK, False, HARDWARE)


@triton.jit
def add_rms_norm(
    x,
    residual,
    gamma,
    tensor_amax,
    q,
    scale,
    rsigma,
    total,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    row = tl.program_id(0)
    t = _load(x, row, 0, M, K, 1, K)
    t = (t + _load(residual, row, 0, M, K, 1, K)).to(tl.bfloat16)
    _store(total, t, row, 0, M, K)
    y = _normalized(t.to(tl.float32), gamma, rsigma, row, K)
    _store_codes(y, tensor_amax, q, scale, q, scale, row, 0, M, K, FORMAT, BLOCK, False, HARDWARE)


@triton.jit
def rms_norm_backward(
    dz,
    x,
    rsigma,
    gamma,
    tensor_amax,
    q,
    scale,
    dgamma,
    M,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """dx, and for each program a sum of dgamma over its rows; grid (M / ROWS,)."""
    g = _load(gamma, 0, 0, 1, K, 1, K)
    total = tl.zeros((1, K), tl.float32)
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        d, rs = _load(dz, row, 0, M, K, 1, K), tl.load(rsigma + row)
        y = rs * _load(x, row, 0, M, K, 1, K)
        dy = g * d
        total += d * y
        dx = rs * (dy - tl.sum(dy * y, 1)[:, None] * (1.0 / K) * y)
        _store_codes(dx, tensor_amax, q, scale, q, scale, row, 0, M, K, FORMAT, BLOCK, False, HARDWARE)
    tl.store(dgamma + tl.program_id(0) * K + tl.arange(0, K)[None, :], total)


@triton.jit
def rope(
    x,
    cos,
    sin,
    tensor_amax,
    q,
    scale,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """Halves of heads, as rows of their own; grid (M,): a program has all heads of a token."""
    HEADS: tl.constexpr = K // HEAD
    HALF: tl.constexpr = HEAD // 2
    token = tl.program_id(0)
    row, all = token * HEADS, M * HEADS
    a, b = _load(x, row, 0, all, HEAD, HEADS, HALF), _load(x, row, HALF, all, HEAD, HEADS, HALF)
    c, s = _load(cos, token, 0, M, HALF, 1, HALF), _load(sin, token, 0, M, HALF, 1, HALF)
    _store_codes(a * c - b * s, tensor_amax, q, scale, q, scale, row, 0, all, HEAD, FORMAT, BLOCK, False, HARDWARE)
    _store_codes(b * c + a * s, tensor_amax, q, scale, q, scale, row, HALF, all, HEAD, FORMAT, BLOCK, False, HARDWARE)
