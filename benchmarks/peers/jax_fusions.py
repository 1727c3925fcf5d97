"""Fused operators as a user of JAX would write them for jax.jit: the producers of `torch_fusions`, by their names.

XLA uses all cores, whatever the number of threads asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers import as_bytes, jax_peer

try:
    import jax
    import jax.numpy as jnp
except ImportError:  # pragma: no cover
    jax = None  # type: ignore[assignment]

NAME = "JAX"
EPS = 1e-6
P = 0.1
Outputs = tuple[Any, ...]
F32 = np.float32


def prepare(
    producer: str, sink: str, operands: Sequence[Any], sizes: Sequence[int], threads: int
) -> tuple[Callable[[], object], Any]:
    """As of `torch_fusions`; the number of threads is XLA's own."""

    @jax.jit
    def call(*given: Any) -> Outputs:
        if producer == "grouped":
            return grouped(*given, sizes)
        return quantized(sink, PRODUCERS[producer](*given), given[0].dtype)

    given = [jnp.asarray(array) for array in operands]

    def run() -> Outputs:
        result: Outputs = jax.block_until_ready(call(*given))
        return result

    return run, as_bytes(np.asarray(run()[0]))


def quantized(sink: str, outputs: Outputs, dtype: Any) -> Outputs:
    """As of `torch_fusions`."""
    first, *saved = outputs
    if sink == "row scales":
        first = _rounded(first, dtype)
        factor = F32(448.0) / jnp.abs(first).max(1, keepdims=True)
        return (jax_peer._e4m3(first * factor), F32(1.0) / factor, *saved)
    if sink.startswith("fp8"):
        codes = jax_peer._e4m3(_wide(first) * F32(16.0))
        return (codes, codes.T, *saved) if sink == "fp8 transposed" else (codes, *saved)
    if not sink:
        return (first.astype(dtype), *saved)
    first = _rounded(first, dtype)
    rows = jax_peer._mxfp8(first)
    return (*rows, *(jax_peer._mxfp8(first, 1) if sink == "both" else ()), *saved)


def grouped(x: Any, sizes: Sequence[int]) -> Outputs:
    """As of `torch_fusions`."""
    parts = jnp.split(x, np.cumsum(sizes)[:-1])
    groups = [jax_peer._mxfp8(group, 1) for group in parts if len(group)]
    return (*jax_peer._mxfp8(x), jnp.concatenate([q for q, _ in groups]), jnp.concatenate([s for _, s in groups]))


def _rounded(x: Any, dtype: Any) -> Any:
    """As float32, rounded to a type: a cast to bf16 and back is what XLA drops in some fusions."""
    return jax.lax.reduce_precision(_wide(x), 8, 7) if dtype == jnp.bfloat16 else _wide(x)


def _wide(x: Any) -> Any:
    return x.astype(jnp.float32)


def _mean(x: Any) -> Any:
    return jnp.mean(x, axis=1, keepdims=True)


def identity(x: Any) -> Outputs:
    return (x,)


def dbias(x: Any) -> Outputs:
    return x, jnp.sum(_wide(x), 0).astype(x.dtype)


def gelu(x: Any) -> Outputs:
    return (jax.nn.gelu(_wide(x), approximate=True),)


def silu(x: Any) -> Outputs:
    return (jax.nn.silu(_wide(x)),)


def dgelu(grad: Any, x: Any) -> Outputs:
    x = _wide(x)
    th = jnp.tanh(F32(0.79788456) * x * (1 + F32(0.044715) * x * x))
    d = F32(0.5) * x * ((1 - th * th) * (F32(0.79788456) + F32(0.1070322243) * x * x)) + F32(0.5) * (1 + th)
    return (d * _wide(grad),)


def dbias_dgelu(grad: Any, x: Any) -> Outputs:
    (d,) = dgelu(grad, x)
    return d, jnp.sum(d, 0).astype(x.dtype)


def swiglu(x: Any) -> Outputs:
    gate, up = jnp.split(_wide(x), 2, 1)
    return (gate * jax.nn.sigmoid(gate) * up,)


def dswiglu(grad: Any, x: Any) -> Outputs:
    gate, up = jnp.split(_wide(x), 2, 1)
    s, g = jax.nn.sigmoid(gate), _wide(grad)
    return (jnp.concatenate([(gate * s * (1 - s) + s) * g * up, gate * s * g], 1),)


def rms_norm(x: Any, gamma: Any) -> Outputs:
    wide = _wide(x)
    rsigma = 1 / jnp.sqrt(_mean(wide * wide) + F32(EPS))
    return _wide(gamma) * (rsigma * wide), rsigma


def layer_norm(x: Any, gamma: Any) -> Outputs:
    mean = _mean(_wide(x))
    d = _wide(x) - mean
    rsigma = 1 / jnp.sqrt(_mean(d * d) + F32(EPS))
    return _wide(gamma) * (rsigma * d) + _wide(gamma), mean, rsigma


def add_rms_norm(x: Any, residual: Any, gamma: Any) -> Outputs:
    total = _rounded(_wide(x) + _wide(residual), x.dtype)
    y, rsigma = rms_norm(total, gamma)
    return y, total.astype(x.dtype), rsigma


def rms_norm_backward(dz: Any, x: Any, rsigma: Any, gamma: Any) -> Outputs:
    y = rsigma[:, None] * _wide(x)
    dy = _wide(gamma) * _wide(dz)
    return rsigma[:, None] * (dy - _mean(dy * y) * y), jnp.sum(_wide(dz) * y, 0).astype(gamma.dtype)


def layer_norm_backward(dz: Any, x: Any, mean: Any, rsigma: Any, gamma: Any) -> Outputs:
    y = rsigma[:, None] * (_wide(x) - mean[:, None])
    dy = _wide(gamma) * _wide(dz)
    dx = rsigma[:, None] * (dy - (_mean(dy * y) * y + _mean(dy)))
    return dx, jnp.sum(_wide(dz) * y, 0).astype(gamma.dtype), jnp.sum(_wide(dz), 0).astype(gamma.dtype)


def softmax(x: Any) -> Outputs:
    return (jax.nn.softmax(_wide(x), axis=1),)


def dsoftmax(grad: Any, x: Any) -> Outputs:
    g, y = _wide(grad), _wide(x)
    return ((g - jnp.sum(g * y, 1, keepdims=True)) * y,)


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    heads = _wide(x).reshape(x.shape[0], -1, 2, cos.shape[1])
    a, b = heads[:, :, 0], heads[:, :, 1]
    c, s = cos[:, None], sin[:, None]
    return jnp.stack([a * c - b * s, b * c + a * s], 2).reshape(x.shape)


def rope(x: Any, cos: Any, sin: Any) -> Outputs:
    return (_turned(x, cos, sin),)


def drope(grad: Any, cos: Any, sin: Any) -> Outputs:
    return (_turned(grad, cos, -sin),)


def _dropped(x: Any) -> Any:
    keep = jax.random.bernoulli(jax.random.key(1), 1 - P, x.shape)
    return jnp.where(keep, _wide(x) * F32(1 / (1 - P)), F32(0))


def add_dropout(x: Any, residual: Any) -> Outputs:
    return (_wide(residual) + _dropped(x),)


def ddropout(grad: Any) -> Outputs:
    return (_dropped(grad),)


PRODUCERS: dict[str, Callable[..., Outputs]] = {
    function.__name__: function
    for function in (
        identity,
        dbias,
        gelu,
        silu,
        dgelu,
        dbias_dgelu,
        swiglu,
        dswiglu,
        rms_norm,
        layer_norm,
        add_rms_norm,
        rms_norm_backward,
        layer_norm_backward,
        softmax,
        dsoftmax,
        rope,
        drope,
        add_dropout,
        ddropout,
    )
}
