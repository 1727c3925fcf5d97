"""Scaling modes as a user of torch would write them for torch.compile: codes and scales, packed and turned as dither's.

torch has no cast to E2M1, no rounding at random and no Hadamard transform; they are written out in the forms that
Inductor vectorizes. What is rounded at random has torch's own random numbers, so its codes are others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import torch

    from benchmarks.peers import torch_peer
except ImportError:  # pragma: no cover
    torch = None  # type: ignore[assignment]

Outputs = tuple[Any, ...]


def _fp8(wide: Any, scale: Any) -> Any:
    return (wide * scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


def fp8_tensor(x: Any) -> Outputs:
    scale = 448.0 / x.abs().amax().float()
    return _fp8(x.float(), scale), 1.0 / scale


def fp8_given(x: Any) -> Outputs:
    return _fp8(x.float(), 16.0), torch.full((1, 1), 1.0 / 16.0)


def fp8_both(x: Any) -> Outputs:
    codes, scale = fp8_tensor(x)
    return codes, scale, codes.t().contiguous(), scale


def fp8_rows(x: Any) -> Outputs:
    scale = 448.0 / x.abs().amax(1, keepdim=True).float()
    return _fp8(x.float(), scale), 1.0 / scale


def int8_rows(x: Any) -> Outputs:
    scale = 127.0 / x.abs().amax(1, keepdim=True).float()
    return (x.float() * scale).round().clamp(-127.0, 127.0).to(torch.int8), 1.0 / scale


def _power_of_two(scale: Any) -> Any:
    return (scale.view(torch.int32) & -0x800000).view(torch.float32)


def fp8_1x128(x: Any) -> Outputs:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 128, 128)
    scale = _power_of_two(448.0 / blocks.abs().amax(2, keepdim=True))
    return _fp8(blocks, scale).view(rows, cols), 1.0 / scale


def _squares(x: Any, size: int) -> Any:
    rows, cols = x.shape
    return x.float().view(rows // size, size, cols // size, size)


def fp8_128x128(x: Any) -> Outputs:
    blocks = _squares(x, 128)
    scale = _power_of_two(448.0 / blocks.abs().amax((1, 3), keepdim=True))
    return _fp8(blocks, scale).view(x.shape), 1.0 / scale


def mxfp8_32x32(x: Any) -> Outputs:
    blocks = _squares(x, 32)
    scale = torch_peer._e8m0_rceil(blocks.abs().amax((1, 3), keepdim=True) * (1.0 / 448.0))
    return torch_peer._e4m3(blocks * torch_peer._e8m0_inverse(scale)).view(x.shape), scale.to(torch.uint8)


def _nvfp4_scales(amax: Any, tensor_amax: Any, range_: float = 2688.0) -> tuple[Any, Any, Any]:
    """Scales of blocks, what elements are multiplied by, and the tensor's encode scale."""
    encode = range_ / tensor_amax
    scale = torch_peer._e4m3(amax * (encode * (torch.ones(()) / 6.0)))
    return scale, 1.0 / (scale.float() * (1.0 / encode)), encode


def nvfp4(x: Any) -> Outputs:
    return torch_peer._nvfp4(x, x.abs().amax().float())


def nvfp4_16x16(x: Any) -> Outputs:
    blocks = _squares(x, 16)
    scale, by, _ = _nvfp4_scales(blocks.abs().amax((1, 3), keepdim=True), x.abs().amax().float())
    return torch_peer._e2m1(blocks * by).view(x.shape[0], -1), scale


def nvfp4_both(x: Any) -> Outputs:
    amax = x.abs().amax().float()
    return (*torch_peer._nvfp4(x, amax), *torch_peer._nvfp4(x.t().contiguous(), amax))


def nvfp4_row_amax(x: Any) -> Outputs:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 16, 16)
    amax = blocks.abs().amax(2, keepdim=True)
    scale, by, _ = _nvfp4_scales(amax, amax.amax(1, keepdim=True))
    return torch_peer._e2m1(blocks * by).view(rows, -1), scale


def _nearest(y: Any) -> Any:
    """The value in E2M1 that is nearest; see torch_peer._e2m1."""
    a = y.abs().clamp(max=6.0)
    shift = (a.clamp(min=1.0).view(torch.int32) & 0x7F800000).view(torch.float32) * 4194304.0
    return torch.copysign((a + shift) - shift, y)


def nvfp4_four_over_six(x: Any) -> Outputs:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 16, 16)
    amax, tensor_amax = blocks.abs().amax(2, keepdim=True), x.abs().amax().float()
    tried = []
    for largest in (1.0, 1.5):
        scale, by, encode = _nvfp4_scales(amax * largest, tensor_amax, 1536.0)
        values = _nearest(blocks * by) * (scale.float() * (1.0 / encode))
        tried.append((scale, by, (values - blocks).abs().sum(2, keepdim=True)))
    (six, by_six, of_six), (four, by_four, of_four) = tried
    better = of_four < of_six
    codes = torch_peer._e2m1(blocks * torch.where(better, by_four, by_six))
    return codes.view(rows, -1), torch.where(better, four.view(torch.uint8), six.view(torch.uint8))


def nvfp4_transformed(signs: Any) -> Callable[[Any], Outputs]:
    """Of columns, under a Hadamard transform of 16 with these signs."""
    matrix = torch.ones(1, 1)
    while len(matrix) < 16:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    matrix = torch.tensor(signs)[:, None] * matrix / 4.0

    def call(x: Any) -> Outputs:
        rows, cols = x.shape
        turned = (x.t().float().reshape(cols, rows // 16, 16) @ matrix).to(x.dtype).view(cols, rows)
        return torch_peer._nvfp4(turned, turned.abs().amax().float())

    return call


def nvfp4_stochastic(x: Any) -> Outputs:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 16, 16)
    scale, by, _ = _nvfp4_scales(blocks.abs().amax(2, keepdim=True), x.abs().amax().float())
    y = blocks * by
    a = y.abs().clamp(max=6.0)
    step = (a.clamp(min=1.0).view(torch.int32) & 0x7F800000).view(torch.float32) * 0.5
    rounded = torch.copysign((a / step + torch.rand_like(a)).floor() * step, y)
    return torch_peer._e2m1(rounded).view(rows, -1), scale


def mxfp8_stochastic(x: Any) -> Outputs:
    rows, cols = x.shape
    blocks = x.float().view(rows, cols // 32, 32)
    scale = torch_peer._e8m0_rceil(blocks.abs().amax(2) * (1.0 / 448.0))
    y = blocks * torch_peer._e8m0_inverse(scale)[:, :, None]
    lost = torch.randint_like(y, 0, 1 << 20, dtype=torch.int32)
    rounded = ((y.view(torch.int32) + lost) & -0x100000).view(torch.float32)
    return torch_peer._e4m3(rounded).view(rows, cols), scale.to(torch.uint8)
