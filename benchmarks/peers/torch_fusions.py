"""Fused operators as a user of torch would write them for torch.compile: what `benchmarks.fusions` compares with.

A producer gives what is quantized, in float32, and what it saves; `sink` rounds that to the type of the input, then
quantizes it. Bits differ from dither's where the functions or the orders of sums do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

try:
    import torch

    from benchmarks.peers import torch_modes, torch_peer
except ImportError:  # pragma: no cover
    torch = None  # type: ignore[assignment]

NAME = "torch.compile"
EPS = 1e-6
P = 0.1
Outputs = tuple[Any, ...]


def prepare(
    producer: str, sink: str, operands: Sequence[Any], sizes: Sequence[int], threads: int
) -> tuple[Callable[[], object], Any]:
    """A call of the compiled operator on arrays of NumPy, and its first output as bytes. `sizes` are those of groups,
    which are known when it is compiled."""
    torch.set_num_threads(threads)
    torch._dynamo.reset()

    def call(*given: Any) -> Outputs:
        if producer == "grouped":
            return grouped(*given, sizes)
        return quantized(sink, PRODUCERS[producer](*given), given[0].dtype)

    # Otherwise Inductor drops the rounding of what is quantized to the type of the input.
    options: dict[str, Any] = {"emulate_precision_casts": True}
    compiled = torch.compile(call, fullgraph=True, dynamic=False, options=options)
    given = [torch_peer._tensor(array) for array in operands]

    def run() -> Outputs:
        with torch.no_grad():
            result: Outputs = compiled(*given)
            return result

    return run, run()[0].view(torch.uint8).numpy()


def quantized(sink: str, outputs: Outputs, dtype: Any) -> Outputs:
    """The first of the outputs as codes and scales, then the others: "" for none, "fp8" by a scale that is known, also
    with its transpose, "row scales" for FP8 with a scale for each row, MXFP8 of "rows" or "both"."""
    first, *saved = outputs
    if sink == "row scales":
        return (*torch_modes.fp8_rows(first.to(dtype)), *saved)
    if sink.startswith("fp8"):
        codes = (first.float() * 16.0).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        return (codes, codes.t().contiguous(), *saved) if sink == "fp8 transposed" else (codes, *saved)
    first = first.to(dtype)
    if not sink:
        return (first, *saved)
    rows = torch_peer._mxfp8(first)
    return (*rows, *(torch_peer._mxfp8(first, 1) if sink == "both" else ()), *saved)


def grouped(x: Any, sizes: Sequence[int]) -> Outputs:
    """MXFP8 of rows and of the columns of each group: blocks of columns begin with the group."""
    groups = [torch_peer._mxfp8(group, 1) for group in x.split(sizes) if len(group)]
    return (*torch_peer._mxfp8(x), torch.cat([q for q, _ in groups]), torch.cat([s for _, s in groups]))


def identity(x: Any) -> Outputs:
    return (x,)


def dbias(x: Any) -> Outputs:
    return x, x.float().sum(0).to(x.dtype)


def gelu(x: Any) -> Outputs:
    return (torch.nn.functional.gelu(x.float(), approximate="tanh"),)


def silu(x: Any) -> Outputs:
    return (torch.nn.functional.silu(x.float()),)


def dgelu(grad: Any, x: Any) -> Outputs:
    x = x.float()
    th = torch.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x))
    d = 0.5 * x * ((1.0 - th * th) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1.0 + th)
    return (d * grad.float(),)


def dbias_dgelu(grad: Any, x: Any) -> Outputs:
    (d,) = dgelu(grad, x)
    return d, d.sum(0).to(x.dtype)


def swiglu(x: Any) -> Outputs:
    gate, up = x.float().chunk(2, 1)
    return (gate * torch.sigmoid(gate) * up,)


def dswiglu(grad: Any, x: Any) -> Outputs:
    gate, up = x.float().chunk(2, 1)
    s, g = torch.sigmoid(gate), grad.float()
    return (torch.cat([(gate * s * (1.0 - s) + s) * g * up, gate * s * g], 1),)


def _mean(x: Any) -> Any:
    return x.mean(1, keepdim=True)


def rms_norm(x: Any, gamma: Any) -> Outputs:
    wide = x.float()
    rsigma = 1.0 / torch.sqrt(_mean(wide * wide) + EPS)
    return gamma.float() * (rsigma * wide), rsigma


def layer_norm(x: Any, gamma: Any) -> Outputs:
    mean = _mean(x.float())
    d = x.float() - mean
    rsigma = 1.0 / torch.sqrt(_mean(d * d) + EPS)
    return gamma.float() * (rsigma * d) + gamma.float(), mean, rsigma


def add_rms_norm(x: Any, residual: Any, gamma: Any) -> Outputs:
    total = x + residual
    y, rsigma = rms_norm(total, gamma)
    return y, total, rsigma


def rms_norm_backward(dz: Any, x: Any, rsigma: Any, gamma: Any) -> Outputs:
    y = rsigma[:, None] * x.float()
    dy = gamma.float() * dz.float()
    return rsigma[:, None] * (dy - _mean(dy * y) * y), (dz.float() * y).sum(0).to(gamma.dtype)


def layer_norm_backward(dz: Any, x: Any, mean: Any, rsigma: Any, gamma: Any) -> Outputs:
    y = rsigma[:, None] * (x.float() - mean[:, None])
    dy = gamma.float() * dz.float()
    dx = rsigma[:, None] * (dy - (_mean(dy * y) * y + _mean(dy)))
    return dx, (dz.float() * y).sum(0).to(gamma.dtype), dz.float().sum(0).to(gamma.dtype)


def softmax(x: Any) -> Outputs:
    return (torch.softmax(x.float(), 1),)


def dsoftmax(grad: Any, x: Any) -> Outputs:
    g, y = grad.float(), x.float()
    return ((g - (g * y).sum(1, keepdim=True)) * y,)


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    heads = x.float().unflatten(1, (-1, 2, cos.shape[1]))
    a, b = heads[:, :, 0], heads[:, :, 1]
    c, s = cos[:, None], sin[:, None]
    return torch.stack([a * c - b * s, b * c + a * s], 2).flatten(1)


def rope(x: Any, cos: Any, sin: Any) -> Outputs:
    return (_turned(x, cos, sin),)


def drope(grad: Any, cos: Any, sin: Any) -> Outputs:
    return (_turned(grad, cos, -sin),)


def add_dropout(x: Any, residual: Any) -> Outputs:
    return (residual.float() + torch.nn.functional.dropout(x.float(), P),)


def ddropout(grad: Any) -> Outputs:
    """The same elements are dropped again, by the same random numbers, as torch does in a recomputed forward pass."""
    return (torch.nn.functional.dropout(grad.float(), P),)


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
