"""A call of each operator of dither on tensors of torch: what torch.library has to know of them."""

import dataclasses

import dither
import torch

M, N = 24, 64


def numbers(*shape, seed=3, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


x, up, grad, residual = (numbers(M, N, seed=seed) for seed in (1, 2, 3, 4))
gamma, beta, factor = numbers(N, seed=5), numbers(N, seed=6), numbers(M, seed=7)
mean, rsigma = numbers(M, seed=8), numbers(M, seed=9).abs()
cos, sin = numbers(M, 16, seed=10), numbers(M, 16, seed=11)
starts = torch.tensor([0, 10], dtype=torch.int32)
sizes = torch.tensor([10, 0, 14], dtype=torch.int32)
ACTIVATIONS = ("gelu", "silu", "qgelu", "relu", "srelu", "sigmoid")
GATED = ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")


def in_bytes(q):
    """A quantized tensor with codes and scales in uint8: opcheck calculates with its inputs, for which torch has no
    arithmetic of FP8."""
    arrays = {"data": q.data.view(torch.uint8)}
    if q.scale_inv.dtype.itemsize == 1:
        arrays["scale_inv"] = q.scale_inv.view(torch.uint8)
    return dataclasses.replace(q, **arrays)


def _calls():
    q = dither.quantize(x, "nvfp4", layout="both")
    grouped = dither.grouped_quantize(x, "mxfp8_e4m3", "both", "128x4", group_sizes=sizes)
    of_blocks = dither.quantize(x, dither.FP8_1X128_E4M3.with_(pow2_scales=True))
    scales = dither.quantize(x, "mxfp8_e4m3").scale_inv
    of_e8m0 = {"dtype": dither.e8m0}
    swizzled, padded = (fn(scales).view(torch.uint8) for fn in (dither.swizzle_scales, dither.pad_scales))
    scales = scales.view(torch.uint8)
    yield "quantize", (x, "nvfp4"), {"layout": "both", "scale_layout": "128x4"}
    yield "dequantize", (in_bytes(q.colwise),), {}
    yield "requantize", (in_bytes(dither.quantize(x, "mxfp8_e4m3")),), {}
    yield "as_mxfp8", (in_bytes(of_blocks),), {}
    yield "amax", (x,), {}
    yield "transformed_amax", (torch.cat([x, x])[:32], dither.RandomHadamard(16, 0x8001)), {}
    yield "updated_scale", (torch.ones(()), rsigma[:4], rsigma[4:5]), {"format": "float8_e4m3"}
    yield "transpose", (x,), {}
    yield "cast_transpose", (x, "fp8_tensor_e4m3"), {}
    yield "swizzle_scales", (scales,), of_e8m0
    yield "unswizzle_scales", (swizzled, tuple(scales.shape)), of_e8m0
    yield "pad_scales", (scales,), of_e8m0
    yield "unpad_scales", (padded, tuple(scales.shape)), of_e8m0
    yield "group_offsets", (sizes,), {"multiple": 128}
    yield "grouped_quantize", (x, "mxfp8_e4m3", "both", "128x4"), {"group_sizes": sizes}
    yield "grouped_dequantize", (in_bytes(grouped.rowwise),), {}
    yield "quantize_many", ([x, up], ["nvfp4", "mxfp8_e4m3"]), {}
    yield "multi_tensor_quantize", ([x, up], "nvfp4"), {}
    yield "nv_block_quantize", (x, 2.0, True), {}
    yield "nv_grouped_block_quantize", (x, starts, 128 * torch.arange(2, dtype=torch.int32), 2.0), {}
    yield "rms_norm", (x, gamma), {"format": "mxfp8_e4m3"}
    yield "layer_norm", (x, gamma, beta), {}
    yield "add_rms_norm", (x, residual, gamma), {}
    yield "add_layer_norm", (x, residual, gamma, beta), {"format": "nvfp4"}
    yield "rms_norm_backward", (grad, x, rsigma, gamma), {}
    yield "layer_norm_backward", (grad, x, mean, rsigma, gamma), {"format": "mxfp8_e4m3"}
    yield "softmax", (x,), {"scale": 0.5}
    yield "dsoftmax", (grad, x), {}
    yield "rope", (x, cos, sin), {}
    yield "drope", (grad, cos, sin), {}
    yield "add_dropout", (x, residual), {"dropout_seed": 5}
    yield "ddropout", (grad,), {"dropout_seed": 5}
    yield "quantize_dbias", (x,), {"format": "mxfp8_e4m3", "layout": "both"}
    for name in ACTIVATIONS:
        yield name, (x, gamma), {}
        yield f"d{name}", (grad, x), {"format": "mxfp8_e4m3"}
        if name != "sigmoid":
            yield f"dbias_d{name}", (grad, x, gamma), {}
    for name in GATED:
        yield name, (x, up), {"format": "nvfp4"}
        yield f"d{name}", (grad, x, up), {}
        yield f"dbias_d{name}", (grad, x, up), {}
        yield f"dfactor_d{name}", (grad, x, up), {"factor": factor}


#: By operator: its arguments.
CALLS = {name: (args, kwargs) for name, args, kwargs in _calls()}
