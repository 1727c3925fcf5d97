"""Fused operators as a user of torch would write them for torch.compile: what `benchmarks.fusions` compares with.

Norms and activations are computed in float32 and rounded to the type of their input, then quantized. Their bits differ
from dither's where the functions or the orders of sums do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import torch

    from benchmarks.peers import torch_peer
except ImportError:  # pragma: no cover
    torch = None  # type: ignore[assignment]

EPS = 1e-6
Outputs = tuple[Any, ...]


def _mxfp8(y: Any, like: Any, both: bool = False) -> Outputs:
    y = y.to(like.dtype)
    rows = torch_peer._mxfp8(y)
    return (*rows, *torch_peer._mxfp8(y, 1)) if both else rows


def _gelu(x: Any) -> Any:
    return torch.nn.functional.gelu(x.float(), approximate="tanh")


def _dgelu(grad: Any, x: Any) -> Any:
    x = x.float()
    th = torch.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x))
    d = 0.5 * x * ((1.0 - th * th) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1.0 + th)
    return d * grad.float()


def gelu_mxfp8(x: Any) -> Outputs:
    return _mxfp8(_gelu(x), x)


def swiglu_mxfp8(x: Any) -> Outputs:
    gate, up = x.float().chunk(2, 1)
    return _mxfp8(gate * torch.sigmoid(gate) * up, x, both=True)


def dswiglu_mxfp8(grad: Any, x: Any) -> Outputs:
    gate, up = x.float().chunk(2, 1)
    s, g = torch.sigmoid(gate), grad.float()
    d = torch.cat([(gate * s * (1.0 - s) + s) * g * up, gate * s * g], 1)
    return _mxfp8(d, x)


def dbias_dgelu_fp8(grad: Any, x: Any) -> Outputs:
    d = _dgelu(grad, x)
    return (d * 16.0).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), d.sum(0)


def _mean(x: Any) -> Any:
    return x.mean(1, keepdim=True)


def layer_norm_mxfp8(x: Any, gamma: Any) -> Outputs:
    d = x.float() - _mean(x.float())
    rsigma = 1.0 / torch.sqrt(_mean(d * d) + EPS)
    return *_mxfp8(gamma.float() * (rsigma * d) + gamma.float(), x), rsigma


def add_rms_norm_mxfp8(x: Any, residual: Any, gamma: Any) -> Outputs:
    total = x + residual
    wide = total.float()
    rsigma = 1.0 / torch.sqrt(_mean(wide * wide) + EPS)
    return *_mxfp8(gamma.float() * (rsigma * wide), x), total, rsigma


def _rms_norm_backward(dz: Any, x: Any, rsigma: Any, gamma: Any) -> Outputs:
    y = rsigma[:, None] * x.float()
    dy = gamma.float() * dz.float()
    return rsigma[:, None] * (dy - _mean(dy * y) * y), (dz.float() * y).sum(0)


def rms_norm_backward(dz: Any, x: Any, rsigma: Any, gamma: Any) -> Outputs:
    dx, dgamma = _rms_norm_backward(dz, x, rsigma, gamma)
    return dx.to(x.dtype), dgamma.to(gamma.dtype)


def rms_norm_backward_mxfp8(dz: Any, x: Any, rsigma: Any, gamma: Any) -> Outputs:
    dx, dgamma = _rms_norm_backward(dz, x, rsigma, gamma)
    return *_mxfp8(dx, x), dgamma.to(gamma.dtype)


def layer_norm_backward(dz: Any, x: Any, mean: Any, rsigma: Any, gamma: Any) -> Outputs:
    y = rsigma[:, None] * (x.float() - mean[:, None])
    dy = gamma.float() * dz.float()
    dx = rsigma[:, None] * (dy - (_mean(dy * y) * y + _mean(dy)))
    return dx.to(x.dtype), (dz.float() * y).sum(0).to(gamma.dtype), dz.float().sum(0).to(gamma.dtype)


FUNCTIONS: dict[str, Callable[..., Outputs]] = {
    function.__name__: function
    for function in (
        gelu_mxfp8,
        swiglu_mxfp8,
        dswiglu_mxfp8,
        dbias_dgelu_fp8,
        layer_norm_mxfp8,
        add_rms_norm_mxfp8,
        rms_norm_backward,
        rms_norm_backward_mxfp8,
        layer_norm_backward,
    )
}
