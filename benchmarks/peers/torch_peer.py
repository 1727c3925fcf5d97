"""torch.compile on the CPU (Inductor writes C++ and builds it with the system's compiler).

Same bits for finite input; a NaN wins an amax and is lost to E2M1. torch has no cast to E2M1; it is written
out. RMSNorm sums in Inductor's order, so that a code here and there differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.operators import EPS, ROUND_INTERMEDIATE, Case
from benchmarks.peers import Prepared, Unavailable

NAME = "torch.compile"

try:
    import torch
except ImportError:  # pragma: no cover
    torch = None  # type: ignore[assignment]


def version() -> str:
    return f"torch {torch.__version__}" if torch else "torch is not installed"


def _e8m0_rceil(a: torch.Tensor) -> torch.Tensor:
    bits = a.view(torch.int32)
    return torch.where(bits <= 0x400000, 0, (bits + 0x7FFFFF) >> 23)


def _e8m0_inverse(e: torch.Tensor) -> torch.Tensor:
    return ((254 - e) << 23).view(torch.float32)


def _e4m3(y: torch.Tensor) -> torch.Tensor:
    return y.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


def _e2m1(y: torch.Tensor) -> torch.Tensor:
    """Codes, two to a byte. Adding 2^22 times the power of two under |y| rounds it to one mantissa bit; this and the
    16-bit view are five times faster than comparisons and strided slices, which Inductor does not vectorize."""
    a = y.abs().clamp(max=6.0)
    power = a.clamp(min=1.0).view(torch.int32) & 0x7F800000
    rounded = (power.view(torch.float32) * 4194304.0 + a).view(torch.int32) & 0x3FFFFF
    code = rounded + (power >> 22) - 254
    code = torch.where(y.view(torch.int32) < 0, code | 8, code)
    pairs = code.to(torch.uint8).view(torch.int16)
    return (pairs | pairs >> 4).to(torch.uint8)


def _nvfp4(x: torch.Tensor, amax: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 16, 16)
    encode = (2688.0 / amax).clamp(max=torch.finfo(torch.float32).max)
    scale = _e4m3(blocks.abs().amax(2) * (encode * (torch.ones(()) / 6.0)))
    inverse = (1.0 / (scale.float() * (1.0 / encode))).clamp(max=torch.finfo(torch.float32).max)
    return _e2m1(blocks * inverse[:, :, None]).view(rows, -1), scale


def _mxfp8(x: torch.Tensor, axis: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    blocks = x.float().view((rows, cols // 32, 32) if axis == 2 else (rows // 32, 32, cols))
    scale = _e8m0_rceil(blocks.abs().amax(axis) * (1.0 / 448.0))
    return _e4m3(blocks * _e8m0_inverse(scale).unsqueeze(axis)).view(rows, cols), scale.to(torch.uint8)


def _mxfp4(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 32, 32)
    scale = ((blocks.abs().amax(2).view(torch.int32) >> 23) - 2).clamp(min=0)
    return _e2m1(blocks * _e8m0_inverse(scale)[:, :, None]).view(rows, -1), scale.to(torch.uint8)


def _rms_norm(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    rs = 1.0 / torch.sqrt((wide * wide).mean(1, keepdim=True) + EPS)
    y = gamma.float() * (rs * wide)
    return y.to(x.dtype) if ROUND_INTERMEDIATE else y


def _function(case: Case) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, ...]]:
    op = case.operator
    quantize = {"nvfp4": _nvfp4, "mxfp8_e4m3": lambda x, _: _mxfp8(x), "mxfp4": lambda x, _: _mxfp4(x)}[op.format]
    if op.kind == "both":
        return lambda x, gamma, amax: (*_mxfp8(x), *_mxfp8(x, 1))
    if op.kind == "rms_norm":
        return lambda x, gamma, amax: quantize(_rms_norm(x, gamma), amax)
    return lambda x, gamma, amax: quantize(x, amax)


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def prepare(case: Case, threads: int) -> Prepared:
    if torch is None:
        raise Unavailable("torch is not installed")
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    # Otherwise Inductor drops the rounding of the norm's result to bf16.
    options: dict[str, Any] = {"emulate_precision_casts": True}
    compiled = torch.compile(_function(case), fullgraph=True, dynamic=False, options=options)
    arguments = _tensor(case.x), _tensor(case.gamma), torch.tensor(case.amax)
    results: list = []

    def call() -> None:
        with torch.no_grad():
            results[:] = compiled(*arguments)

    def outputs() -> dict[str, np.ndarray]:
        arrays = [t.view(torch.uint8).numpy() for t in results]
        return dict(zip(("q", "scale", "col_q", "col_scale"), arrays, strict=False))

    return Prepared(call, outputs)
