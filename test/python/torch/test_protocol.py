"""Quantizers inside modules of another library: a stand-in that does what Transformer Engine's linear layer does with
custom quantizers, by its documented protocol."""

import torch
from dither.recipe import CustomRecipe, MMParams, NVFP4BlockScaling
from dither.torch import GEMMType, Linear, autocast, factories
from dither.torch.roles import QuantizerRole, factory_of

M, N, K = 64, 96, 128


def gemm(layout, a, b, out_dtype, bias=None, out=None, accumulate=False):
    """Its hook: operands by columns, the second one first, and codes with their scales for the quantizer's product."""
    for operand in (a, b):
        if not getattr(operand, "custom", False):
            raise TypeError("both operands must be custom")
    kind, x, w = {
        "TN": (GEMMType.FPROP, (b.data, b.scale), (a.data, a.scale)),
        "NN": (GEMMType.DGRAD, (b.data, b.scale), (a.data_t, a.scale_t)),
        "NT": (GEMMType.WGRAD, (b.data_t, b.scale_t), (a.data_t, a.scale_t)),
    }[layout]
    if any(part is None for part in (*x, *w)):
        raise ValueError("missing data for this layout")
    return b._quantizer.qgemm(
        x[0],
        w[0],
        MMParams(),
        out_dtype,
        x[1],
        w[1],
        bias,
        out,
        accumulate,
        gemm_type=kind,
        qresult_x=b,
        qresult_w=a,
    )


class Function(torch.autograd.Function):
    """What saves tensors saves those of storages, which have none in between."""

    @staticmethod
    def forward(ctx, x, weight, bias, quantizers):
        q_input, q_weight, ctx.q_grad = quantizers
        for q, columns in ((q_input, True), (q_weight, True)):
            q.set_usage(rowwise=True, columnwise=columns)
        xq, wq = q_input.quantize(x), q_weight.quantize(weight)
        y = gemm("TN", wq, xq, x.dtype, bias)
        xq.update_usage(rowwise_usage=False, columnwise_usage=True)
        saved, ctx.objects = [], []
        for one in (xq, wq):
            tensors, rest = one.prepare_for_saving()
            assert rest is one and one.data is None and one.data_t is None
            saved += tensors
            ctx.objects.append(rest)
        ctx.save_for_backward(*saved)
        return y

    @staticmethod
    def backward(ctx, dy):
        tensors = list(ctx.saved_tensors)
        for one in ctx.objects:
            tensors = one.restore_from_saved(tensors)
        assert tensors == []
        xq, wq = ctx.objects
        ctx.q_grad.set_usage(rowwise=True, columnwise=True)
        dbias, dyq = ctx.q_grad.bgrad_quantize(dy)
        dx = gemm("NN", wq, dyq, dy.dtype)
        return dx, gemm("NT", xq, dyq, dy.dtype), dbias, None


def test_a_stand_in_of_the_protocol():
    """The bits of dither's own layer."""
    g = torch.Generator().manual_seed(0)
    x, dy = (torch.randn(M, size, generator=g).bfloat16() for size in (K, N))
    layer = Linear(K, N, dtype=torch.bfloat16)
    for recipe in (
        CustomRecipe(factories.mxfp8_factory),
        CustomRecipe(factories.current_scaling_factory),
        NVFP4BlockScaling(),
    ):
        factory = factory_of(recipe)
        roles = [QuantizerRole("linear", kind, "fc1") for kind in ("input", "weight", "grad_output")]
        quantizers = [factory(role) for role in roles]
        assert all(q.custom for q in quantizers)
        found = []
        for forward in (
            lambda x, quantizers=quantizers: Function.apply(x, layer.weight, layer.bias, quantizers),
            layer,
        ):
            layer.zero_grad()
            inputs = x.clone().requires_grad_()
            with autocast(recipe=recipe):
                y = forward(inputs)
            torch.manual_seed(1)
            y.backward(dy)
            found.append([y.detach(), inputs.grad, layer.weight.grad, layer.bias.grad])
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
