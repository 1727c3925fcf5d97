"""Modules on GPUs that multiply codes and scales: a stand-in for torch's product reads what it is given.

It has torch check matrices, scales, their types, shapes, strides and orders (on the device "meta"), and multiplies the
values that codes and scales have by the rules of torch's product, written here anew.
"""

import dither.torch as dt
import pytest
import torch
from dither import recipe as recipes
from dither.torch import matmul, scaled_args
from torch.nn import functional

M, N, K = 128, 256, 384
KIND, ORDER = functional.ScalingType, functional.SwizzleType
BLOCKS = {KIND.BlockWise1x16: 16, KIND.BlockWise1x32: 32, KIND.BlockWise1x128: 128}
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def codes(mat):
    """The elements (rows, K) of one operand."""
    if mat.dtype is not torch.float4_e2m1fn_x2:
        return mat.float()
    pairs = mat.view(torch.uint8).int()
    return E2M1[torch.stack([pairs & 15, pairs >> 4], -1).reshape(mat.shape[0], -1)]


def unswizzled(scales, rows, count):
    """Scales (rows, count) that lie in tiles of 128 x 4, each of 32 x 4 x 4 bytes."""
    r, c = torch.arange(rows)[:, None], torch.arange(count)[None]
    place = ((r // 128) * -(-count // 4) + c // 4) * 512 + (r % 32) * 16 + (r % 128) // 32 * 4 + c % 4
    return (
        scales.reshape(-1)[place]
        if scales.dtype is torch.float32
        else scales.view(torch.uint8).reshape(-1)[place].view(scales.dtype)
    )


def decoded(mat, scales, kinds, orders):
    """The values of an operand with K along its columns."""
    x = codes(mat)
    for scale, kind, order in zip(scales, kinds, orders, strict=True):
        rows, k = x.shape
        if kind is KIND.TensorWise:
            x = x * scale.reshape(())
        elif kind is KIND.BlockWise128x128:
            # Of side b: (K / 128, N / 128) with the first stride 1.
            matrix = scale.t()[: -(-rows // 128), : -(-k // 128)]
            x = x * matrix.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :k]
        else:
            block = BLOCKS[kind]
            matrix = unswizzled(scale, rows, k // block).float() if order is ORDER.SWIZZLE_32_4_4 else scale
            x = x * matrix.repeat_interleave(block, 1)
    return x


@pytest.fixture
def gpu(monkeypatch):
    """A CPU that says that it is a GPU of sm_100, and the kinds of scales of the products that it was asked for."""
    asked = []
    real = functional.scaled_mm

    def product(a, b, scale_a, kind_a, scale_b, kind_b, order_a, order_b, output_dtype):
        meta = [[s.to("meta") for s in scales] for scales in (scale_a, scale_b)]
        assert a.is_contiguous() and b.t().is_contiguous()
        args = (a.to("meta"), b.to("meta"), meta[0], kind_a, meta[1], kind_b, order_a, order_b)
        shape = real(*args, output_dtype=torch.bfloat16).shape
        asked.append((kind_a[0], kind_b[0]))
        left, right = decoded(a, scale_a, kind_a, order_a), decoded(b.t(), scale_b, kind_b, order_b)
        assert shape == (left.shape[0], right.shape[0])
        return (left @ right.t()).to(output_dtype)

    monkeypatch.setattr(scaled_args, "capability", lambda device: (10, 0))
    monkeypatch.setattr(functional, "scaled_mm", product)
    return asked


def results(module, x, recipe):
    module.zero_grad()
    torch.manual_seed(5)
    x = x.clone().requires_grad_()
    with dt.autocast(recipe=recipe):
        y = module(x)
    y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y.dtype))
    return [y.detach(), x.grad, *[p.grad for p in module.parameters()]]


ONE, SQUARE = KIND.BlockWise1x128, KIND.BlockWise128x128
RECIPES = {
    "current": (recipes.Float8CurrentScaling(), [(KIND.TensorWise,) * 2] * 3),
    "delayed": (recipes.DelayedScaling(), [(KIND.TensorWise,) * 2] * 3),
    "mxfp8": (recipes.MXFP8BlockScaling(), [(KIND.BlockWise1x32,) * 2] * 3),
    "mxfp8 squares": (recipes.MXFP8BlockScaling(enable_2d_quantization=True), [(KIND.BlockWise1x32,) * 2] * 3),
    "block": (recipes.Float8BlockScaling(), [(ONE, SQUARE), (ONE, SQUARE), (ONE, ONE)]),
    "nvfp4": (recipes.NVFP4BlockScaling(), [(KIND.BlockWise1x16,) * 2] * 3),
    "custom": (
        recipes.CustomRecipe(dt.factories.mxfp8_fwd_nvfp4_bwd_factory),
        [(KIND.BlockWise1x32,) * 2, (KIND.BlockWise1x16,) * 2, (KIND.BlockWise1x16,) * 2],
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_every_product_of_a_layer(name, gpu):
    """Forward, and the gradients of the input and of the weight, are of the same values as where they are defined."""
    recipe, kinds = RECIPES[name]
    layer = dt.Linear(K, N)
    x = torch.randn(M, K, generator=torch.Generator().manual_seed(1))
    with dt.native_products(False):
        want = results(layer, x, recipe)
    assert gpu == []
    layer._made = None  # scales in the order of products, and delayed ones as at first
    found = results(layer, x, recipe)
    assert gpu == kinds
    for one, other in zip(found, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_what_no_gpu_multiplies(gpu):
    """Other extents, plain operands, two of E5M2, and transforms of one of the operands are multiplied as defined."""
    mxfp8, x, w = dt.MXFP8Quantizer("e4m3", columnwise=False), torch.randn(M, K), torch.randn(N, K)
    fprop = matmul.GEMMType.FPROP
    for a, b in (
        (mxfp8(x), w),
        (mxfp8(x[:, :80]), mxfp8(w[:, :80])),
        (mxfp8(x), mxfp8(w[:100])),
        (dt.MXFP8Quantizer("e5m2")(x), dt.MXFP8Quantizer("e5m2")(w)),
        (dt.Quantizer("fp8_row_e4m3")(x), dt.Quantizer("fp8_row_e4m3")(w)),
    ):
        assert matmul.multiply(fprop, a, b).shape == (M, b.shape[0])
    rht = dt.NVFP4Quantizer(with_rht=True)
    matmul.multiply(matmul.GEMMType.WGRAD, rht(x), dt.NVFP4Quantizer()(x))
    assert gpu == []
    # Scales in another order, and codes that are not transposed, are put in order: they are of the one who calls.
    matmul.multiply(fprop, mxfp8(x), mxfp8(w))
    assert gpu == [(KIND.BlockWise1x32,) * 2]


def test_older_gpus(gpu, monkeypatch):
    monkeypatch.setattr(scaled_args, "capability", lambda device: (9, 0))
    layer, x = dt.Linear(K, N), torch.randn(M, K)
    results(layer, x, recipes.MXFP8BlockScaling())
    assert gpu == []
    results(layer, x, recipes.Float8BlockScaling())
    assert gpu == RECIPES["block"][1]
