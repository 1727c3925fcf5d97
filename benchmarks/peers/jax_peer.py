"""JAX, jitted for the CPU. XLA uses all cores, whatever the number of threads asked for.

Same bits for finite input of ordinary magnitude: XLA flushes subnormals on the CPU. A NaN wins an amax and is lost to
E2M1. RMSNorm sums in XLA's order, so that a code here and there differs. Scales are decoded from their bits, because
XLA may drop a cast to a narrow type that is followed by one back.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from benchmarks.operators import EPS, ROUND_INTERMEDIATE, Case
from benchmarks.peers import Prepared, Unavailable, as_bytes

NAME = "JAX"

try:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:  # pragma: no cover
    jax = None  # type: ignore[assignment]

FMAX32 = float(np.finfo(np.float32).max)


def version() -> str:
    return f"JAX {jax.__version__}" if jax else "JAX is not installed"


def _bits(x: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(x, jnp.uint32)


def _float(bits: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(bits.astype(jnp.uint32), jnp.float32)


def _e8m0_rceil(a: jax.Array) -> jax.Array:
    bits = _bits(a)
    return jnp.where(bits <= 0x400000, 0, (bits + 0x7FFFFF) >> 23)


def _e4m3(y: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(jnp.clip(y, -448.0, 448.0).astype(jnp.float8_e4m3fn), jnp.uint8)


def _e2m1(y: jax.Array) -> jax.Array:
    """Codes, two to a byte."""
    codes = jnp.clip(y, -6.0, 6.0).astype(jnp.float4_e2m1fn)
    return lax.bitcast_convert_type(codes.reshape(*codes.shape[:-1], -1, 2), jnp.uint8)


def _nvfp4(x: jax.Array, amax: jax.Array) -> tuple[jax.Array, jax.Array]:
    rows, cols = x.shape
    blocks = x.astype(jnp.float32).reshape(rows, cols // 16, 16)
    encode = jnp.minimum(2688.0 / amax, FMAX32)
    scale = _e4m3(jnp.max(jnp.abs(blocks), axis=2) * (encode * (np.float32(1) / np.float32(6))))
    value = _float(scale.astype(jnp.uint32) << 20) * np.float32(2.0**120)
    inverse = jnp.minimum(1.0 / (value * (1.0 / encode)), FMAX32)
    return _e2m1(blocks * inverse[:, :, None]).reshape(rows, -1), scale


def _mxfp8(x: jax.Array, axis: int = 2) -> tuple[jax.Array, jax.Array]:
    rows, cols = x.shape
    blocks = x.astype(jnp.float32).reshape((rows, cols // 32, 32) if axis == 2 else (rows // 32, 32, cols))
    scale = _e8m0_rceil(jnp.max(jnp.abs(blocks), axis=axis) * (np.float32(1) / np.float32(448)))
    inverse = jnp.expand_dims(_float((254 - scale) << 23), axis)
    return _e4m3(blocks * inverse).reshape(rows, cols), scale.astype(jnp.uint8)


def _mxfp4(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    rows, cols = x.shape
    blocks = x.astype(jnp.float32).reshape(rows, cols // 32, 32)
    scale = jnp.maximum(_bits(jnp.max(jnp.abs(blocks), axis=2)) >> 23, 2) - 2
    return _e2m1(blocks * _float((254 - scale) << 23)[:, :, None]).reshape(rows, -1), scale.astype(jnp.uint8)


def _rms_norm(x: jax.Array, gamma: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    rs = 1.0 / jnp.sqrt(jnp.mean(wide * wide, axis=1, keepdims=True) + EPS)
    y = gamma.astype(jnp.float32) * (rs * wide)
    # A cast to bf16 and back is what XLA drops in some fusions, whatever xla_allow_excess_precision says.
    return lax.reduce_precision(y, 8, 7) if ROUND_INTERMEDIATE and x.dtype == jnp.bfloat16 else y


def _function(case: Case) -> Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, ...]]:
    op = case.operator
    quantize = {"nvfp4": _nvfp4, "mxfp8_e4m3": lambda x, _: _mxfp8(x), "mxfp4": lambda x, _: _mxfp4(x)}[op.format]
    if op.kind == "both":
        return lambda x, gamma, amax: (*_mxfp8(x), *_mxfp8(x, 1))
    if op.kind == "rms_norm":
        return lambda x, gamma, amax: quantize(_rms_norm(x, gamma), amax)
    return lambda x, gamma, amax: quantize(x, amax)


def prepare(case: Case, threads: int) -> Prepared:
    if jax is None:
        raise Unavailable("JAX is not installed")
    function = jax.jit(_function(case))
    arguments = jnp.asarray(case.x), jnp.asarray(case.gamma), jnp.float32(case.amax)
    results: list = []

    def call() -> None:
        results[:] = jax.block_until_ready(function(*arguments))

    def outputs() -> dict[str, np.ndarray]:
        arrays = [as_bytes(np.asarray(a)) for a in results]
        return dict(zip(("q", "scale", "col_q", "col_scale"), arrays, strict=False))

    return Prepared(call, outputs)
